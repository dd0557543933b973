// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata: what perf record writes to a file, a directory or a pipe, in either byte order. The
 * reader decompresses records, holds them in base/order until nothing older can come, and then
 * turns them into events.
 *
 * It skips records that kscope has no event for: THROTTLE, READ, NAMESPACES, CGROUP, BPF_EVENT,
 * TEXT_POKE and perf's own records about cpus and threads. It counts records of unknown type. If it decodes Intel
 * PT, it uses TEXT_POKE: these are changes of the kernel's code.
 */
#include "read/perfdata.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "pt/packet.h"
#include "read/perfdata_pt.h"

#define PLAIN_MAX ((size_t)256 << 10) /* room for four records of the maximum size */
#define AUX_PIECE ((size_t)64 << 10)
#define HEAD sizeof(struct perf_record)
#define RESYNC_WINDOW ((size_t)1 << 20)

static int perfdata_probe(const uint8_t *head, size_t len)
{
	if (len < 8)
		return 0;
	return !memcmp(head, PERF_MAGIC, 8) || !memcmp(head, "2ELIFREP", 8) ||
			       !memcmp(head, "PERFFILE", 8)
		       ? 64
		       : 0;
}

struct record record_at(const struct perfdata *p, const uint8_t *data, uint64_t offset)
{
	struct cursor c = { data, data + HEAD, p->swap, false };
	struct record rec = { .data = data, .offset = offset };

	rec.type = cursor_u32(&c);
	rec.misc = cursor_u16(&c);
	rec.size = cursor_u16(&c);
	return rec;
}

static int perfdata_open(struct reader *r)
{
	return header_read(r);
}

/* ---- compressed records ---- */

static bool is_packed(const struct record *rec)
{
	return rec->type == PERF_RECORD_COMPRESSED || rec->type == PERF_RECORD_COMPRESSED2;
}

/* The next decompressed record. NULL: read the next record of the file. */
static const uint8_t *next_plain(const struct perfdata *p, struct stream *s)
{
	while (s->unpack) {
		size_t have = s->plain.len - s->plain_at, src, dst;
		const uint8_t *at = have ? (uint8_t *)s->plain.data + s->plain_at : NULL;
		int ret;

		if (have >= HEAD) {
			struct record rec = record_at(p, at, 0);

			if (have >= rec.size)
				return at;
		}
		/* If the room was full, zstd may have read all and hold a part of what is in it. */
		if ((s->packed_at == s->packed.len && !s->was_full) || s->packed_bad)
			return NULL;
		if (s->plain_at) {
			if (have)
				memmove(s->plain.data, at, have);
			s->plain.len = have;
			s->plain_at = 0;
		}
		buf_reserve(&s->plain, PLAIN_MAX);
		src = s->packed.len - s->packed_at;
		dst = PLAIN_MAX;
		ret = s->unpack->ops->step(s->unpack, (uint8_t *)s->packed.data + s->packed_at,
					   &src, (uint8_t *)s->plain.data + s->plain.len, &dst);
		s->packed_at += src;
		s->plain.len += dst;
		s->packed_bad = ret < 0;
		s->was_full = dst == PLAIN_MAX;
		if (ret >= 0 && !src && !dst)
			s->packed_at = s->packed.len;
	}
	return NULL;
}

/* 0: started, -1: kscope has no zstd, or the record is damaged */
static int start_unpacking(struct perfdata *p, const struct record *rec)
{
	struct stream *s = p->s;
	struct cursor c = record_body(p, rec);
	uint64_t len = (uint64_t)(c.end - c.at);

	if (rec->type == PERF_RECORD_COMPRESSED2)
		len = cursor_u64(&c);
	if (len > (uint64_t)(c.end - c.at))
		return -1;
	if (!s->unpack)
		s->unpack = unpack_zstd.open();
	if (!s->unpack)
		return -1;
	buf_reserve(&s->plain, PLAIN_MAX);
	buf_clear(&s->packed);
	buf_add(&s->packed, c.at, (size_t)len);
	s->packed_at = 0;
	return 0;
}

