// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfetto: a timeline in Perfetto's protobuf format, for ui.perfetto.dev: a track for each task, with a
 * slice for each call and an instant for each note, and one for each counter of a cpu. Names are interned; times are relative to the previous packet.
 *
 * Field numbers: Perfetto's protos/perfetto/trace.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/pb_out.h"
#include "format.h"
#include "model/source.h"
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
	PACKET_EXTENSION = 72,

	CLOCKS_CLOCK = 1,
	CLOCK_ID = 1,
	CLOCK_TIME = 2,
	CLOCK_INCREMENTAL = 3,
	DEFAULTS_CLOCK = 58,

	EVENT_CATEGORIES = 3,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_COUNTER_VALUE = 30,
	EVENT_ARGS = 9900, /* the first number that is free for extensions */

	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_ID = 1,
	INTERNED_TEXT = 2,

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

	/* protobuf's descriptor.proto */
	EXTENSION_FILES = 1,
	FILES_FILE = 1,
	FILE_NAME = 1,
	FILE_PACKAGE = 2,
	FILE_MESSAGE = 4,
	FILE_EXTENSION = 7,
	MESSAGE_NAME = 1,
	MESSAGE_FIELD = 2,
	FIELD_NAME = 1,
	FIELD_EXTENDS = 2,
	FIELD_NUMBER = 3,
	FIELD_LABEL = 4,
	FIELD_TYPE = 5,
	FIELD_MESSAGE = 6,
};

/*
 * Slices are one sequence of packets, tracks another: Perfetto would take the first thread in a sequence for
 * the one that wrote its packets, and add it as an argument to slices of cpus.
 */
enum { SLICES = 1, TRACKS = 2 };				     /* PACKET_SEQUENCE */
enum { CLEARED = 1 };						     /* PACKET_FLAGS */
enum { SLICE_BEGINS = 1, SLICE_ENDS = 2, INSTANT = 3, COUNTER = 4 }; /* EVENT_TYPE */
enum { CLOCK_BOOT = 6, CLOCK_OURS = 64 };			     /* CLOCK_ID */
enum { OPTIONAL = 1 };						     /* FIELD_LABEL */
enum { UINT64 = 4, BOOL = 8, STRING = 9, MESSAGE = 11 };	     /* FIELD_TYPE */
enum track_kind {
	TRACK_OF_PROCESS,
	TRACK_OF_TASK,
	TRACK_OF_CPU,
	TRACK_OF_MASK,
	TRACK_OF_RATE,
	TRACK_OF_COUNTER,
};

struct perfetto {
	struct buf packet; /* the current one */
	struct buf text;
	struct timeline_numbers names; /* interned ones; 0: not yet */
	uint32_t nr_names;
	struct hash tracks; /* by kind and id: their uuids, from 1 on, which are short this way */
	uint64_t time;	    /* of the last packet */
	struct timeline_size size;
	bool begun;
};

