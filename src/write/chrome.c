// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * chrome: a timeline as JSON in Chrome's trace event format: calls begin (B) and end (E) in their thread; cpus are
 * threads of a process of their own; counters (C), notes and losses (instants, i). Times are microseconds with three
 * decimals.
 *
 * Arguments are at the end of a slice, because speedscope adds the arguments of a begin to the name. The end has the name
 * of its begin, because speedscope ignores an end with another name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json_out.h"
#include "base/mem.h"
#include "format.h"
#include "model/source.h"
#include "write/timeline.h"

/* The process of the cpus, and its first thread: larger than ids of any kernel. */
#define CPUS 2000000000

enum axis_kind { AXIS_OF_TASK = 1, AXIS_OF_CPU, AXIS_OF_MASK, AXIS_OF_PROCESS };

struct axis { /* a thread */
	uint32_t pid, tid;
	struct open_slice {
		uint32_t name; /* a task may have another one when it ends */
		bool before;   /* it began before */
	} * open;
	size_t nr_open, cap_open;
	struct buf place; /* the text for pid and tid */
};

struct quoted { /* a name as JSON */
	size_t at, len;
};

struct chrome {
	struct options options; /* only the axis */
	struct buf line, text, arg;
	struct hash index; /* by kind and id: axes, from 1 on */
	struct axis *axes;
	size_t nr, cap;
	struct timeline_numbers names; /* in `quoted`, from 1 on */
	struct quoted *quoted;
	size_t nr_quoted, cap_quoted;
	struct buf texts;	    /* those of `quoted` */
	struct event_lost timeless; /* the sum of losses that have no place on the axis */
	uint64_t last;		    /* the latest time */
	struct timeline_size size;
	bool comma;
};

/* Lines */

static void begin_line(struct chrome *c, char phase)
{
	char start[] = { '{', '"', 'p', 'h', '"', ':', '"', phase, '"' };

	if (c->comma)
		BUF_PUT_LITERAL(&c->line, ",");
	c->comma = true;
	BUF_PUT_LITERAL(&c->line, "\n");
	buf_put(&c->line, start, sizeof(start));
}

static void add_pid(struct buf *to, uint32_t pid)
{
	buf_adds(to, ",\"pid\":");
	buf_addu(to, timeline_id(pid));
}

static void add_tid(struct buf *to, uint32_t tid)
{
	buf_adds(to, ",\"tid\":");
	buf_addu(to, timeline_id(tid));
}

static void add_time(struct chrome *c, uint64_t ns)
{
	char rest[] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			(char)('0' + ns % 10) };

	BUF_PUT_LITERAL(&c->line, ",\"ts\":");
	buf_addu(&c->line, ns / 1000);
	buf_put(&c->line, rest, sizeof(rest));
	if (ns > c->last)
		c->last = ns;
}

static void end_line(struct writer *w)
{
	struct chrome *c = w->priv;

	BUF_PUT_LITERAL(&c->line, "}");
	out_write(w->out, c->line.data, c->line.len);
	buf_clear(&c->line);
}

