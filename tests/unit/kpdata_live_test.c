// SPDX-License-Identifier: GPL-2.0-or-later
/* A kpdata pipe that somebody watches: records come out while it is being written, whatever the pieces. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "format.h"
#include "model/world.h"
#include "test.h"

#define RECORDS 4000
#define RECORD 42 /* bytes: type, size, 24 of a header, two addresses */
#define ENOUGH (64 << 10)

extern const struct reader_ops read_kpdata;

struct live {
	struct strtab strings;
	struct world world;
	struct options options;
	struct in in;
	struct reader reader;
	int writer;
	uint64_t samples, sources, lost, last;
	bool ended;
};

static void put(uint8_t **to, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*(*to)++ = (uint8_t)(value >> 8 * i);
}

/* A user trace; another event begins after ENOUGH bytes. */
static void make_record(uint8_t *to, uint64_t nth)
{
	put(&to, 2, 1);
	put(&to, RECORD - 2, 1);
	put(&to, nth < RECORDS - 100 ? (uint64_t)1 << 60 | 1000 : (uint64_t)2 << 60 | 0x3c, 8);
	put(&to, 1000 + nth, 8);
	put(&to, 5, 4);
	put(&to, 0, 2);
	put(&to, 2, 2);
	put(&to, 0x401000 + nth, 8);
	put(&to, 0x402000, 8);
}

static void open_pipe(struct live *live, const uint8_t *first, size_t len)
{
	static const struct image_search nowhere;
	struct err err = { 0 };
	int fds[2];

	memset(live, 0, sizeof(*live));
	strtab_init(&live->strings);
	world_init(&live->world, &live->strings, &nowhere);
	live->reader = (struct reader){ .ops = &read_kpdata,
					.options = &live->options,
					.in = &live->in,
					.frames = &live->world.frames,
					.library = &live->world.images.library,
					.live_view = true };
	live->reader.priv = xcalloc(1, read_kpdata.priv_size);
	check("a pipe", pipe(fds) == 0 && write(fds[1], first, len) == (ssize_t)len &&
				in_open_fd(&live->in, fds[0], "pipe", &err) == 0 &&
				read_kpdata.open(&live->reader) == 0);
	live->writer = fds[1];
}

/* Takes what there is. False: the end. */
static bool drain(struct live *live)
{
	struct event ev;
	int ret;

	for (;;) {
		memset(&ev, 0, sizeof(ev));
		ev.time = NO_TIME;
		ret = read_kpdata.next(&live->reader, &ev);
		if (ret != 1)
			return ret == READER_AGAIN;
		live->samples += ev.kind == EVENT_SAMPLE;
		live->sources += ev.kind == EVENT_SOURCE;
		live->lost += ev.kind == EVENT_LOST;
		if (ev.kind == EVENT_SAMPLE)
			live->last = ev.time;
	}
}

static void close_pipe(struct live *live)
{
	read_kpdata.close(&live->reader);
	free(live->reader.priv);
	in_close(&live->in);
	world_release(&live->world);
	strtab_release(&live->strings);
}

static void test_pieces(const uint8_t *data, size_t len, uint64_t seed, uint64_t lost)
{
	size_t at = 100, early = 0;
	struct live live;
	bool again = true;

	open_pipe(&live, data, at);
	again &= drain(&live);
	check("nothing is certain yet", again && !live.samples);
	while (at < len) {
		size_t n = 1 + next_random(&seed) % 3000;

		n = n < len - at ? n : len - at;
		again &= write(live.writer, data + at, n) == (ssize_t)n && drain(&live);
		at += n;
		if (at < ENOUGH + 10000)
			early = live.samples;
	}
	check("samples come out while it is being written", again && early > 1000);
	check("the last one waits for what follows", live.samples < RECORDS);
	close(live.writer);
	check("the end", !drain(&live));
	check("all samples", live.samples == RECORDS && live.last == 1000 + RECORDS - 1);
	check("both sources", live.sources == 2);
	check("the damage", live.lost == lost);
	close_pipe(&live);
}

int main(void)
{
	static uint8_t data[RECORDS * RECORD + 50];
	size_t middle = (size_t)(RECORDS - 50) * RECORD;

	log_level = -1;
	for (uint64_t i = 0; i < RECORDS; i++)
		make_record(data + i * RECORD, i);
	test_pieces(data, RECORDS * RECORD, 1, 0);
	memmove(data + middle + 50, data + middle, (size_t)50 * RECORD);
	memset(data + middle, 0xff, 50);
	test_pieces(data, sizeof(data), 2, 1);
	return test_result();
}
