// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * uboot_trace: the buffer that U-Boot's `trace calls` writes: every function entry and exit with
 * the caller and the time in microseconds, in the byte order of the board. A chunk has a head of
 * 32 bytes, or of 8 before 2023. The reader skips function lists.
 *
 * U-Boot rounds addresses down to a grain of 16 bytes, or 4 in old traces, so a function's address
 * often lies in the function before it. We use the last byte of the grain instead: functions that
 * call the tracer are longer than a grain, so that byte is in the right one. Callers are return
 * addresses, which the rounding rarely moves out of the function. Old traces keep 30 bits of the
 * text's own address.
 */
#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"
#include "read/bare.h"

#define TYPE_FUNCTIONS 0
#define TYPE_CALLS 1
#define HEAD 32
#define OLD_HEAD 8
#define CALL 12
#define FUNCTION 8
#define GRAIN 16
#define OLD_GRAIN 4
#define TIME_BITS 30
#define TIME_MASK (((uint32_t)1 << TIME_BITS) - 1)
#define KIND_EXIT 0
#define KIND_ENTRY 1
#define KIND_TEXT_BASE 2 /* in old traces only */
#define LIST_MAX ((size_t)4 << 20)
#define FARTHEST 0x80000000 /* offset in U-Boot's text; callers beyond it are elsewhere */

struct uboot {
	struct bare bare;
	bool big, old;
	uint64_t base;
	uint64_t left;	/* calls still to read in this chunk */
	uint64_t calls; /* all calls of this chunk */
	uint32_t last_time;
	uint64_t wraps;
};

struct head {
	uint32_t type;
	uint64_t records, base;
	bool big, old;
};

