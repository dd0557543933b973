// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"
#include "read/perfdata_pt_parts.h"

#define MAX_THREADS 16	  /* that decode */
#define MUCH_TRACE 262144 /* bytes; less is not worth a thread */

/* The private part of an AUXTRACE_INFO record, in words. */
enum {
	INFO_PMU_TYPE,
	INFO_TIME_SHIFT,
	INFO_TIME_MULT,
	INFO_TIME_ZERO,
	INFO_HAS_TIME,
	INFO_SNAPSHOT = 8,
	INFO_BY_CPU = 9,
	INFO_MTC_BITS = 11,
	INFO_TSC_PER_CTC = 12,
	INFO_CTC_PER_TSC = 13,
	INFO_MAX_RATIO = 15,
	INFO_WORDS
};

/* The first reading */

static void take_info(struct perfdata_pt *pt, const struct perfdata *p, const uint64_t *info)
{
	uint64_t bits = info[INFO_MTC_BITS], config = 0;

	for (size_t i = 0; i < p->nr_attrs; i++) {
		if (p->attrs[i].raw.type == info[INFO_PMU_TYPE])
			config = p->attrs[i].raw.config;
	}
	pt->time = (struct ipt_ns){ info[INFO_TIME_SHIFT], info[INFO_TIME_MULT],
				    info[INFO_TIME_ZERO], info[INFO_HAS_TIME] };
	if (!pt->time.mult || pt->time.shift > 63)
		pt->time.known = false;
	if (bits)
		pt->clock.mtc_shift = (config & bits) >> __builtin_ctzll(bits) & 15;
	pt->clock.tsc_per_ctc[0] = (uint32_t)info[INFO_TSC_PER_CTC];
	pt->clock.tsc_per_ctc[1] = (uint32_t)info[INFO_CTC_PER_TSC];
	pt->clock.base_ratio = (uint32_t)info[INFO_MAX_RATIO];
	pt->apart = info[INFO_SNAPSHOT];
	pt->by_cpu = info[INFO_BY_CPU];
}

struct perfdata_pt *perfdata_pt_new(struct reader *r, struct cursor info)
{
	const struct perfdata *p = r->priv;
	struct perfdata_pt *pt;
	uint64_t words[INFO_WORDS] = { 0 };
	size_t nr = 0;
	char *kcore;

	cursor_u32(&info); /* padding */
	while (nr < INFO_WORDS && info.end - info.at >= 8)
		words[nr++] = cursor_u64(&info);
	if (nr <= INFO_HAS_TIME)
		return NULL;
	pt = xcalloc(1, sizeof(*pt));
	pt->ahead.all = r->all_branches;
	take_info(pt, p, words);
	kcore = p->folder ? xasprintf("%.*s/kcore_dir/kcore", (int)strlen(r->in->path) - 5,
				      r->in->path)
			  : NULL;
	perfdata_code_open(&pt->code, r, kcore);
	free(kcore);
	return pt;
}

/* In a trace by cpus, perf may also name the thread that ran first. */
static size_t queue_of(struct perfdata_pt *pt, uint32_t tid, uint32_t cpu)
{
	struct hash_key key = { cpu != NO_CPU ? cpu : tid, cpu != NO_CPU };
	uint32_t *place = hash_at(&pt->by_owner, key);

	if (!*place) {
		GROW(pt->queues, pt->nr_queues + 1, pt->cap_queues);
		if (cpu != NO_CPU)
			tid = NO_TASK;
		pt->queues[pt->nr_queues++] = (struct pt_queue){ .tid = tid, .cpu = cpu };
		ipt_history_queue(&pt->history, tid);
		*place = (uint32_t)pt->nr_queues;
	}
	return *place - 1;
}

static void add_part(struct perfdata_pt *pt, size_t queue, const struct trace_part *part)
{
	if (!part->len || part->offset + part->len < part->offset)
		return;
	trace_add(&pt->queues[queue].trace, part);
	pt->bytes += part->len;
}

void perfdata_pt_add_trace(struct perfdata_pt *pt, const struct trace_part *part, uint32_t tid,
			   uint32_t cpu)
{
	add_part(pt, queue_of(pt, tid, cpu), part);
}

