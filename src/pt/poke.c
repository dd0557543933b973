// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/poke.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pt/history.h"

#define KERNEL ((uint64_t)1 << 63)    /* the first address */
#define BEFORE (IPT_LONGEST_INSN - 1) /* bytes of a hole before the first that changes */
#define MAX_MAPS ((size_t)1 << 20)    /* that may change what is below a hole */

/* What a poke does to one byte. */
struct ipt_poked_byte {
	uint64_t address;
	uint32_t poke;
};

struct ipt_version {
	struct ipt_code code;
	const struct ipt_pokes *pokes;
	uint64_t start; /* its address */
	uint64_t time;	/* from which on it is valid */
	bool first;	/* before all changes */
};

/* A time at which a hole gets another version. */
struct cut {
	size_t hole;
	uint64_t time;
};

bool ipt_pokes_add(struct ipt_pokes *pokes, const struct ipt_poke *poke, const uint8_t *bytes)
{
	size_t len = (size_t)poke->old_len + poke->new_len;
	size_t longest = poke->old_len > poke->new_len ? poke->old_len : poke->new_len;

	if (!longest || poke->address < KERNEL || poke->address + (longest - 1) < poke->address)
		return true;
	if (pokes->nr >= IPT_MAX_POKES || len > IPT_MAX_POKED - pokes->len)
		return false;
	GROW(pokes->all, pokes->nr + 1, pokes->cap);
	pokes->all[pokes->nr] = *poke;
	pokes->all[pokes->nr++].bytes = pokes->len;
	GROW(pokes->bytes, pokes->len + len, pokes->cap_bytes);
	memcpy(pokes->bytes + pokes->len, bytes, len);
	pokes->len += len;
	return true;
}

/* Bytes */

