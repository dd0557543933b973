// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * make_perfdata ELF SAMPLES STACKS DEPTH < symbols > perf.data: a recording of one x86-64 program
 * with this many samples and different stacks, for benchmarks. `symbols` is the output of
 * `nm --defined-only -S`; the program's load address is 0x555555554000.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/perf_file.h"

#define BASE 0x555555554000ULL
#define MAX_FUNCTIONS 100000
#define ROUND 10000 /* samples; without rounds perf keeps the whole file in memory */

static uint64_t functions[MAX_FUNCTIONS];
static unsigned nr_functions;

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void read_functions(void)
{
	unsigned long addr, size;
	char line[4096], kind;

	while (fgets(line, sizeof(line), stdin) && nr_functions < MAX_FUNCTIONS) {
		if (sscanf(line, "%lx %lx %c", &addr, &size, &kind) == 3 && strchr("tT", kind) &&
		    size > 8)
			functions[nr_functions++] = BASE + addr + size / 2;
	}
}

/* Stacks are paths in a tree with many branches, as in a real program. */
static void fill_stack(uint64_t *ips, unsigned depth, uint64_t id)
{
	uint64_t state = 1;

	for (unsigned i = depth; i-- > 0;) {
		state = (state ^ id % 7) * 0x9e3779b97f4a7c15ULL;
		id = id / 7 + (i < 3 ? id : 0);
		ips[i] = functions[next_random(&state) % nr_functions];
	}
}

struct sample {
	struct perf_record head;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period, nr, context;
};

struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct map {
	struct perf_record head;
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	uint32_t device[2];
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[512];
	struct sample_id tail;
};

struct comm {
	struct perf_record head;
	uint32_t pid, tid;
	char name[16];
	struct sample_id tail;
};

static void write_maps(const char *elf)
{
	struct sample_id tail = { .pid = 1, .tid = 1, .id = 1 };
	struct map map = { .head = { PERF_RECORD_MMAP2, PERF_MISC_USER, sizeof(map) },
			   .pid = 1,
			   .tid = 1,
			   .addr = BASE,
			   .len = 64 << 20,
			   .prot = 5,
			   .flags = 2,
			   .tail = tail };
	struct comm comm = { .head = { PERF_RECORD_COMM, 0, sizeof(comm) },
			     .pid = 1,
			     .tid = 1,
			     .name = "bench",
			     .tail = tail };

	snprintf(map.name, sizeof(map.name), "%s", elf);
	fwrite(&comm, sizeof(comm), 1, stdout);
	fwrite(&map, sizeof(map), 1, stdout);
}

int main(int argc, char **argv)
{
	uint64_t samples = argc == 5 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t stacks = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
	unsigned depth = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
	uint64_t state = 42, ips[128], id = 1;
	struct perf_record round = { PERF_RECORD_FINISHED_ROUND, 0, sizeof(round) };
	struct perf_header header = { .magic = PERF_MAGIC,
				      .size = sizeof(header),
				      .attr_size = sizeof(struct perf_file_attr) };
	struct perf_file_attr attr = {
		.attr = { .type = 1,
			  .size = sizeof(struct perf_attr),
			  .sample_period = 1000000,
			  .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
					 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
					 PERF_SAMPLE_CALLCHAIN,
			  .flags = PERF_ATTR_MMAP | PERF_ATTR_COMM | PERF_ATTR_MMAP2 |
				   PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_EXCLUDE_KERNEL },
		.ids = { sizeof(header), sizeof(id) },
	};

	if (!samples || !stacks || depth < 1 || depth > 128) {
		fprintf(stderr, "make_perfdata ELF SAMPLES STACKS DEPTH < symbols > perf.data\n");
		return 2;
	}
	read_functions();
	if (!nr_functions)
		return 2;
	header.attrs = (struct perf_section){ sizeof(header) + sizeof(id), sizeof(attr) };
	header.data.offset = header.attrs.offset + sizeof(attr);
	/* Computed in advance, so that the output may be a pipe. */
	header.data.size = sizeof(struct comm) + sizeof(struct map) +
			   samples * (sizeof(struct sample) + 8ULL * depth) +
			   samples / ROUND * sizeof(round);
	fwrite(&header, sizeof(header), 1, stdout);
	fwrite(&id, sizeof(id), 1, stdout);
	fwrite(&attr, sizeof(attr), 1, stdout);
	write_maps(argv[1]);
	for (uint64_t i = 0; i < samples; i++) {
		struct sample sample = {
			.head = { PERF_RECORD_SAMPLE, PERF_MISC_USER,
				  (uint16_t)(sizeof(sample) + 8 * depth) },
			.id = 1,
			.pid = 1,
			.tid = 1,
			.time = 1000 + i * 1000,
			.cpu = (uint32_t)(i % 4),
			.period = 1000000,
			.nr = depth + 1,
			.context = (uint64_t)-512,
		};
		/* Some stacks are much more frequent than others. */
		uint64_t pick = next_random(&state) % stacks;

		pick = next_random(&state) % (pick + 1);
		fill_stack(ips, depth, pick);
		sample.ip = ips[0];
		fwrite(&sample, sizeof(sample), 1, stdout);
		fwrite(ips, 8, depth, stdout);
		if (i % ROUND == ROUND - 1)
			fwrite(&round, sizeof(round), 1, stdout);
	}
	return fflush(stdout) ? 1 : 0;
}