int perfdata_pt_add_sample(struct perfdata_pt *pt, struct trace_part *part, const uint8_t *bytes,
			   const struct event *ev, struct err *err)
{
	uint32_t cpu = pt->by_cpu ? ev->cpu : NO_CPU;

	pt->apart = true;
	if (!part->len || (cpu == NO_CPU && ev->tid == NO_TASK))
		return 0;
	if (!part->in && trace_spool_add(&pt->spool, part, bytes, err) < 0)
		return -1;
	add_part(pt, queue_of(pt, ev->tid, cpu), part);
	return 0;
}

void perfdata_pt_add_switch(struct perfdata_pt *pt, const struct event *ev)
{
	size_t queue;

	ipt_history_thread(&pt->history, ev->pid, ev->tid);
	if (ev->cpu == NO_CPU)
		return;
	queue = queue_of(pt, NO_TASK, ev->cpu);
	ipt_history_switch(&pt->history, (uint32_t)queue, ipt_ns_to_tsc(&pt->time, ev->time),
			   ev->pid, ev->tid);
}

static void add_map(struct perfdata_pt *pt, const struct event *ev)
{
	const struct event_map *map = &ev->map;
	struct ipt_code *code;

	if (!(map->prot & 4) || map->guest)
		return;
	code = perfdata_code_of(&pt->code, map);
	ipt_history_map(&pt->history, map->kernel ? IPT_KERNEL_PID : ev->pid,
			ipt_ns_to_tsc(&pt->time, ev->time), map->addr, map->len, code);
}

void perfdata_pt_add_poke(struct perfdata_pt *pt, uint64_t time, struct ipt_poke poke,
			  const uint8_t *bytes)
{
	poke.time = ipt_ns_to_tsc(&pt->time, time);
	if (!ipt_pokes_add(&pt->history.pokes, &poke, bytes) && !pt->lost_pokes++)
		log_warn("too many changes of kernel code: ignoring the one at 0x%" PRIx64
			 " and later ones; that code cannot be decoded",
			 poke.address);
}

void perfdata_pt_add_event(struct perfdata_pt *pt, const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_MAP: add_map(pt, ev); break;
	case EVENT_COMM: ipt_history_thread(&pt->history, ev->pid, ev->tid); break;
	case EVENT_FORK:
		ipt_history_thread(&pt->history, ev->pid, ev->tid);
		if (ev->pid != ev->fork.parent_pid && !ev->fork.fresh)
			ipt_history_fork(&pt->history, ev->pid, ev->fork.parent_pid,
					 ipt_ns_to_tsc(&pt->time, ev->time));
		break;
	case EVENT_SWITCH:
		if (!ev->sched.out)
			perfdata_pt_add_switch(pt, ev);
		break;
	default: break;
	}
}

/* Traces */

static bool read_trace(const void *data, uint32_t queue, uint64_t position, uint8_t *to, size_t len)
{
	const struct perfdata_pt *pt = data;

	return trace_read(&pt->queues[queue].trace, position, to, len);
}

/* The heap */

static bool is_earlier(const struct perfdata_pt *pt, size_t a, size_t b)
{
	uint64_t x = pt->queues[pt->heap[a]].time, y = pt->queues[pt->heap[b]].time;

	return x != y ? x < y : pt->heap[a] < pt->heap[b];
}

static void swap_in_heap(struct perfdata_pt *pt, size_t a, size_t b)
{
	size_t queue = pt->heap[a];

	pt->heap[a] = pt->heap[b];
	pt->heap[b] = queue;
}

static void sink(struct perfdata_pt *pt, size_t at)
{
	for (;;) {
		size_t best = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < pt->nr_heap; child++)
			best = is_earlier(pt, child, best) ? child : best;
		if (best == at)
			return;
		swap_in_heap(pt, at, best);
		at = best;
	}
}

static uint64_t second_time(const struct perfdata_pt *pt)
{
	uint64_t time = UINT64_MAX;

	for (size_t child = 1; child <= 2 && child < pt->nr_heap; child++) {
		if (pt->queues[pt->heap[child]].time < time)
			time = pt->queues[pt->heap[child]].time;
	}
	return time;
}

static size_t helpers(const struct perfdata_pt *pt)
{
	size_t cpus = worker_cpus();

	if (cpus < 2 || pt->bytes < MUCH_TRACE)
		return 0;
	return cpus > MAX_THREADS ? MAX_THREADS : cpus - 1;
}

