// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/flat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct hash_key key_of(uint32_t name, uint32_t binary, uint32_t pid)
{
	return (struct hash_key){ (uint64_t)name << 32 | binary, pid };
}

static struct flat_row *row_of(struct flat *flat, uint32_t name, uint32_t binary, uint32_t pid)
{
	uint32_t *handle = hash_at(&flat->index, key_of(name, binary, pid));

	if (!*handle) {
		GROW(flat->rows, flat->nr + 1, flat->cap);
		flat->rows[flat->nr] =
			(struct flat_row){ .name = name, .binary = binary, .pid = pid };
		*handle = (uint32_t)++flat->nr;
	}
	return &flat->rows[*handle - 1];
}

const struct flat_row *flat_find(const struct flat *flat, const struct flat_row *like)
{
	uint32_t handle = hash_get(&flat->index, key_of(like->name, like->binary, like->pid));

	return handle ? &flat->rows[handle - 1] : NULL;
}

/* Rows of the current stack, to add to the total of each only once. */
struct seen {
	uint32_t *rows;
	size_t nr, cap;
};

static void add_total(struct flat *flat, struct seen *seen, const struct flat_row *row,
		      const struct tally_entry *entry)
{
	uint32_t id = (uint32_t)(row - flat->rows);

	for (size_t i = 0; i < seen->nr; i++) {
		if (seen->rows[i] == id)
			return;
	}
	GROW(seen->rows, seen->nr + 1, seen->cap);
	seen->rows[seen->nr++] = id;
	flat->rows[id].total += entry->weight;
}

static void add_self(struct flat_row *row, const struct tally_entry *entry)
{
	row->self += entry->weight;
	row->samples += entry->samples;
}

/* Samples of which only the task is known. */
static void add_nowhere(struct flat *flat, struct strtab *strings, const struct tally_entry *entry)
{
	struct flat_row *row = row_of(flat, str_intern_z(strings, "[no stack]"), 0, 0);

	add_self(row, entry);
	row->total += entry->weight;
}

static void add_stack(struct flat *flat, const struct tally *tally, const struct tally_entry *entry,
		      enum flat_by by, const struct tally_options *options, struct seen *seen)
{
	struct world *world = tally->world;
	const struct stacks *stacks = &world->stacks;
	bool leaf = true;

	seen->nr = 0;
	if (!entry->stack)
		add_nowhere(flat, world->strings, entry);
	for (uint32_t stack = entry->stack; stack; stack = stacks->all[stack].parent) {
		uint32_t frame = stacks->all[stack].frame, binary;
		size_t nr;
		const struct symbol *symbols = frame_symbols(world, frame, &nr);

		binary = frame_binary(world, frame);
		for (size_t i = options->no_inline || by == FLAT_BINARY ? nr - 1 : 0; i < nr; i++) {
			struct flat_row *row =
				by == FLAT_BINARY
					? row_of(flat,
						 binary ? binary
							: str_intern_z(world->strings, "[unknown]"),
						 0, 0)
					: row_of(flat, symbols[i].name, binary, 0);

			if (leaf)
				add_self(row, entry);
			leaf = false;
			add_total(flat, seen, row, entry);
		}
	}
}

static void add_task(struct flat *flat, const struct tally *tally, const struct tally_entry *entry)
{
	struct strtab *strings = tally->world->strings;
	uint32_t late = world_comm(tally->world, entry->pid, entry->pid);
	uint32_t name = entry->comm ? entry->comm
			: late	    ? late
				    : str_intern_z(strings, "[no name]");
	struct flat_row *row = row_of(flat, name, 0, entry->pid);

	add_self(row, entry);
	row->total += entry->weight;
}

static void add_cpu(struct flat *flat, const struct tally *tally, const struct tally_entry *entry)
{
	struct flat_row *row;
	char text[24];

	if (entry->cpu == NO_CPU)
		snprintf(text, sizeof(text), "[unknown]");
	else
		snprintf(text, sizeof(text), "cpu %" PRIu32, entry->cpu);
	row = row_of(flat, str_intern_z(tally->world->strings, text), 0, 0);
	add_self(row, entry);
	row->total += entry->weight;
}

void flat_make(struct flat *flat, const struct tally *tally, enum flat_by by,
	       const struct tally_options *options)
{
	bool weigh = tally_counts_weight(tally, options, MEASURE_WEIGHT);
	struct seen seen = { 0 };

	memset(flat, 0, sizeof(*flat));
	for (size_t i = 0; i < tally->nr; i++) {
		struct tally_entry entry = tally->entries[i];

		if (!weigh)
			entry.weight = entry.samples;
		flat->weight += entry.weight;
		flat->samples += entry.samples;
		if (by == FLAT_TASK)
			add_task(flat, tally, &entry);
		else if (by == FLAT_CPU)
			add_cpu(flat, tally, &entry);
		else
			add_stack(flat, tally, &entry, by, options, &seen);
	}
	free(seen.rows);
}

struct order {
	const struct strtab *names;
	enum flat_sort sort;
};

static int compare(const void *va, const void *vb, void *arg)
{
	const struct flat_row *a = va, *b = vb;
	const struct order *order = arg;
	uint64_t x = order->sort == FLAT_TOTAL ? a->total : a->self;
	uint64_t y = order->sort == FLAT_TOTAL ? b->total : b->self;
	int names;

	if (order->sort != FLAT_NAME && x != y)
		return x > y ? -1 : 1;
	if (order->sort == FLAT_SELF && a->total != b->total)
		return a->total > b->total ? -1 : 1;
	names = strcmp(str_text(order->names, a->name), str_text(order->names, b->name));
	if (names)
		return names;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return strcmp(str_text(order->names, a->binary), str_text(order->names, b->binary));
}

void flat_sort_rows(struct flat *flat, const struct strtab *names, enum flat_sort sort)
{
	struct order order = { names, sort };

	hash_release(&flat->index); /* sorting invalidates it */
	if (flat->nr)
		qsort_r(flat->rows, flat->nr, sizeof(*flat->rows), compare, &order);
}

void flat_release(struct flat *flat)
{
	free(flat->rows);
	hash_release(&flat->index);
	memset(flat, 0, sizeof(*flat));
}
