// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * uftrace: the data folder of uftrace, for uftrace replay, graph, report, tui and dump.
 *
 * - Code of a kernel is a binary like any other (see uftrace_place.c), and its calls are on top of those of
 *   the program, in the same file. uftrace's own kernel data would be ftrace's ring buffers of a running
 *   Linux, with the symbols of that Linux.
 * - A slice that goes on at the end has no exit: uftrace lists it as a remaining function. If its task goes
 *   on later, after a gap, the slice ends, and begins again.
 * - A caller from before the trace turns up when the trace returns to it, but has to stand in front of
 *   everything in the file: at the end, such files are written again.
 * - Calls deeper than a record can say are left out, as uftrace record does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/uftrace_file.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/world.h"
#include "write/uftrace.h"

#define SESSION "0000000000000000"
#define MAP_FILE "sid-" SESSION ".map"
#define ENOUGH ((size_t)128 << 10)  /* bytes of a task's records, to write them */
#define TOO_MUCH ((size_t)32 << 20) /* of all tasks */
#define FIRST_FREE 1000000	    /* for tasks without a usable id */

struct point { /* a call that began, or one that is to end */
	uint64_t time, addr;
};

struct uftrace_task {
	uint32_t pid, tid; /* ours */
	uint32_t number;   /* uftrace's tid */
	struct buf records;
	uint64_t written;     /* records, in the buffer or in the file */
	uint64_t first, last; /* times */
	uint32_t depth;	      /* slices that are open */
	uint32_t deeper;      /* those beyond the limit */
	struct point *held;   /* ends of slices that go on, innermost first */
	size_t nr_held, cap_held;
	/* Callers from before the trace, and how many records came before each turned up. */
	struct point *callers;
	uint64_t *turned_up;
	size_t nr_callers, cap_callers, cap_turned_up;
};

struct uftrace {
	struct places places;
	struct uftrace_task *tasks;
	size_t nr, cap;
	struct hash task_by_id, taken, task_by_cpu;
	uint32_t next_free;
	size_t buffered;
	uint64_t left_out;
};

/* Tasks */

static bool take_number(struct uftrace *u, uint32_t number)
{
	uint32_t *taken;

	if (!number || number > INT32_MAX)
		return false;
	taken = hash_at(&u->taken, (struct hash_key){ number, 0 });
	if (*taken)
		return false;
	*taken = 1;
	return true;
}

/* uftrace's tids are unique, and not 0. */
static uint32_t number_of(struct uftrace *u, uint32_t tid)
{
	if (take_number(u, tid))
		return tid;
	if (!u->next_free)
		u->next_free = FIRST_FREE;
	while (!take_number(u, u->next_free))
		u->next_free++;
	return u->next_free;
}

/* Its callers from before the trace have to come before all its records. */
static bool has_records(const struct uftrace_task *task)
{
	return task->written || task->nr_callers;
}

/* Its index, + 1. Tasks that share a tid, one after the other, have a number each. */
static uint32_t task_of(struct uftrace *u, const struct event *ev)
{
	uint32_t *at = hash_at(&u->task_by_id, (struct hash_key){ ev->pid, ev->tid });

	if (!*at || (ev->slice.first && has_records(&u->tasks[*at - 1]))) {
		GROW(u->tasks, u->nr + 1, u->cap);
		u->tasks[u->nr++] = (struct uftrace_task){ .pid = ev->pid,
							   .tid = ev->tid,
							   .number = number_of(u, ev->tid),
							   .first = ev->time };
		*at = (uint32_t)u->nr;
	}
	return *at;
}

/* Records */

static void add_record(struct buf *buf, uint64_t time, uint64_t word)
{
	char *at = buf_reserve(buf, UFTRACE_RECORD);

	for (unsigned i = 0; i < 8; i++) {
		at[i] = (char)(time >> 8 * i);
		at[8 + i] = (char)(word >> 8 * i);
	}
	buf->len += UFTRACE_RECORD;
}

