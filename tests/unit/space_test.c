// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Address spaces: maps over maps, against an array that holds each address's map; names in
 * maps that are no files.
 */
#include <string.h>

#include "model/image.h"
#include "model/space.h"
#include "test.h"

#define SIZE 512

static bool agrees(const struct space *space, const struct map *at)
{
	for (uint64_t addr = 0; addr < SIZE; addr++) {
		const struct map *map = space_find(space, addr);

		if (!map != !at[addr].image)
			return false;
		if (map &&
		    (map->image != at[addr].image ||
		     addr - map->start + map->offset != addr - at[addr].start + at[addr].offset))
			return false;
	}
	for (size_t i = 1; i < space->nr; i++) {
		if (space->maps[i].start <= space->maps[i - 1].last)
			return false;
	}
	return true;
}

static void test_random(void)
{
	struct space space = { 0 };
	struct map at[SIZE] = { 0 };
	uint64_t state = 42;
	bool good = true;

	for (uint32_t round = 1; round <= 3000; round++) {
		uint64_t start = next_random(&state) % SIZE;
		uint64_t len = next_random(&state) % (round % 10 ? 20 : 200) + 1;
		struct map map = { .start = start,
				   .last = start + len - 1,
				   .offset = round * 1000,
				   .image = round };

		space_map(&space, map);
		for (uint64_t addr = map.start; addr <= map.last && addr < SIZE; addr++)
			at[addr] = map;
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
	check("space: but not the copy", copy.nr == 3);
	space_release(&space);
	space_release(&copy);
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
	test_names();
	return test_result();
}