static uint32_t get32(const uint8_t *at, bool big)
{
	if (big)
		return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint64_t get64(const uint8_t *at, bool big)
{
	uint64_t first = get32(at, big), second = get32(at + 4, big);

	return big ? first << 32 | second : second << 32 | first;
}

/* In the head of a function list only type and count are set; the rest is uninitialized. */
static bool head_at(const uint8_t *data, size_t len, bool big, struct head *head)
{
	if (len < HEAD)
		return false;
	*head = (struct head){
		.type = get32(data, big),
		.records = get32(data + 8, big),
		.base = get64(data + 16, big),
		.big = big,
	};
	if (head->type == TYPE_FUNCTIONS)
		return true;
	return head->type == TYPE_CALLS && get32(data + 4, big) == 1 && !get32(data + 12, big) &&
	       !get64(data + 24, big);
}

/* Old chunks always start with the record that has the address of U-Boot's text. */
static bool old_head_at(const uint8_t *data, size_t len, bool big, struct head *head)
{
	if (len < OLD_HEAD + CALL || get32(data, big) != TYPE_CALLS || !get32(data + 4, big))
		return false;
	*head = (struct head){
		.type = TYPE_CALLS,
		.records = get32(data + 4, big),
		.big = big,
		.old = true,
	};
	return get32(data + OLD_HEAD + 8, big) == (uint32_t)KIND_TEXT_BASE << TIME_BITS &&
	       get32(data + OLD_HEAD + 4, big) == 0;
}

/* A head of a chunk with calls, of either byte order, old or new. */
static bool calls_at(const uint8_t *data, size_t len, struct head *head)
{
	for (int big = 0; big < 2; big++) {
		if (head_at(data, len, big, head) && head->type == TYPE_CALLS)
			return true;
		if (old_head_at(data, len, big, head))
			return true;
	}
	return false;
}

/* A function list that is followed by calls. */
static bool functions_at(const uint8_t *data, size_t len, struct head *head)
{
	for (int big = 0; big < 2; big++) {
		struct head next;
		uint64_t size;

		if (!head_at(data, len, big, head) || head->type != TYPE_FUNCTIONS)
			continue;
		size = HEAD + FUNCTION * head->records;
		if (size < len && calls_at(data + size, len - size, &next) && next.big == big)
			return true;
	}
	return false;
}

/* The records we can see are of known kinds, and time does not run backwards. */
static bool calls_plausible(const struct head *head, const uint8_t *data, size_t len)
{
	uint32_t last = 0;

	for (uint64_t i = 0; i < head->records && (i + 1) * CALL <= len; i++) {
		uint32_t flags = get32(data + i * CALL + 8, head->big);
		uint32_t kind = flags >> TIME_BITS, time = flags & TIME_MASK;

		if (kind > (head->old ? KIND_TEXT_BASE : KIND_ENTRY))
			return false;
		if (time < last && last - time < TIME_MASK / 2)
			return false;
		last = time;
	}
	return true;
}

static int uboot_probe(const uint8_t *head, size_t len)
{
	size_t size;
	struct head h;

	if (functions_at(head, len, &h))
		return 64;
	if (!calls_at(head, len, &h))
		return 0;
	size = h.old ? OLD_HEAD : HEAD;
	if (!calls_plausible(&h, head + size, len - size))
		return 0;
	return h.old ? 48 : 64;
}

static int uboot_open(struct reader *r)
{
	size_t have;
	const uint8_t *data = in_peek(r->in, LIST_MAX, &have);
	struct head head;

	if (functions_at(data, have, &head))
		in_skip(r->in, HEAD + FUNCTION * head.records);
	else if (!calls_at(data, have, &head))
		return err_at(&r->err, ERR_INPUT, r->in->path, 0,
			      "no header of a U-Boot call trace found");
	return 0;
}

/* The next chunk of calls. U-Boot never wrote to the space between and after chunks. */
static bool find_chunk(struct reader *r)
{
	struct uboot *u = r->priv;
	uint64_t start = in_offset(r->in);
	struct head head;
	const uint8_t *data;
	size_t have;

	while (data = in_peek(r->in, HEAD, &have), have && !calls_at(data, have, &head))
		in_skip(r->in, have < 4 ? have : 4);
	if (in_offset(r->in) > start)
		log_note("%s: byte %" PRIu64 ": skipped %" PRIu64 " bytes without calls",
			 r->in->path, start, in_offset(r->in) - start);
	if (!have)
		return false;
	u->big = head.big;
	u->old = head.old;
	u->base = head.base;
	u->left = u->calls = head.records;
	in_skip(r->in, head.old ? OLD_HEAD : HEAD);
	return true;
}

static uint64_t unwrap(struct uboot *u, uint32_t time)
{
	if (time < u->last_time && u->last_time - time > TIME_MASK / 2)
		u->wraps++;
	u->last_time = time;
	return (u->wraps << TIME_BITS | time) * 1000;
}

static void tell(struct uboot *u, const uint8_t *data, uint32_t flags, struct event *ev)
{
	uint32_t function = get32(data, u->big), caller = get32(data + 4, u->big);

	ev->kind = EVENT_CALL;
	ev->time = unwrap(u, flags & TIME_MASK);
	ev->cpu = 0;
	ev->call = (struct event_call){
		.function = u->base + function + (u->old ? OLD_GRAIN : GRAIN) - 1,
		.caller = caller && caller < FARTHEST ? u->base + caller : 0,
		.context = IP_KERNEL,
		.leave = flags >> TIME_BITS == KIND_EXIT,
	};
}

static int cut_short(struct reader *r, struct event *ev, size_t rest)
{
	struct uboot *u = r->priv;
	uint64_t offset = in_offset(r->in), left = u->left;

	in_skip(r->in, rest);
	u->left = 0;
	return reader_damage(r, ev, offset, left, rest,
			     "truncated: %" PRIu64 " of %" PRIu64 " calls are missing", left,
			     u->calls);
}

static int uboot_next(struct reader *r, struct event *ev)
{
	struct uboot *u = r->priv;

	if (bare_tell(&u->bare, NULL, ev))
		return 1;
	while (u->left || find_chunk(r)) {
		uint64_t offset = in_offset(r->in);
		uint32_t flags, kind;
		size_t have;
		const uint8_t *data = in_peek(r->in, CALL, &have);

		if (!u->left)
			continue;
		if (have < CALL)
			return cut_short(r, ev, have);
		u->left--;
		flags = get32(data + 8, u->big);
		kind = flags >> TIME_BITS;
		if (kind == KIND_TEXT_BASE && u->old) {
			/* U-Boot scaled it like the address of a function. */
			u->base = get32(data, u->big) / OLD_GRAIN;
			in_skip(r->in, CALL);
			continue;
		}
		if (kind <= KIND_ENTRY)
			tell(u, data, flags, ev);
		in_skip(r->in, CALL);
		return kind <= KIND_ENTRY ? 1
					  : reader_damage(r, ev, offset, 1, CALL,
							  "unknown record kind %" PRIu32, kind);
	}
	return 0;
}

const struct reader_ops read_uboot_trace = {
	.name = "uboot-trace",
	.about = "U-Boot trace, the buffer that trace calls saves",
	.probe = uboot_probe,
	.header = true,
	.priv_size = sizeof(struct uboot),
	.open = uboot_open,
	.next = uboot_next,
};