static void count_record(struct writer *w, uint64_t word)
{
	w->written.begins += uftrace_type(word) == UFTRACE_ENTRY;
	w->written.ends += uftrace_type(word) == UFTRACE_EXIT;
}

static char *file_of(const struct uftrace_task *task)
{
	return xasprintf("%" PRIu32 ".dat", task->number);
}

static void write_records(struct writer *w, struct uftrace_task *task)
{
	struct uftrace *u = w->priv;
	char *file = file_of(task);

	u->buffered -= task->records.len;
	folder_append(w->folder, file, task->records.data, task->records.len);
	/* Not only cleared: there may be many tasks. */
	buf_release(&task->records);
	free(file);
}

static void limit_buffers(struct writer *w, struct uftrace_task *task)
{
	struct uftrace *u = w->priv;

	if (task->records.len >= ENOUGH)
		write_records(w, task);
	for (size_t i = 0; u->buffered > TOO_MUCH && i < u->nr; i++) {
		if (u->tasks[i].records.len)
			write_records(w, &u->tasks[i]);
	}
}

static void put(struct writer *w, struct uftrace_task *task, uint64_t time, uint64_t word)
{
	struct uftrace *u = w->priv;

	task->last = time > task->last ? time : task->last;
	add_record(&task->records, task->last, word);
	count_record(w, word);
	task->written++;
	u->buffered += UFTRACE_RECORD;
	limit_buffers(w, task);
}

/* Slices */

static void end_slice(struct writer *w, struct uftrace_task *task, uint64_t time, uint64_t addr)
{
	if (task->deeper) {
		task->deeper--;
		w->written.ends++; /* left out, and reported */
		return;
	}
	if (!task->depth)
		return;
	task->depth--;
	put(w, task, time, uftrace_word(UFTRACE_EXIT, task->depth, addr));
}

/* The task goes on, so slices that seemed to go on have ended. */
static void end_held(struct writer *w, struct uftrace_task *task)
{
	for (size_t i = 0; i < task->nr_held; i++)
		end_slice(w, task, task->held[i].time, task->held[i].addr);
	task->nr_held = 0;
}

static void hold_end(struct uftrace_task *task, uint64_t time, uint64_t addr)
{
	GROW(task->held, task->nr_held + 1, task->cap_held);
	task->held[task->nr_held++] = (struct point){ time, addr };
}

static void turn_up(struct uftrace_task *task, uint64_t time, uint64_t addr)
{
	size_t nr = task->nr_callers;

	GROW(task->callers, nr + 1, task->cap_callers);
	GROW(task->turned_up, nr + 1, task->cap_turned_up);
	task->callers[nr] = (struct point){ time, addr };
	task->turned_up[nr] = task->written;
	task->nr_callers++;
	task->first = time;
	task->depth++;
}

static void begin_slice(struct writer *w, struct uftrace_task *task, uint64_t time, uint64_t addr)
{
	struct uftrace *u = w->priv;

	if (time < task->first && !task->depth) {
		turn_up(task, time, addr);
	} else if (task->deeper || task->depth == UFTRACE_DEPTHS) {
		task->deeper++;
		u->left_out++;
		w->written.begins++;
	} else {
		put(w, task, time, uftrace_word(UFTRACE_ENTRY, task->depth, addr));
		task->depth++;
	}
}

/* Part of the trace is missing: marks that in the task that ran. */
static void put_gap(struct writer *w, const struct event *ev)
{
	struct uftrace *u = w->priv;
	uint32_t at = ev->tid == NO_TASK
			      ? hash_get(&u->task_by_cpu, (struct hash_key){ ev->cpu, 0 })
			      : task_of(u, ev);

	if (!at || ev->slice.leave)
		return;
	end_held(w, &u->tasks[at - 1]);
	put(w, &u->tasks[at - 1], ev->time, uftrace_word(UFTRACE_LOST, u->tasks[at - 1].depth, 0));
}