static size_t open_packet(struct perfetto *p, unsigned sequence)
{
	size_t start = pb_open(&p->packet, TRACE_PACKET);

	pb_put_uint(&p->packet, PACKET_SEQUENCE, sequence);
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

static size_t open_field(struct buf *buf, uint32_t kind, const char *name, unsigned number,
			 unsigned type)
{
	size_t start = pb_open(buf, kind);

	pb_put_text(buf, FIELD_NAME, name);
	pb_put_uint(buf, FIELD_NUMBER, number);
	pb_put_uint(buf, FIELD_LABEL, OPTIONAL);
	pb_put_uint(buf, FIELD_TYPE, type);
	return start;
}

/*
 * The arguments of slices are a message that extends Perfetto's. Its fields take half as many bytes as
 * Perfetto's debug annotations.
 */
static void define_args(struct writer *w)
{
	static const unsigned types[] = {
		[TIMELINE_NUMBER] = UINT64, [TIMELINE_TRUE] = BOOL, [TIMELINE_TEXT] = STRING
	};
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet = open_packet(p, TRACKS), set = pb_open(buf, PACKET_EXTENSION);
	size_t files = pb_open(buf, EXTENSION_FILES), file = pb_open(buf, FILES_FILE), part;

	pb_put_text(buf, FILE_NAME, "kscope.proto");
	pb_put_text(buf, FILE_PACKAGE, "kscope");
	part = pb_open(buf, FILE_MESSAGE);
	pb_put_text(buf, MESSAGE_NAME, "Slice");
	for (unsigned i = 0; i < TIMELINE_ARGS; i++) {
		struct timeline_arg_info info = timeline_arg_info(i);

		pb_close(buf, open_field(buf, MESSAGE_FIELD, info.name, i + 1, types[info.type]));
	}
	pb_close(buf, part);
	part = open_field(buf, FILE_EXTENSION, "kscope", EVENT_ARGS, MESSAGE);
	pb_put_text(buf, FIELD_EXTENDS, ".perfetto.protos.TrackEvent");
	pb_put_text(buf, FIELD_MESSAGE, ".kscope.Slice");
	pb_close(buf, part);
	pb_close(buf, file);
	pb_close(buf, files);
	pb_close(buf, set);
	close_packet(w, packet);
}

/* The first packets: the clock in which times are relative, and the names of arguments and kinds. */
static void begin(struct writer *w, uint64_t time)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet, part;

	define_args(w);
	packet = open_packet(p, SLICES);
	pb_put_uint(buf, PACKET_FLAGS, CLEARED);
	part = pb_open(buf, PACKET_CLOCKS);
	put_clock(buf, CLOCK_BOOT, time, false);
	put_clock(buf, CLOCK_OURS, time, true);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_DEFAULTS);
	pb_put_uint(buf, DEFAULTS_CLOCK, CLOCK_OURS);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_INTERNED);
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
	packet = open_packet(p, TRACKS);
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
	size_t packet = open_packet(p, TRACKS), track = pb_open(buf, PACKET_TRACK), part;

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
	size_t packet = open_packet(p, TRACKS), track = pb_open(buf, PACKET_TRACK);
	char name[TIMELINE_CPU_NAME];

	timeline_cpu_name(name, cpu, masked);
	pb_put_uint(buf, TRACK_UUID, uuid);
	pb_put_text(buf, TRACK_NAME, name);
	pb_close(buf, track);
	close_packet(w, packet);
}

/* The track of numbers of a cpu, which have this name and this unit. */
static uint32_t need_numbers(struct writer *w, uint32_t *uuid, uint32_t cpu, const char *what,
			     const char *unit)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet, track, counter;
	char prefix[TIMELINE_CPU_NAME], *name;

	if (*uuid)
		return *uuid;
	*uuid = (uint32_t)p->tracks.nr;
	timeline_cpu_name(prefix, cpu, false);
	name = xasprintf("%s %s", prefix, what);
	packet = open_packet(p, TRACKS);
	track = pb_open(buf, PACKET_TRACK);
	pb_put_uint(buf, TRACK_UUID, *uuid);
	pb_put_text(buf, TRACK_NAME, name);
	counter = pb_open(buf, TRACK_COUNTER);
	pb_put_text(buf, COUNTER_UNIT, unit);
	pb_close(buf, counter);
	pb_close(buf, track);
	close_packet(w, packet);
	free(name);
	return *uuid;
}

static uint32_t need_rate(struct writer *w, uint32_t cpu)
{
	return need_numbers(w, uuid_of(w->priv, TRACK_OF_RATE, 0, cpu), cpu, TIMELINE_RATE,
			    TIMELINE_RATE);
}

