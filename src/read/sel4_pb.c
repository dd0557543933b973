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
#define MAX_LINE 300
#define LOOKAHEAD (2 + MAX_MESSAGE + MAX_LINE)

#define GREETING "100 SEL4 PROFILING CLIENT"
#define IP_TAG 0x08 /* the first byte of a message */
#define PID_DIGITS 10

struct sel4_pb {
	struct sel4 sel4;
	bool found; /* a sample, or a line of the protocol */
	uint64_t long_frames;
	/*
	 * The messages of a connection have the same number of addresses, used or not, as far as we know. A message
	 * with another number, and no frame behind it, is made of pieces. The number is that of two messages in a row.
	 */
	uint64_t addresses, last_addresses;
	bool ended;
	bool lost;	  /* searching for the next frame or protocol line */
	uint64_t lost_at; /* from where */
};

/*
 * The bytes from some place on. A stream that is still being written has more of them later: then a question
 * about them may have no answer yet. The answer never depends on how many bytes had arrived when it was given.
 */
struct look {
	const uint8_t *at;
	size_t len;
	bool ended; /* no more of them count */
};

enum answer { NO, YES, MORE };

static struct look from(struct look look, size_t n)
{
	return (struct look){ look.at + n, look.len - n, look.ended };
}

static enum answer no_more(struct look look)
{
	return look.ended ? NO : MORE;
}

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

/* A protocol line. Sets the length with its newline. */
static enum answer text_at(struct look look, size_t *size)
{
	static const char *const answers[] = { GREETING, "200 OK", "400 ERROR" };

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		size_t n = strlen(answers[i]), have = look.len < n ? look.len : n;
		const uint8_t *end;

		if (memcmp(look.at, answers[i], have) != 0 || (have < n && look.ended))
			continue;
		end = memchr(look.at, '\n', look.len);
		if (!end && !look.ended)
			return MORE;
		*size = end ? (size_t)(end - look.at) + 1 : look.len;
		return YES;
	}
	return NO;
}

/*
 * The profiler does not end the last line of its mappings: the digits of what follows, the two of a frame or the three
 * of a protocol line, touch those of the pid. `end` is where all of them end; sets it to the end of the pid.
 */
static enum answer pid_end(struct look look, size_t first, size_t *end)
{
	size_t digits = *end - first, line;
	enum answer text;

	if (*end == look.len || look.at[*end] == '\n')
		return digits ? YES : NO;
	if (look.at[*end] == IP_TAG) {
		*end -= 2;
		return digits > 2 ? YES : NO;
	}
	text = digits > 3 ? text_at(from(look, *end - 3), &line) : NO;
	*end -= 3;
	return text;
}

/* "echo.elf: 52\n", a reply to MAPPINGS. Sets the lengths of the name and of the line, and the pid. */
static enum answer mapping_at(struct look look, size_t *name, size_t *size, uint32_t *pid)
{
	size_t len = look.len < MAX_LINE ? look.len : MAX_LINE, at = 0, first;
	uint64_t number = 0;
	enum answer answer;

	while (at < len && look.at[at] > ' ' && look.at[at] < 0x7f && look.at[at] != ':')
		at++;
	*name = at;
	for (const char *c = ": "; *c; c++, at++) {
		if (at < len && (!*name || look.at[at] != (uint8_t)*c))
			return NO;
	}
	for (first = at; at < len && is_digit(look.at[at]); at++)
		;
	if (at >= len && (first >= len || len == MAX_LINE || !look.ended))
		return len == MAX_LINE ? NO : no_more(look);
	answer = pid_end(look, first, &at);
	if (answer != YES || at - first > PID_DIGITS)
		return answer == MORE ? MORE : NO;
	*size = at + (at < len && look.at[at] == '\n');
	while (first < at)
		number = number * 10 + (uint64_t)(look.at[first++] - '0');
	*pid = (uint32_t)number;
	return number <= UINT32_MAX ? YES : NO;
}

/* The digits of a length, or the end of the stream. */
static enum answer digits_at(struct look look)
{
	if (look.len < 2 && !look.ended)
		return MORE;
	for (size_t i = 0; i < look.len && i < 2; i++) {
		if (!is_digit(look.at[i]))
			return NO;
	}
	return look.len >= 2 && look.at[0] == '0' && look.at[1] == '0' ? NO : YES;
}