static int put_slice(struct writer *w, const struct event *ev)
{
	struct uftrace *u = w->priv;
	uint64_t addr = place_frame(&u->places, ev->slice.frame);
	uint32_t handle = task_of(u, ev);
	struct uftrace_task *task = &u->tasks[handle - 1];

	if (addr == UINT64_MAX)
		return err_set(&w->err, ERR_OUTPUT, "%s: too many binaries for uftrace's addresses",
			       w->folder->path);
	if (ev->slice.leave && ev->slice.cut) {
		hold_end(task, ev->time, addr);
		return 0;
	}
	end_held(w, task);
	if (ev->slice.leave)
		end_slice(w, task, ev->time, addr);
	else
		begin_slice(w, task, ev->time, addr);
	return 0;
}

static int uftrace_put(struct writer *w, const struct event *ev)
{
	struct uftrace *u = w->priv;

	switch (ev->slice.kind) {
	case SLICE_MASKED:
	case SLICE_NOTE: /* it has no record with a value */
	case SLICE_RATE: return 0;
	case SLICE_GAP: put_gap(w, ev); return 0;
	case SLICE_RUN:
		if (!ev->slice.leave)
			*hash_at(&u->task_by_cpu, (struct hash_key){ ev->cpu, 0 }) = task_of(u, ev);
		return 0;
	default: return put_slice(w, ev);
	}
}

/* The end */

/* Records that came before a caller turned up are one call deeper. */
static void deepen(const struct uftrace_task *task, uint64_t *nr, char *data, size_t len)
{
	size_t known = 0;

	for (char *at = data; at < data + len; at += UFTRACE_RECORD, ++*nr) {
		uint64_t word = 0, depth;

		while (known < task->nr_callers && task->turned_up[known] <= *nr)
			known++;
		for (unsigned i = 8; i-- > 0;)
			word = word << 8 | (uint8_t)at[8 + i];
		depth = uftrace_depth(word) + task->nr_callers - known;
		if (depth >= UFTRACE_DEPTHS)
			depth = UFTRACE_DEPTHS - 1;
		word = uftrace_word(uftrace_type(word), depth, uftrace_address(word));
		for (unsigned i = 0; i < 8; i++)
			at[8 + i] = (char)(word >> 8 * i);
	}
}

static void copy_deeper(struct writer *w, const struct uftrace_task *task, int from, const char *to)
{
	char *data = xmalloc(ENOUGH);
	uint64_t nr = 0;
	ssize_t len;

	while ((len = read(from, data, ENOUGH)) > 0) {
		deepen(task, &nr, data, (size_t)len);
		folder_append(w->folder, to, data, (size_t)len);
	}
	free(data);
}

/* Puts the callers from before the trace in front of the records. The last one is the outermost. */
static void write_again(struct writer *w, const struct uftrace_task *task)
{
	struct buf head = { 0 };
	char *file = file_of(task), *temp = xasprintf("%s.new", file);
	int from = folder_read(w->folder, file);

	for (size_t i = 0; i < task->nr_callers; i++) {
		const struct point *caller = &task->callers[task->nr_callers - 1 - i];
		uint64_t depth = i < UFTRACE_DEPTHS ? i : UFTRACE_DEPTHS - 1;

		uint64_t word = uftrace_word(UFTRACE_ENTRY, depth, caller->addr);

		add_record(&head, caller->time, word);
		count_record(w, word);
	}
	folder_append(w->folder, temp, head.data, head.len);
	if (from >= 0) {
		copy_deeper(w, task, from, temp);
		close(from);
	}
	folder_rename(w->folder, temp, file);
	buf_release(&head);
	free(temp);
	free(file);
}

/* A pid that is unknown, or that uftrace cannot have, is the task's own number. */
static uint32_t process_of(const struct uftrace_task *task)
{
	return task->pid > INT32_MAX ? task->number : task->pid;
}

static void add_time(struct buf *buf, const char *what, uint64_t time)
{
	buf_addf(buf, "%s timestamp=%" PRIu64 ".%09" PRIu64, what, time / 1000000000,
		 time % 1000000000);
}

