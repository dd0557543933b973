// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fxt: a timeline in the Fuchsia trace format, for ui.perfetto.dev and Fuchsia's tools: a thread for each
 * task, with a duration for each call and an instant for each note, and a context switch where a task begins or ends to run on a cpu.
 *
 * A record is a number of 64-bit words in little-endian order. The first one has the type, the number of
 * words and fields of the type. Fields: Fuchsia's docs/reference/tracing/trace-format.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "format.h"
#include "model/source.h"
#include "write/timeline.h"

#define MAGIC 0x0016547846040010u /* a whole record */
#define PROVIDER 1
#define PROVIDER_NAME "kscope"
#define TICKS_PER_SECOND 1000000000
#define MAX_STRINGS 0x7fff
#define MAX_THREADS 0xff
#define INLINE_STRING 0x8000 /* in a reference to a string: its length, instead of its index */
#define MAX_CPU 4095	     /* Perfetto aborts beyond, so later ones share it */
#define NOBODY 0	     /* the thread that runs on an idle cpu; told by its weight */
#define IDLE_WEIGHT 0x80000000u

/*
 * Gaps are slices of a thread for each cpu, and so are the times without interrupts. The ids are beyond those
 * of tasks: see timeline_id().
 */
#define CPUS_PROCESS 0xffe00000u
#define CPU_THREAD(cpu) (0xfff00000u | (cpu))
#define MASK_THREAD(cpu) (0xffe80000u | ((cpu)&0xffff))

enum { /* of records */
       METADATA = 0,
       INITIALIZATION = 1,
       STRING = 2,
       THREAD = 3,
       EVENT = 4,
       OBJECT = 7,
       SCHEDULING = 8,
};
enum { PROVIDER_INFO = 1, PROVIDER_SECTION = 2 };			 /* of METADATA */
enum { INSTANT = 0, COUNTER = 1, DURATION_BEGIN = 2, DURATION_END = 3 }; /* of EVENT */
enum { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };				 /* of OBJECT */
enum { CONTEXT_SWITCH = 1 };						 /* of SCHEDULING */
enum { STATE_RUNNING = 1, STATE_BLOCKED = 3 }; /* of a thread that stops running */
enum { ARG_INT32 = 1, ARG_UINT32 = 2, ARG_UINT64 = 4, ARG_STRING = 6, ARG_KOID = 8, ARG_BOOL = 9 };

/* The first strings of the table stay there. */
enum {
	STRING_KINDS = 1,
	STRING_ARGS = STRING_KINDS + TIMELINE_KINDS,
	STRING_PROCESS = STRING_ARGS + TIMELINE_ARGS,
	STRING_INCOMING,
	STRING_OUTGOING,
	STRING_CPUS,
	STRING_RATE,
	STRING_COUNTED,
	FIRST_NAME
};

struct fxt {
	struct buf record; /* the current one */
	struct buf text;
	/* When a table is full, the format allows to replace entries: the oldest one goes. */
	uint32_t *names;	       /* by index: the name there; 0: none */
	struct timeline_numbers index; /* by name: where it was put last */
	uint32_t next_name;
	struct thread {
		uint32_t pid, tid;
	} threads[MAX_THREADS + 1]; /* by index, from 1 on */
	unsigned nr_threads, next_thread, last_thread;
	struct timeline_size size;
};

/* Records */

static void put_word(struct fxt *f, uint64_t word)
{
	char *at = buf_reserve(&f->record, 8);

	for (int i = 0; i < 8; i++)
		at[i] = (char)(word >> 8 * i);
	f->record.len += 8;
}

static void put_stream(struct fxt *f, const char *text, size_t len)
{
	buf_add(&f->record, text, len);
	while (f->record.len % 8)
		buf_addc(&f->record, 0);
}

static uint64_t field(uint64_t value, unsigned bit)
{
	return value << bit;
}

static void start(struct fxt *f, unsigned type, uint64_t fields)
{
	put_word(f, type | fields);
}

/* Adds the number of words since `from` to the header there, of a record or an argument. */
static void put_size(struct fxt *f, size_t from)
{
	size_t words = (f->record.len - from) / 8;

	f->record.data[from] = (char)(f->record.data[from] | words << 4);
	f->record.data[from + 1] = (char)(words >> 4);
}

