// SPDX-License-Identifier: GPL-2.0-or-later
#include "place/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/slide.h"
#include "place/pages.h"
#include "sym/library.h"
#include "sym/sym.h"

#define PAGE 4096
#define VOTES_MAX 65536
#define CODE_VOTES_MAX 1024
#define SLIDES_MAX 16 /* different ones among the votes of pages */
#define SLIDE_PAGES 3 /* that have to agree on a slide */
/*
 * KASLR of Linux uses steps of 2 MB, or of at least 64 KB on arm64. Other kernels may use pages:
 * then there are many more distances and coincidences, so the winner has to be clearer.
 */
#define STEP_USUAL 65536
#define HITS_BY_PAGE 16

struct code_vote {
	uint64_t address;
	uint8_t bytes[PAGE_HEAD];
};

struct binary {
	const char *path;
	struct symfile *symfile; /* NULL: not readable */
};

struct place {
	struct library *library;
	const char *kernel_path;
	struct symfile *kernel;
	bool kernel_tried, placed, unread; /* unread: one of the files is not readable */
	uint64_t slide;			   /* if placed */
	struct pages kernel_pages;
	struct binary *binaries;
	size_t nr;
	struct pages pages;
	bool indexed, kernel_indexed;
	uint64_t *votes;
	size_t nr_votes, cap_votes;
	struct code_vote *code_votes;
	size_t nr_code_votes, cap_code_votes;
	struct arena arena;
};

struct place *place_new(struct library *library, const char *kernel, const char *const *elfs,
			size_t nr_elfs)
{
	struct place *place = xcalloc(1, sizeof(*place));

	place->library = library;
	place->kernel_path = kernel;
	place->binaries = xcalloc(nr_elfs ? nr_elfs : 1, sizeof(*place->binaries));
	for (size_t i = 0; i < nr_elfs; i++)
		place->binaries[place->nr++].path = elfs[i];
	return place;
}

void place_free(struct place *place)
{
	if (!place)
		return;
	pages_release(&place->pages);
	pages_release(&place->kernel_pages);
	free(place->binaries);
	free(place->votes);
	free(place->code_votes);
	arena_release(&place->arena);
	free(place);
}

/* ---- the kernel ---- */

/* Opens it on first use: decompressing a kernel takes a while. */
static struct symfile *open_kernel(struct place *place)
{
	if (place->kernel_tried || !place->kernel_path)
		return place->kernel;
	place->kernel_tried = true;
	place->kernel = library_open(place->library, place->kernel_path);
	place->unread |= !place->kernel;
	return place->kernel;
}

void place_vote(struct place *place, uint64_t pc)
{
	if (place->nr_votes >= VOTES_MAX)
		return;
	GROW(place->votes, place->nr_votes + 1, place->cap_votes);
	place->votes[place->nr_votes++] = pc;
}

void place_vote_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len)
{
	struct code_vote *vote;

	if (place->nr_code_votes >= CODE_VOTES_MAX || len < PAGE_HEAD)
		return;
	GROW(place->code_votes, place->nr_code_votes + 1, place->cap_code_votes);
	vote = &place->code_votes[place->nr_code_votes++];
	vote->address = address;
	memcpy(vote->bytes, bytes, PAGE_HEAD);
}

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The link address is the most likely place: no clear lead is needed there. */
static bool is_clear(const struct slide *slide, bool clear)
{
	return clear || (slide->by == 0 && slide->hits > slide->runner_up);
}

static bool count_votes(struct place *place, struct slide *slide)
{
	struct slide by_page;
	const uint64_t *starts;
	size_t nr;
	bool clear;

	starts = symfile_starts(place->kernel, &nr);
	clear = slide_find(starts, nr, place->votes, place->nr_votes, STEP_USUAL, slide);
	if (is_clear(slide, clear))
		return true;
	clear = slide_find(starts, nr, place->votes, place->nr_votes, PAGE, &by_page);
	if (!clear || by_page.hits < HITS_BY_PAGE || by_page.hits < 4 * by_page.runner_up)
		return false;
	*slide = by_page;
	return true;
}