/* Can a sample or a protocol line start here? */
static enum answer plausible(struct look look)
{
	enum answer digits = digits_at(look), text, mapping;
	size_t name, size;
	uint32_t pid;

	if (digits == YES || !look.len)
		return digits;
	text = text_at(look, &size);
	mapping = mapping_at(look, &name, &size, &pid);
	if (text == YES || mapping == YES)
		return YES;
	return digits == MORE || text == MORE || mapping == MORE ? MORE : NO;
}

/* Whether a connection begins inside the first `size` bytes: the last one broke there. */
static enum answer breaks_in(struct look look, size_t size)
{
	size_t n = strlen(GREETING), end = size + n - 1 < look.len ? size + n - 1 : look.len;

	if (memmem(look.at, end, GREETING, n))
		return YES;
	return end == size + n - 1 ? NO : no_more(look);
}

/* A message of this size. `sure`: only if what follows it is plausible, too. */
static enum answer message_at(struct sel4_pb *p, struct look look, size_t size, bool sure)
{
	enum answer broken;

	if (!size || size + 2 > look.len)
		return size ? no_more(look) : NO;
	if (!parse_message(look.at + 2, size, &p->sel4.sample) ||
	    memmem(look.at + 2, size, GREETING, strlen(GREETING)))
		return NO;
	if (sure)
		return plausible(from(look, 2 + size));
	/* Every message ends with its addresses: one that has them is complete, unless it is made of pieces. */
	if (!p->sel4.sample.nr_ips || (p->addresses && p->addresses != p->sel4.sample.nr_ips))
		return NO;
	broken = breaks_in(from(look, 2), size);
	return broken == MORE ? MORE : broken == NO ? YES : NO;
}

/* A frame. Sets its length, with its length digits. */
static enum answer frame_at(struct sel4_pb *p, struct look look, size_t *length)
{
	size_t size;

	for (size_t i = 0; i < 3; i++) {
		if (i == look.len)
			return no_more(look);
		if (i < 2 && !is_digit(look.at[i]))
			return NO;
	}
	size = (size_t)(look.at[0] - '0') * 10 + (size_t)(look.at[1] - '0');
	for (int sure = 1; sure >= 0; sure--) {
		enum answer answer = message_at(p, look, size, sure);

		*length = 2 + size;
		for (size_t third = 0; answer == NO && size >= 10 && third < 10; third++) {
			answer = message_at(p, look, size * 10 + third, sure);
			*length = 2 + size * 10 + third;
		}
		if (answer != NO)
			return answer;
	}
	return NO;
}

static int sel4_pb_probe(const uint8_t *head, size_t len)
{
	struct look look = { head, len < LOOKAHEAD ? len : LOOKAHEAD, true };
	struct sel4_pb p = { 0 };
	size_t size;

	if (text_at(look, &size) == YES)
		return 80;
	return frame_at(&p, look, &size) == YES ? 40 : 0;
}

static size_t record_size(const uint8_t *data, size_t len)
{
	struct look look = { data, len < LOOKAHEAD ? len : LOOKAHEAD, true };
	struct sel4_pb p = { 0 };
	size_t size;

	return frame_at(&p, look, &size) == YES ? size : 0;
}

static int sel4_pb_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, 3, record_size);
}

size_t sel4_pb_count(const uint8_t *data, size_t len, bool all, uint64_t *samples)
{
	struct sel4_pb p = { 0 };
	size_t at = 0;

	while (len - at >= (all ? 1 : LOOKAHEAD)) {
		size_t have = len - at < LOOKAHEAD ? len - at : LOOKAHEAD, size, name;
		struct look look = { data + at, have, true };
		uint32_t pid;

		if (text_at(look, &size) == YES || mapping_at(look, &name, &size, &pid) == YES) {
			at += size;
		} else if (frame_at(&p, look, &size) == YES) {
			at += size;
			*samples += 1;
		} else {
			at++; /* damage, byte by byte */
		}
	}
	return at;
}

static int sel4_pb_open(struct reader *r)
{
	return sel4_open(r, r->priv, false);
}

static struct look look_at(struct in *in)
{
	struct look look = { .ended = in_ready(in, LOOKAHEAD) };

