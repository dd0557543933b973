// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/talk.h"

#include <string.h>

#include "base/pb.h"
#include "record/source.h"
#include "wire/wire.h"

#define OVERLAP 64	       /* bytes: more than any mark by which a format is recognized */
#define TAIL ((size_t)1 << 17) /* bytes: more than the `end` of a stream with 4096 cpus */
#define HEAD_MAX 6	       /* bytes of a chunk's tag and length */
#define ANSWER_BY (SECOND / 2) /* the next command does not wait longer than this for an answer */

/* ---- formats ---- */

/* The profiler of seL4 greets; other output may come before. */
static bool is_sel4_pb(const struct buf *seen)
{
	return memmem(seen->data, seen->len, "100 SEL4 PROFILING CLIENT", 25);
}

/* Its samples look like JSON, but have no commas. */
static bool is_sel4_serial(const struct buf *seen)
{
	const char *ip = memmem(seen->data, seen->len, "\"ip\": \"", 7), *end;

	end = ip ? memchr(ip + 7, '"', seen->len - (size_t)(ip + 7 - seen->data)) : NULL;
	return end && end + 1 < seen->data + seen->len && end[1] != ',';
}

/* The sync word of a chunk, and its tag. */
static const char wire_sync[] = { 0x0d, 'K', 'S', 'C', 'P' };

static bool is_wire(const struct buf *seen)
{
	return memmem(seen->data, seen->len, wire_sync, sizeof(wire_sync));
}

/* Whether the fields of a chunk are whole, and one of them is `end`. */
static bool has_end(struct pb chunk)
{
	struct pb_field field;
	bool end = false;
	int ret;

	while ((ret = pb_next(&chunk, &field)) > 0)
		end |= field.number == WIRE_CHUNK_END;
	return end && ret == 0;
}

/* Whether a chunk's tag and length are in front of its content, and its length is that of the content. */
static bool is_whole(const uint8_t *start, struct pb content)
{
	for (size_t head = 2; head <= HEAD_MAX && head <= (size_t)(content.at - start); head++) {
		struct pb stream = { content.at - head, content.end };
		struct pb_field field;

		if (pb_next(&stream, &field) > 0 && field.number == WIRE_STREAM_CHUNK &&
		    field.bytes.at == content.at && field.bytes.end == content.end)
			return true;
	}
	return false;
}

/* The stream ends with a chunk that contains `end`, at the very last byte. A checksum may follow `end`. */
static bool wire_is_over(const struct buf *tail)
{
	const uint8_t *data = (const uint8_t *)tail->data, *end = data + tail->len, *at = end;

	while ((at = memrchr(data, wire_sync[0], (size_t)(at - data)))) {
		if ((size_t)(end - at) < sizeof(wire_sync) ||
		    memcmp(at, wire_sync, sizeof(wire_sync)) != 0)
			continue;
		return is_whole(data, (struct pb){ at, end }) && has_end((struct pb){ at, end });
	}
	return false;
}

