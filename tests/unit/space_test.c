// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address spaces: maps over maps, against an array that holds each address's map; spaces that share maps;
 * names in maps that are no files.
 */
#include <stdlib.h>
#include <string.h>

#include "model/image.h"
#include "model/space.h"
#include "test.h"

#define SIZE 512

/* Whether a tree is balanced and its maps are in order, from *least on; afterwards *least is behind them. */
static bool is_sound(const struct map_node *node, uint64_t *least)
{
	uint32_t left, right;

	if (!node)
		return true;
	left = node->left ? node->left->height : 0;
	right = node->right ? node->right->height : 0;
	if (!node->refs || node->height != 1 + (left > right ? left : right) || left > right + 1 ||
	    right > left + 1 || !is_sound(node->left, least))
		return false;
	if (node->map.start < *least || node->map.last < node->map.start)
		return false;
	*least = node->map.last + 1;
	return is_sound(node->right, least);
}

static bool agrees(const struct space *space, const struct map *at)
{
	uint64_t least = 0;

	for (uint64_t addr = 0; addr < SIZE; addr++) {
		const struct map *map = space_find(space, addr);

		if (!map != !at[addr].image)
			return false;
		if (map &&
		    (map->image != at[addr].image ||
		     addr - map->start + map->offset != addr - at[addr].start + at[addr].offset))
			return false;
	}
	return is_sound(space->maps, &least);
}

static struct map random_map(uint64_t *state, uint32_t round)
{
	uint64_t start = next_random(state) % SIZE;
	uint64_t len = next_random(state) % (round % 10 ? 20 : 200) + 1;

	return (struct map){ .start = start,
			     .last = start + len - 1,
			     .offset = (uint64_t)round * 1000,
			     .image = round };
}

static void map_both(struct space *space, struct map *at, struct map map)
{
	space_map(space, map);
	for (uint64_t addr = map.start; addr <= map.last && addr < SIZE; addr++)
		at[addr] = map;
}

static void test_random(void)
{
	struct space space = { 0 };
	struct map at[SIZE] = { 0 };
	uint64_t state = 42;
	bool good = true;

	for (uint32_t round = 1; round <= 3000; round++) {
		map_both(&space, at, random_map(&state, round));
		good &= agrees(&space, at);
	}
	check("space: 3000 maps over each other", good);
	space_release(&space);
}

static void test_edges(void)
{
	struct space space = { 0 }, copy = { 0 };

	space_map(&space, (struct map){ .start = 0, .last = UINT64_MAX, .image = 1 });
	check("space: everything is mapped", space_find(&space, UINT64_MAX)->image == 1);
	space_map(&space, (struct map){ .start = UINT64_MAX, .last = UINT64_MAX, .image = 2 });
	check("space: the last byte is another",
	      space_find(&space, UINT64_MAX)->image == 2 &&
		      space_find(&space, UINT64_MAX - 1)->image == 1);
	space_map(&space, (struct map){ .start = 0, .last = 0, .image = 3 });
	check("space: the first, too",
	      space_find(&space, 0)->image == 3 && space_find(&space, 1)->offset == 1);
	space_copy(&copy, &space);
	space_clear(&space);
	check("space: cleared", !space_find(&space, 5));
	check("space: but not the copy", space_find(&copy, 0)->image == 3 &&
						 space_find(&copy, 5)->image == 1 &&
						 space_find(&copy, UINT64_MAX)->image == 2);
	space_release(&space);
	space_release(&copy);
}

/* Removes a map that starts at an address, from the array, too. */
static void unmap_both(struct space *space, struct map *at, uint64_t start)
{
	const struct map *map = space_find(space, start);
	uint64_t last;

	if (map && map->start == start) {
		last = map->last;
		for (uint64_t addr = start; addr <= last && addr < SIZE; addr++)
			at[addr] = (struct map){ 0 };
	}
	space_unmap(space, start);
}

#define SPACES 8

/* Forks, maps, removed maps and exits, in random order: no space changes with another one. */
static void test_shared(void)
{
	static struct map at[SPACES][SIZE];
	struct space spaces[SPACES] = { 0 };
	uint64_t state = 7;
	bool good = true;

	for (uint32_t round = 1; round <= 4000; round++) {
		size_t one = next_random(&state) % SPACES, other = next_random(&state) % SPACES;
		uint32_t what = (uint32_t)(next_random(&state) % 16);

		if (what == 0) {
			space_clear(&spaces[one]);
			memset(at[one], 0, sizeof(at[one]));
		} else if (what < 4) {
			space_copy(&spaces[one], &spaces[other]);
			memcpy(at[one], at[other], sizeof(at[one]));
		} else if (what < 7) {
			unmap_both(&spaces[one], at[one], next_random(&state) % SIZE);
		} else {
			map_both(&spaces[one], at[one], random_map(&state, round));
		}
		for (size_t i = 0; i < SPACES; i++)
			good &= agrees(&spaces[i], at[i]);
	}
	check("space: changes of shared maps stay in their space", good);
	for (size_t i = 0; i < SPACES; i++)
		space_release(&spaces[i]);
}

#define DEEP 100000

static struct map page(uint64_t n, uint32_t image)
{
	return (struct map){ .start = n * 0x1000, .last = n * 0x1000 + 0xfff, .image = image };
}

/* Each process forks the next one and then maps something: a chain of forks, from 1000 maps on. */
static void test_chain(void)
{
	struct space *chain = calloc(DEEP, sizeof(*chain));
	uint64_t least = 0;
	bool good = true;

	for (uint64_t i = 0; i < 1000; i++)
		space_map(&chain[0], page(i, 1));
	for (uint32_t i = 1; i < DEEP; i++) {
		space_copy(&chain[i], &chain[i - 1]);
		space_map(&chain[i], page(i % 1000, 1 + i));
		space_map(&chain[i - 1], page(5000, 7));
	}
	for (uint32_t i = 0; i < DEEP; i++) {
		const struct map *last = space_find(&chain[i], i % 1000 * 0x1000);

		good &= last && last->image == 1 + i;
		good &= (i + 1 < DEEP) == (space_find(&chain[i], 5000 * 0x1000) != NULL);
	}
	check("space: 100000 processes, each a child of the one before", good);
	check("space: the last one is in order", is_sound(chain[DEEP - 1].maps, &least));
	for (uint32_t i = 0; i < DEEP; i++)
		space_release(&chain[i]);
	free(chain);
}

/* Maps in order of their addresses do not make a list. */
static void test_rising(void)
{
	struct space space = { 0 };
	uint64_t least = 0;

	for (uint64_t i = 0; i < DEEP; i++)
		space_map(&space, page(i, 1));
	check("space: maps in rising order", is_sound(space.maps, &least));
	check("space: the tree of 100000 maps is low", space.maps->height <= 24);
	space_release(&space);
}

static void test_names(void)
{
	static const char *const files[] = { "/bin/sh", "/dev/shm/program", "program" };
	static const char *const others[] = {
		"", "[vdso]", "//anon", "anon_inode:x", "/dev/zero", "/dev/shmem0", "/memfd:jit"
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		check("image: a name of a file", !image_is_pseudo(files[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		check("image: a name of no file", image_is_pseudo(others[i]));
}

int main(void)
{
	test_random();
	test_edges();
	test_shared();
	test_chain();
	test_rising();
	test_names();
	return test_result();
}
