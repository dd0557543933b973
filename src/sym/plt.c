// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * plt: the stubs through which a program calls its libraries have no symbols. The nth stub belongs
 * to the nth relocation of .rela.plt and is named after its symbol: memcpy@plt, as in perf and
 * objdump.
 */
#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "sym/internal.h"

#define MACHINE_ARM 40
#define MACHINE_AARCH64 183
#define MACHINE_RISCV 243
#define NAME_MAX_LEN 4096
#define STUB "@plt"

struct plt {
	struct sym_section relocations, symbols, strings;
	size_t relocation_size, symbol_size;
	bool wide;
	size_t nr;
};

static uint64_t word_at(const uint8_t *at, bool wide)
{
	return wide ? le64_at(at) : le32_at(at);
}

static bool find_plt(const struct object *obj, struct plt *plt)
{
	bool addend = object_section(obj, ".rela.plt", &plt->relocations);

	/* Big-endian machines have different PLT layouts. */
	if (obj->big_endian || (!addend && !object_section(obj, ".rel.plt", &plt->relocations)) ||
	    !object_section(obj, ".dynsym", &plt->symbols) ||
	    !object_section(obj, ".dynstr", &plt->strings))
		return false;
	plt->wide = obj->is_64bit;
	plt->relocation_size = (size_t)(addend ? 3 : 2) * (plt->wide ? 8 : 4);
	plt->symbol_size = plt->wide ? 24 : 16;
	plt->nr = plt->relocations.len / plt->relocation_size;
	return plt->nr > 0;
}

/* "" if it has no symbol: an IFUNC, which is resolved at run time. */
static const char *nth_name(const struct plt *plt, size_t n)
{
	size_t word = plt->wide ? 8 : 4;
	const uint8_t *relocation = plt->relocations.data + n * plt->relocation_size;
	uint64_t symbol = word_at(relocation + word, plt->wide) >> (plt->wide ? 32 : 8);
	const char *name;
	uint64_t at;

	if (!symbol || symbol >= plt->symbols.len / plt->symbol_size)
		return "";
	at = word_at(plt->symbols.data + symbol * plt->symbol_size, false);
	if (at >= plt->strings.len)
		return "";
	name = (const char *)plt->strings.data + at;
	at = plt->strings.len - at;
	return strnlen(name, at) < at && strnlen(name, NAME_MAX_LEN) < NAME_MAX_LEN ? name : "";
}

const char *stub_name(struct arena *arena, const char *symbol)
{
	size_t size = strlen(symbol) + sizeof(STUB);
	char *name = arena_alloc(arena, size);

	snprintf(name, size, "%s" STUB, symbol);
	return name;
}

bool is_stub(const char *name)
{
	size_t len = strlen(name), end = strlen(STUB);

	return len > end && !strcmp(name + len - end, STUB);
}

/* `head` bytes, then the stubs. */
static void add_stubs(const struct plt *plt, const struct sym_section *code, size_t head,
		      size_t least, struct arena *arena, struct symtab *tab)
{
	size_t size = code->len > head ? (code->len - head) / plt->nr & ~(size_t)3 : 0;

	if (size < least)
		return;
	if (size > 2 * least)
		size = least; /* something else follows the stubs */
	for (size_t i = 0; i < plt->nr; i++)
		symtab_add(tab, (struct symbol){ .addr = code->addr + head + i * size,
						 .size = size,
						 .name = stub_name(arena, nth_name(plt, i)) });
}

void object_read_plt(const struct object *obj, struct arena *arena, struct symtab *tab)
{
	bool arm = obj->machine == MACHINE_ARM;
	bool risc = obj->machine == MACHINE_AARCH64 || obj->machine == MACHINE_RISCV;
	struct sym_section code;
	struct plt plt = { 0 };

	if (!find_plt(obj, &plt))
		return;
	if (object_section(obj, ".plt", &code))
		add_stubs(&plt, &code, arm ? 20 : risc ? 32 : 16, arm ? 12 : 16, arena, tab);
	/* If there is a .plt.sec, calls go there; .plt is only for lazy binding. */
	if (object_section(obj, ".plt.sec", &code))
		add_stubs(&plt, &code, 0, 16, arena, tab);
}