static void end(struct writer *w)
{
	struct fxt *f = w->priv;

	put_size(f, 0);
	out_write(w->out, f->record.data, f->record.len);
	buf_clear(&f->record);
}

static void put_string(struct writer *w, unsigned index, const char *text)
{
	struct fxt *f = w->priv;
	size_t len = strlen(text);

	start(f, STRING, field(index, 16) | field(len, 32));
	put_stream(f, text, len);
	end(w);
}

/* Its index; writes it into the table if it is not there. Call it before start(). */
static unsigned need_name(struct writer *w, uint32_t name)
{
	struct fxt *f = w->priv;
	uint32_t *index = timeline_number(&f->index, name);

	if (*index && f->names[*index] == name)
		return *index;
	*index = f->next_name;
	f->names[*index] = name;
	f->next_name = f->next_name < MAX_STRINGS ? f->next_name + 1 : FIRST_NAME;
	put_string(w, *index, timeline_text(&f->text, w->world, name));
	return *index;
}

/* Arguments: `name` is a string of the table, `fields` is for the upper half of the header. */

static size_t start_arg(struct fxt *f, unsigned type, unsigned name, uint64_t fields)
{
	size_t from = f->record.len;

	put_word(f, type | field(name, 16) | field(fields, 32));
	return from;
}

static void put_short(struct fxt *f, unsigned type, unsigned name, uint32_t value)
{
	put_size(f, start_arg(f, type, name, value));
}

static void put_long(struct fxt *f, unsigned type, unsigned name, uint64_t value)
{
	size_t arg = start_arg(f, type, name, 0);

	put_word(f, value);
	put_size(f, arg);
}

static void put_text(struct fxt *f, unsigned name, const char *text, size_t len)
{
	size_t arg = start_arg(f, ARG_STRING, name, INLINE_STRING | len);

	put_stream(f, text, len);
	put_size(f, arg);
}

static void put_number(struct fxt *f, unsigned name, uint64_t number)
{
	if (number <= UINT32_MAX)
		put_short(f, ARG_UINT32, name, (uint32_t)number);
	else
		put_long(f, ARG_UINT64, name, number);
}

static void put_arg(struct fxt *f, const struct timeline_arg *arg)
{
	unsigned name = STRING_ARGS + arg->id;

	if (arg->text)
		put_text(f, name, arg->text, arg->len);
	else if (timeline_arg_info(arg->id).type == TIMELINE_TRUE)
		put_short(f, ARG_BOOL, name, 1);
	else
		put_number(f, name, arg->number);
}

/* Threads */

static void put_process(struct writer *w, uint32_t pid, unsigned name)
{
	struct fxt *f = w->priv;

	start(f, OBJECT, field(OBJECT_PROCESS, 16) | field(name, 24));
	put_word(f, pid);
	end(w);
}

static void put_thread_name(struct writer *w, struct thread thread, unsigned name)
{
	struct fxt *f = w->priv;

	start(f, OBJECT, field(OBJECT_THREAD, 16) | field(name, 24) | field(1, 40));
	put_word(f, thread.tid);
	put_long(f, ARG_KOID, STRING_PROCESS, thread.pid);
	end(w);
}

static bool has_process(const struct fxt *f, uint32_t pid)
{
	for (unsigned i = 1; i <= f->nr_threads; i++) {
		if (f->threads[i].pid == pid)
			return true;
	}
	return false;
}

static bool is_thread(const struct fxt *f, unsigned index, struct thread thread)
{
	return f->threads[index].tid == thread.tid && f->threads[index].pid == thread.pid;
}

/* The index in the table, or 0. */
static unsigned find_thread(struct fxt *f, struct thread thread)
{
	if (f->last_thread && is_thread(f, f->last_thread, thread))
		return f->last_thread;
	for (unsigned i = 1; i <= f->nr_threads; i++) {
		if (is_thread(f, i, thread))
			return f->last_thread = i;
	}
	return 0;
}

static unsigned add_thread(struct writer *w, struct thread thread)
{
	struct fxt *f = w->priv;
	unsigned index = f->next_thread;

	f->next_thread = index < MAX_THREADS ? index + 1 : 1;
	if (f->nr_threads < index)
		f->nr_threads = index;
	f->threads[index] = thread;
	f->last_thread = index;
	start(f, THREAD, field(index, 16));
	put_word(f, thread.pid);
	put_word(f, thread.tid);
	end(w);
	return index;
}