void perfdata_pt_start(struct perfdata_pt *pt)
{
	ipt_history_complete(&pt->history);
	ipt_dark_start(&pt->dark, &pt->history, pt->apart);
	pt->world = ipt_history_world(&pt->history);
	pt->ahead.world = &pt->world;
	pt->ahead.clock = &pt->clock;
	pt->ahead.read = read_trace;
	pt->ahead.data = pt;
	ipt_ahead_init(&pt->ahead);
	pt->heap = xcalloc(pt->nr_queues + 1, sizeof(*pt->heap));
	for (size_t i = 0; i < pt->nr_queues; i++) {
		struct pt_queue *q = &pt->queues[i];
		uint64_t first;

		if (pt->apart)
			trace_lay_out(&q->trace);
		else
			trace_sort(&q->trace);
		for (size_t part = 0; part < q->trace.nr; part++)
			ipt_ahead_add(&pt->ahead, (uint32_t)i, q->trace.parts[part].offset,
				      q->trace.parts[part].offset + q->trace.parts[part].len);
		q->thread = SIZE_MAX;
		first = trace_first_time(&q->trace);
		q->time = first ? ipt_ns_of(&pt->time, first) : 0;
		if (q->trace.nr)
			pt->heap[pt->nr_heap++] = i;
	}
	for (size_t i = pt->nr_heap / 2; i-- > 0;)
		sink(pt, i);
	ipt_ahead_start(&pt->ahead, helpers(pt));
}

/* Branches */

static void end_piece(struct perfdata_pt *pt, struct pt_queue *q)
{
	const struct ipt_flow *flow = &q->piece->flow;

	/* A piece without a PSB packet is part of the one before. */
	if (q->piece->done && flow->begun) {
		q->goes_on = flow->at.block != NULL;
		q->at_end = ipt_flow_at(flow);
		if (q->thread != SIZE_MAX)
			pt_add_counts(&pt->threads[q->thread], flow->insns, flow->cycles);
	}
	ipt_ahead_took(&pt->ahead, (uint32_t)(q - pt->queues));
	q->piece = NULL;
}

/* The trace before this piece is lost, or was not recorded. */
static void begin_span(struct perfdata_pt *pt, struct pt_queue *q)
{
	if (q->begun && q->thread != SIZE_MAX) {
		pt_lose_thread(pt, q, &pt->threads[q->thread], q->at_end);
		if (!pt->apart)
			pt->gap = (struct pt_gap){ IPT_GAP_LOST, 0, q->piece->begin,
						   (size_t)(q - pt->queues), true };
	}
	if (q->begun)
		ipt_dark_begin(&pt->dark, (uint32_t)(q - pt->queues), q->tsc);
	q->dark = q->begun || pt->apart;
	q->goes_on = false;
}

/* Finds the queue's next branch, and its time. False: there is none. */
static bool find_branch(struct perfdata_pt *pt, struct pt_queue *q)
{
	while (!q->piece || q->at == q->piece->flow.nr) {
		bool fresh = !q->piece || q->piece->done;

		if (q->piece)
			end_piece(pt, q);
		q->piece = ipt_ahead_next(&pt->ahead, (uint32_t)(q - pt->queues));
		q->at = 0;
		if (!q->piece)
			return false;
		if (fresh && q->piece->first_of_span)
			begin_span(pt, q);
		q->begun = true;
	}
	if (q->dark)
		ipt_dark_end(&pt->dark, (uint32_t)(q - pt->queues),
			     q->piece->flow.branches[q->at].time);
	q->dark = false;
	return true;
}

/* Updates the time of the queue; it never runs backwards. */
static inline void update_time(struct perfdata_pt *pt, struct pt_queue *q)
{
	uint64_t tsc = q->piece->flow.branches[q->at].time, time;

	if (tsc == q->tsc)
		return;
	q->tsc = tsc;
	time = ipt_ns_of(&pt->time, tsc);
	if (time > q->time)
		q->time = time;
}

/*
 * Takes branches of the first queue, as long as they come before those of the others. All events of a batch are of
 * one kind, so a note is alone.
 */
