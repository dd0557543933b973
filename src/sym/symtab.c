// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A symbol with a size owns its bytes; where symbols overlap the one that starts last wins, so that
 * an entry point in the middle of a function is found. A symbol without a size, such as an
 * assembler label, owns the bytes up to the next symbol that no other symbol owns.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sym/internal.h"

void symtab_add(struct symtab *tab, struct symbol sym)
{
	if (tab->nr >= UINT32_MAX - 1)
		return;
	GROW(tab->at, tab->nr + 1, tab->cap);
	tab->at[tab->nr++] = sym;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	/* By pointer, not strcmp(): a hostile table has a million names that differ at the end. */
	return (x->name > y->name) - (x->name < y->name);
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The interval of the best symbol at an address, which by_address() sorts first. */
static struct interval owned(const struct symtab *tab, size_t i, uint64_t next)
{
	const struct symbol *sym = &tab->at[i];
	struct interval own = { .lo = sym->addr, .id = (uint32_t)i + 1 };

	if (sym->size) {
		own.hi = add_capped(sym->addr, sym->size);
		own.rank = add_capped(sym->addr, 1);
	} else {
		own.hi = next < sym->limit ? next : sym->limit;
	}
	return own;
}

void symtab_finish(struct symtab *tab)
{
	struct interval *all;
	uint64_t next = UINT64_MAX;
	bool sized = false;
	size_t nr = 0;

	if (!tab->nr)
		return;
	all = xmalloc(tab->nr * sizeof(*all));
	qsort(tab->at, tab->nr, sizeof(*tab->at), by_address);
	for (size_t i = tab->nr; i-- > 0;) {
		if (i && tab->at[i - 1].addr == tab->at[i].addr)
			continue;
		sized |= tab->at[i].size != 0;
		all[nr++] = owned(tab, i, next);
		next = tab->at[i].addr;
	}
	spans_build(&tab->spans, all, nr);
	free(all);
	for (size_t i = 0; i < tab->nr; i++) {
		uint64_t lo, hi;

		tab->at[i].label = sized && !tab->at[i].size;
		if (!tab->at[i].size &&
		    spans_piece(&tab->spans, tab->at[i].addr, &lo, &hi) == i + 1)
			tab->at[i].size = hi - tab->at[i].addr;
	}
}

const struct symbol *symtab_find(const struct symtab *tab, uint64_t addr)
{
	uint32_t id = spans_find(&tab->spans, addr);

	return id ? &tab->at[id - 1] : NULL;
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct symtab *tab = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(tab->at[x].name, tab->at[y].name);

	/* Of several functions with one name, prefer the global one. */
	if (!order)
		order = tab->at[y].rank - tab->at[x].rank;
	return order ? order : (x > y) - (x < y);
}

static void index_names(struct symtab *tab)
{
	tab->by_name = xmalloc(tab->nr * sizeof(*tab->by_name));
	for (size_t i = 0; i < tab->nr; i++)
		tab->by_name[i] = (uint32_t)i;
	qsort_r(tab->by_name, tab->nr, sizeof(*tab->by_name), by_name, tab);
}

const struct symbol *symtab_by_name(struct symtab *tab, const char *name)
{
	size_t lo = 0, hi = tab->nr;

	if (!tab->nr)
		return NULL;
	if (!tab->by_name)
		index_names(tab);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(tab->at[tab->by_name[mid]].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == tab->nr || strcmp(tab->at[tab->by_name[lo]].name, name))
		return NULL;
	return &tab->at[tab->by_name[lo]];
}

void symtab_release(struct symtab *tab)
{
	free(tab->at);
	free(tab->by_name);
	spans_release(&tab->spans);
	memset(tab, 0, sizeof(*tab));
}
