// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * NAME.sym in a folder of uftrace: lines of "ADDRESS [SIZE] TYPE NAME", relative to where the binary was loaded.
 * Types are those of nm(1), and P for PLT stubs, K for code of the kernel, ? for the end of the symbol before.
 * The name is the rest of the line, up to a tab. Lines that begin with # say what the file is about.
 */
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "sym/internal.h"

bool uftrace_sym_probe(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && !strcmp(path + len - 4, ".sym");
}

/* A hexadecimal number and the blank after it. */
static bool take_number(char **at, const char *end, uint64_t *value)
{
	char *blank = memchr(*at, ' ', (size_t)(end - *at));

	if (!blank || !text_hex(*at, (size_t)(blank - *at), value))
		return false;
	*at = blank + 1;
	return true;
}

static char nm_type(char type)
{
	switch (type) {
	case 'P':
	case 'K': return 'T';
	case '?': return 'd';
	default: return type;
	}
}

/* `end` is a newline or the text's NUL. */
static bool add_line(struct symtab *tab, char *at, char *end)
{
	uint64_t addr, size = 0;
	char *tab_stop;
	char type;

	if (!take_number(&at, end, &addr))
		return false;
	/* Types that are hexadecimal digits are only one. */
	if (end - at > 2 && at[1] != ' ' && !take_number(&at, end, &size))
		return false;
	if (end - at < 3 || at[1] != ' ')
		return false;
	type = nm_type(at[0]);
	*end = '\0';
	tab_stop = strchr(at + 2, '\t');
	if (tab_stop)
		*tab_stop = '\0';
	kallsyms_add(tab, addr, type, at + 2, NULL);
	if (size && size < UINT64_MAX - addr)
		kallsyms_add(tab, addr + size, 'd', "", NULL);
	return true;
}

int uftrace_sym_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err)
{
	char *end = text + len;
	size_t bad = 0;

	for (char *at = text, *eol; at < end; at = eol + 1) {
		eol = memchr(at, '\n', (size_t)(end - at));
		if (!eol)
			eol = end;
		if (*at != '#' && eol > at && !add_line(tab, at, eol))
			bad++;
	}
	if (bad)
		log_warn("%s: skipped %zu lines that are not \"address type name\"", path, bad);
	kallsyms_finish(tab);
	if (!tab->nr)
		return err_set(err, ERR_INPUT, "%s: no functions in this symbol list", path);
	return 0;
}