/* ---- records from the file ---- */

static const char *aux_kind(uint32_t type)
{
	switch (type) {
	case PERF_AUXTRACE_INTEL_PT: return "intel_pt";
	case PERF_AUXTRACE_INTEL_BTS: return "intel_bts";
	case PERF_AUXTRACE_CS_ETM: return "cs_etm";
	case PERF_AUXTRACE_ARM_SPE: return "arm_spe";
	case PERF_AUXTRACE_S390_CPUMSF: return "s390_cpumsf";
	case PERF_AUXTRACE_HISI_PTT: return "hisi_ptt";
	}
	return "unknown";
}

/* The trace data follows the record and does not count in its size. */
static bool begin_aux(struct perfdata *p, const struct record *rec)
{
	struct cursor c = record_body(p, rec);

	p->aux_left = cursor_u64(&c);
	p->aux_offset = cursor_u64(&c);
	cursor_u64(&c); /* reference */
	cursor_u32(&c); /* index */
	p->aux_tid = cursor_u32(&c);
	p->aux_cpu = cursor_u32(&c);
	if (c.bad)
		p->aux_left = 0;
	return !c.bad;
}

/* Intel PT is decoded: its bytes are not an event. */
static int skip_aux(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	uint64_t left = p->aux_left, at = in_offset(r->in), skipped = in_skip(r->in, left);

	p->aux_left = 0;
	if (p->survey_of) {
		size_t stream = (size_t)(p->s - p->streams);

		/* Only what is there: a damaged record may claim any length. */
		perfdata_pt_add_trace(p->pt,
				      &(struct trace_part){ .in = p->survey_of[stream].in,
							    .file_offset = at,
							    .len = skipped,
							    .offset = p->aux_offset },
				      p->aux_tid, p->aux_cpu);
		return 0;
	}
	if (skipped == left)
		return 0;
	return reader_damage(r, ev, in_offset(r->in), 0, left - skipped,
			     "truncated: %" PRIu64 " bytes of hardware trace are missing",
			     left - skipped);
}

static int next_aux(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	size_t have;
	const uint8_t *data;
	uint64_t left = p->aux_left;

	/* The caller is done with the previous piece. */
	in_skip(r->in, p->aux_at);
	data = in_peek(r->in, left < AUX_PIECE ? (size_t)left : AUX_PIECE, &have);
	p->aux_at = have < left ? have : left;
	if (p->aux_at > AUX_PIECE)
		p->aux_at = AUX_PIECE;
	if (!p->aux_at) {
		p->aux_left = 0;
		return reader_damage(r, ev, in_offset(r->in), 0, left,
				     "truncated: %" PRIu64 " bytes of hardware trace are missing",
				     left);
	}
	ev->kind = EVENT_AUX;
	ev->cpu = p->aux_cpu;
	ev->pid = ev->tid = p->aux_tid; /* the record has only the tid */
	ev->aux = (struct event_aux){
		.kind = p->aux_kind ? p->aux_kind : "unknown",
		.data = data,
		.len = p->aux_at,
		.offset = p->aux_offset,
	};
	p->aux_left -= p->aux_at;
	p->aux_offset += p->aux_at;
	return 1;
}

/*
 * The formats of tracepoints follow the record, too, or are inside it if simpleperf wrote it. Returns how many bytes
 * follow; UINT64_MAX: damaged.
 */
static uint64_t behind_tracing(const struct perfdata *p, const struct record *rec)
{
	struct cursor c = record_body(p, rec);
	uint64_t len = cursor_u32(&c), within = (uint64_t)(c.end - c.at);

	if (c.bad || (within >= 8 && len > within))
		return UINT64_MAX;
	return within >= 8 ? 0 : (len + 7) & ~(uint64_t)7;
}

