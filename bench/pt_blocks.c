// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pt_blocks FILE: decodes the Intel PT traces of one process in a perf.data with libipt's block decoder, the
 * fastest one of libipt that follows the code, and prints how many instructions ran. The baseline for
 * kscope's decoder. It neither names nor stacks anything.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <intel-pt.h>

#include "abi/perf_file.h"

#define AUX_HEAD 48 /* bytes of an AUXTRACE record */

struct target {
	struct pt_image *image;
	struct pt_image_section_cache *cache; /* keeps files mapped */
};

static const uint8_t *read_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	const uint8_t *data;

	if (fd < 0 || fstat(fd, &st) < 0)
		exit(1);
	*len = (size_t)st.st_size;
	data = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		exit(1);
	return data;
}

static uint64_t u64_at(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The body of an MMAP2 record: pid, tid, address, length, offset, 32 more bytes, path. */
static void add_map(struct target *target, const uint8_t *body)
{
	int section = pt_iscache_add_file(target->cache, (const char *)body + 64, u64_at(body + 24),
					  u64_at(body + 16), u64_at(body + 8));

	if (section > 0)
		pt_image_add_cached(target->image, target->cache, section, NULL);
}

/* Returns the length of all traces, one after the other. */
static size_t collect(const uint8_t *file, size_t len, struct target *target, uint8_t *trace)
{
	size_t at = (size_t)u64_at(file + offsetof(struct perf_header, data));
	size_t end = at + (size_t)u64_at(file + offsetof(struct perf_header, data) + 8), nr = 0;

	while (at + sizeof(struct perf_record) <= end && end <= len) {
		struct perf_record record;
		size_t size;

		memcpy(&record, file + at, sizeof(record));
		if (record.type == PERF_RECORD_MMAP2)
			add_map(target, file + at + sizeof(record));
		if (record.type == PERF_RECORD_AUXTRACE) {
			size = (size_t)u64_at(file + at + sizeof(record));
			memcpy(trace + nr, file + at + AUX_HEAD, size);
			nr += size;
			at += size;
		}
		at += record.size;
	}
	return nr;
}

static uint64_t decode(struct pt_block_decoder *decoder)
{
	uint64_t insns = 0;

	while (pt_blk_sync_forward(decoder) >= 0) {
		int status = 0;

		while (status >= 0) {
			struct pt_block block;
			struct pt_event event;

			while (status & pts_event_pending)
				status = pt_blk_event(decoder, &event, sizeof(event));
			if (status < 0 || status & pts_eos)
				break;
			status = pt_blk_next(decoder, &block, sizeof(block));
			insns += block.ninsn;
		}
		if (status >= 0)
			break;
	}
	return insns;
}

int main(int argc, char **argv)
{
	size_t len;
	const uint8_t *file = read_file(argc > 1 ? argv[1] : "", &len);
	struct target target = { pt_image_alloc(NULL), pt_iscache_alloc(NULL) };
	struct pt_block_decoder *decoder;
	uint8_t *trace = malloc(len);
	struct pt_config config;

	pt_iscache_set_limit(target.cache, (uint64_t)1 << 30);
	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + collect(file, len, &target, trace);
	decoder = pt_blk_alloc_decoder(&config);
	pt_blk_set_image(decoder, target.image);
	printf("%" PRIu64 "\n", decode(decoder));
	return 0;
}
