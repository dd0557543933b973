// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * place: a made-up kernel is found wherever it was moved to, and not where nothing speaks for it;
 * this program is found by its own code where it runs.
 */
#include "place/place.h"

#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sym/library.h"
#include "test.h"

#define FUNCTIONS 100000
#define BASE 0xffffffff81000000

static uint64_t starts[FUNCTIONS];
static struct library library;

/* A System.map whose functions are of 16 to 512 bytes. */
static void write_map(const char *path)
{
	FILE *file = fopen(path, "w");
	uint64_t at = BASE, seed = 1;

	if (!file)
		exit(1);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		starts[i] = at;
		fprintf(file, "%016" PRIx64 " T function_%zu\n", at, i);
		at += 16 * (1 + next_random(&seed) % 32);
	}
	fputs("ffffffffc0001000 t ext4_one\t[ext4]\n"
	      "ffffffffc0001100 t ext4_two\t[ext4]\n"
	      "ffffffffc0001180 t bpf_prog\t[bpf]\n"
	      "ffffffffc0001200 t ext4_exit\t[ext4]\n"
	      "ffffffffc0003000 t fat_one\t[fat]\n",
	      file);
	fclose(file);
}

static void test_modules(const char *map)
{
	static const struct {
		const char *path;
		uint64_t addr, len;
	} want[] = {
		{ "[ext4]", 0xffffffffc0001000, 0x180 },
		{ "[bpf]", 0xffffffffc0001180, 0x80 },
		{ "[ext4]", 0xffffffffc0001200, 0x1e00 },
		{ "[fat]", 0xffffffffc0003000, 0x1000 },
	};
	struct place *place = place_new(&library, map, NULL, 0);
	struct event_map got;
	bool good = true;
	size_t i;

	for (i = 0; i < 4 && place_module(place, i, &got); i++)
		good &= !strcmp(got.path, want[i].path) && got.addr == want[i].addr &&
			got.len == want[i].len && got.kernel;
	check("modules of a list", good && i == 4 && !place_module(place, 4, &got));
	place_free(place);
}

/* `entries` function starts and `others` addresses inside functions, moved by `slide`. */
static struct place *vote(const char *map, uint64_t slide, unsigned entries, unsigned others)
{
	struct place *place = place_new(&library, map, NULL, 0);
	uint64_t seed = slide + entries;

	for (unsigned i = 0; i < entries; i++)
		place_vote(place, starts[next_random(&seed) % FUNCTIONS] + slide);
	for (unsigned i = 0; i < others; i++)
		place_vote(place, starts[next_random(&seed) % FUNCTIONS] + slide + 1 +
					  next_random(&seed) % 60);
	return place;
}

static bool finds(const char *map, uint64_t slide, unsigned entries, unsigned others)
{
	struct place *place = vote(map, slide, entries, others);
	uint64_t found = 1, hits, votes;
	bool good = place_slide(place, &found, &hits, &votes) && found == slide &&
		    hits >= entries * 9 / 10 && votes <= entries + others;

	place_free(place);
	return good;
}

static bool refuses(const char *map, unsigned entries, unsigned others)
{
	struct place *place = vote(map, 0x200000, entries, others);
	uint64_t found = 1;
	bool good = !place_slide(place, &found, NULL, NULL) && found == 0;

	place_free(place);
	return good;
}

static void test_slide(const char *map)
{
	struct place *place;
	const char *name = "";
	uint64_t at = 0;

	check("where it was linked", finds(map, 0, 1000, 3000));
	check("moved by 2 MB", finds(map, 0x200000, 1000, 3000));
	check("moved by much", finds(map, 0x3e400000, 1000, 3000));
	check("moved across the address space", finds(map, 0x2b7fc0010000, 1000, 3000));
	check("moved down", finds(map, (uint64_t)-0x10000, 1000, 3000));
	check("moved by a page", finds(map, 0x1000, 2000, 3000));
	check("20,000 votes", finds(map, 0x1a600000, 6000, 14000));
	check("few votes", finds(map, 0x1a600000, 12, 20));
	check("no votes", refuses(map, 0, 0));
	check("too few votes", refuses(map, 2, 10));
	check("votes for nothing", refuses(map, 0, 5000));
	place = vote(map, 0, 1, 0);
	check("anchor",
	      place_anchor(place, &name, &at) && at == BASE && !strcmp(name, "function_0"));
	place_free(place);
	place = place_new(&library, NULL, NULL, 0);
	place_vote(place, BASE);
	check("no kernel",
	      !place_slide(place, &at, NULL, NULL) && !place_anchor(place, &name, &at));
	place_free(place);
}

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			*(struct event_map *)arg = (struct event_map){
				.addr = info->dlpi_addr + ph->p_vaddr,
				.offset = ph->p_offset,
				.len = ph->p_memsz,
			};
			return 1; /* the first is the program itself */
		}
	}
	return 0;
}

