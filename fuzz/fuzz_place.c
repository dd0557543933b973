// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_place: where binaries are, by addresses and code that ran. The input is several files, see folder.h: the kernel,
 * binaries, and last what ran, of 4 bytes each: most of it at a place to which the binary was moved.
 */
#include "base/log.h"
#include "fuzz/folder.h"
#include "place/place.h"
#include "sym/library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGE 4096
#define CODE_MAX 128

struct machine {
	struct library library;
	struct place *place;
	const char *elfs[FOLDER_FILES];
	size_t nr;
};

/* A function of a file, where it was linked; NULL: the file is not usable. */
static struct symfile *pick(struct machine *m, uint8_t file, uint8_t nth, uint64_t *start)
{
	struct symfile *sf = library_try(&m->library, m->elfs[file % m->nr]);
	size_t nr = 0;
	const uint64_t *starts = sf ? symfile_starts(sf, &nr) : NULL;

	if (!nr)
		return NULL;
	*start = starts[nth % nr];
	return sf;
}

static void find(struct machine *m, uint64_t address, const uint8_t *code, size_t len, bool vote)
{
	struct event_map map = { 0 };

	if (vote)
		place_vote_code(m->place, address, code, len);
	else if (place_code(m->place, address, code, len, &map) &&
		 (!map.path || address - map.addr >= map.len))
		abort();
}

/* The bytes of the file, or changed ones. */
static void run_code(struct machine *m, const uint8_t *what, uint64_t moved)
{
	uint8_t copy[CODE_MAX] = { 0 };
	size_t len = what[3] & 2 ? CODE_MAX : 64;
	const uint8_t *code;
	struct symfile *sf;
	uint64_t at;

	sf = pick(m, what[0] >> 3, what[1], &at);
	if (!sf)
		return;
	at &= ~(uint64_t)(PAGE - 1);
	code = symfile_code(sf, at, len);
	if (code)
		memcpy(copy, code, len);
	if (what[3] & 1)
		copy[what[2] % len] ^= what[3];
	find(m, at + moved, copy, what[3] & 4 ? what[2] % len : len, what[0] & 1);
}

static void run(struct machine *m, const uint8_t *what, size_t size)
{
	uint64_t moved, at, hits, votes;

	for (; size >= 4; what += 4, size -= 4) {
		moved = (uint64_t)what[2] % 4 << 21;
		if (what[0] & 2)
			run_code(m, what, moved);
		else if (pick(m, what[0] >> 3, what[1], &at))
			place_vote(m->place, at + moved + what[3] % 4);
		if (what[0] & 4)
			place_slide(m->place, &moved, &hits, &votes);
	}
}

static void ask(struct place *place)
{
	uint64_t slide, hits, votes, at;
	struct event_map map;
	const char *name;

	if (place_slide(place, &slide, &hits, &votes) && hits > votes)
		abort();
	place_has_kernel(place);
	place_read(place);
	place_anchor(place, &name, &at);
	for (size_t i = 0; place_module(place, i, &map); i++)
		if (!map.path)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sym_search nowhere;
	struct machine m = { .library = { .where = &nowhere } };
	struct fuzz_folder folder;
	uint8_t what[4096];
	FILE *file;

	log_level = -1;
	open_folder(&folder, data, size);
	for (; m.nr + 1 < folder.nr; m.nr++)
		m.elfs[m.nr] = folder.files[m.nr];
	file = m.nr ? fopen(folder.files[m.nr], "rb") : NULL;
	if (file) {
		m.place = place_new(&m.library, m.elfs[0], m.elfs + 1, m.nr - 1);
		run(&m, what, fread(what, 1, sizeof(what), file));
		ask(m.place);
		run(&m, what, sizeof(what) / 8); /* where the kernel is has been decided */
		fclose(file);
		place_free(m.place);
	}
	library_release(&m.library);
	close_folder(&folder);
	return 0;
}
