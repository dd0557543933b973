// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/gdb_packet.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/source.h"

#define RETRIES 5     /* of a packet */
#define REQUEST_MAX 512 /* bytes */
#define SKIPPED_MAX (1u << 20)
#define LATE_STOPS_MAX 1000

/* ---- Packets ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t gdb_unhex(const char *hex, size_t len, uint8_t *bytes, size_t max)
{
	size_t nr = 0;

	for (; nr < max && len - 2 * nr >= 2; nr++) {
		int high = hex_digit(hex[2 * nr]), low = hex_digit(hex[2 * nr + 1]);

		if (high < 0 || low < 0)
			break;
		bytes[nr] = (uint8_t)(high << 4 | low);
	}
	return nr;
}

void gdb_encode(struct buf *out, const char *text, size_t len)
{
	uint8_t sum = 0;

	buf_addc(out, '$');
	buf_add(out, text, len);
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + (uint8_t)text[i]);
	buf_addf(out, "#%02x", sum);
}

/* Undoes escapes ('}') and runs ('*'). False: it would be too long, or is cut off. */
static bool expand(const char *at, const char *end, struct buf *payload)
{
	bool escaped;

	buf_clear(payload);
	buf_reserve(payload, (size_t)(end - at));
	for (; at < end; at++) {
		if (*at == '*') {
			int n = at + 1 < end ? (uint8_t)at[1] - 29 : 0;

			if (n < 3 || !payload->len || payload->len + (size_t)n > GDB_PACKET_MAX)
				return false;
			memset(buf_reserve(payload, (size_t)n), payload->data[payload->len - 1],
			       (size_t)n);
			payload->len += (size_t)n;
			at++;
			continue;
		}
		escaped = *at == '}';
		if ((escaped && ++at == end) || payload->len == GDB_PACKET_MAX)
			return false;
		buf_addc(payload, escaped ? (char)(*at ^ 0x20) : *at);
	}
	buf_add(payload, "", 0); /* text ends with a NUL */
	return true;
}

size_t gdb_decode(const char *data, size_t len, enum gdb_item *item, struct buf *payload)
{
	const char *end;
	uint8_t sum = 0, given;

	*item = GDB_PARTIAL;
	if (!len)
		return 0;
	*item = data[0] == '+' ? GDB_ACK : data[0] == '-' ? GDB_NAK : GDB_NOISE;
	if (data[0] != '$' && data[0] != '%')
		return 1;
	end = memchr(data, '#', len);
	if (!end || data + len - end < 3) {
		*item = len > GDB_PACKET_MAX ? GDB_DAMAGED : GDB_PARTIAL;
		return len > GDB_PACKET_MAX ? len : 0;
	}
	for (const char *at = data + 1; at < end; at++)
		sum = (uint8_t)(sum + (uint8_t)*at);
	*item = data[0] == '$' ? GDB_PACKET : GDB_NOTIFICATION;
	if (data[0] == '$' && (gdb_unhex(end + 1, 2, &given, 1) != 1 || given != sum ||
			       !expand(data + 1, end, payload)))
		*item = GDB_DAMAGED;
	return (size_t)(end - data) + 3;
}

static bool begins_with_signal(const struct buf *reply, const char *kinds)
{
	return reply->len >= 3 && strchr(kinds, reply->data[0]) && hex_digit(reply->data[1]) >= 0 &&
	       hex_digit(reply->data[2]) >= 0;
}

bool gdb_is_stop(const struct buf *reply)
{
	return begins_with_signal(reply, "TS");
}

bool gdb_is_exit(const struct buf *reply)
{
	return begins_with_signal(reply, "WX");
}

/* ---- The conversation ---- */

void gdb_talk_init(struct gdb_talk *talk, struct link *link)
{
	*talk = (struct gdb_talk){ .link = link, .acks = true, .window = 1, .packet_size = 400 };
}

void gdb_talk_release(struct gdb_talk *talk)
{
	buf_release(&talk->in);
	buf_release(&talk->reply);
	buf_release(&talk->sent);
}