/* How many bytes are poked up to an address. */
static size_t poked_up_to(const struct ipt_pokes *pokes, uint64_t address)
{
	size_t low = 0, high = pokes->nr_poked;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pokes->poked[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the pokes of one byte, the first one after the time of a version. */
static size_t first_after(const struct ipt_version *v, size_t low, size_t high)
{
	const struct ipt_pokes *pokes = v->pokes;

	while (low < high && !v->first) {
		size_t middle = low + (high - low) / 2;

		if (pokes->all[pokes->poked[middle].poke].time <= v->time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether a poke changed this mapping, and not another one that was there before or after it. */
static bool is_of(const struct ipt_pokes *pokes, const struct ipt_poke *poke, uint64_t address,
		  const struct ipt_mapping *map)
{
	return pokes->kernel && map == ipt_process_find(pokes->kernel, poke->time, address);
}

/* Bytes that are poked between two indices, for the same address. False: it is what is mapped there. */
static bool poked_value(const struct ipt_version *v, size_t low, size_t high,
			const struct ipt_mapping *map, uint8_t *byte)
{
	const struct ipt_pokes *pokes = v->pokes;
	uint64_t address = pokes->poked[low].address;
	size_t next = first_after(v, low, high);
	const struct ipt_poke *poke;
	uint64_t at;

	if (next > low) {
		poke = &pokes->all[pokes->poked[next - 1].poke];
		at = address - poke->address;
		if (!map || is_of(pokes, poke, address, map)) {
			*byte = pokes->bytes[poke->bytes + at +
					     (at < poke->new_len ? poke->old_len : 0)];
			return true;
		}
	}
	if (next == high)
		return false;
	poke = &pokes->all[pokes->poked[next].poke];
	at = address - poke->address;
	if (at >= poke->old_len || (map && !is_of(pokes, poke, address, map)))
		return false;
	*byte = pokes->bytes[poke->bytes + at];
	return true;
}

static const struct ipt_mapping *map_below(const struct ipt_version *v, uint64_t address)
{
	return v->pokes->kernel ? ipt_process_find(v->pokes->kernel, v->time, address) : NULL;
}

static size_t read_below(const struct ipt_mapping *map, uint64_t address, uint8_t *bytes,
			 uint64_t size)
{
	uint64_t left;

	if (!map || !map->code)
		return 0;
	left = map->last - address;
	return map->code->bytes.read(map->code->bytes.data, address - map->start, bytes,
				     (size_t)(size - 1 < left ? size : left + 1));
}

static size_t read_version(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	const struct ipt_version *v = data;
	size_t done = 0;

	while (done < size) {
		uint64_t address = v->start + offset + done, run = size - done;
		const struct ipt_mapping *map = map_below(v, address);
		size_t low = poked_up_to(v->pokes, address - 1);
		size_t high = poked_up_to(v->pokes, address), part;

		if (low < high && poked_value(v, low, high, map, bytes + done)) {
			done++;
			continue;
		}
		if (high < v->pokes->nr_poked && v->pokes->poked[high].address - address < run)
			run = v->pokes->poked[high].address - address;
		part = read_below(map, address, bytes + done, run);
		if (!part)
			break;
		done += part;
	}
	return done;
}

/* Holes */

static int by_address(const void *a, const void *b)
{
	const struct ipt_poked_byte *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->poke > y->poke) - (x->poke < y->poke);
}

static int by_time(const void *a, const void *b)
{
	const struct ipt_poke *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int by_hole(const void *a, const void *b)
{
	const struct cut *x = a, *y = b;

	if (x->hole != y->hole)
		return x->hole < y->hole ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

/* All bytes that are poked, once for each poke. */
static void list_bytes(struct ipt_pokes *pokes)
{
	size_t nr = 0;

	qsort(pokes->all, pokes->nr, sizeof(*pokes->all), by_time);
	pokes->poked = xcalloc(pokes->len, sizeof(*pokes->poked));
	for (size_t i = 0; i < pokes->nr; i++) {
		const struct ipt_poke *poke = &pokes->all[i];

		for (uint32_t at = 0; at < poke->old_len || at < poke->new_len; at++)
			pokes->poked[nr++] =
				(struct ipt_poked_byte){ poke->address + at, (uint32_t)i };
	}
	pokes->nr_poked = nr;
	qsort(pokes->poked, nr, sizeof(*pokes->poked), by_address);
}

static void find_holes(struct ipt_pokes *pokes)
{
	struct ipt_hole *holes = NULL, *last = NULL;
	size_t nr = 0, cap = 0;

	for (size_t i = 0; i < pokes->nr_poked; i++) {
		uint64_t address = pokes->poked[i].address;
		uint64_t start = address - KERNEL > BEFORE ? address - BEFORE : KERNEL;

		if (!last || start > last->last) {
			GROW(holes, nr + 1, cap);
			last = &holes[nr++];
			last->start = start;
		}
		last->last = address;
	}
	pokes->holes = (struct ipt_holes){ holes, nr };
}

/* Versions */

static size_t hole_at(const struct ipt_pokes *pokes, uint64_t address)
{
	const struct ipt_hole *hole = ipt_hole_from(&pokes->holes, address);

	return hole ? (size_t)(hole - pokes->holes.all) : pokes->holes.nr;
}

/* Another mapping below a hole is a change, too. */
static void cut_at_maps(const struct ipt_pokes *pokes, struct cut **cuts, size_t *nr, size_t *cap)
{
	size_t max = *nr + MAX_MAPS;

	for (size_t i = 0; pokes->kernel && i < pokes->kernel->nr; i++) {
		const struct ipt_mapping *map = &pokes->kernel->maps[i];

		if (!map->time)
			continue;
		for (size_t hole = hole_at(pokes, map->start);
		     hole < pokes->holes.nr && pokes->holes.all[hole].start <= map->last; hole++) {
			if (*nr == max)
				return;
			GROW(*cuts, *nr + 1, *cap);
			(*cuts)[(*nr)++] = (struct cut){ hole, map->time };
		}
	}
}

static struct cut *find_cuts(const struct ipt_pokes *pokes, size_t *nr)
{
	struct cut *cuts = NULL;
	size_t all = 0, cap = 0;

	for (size_t i = 0; i < pokes->nr; i++) {
		GROW(cuts, all + 1, cap);
		cuts[all++] =
			(struct cut){ hole_at(pokes, pokes->all[i].address), pokes->all[i].time };
	}
	cut_at_maps(pokes, &cuts, &all, &cap);
	qsort(cuts, all, sizeof(*cuts), by_hole);
	*nr = 0;
	for (size_t i = 0; i < all; i++) {
		if (!*nr || by_hole(&cuts[*nr - 1], &cuts[i]))
			cuts[(*nr)++] = cuts[i];
	}
	return cuts;
}

static void add_version(struct ipt_pokes *pokes, struct ipt_version *v, size_t hole)
{
	const struct ipt_hole *at = &pokes->holes.all[hole];

	v->pokes = pokes;
	v->start = at->start;
	ipt_code_init(&v->code, (struct ipt_bytes){ .read = read_version, .data = v },
		      at->last - at->start + 1, IPT_LONGEST_INSN - 1);
	v->code.passing = true;
}

static void make_versions(struct ipt_pokes *pokes)
{
	size_t nr_cuts, nr = 0;
	struct cut *cuts = find_cuts(pokes, &nr_cuts), *cut = cuts;

	pokes->first = xcalloc(pokes->holes.nr + 1, sizeof(*pokes->first));
	pokes->versions = xcalloc(pokes->holes.nr + nr_cuts, sizeof(*pokes->versions));
	for (size_t hole = 0; hole < pokes->holes.nr; hole++) {
		pokes->first[hole] = nr;
		pokes->versions[nr].first = true;
		add_version(pokes, &pokes->versions[nr++], hole);
		for (; cut < cuts + nr_cuts && cut->hole == hole; cut++) {
			pokes->versions[nr].time = cut->time;
			add_version(pokes, &pokes->versions[nr++], hole);
		}
	}
	pokes->first[pokes->holes.nr] = nr;
	free(cuts);
}

void ipt_pokes_complete(struct ipt_pokes *pokes, const struct ipt_process *kernel)
{
	if (!pokes->nr)
		return;
	pokes->kernel = kernel;
	list_bytes(pokes);
	find_holes(pokes);
	make_versions(pokes);
}

bool ipt_pokes_find(const struct ipt_pokes *pokes, uint64_t time, uint64_t address,
		    struct ipt_place *place)
{
	size_t hole = hole_at(pokes, address), low, high;

	if (hole == pokes->holes.nr || pokes->holes.all[hole].start > address)
		return false;
	low = pokes->first[hole];
	high = pokes->first[hole + 1];
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (pokes->versions[middle].time <= time)
			low = middle;
		else
			high = middle;
	}
	*place = (struct ipt_place){ .code = &pokes->versions[low].code,
				     .base = pokes->holes.all[hole].start };
	return true;
}

uint64_t ipt_pokes_next(const struct ipt_pokes *pokes, uint64_t time)
{
	size_t low = 0, high = pokes->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pokes->all[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low < pokes->nr ? pokes->all[low].time : UINT64_MAX;
}

void ipt_pokes_release(struct ipt_pokes *pokes)
{
	size_t nr = pokes->first ? pokes->first[pokes->holes.nr] : 0;

	for (size_t i = 0; i < nr; i++)
		ipt_code_release(&pokes->versions[i].code);
	free(pokes->versions);
	free(pokes->first);
	free((struct ipt_hole *)(uintptr_t)pokes->holes.all);
	free(pokes->poked);
	free(pokes->all);
	free(pokes->bytes);
	memset(pokes, 0, sizeof(*pokes));
}