/*
 * The index of a thread. Names are written with the entry of the table, also if it was there before: so only
 * as much has to be remembered as is in the table.
 */
static unsigned need_task(struct writer *w, uint32_t pid, uint32_t tid)
{
	struct fxt *f = w->priv;
	struct thread thread = { timeline_id(pid), timeline_id(tid) };
	unsigned index = find_thread(f, thread);

	if (index)
		return index;
	if (!has_process(f, thread.pid))
		put_process(w, thread.pid, need_name(w, timeline_comm(w->world, pid, pid)));
	put_thread_name(w, thread, need_name(w, timeline_comm(w->world, pid, tid)));
	return add_thread(w, thread);
}

static unsigned need_cpu(struct writer *w, uint32_t cpu, bool masked)
{
	struct fxt *f = w->priv;
	struct thread thread = { CPUS_PROCESS, masked ? MASK_THREAD(cpu) : CPU_THREAD(cpu) };
	unsigned index = find_thread(f, thread);
	char name[TIMELINE_CPU_NAME];

	if (index)
		return index;
	if (!has_process(f, CPUS_PROCESS))
		put_process(w, CPUS_PROCESS, STRING_CPUS);
	timeline_cpu_name(name, cpu, masked);
	put_thread_name(w, thread, need_name(w, str_intern_z(w->world->strings, name)));
	return add_thread(w, thread);
}

/* Slices */

/*
 * Begins and ends, not durations that are complete: those would come in the order of their ends, and of
 * slices that begin at the same time, the inner one would come first. Readers sort by time and keep the order
 * of equal times, so the inner slice would become the outer one. Begins that come late are right, too.
 */
static void put_slice(struct writer *w, const struct event *ev, unsigned thread)
{
	struct fxt *f = w->priv;
	unsigned name = need_name(w, timeline_name(w->world, ev));
	unsigned type = ev->slice.kind == SLICE_NOTE ? INSTANT
			: ev->slice.leave	     ? DURATION_END
						     : DURATION_BEGIN;
	struct timeline_args args;

	timeline_args(&args, &f->text, w->world, ev);
	start(f, EVENT,
	      field(type, 16) | field(args.nr, 20) | field(thread, 24) |
		      field(STRING_KINDS + ev->slice.kind, 32) | field(name, 48));
	put_word(f, ev->time);
	for (size_t i = 0; i < args.nr; i++)
		put_arg(f, &args.all[i]);
	end(w);
	if (type != INSTANT)
		written_slice(&w->written, &ev->slice);
}

/* Why a task stops is not known. "Blocked" would be wrong if it goes on, outside what is shown. */
static void put_switch(struct writer *w, const struct event *ev)
{
	struct fxt *f = w->priv;
	uint32_t cpu = ev->cpu < MAX_CPU ? ev->cpu : MAX_CPU, tid = timeline_id(ev->tid);
	bool leave = ev->slice.leave;
	unsigned state = leave && !ev->slice.cut ? STATE_BLOCKED : STATE_RUNNING;

	start(f, SCHEDULING,
	      field(1, 16) | field(cpu, 20) | field(state, 36) | field(CONTEXT_SWITCH, 60));
	put_word(f, ev->time);
	put_word(f, leave ? tid : NOBODY);
	put_word(f, leave ? NOBODY : tid);
	put_short(f, ARG_INT32, leave ? STRING_INCOMING : STRING_OUTGOING, IDLE_WEIGHT);
	end(w);
	written_slice(&w->written, &ev->slice);
}

static void put_rate(struct writer *w, const struct event *ev)
{
	struct fxt *f = w->priv;
	unsigned thread = need_cpu(w, ev->cpu, false), name;
	char text[TIMELINE_CPU_NAME];

	timeline_cpu_name(text, ev->cpu, false);
	name = need_name(w, str_intern_z(w->world->strings, text));
	start(f, EVENT,
	      field(COUNTER, 16) | field(1, 20) | field(thread, 24) |
		      field(STRING_KINDS + SLICE_RUN, 32) | field(name, 48));
	put_word(f, ev->slice.since);
	put_number(f, STRING_RATE, timeline_rate(ev));
	put_word(f, ev->cpu);
	end(w);
}