static void add_session(struct buf *buf, uint64_t time, uint32_t pid, const char *name)
{
	add_time(buf, "SESS", time);
	buf_addf(buf, " pid=%" PRIu32 " sid=" SESSION " exename=\"", pid);
	uftrace_add_word(buf, name);
	buf_adds(buf, "\"\n");
}

static const char *comm_of(const struct writer *w, uint32_t pid, uint32_t tid)
{
	uint32_t comm = world_comm(w->world, pid, tid);

	return comm ? str_text(w->world->strings, comm) : NULL;
}

static void set_number(uint8_t *at, uint64_t value, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

/* uftrace names tasks after the program of their session. */
static void write_tasks(struct writer *w)
{
	struct uftrace *u = w->priv;
	struct hash sessions = { 0 };
	struct buf text = { 0 };

	for (size_t i = 0; i < u->nr; i++) {
		const struct uftrace_task *task = &u->tasks[i];
		uint32_t *known = hash_at(&sessions, (struct hash_key){ process_of(task), 0 });
		const char *name = comm_of(w, task->pid, task->pid);

		if (!name)
			name = comm_of(w, task->pid, task->tid);
		if (!*known)
			add_session(&text, 0, process_of(task), name ? name : "?");
		*known = 1;
		add_time(&text, "TASK", task->first);
		buf_addf(&text, " tid=%" PRIu32 " pid=%" PRIu32 "\n", task->number,
			 process_of(task));
	}
	folder_append(w->folder, "task.txt", text.data, text.len);
	hash_release(&sessions);
	buf_release(&text);
}

static void add_name(struct buf *buf, const struct uftrace_task *task, const char *name)
{
	enum {
		HEAD = 8,
		IDS = 8,
		SAMPLE_ID = 16,
		SIZE = HEAD + IDS + UFTRACE_COMM_LEN + SAMPLE_ID
	};
	uint8_t record[SIZE] = { UFTRACE_PERF_COMM };
	size_t len = strlen(name);

	set_number(record + 6, SIZE, 2);
	set_number(record + HEAD, process_of(task), 4);
	set_number(record + HEAD + 4, task->number, 4);
	memcpy(record + HEAD + IDS, name, len < UFTRACE_COMM_LEN ? len : UFTRACE_COMM_LEN - 1);
	set_number(record + SIZE - 16, process_of(task), 4);
	set_number(record + SIZE - 12, task->number, 4);
	set_number(record + SIZE - 8, task->first, 8);
	buf_add(buf, record, SIZE);
}

static int by_first(const void *a, const void *b)
{
	const struct uftrace_task *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Threads with names of their own have them in a record of perf. */
static void write_names(struct writer *w)
{
	struct uftrace *u = w->priv;
	struct buf records = { 0 };

	if (u->nr)
		qsort(u->tasks, u->nr, sizeof(*u->tasks), by_first);
	for (size_t i = 0; i < u->nr; i++) {
		const struct uftrace_task *task = &u->tasks[i];
		const char *name = comm_of(w, task->pid, task->tid);

		if (name && name != comm_of(w, task->pid, task->pid))
			add_name(&records, task, name);
	}
	folder_append(w->folder, "perf-cpu0.dat", records.data, records.len);
	buf_release(&records);
}

static uint64_t max_stack(const struct uftrace *u)
{
	size_t most = 0;

	for (size_t i = 0; i < u->nr; i++)
		most = u->tasks[i].nr_callers > most ? u->tasks[i].nr_callers : most;
	return most < UINT16_MAX - UFTRACE_DEPTHS ? most + UFTRACE_DEPTHS : UINT16_MAX;
}

static void add_fact(const struct writer *w, struct buf *buf, const char *line, const char *key)
{
	const char *value = world_fact(w->world, key);

	buf_adds(buf, line);
	text_add_plain(buf, value ? value : "");
	buf_addc(buf, '\n');
}

static void write_info(struct writer *w)
{
	struct uftrace *u = w->priv;
	uint8_t head[UFTRACE_HEADER] = UFTRACE_MAGIC;
	struct buf text = { 0 };

	set_number(head + UFTRACE_AT_VERSION, UFTRACE_VERSION, 4);
	set_number(head + UFTRACE_AT_SIZE, UFTRACE_HEADER, 2);
	head[UFTRACE_AT_ENDIAN] = 1;
	head[UFTRACE_AT_CLASS] = 2;
	set_number(head + UFTRACE_AT_FEATURES,
		   UFTRACE_TASK_SESSION | UFTRACE_SYM_REL_ADDR | UFTRACE_MAX_STACK |
			   UFTRACE_PERF_EVENT,
		   8);
	set_number(head + UFTRACE_AT_INFO,
		   UFTRACE_EXE_NAME | UFTRACE_CMDLINE | UFTRACE_OSINFO | UFTRACE_TASKINFO |
			   UFTRACE_RECORD_VERSION,
		   8);
	set_number(head + UFTRACE_AT_MAX_STACK, max_stack(u), 2);
	buf_add(&text, head, sizeof(head));
	buf_addf(&text, "exename:%s\n", u->places.nr ? u->places.windows[0].name : "");
	add_fact(w, &text, "cmdline:", "cmdline");
	buf_adds(&text, "osinfo:lines=3\n");
	add_fact(w, &text, "osinfo:kernel=", "osrelease");
	add_fact(w, &text, "osinfo:hostname=", "hostname");
	buf_adds(&text, "osinfo:distro=\n");
	buf_addf(&text, "taskinfo:lines=2\ntaskinfo:nr_tid=%zu\ntaskinfo:tids=", u->nr);
	for (size_t i = 0; i < u->nr; i++)
		buf_addf(&text, "%s%" PRIu32, i ? "," : "", u->tasks[i].number);
	buf_adds(&text, "\nuftrace_version:kscope " KSCOPE_VERSION "\n");
	folder_append(w->folder, "info", text.data, text.len);
	buf_release(&text);
}

static int uftrace_open(struct writer *w)
{
	struct uftrace *u = w->priv;

	u->places.world = w->world;
	return 0;
}

static int uftrace_finish(struct writer *w)
{
	struct uftrace *u = w->priv;

	for (size_t i = 0; i < u->nr; i++) {
		write_records(w, &u->tasks[i]);
		if (u->tasks[i].nr_callers)
			write_again(w, &u->tasks[i]);
		/* Without an end, uftrace knows that they go on. */
		w->written.ends += u->tasks[i].nr_held;
	}
	write_names(w);
	write_tasks(w);
	places_write(&u->places, w->folder, MAP_FILE);
	folder_append(w->folder, "default.opts", "", 0);
	write_info(w);
	w->written.knows = WROTE_CALLS;
	if (u->left_out)
		log_note("left out %" PRIu64 " calls that are deeper than %d", u->left_out,
			 UFTRACE_DEPTHS);
	return 0;
}

static void uftrace_close(struct writer *w)
{
	struct uftrace *u = w->priv;

	for (size_t i = 0; i < u->nr; i++) {
		buf_release(&u->tasks[i].records);
		free(u->tasks[i].held);
		free(u->tasks[i].callers);
		free(u->tasks[i].turned_up);
	}
	free(u->tasks);
	places_release(&u->places);
	hash_release(&u->task_by_id);
	hash_release(&u->task_by_cpu);
	hash_release(&u->taken);
}

const struct writer_ops write_uftrace = {
	.name = "uftrace",
	.about = "timeline of calls, the data folder of uftrace",
	.takes = EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_STRETCH),
	.folder = &(const struct folder_mark){ "info", UFTRACE_MAGIC },
	.next = "run uftrace replay -d on it",
	.options = TIMELINE_OPTIONS,
	.priv_size = sizeof(struct uftrace),
	.open = uftrace_open,
	.put = uftrace_put,
	.finish = uftrace_finish,
	.close = uftrace_close,
};
