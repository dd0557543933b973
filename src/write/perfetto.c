// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfetto: a timeline in Perfetto's protobuf format, for ui.perfetto.dev: a track for each task, with a
 * slice for each call. Names are interned; times are relative to the previous packet.
 *
 * Field numbers: Perfetto's protos/perfetto/trace.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/pb_out.h"
#include "format.h"
#include "write/timeline.h"

enum {
	TRACE_PACKET = 1,

	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,

	CLOCKS_CLOCK = 1,
	CLOCK_ID = 1,
	CLOCK_TIME = 2,
	CLOCK_INCREMENTAL = 3,
	DEFAULTS_CLOCK = 58,

	EVENT_CATEGORIES = 3,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER = 30,

	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_ANNOTATIONS = 3,
	INTERNED_ID = 1,
	INTERNED_TEXT = 2,

	ANNOTATION_NAME = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_TEXT = 6,

	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 6,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
};

/*
 * Slices are one sequence of packets, tracks another: Perfetto would take the first thread in a sequence for
 * the one that wrote its packets, and add it as an argument to slices of cpus.
 */
enum { SLICES = 1, TRACKS = 2 };			/* PACKET_SEQUENCE */
enum { NO_STATE = 0, CLEARED = 1, NEEDS_STATE = 2 };	/* PACKET_FLAGS */
enum { SLICE_BEGINS = 1, SLICE_ENDS = 2, COUNTER = 4 }; /* EVENT_TYPE */
enum { CLOCK_BOOT = 6, CLOCK_OURS = 64 };		/* CLOCK_ID */
enum track_kind { TRACK_OF_PROCESS, TRACK_OF_TASK, TRACK_OF_CPU, TRACK_OF_MASK, TRACK_OF_RATE };

struct perfetto {
	struct buf packet; /* the current one */
	struct buf text;
	struct timeline_numbers names; /* interned ones; 0: not yet */
	uint32_t nr_names;
	struct hash tracks; /* by kind and id: their uuids, from 1 on, which are short this way */
	uint64_t time;	    /* of the last packet */
	bool begun;
};

static size_t open_packet(struct perfetto *p, unsigned sequence, unsigned flags)
{
	size_t start = pb_open(&p->packet, TRACE_PACKET);

	pb_put_uint(&p->packet, PACKET_SEQUENCE, sequence);
	pb_put_uint(&p->packet, PACKET_FLAGS, flags);
	return start;
}

static void close_packet(struct writer *w, size_t start)
{
	struct perfetto *p = w->priv;

	pb_close(&p->packet, start);
	out_write(w->out, p->packet.data, p->packet.len);
	buf_clear(&p->packet);
}

static void put_clock(struct buf *buf, unsigned id, uint64_t time, bool incremental)
{
	size_t clock = pb_open(buf, CLOCKS_CLOCK);

	pb_put_uint(buf, CLOCK_ID, id);
	pb_put_uint(buf, CLOCK_TIME, time);
	if (incremental)
		pb_put_uint(buf, CLOCK_INCREMENTAL, 1);
	pb_close(buf, clock);
}

static void put_interned(struct buf *buf, uint32_t kind, uint64_t id, const char *text)
{
	size_t start = pb_open(buf, kind);

	pb_put_uint(buf, INTERNED_ID, id);
	pb_put_text(buf, INTERNED_TEXT, text);
	pb_close(buf, start);
}

/* The first packet: the clock in which times are relative, and the names of arguments and kinds. */
static void begin(struct writer *w, uint64_t time)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet = open_packet(p, SLICES, CLEARED), part;

	part = pb_open(buf, PACKET_CLOCKS);
	put_clock(buf, CLOCK_BOOT, time, false);
	put_clock(buf, CLOCK_OURS, time, true);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_DEFAULTS);
	pb_put_uint(buf, DEFAULTS_CLOCK, CLOCK_OURS);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_INTERNED);
	for (unsigned i = 0; i < TIMELINE_ARGS; i++)
		put_interned(buf, INTERNED_ANNOTATIONS, i + 1, timeline_arg_names[i]);
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		put_interned(buf, INTERNED_CATEGORIES, i + 1, timeline_kind_names[i]);
	pb_close(buf, part);
	close_packet(w, packet);
	p->time = time;
	p->begun = true;
}

/* Tracks */