static void put_metadata(struct writer *w, const char *what, uint32_t pid, uint32_t tid,
			 const char *name)
{
	struct chrome *c = w->priv;

	begin_line(c, 'M');
	add_pid(&c->line, pid);
	add_tid(&c->line, tid);
	buf_addf(&c->line, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	json_out_string(&c->line, name);
	buf_addc(&c->line, '}');
	end_line(w);
}

/* Threads */

static uint32_t *number_of(struct chrome *c, enum axis_kind kind, uint32_t pid, uint32_t id)
{
	return hash_at(&c->index, (struct hash_key){ (uint64_t)pid << 32 | id, kind });
}

static void need_process(struct writer *w, uint32_t pid, const char *name)
{
	uint32_t *known = number_of(w->priv, AXIS_OF_PROCESS, pid, 0);

	if (!*known)
		put_metadata(w, "process_name", pid, pid, name);
	*known = 1;
}

static const char *comm_of(struct writer *w, uint32_t pid, uint32_t tid)
{
	struct chrome *c = w->priv;

	return timeline_text(&c->text, w->world, timeline_comm(w->world, pid, tid));
}

static void name_axis(struct writer *w, const struct event *ev, const struct axis *axis)
{
	char name[TIMELINE_CPU_NAME];

	if (axis->pid == CPUS) {
		need_process(w, CPUS, "cpus");
		timeline_cpu_name(name, ev->cpu, ev->slice.kind == SLICE_MASKED);
		put_metadata(w, "thread_name", CPUS, axis->tid, name);
		return;
	}
	need_process(w, ev->pid, comm_of(w, ev->pid, ev->pid));
	put_metadata(w, "thread_name", ev->pid, ev->tid, comm_of(w, ev->pid, ev->tid));
}

/* The thread of a slice. Names the thread before its first use. */
static struct axis *need_axis(struct writer *w, const struct event *ev)
{
	struct chrome *c = w->priv;
	bool on_cpu = timeline_on_cpu(ev);
	uint32_t *number = !on_cpu ? number_of(c, AXIS_OF_TASK, ev->pid, ev->tid)
			   : ev->slice.kind == SLICE_MASKED ? number_of(c, AXIS_OF_MASK, 0, ev->cpu)
							    : number_of(c, AXIS_OF_CPU, 0, ev->cpu);
	struct axis *axis;

	if (*number)
		return &c->axes[*number - 1];
	GROW(c->axes, c->nr + 1, c->cap);
	*number = (uint32_t)++c->nr;
	c->axes[c->nr - 1] = (struct axis){ .pid = on_cpu ? CPUS : ev->pid,
					    .tid = on_cpu ? CPUS + *number : ev->tid };
	axis = &c->axes[c->nr - 1];
	add_pid(&axis->place, axis->pid);
	add_tid(&axis->place, axis->tid);
	name_axis(w, ev, axis);
	return axis;
}

/* Slices */

/* As it is in a line. */
static struct quoted quote(struct writer *w, uint32_t name)
{
	struct chrome *c = w->priv;
	size_t at = c->texts.len;

	buf_adds(&c->texts, ",\"name\":");
	json_out_string(&c->texts, timeline_text(&c->text, w->world, name));
	return (struct quoted){ at, c->texts.len - at };
}

static void add_name(struct writer *w, uint32_t name)
{
	struct chrome *c = w->priv;
	uint32_t *known = timeline_number(&c->names, name);
	const struct quoted *quoted;

	if (!*known) {
		GROW(c->quoted, c->nr_quoted + 1, c->cap_quoted);
		c->quoted[c->nr_quoted] = quote(w, name);
		*known = (uint32_t)++c->nr_quoted;
	}
	quoted = &c->quoted[*known - 1];
	buf_put(&c->line, c->texts.data + quoted->at, quoted->len);
}

static void add_text(struct chrome *c, const struct timeline_arg *arg)
{
	if (arg->id == TIMELINE_FUNCTION) {
		buf_clear(&c->arg);
		buf_add(&c->arg, arg->text, arg->len); /* it has no NUL at its end */
		json_out_string(&c->line, c->arg.data);
		return;
	}
	/* A time or an address has nothing to escape. */
	BUF_PUT_LITERAL(&c->line, "\"");
	buf_put(&c->line, arg->text, arg->len);
	BUF_PUT_LITERAL(&c->line, "\"");
}

static void add_arg(struct chrome *c, const struct timeline_arg *arg)
{
	struct timeline_arg_info info = timeline_arg_info(arg->id);

	if (c->line.data[c->line.len - 1] != '{')
		BUF_PUT_LITERAL(&c->line, ",");
	BUF_PUT_LITERAL(&c->line, "\"");
	buf_adds(&c->line, info.name);
	BUF_PUT_LITERAL(&c->line, "\":");
	if (info.type == TIMELINE_TRUE)
		buf_adds(&c->line, "true");
	else if (info.type == TIMELINE_NUMBER)
		buf_addu(&c->line, arg->number);
	else
		add_text(c, arg);
}

static void add_args(struct writer *w, const struct event *ev, bool began_before)
{
	static const struct timeline_arg before = { .id = TIMELINE_BEGAN_BEFORE };
	struct chrome *c = w->priv;
	struct timeline_args args;

	timeline_args(&args, &c->text, w->world, ev);
	BUF_PUT_LITERAL(&c->line, ",\"args\":{");
	for (size_t i = 0; i < args.nr; i++)
		add_arg(c, &args.all[i]);
	if (began_before)
		add_arg(c, &before);
	BUF_PUT_LITERAL(&c->line, "}");
}

static void push_slice(struct axis *axis, struct open_slice slice)
{
	GROW(axis->open, axis->nr_open + 1, axis->cap_open);
	axis->open[axis->nr_open++] = slice;
}

static void put_slice(struct writer *w, const struct event *ev)
{
	struct chrome *c = w->priv;
	struct axis *axis = need_axis(w, ev);
	bool is_note = ev->slice.kind == SLICE_NOTE;
	struct open_slice slice = { 0 };

	if (ev->slice.leave)
		slice = axis->open[--axis->nr_open];
	else
		slice = (struct open_slice){ timeline_name(w->world, ev), ev->slice.cut };

	begin_line(c, is_note ? 'i' : ev->slice.leave ? 'E' : 'B');
	buf_put(&c->line, axis->place.data, axis->place.len);
	add_time(c, ev->time);
	if (is_note)
		buf_adds(&c->line, ",\"s\":\"t\"");
	if (!ev->slice.leave) {
		BUF_PUT_LITERAL(&c->line, ",\"cat\":\"");
		buf_adds(&c->line, timeline_kind_names[ev->slice.kind]);
		BUF_PUT_LITERAL(&c->line, "\"");
	}
	add_name(w, slice.name);
	if (is_note || ev->slice.leave)
		add_args(w, ev, !is_note && slice.before);
	else
		push_slice(axis, slice);
	end_line(w);
	if (!is_note)
		written_slice(&w->written, &ev->slice);
}

/* A number of a cpu, from this time on. Perfetto shows the name of the counter and that of the argument. */
static void put_value(struct writer *w, uint32_t cpu, const char *what, uint64_t time,
		      uint64_t value)
{
	struct chrome *c = w->priv;
	char name[TIMELINE_CPU_NAME];

	need_process(w, CPUS, "cpus");
	timeline_cpu_name(name, cpu, false);
	begin_line(c, 'C');
	add_pid(&c->line, CPUS);
	add_time(c, time);
	buf_adds(&c->line, ",\"name\":");
	json_out_string(&c->line, name);
	buf_adds(&c->line, ",\"args\":{");
	json_out_string(&c->line, what);
	buf_addc(&c->line, ':');
	buf_addu(&c->line, value);
	buf_addc(&c->line, '}');
	end_line(w);
}

static void put_counter(struct writer *w, const struct event *ev)
{
	struct chrome *c = w->priv;
	uint32_t name = source_name(w->world, ev->counter.source);

	if (ev->time != NO_TIME && ev->counter.source)
		put_value(w, ev->cpu, timeline_text(&c->text, w->world, name), ev->time,
			  ev->counter.value);
}

/* Losses */

static void put_lost(struct writer *w, const struct event_lost *lost, uint32_t cpu, uint64_t time)
{
	struct chrome *c = w->priv;

	need_process(w, CPUS, "cpus");
	begin_line(c, 'i');
	add_pid(&c->line, CPUS);
	add_tid(&c->line, CPUS);
	add_time(c, time);
	buf_addf(&c->line, ",\"s\":\"g\",\"name\":\"lost\",\"args\":{\"count\":%" PRIu64,
		 lost->count);
	if (lost->bytes)
		buf_addf(&c->line, ",\"bytes\":%" PRIu64, lost->bytes);
	if (cpu != NO_CPU)
		buf_addf(&c->line, ",\"cpu\":%" PRIu32, cpu);
	buf_addc(&c->line, '}');
	end_line(w);
}

static void take_lost(struct writer *w, const struct event *ev)
{
	struct chrome *c = w->priv;

	if (ev->time != NO_TIME && c->options.timeline.axis == AXIS_TIME) {
		put_lost(w, &ev->lost, ev->cpu, ev->time);
		return;
	}
	c->timeless.count += ev->lost.count;
	c->timeless.bytes += ev->lost.bytes;
}

/* The writer */

static int chrome_open(struct writer *w)
{
	out_puts(w->out, "{\"otherData\":{\"exporter\":\"kscope\"},\"traceEvents\":[");
	return 0;
}

static int chrome_put(struct writer *w, const struct event *ev)
{
	struct chrome *c = w->priv;

	if (ev->kind == EVENT_LOST) {
		take_lost(w, ev);
		return 0;
	}
	if (ev->kind == EVENT_COUNTER) {
		put_counter(w, ev);
		return 0;
	}
	timeline_count(&c->size, &ev->slice);
	if (ev->slice.kind == SLICE_RATE)
		put_value(w, ev->cpu, TIMELINE_RATE, ev->slice.since, timeline_rate(ev));
	else
		put_slice(w, ev);
	return 0;
}

static int chrome_finish(struct writer *w)
{
	struct chrome *c = w->priv;

	if (c->timeless.count || c->timeless.bytes)
		put_lost(w, &c->timeless, NO_CPU, c->last);
	out_puts(w->out, "\n]}\n");
	w->written.knows = WROTE_SLICES;
	timeline_warn(&c->size, w->out->path);
	return 0;
}

static void chrome_close(struct writer *w)
{
	struct chrome *c = w->priv;

	for (size_t i = 0; i < c->nr; i++) {
		free(c->axes[i].open);
		buf_release(&c->axes[i].place);
	}
	free(c->axes);
	free(c->quoted);
	buf_release(&c->line);
	buf_release(&c->text);
	buf_release(&c->arg);
	buf_release(&c->texts);
	timeline_numbers_release(&c->names);
	hash_release(&c->index);
}

/* Not .chrome.json: speedscope reads that as one of Chrome's own profiles. */
const struct writer_ops write_chrome = {
	.name = "chrome",
	.about = "timeline of calls in Chrome's trace event format (JSON)",
	.extension = ".trace.json",
	.needs = WRITER_TEXT,
	.takes = EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_STRETCH) | EVENT_BIT(EVENT_COUNTER) |
		 EVENT_BIT(EVENT_LOST),
	.next = "open it in ui.perfetto.dev or speedscope.app",
	.options = OPTION_USES({ &timeline_table, offsetof(struct chrome, options) },
			       { &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct chrome),
	.open = chrome_open,
	.put = chrome_put,
	.finish = chrome_finish,
	.close = chrome_close,
};
