// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kphistogram: reads the oldest kpdata of Akaros, a text table. Each row has 64 bytes: the address of
 * 8 bytes of kernel text, the function (right-aligned, cut to 29 characters) and its ticks; both
 * numbers are hexadecimal:
 *
 *	ffffffffc2000000                         Total 00000000000003e8
 *
 * The first row has the total and the second the ticks outside the kernel; they replace the first two
 * buckets. Rows become samples with names, which need no binary, or with addresses if the user gives
 * the kernel. A tick is a sample. Ticks that are in the total but in no row belong to those two
 * buckets or to damaged rows, and count as lost.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "format.h"
#include "model/frame.h"
#include "read/bare.h"

#define ROW 64
#define NAME 17
#define NAME_LEN 29
#define TICKS 47
#define NUMBER 16

struct kphistogram {
	const char *event_name; /* --event-name; NULL: not given */
	unsigned preamble;	/* number of preamble events emitted */
	uint64_t row;
	uint64_t total, sum; /* ticks in the first row and in all other rows */
	bool has_total;
	uint64_t frame; /* frame handle or address of the sample */
};

static bool parse_row(const char *row, uint64_t *addr, uint64_t *ticks)
{
	return row[NUMBER] == ' ' && row[TICKS - 1] == ' ' && row[ROW - 1] == '\n' &&
	       text_hex(row, NUMBER, addr) && text_hex(row + TICKS, NUMBER, ticks) &&
	       !memchr(row + NAME, '\n', NAME_LEN) && !memchr(row + NAME, '\0', NAME_LEN);
}

/* The name without leading blanks; it may contain others. */
static const char *name_of(const char *row, size_t *len)
{
	size_t at = NAME;

	while (at < NAME + NAME_LEN && row[at] == ' ')
		at++;
	*len = NAME + NAME_LEN - at;
	return row + at;
}

static bool is_named(const char *row, const char *text)
{
	size_t len;
	const char *name = name_of(row, &len);

	return len == strlen(text) && !memcmp(name, text, len);
}

static int kphistogram_probe(const uint8_t *head, size_t len)
{
	uint64_t addr, ticks;
	const uint8_t *newline;
	size_t first = 0;
	int nr = 0;

	/* If the first row is damaged, folded stacks would match: the others are like them, too. */
	while (len - first >= ROW && !parse_row((const char *)head + first, &addr, &ticks)) {
		newline = memchr(head + first, '\n', len - first);
		first = newline ? (size_t)(newline - head) + 1 : len;
	}
	for (size_t at = first; at + ROW <= len && nr < 8; at += ROW, nr++) {
		if (!parse_row((const char *)head + at, &addr, &ticks))
			return nr > 1 ? 24 : 0;
	}
	return nr && is_named((const char *)head, "Total") ? 72 + 2 * nr : nr > 1 ? 16 * nr : 0;
}

static size_t row_size(const uint8_t *data, size_t len)
{
	uint64_t addr, ticks;

	if (len < ROW)
		return READER_CUT;
	return parse_row((const char *)data, &addr, &ticks) ? ROW : 0;
}

static int kphistogram_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, 2, row_size);
}

static void sample(struct kphistogram *p, uint64_t frame, uint64_t context, uint64_t ticks,
		   struct event *ev)
{
	p->frame = frame;
	if (context != IP_NAMED)
		ev->pid = ev->tid = 0;
	ev->kind = EVENT_SAMPLE;
	ev->sample = (struct event_sample){
		.ips = &p->frame,
		.nr = 1,
		.source = 1,
		.weight = ticks,
		.count = ticks,
		.context = context,
	};
}

static uint32_t named(struct reader *r, const char *name, size_t len, bool kernel)
{
	struct strtab *strings = r->frames->strings;
	uint32_t binary = kernel ? str_intern_z(strings, "[kernel]") : 0;

	return frame_named(r->frames, str_intern(strings, name, len), binary,
			   kernel ? FRAME_KERNEL : 0);
}