static uint32_t need_counter(struct writer *w, uint32_t cpu, uint32_t source)
{
	struct perfetto *p = w->priv;
	uint32_t *uuid = uuid_of(p, TRACK_OF_COUNTER, source, cpu), number;
	uint32_t unit = w->world->sources[source].unit;
	struct buf text = { 0 };
	const char *name = timeline_text(&p->text, w->world, source_name(w->world, source));

	number = need_numbers(w, uuid, cpu, name,
			      unit ? timeline_text(&text, w->world, unit) : name);
	buf_release(&text);
	return number;
}

/* The uuid of the slice's track, which is defined before its first use. */
static uint32_t need_track(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	bool on_cpu = timeline_on_cpu(ev), masked = ev->slice.kind == SLICE_MASKED;
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

static void put_args(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	struct timeline_args args;
	size_t start;

	timeline_args(&args, &p->text, w->world, ev);
	if (!args.nr)
		return;
	start = pb_open(buf, EVENT_ARGS);
	for (size_t i = 0; i < args.nr; i++) {
		const struct timeline_arg *arg = &args.all[i];

		if (arg->text)
			pb_put_bytes(buf, arg->id + 1, arg->text, arg->len);
		else
			pb_put_uint(buf, arg->id + 1, arg->number);
	}
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

static void put_event(struct writer *w, const struct event *ev, uint32_t track, uint32_t name)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t event = pb_open(buf, PACKET_EVENT);

	pb_put_uint(buf, EVENT_TRACK, track);
	pb_put_uint(buf, EVENT_TYPE,
		    ev->slice.kind == SLICE_NOTE ? INSTANT
		    : name			 ? SLICE_BEGINS
						 : SLICE_ENDS);
	if (name) {
		pb_put_uint(buf, EVENT_NAME, name);
		pb_put_uint(buf, EVENT_CATEGORIES, (uint64_t)ev->slice.kind + 1);
	}
	put_args(w, ev);
	pb_close(buf, event);
	if (ev->slice.kind != SLICE_NOTE)
		written_slice(&w->written, &ev->slice);
}

static void put_value(struct writer *w, uint32_t track, uint64_t time, uint64_t value)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packet;
	size_t packet = open_packet(p, SLICES), event;

	put_time(p, time);
	event = pb_open(buf, PACKET_EVENT);
	pb_put_uint(buf, EVENT_TRACK, track);
	pb_put_uint(buf, EVENT_TYPE, COUNTER);
	pb_put_uint(buf, EVENT_COUNTER_VALUE, value);
	pb_close(buf, event);
	close_packet(w, packet);
}

static int perfetto_put(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	uint32_t track, name = 0;
	size_t packet;

	if (ev->kind == EVENT_COUNTER && (ev->time == NO_TIME || !ev->counter.source))
		return 0;
	if (!p->begun)
		begin(w, ev->time);
	if (ev->kind == EVENT_COUNTER) {
		put_value(w, need_counter(w, ev->cpu, ev->counter.source), ev->time,
			  ev->counter.value);
		return 0;
	}
	timeline_count(&p->size, &ev->slice);
	if (ev->slice.kind == SLICE_RATE) {
		put_value(w, need_rate(w, ev->cpu), ev->slice.since, timeline_rate(ev));
		return 0;
	}
	track = need_track(w, ev);
	packet = open_packet(p, SLICES);
	put_time(p, ev->time);
	if (!ev->slice.leave)
		name = need_name(w, timeline_name(w->world, ev));
	put_event(w, ev, track, name);
	close_packet(w, packet);
	return 0;
}

/* An empty file would not be a trace. */
static int perfetto_finish(struct writer *w)
{
	const struct perfetto *p = w->priv;

	w->written.knows = WROTE_SLICES;
	if (!p->begun)
		begin(w, 0);
	timeline_warn(&p->size, w->out->path);
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
	.takes = EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_STRETCH) | EVENT_BIT(EVENT_COUNTER),
	.next = "open it in ui.perfetto.dev",
	.options = TIMELINE_OPTIONS,
	.priv_size = sizeof(struct perfetto),
	.put = perfetto_put,
	.finish = perfetto_finish,
	.close = perfetto_close,
};
