// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A stage that makes samples of these sums up everything that happened. */
#define COUNTED (EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CALL) | EVENT_BIT(EVENT_ALLOC))

void blocks_init(struct blocks *blocks, struct world *world, unsigned by)
{
	memset(blocks, 0, sizeof(*blocks));
	for (size_t i = 0; i < BLOCKS_MAX; i++)
		tally_init(&blocks->all[i].tally, world, by);
}

void blocks_release(struct blocks *blocks)
{
	for (size_t i = 0; i < BLOCKS_MAX; i++) {
		tally_release(&blocks->all[i].tally);
		free(blocks->all[i].squares);
	}
	free(blocks->sources);
	free(blocks->places);
	memset(blocks, 0, sizeof(*blocks));
}

static void add_squares(struct block *block, size_t entry, double squares)
{
	size_t had = block->cap;

	GROW(block->squares, entry + 1, block->cap);
	if (block->cap > had)
		memset(block->squares + had, 0, (block->cap - had) * sizeof(*block->squares));
	block->squares[entry] += squares;
}

/* Moves all samples of a block to another one. */
static void move_block(struct block *to, struct block *from)
{
	struct world *world = from->tally.world;
	unsigned by = from->tally.by;

	for (size_t i = 0; i < from->tally.nr; i++)
		add_squares(to, tally_add_entry(&to->tally, &from->tally.entries[i]),
			    from->squares[i]);
	tally_release(&from->tally);
	free(from->squares);
	*from = (struct block){ 0 };
	tally_init(&from->tally, world, by);
}

static void double_width(struct blocks *blocks)
{
	for (size_t i = 1; i < BLOCKS_MAX; i++)
		move_block(&blocks->all[i / 2], &blocks->all[i]);
	blocks->width *= 2;
	blocks->nr = (blocks->nr + 1) / 2;
}

/* Samples out of order belong to the first block, those without a time to any. */
static size_t block_at(struct blocks *blocks, uint64_t time)
{
	if (time == NO_TIME)
		return 0;
	if (!blocks->width) {
		blocks->start = time;
		blocks->width = 1;
	}
	if (time < blocks->start)
		return 0;
	while ((time - blocks->start) / blocks->width >= BLOCKS_MAX)
		double_width(blocks);
	return (size_t)((time - blocks->start) / blocks->width);
}

static struct blocks_source *source_at(struct blocks *blocks, uint32_t source)
{
	size_t had = blocks->nr_sources;

	if (source >= had) {
		GROW(blocks->sources, source + (size_t)1, blocks->cap_sources);
		memset(blocks->sources + had, 0, (source + 1 - had) * sizeof(*blocks->sources));
		blocks->nr_sources = source + (size_t)1;
	}
	return &blocks->sources[source];
}

void blocks_add(struct blocks *blocks, const struct event *ev)
{
	struct blocks_source *source = source_at(blocks, ev->sample.source);
	size_t at = block_at(blocks, ev->time);
	struct block *block = &blocks->all[at];
	double weight = (double)ev->sample.weight, count = (double)ev->sample.count;
	bool counted = ev->made_of & COUNTED;

	source->exact = counted && (source->exact || !source->measured);
	source->untimed |= ev->time == NO_TIME;
	source->measured = true;
	if (at >= blocks->nr)
		blocks->nr = at + 1;
	add_squares(block, tally_add(&block->tally, ev), weight * weight / (count > 0 ? count : 1));
}

void blocks_sort(struct blocks *blocks)
{
	size_t nr = 0;

	for (size_t b = 0; b < blocks->nr; b++) {
		const struct tally *tally = &blocks->all[b].tally;

		for (size_t i = 0; i < tally->nr; i++)
			blocks->sources[tally->entries[i].source].nr++;
	}
	for (size_t i = 0; i < blocks->nr_sources; i++) {
		blocks->sources[i].first = nr;
		nr += blocks->sources[i].nr;
		blocks->sources[i].nr = 0;
	}
	blocks->places = xcalloc(nr + 1, sizeof(*blocks->places));
	for (size_t b = 0; b < blocks->nr; b++) {
		const struct tally *tally = &blocks->all[b].tally;

		for (size_t i = 0; i < tally->nr; i++) {
			struct blocks_source *source = &blocks->sources[tally->entries[i].source];

			blocks->places[source->first + source->nr++] =
				(struct blocks_place){ (uint32_t)b, (uint32_t)i };
		}
	}
}

bool blocks_part(const struct blocks *blocks, uint32_t source, struct blocks_part *part)
{
	const struct blocks_source *facts = &blocks->sources[source];
	size_t done = 0;

	if (!facts->nr)
		return false;
	*part = (struct blocks_part){ .source = source, .facts = *facts, .nr = blocks->nr };
	tally_init(&part->all, blocks->all[0].tally.world, blocks->all[0].tally.by);
	GROW(part->all.entries, facts->nr, part->all.cap);
	part->squares = xcalloc(facts->nr, sizeof(*part->squares));
	for (size_t b = 0; b < blocks->nr; b++) {
		const struct blocks_place *place = &blocks->places[facts->first + done];

		for (; done < facts->nr && place->block == b; done++, place++) {
			part->squares[done] = blocks->all[b].squares[place->entry];
			part->all.entries[done] = blocks->all[b].tally.entries[place->entry];
		}
		part->ends[b] = done;
	}
	part->all.nr = done;
	return true;
}

void blocks_part_release(struct blocks_part *part)
{
	tally_release(&part->all);
	free(part->squares);
}