/* The uuid of a track, which is new if it has none. */
static uint32_t *uuid_of(struct perfetto *p, enum track_kind kind, uint32_t pid, uint32_t tid)
{
	return hash_at(&p->tracks, (struct hash_key){ (uint64_t)pid << 32 | tid, kind });
}

static void put_name(struct writer *w, uint32_t field, uint32_t name)
{
	struct perfetto *p = w->priv;

	pb_put_text(&p->packet, field, timeline_text(&p->text, w->world, name));
}

static uint32_t need_process(struct writer *w, uint32_t pid)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	uint32_t *uuid = uuid_of(p, TRACK_OF_PROCESS, pid, 0);
	size_t packet, track, part;

	if (*uuid)
		return *uuid;
	*uuid = (uint32_t)p->tracks.nr;
	packet = open_packet(p, TRACKS, NO_STATE);
	track = pb_open(buf, PACKET_TRACK);
	pb_put_uint(buf, TRACK_UUID, *uuid);
	part = pb_open(buf, TRACK_PROCESS);
	pb_put_uint(buf, PROCESS_PID, timeline_id(pid));
	put_name(w, PROCESS_NAME, timeline_comm(w->world, pid, pid));
	pb_close(buf, part);
	pb_close(buf, track);
	close_packet(w, packet);
	return *uuid;
}

static void put_task(struct writer *w, const struct event *ev, uint32_t uuid, uint32_t process)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet = open_packet(p, TRACKS, NO_STATE), track = pb_open(buf, PACKET_TRACK), part;

	pb_put_uint(buf, TRACK_UUID, uuid);
	pb_put_uint(buf, TRACK_PARENT, process);
	part = pb_open(buf, TRACK_THREAD);
	pb_put_uint(buf, THREAD_PID, timeline_id(ev->pid));
	pb_put_uint(buf, THREAD_TID, timeline_id(ev->tid));
	put_name(w, THREAD_NAME, timeline_comm(w->world, ev->pid, ev->tid));
	pb_close(buf, part);
	pb_close(buf, track);
	close_packet(w, packet);
}

static void put_cpu(struct writer *w, uint32_t cpu, uint32_t uuid, bool masked)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet = open_packet(p, TRACKS, NO_STATE), track = pb_open(buf, PACKET_TRACK);
	char name[TIMELINE_CPU_NAME];

	timeline_cpu_name(name, cpu, masked);
	pb_put_uint(buf, TRACK_UUID, uuid);
	pb_put_text(buf, TRACK_NAME, name);
	pb_close(buf, track);
	close_packet(w, packet);
}

static uint32_t need_rate(struct writer *w, uint32_t cpu)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	uint32_t *uuid = uuid_of(p, TRACK_OF_RATE, 0, cpu);
	size_t packet, track, counter;
	char name[TIMELINE_CPU_NAME + sizeof(TIMELINE_RATE)];

	if (*uuid)
		return *uuid;
	*uuid = (uint32_t)p->tracks.nr;
	timeline_cpu_name(name, cpu, false);
	strcat(name, " " TIMELINE_RATE);
	packet = open_packet(p, TRACKS, NO_STATE);
	track = pb_open(buf, PACKET_TRACK);
	pb_put_uint(buf, TRACK_UUID, *uuid);
	pb_put_text(buf, TRACK_NAME, name);
	counter = pb_open(buf, TRACK_COUNTER);
	pb_put_text(buf, COUNTER_UNIT, TIMELINE_RATE);
	pb_close(buf, counter);
	pb_close(buf, track);
	close_packet(w, packet);
	return *uuid;
}

/* The uuid of the slice's track, which is defined before its first use. */
static uint32_t need_track(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	bool on_cpu = timeline_on_cpu(&ev->slice), masked = ev->slice.kind == SLICE_MASKED;
	enum track_kind kind = masked ? TRACK_OF_MASK : on_cpu ? TRACK_OF_CPU : TRACK_OF_TASK;
	uint32_t pid = on_cpu ? 0 : ev->pid, tid = on_cpu ? ev->cpu : ev->tid;
	uint32_t *uuid = uuid_of(p, kind, pid, tid), number, process;

	if (*uuid)
		return *uuid;
	*uuid = number = (uint32_t)p->tracks.nr;
	if (on_cpu) {
		put_cpu(w, ev->cpu, number, masked);
	} else {
		process = need_process(w, ev->pid);
		put_task(w, ev, number, process);
	}
	return number;
}

/* Slices */