static bool tracing_data(struct perfdata *p, struct reader *r, const struct record *rec)
{
	struct cursor c = record_body(p, rec);
	uint64_t len = cursor_u32(&c), padded = behind_tracing(p, rec);
	size_t have = 0;
	const uint8_t *data = NULL;
	bool good = true;

	if (padded == UINT64_MAX)
		return false;
	if (!padded && len)
		return p->tracing.len || tracing_take(p, c.at, (size_t)len);
	if (padded <= IN_MAX_PEEK)
		data = in_peek(r->in, (size_t)padded, &have);
	if (have >= padded && len && !p->tracing.len)
		good = tracing_take(p, data, (size_t)len);
	return in_skip(r->in, padded) == padded && good;
}

static bool skip_tracing_data(const struct perfdata *p, struct reader *r, const struct record *rec)
{
	uint64_t padded = behind_tracing(p, rec);

	return padded != UINT64_MAX && in_skip(r->in, padded) == padded;
}

static int tell_tracing(struct perfdata *p, struct event *ev)
{
	p->told_tracing = true;
	ev->kind = EVENT_AUX;
	ev->aux = (struct event_aux){
		.kind = "tracing_data",
		.data = (const uint8_t *)p->tracing.data,
		.len = p->tracing.len,
	};
	return 1;
}

/* 0: Intel PT is decoded from now on, or need not be; -1: the record is damaged. */
static int start_pt(struct reader *r, struct cursor info)
{
	struct perfdata *p = r->priv;

	if (!r->decodes || p->pt || strcmp(p->aux_kind, "intel_pt") != 0)
		return 0;
	if (!ipt_packet_available()) {
		reader_missing(r,
			       "%s: kscope was built without libipt or Zydis: it cannot decode "
			       "Intel PT",
			       r->in->path);
		return 0;
	}
	p->pt = perfdata_pt_new(r, info);
	return p->pt ? 0 : -1;
}

/* perf's own records. -1: damaged. */
static int user_record(struct reader *r, const struct record *rec)
{
	struct perfdata *p = r->priv;
	struct cursor c = record_body(p, rec);

	/* The first reading shares the tables of the second. */
	if (p->survey_of && rec->type == PERF_RECORD_HEADER_TRACING_DATA)
		return skip_tracing_data(p, r, rec) ? 0 : -1;
	if (p->survey_of && rec->type != PERF_RECORD_FINISHED_ROUND &&
	    rec->type != PERF_RECORD_AUXTRACE && !is_packed(rec))
		return 0;
	switch (rec->type) {
	case PERF_RECORD_HEADER_ATTR: return header_attr_record(p, rec) ? 0 : -1;
	case PERF_RECORD_EVENT_UPDATE: return header_update_record(p, rec) ? 0 : -1;
	case PERF_RECORD_HEADER_FEATURE: return header_feature_record(r, rec) ? 0 : -1;
	case PERF_RECORD_HEADER_BUILD_ID: return header_build_id_record(p, rec) ? 0 : -1;
	case PERF_RECORD_HEADER_TRACING_DATA: return tracing_data(p, r, rec) ? 0 : -1;
	case PERF_RECORD_FINISHED_ROUND:
		/* A round is about its own stream only. */
		if (p->nr_streams == 1)
			order_round(&p->order);
		return 0;
	case PERF_RECORD_AUXTRACE_INFO:
		p->aux_kind = aux_kind(cursor_u32(&c));
		return c.bad ? -1 : start_pt(r, c);
	case PERF_RECORD_AUXTRACE: return begin_aux(p, rec) ? 0 : -1;
	case PERF_RECORD_COMPRESSED:
	case PERF_RECORD_COMPRESSED2: return start_unpacking(p, rec);
	}
	return simple_record(p, rec) ? 0 : -1;
}