/* Counts all votes; slide_find() may have skipped some. */
static uint64_t count_hits(const struct place *place, uint64_t slide)
{
	size_t nr;
	const uint64_t *starts = symfile_starts(place->kernel, &nr);
	uint64_t hits = 0;

	for (size_t i = 0; i < place->nr_votes; i++) {
		uint64_t want = place->votes[i] - slide;

		hits += bsearch(&want, starts, nr, sizeof(*starts), compare_values) != NULL;
	}
	return hits;
}

static void index_kernel(struct place *place)
{
	if (place->kernel_indexed)
		return;
	place->kernel_indexed = true;
	pages_add(&place->kernel_pages, 0, place->kernel);
}

/*
 * Samples of a target that was stopped at any instruction are rarely at the start of a function. Pages of code are facts;
 * only code that also ran elsewhere, such as before paging was on, disagrees.
 */
static bool count_code_votes(struct place *place, uint64_t *slide)
{
	struct {
		uint64_t by;
		unsigned pages;
	} slides[SLIDES_MAX] = { 0 };
	size_t nr = 0, best = 0, i;
	unsigned others = 0;

	index_kernel(place);
	for (size_t n = 0; n < place->nr_code_votes; n++) {
		const struct code_vote *vote = &place->code_votes[n];
		struct page_home home;

		if (!pages_find(&place->kernel_pages, vote->bytes, PAGE_HEAD, &home))
			continue;
		for (i = 0; i < nr && slides[i].by != vote->address - home.vaddr; i++)
			;
		if (i == SLIDES_MAX)
			continue;
		nr += i == nr;
		slides[i].by = vote->address - home.vaddr;
		slides[i].pages++;
		best = slides[i].pages > slides[best].pages ? i : best;
	}
	for (i = 0; i < nr; i++)
		others += i == best ? 0 : slides[i].pages;
	*slide = slides[best].by;
	if (slides[best].pages < SLIDE_PAGES || slides[best].pages <= 2 * others)
		return false;
	log_note("%s: %u pages of its code ran at a slide of 0x%" PRIx64 ", %u at others",
		 place->kernel_path, slides[best].pages, *slide, others);
	return true;
}

static bool find_slide(struct place *place, struct slide *found)
{
	if (!open_kernel(place))
		return false;
	if (count_code_votes(place, &found->by))
		return true;
	if (!count_votes(place, found))
		return false;
	log_note("%s: at a slide of 0x%" PRIx64 ", %" PRIu64 " of %zu addresses are the start of a "
		 "function; at the next best slide, %" PRIu64,
		 place->kernel_path, found->by, found->hits, place->nr_votes, found->runner_up);
	return true;
}

bool place_slide(struct place *place, uint64_t *slide, uint64_t *hits, uint64_t *votes)
{
	struct slide found = { 0 };
	bool clear;

	place->nr_votes = sort_unique(place->votes, place->nr_votes);
	clear = find_slide(place, &found);
	place->placed = clear;
	place->slide = *slide = clear ? found.by : 0;
	if (hits)
		*hits = clear ? count_hits(place, found.by) : found.hits;
	if (votes)
		*votes = place->nr_votes;
	return clear;
}

bool place_has_kernel(struct place *place)
{
	return open_kernel(place);
}

/* The lowest one that can be found by name: code below it has no symbols anyway. */
bool place_anchor(struct place *place, const char **name, uint64_t *vaddr)
{
	const uint64_t *starts;
	size_t nr;

	if (!open_kernel(place))
		return false;
	starts = symfile_starts(place->kernel, &nr);
	for (size_t i = 0; i < nr; i++) {
		struct sym_frame frames[SYM_MAX_INLINE];
		size_t depth = symfile_lookup(place->kernel, starts[i], frames, SYM_MAX_INLINE);

		if (!depth || !symfile_find(place->kernel, frames[depth - 1].linkage, vaddr))
			continue;
		if (*vaddr != starts[i])
			continue;
		*name = frames[depth - 1].linkage;
		return true;
	}
	return false;
}