static void take_branches(struct perfdata_pt *pt, struct pt_queue *q, uint64_t limit)
{
	while (!pt->gap.waits && pt->nr_events < PT_BATCH - 1) {
		const struct ipt_branch *b;

		if (q->at == q->piece->flow.nr)
			return;
		b = &q->piece->flow.branches[q->at];
		update_time(pt, q);
		if (q->time >= limit || (b->kind == IPT_DID_NOTE && pt->nr_events))
			return;
		pt_take_branch(pt, q, b);
		q->at++;
		if (b->kind == IPT_DID_NOTE && pt->nr_events)
			return;
	}
}

static void drop_first(struct perfdata_pt *pt)
{
	pt->heap[0] = pt->heap[--pt->nr_heap];
	sink(pt, 0);
}

/* The time at which branches come after an event. Without a clock, all events of the file come before the traces. */
static uint64_t limit_of(const struct perfdata_pt *pt, const struct event *before)
{
	if (!before)
		return UINT64_MAX;
	if (!pt->time.known || before->time == NO_TIME || !before->time)
		return 0;
	return before->time;
}

size_t perfdata_pt_run(struct perfdata_pt *pt, const struct event *before, struct event **events)
{
	uint64_t limit = limit_of(pt, before);

	*events = pt->events + pt->taken;
	if (pt->taken < pt->nr_events)
		return pt->nr_events - pt->taken;
	pt->nr_events = pt->taken = 0;
	pt->ahead.active = pt->nr_heap;
	while (!pt->gap.waits && pt->nr_heap && !pt->nr_events) {
		struct pt_queue *q = &pt->queues[pt->heap[0]];
		uint64_t second = second_time(pt);

		if (q->time >= limit)
			break;
		if (!find_branch(pt, q)) {
			if (q->thread != SIZE_MAX)
				pt_put_rest(pt, q, &pt->threads[q->thread], q->at_end);
			if (pt->apart)
				ipt_dark_begin(&pt->dark, (uint32_t)pt->heap[0], q->tsc);
			drop_first(pt);
			continue;
		}
		take_branches(pt, q, second < limit ? second + 1 : limit);
		if (q->at < q->piece->flow.nr)
			update_time(pt, q);
		sink(pt, 0);
	}
	if (!pt->nr_events && !pt->gap.waits && before &&
	    (before->kind == EVENT_EXIT || (before->kind == EVENT_COMM && before->comm.exec)))
		pt_end_thread(pt, before);
	*events = pt->events;
	return pt->nr_events;
}

void perfdata_pt_took(struct perfdata_pt *pt, size_t nr)
{
	pt->taken += nr;
}

static int tell_gap(struct perfdata_pt *pt, struct reader *r, struct event *ev)
{
	const struct pt_queue *q = &pt->queues[pt->gap.queue];
	const struct trace_part *part = trace_at(&q->trace, pt->gap.position);
	uint64_t offset = part ? part->file_offset + (pt->gap.position - part->offset) : 0;
	bool cpu = q->tid == NO_TASK;

	pt->gap.waits = false;
	ev->time = q->time;
	ev->cpu = q->cpu;
	if (pt->gap.why <= IPT_GAP_LOST) {
		ev->kind = EVENT_LOST;
		ev->lost = (struct event_lost){ .count = 1 };
		return 1;
	}
	return reader_damage(r, ev, offset, 1, 0,
			     "Intel PT of %s %" PRIu32 ", code at 0x%" PRIx64 ": %s",
			     cpu ? "cpu" : "thread", cpu ? q->cpu : q->tid, pt->gap.address,
			     ipt_gap_names[pt->gap.why]);
}

int perfdata_pt_next(struct perfdata_pt *pt, struct reader *r, struct event *ev)
{
	return pt->gap.waits ? tell_gap(pt, r, ev) : 0;
}

void perfdata_pt_free(struct perfdata_pt *pt)
{
	if (!pt)
		return;
	if (pt->heap)
		ipt_ahead_release(&pt->ahead);
	for (size_t i = 0; i < pt->nr_queues; i++)
		trace_release(&pt->queues[i].trace);
	free(pt->queues);
	free(pt->heap);
	free(pt->threads);
	hash_release(&pt->by_owner);
	hash_release(&pt->by_tid);
	ipt_dark_release(&pt->dark);
	ipt_history_release(&pt->history);
	perfdata_code_release(&pt->code);
	trace_spool_close(&pt->spool);
	free(pt);
}