/* Queues a record that has a time; any other becomes p->now at once, as an aligned copy. */
static void kernel_record(struct perfdata *p, const struct record *rec)
{
	uint64_t time = record_time(p, rec);

	if (time && time != NO_TIME) {
		order_put(&p->order, time, 0, rec->offset, rec->data, rec->size);
		if (time > p->s->newest)
			p->s->newest = time;
		return;
	}
	buf_clear(&p->scratch);
	buf_add(&p->scratch, rec->data, rec->size);
	p->now = *rec;
	p->now.data = (uint8_t *)p->scratch.data;
}

static int bad_record(struct reader *r, struct event *ev, const struct record *rec)
{
	if (is_packed(rec) && !unpack_zstd.step) {
		return err_at(&r->err, ERR_INPUT, r->in->path, rec->offset,
			      "compressed records, but kscope was built without zstd");
	}
	return reader_damage(r, ev, rec->offset, 0, rec->size, "damaged record of type %" PRIu32,
			     rec->type);
}

/* 1: an event, 0: call again, -1: r->err */
static int take_record(struct reader *r, const struct record *rec, struct event *ev)
{
	struct perfdata *p = r->priv;

	if (!record_type_known(rec->type)) {
		if (!p->unknown++)
			p->unknown_type = rec->type;
		return 0;
	}
	if (p->survey_of && rec->type == PERF_RECORD_SAMPLE)
		return perfdata_survey_sample(r, rec);
	if (rec->type < PERF_RECORD_HEADER_ATTR) {
		kernel_record(p, rec);
		return 0;
	}
	return user_record(r, rec) < 0 ? bad_record(r, ev, rec) : 0;
}

/* Ends the current stream, and the whole input if it was the last. */
static int end_of_data(struct reader *r)
{
	struct perfdata *p = r->priv;

	p->s->ended = true;
	if (p->s->in == &p->s->own && p->s->in->err.code) {
		log_warn("%s", p->s->in->err.msg);
		r->nr_damaged++;
	}
	for (size_t i = 0; i < p->nr_streams; i++) {
		if (!p->streams[i].ended)
			return 0;
	}
	p->ended = true;
	order_finish(&p->order);
	if (p->unknown && !p->survey_of)
		log_warn("%s: skipped %" PRIu64 " records of unknown type (the first is type "
			 "%" PRIu32 ")",
			 r->in->path, p->unknown, p->unknown_type);
	return 0;
}

/* Skips to the next place where records begin, behind the current one. False: there is none. */
static bool find_record(struct reader *r)
{
	const struct perfdata *p = r->priv;

	in_skip(r->in, 1);
	for (;;) {
		uint64_t left = p->s->data_end - in_offset(r->in);
		size_t have, at;
		const uint8_t *data = in_peek(r->in, RESYNC_WINDOW, &have);
		bool ended = have < RESYNC_WINDOW, found;

		if (have >= left) {
			have = (size_t)left;
			ended = true;
		} else if (have > RESYNC_WINDOW) {
			have = RESYNC_WINDOW;
		}
		found = resync_search(p, data, have, ended, &at);
		in_skip(r->in, at);
		if (found || ended)
			return found;
	}
}

static int lose_up_to_here(struct reader *r, struct event *ev, uint64_t offset, const char *why)
{
	uint64_t lost = in_offset(r->in) - offset;

	return reader_damage(r, ev, offset, 0, lost, "%s; skipped %" PRIu64 " bytes", why, lost);
}

/* The end of a record is unknown: all bytes up to the next valid records are lost. */
static int lose_some(struct reader *r, struct event *ev, uint64_t offset, const char *why)
{
	struct perfdata *p = r->priv;
	bool found = in_offset(r->in) == offset && find_record(r);
	uint64_t end = p->s->data_end, rest;

	if (found)
		return lose_up_to_here(r, ev, offset, why);
	in_skip(r->in, end == UINT64_MAX ? end : end - in_offset(r->in));
	rest = in_offset(r->in) - offset;
	end_of_data(r);
	return reader_damage(r, ev, offset, 0, rest, "%s; the last %" PRIu64 " bytes are lost", why,
			     rest);
}

