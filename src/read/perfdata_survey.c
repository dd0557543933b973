// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_survey: the first reading of a file with Intel PT, for what a decoder has to know: see perfdata_pt.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/spool.h"
#include "read/perfdata_pt.h"

/* Whether the trace of a compressed sample may go to a temporary file. */
static bool may_spool(struct reader *r, const struct record *rec, uint64_t len)
{
	struct perfdata *p = r->priv;
	uint64_t given = 0;

	if (p->spool_full)
		return false;
	for (size_t i = 0; i < p->nr_streams; i++)
		given += in_given(p->survey_of[i].in);
	if (!spool_is_bomb(given, p->spooled + len)) {
		p->spooled += len;
		return true;
	}
	p->spool_full = true;
	reader_missing(r,
		       "%s: byte %" PRIu64
		       ": the traces in compressed samples are more than %d times as large as the "
		       "file: ignoring the rest of them",
		       r->in->path, rec->offset, SPOOL_BOMB_RATIO);
	return false;
}

int perfdata_survey_sample(struct reader *r, const struct record *rec)
{
	struct perfdata *p = r->priv;
	struct event ev = { .cpu = NO_CPU, .time = NO_TIME, .pid = NO_TASK, .tid = NO_TASK };
	struct sample_trace trace = sample_trace(p, rec, &ev);
	struct trace_part part = { .len = trace.len };

	if (ev.time != NO_TIME && ev.time > p->s->newest)
		p->s->newest = ev.time;
	if (!trace.bytes)
		return 0;
	if (rec->packed) {
		if (!may_spool(r, rec, trace.len))
			return 0;
	} else {
		part.in = p->survey_of[p->s - p->streams].in;
		part.file_offset = rec->offset + (uint64_t)(trace.bytes - rec->data);
	}
	return perfdata_pt_add_sample(p->pt, &part, trace.bytes, &ev, &r->err);
}

/* A thread that is traced runs on a cpu. */
static void survey_start(struct perfdata *p, struct cursor *c, struct event *ev)
{
	ev->pid = cursor_u32(c);
	ev->tid = cursor_u32(c);
	if (!c->bad)
		perfdata_pt_add_switch(p->pt, ev);
}

static void survey_poke(struct perfdata *p, struct cursor *c, const struct event *ev)
{
	struct ipt_poke poke;
	const uint8_t *bytes = record_poke(c, &poke);

	if (bytes)
		perfdata_pt_add_poke(p->pt, ev->time, poke, bytes);
}

bool perfdata_survey_record(struct perfdata *p)
{
	struct record rec = p->now;
	struct cursor c = record_body(p, &rec);
	struct event ev = { .cpu = NO_CPU, .time = NO_TIME };

	switch (rec.type) {
	case PERF_RECORD_CALLCHAIN_DEFERRED: break;
	case PERF_RECORD_ITRACE_START:
		record_trailer(p, &rec, &ev);
		survey_start(p, &c, &ev);
		break;
	case PERF_RECORD_TEXT_POKE:
		record_trailer(p, &rec, &ev);
		survey_poke(p, &c, &ev);
		break;
	default: return false;
	}
	p->now.size = 0;
	return true;
}

void perfdata_close_stream(struct stream *s)
{
	if (s->unpack)
		s->unpack->ops->close(s->unpack);
	buf_release(&s->packed);
	buf_release(&s->plain);
	if (s->in == &s->own)
		in_close(&s->own);
}

/* A copy of the state at this point, with streams of its own and nothing that waits. */
static int clone_streams(struct reader *r, const struct perfdata *from, struct perfdata *to)
{
	to->streams = xcalloc(from->nr_streams, sizeof(*to->streams));
	to->s = to->streams;
	to->survey_of = from->streams;
	for (size_t i = 0; i < from->nr_streams; i++) {
		struct stream *s = &to->streams[i];
		uint64_t start =
			i || !from->data_start ? in_offset(from->streams[i].in) : from->data_start;
		uint64_t length;

		if (in_length(from->streams[i].in, &length, &r->err) < 0 ||
		    in_clone(&s->own, from->streams[i].in, (size_t)1 << 20, &r->err) < 0)
			return -1;
		s->in = &s->own;
		s->data_end = from->streams[i].data_end;
		if (in_seek(s->in, start, &r->err) < 0)
			return -1;
	}
	return 0;
}

int perfdata_survey(struct reader *r)
{
	struct perfdata *p = r->priv, first = *p;
	struct reader survey = *r;
	struct event ev;
	int ret;

	p->surveyed = first.surveyed = true;
	memset(&first.order, 0, sizeof(first.order));
	memset(&first.scratch, 0, sizeof(first.scratch));
	memset(&first.text, 0, sizeof(first.text));
	sample_begin(&first);
	ret = clone_streams(r, p, &first);
	survey.priv = &first;
	survey.in = first.streams->in;
	survey.partial = false;
	survey.nr_damaged = UINT32_MAX; /* the second reading reports it */
	do {
		ev = (struct event){
			.time = NO_TIME, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
		};
		ret = ret < 0 ? ret : perfdata_next_event(&survey, &ev);
		if (ret > 0)
			perfdata_pt_add_event(p->pt, &ev);
	} while (ret > 0);
	order_release(&first.order);
	buf_release(&first.scratch);
	buf_release(&first.text);
	sample_release(&first);
	for (size_t i = 0; i < first.nr_streams; i++)
		perfdata_close_stream(&first.streams[i]);
	free(first.streams);
	r->partial |= survey.partial;
	if (ret < 0 && !r->err.code)
		r->err = survey.err;
	if (ret == 0)
		perfdata_pt_start(p->pt);
	return ret;
}
