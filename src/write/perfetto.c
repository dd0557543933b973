// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfetto: a timeline in Perfetto's protobuf format, for ui.perfetto.dev: a track for each task, with a
 * slice for each call. Names are interned; times are relative to the previous packet.
 *
 * Field numbers: Perfetto's protos/perfetto/trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/pb_out.h"
#include "format.h"
#include "model/world.h"

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
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
};

enum { SEQUENCE = 1, CLEARED = 1, NEEDS_STATE = 2 }; /* PACKET_FLAGS */
enum { SLICE_BEGINS = 1, SLICE_ENDS = 2 };	     /* EVENT_TYPE */
enum { CLOCK_BOOT = 6, CLOCK_OURS = 64 };	     /* CLOCK_ID */
enum {
	ARG_INSTRUCTIONS = 1,
	ARG_OWN,
	ARG_LINES,
	ARG_OWN_LINES,
	ARG_SPAN,
	ARG_BEGAN_BEFORE,
	ARG_GOES_ON
};

static const char *const arg_names[] = {
	[ARG_INSTRUCTIONS] = "instructions",
	[ARG_OWN] = "own instructions",
	[ARG_LINES] = "i-cache lines",
	[ARG_OWN_LINES] = "own i-cache lines",
	[ARG_SPAN] = "span",
	[ARG_BEGAN_BEFORE] = "began before",
	[ARG_GOES_ON] = "goes on",
};

static const char *const kind_names[] = {
	[SLICE_BEGIN] = "begin", [SLICE_CALL] = "call",	      [SLICE_JUMP] = "jump",
	[SLICE_TRAP] = "trap",	 [SLICE_SYSCALL] = "syscall", [SLICE_RUN] = "run",
	[SLICE_GAP] = "gap",
};

struct perfetto {
	struct buf packets;
	struct hash names;  /* by the function's name: defined */
	struct hash tracks; /* by pid and tid: defined; tid NO_TASK: the process */
	uint64_t time;	    /* of the last packet */
	bool begun;
};

/* Flushes a packet at a time, and writes when there is enough. */
#define ENOUGH 65536

static size_t open_packet(struct perfetto *p, unsigned flags)
{
	size_t start = pb_open(&p->packets, TRACE_PACKET);

	pb_put_uint(&p->packets, PACKET_SEQUENCE, SEQUENCE);
	pb_put_uint(&p->packets, PACKET_FLAGS, flags);
	return start;
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

/* The first packet: the clock in which times are relative, and the names of arguments. */
static void begin(struct perfetto *p, uint64_t time)
{
	struct buf *buf = &p->packets;
	size_t packet = open_packet(p, CLEARED), part;

	part = pb_open(buf, PACKET_CLOCKS);
	put_clock(buf, CLOCK_BOOT, time, false);
	put_clock(buf, CLOCK_OURS, time, true);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_DEFAULTS);
	pb_put_uint(buf, DEFAULTS_CLOCK, CLOCK_OURS);
	pb_close(buf, part);
	part = pb_open(buf, PACKET_INTERNED);
	for (unsigned i = ARG_INSTRUCTIONS; i <= ARG_GOES_ON; i++)
		put_interned(buf, INTERNED_ANNOTATIONS, i, arg_names[i]);
	for (unsigned i = SLICE_BEGIN; i < SLICE_SPLIT; i++)
		put_interned(buf, INTERNED_CATEGORIES, i + 1, kind_names[i]);
	pb_close(buf, part);
	pb_close(buf, packet);
	p->time = time;
	p->begun = true;
}

/* Tracks */

/* Whether it is on the time axis of a cpu. */
static bool is_on_cpu(const struct event_slice *slice)
{
	return slice->kind == SLICE_RUN || slice->kind == SLICE_GAP;
}

static uint64_t track_uuid(uint32_t pid, uint32_t tid)
{
	return ((uint64_t)pid << 32 | tid) + 1;
}

static const char *comm_of(const struct writer *w, uint32_t pid, uint32_t tid)
{
	uint32_t comm = world_comm(w->world, pid, tid);

	return comm ? str_text(w->world->strings, comm) : "?";
}

