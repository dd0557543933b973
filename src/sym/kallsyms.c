// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /proc/kallsyms, System.map and the output of nm: lines of "ADDRESS TYPE NAME [MODULE]", without
 * sizes. Types are those of nm(1); t, T, w and W are code.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "sym/internal.h"

#define LAST_SYMBOL_SIZE 4096 /* the end of the last one is unknown; perf assumes a page too */

struct line {
	uint64_t addr;
	char type;
	char *name;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the number of digits; 0 unless there are 1 to 16. */
static size_t read_hex(const char *at, const char *end, uint64_t *value)
{
	size_t nr = 0;

	*value = 0;
	for (; at + nr < end && hex_digit(at[nr]) >= 0; nr++)
		*value = *value << 4 | (uint64_t)hex_digit(at[nr]);
	return nr <= 16 ? nr : 0;
}

/* `end` is the end of the line. The name is not terminated: it ends at a blank or at `end`. */
static bool read_line(char *at, const char *end, struct line *line)
{
	size_t digits = read_hex(at, end, &line->addr);

	if (digits < 4 || end - at < (ptrdiff_t)digits + 4)
		return false;
	at += digits;
	if (at[0] != ' ' || (uint8_t)at[1] <= ' ' || (uint8_t)at[1] > '~' || at[2] != ' ')
		return false;
	line->type = at[1];
	line->name = at + 3;
	return (uint8_t)at[3] > ' ';
}

bool kallsyms_probe(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);
	struct line line;

	/* read_line() only reads; the cast is for the pointer it returns. */
	return read_line((char *)text, end ? end : text + len, &line);
}

static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Mapping symbols of Arm and RISC-V, and local labels: not functions. */
static bool is_mark(const char *name)
{
	return name[0] == '$' || !strncmp(name, ".L", 2);
}

void kallsyms_add(struct symtab *tab, uint64_t addr, char type, const char *name,
		  const char *module)
{
	struct symbol sym = { .addr = addr, .name = name, .module = module };

	if (is_mark(name))
		return;
	if (is_code(type))
		sym.rank = type == 'T' ? 3 : type == 't' ? 1 : 2;
	else if (type == 'A' || type == 'a' || type == 'U')
		return;
	/* Keep data, at rank 0, until the ends of functions are known. */
	sym.limit = addr + LAST_SYMBOL_SIZE < addr ? UINT64_MAX : addr + LAST_SYMBOL_SIZE;
	symtab_add(tab, sym);
}

/* Terminates and returns the word at *at; NULL if there is none. */
static char *cut_word(char **at, char *end)
{
	char *word;

	while (*at < end && (uint8_t) * *at <= ' ')
		++*at;
	word = *at;
	while (*at < end && (uint8_t) * *at > ' ')
		++*at;
	if (*at == word)
		return NULL;
	/* `end` is a newline or the text's NUL, so this byte exists. */
	*(*at)++ = '\0';
	return word;
}

/* "[ext4]" -> "ext4" */
static const char *module_name(char *word)
{
	size_t len = word ? strlen(word) : 0;

	if (len < 3 || word[0] != '[' || word[len - 1] != ']')
		return NULL;
	word[len - 1] = '\0';
	return word + 1;
}

static void add_line(struct symtab *tab, const struct line *line, char *end)
{
	char *at = line->name;
	char *name = cut_word(&at, end);
	const char *module = at < end ? module_name(cut_word(&at, end)) : NULL;

	kallsyms_add(tab, line->addr, line->type, name, module);
}

/* Drops data symbols, which were needed only to find where functions end. */
static void drop_data(struct symtab *tab)
{
	struct symtab code = { 0 };

	for (size_t i = 0; i < tab->nr; i++) {
		if (tab->at[i].rank)
			symtab_add(&code, tab->at[i]);
	}
	symtab_release(tab);
	symtab_finish(&code);
	*tab = code;
}

static void open_limits(struct symtab *tab)
{
	uint64_t last = 0;

	for (size_t i = 0; i < tab->nr; i++)
		last = tab->at[i].addr > last ? tab->at[i].addr : last;
	for (size_t i = 0; i < tab->nr; i++) {
		if (tab->at[i].addr != last)
			tab->at[i].limit = UINT64_MAX;
	}
}

static bool all_zero(const struct symtab *tab)
{
	for (size_t i = 0; i < tab->nr; i++) {
		if (tab->at[i].addr)
			return false;
	}
	return true;
}

void kallsyms_finish(struct symtab *tab)
{
	open_limits(tab);
	symtab_finish(tab);
	drop_data(tab);
}

int kallsyms_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err)
{
	char *end = text + len;
	size_t bad = 0;

	for (char *at = text, *eol; at < end; at = eol + 1) {
		struct line line;

		eol = memchr(at, '\n', (size_t)(end - at));
		if (!eol)
			eol = end;
		if (read_line(at, eol, &line))
			add_line(tab, &line, eol);
		else if (eol > at && *at != ' ')
			bad++;
	}
	if (bad)
		log_warn("%s: skipped %zu lines that are not \"address type name\"", path, bad);
	if (tab->nr && all_zero(tab))
		return err_set(err, ERR_INPUT,
			       "%s: every address is 0: the kernel hides them (kptr_restrict); "
			       "read the file as root",
			       path);
	kallsyms_finish(tab);
	if (!tab->nr)
		return err_set(err, ERR_INPUT, "%s: no functions in this symbol list", path);
	return 0;
}
