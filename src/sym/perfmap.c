// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /tmp/perf-PID.map: where a JIT compiler lists its code for perf, as lines of "START SIZE NAME".
 * Numbers are hexadecimal; the name is the rest of the line. JITs reuse memory, so the last entry
 * for an address wins.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sym/internal.h"

bool perfmap_probe(const char *path)
{
	const char *name = text_last_part(path);
	size_t len = strlen(name);

	return len > 9 && !strncmp(name, "perf-", 5) && !strcmp(name + len - 4, ".map");
}

/* A number and the blank after it. */
static bool take_hex(char **at, const char *end, uint64_t *value)
{
	char *blank = memchr(*at, ' ', (size_t)(end - *at));
	size_t prefix = end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x' ? 2 : 0;

	if (!blank || !text_hex(*at + prefix, (size_t)(blank - *at) - prefix, value))
		return false;
	*at = blank + 1;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void keep_last(const struct symtab *all, struct symtab *tab)
{
	qsort(all->at, all->nr, sizeof(*all->at), by_address);
	for (size_t i = 0; i < all->nr; i++) {
		if (i + 1 == all->nr || all->at[i + 1].addr != all->at[i].addr)
			symtab_add(tab, all->at[i]);
	}
	symtab_finish(tab);
}

int perfmap_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err)
{
	struct symtab all = { 0 };
	char *end = text + len;
	size_t bad = 0;

	for (char *at = text, *eol; at < end; at = eol + 1) {
		struct symbol sym = { 0 };

		eol = memchr(at, '\n', (size_t)(end - at));
		if (!eol)
			eol = end; /* the text's NUL */
		if (take_hex(&at, eol, &sym.addr) && take_hex(&at, eol, &sym.size) && at < eol) {
			*eol = '\0';
			sym.name = at;
			if (sym.size)
				symtab_add(&all, sym);
		} else {
			bad++;
		}
	}
	if (bad)
		log_warn("%s: skipped %zu lines that are not \"address size name\"", path, bad);
	if (all.nr)
		keep_last(&all, tab);
	symtab_release(&all);
	if (!tab->nr)
		return err_set(err, ERR_INPUT, "%s: no functions in this symbol list", path);
	return 0;
}
