// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpdata_live: a pipe that is still being written, for somebody who watches it (reader->live_view). The first
 * FIRST_LOOK bytes decide on version and leaf, and records come out in the order of the stream: each cpu's are in
 * order, but those of other cpus may be up to a block away.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "read/kpdata_parts.h"

/* Bytes of the pipe from its current place on. Sets `starved` if the writer has not written them yet. */
static const uint8_t *peek_pipe(struct kp_bytes *bytes, uint64_t offset, size_t want, size_t *have)
{
	struct active *a = bytes->ctx;
	struct in *in = a->reader->in;
	size_t at = (size_t)(offset - in_offset(in));
	const uint8_t *data;

	a->starved |= !in_ready(in, at + want);
	data = in_peek(in, 0, have);
	bytes->window = data;
	bytes->window_offset = in_offset(in);
	bytes->window_len = *have;
	*have = *have > at ? *have - at : 0;
	return data + at;
}

void kp_live_open(struct reader *r)
{
	struct kpdata *p = r->priv;

	p->live = xcalloc(1, sizeof(*p->live));
	p->live->bytes = (struct kp_bytes){ .peek = peek_pipe, .ctx = p->live };
	p->live->reader = r;
}

/* The head decides as a file would that ends there. */
static int scan_head(struct reader *r)
{
	struct kpdata *p = r->priv;
	struct in *in = r->in, head;
	uint64_t records;
	size_t have;
	const uint8_t *data = in_peek(in, 0, &have);

	in_open_memory(&head, in->path, data, have);
	r->in = &head;
	records = kp_scan(r);
	r->in = in;
	in_close(&head);
	p->live->scanned = true;
	p->has_kernel = p->has_kernel_task = true; /* they may follow */
	return records ? 0
		       : err_set(&r->err, ERR_INPUT, "%s: no kpdata record in the first %zu bytes",
				 in->path, have);
}

/* Parses the record or the damage at the current place. False: the writer has not written all of it. */
static bool parse(struct reader *r)
{
	struct kpdata *p = r->priv;
	struct active *a = p->live;
	struct kp_step before = a->step;

	a->starved = false;
	a->bytes.window_len = 0;
	kp_step(&a->bytes, in_offset(r->in), p->version, false, &a->step);
	if (a->starved)
		a->step = before;
	return !a->starved;
}

static int emit(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct place place = { p->live_time, in_offset(r->in), p->live };
	const struct kp_step *step = &p->live->step;
	const struct kp_record *record = &step->record;

	if (step->what == KP_GOOD) {
		bool trace = record->type == KP_KERNEL || record->type == KP_USER;

		if (trace && kp_note_source(r, record->info)) {
			ev->kind = EVENT_SOURCE;
			ev->source = p->sources[p->nr_sources - 1].event;
			return 1;
		}
		p->live_time = record->time;
		kp_record_event(r, &place, ev);
		return 1;
	}
	p->busy = true;
	ev->time = place.time;
	return reader_damage(r, ev, place.offset, 1, step->bytes, "%s; skipped %" PRIu64 " byte%s",
			     step->why, step->bytes, step->bytes == 1 ? "" : "s");
}

int kp_live_next(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct active *a = p->live;

	if (!a->scanned) {
		if (!in_ready(r->in, FIRST_LOOK))
			return READER_AGAIN;
		if (scan_head(r) < 0)
			return -1;
	}
	if (p->preamble < PREAMBLE_DONE && kp_preamble_event(r, ev))
		return 1;
	if (p->busy) {
		in_skip(r->in, a->step.bytes);
		p->busy = a->parsed = false;
	}
	if (!a->parsed && !parse(r))
		return READER_AGAIN;
	a->parsed = true;
	if (a->step.what != KP_END)
		return emit(r, ev);
	kp_warn_of_bare(r);
	return 0;
}
