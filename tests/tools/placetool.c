// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * placetool KERNEL [ELF...] < input: what src/place makes of addresses that ran, and of code. For
 * the tests. Lines of input:
 *
 *	ADDRESS			a vote
 *	ADDRESS HEXDIGITS	code at the start of a page
 *
 * It prints "code ADDRESS PATH MAP LENGTH OFFSET" for code of a binary, then "slide BY HITS VOTES",
 * or "none HITS VOTES", and "anchor NAME ADDRESS".
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "place/place.h"
#include "sym/library.h"

#define CODE_MAX 64

static size_t read_code(const char *text, uint8_t *code)
{
	size_t len = 0;
	unsigned byte;

	for (; len < CODE_MAX && sscanf(text, "%2x", &byte) == 1; text += 2)
		code[len++] = (uint8_t)byte;
	return len;
}

static void take(struct place *place, uint64_t address, const char *text)
{
	uint8_t code[CODE_MAX];
	size_t len = read_code(text, code);
	struct event_map map;

	if (!len)
		place_vote(place, address);
	else if (place_code(place, address, code, len, &map))
		printf("code %#" PRIx64 " %s %#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n", address,
		       map.path, map.addr, map.len, map.offset);
}

int main(int argc, char **argv)
{
	struct library library = { 0 };
	struct place *place;
	uint64_t by, hits, votes, at;
	const char *name;
	char line[400];

	if (argc < 2) {
		fprintf(stderr, "usage: placetool KERNEL [ELF...] < ADDRESSES\n");
		return 2;
	}
	log_level = 2;
	place = place_new(&library, argv[1], (const char *const *)argv + 2, (size_t)argc - 2);
	while (fgets(line, sizeof(line), stdin)) {
		int used = 0;

		if (sscanf(line, "%" SCNx64 " %n", &at, &used) == 1)
			take(place, at, line + used);
	}
	if (place_slide(place, &by, &hits, &votes))
		printf("slide 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", by, hits, votes);
	else
		printf("none %" PRIu64 " %" PRIu64 "\n", hits, votes);
	if (place_anchor(place, &name, &at))
		printf("anchor %s %#" PRIx64 "\n", name, at);
	place_free(place);
	library_release(&library);
	return 0;
}
