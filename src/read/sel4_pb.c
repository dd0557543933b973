// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_pb: a capture of the seL4 profiler's TCP socket: a greeting, replies to commands, and
 * samples, each a length of two decimal digits and a protobuf message. The sender prints only the
 * first two digits of a length of 100 or more; messages are regular enough to recover the third.
 */
#include "read/sel4_pb.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pb.h"
#include "read/sel4.h"

#define MAX_MESSAGE 999
#define LOOKAHEAD (2 + MAX_MESSAGE + 2)

struct sel4_pb {
	struct sel4 sel4;
	uint64_t long_frames;
	bool ended;
};

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool parse_ips(struct pb packed, struct sel4_sample *sample)
{
	while (packed.at < packed.end) {
		if (sample->nr_ips == SEL4_MAX_DEPTH ||
		    !pb_varint(&packed, &sample->chain[1 + sample->nr_ips]))
			return false;
		sample->nr_ips++;
	}
	return true;
}

/*
 * The sender writes fields in order, each at most once, and no others. The first generation had no
 * nr, and its ips were field 6.
 */
static bool parse_message(const uint8_t *data, size_t len, struct sel4_sample *sample)
{
	struct pb pb = { data, data + len };
	struct pb_field field;
	uint32_t last = 0;
	int ret;

	memset(sample, 0, offsetof(struct sel4_sample, chain) + sizeof(sample->chain[0]));
	while ((ret = pb_next(&pb, &field)) > 0) {
		bool ips = field.wire == PB_BYTES;

		if (field.number <= last || field.number > 7 || field.number < (ips ? 6 : 1) ||
		    (!ips && (field.wire != PB_VARINT || field.number == 7)))
			return false;
		last = ips ? 7 : field.number;
		if (ips && !parse_ips(field.bytes, sample))
			return false;
		switch (field.number) {
		case 1: sample->chain[0] = field.value; break;
		case 2: sample->pid = (uint32_t)field.value; break;
		case 3: sample->time = field.value; break;
		case 4: sample->cpu = (uint32_t)field.value; break;
		case 5: sample->period = field.value; break;
		case 6: sample->nr = ips ? SEL4_NOT_COUNTED : field.value; break;
		}
	}
	return ret == 0 && last > 0;
}

/* The length of a protocol line with its newline, 0 if there is none here. */
static size_t text_at(const uint8_t *data, size_t len)
{
	static const char *const answers[] = { "100 SEL4 PROFILING CLIENT", "200 OK", "400 ERROR" };

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		size_t n = strlen(answers[i]);
		const uint8_t *end;

		if (len < n || memcmp(data, answers[i], n) != 0)
			continue;
		end = memchr(data, '\n', len);
		return end ? (size_t)(end - data) + 1 : len;
	}
	return 0;
}

/* "echo.elf: 52\n", a reply to MAPPINGS: the length of the line, 0 if it is not one. */
static size_t mapping_at(struct sel4 *s, const uint8_t *data, size_t len)
{
	const uint8_t *end = memchr(data, '\n', len < 300 ? len : 300);
	const uint8_t *at = data;
	uint64_t pid = 0;

	if (!end)
		return 0;
	while (at<end && * at> ' ' && *at < 0x7f && *at != ':')
		at++;
	if (at == data || end - at < 3 || at[0] != ':' || at[1] != ' ')
		return 0;
	for (const uint8_t *digit = at + 2; digit < end; digit++) {
		if (!is_digit(*digit) || pid > UINT32_MAX / 10)
			return 0;
		pid = pid * 10 + (uint64_t)(*digit - '0');
	}
	if (s)
		sel4_map(s, (const char *)data, (size_t)(at - data), (uint32_t)pid);
	return (size_t)(end - data) + 1;
}

/* Can a sample or a protocol line start here? */
static bool plausible(const uint8_t *data, size_t len)
{
	return len == 0 || (is_digit(data[0]) && (len < 2 || is_digit(data[1]))) ||
	       text_at(data, len) || mapping_at(NULL, data, len);
}

/* A message of this size. `sure`: only if what follows it is plausible, too. */
static bool message_at(struct sel4_pb *p, const uint8_t *data, size_t len, size_t size, bool sure)
{
	if (!size || size + 2 > len || !parse_message(data + 2, size, &p->sel4.sample))
		return false;
	/* Every message ends with its addresses: one that has them is complete. */
	return sure ? plausible(data + 2 + size, len - 2 - size) : p->sel4.sample.nr_ips > 0;
}

