// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfgrow IN OUT N: a perf.data with N samples or a few more. The samples of IN, which perf
 * record has made, are repeated at later times, a round each, with pcs that differ a little so
 * that not all stacks are the same. Only for files of one event, with IDENTIFIER or without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/perf_file.h"
#include "base/mem.h"

static uint8_t *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	if (!f)
		exit(1);
	fseek(f, 0, SEEK_END);
	*len = (size_t)ftell(f);
	rewind(f);
	data = xmalloc(*len);
	if (fread(data, 1, *len, f) != *len)
		exit(1);
	fclose(f);
	return data;
}

static void put(FILE *f, const void *data, size_t len)
{
	if (fwrite(data, 1, len, f) != len)
		exit(1);
}

int main(int argc, char **argv)
{
	struct perf_record round = { .type = PERF_RECORD_FINISHED_ROUND, .size = sizeof(round) };
	uint64_t wanted, end, made = 0, span = 0, first = UINT64_MAX, last = 0, type;
	struct perf_header header;
	struct perf_attr attr;
	size_t len, ip, time, features;
	uint32_t noise = 1;
	uint8_t *data;
	FILE *out;

	if (argc != 4 || !(out = fopen(argv[2], "wb")))
		return 2;
	data = slurp(argv[1], &len);
	wanted = strtoull(argv[3], NULL, 10);
	memcpy(&header, data, sizeof(header));
	memcpy(&attr, data + header.attrs.offset, sizeof(attr));
	type = attr.sample_type;
	ip = type & PERF_SAMPLE_IDENTIFIER ? 16 : 8;
	time = ip + (type & PERF_SAMPLE_TID ? 16 : 8);
	end = header.data.offset + header.data.size;
	put(out, data, end);
	for (unsigned pass = 0; made < wanted; pass++) {
		for (uint64_t at = header.data.offset; at < end;) {
			struct perf_record *rec = (struct perf_record *)(data + at);
			uint64_t *when = (uint64_t *)(data + at + time);
			uint64_t *nr = (uint64_t *)(data + at + time + 8 +
						    (type & PERF_SAMPLE_CPU ? 8 : 0) +
						    (type & PERF_SAMPLE_PERIOD ? 8 : 0));

			at += rec->size;
			if (rec->type != PERF_RECORD_SAMPLE)
				continue;
			made++;
			if (!pass) {
				first = *when < first ? *when : first;
				last = *when > last ? *when : last;
				continue;
			}
			*when += span;
			noise = noise * 1664525 + 1013904223;
			if (nr[0] > 1 && nr[0] < 200)
				nr[2] ^= noise >> 30;
			put(out, rec, rec->size);
		}
		if (!pass)
			span = last - first + 1000000;
		put(out, &round, sizeof(round));
	}
	features = (size_t)(header.data.offset + header.data.size);
	header.data.size = (uint64_t)ftell(out) - header.data.offset;
	/* The sections keep their order, and move all by the same amount. */
	for (unsigned bit = 0, n = 0; bit < PERF_FEATURES; bit++) {
		struct perf_section *section = (struct perf_section *)(data + features) + n;

		if (!(header.features[bit / 64] >> bit % 64 & 1))
			continue;
		section->offset += header.data.offset + header.data.size - features;
		n++;
	}
	put(out, data + features, len - features);
	rewind(out);
	put(out, &header, sizeof(header));
	return fclose(out) ? 1 : 0;
}