bool place_module(struct place *place, size_t n, struct event_map *map)
{
	struct sym_module module;
	size_t len;
	char *path;

	if (!open_kernel(place) || !symfile_module(place->kernel, n, &module))
		return false;
	len = strlen(module.name);
	path = arena_alloc(&place->arena, len + 3);
	path[0] = '[';
	memcpy(path + 1, module.name, len);
	memcpy(path + 1 + len, "]", 2);
	*map = (struct event_map){
		.addr = module.start,
		.len = module.end - module.start,
		.path = path,
		.prot = PROT_READ | PROT_EXEC,
		.kernel = true,
		.foreign = true,
		.as_linked = true,
		.anchor = "", /* the list has its run-time address */
		.names = place->kernel_path,
	};
	return true;
}

/* ---- programs ---- */

/* Whether one of the first nr binaries is the same: pages of two copies would be ambiguous. */
static bool is_known(const struct place *place, size_t nr)
{
	const struct binary *binary = &place->binaries[nr];
	size_t len, its_len;
	const uint8_t *id = symfile_build_id(binary->symfile, &len);

	for (size_t i = 0; i < nr; i++) {
		const struct binary *other = &place->binaries[i];
		const uint8_t *its_id =
			other->symfile ? symfile_build_id(other->symfile, &its_len) : NULL;

		if (!strcmp(other->path, binary->path) ||
		    (id && its_id && len == its_len && !memcmp(id, its_id, len)))
			return true;
	}
	return false;
}

static void index_binaries(struct place *place)
{
	place->indexed = true;
	for (size_t i = 0; i < place->nr; i++) {
		struct binary *binary = &place->binaries[i];

		binary->symfile = library_open(place->library, binary->path);
		place->unread |= !binary->symfile;
		if (binary->symfile && !is_known(place, i))
			pages_add(&place->pages, (uint32_t)i, binary->symfile);
	}
}

bool place_read(struct place *place)
{
	open_kernel(place);
	if (!place->indexed)
		index_binaries(place);
	return !place->unread;
}

static void fill_map(const struct binary *binary, const struct page_home *home, uint64_t address,
		     struct event_map *map)
{
	size_t nr, id_len;
	const struct sym_segment *segment = symfile_segments(binary->symfile, &nr) + home->segment;
	const uint8_t *id = symfile_build_id(binary->symfile, &id_len);
	bool object = symfile_is_object(binary->symfile);
	bool as_mapped = segment->vaddr % PAGE == segment->offset % PAGE && !object;
	/* Start at the page boundary like a loader, if the file allows it. */
	uint64_t before = as_mapped ? segment->vaddr % PAGE : 0;

	*map = (struct event_map){
		.addr = segment->vaddr - before + (address - home->vaddr),
		.len = segment->memsz + before,
		.offset = segment->offset - before,
		.path = binary->path,
		.build_id = id,
		.build_id_len = (uint8_t)id_len,
		.prot = PROT_READ | PROT_EXEC,
		.kernel = object,
		.given = true,
	};
}

/* perf supports only one map of the kernel, so this one needs another name. */
static void fill_alias(const struct place *place, const struct page_home *home, uint64_t address,
		       struct event_map *map)
{
	size_t nr;
	const struct sym_segment *segment = symfile_segments(place->kernel, &nr) + home->segment;

	*map = (struct event_map){
		.addr = address,
		.len = PAGE,
		.offset = home->vaddr - segment->vaddr + segment->offset,
		.path = "[kernel.alias]",
		.prot = PROT_READ | PROT_EXEC,
		.kernel = true,
		.foreign = true,
		.names = place->kernel_path,
	};
}

bool place_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len,
		struct event_map *map)
{
	struct page_home home;

	if (!place->indexed)
		index_binaries(place);
	if (place->placed)
		index_kernel(place);
	if (pages_find(&place->pages, bytes, len, &home)) {
		fill_map(&place->binaries[home.binary], &home, address, map);
		return true;
	}
	if (!pages_find(&place->kernel_pages, bytes, len, &home) ||
	    home.vaddr + place->slide == address)
		return false;
	fill_alias(place, &home, address, map);
	return true;
}
