// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gdb_xml: the registers in target.xml. Its elements <reg>, <xi:include> and <architecture> are all that kscope needs,
 * and they have no content that nests.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/gdb_regs.h"

#define FILES_MAX 64
#define DEPTH_MAX 4
#define BITS_MAX 65536

struct scan {
	const struct gdb_includer *includer;
	struct gdb_registers *registers;
	unsigned files;
};

struct span {
	const char *at, *end;
};

void gdb_registers_release(struct gdb_registers *registers)
{
	free(registers->at);
	*registers = (struct gdb_registers){ 0 };
}

void gdb_registers_add(struct gdb_registers *registers, const char *name, size_t len, uint64_t number,
		       uint64_t bits)
{
	struct gdb_register *reg;

	if (registers->nr == GDB_REGISTERS_MAX || number > INT32_MAX || bits > BITS_MAX)
		return;
	GROW(registers->at, registers->nr + 1, registers->cap);
	reg = &registers->at[registers->nr++];
	*reg = (struct gdb_register){ .number = (uint32_t)number, .size = (uint32_t)(bits + 7) / 8 };
	memcpy(reg->name, name, len < GDB_NAME_MAX - 1 ? len : GDB_NAME_MAX - 1);
	registers->next = (uint32_t)number + 1;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The value of an attribute, in the text between < and >. Empty: there is none. */
static struct span attribute(struct span tag, const char *name)
{
	size_t len = strlen(name);
	const char *at = tag.at;
	char quote;

	while (at < tag.end && !is_space(*at)) /* the element's name */
		at++;
	while (at < tag.end) {
		const char *start, *end, *value;

		while (at < tag.end && (is_space(*at) || *at == '/'))
			at++;
		start = at;
		while (at < tag.end && *at != '=' && !is_space(*at))
			at++;
		end = at;
		while (at < tag.end && *at != '"' && *at != '\'')
			at++;
		if (at == tag.end)
			break;
		quote = *at++;
		value = at;
		while (at < tag.end && *at != quote)
			at++;
		if ((size_t)(end - start) == len && !memcmp(start, name, len))
			return (struct span){ value, at };
		at += at < tag.end;
	}
	return (struct span){ tag.end, tag.end };
}

static void add_register(struct span tag, struct gdb_registers *registers)
{
	struct span name = attribute(tag, "name"), bits = attribute(tag, "bitsize");
	struct span number = attribute(tag, "regnum");
	uint64_t n, size;

	if (!text_u64(number.at, (size_t)(number.end - number.at), &n))
		n = registers->next;
	if (name.at < name.end && text_u64(bits.at, (size_t)(bits.end - bits.at), &size))
		gdb_registers_add(registers, name.at, (size_t)(name.end - name.at), n, size);
}

static bool is_named(struct span tag, const char *name)
{
	size_t len = strlen(name);

	return (size_t)(tag.end - tag.at) >= len && !memcmp(tag.at, name, len) &&
	       (tag.at + len == tag.end || is_space(tag.at[len]) || tag.at[len] == '/');
}

static void scan(struct scan *s, struct span text, unsigned depth);

static void include(struct scan *s, struct span tag, unsigned depth)
{
	struct span href = attribute(tag, "href");
	char name[128] = "";
	struct buf text = { 0 };

	if (href.at == href.end || (size_t)(href.end - href.at) >= sizeof(name) ||
	    depth == DEPTH_MAX || s->files == FILES_MAX)
		return;
	s->files++;
	memcpy(name, href.at, (size_t)(href.end - href.at));
	if (s->includer->get(s->includer->data, name, &text) && text.len)
		scan(s, (struct span){ text.data, text.data + text.len }, depth + 1);
	buf_release(&text);
}

static void set_arch(struct gdb_registers *registers, const char *at, const char *end)
{
	size_t len = 0;

	if (registers->arch[0])
		return;
	for (; at < end && *at != '<' && len < sizeof(registers->arch) - 1; at++) {
		if (*at > ' ' && *at <= '~')
			registers->arch[len++] = *at;
	}
	registers->arch[len] = '\0';
}

static void scan(struct scan *s, struct span text, unsigned depth)
{
	while ((text.at = memchr(text.at, '<', (size_t)(text.end - text.at)))) {
		struct span tag = { text.at + 1, text.end };
		bool comment = (size_t)(text.end - text.at) >= 4 && !memcmp(text.at, "<!--", 4);
		const char *end = comment ? memmem(text.at, (size_t)(text.end - text.at), "-->", 3)
					  : memchr(text.at, '>', (size_t)(text.end - text.at));

		if (!end)
			return;
		text.at = comment ? end + 3 : end + 1;
		tag.end = end;
		if (comment)
			continue;
		if (is_named(tag, "reg"))
			add_register(tag, s->registers);
		else if (is_named(tag, "xi:include"))
			include(s, tag, depth);
		else if (is_named(tag, "architecture"))
			set_arch(s->registers, text.at, text.end);
	}
}

void gdb_xml_scan(const char *text, size_t len, const struct gdb_includer *includer,
		  struct gdb_registers *registers)
{
	struct scan s = { .includer = includer, .registers = registers };

	if (len)
		scan(&s, (struct span){ text, text + len }, 0);
}