static void test_code(const char *self)
{
	const char *elfs[] = { "/nothing", self, self };
	struct place *place = place_new(&library, NULL, elfs, 3);
	uint8_t nothing[64] = { 0 };
	struct event_map want = { 0 }, got;
	unsigned pages = 0, found = 0, wrong = 0;

	dl_iterate_phdr(find_code, &want);
	for (uint64_t at = want.addr & ~4095ULL; at + 64 <= want.addr + want.len; at += 4096) {
		uint64_t start;

		pages++;
		if (!place_code(place, at, (const uint8_t *)at, 64, &got))
			continue;
		found++;
		start = got.addr - got.offset;
		wrong += start != want.addr - want.offset || got.addr > want.addr ||
			 got.addr + got.len < want.addr + want.len || !got.given ||
			 strcmp(got.path, self) != 0;
	}
	check("own pages are found", pages > 10 && found >= pages - pages / 10);
	check("own pages are where they are", !wrong);
	check("zeros are nobody's", !place_code(place, 0x1000, nothing, 64, &got));
	check("too few bytes", !place_code(place, 0x1000, (const uint8_t *)want.addr, 63, &got));
	memset(nothing, 0xa5, 32);
	check("unknown code", !place_code(place, 0x1000, nothing, 64, &got));
	place_free(place);
}

static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

/*
 * This program as a kernel that ran `moved` bytes from here: samples anywhere in its functions, and the first `right`
 * pages of its code; the next `wrong` pages ran elsewhere. Returns whether its place is found.
 */
static bool finds_kernel(const char *self, uint64_t moved, unsigned right, unsigned wrong)
{
	struct place *place = place_new(&library, self, NULL, 0);
	struct event_map code = { 0 };
	uint64_t base = 0, slide, seed = 7;
	bool found;

	dl_iterate_phdr(find_code, &code);
	dl_iterate_phdr(find_base, &base);
	for (unsigned i = 0; i < 500; i++)
		place_vote(place, code.addr + moved + next_random(&seed) % code.len);
	for (unsigned i = 0; i < right + wrong; i++) {
		uint64_t at = (code.addr & ~4095ULL) + 4096 * (i + 1);

		place_vote_code(place, at + moved + (i < right ? 0 : 0x40000000),
				(const uint8_t *)at, 64);
	}
	found = place_slide(place, &slide, NULL, NULL) && slide == base + moved;
	place_free(place);
	return found;
}

static void test_kernel_code(const char *self)
{
	check("a kernel is found by its code", finds_kernel(self, 0x2000, 8, 0));
	check("... although some of it ran elsewhere", finds_kernel(self, 0x12345000, 9, 4));
	check("... not by two pages", !finds_kernel(self, 0x2000, 2, 0));
	check("... not if pages disagree", !finds_kernel(self, 0x2000, 5, 5));
	check("... not by addresses alone", !finds_kernel(self, 0x2000, 0, 0));
}

int main(int argc, char **argv)
{
	char map[] = "/tmp/kscope-place-XXXXXX";
	int fd = mkstemp(map);

	(void)argc;
	if (fd < 0)
		return 1;
	close(fd);
	log_level = -1;
	write_map(map);
	test_slide(map);
	test_modules(map);
	test_code(argv[0]);
	test_kernel_code(argv[0]);
	library_release(&library);
	unlink(map);
	return test_result();
}