static bool is_new(struct hash *hash, struct hash_key key)
{
	uint32_t *seen = hash_at(hash, key);
	bool fresh = !*seen;

	*seen = 1;
	return fresh;
}

static void put_process(struct writer *w, uint32_t pid)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packets;
	size_t packet = open_packet(p, 0), track = pb_open(buf, PACKET_TRACK), part;

	pb_put_uint(buf, TRACK_UUID, track_uuid(pid, NO_TASK));
	part = pb_open(buf, TRACK_PROCESS);
	pb_put_uint(buf, PROCESS_PID, pid);
	pb_put_text(buf, PROCESS_NAME, comm_of(w, pid, pid));
	pb_close(buf, part);
	pb_close(buf, track);
	pb_close(buf, packet);
}

static void put_thread(struct writer *w, uint32_t pid, uint32_t tid)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packets;
	size_t packet = open_packet(p, 0), track = pb_open(buf, PACKET_TRACK), part;

	pb_put_uint(buf, TRACK_UUID, track_uuid(pid, tid));
	pb_put_uint(buf, TRACK_PARENT, track_uuid(pid, NO_TASK));
	part = pb_open(buf, TRACK_THREAD);
	pb_put_uint(buf, THREAD_PID, pid);
	pb_put_uint(buf, THREAD_TID, tid);
	pb_put_text(buf, THREAD_NAME, comm_of(w, pid, tid));
	pb_close(buf, part);
	pb_close(buf, track);
	pb_close(buf, packet);
}

static void put_cpu(struct perfetto *p, uint32_t cpu)
{
	struct buf *buf = &p->packets;
	size_t packet = open_packet(p, 0), track = pb_open(buf, PACKET_TRACK);
	char name[32];

	snprintf(name, sizeof(name), "cpu %u", cpu);
	pb_put_uint(buf, TRACK_UUID, track_uuid(NO_TASK, cpu));
	pb_put_text(buf, TRACK_NAME, name);
	pb_close(buf, track);
	pb_close(buf, packet);
}

static void need_track(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;

	if (is_on_cpu(&ev->slice)) {
		if (is_new(&p->tracks, (struct hash_key){ NO_TASK, ev->cpu }))
			put_cpu(p, ev->cpu);
		return;
	}

	if (!is_new(&p->tracks, (struct hash_key){ ev->pid, ev->tid }))
		return;
	if (is_new(&p->tracks, (struct hash_key){ ev->pid, NO_TASK }))
		put_process(w, ev->pid);
	put_thread(w, ev->pid, ev->tid);
}

/* Slices */

static uint32_t slice_name(struct writer *w, const struct event *ev)
{
	const struct symbol *symbols;
	size_t nr;

	if (ev->slice.kind == SLICE_GAP)
		return str_intern(w->world->strings, "gap", 3);
	if (ev->slice.kind == SLICE_RUN)
		return world_comm(w->world, ev->pid, ev->tid);
	symbols = frame_symbols(w->world, ev->slice.frame, &nr);
	return symbols[nr - 1].name;
}

/* Defines the name of a function before its first use. */
static void need_name(struct writer *w, uint32_t name)
{
	struct perfetto *p = w->priv;
	size_t part;

	if (!is_new(&p->names, (struct hash_key){ name, 0 }))
		return;
	part = pb_open(&p->packets, PACKET_INTERNED);
	put_interned(&p->packets, INTERNED_NAMES, name, str_text(w->world->strings, name));
	pb_close(&p->packets, part);
}

static void put_number(struct buf *buf, unsigned arg, uint32_t type, uint64_t value)
{
	size_t start = pb_open(buf, EVENT_ANNOTATIONS);

	pb_put_uint(buf, ANNOTATION_NAME, arg);
	pb_put_uint(buf, type, value);
	pb_close(buf, start);
}

