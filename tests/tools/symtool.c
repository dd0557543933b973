// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * symtool FILE < addresses: what sym/ knows, in the shape of `addr2line -afi`. For the tests.
 *
 *	-C		demangled names
 *	-e		also the extent of the function: "= START SIZE" before its frames
 *	-s DIR, -d DIR	symfs, folder with debug files
 *	-i		what the headers say, and no lookup
 *	-f NAME		the address of a function
 *	-l		where functions start, and what they are called
 *	-b N		repeat the lookups N times and say how long they take
 *	-v		say more
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sym/sym.h"

struct options {
	bool demangled, extent, headers, list;
	const char *find;
	unsigned long repeat;
	struct sym_search where;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void print_headers(const struct symfile *sf)
{
	size_t nr, len;
	const struct sym_segment *seg = symfile_segments(sf, &nr);
	const uint8_t *id = symfile_build_id(sf, &len);

	printf("machine %u %s%s\n", symfile_machine(sf), symfile_is_64bit(sf) ? "64" : "32",
	       symfile_is_relocatable(sf) ? " relocatable" : "");
	printf("build-id ");
	for (size_t i = 0; i < len; i++)
		printf("%02x", id[i]);
	printf("\n");
	for (size_t i = 0; i < nr; i++)
		printf("segment %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n",
		       seg[i].vaddr, seg[i].offset, seg[i].filesz, seg[i].memsz);
}

static void print_place(const struct sym_frame *frame)
{
	printf("%s:", frame->file ? frame->file : "??");
	if (frame->line)
		printf("%" PRIu32 "\n", frame->line);
	else
		printf("?\n");
}

static void print_frames(const struct options *opt, struct symfile *sf, uint64_t addr)
{
	struct sym_frame frames[SYM_MAX_INLINE];
	size_t nr = symfile_lookup(sf, addr, frames, SYM_MAX_INLINE);

	printf("0x%016" PRIx64 "\n", addr);
	if (!nr)
		printf("??\n??:0\n");
	else if (opt->extent)
		printf("= %#" PRIx64 " %#" PRIx64 "\n", frames[0].start, frames[0].size);
	for (size_t i = 0; i < nr; i++) {
		printf("%s\n", opt->demangled ? frames[i].name : frames[i].linkage);
		print_place(&frames[i]);
	}
}

static void bench(struct symfile *sf, const uint64_t *addrs, size_t nr, unsigned long repeat)
{
	struct sym_frame frames[SYM_MAX_INLINE];
	struct rusage usage;
	uint64_t start = now_ns(), first;
	size_t found = 0;

	for (size_t i = 0; i < nr; i++)
		found += symfile_lookup(sf, addrs[i], frames, SYM_MAX_INLINE) != 0;
	first = now_ns() - start;
	start = now_ns();
	for (unsigned long r = 0; r < repeat; r++) {
		for (size_t i = 0; i < nr; i++)
			symfile_lookup(sf, addrs[i], frames, SYM_MAX_INLINE);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%zu addresses, %zu known; first pass %.1f ms; then %.0f ns an address; %ld MB\n",
	       nr, found, (double)first / 1e6,
	       (double)(now_ns() - start) / (double)(repeat * (nr ? nr : 1)),
	       usage.ru_maxrss >> 10);
}

static uint64_t *read_addresses(size_t *nr)
{
	uint64_t *addrs = NULL, addr;
	size_t cap = 0;

	*nr = 0;
	while (scanf("%" SCNx64, &addr) == 1) {
		GROW(addrs, *nr + 1, cap);
		addrs[(*nr)++] = addr;
	}
	return addrs;
}

static void list_all(struct symfile *sf)
{
	size_t nr;
	const uint64_t *starts = symfile_starts(sf, &nr);

	for (size_t i = 0; i < nr; i++) {
		struct sym_frame frames[SYM_MAX_INLINE];
		size_t depth = symfile_lookup(sf, starts[i], frames, SYM_MAX_INLINE);

		printf("%016" PRIx64 " %s\n", starts[i], depth ? frames[depth - 1].linkage : "??");
	}
}

static void lookup_all(const struct options *opt, struct symfile *sf)
{
	size_t nr;
	uint64_t *addrs = read_addresses(&nr);

	if (opt->repeat)
		bench(sf, addrs, nr, opt->repeat);
	for (size_t i = 0; !opt->repeat && i < nr; i++)
		print_frames(opt, sf, addrs[i]);
	free(addrs);
}

static int run(const struct options *opt, const char *path)
{
	struct err err = { 0 };
	struct symfile *sf = symfile_open(path, &opt->where, &err);
	uint64_t addr;
	int rc = 0;

	if (!sf) {
		log_error("%s", err.msg);
		return (int)err.code;
	}
	if (opt->list) {
		list_all(sf);
	} else if (opt->headers) {
		print_headers(sf);
	} else if (opt->find) {
		rc = symfile_find(sf, opt->find, &addr) ? 0 : 1;
		if (!rc)
			printf("0x%" PRIx64 "\n", addr);
	} else {
		lookup_all(opt, sf);
	}
	symfile_close(sf);
	return rc;
}

int main(int argc, char **argv)
{
	struct options opt = { 0 };
	int c;

	while ((c = getopt(argc, argv, "Ceils:d:f:b:v")) != -1) {
		switch (c) {
		case 'C': opt.demangled = true; break;
		case 'e': opt.extent = true; break;
		case 'i': opt.headers = true; break;
		case 'l': opt.list = true; break;
		case 's': opt.where.symfs = optarg; break;
		case 'd': opt.where.folder = optarg; break;
		case 'f': opt.find = optarg; break;
		case 'b': opt.repeat = strtoul(optarg, NULL, 10); break;
		case 'v': log_level++; break;
		default: return ERR_USAGE;
		}
	}
	if (optind + 1 != argc) {
		log_error("one file, please");
		return ERR_USAGE;
	}
	return run(&opt, argv[optind]);
}