/* Fuchsia's viewers tell counters apart by their number and name. */
static void put_counter(struct writer *w, const struct event *ev)
{
	struct fxt *f = w->priv;
	unsigned thread = need_cpu(w, ev->cpu, false), name;
	const char *event = str_text(w->world->strings, source_name(w->world, ev->counter.source));
	char cpu[TIMELINE_CPU_NAME], *text;

	timeline_cpu_name(cpu, ev->cpu, false);
	text = xasprintf("%s %s", cpu, event);
	name = need_name(w, str_intern_z(w->world->strings, text));
	free(text);
	start(f, EVENT,
	      field(COUNTER, 16) | field(1, 20) | field(thread, 24) |
		      field(STRING_KINDS + SLICE_RUN, 32) | field(name, 48));
	put_word(f, ev->time);
	put_number(f, STRING_COUNTED, ev->counter.value);
	put_word(f, (uint64_t)ev->counter.source << 32 | ev->cpu);
	end(w);
}

static int fxt_put(struct writer *w, const struct event *ev)
{
	struct fxt *f = w->priv;
	bool masked = ev->slice.kind == SLICE_MASKED;

	if (ev->kind == EVENT_COUNTER) {
		if (ev->time != NO_TIME && ev->counter.source)
			put_counter(w, ev);
		return 0;
	}
	timeline_count(&f->size, &ev->slice);
	if ((ev->slice.kind == SLICE_GAP && ev->tid == NO_TASK) || masked) {
		put_slice(w, ev, need_cpu(w, ev->cpu, masked));
	} else if (ev->slice.kind == SLICE_RATE) {
		put_rate(w, ev);
	} else if (ev->slice.kind == SLICE_RUN) {
		need_task(w, ev->pid, ev->tid);
		put_switch(w, ev);
	} else {
		put_slice(w, ev, need_task(w, ev->pid, ev->tid));
	}
	return 0;
}

static void put_provider(struct writer *w)
{
	struct fxt *f = w->priv;
	size_t len = strlen(PROVIDER_NAME);

	start(f, METADATA, field(PROVIDER_INFO, 16) | field(PROVIDER, 20) | field(len, 52));
	put_stream(f, PROVIDER_NAME, len);
	end(w);
	start(f, METADATA, field(PROVIDER_SECTION, 16) | field(PROVIDER, 20));
	end(w);
}

static int fxt_open(struct writer *w)
{
	struct fxt *f = w->priv;

	f->names = xcalloc(MAX_STRINGS + 1, sizeof(*f->names));
	f->next_name = FIRST_NAME;
	f->next_thread = 1;
	put_word(f, MAGIC);
	out_write(w->out, f->record.data, f->record.len);
	buf_clear(&f->record);
	put_provider(w);
	start(f, INITIALIZATION, 0);
	put_word(f, TICKS_PER_SECOND);
	end(w);
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		put_string(w, STRING_KINDS + i, timeline_kind_names[i]);
	for (unsigned i = 0; i < TIMELINE_ARGS; i++)
		put_string(w, STRING_ARGS + i, timeline_arg_info(i).name);
	put_string(w, STRING_PROCESS, "process");
	put_string(w, STRING_INCOMING, "incoming_weight");
	put_string(w, STRING_OUTGOING, "outgoing_weight");
	put_string(w, STRING_CPUS, "cpus");
	put_string(w, STRING_RATE, TIMELINE_RATE);
	put_string(w, STRING_COUNTED, "counted");
	return 0;
}

static int fxt_finish(struct writer *w)
{
	const struct fxt *f = w->priv;

	w->written.knows = WROTE_SLICES;
	timeline_warn(&f->size, w->out->path);
	return 0;
}

static void fxt_close(struct writer *w)
{
	struct fxt *f = w->priv;

	buf_release(&f->record);
	buf_release(&f->text);
	free(f->names);
	timeline_numbers_release(&f->index);
}

const struct writer_ops write_fxt = {
	.name = "fxt",
	.about = "timeline of calls in the Fuchsia trace format",
	.extension = ".fxt",
	.other_extension = ".ftf",
	.takes = EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_STRETCH) | EVENT_BIT(EVENT_COUNTER),
	.next = "open it in ui.perfetto.dev",
	.options = TIMELINE_OPTIONS,
	.priv_size = sizeof(struct fxt),
	.open = fxt_open,
	.put = fxt_put,
	.finish = fxt_finish,
	.close = fxt_close,
};