static int plain_record(struct reader *r, const uint8_t *data, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct record rec = record_at(p, data, in_offset(r->in));

	if (rec.size < HEAD) {
		p->s->packed_bad = true;
		p->s->plain.len = p->s->plain_at = p->s->packed.len = 0;
		return reader_damage(r, ev, rec.offset, 0, 0,
				     "record in compressed data has size %u; skipping all "
				     "compressed data from here on",
				     rec.size);
	}
	rec.packed = true;
	p->s->plain_at += rec.size;
	/* perf never compresses these: their data could not follow them. */
	if (is_packed(&rec) || rec.type == PERF_RECORD_AUXTRACE ||
	    rec.type == PERF_RECORD_HEADER_TRACING_DATA)
		return bad_record(r, ev, &rec);
	return take_record(r, &rec, ev);
}

static int lose_packed(struct reader *r, const struct record *rec, struct event *ev)
{
	ev->kind = EVENT_LOST;
	ev->lost = (struct event_lost){ .bytes = rec->size, .damage = true };
	in_skip(r->in, rec->size);
	return 1;
}

/* After AUXTRACE come records instead of a trace. Its length would hide them. */
static bool lacks_trace(struct reader *r, struct record *rec)
{
	const struct perfdata *p = r->priv;
	uint64_t left = p->s->data_end - rec->offset;
	struct cursor c = record_body(p, rec);
	size_t have;

	/* In a stream, they may not be there yet. */
	if (!cursor_u64(&c) || p->s->data_end == UINT64_MAX)
		return false;
	rec->data = in_peek(r->in, rec->size + AUX_PIECE, &have);
	if (have > left)
		have = (size_t)left;
	return resync_follows(p, rec->data + rec->size, have - rec->size);
}

/* A complete record. Skip it only after use, so that it stays in the window. */
static int file_record(struct reader *r, struct record *rec, struct event *ev)
{
	struct perfdata *p = r->priv;
	int ret;

	if (p->s->packed_bad && is_packed(rec))
		return lose_packed(r, rec, ev);
	if (rec->type == PERF_RECORD_HEADER_TRACING_DATA) {
		/* Its data has to be skipped while the record is in use: take a copy. */
		buf_clear(&p->scratch);
		buf_add(&p->scratch, rec->data, rec->size);
		rec->data = (uint8_t *)p->scratch.data;
		in_skip(r->in, rec->size);
		return take_record(r, rec, ev);
	}
	if (rec->type == PERF_RECORD_AUXTRACE && lacks_trace(r, rec))
		ret = bad_record(r, ev, rec);
	else
		ret = take_record(r, rec, ev);
	in_skip(r->in, rec->size);
	return ret;
}

/* With several streams, read the one that is the furthest behind in time. */
static void choose_stream(struct reader *r)
{
	struct perfdata *p = r->priv;
	struct stream *best = NULL;

	for (size_t i = 0; i < p->nr_streams; i++) {
		struct stream *s = &p->streams[i];

		if (!s->ended && (!best || s->newest < best->newest))
			best = s;
	}
	p->s = best;
	r->in = best->in;
}