/* A bucket without a function is named after its address. */
static void bucket(struct reader *r, const char *row, uint64_t addr, uint64_t ticks,
		   struct event *ev)
{
	char text[24];
	size_t len;
	const char *name = name_of(row, &len);

	if (r->options->kernel) {
		sample(r->priv, addr, IP_KERNEL, ticks, ev);
		return;
	}
	if (!len) {
		len = (size_t)snprintf(text, sizeof(text), "0x%" PRIx64, addr);
		name = text;
	}
	sample(r->priv, named(r, name, len, true), IP_NAMED, ticks, ev);
}

static void user(struct reader *r, uint64_t ticks, struct event *ev)
{
	if (r->options->kernel)
		sample(r->priv, 0, IP_USER, ticks, ev);
	else
		sample(r->priv, named(r, "[user]", 6, false), IP_NAMED, ticks, ev);
}

/* Returns true if the row yields an event. */
static bool take_row(struct reader *r, const char *row, uint64_t addr, uint64_t ticks,
		     struct event *ev)
{
	struct kphistogram *p = r->priv;
	uint64_t nr = p->row++;

	if (nr == 0 && is_named(row, "Total")) {
		p->has_total = true;
		p->total = ticks;
		return false;
	}
	if (!ticks || ticks > UINT64_MAX - p->sum)
		return false;
	p->sum += ticks;
	if (nr == 1 && is_named(row, "User"))
		user(r, ticks, ev);
	else
		bucket(r, row, addr, ticks, ev);
	return true;
}

/* Skips to the next newline, or to the end: rows resume there. */
static int damaged(struct reader *r, struct event *ev)
{
	uint64_t offset = in_offset(r->in), skipped;
	const char *line;
	size_t len;

	((struct kphistogram *)r->priv)->row++;
	text_line(r->in, &line, &len);
	skipped = in_offset(r->in) - offset;
	return reader_damage(r, ev, offset, 0, skipped, "invalid histogram row");
}

static int finish(struct kphistogram *p, struct event *ev)
{
	if (!p->has_total || p->sum >= p->total)
		return 0;
	p->has_total = false;
	ev->kind = EVENT_LOST;
	ev->lost = (struct event_lost){ .count = p->total - p->sum };
	return 1;
}

static bool preamble_event(struct reader *r, struct event *ev)
{
	struct kphistogram *p = r->priv;

	if (p->preamble && !r->options->kernel)
		return false;
	switch (p->preamble++) {
	case 0:
		ev->kind = EVENT_SOURCE;
		ev->source = (struct event_source){
			.id = 1, .type = SOURCE_SOFTWARE, .config = 9, .unit = "ticks"
		};
		ev->source.name = p->event_name ? p->event_name : "timer";
		return true;
	case 1: bare_map(ev); return true;
	case 2:
		ev->kind = EVENT_COMM;
		ev->pid = ev->tid = 0;
		ev->comm.comm = "akaros";
		return true;
	default: return false;
	}
}

static int kphistogram_next(struct reader *r, struct event *ev)
{
	struct kphistogram *p = r->priv;

	if (preamble_event(r, ev))
		return 1;
	for (;;) {
		uint64_t addr, ticks;
		size_t have;
		const char *row = (const char *)in_peek(r->in, ROW, &have);
		bool made;

		if (!have)
			return finish(p, ev);
		if (have < ROW || !parse_row(row, &addr, &ticks))
			return damaged(r, ev);
		made = take_row(r, row, addr, ticks, ev);
		in_skip(r->in, ROW);
		if (made)
			return 1;
	}
}

const struct reader_ops read_kphistogram = {
	.name = "kphistogram",
	.about = "Akaros kpdata up to 2015, a text table",
	.probe = kphistogram_probe,
	.search = kphistogram_search,
	.options = OPTION_USES({ &event_name_table, offsetof(struct kphistogram, event_name) }),
	.priv_size = sizeof(struct kphistogram),
	.next = kphistogram_next,
};