/* As the options of kscope want it. */
static void put_span(struct buf *buf, uint64_t since, uint64_t until)
{
	size_t start = pb_open(buf, EVENT_ANNOTATIONS);
	char text[64];
	int len = snprintf(text, sizeof(text), "--time %llu.%09llu,%llu.%09llu",
			   (unsigned long long)(since / 1000000000),
			   (unsigned long long)(since % 1000000000),
			   (unsigned long long)(until / 1000000000),
			   (unsigned long long)(until % 1000000000));

	pb_put_uint(buf, ANNOTATION_NAME, ARG_SPAN);
	pb_put_bytes(buf, ANNOTATION_TEXT, text, (size_t)len);
	pb_close(buf, start);
}

static void put_begin(struct buf *buf, const struct event_slice *slice, uint32_t name)
{
	pb_put_uint(buf, EVENT_TYPE, SLICE_BEGINS);
	pb_put_uint(buf, EVENT_NAME, name);
	pb_put_uint(buf, EVENT_CATEGORIES, (uint64_t)slice->kind + 1);
	if (slice->cut)
		put_number(buf, ARG_BEGAN_BEFORE, ANNOTATION_BOOL, 1);
}

static void put_end(struct buf *buf, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	pb_put_uint(buf, EVENT_TYPE, SLICE_ENDS);
	put_number(buf, ARG_INSTRUCTIONS, ANNOTATION_UINT, slice->instructions);
	if (slice->frame) {
		put_number(buf, ARG_OWN, ANNOTATION_UINT, slice->own);
		put_number(buf, ARG_LINES, ANNOTATION_UINT, slice->lines);
		put_number(buf, ARG_OWN_LINES, ANNOTATION_UINT, slice->own_lines);
	}
	put_span(buf, slice->since, ev->time);
	if (slice->cut)
		put_number(buf, ARG_GOES_ON, ANNOTATION_BOOL, 1);
}

/* Relative to the last packet. Slices of tasks that were left and have ended are older. */
static void put_time(struct perfetto *p, uint64_t time)
{
	if (time < p->time) {
		pb_put_uint(&p->packets, PACKET_CLOCK, CLOCK_BOOT);
		pb_put_uint(&p->packets, PACKET_TIME, time);
		return;
	}
	pb_put_uint(&p->packets, PACKET_TIME, time - p->time);
	p->time = time;
}

static int perfetto_put(struct writer *w, const struct event *ev)
{
	struct perfetto *p = w->priv;
	struct buf *buf = &p->packets;
	size_t packet, event;
	uint32_t name;

	if (ev->slice.kind == SLICE_SPLIT)
		return 0;
	name = ev->slice.leave ? 0 : slice_name(w, ev);
	if (!p->begun)
		begin(p, ev->time);
	need_track(w, ev);
	packet = open_packet(p, NEEDS_STATE);
	put_time(p, ev->time);
	if (name)
		need_name(w, name);
	event = pb_open(buf, PACKET_EVENT);
	pb_put_uint(buf, EVENT_TRACK,
		    is_on_cpu(&ev->slice) ? track_uuid(NO_TASK, ev->cpu)
					  : track_uuid(ev->pid, ev->tid));
	if (ev->slice.leave)
		put_end(buf, ev);
	else
		put_begin(buf, &ev->slice, name);
	pb_close(buf, event);
	pb_close(buf, packet);
	if (buf->len >= ENOUGH) {
		out_write(w->out, buf->data, buf->len);
		buf_clear(buf);
	}
	return 0;
}

static int perfetto_finish(struct writer *w)
{
	struct perfetto *p = w->priv;

	out_write(w->out, p->packets.data, p->packets.len);
	return 0;
}

static void perfetto_close(struct writer *w)
{
	struct perfetto *p = w->priv;

	buf_release(&p->packets);
	hash_release(&p->names);
	hash_release(&p->tracks);
}

const struct writer_ops write_perfetto = {
	.name = "perfetto",
	.about = "timeline of calls for Perfetto",
	.extension = ".pftrace",
	.takes = EVENT_BIT(EVENT_SLICE),
	.next = "open it in ui.perfetto.dev",
	.priv_size = sizeof(struct perfetto),
	.put = perfetto_put,
	.finish = perfetto_finish,
	.close = perfetto_close,
};