/* The length of the frame here, with its length digits; 0 if there is none. */
static size_t frame_at(struct sel4_pb *p, const uint8_t *data, size_t len)
{
	size_t size;

	if (len < 3 || !is_digit(data[0]) || !is_digit(data[1]))
		return 0;
	size = (size_t)(data[0] - '0') * 10 + (size_t)(data[1] - '0');
	for (int sure = 1; sure >= 0; sure--) {
		if (message_at(p, data, len, size, sure))
			return 2 + size;
		for (size_t third = 0; size >= 10 && third < 10; third++) {
			if (message_at(p, data, len, size * 10 + third, sure)) {
				p->long_frames++;
				return 2 + size * 10 + third;
			}
		}
	}
	return 0;
}

static int sel4_pb_probe(const uint8_t *head, size_t len)
{
	struct sel4_pb p = { 0 };

	if (text_at(head, len))
		return 80;
	return frame_at(&p, head, len < LOOKAHEAD ? len : LOOKAHEAD) ? 40 : 0;
}

size_t sel4_pb_count(const uint8_t *data, size_t len, bool all, uint64_t *samples)
{
	struct sel4_pb p = { 0 };
	size_t at = 0;

	while (len - at >= (all ? 1 : LOOKAHEAD)) {
		size_t have = len - at < LOOKAHEAD ? len - at : LOOKAHEAD;
		size_t size = text_at(data + at, have);

		if (!size)
			size = mapping_at(NULL, data + at, have);
		if (!size) {
			size = frame_at(&p, data + at, have);
			*samples += size > 0;
		}
		at += size ? size : 1; /* damage, byte by byte */
	}
	return at;
}

static int sel4_pb_open(struct reader *r)
{
	return sel4_open(r, r->priv, false);
}

/* Skips at least one byte, then to the next frame or protocol line. */
static int resync(struct reader *r, struct event *ev)
{
	struct sel4_pb *p = r->priv;
	uint64_t start = in_offset(r->in), long_frames = p->long_frames;
	const uint8_t *data;
	size_t have;

	do {
		in_skip(r->in, 1);
		data = in_peek(r->in, LOOKAHEAD, &have);
	} while (have && !text_at(data, have) && !frame_at(p, data, have));
	p->long_frames = long_frames; /* reading the frame counts it */
	if (!have)
		return reader_damage(r, ev, start, 1, in_offset(r->in) - start, "truncated sample");
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start, "invalid sample");
}

static int finish(struct reader *r)
{
	struct sel4_pb *p = r->priv;

	sel4_end(r, &p->sel4);
	if (p->long_frames && !p->ended)
		log_warn("%s: %" PRIu64 " samples of 100 bytes or more have a truncated length; "
			 "all were recovered",
			 r->in->path, p->long_frames);
	p->ended = true;
	return 0;
}

static int sel4_pb_next(struct reader *r, struct event *ev)
{
	struct sel4_pb *p = r->priv;

	while (!sel4_tell(&p->sel4, ev)) {
		size_t have, size;
		const uint8_t *data = in_peek(r->in, LOOKAHEAD, &have);

		if (!have)
			return finish(r);
		size = text_at(data, have);
		if (!size)
			size = mapping_at(&p->sel4, data, have);
		if (!size && data[0] == '\n')
			size = 1;
		if (size) {
			in_skip(r->in, size);
			continue;
		}
		size = frame_at(p, data, have);
		if (!size)
			return resync(r, ev);
		in_skip(r->in, size);
		sel4_event(&p->sel4, ev);
		return 1;
	}
	return 1;
}

static void sel4_pb_close(struct reader *r)
{
	sel4_close(&((struct sel4_pb *)r->priv)->sel4);
}

const struct reader_ops read_sel4_pb = {
	.name = "sel4-pb",
	.about = "seL4 profiler protobuf stream, a capture of its TCP socket",
	.probe = sel4_pb_probe,
	.options = SEL4_OPTIONS(struct sel4_pb),
	.priv_size = sizeof(struct sel4_pb),
	.open = sel4_pb_open,
	.next = sel4_pb_next,
	.close = sel4_pb_close,
};