/* 1: an event, 0: call again, -1: r->err */
static int read_record(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct stream *s = p->s;
	const uint8_t *data = s->packed_bad ? NULL : next_plain(p, s);
	uint64_t offset = in_offset(r->in), left;
	struct record rec;
	size_t have, hidden;

	if (data)
		return plain_record(r, data, ev);
	if (s->packed_bad && s->packed.len) {
		s->packed.len = 0;
		return reader_damage(r, ev, offset, 0, 0,
				     "damaged compressed data; skipping all compressed data from "
				     "here on");
	}
	if (offset >= s->data_end)
		return end_of_data(r);
	left = s->data_end - offset;
	data = in_peek(r->in, HEAD, &have);
	if (have > left)
		have = (size_t)left;
	if (!have && s->data_end == UINT64_MAX)
		return end_of_data(r);
	if (have < HEAD)
		return lose_some(r, ev, offset, "truncated record header");
	rec = record_at(p, data, offset);
	if (simple_type(rec.type) && rec.misc) {
		/* More than 64 KiB: symbols, which we do not need. */
		if (simple_size(&rec) > left ||
		    in_skip(r->in, simple_size(&rec)) < simple_size(&rec))
			return lose_some(r, ev, offset, "truncated record");
		return 0;
	}
	if (rec.size < HEAD)
		return lose_some(r, ev, offset, "record shorter than its header");
	if (!resync_type(rec.type))
		return lose_some(r, ev, offset, "not a record");
	/* Of a stream, the next record may not be there yet. */
	rec.data = in_peek(r->in, rec.size + (s->data_end == UINT64_MAX ? 0 : HEAD), &have);
	if (have < rec.size || left < rec.size)
		return lose_some(r, ev, offset, "truncated record");
	hidden = resync_hidden(p, &rec, have < left ? have : (size_t)left);
	if (hidden) {
		in_skip(r->in, hidden);
		return lose_up_to_here(r, ev, offset, "the size of the record is wrong");
	}
	return file_record(r, &rec, ev);
}

/* ---- events ---- */

static int tell_fact(struct perfdata *p, struct event *ev)
{
	const struct fact *fact = &p->facts[p->told_facts++];

	ev->kind = EVENT_META;
	ev->meta = (struct event_meta){ fact->key, fact->value };
	return 1;
}

static int tell_source(struct perfdata *p, struct event *ev)
{
	struct attr *attr = &p->attrs[p->told_attrs++];
	uint64_t type = attr->raw.sample_type;
	uint64_t chains = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER;

	name_event(p, attr);
	ev->kind = EVENT_SOURCE;
	ev->source = (struct event_source){
		.id = (uint32_t)p->told_attrs,
		.name = attr->name,
		.unit = attr->unit,
		.type = attr->raw.type,
		.config = attr->raw.config,
		.period = attr->raw.sample_period,
		.freq = attr->raw.flags & PERF_ATTR_FREQ,
		.lacks = (type & chains ? 0 : LACKS_CHAIN) |
			 (type & PERF_SAMPLE_TIME ? 0 : LACKS_TIME) |
			 (type & PERF_SAMPLE_CPU ? 0 : LACKS_CPU),
		.branches = type & PERF_SAMPLE_BRANCH_STACK,
		.branch_type = type & PERF_SAMPLE_BRANCH_STACK ? attr->raw.branch_sample_type : 0,
		.raw = type & PERF_SAMPLE_RAW,
	};
	return 1;
}

/* No record names the idle task: emit its comm before its first sample. */
static int tell_idle(struct perfdata *p, const struct event *sample, struct event *ev)
{
	p->told_idle = true;
	p->idle_sample = *sample;
	p->idle_waits = true;
	ev->kind = EVENT_COMM;
	ev->pid = ev->tid = 0;
	ev->comm = (struct event_comm){ .comm = "swapper" };
	return 1;
}

static int tell_now(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct record rec = p->now;
	struct event blank = *ev;
	int ret;

	p->now.size = 0;
	if (rec.type != PERF_RECORD_SAMPLE) {
		ret = record_event(r, &rec, ev);
		/* Other kernels have a named task with pid 0. */
		p->told_idle |= ret > 0 && ev->kind == EVENT_COMM && !ev->pid && !ev->tid;
		return ret;
	}
	ret = sample_event(r, &rec, ev);
	if (ret > 0 && ev->kind == EVENT_SAMPLE && !ev->pid && !ev->tid && !p->told_idle) {
		struct event sample = *ev;

		*ev = blank;
		return tell_idle(p, &sample, ev);
	}
	return ret;
}

/* The next event of a record that makes several. */
static int next_of_same(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	int ret = 0;

	if (p->idle_waits) {
		p->idle_waits = false;
		*ev = p->idle_sample;
		return 1;
	}
	if (p->at_read < p->nr_reads)
		ret = sample_next_read(p, ev);
	if (!ret && p->release_held)
		ret = sample_next_held(r, ev);
	if (!ret && p->aux_left)
		ret = p->pt ? skip_aux(r, ev) : next_aux(r, ev);
	return ret;
}