	look.at = in_peek(in, 0, &look.len);
	if (look.len > LOOKAHEAD)
		look.len = LOOKAHEAD;
	return look;
}

/* Skips to the next frame or protocol line. */
static int resync(struct reader *r, struct event *ev)
{
	struct sel4_pb *p = r->priv;
	enum answer text, frame;
	struct look look;
	size_t size;

	do {
		look = look_at(r->in);
		if (!look.len && look.ended)
			break;
		text = text_at(look, &size);
		frame = text == NO ? frame_at(p, look, &size) : NO;
		if (text == MORE || frame == MORE)
			return READER_AGAIN;
		if (text == NO && frame == NO)
			in_skip(r->in, 1);
	} while (text == NO && frame == NO);
	p->lost = false;
	return reader_damage(r, ev, p->lost_at, 1, in_offset(r->in) - p->lost_at,
			     look.len ? "invalid sample" : "truncated sample");
}

static int finish(struct reader *r)
{
	struct sel4_pb *p = r->priv;

	if (!p->found && !r->nr_damaged && in_offset(r->in))
		return err_set(&r->err, ERR_INPUT, "%s: no sel4-pb data found", r->in->path);
	sel4_end(r, &p->sel4);
	if (p->long_frames && !p->ended)
		log_warn("%s: %" PRIu64 " samples of 100 bytes or more have a truncated length; "
			 "all were recovered",
			 r->in->path, p->long_frames);
	p->ended = true;
	return 0;
}

static int lose_sample(struct reader *r, struct event *ev)
{
	struct sel4_pb *p = r->priv;

	p->lost = true;
	p->lost_at = in_offset(r->in);
	in_skip(r->in, 1);
	return resync(r, ev);
}

/* A line of the protocol. 1: *ev is filled; 0: nothing to tell. */
static int take_text(struct reader *r, struct look look, size_t size, struct event *ev)
{
	struct sel4_pb *p = r->priv;
	uint64_t offset = in_offset(r->in);
	bool greeting = look.at[0] == GREETING[0];

	in_skip(r->in, size);
	if (!greeting || !offset)
		return 0;
	p->addresses = p->last_addresses = 0;
	sel4_connected(&p->sel4);
	return reader_damage(r, ev, offset, 0, 0,
			     "a new connection begins here; samples before it may be missing");
}

static int take_sample(struct reader *r, size_t size, struct event *ev)
{
	struct sel4_pb *p = r->priv;
	uint64_t offset = in_offset(r->in);

	in_skip(r->in, size);
	p->found = true;
	p->long_frames += size > 2 + 99;
	if (p->sel4.sample.nr_ips == p->last_addresses)
		p->addresses = p->last_addresses;
	p->last_addresses = p->sel4.sample.nr_ips;
	return sel4_take(r, &p->sel4, offset, size, ev);
}

static int sel4_pb_next(struct reader *r, struct event *ev)
{
	struct sel4_pb *p = r->priv;

	while (!sel4_tell(&p->sel4, ev)) {
		struct look look;
		enum answer text, mapping, frame;
		size_t size, name, line;
		uint32_t pid;

		if (p->lost)
			return resync(r, ev);
		look = look_at(r->in);
		if (!look.len)
			return look.ended ? finish(r) : READER_AGAIN;
		text = text_at(look, &size);
		p->found |= text == YES;
		if (text == YES && take_text(r, look, size, ev))
			return 1;
		if (text == YES)
			continue;
		mapping = mapping_at(look, &name, &line, &pid);
		if (text == MORE || mapping == MORE)
			return READER_AGAIN;
		p->found |= mapping == YES;
		if (mapping == YES)
			sel4_map(&p->sel4, (const char *)look.at, name, pid);
		if (mapping == YES || look.at[0] == '\n') {
			in_skip(r->in, mapping == YES ? line : 1);
			continue;
		}
		frame = frame_at(p, look, &size);
		if (frame == MORE)
			return READER_AGAIN;
		return frame == YES ? take_sample(r, size, ev) : lose_sample(r, ev);
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
	.header = true,
	.search = sel4_pb_search,
	.live = true,
	.options = SEL4_OPTIONS(struct sel4_pb),
	.priv_size = sizeof(struct sel4_pb),
	.open = sel4_pb_open,
	.next = sel4_pb_next,
	.close = sel4_pb_close,
};