/* Defines a name before its first use, inside the packet that uses it. */
static uint32_t need_name(struct writer *w, uint32_t name)
{
	struct perfetto *p = w->priv;
	uint32_t *number = timeline_number(&p->names, name);
	size_t part;

	if (*number)
		return *number;
	*number = ++p->nr_names;
	part = pb_open(&p->packet, PACKET_INTERNED);
	put_interned(&p->packet, INTERNED_NAMES, *number, timeline_text(&p->text, w->world, name));
	pb_close(&p->packet, part);
	return *number;
}

static void put_arg(struct buf *buf, const struct timeline_args *args,
		    const struct timeline_arg *arg)
{
	size_t start = pb_open(buf, EVENT_ANNOTATIONS);

	pb_put_uint(buf, ANNOTATION_NAME, arg->id + 1);
	if (arg->type == TIMELINE_TEXT)
		pb_put_bytes(buf, ANNOTATION_TEXT, args->text, args->len);
	else
		pb_put_uint(buf, arg->type == TIMELINE_TRUE ? ANNOTATION_BOOL : ANNOTATION_UINT,
			    arg->number);
	pb_close(buf, start);
}

/* Relative to the last packet. Slices of tasks that were left and have ended are older. */
static void put_time(struct perfetto *p, uint64_t time)
{
	if (time < p->time) {
		pb_put_uint(&p->packet, PACKET_CLOCK, CLOCK_BOOT);
		pb_put_uint(&p->packet, PACKET_TIME, time);
		return;
	}
	pb_put_uint(&p->packet, PACKET_TIME, time - p->time);
	p->time = time;
}

static void put_event(struct buf *buf, const struct event *ev, uint32_t track, uint32_t name)
{
	size_t event = pb_open(buf, PACKET_EVENT);
	struct timeline_args args;

	timeline_args(&args, ev);
	pb_put_uint(buf, EVENT_TRACK, track);
	pb_put_uint(buf, EVENT_TYPE, name ? SLICE_BEGINS : SLICE_ENDS);
	if (name) {
		pb_put_uint(buf, EVENT_NAME, name);
		pb_put_uint(buf, EVENT_CATEGORIES, (uint64_t)ev->slice.kind + 1);
	}
	for (size_t i = 0; i < args.nr; i++)
		put_arg(buf, &args, &args.all[i]);
	pb_close(buf, event);
}

static void put_rate(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	uint32_t track = need_rate(w, ev->cpu);
	size_t packet = open_packet(p, SLICES, NEEDS_STATE), event;

	put_time(p, ev->slice.since);
	event = pb_open(buf, PACKET_EVENT);
	pb_put_uint(buf, EVENT_TRACK, track);
	pb_put_uint(buf, EVENT_TYPE, COUNTER);
	pb_put_uint(buf, EVENT_COUNTER, timeline_rate(ev));
	pb_close(buf, event);
	close_packet(w, packet);
}

static int perfetto_put(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	uint32_t track, name = 0;
	size_t packet;

	if (!p->begun)
		begin(w, ev->time);
	if (ev->slice.kind == SLICE_RATE) {
		put_rate(w, ev);
		return 0;
	}
	track = need_track(w, ev);
	packet = open_packet(p, SLICES, NEEDS_STATE);
	put_time(p, ev->time);
	if (!ev->slice.leave)
		name = need_name(w, timeline_name(w->world, ev));
	put_event(&p->packet, ev, track, name);
	close_packet(w, packet);
	return 0;
}

/* An empty file would not be a trace. */
static int perfetto_finish(struct writer *w)
{
	const struct perfetto *p = w->priv;

	if (!p->begun) {
		begin(w, 0);
		timeline_warn_empty(w->out->path);
	}
	return 0;
}

static void perfetto_close(struct writer *w)
{
	struct perfetto *p = w->priv;

	buf_release(&p->packet);
	buf_release(&p->text);
	timeline_numbers_release(&p->names);
	hash_release(&p->tracks);
}

const struct writer_ops write_perfetto = {
	.name = "perfetto",
	.about = "timeline of calls for Perfetto",
	.extension = ".pftrace",
	.takes = EVENT_BIT(EVENT_SLICE),
	.next = "open it in ui.perfetto.dev",
	.options = TIMELINE_OPTIONS,
	.priv_size = sizeof(struct perfetto),
	.put = perfetto_put,
	.finish = perfetto_finish,
	.close = perfetto_close,
};