/* A packet acknowledges the answer to the packet before it. */
static void add_packet(const struct gdb_talk *talk, struct buf *out, const char *fmt, va_list ap)
{
	char text[REQUEST_MAX];
	int len = vsnprintf(text, sizeof(text), fmt, ap);

	if (talk && talk->acks)
		buf_addc(out, '+');
	gdb_encode(out, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

bool gdb_send(struct gdb_talk *talk, const char *fmt, ...)
{
	va_list ap;

	buf_clear(&talk->sent);
	va_start(ap, fmt);
	add_packet(talk, &talk->sent, fmt, ap);
	va_end(ap);
	return link_write(talk->link, talk->sent.data, talk->sent.len);
}

/* Makes room in `in`, and waits for more bytes. */
static enum gdb_got receive_bytes(struct gdb_talk *talk, uint64_t deadline)
{
	uint64_t now = source_now();
	struct pollfd fd = { .fd = talk->link->fd, .events = POLLIN };
	uint64_t wait = deadline > now ? deadline - now : 0;
	struct timespec time = { (time_t)(wait / SECOND), (long)(wait % SECOND) };
	ssize_t got;

	if (talk->taken) {
		memmove(talk->in.data, talk->in.data + talk->taken, talk->in.len - talk->taken);
		talk->in.len -= talk->taken;
		talk->taken = 0;
	}
	got = link_read(talk->link, buf_reserve(&talk->in, 65536), 65536);
	if (got == 0 && (!wait || ppoll(&fd, 1, &time, NULL) == 0))
		return GDB_NOTHING;
	if (got < 0)
		return GDB_LOST;
	talk->in.len += (size_t)got;
	return GDB_GOT;
}

/*
 * The next item that matters: not noise, and no notification, which belongs to modes that kscope does not use. The
 * next packet says more than an acknowledgement.
 */
static enum gdb_got receive_item(struct gdb_talk *talk, uint64_t deadline, enum gdb_item *item)
{
	enum gdb_got got = GDB_GOT;
	unsigned skipped = 0;

	while (got == GDB_GOT) {
		*item = GDB_PARTIAL;
		if (talk->in.len > talk->taken)
			talk->taken += gdb_decode(talk->in.data + talk->taken,
						  talk->in.len - talk->taken, item, &talk->reply);
		talk->noise |= *item == GDB_NOISE;
		if (*item == GDB_PARTIAL)
			got = receive_bytes(talk, deadline);
		else if (*item != GDB_NOISE && *item != GDB_NOTIFICATION && *item != GDB_ACK)
			return GDB_GOT;
		else if (++skipped > SKIPPED_MAX && source_now() > deadline)
			return GDB_NOTHING; /* a stub that sends nothing else */
	}
	return got;
}

enum gdb_got gdb_receive(struct gdb_talk *talk, uint64_t deadline)
{
	unsigned tries = 0;
	enum gdb_item item;
	enum gdb_got got;

	while ((got = receive_item(talk, deadline, &item)) == GDB_GOT) {
		if (item == GDB_PACKET)
			return GDB_GOT;
		talk->faults++;
		buf_clear(&talk->reply);
		/* Without acknowledgements, or if further requests were sent, nothing can be sent again. */
		if (!talk->acks || talk->ahead)
			return item == GDB_DAMAGED ? GDB_GOT : GDB_NOTHING;
		if (++tries > RETRIES)
			return GDB_NOTHING;
		if (item == GDB_NAK ? !link_write(talk->link, talk->sent.data, talk->sent.len)
				    : !link_write(talk->link, "-", 1))
			return GDB_LOST;
	}
	return got;
}

enum gdb_got gdb_answer(struct gdb_talk *talk, uint64_t deadline)
{
	unsigned stops = 0;
	enum gdb_got got;

	/* A stop may have been reported late: QEMU does so after a new connection. */
	do {
		got = gdb_receive(talk, deadline);
	} while (got == GDB_GOT && gdb_is_stop(&talk->reply) && ++stops < LATE_STOPS_MAX);
	if (got == GDB_GOT && gdb_is_exit(&talk->reply)) {
		talk->exited = true;
		return GDB_LOST;
	}
	return got;
}

enum gdb_got gdb_ask(struct gdb_talk *talk, const char *fmt, ...)
{
	va_list ap;

	buf_clear(&talk->sent);
	va_start(ap, fmt);
	add_packet(talk, &talk->sent, fmt, ap);
	va_end(ap);
	if (!link_write(talk->link, talk->sent.data, talk->sent.len))
		return GDB_LOST;
	return gdb_answer(talk, source_now() + GDB_PATIENCE);
}

bool gdb_is_ok(const struct gdb_talk *talk)
{
	return talk->reply.len == 2 && !memcmp(talk->reply.data, "OK", 2);
}

/* ---- Many requests ---- */

void gdb_batch_clear(struct gdb_batch *batch)
{
	buf_clear(&batch->text);
	batch->nr = batch->sent = batch->got = 0;
}

void gdb_batch_release(struct gdb_batch *batch)
{
	buf_release(&batch->text);
	free(batch->ends);
}

void gdb_batch_add(struct gdb_batch *batch, const char *fmt, ...)
{
	va_list ap;

	/* Without acknowledgements, the stub skips the '+'. */
	buf_addc(&batch->text, '+');
	va_start(ap, fmt);
	add_packet(NULL, &batch->text, fmt, ap);
	va_end(ap);
	GROW(batch->ends, batch->nr + 1, batch->cap);
	batch->ends[batch->nr++] = batch->text.len;
}

/* Sends requests, but not for each answer: the stub gets many at a time. */
static bool send_ahead(struct gdb_talk *talk, struct gdb_batch *batch)
{
	size_t from = batch->sent ? batch->ends[batch->sent - 1] : 0;
	size_t until = batch->got + talk->window;

	if (batch->sent > batch->got + talk->window / 2 || batch->sent == batch->nr)
		return true;
	batch->sent = until < batch->nr ? until : batch->nr;
	buf_clear(&talk->sent);
	buf_add(&talk->sent, batch->text.data + from, batch->ends[batch->sent - 1] - from);
	return link_write(talk->link, talk->sent.data, talk->sent.len);
}

bool gdb_batch_next(struct gdb_talk *talk, struct gdb_batch *batch)
{
	enum gdb_got got;

	if (batch->got == batch->nr || !send_ahead(talk, batch))
		return false;
	talk->ahead = batch->sent > batch->got + 1;
	got = gdb_answer(talk, source_now() + GDB_PATIENCE);
	talk->ahead = false;
	if (talk->acks && talk->faults)
		talk->window = 1; /* so that the next can be sent again */
	batch->got += got == GDB_GOT;
	return got == GDB_GOT;
}