static const struct talk_row {
	const char *format; /* the name of its reader */
	const char *start;  /* commands, each with a NUL behind it */
	const char *stop;
	bool (*probe)(const struct buf *seen);	 /* in the bytes of a connection */
	bool (*is_over)(const struct buf *tail); /* NULL: the stream does not say it */
	bool goes_on; /* it does not end by itself: a link that is closed broke */
} rows[] = {
	{ "sel4-pb", "MAPPINGS\n\0START\n\0", "STOP\n\0REFRESH\n\0", is_sel4_pb, NULL, true },
	{ "sel4-serial", "1\0", "2\0", is_sel4_serial, NULL, true },
	{ "kscope", "start\n\0", "stop\n\0", is_wire, wire_is_over, true },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- the user's own commands ---- */

static int hex(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Parses the escape behind a backslash. Returns its length, 0 if there is no such escape. */
static size_t escape(const char *text, char *c)
{
	static const char names[] = "nrt0\\", values[] = "\n\r\t\0\\";
	const char *name = *text ? strchr(names, *text) : NULL;

	if (name) {
		*c = values[name - names];
		return 1;
	}
	if (*text != 'x' || hex(text[1]) < 0 || hex(text[2]) < 0)
		return 0;
	*c = (char)(hex(text[1]) << 4 | hex(text[2]));
	return 3;
}

static int unescape(struct buf *to, const char *option, const char *text, struct err *err)
{
	if (!text)
		return 0;
	buf_add(to, "", 0);
	while (*text) {
		char c = *text++;

		if (c == '\\') {
			size_t len = escape(text, &c);

			if (!len)
				return err_set(
					err, ERR_USAGE,
					"--%s: use \\n, \\r, \\t, \\0, \\\\ or \\xHH after a "
					"backslash",
					option);
			text += len;
		}
		buf_addc(to, c);
	}
	return 0;
}

int talk_init(struct talk *talk, const char *format, const char *start, const char *stop,
	      struct err *err)
{
	*talk = (struct talk){ .next = "" };
	for (size_t i = 0; format && i < ROWS; i++) {
		if (!strcmp(rows[i].format, format))
			talk->row = &rows[i];
	}
	talk->given = format;
	if (unescape(&talk->start, "start-with", start, err) < 0 ||
	    unescape(&talk->stop, "stop-with", stop, err) < 0)
		return -1;
	return 0;
}

void talk_release(struct talk *talk)
{
	buf_release(&talk->start);
	buf_release(&talk->stop);
	buf_release(&talk->seen);
	buf_release(&talk->tail);
}

/* ---- the conversation ---- */

/* The user's own command takes the place of the format's. */
static void say(struct talk *talk, const struct buf *own, const char *commands)
{
	talk->next = own->data ? own->data : commands;
	talk->next_at = 0;
}

void talk_begin(struct talk *talk)
{
	buf_clear(&talk->seen);
	buf_clear(&talk->tail);
	talk->recognized = false;
	talk->next = "";
	/* The format is known from the start, or from the connection before this one. */
	if (talk->start.data || talk->given)
		say(talk, &talk->start, talk->row ? talk->row->start : "");
}

/* Other output, such as a boot log, may come before the stream. */
static void recognize(struct talk *talk, const void *data, size_t len)
{
	struct buf *seen = &talk->seen;

	buf_add(seen, data, len);
	for (size_t i = 0; i < ROWS && !talk->recognized; i++) {
		if (talk->row && talk->row != &rows[i])
			continue;
		talk->recognized = rows[i].probe(seen);
		if (talk->recognized)
			talk->row = &rows[i];
	}
	if (seen->len > OVERLAP) {
		memmove(seen->data, seen->data + seen->len - OVERLAP, OVERLAP);
		seen->len = OVERLAP;
	}
	/* Only a target that greets waits for a command; the others are sending already. */
	if (talk->recognized && !talk->given && talk->row->probe == is_sel4_pb &&
	    !talk->start.data && !talk->stopped)
		say(talk, &talk->start, talk->row->start);
}

void talk_feed(struct talk *talk, const void *data, size_t len)
{
	if (!talk->recognized)
		recognize(talk, data, len);
	if (*talk->next && talk->next_at)
		talk->next_at = 1; /* that was the answer */
	if (!talk->row || !talk->row->is_over)
		return;
	if (talk->tail.len > TAIL) {
		memmove(talk->tail.data, talk->tail.data + talk->tail.len - TAIL, TAIL);
		talk->tail.len = TAIL;
	}
	buf_add(&talk->tail, data, len);
}

void talk_stop(struct talk *talk)
{
	talk->stopped = true;
	say(talk, &talk->stop, talk->row ? talk->row->stop : "");
}

static bool is_own(const struct talk *talk)
{
	return talk->next == talk->start.data || talk->next == talk->stop.data;
}

uint64_t talk_next_at(const struct talk *talk)
{
	return is_own(talk) || *talk->next ? talk->next_at : UINT64_MAX;
}

const char *talk_next(struct talk *talk, uint64_t now, size_t *len)
{
	const char *text = talk->next;

	if (now < talk_next_at(talk))
		return NULL;
	if (is_own(talk)) {
		*len = text == talk->start.data ? talk->start.len : talk->stop.len;
		talk->next = "";
	} else {
		*len = strlen(text);
		talk->next = text + *len + 1;
	}
	talk->next_at = now + ANSWER_BY;
	return text;
}

const char *talk_format(const struct talk *talk)
{
	return talk->row ? talk->row->format : NULL;
}

bool talk_is_over(const struct talk *talk)
{
	return talk->row && talk->row->is_over && talk->row->is_over(&talk->tail);
}

bool talk_can_stop(const struct talk *talk)
{
	return talk->row || talk->stop.data;
}

bool talk_ends_with_link(const struct talk *talk)
{
	return !talk->row || !talk->row->goes_on;
}