int perfdata_next_event(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;

	for (;;) {
		const struct order_item *item;
		int ret = next_of_same(r, ev);

		if (ret)
			return ret;
		if (p->told_facts < p->nr_facts)
			return tell_fact(p, ev);
		if (p->tracing.len && !p->told_tracing)
			return tell_tracing(p, ev);
		if (p->now.size || p->ended) {
			/* In a pipe, event names come after the attributes. */
			if (p->told_attrs < p->nr_attrs)
				return tell_source(p, ev);
		}
		if (p->now.size && p->survey_of && perfdata_survey_record(p))
			continue;
		if (p->now.size) {
			ret = tell_now(r, ev);
			if (ret)
				return ret;
			continue;
		}
		item = order_next(&p->order);
		if (item) {
			p->now = record_at(p, (const uint8_t *)item->data, item->offset);
			continue;
		}
		if (p->ended) {
			/* Emit samples whose deferred chain never came. */
			for (size_t i = 0; i < p->nr_held; i++)
				p->held[i].due = true;
			p->nr_tail = 0;
			p->release_held = p->nr_held;
			if (!p->release_held)
				return 0;
			continue;
		}
		if (p->aux_at) {
			in_skip(r->in, p->aux_at);
			p->aux_at = 0;
		}
		if (p->nr_streams > 1)
			choose_stream(r);
		ret = read_record(r, ev);
		if (!ret && p->pt && !p->surveyed)
			ret = perfdata_survey(r);
		if (ret)
			return ret;
	}
}

/* ---- Intel PT ---- */

static size_t perfdata_run(struct reader *r, struct event **events)
{
	struct perfdata *p = r->priv;
	size_t nr;

	if (!p->has_ahead)
		return 0;
	nr = perfdata_pt_run(p->pt, p->at_end ? NULL : &p->ahead, events);
	perfdata_pt_took(p->pt, nr);
	return nr;
}

/* The next event of the file, or one of a trace that comes before it. */
static int next_with_pt(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct event *events;
	int ret;

	if (perfdata_pt_run(p->pt, p->at_end ? NULL : &p->ahead, &events)) {
		*ev = *events;
		perfdata_pt_took(p->pt, 1);
		return 1;
	}
	ret = perfdata_pt_next(p->pt, r, ev);
	if (ret || p->at_end)
		return ret;
	p->has_ahead = false;
	*ev = p->ahead;
	return 1;
}

static int perfdata_next(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct event blank = *ev;
	int ret;

	if (p->has_ahead)
		return next_with_pt(r, ev);
	ret = perfdata_next_event(r, ev);
	if (!p->pt || ret < 0)
		return ret;
	p->has_ahead = true;
	p->at_end = ret == 0;
	p->ahead = *ev;
	*ev = blank;
	return next_with_pt(r, ev);
}

static void perfdata_close(struct reader *r)
{
	struct perfdata *p = r->priv;

	perfdata_pt_free(p->pt);
	header_release(p);
	sample_release(p);
	order_release(&p->order);
	for (size_t i = 0; i < p->nr_streams; i++)
		perfdata_close_stream(&p->streams[i]);
	free(p->streams);
	buf_release(&p->scratch);
	buf_release(&p->text);
	tracing_release(p);
	buf_release(&p->split);
}

const struct reader_ops read_perfdata = {
	.name = "perfdata",
	.about = "perf.data, as perf record writes it to a file, a directory or a pipe",
	.probe = perfdata_probe,
	.header = true,
	.folder_file = "data", /* of perf record with an output folder */
	.priv_size = sizeof(struct perfdata),
	.open = perfdata_open,
	.run = perfdata_run,
	.next = perfdata_next,
	.close = perfdata_close,
};
