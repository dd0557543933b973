// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfdata_pt.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"
#include "pt/ahead.h"
#include "pt/history.h"
#include "pt/packet.h"
#include "read/perfdata_code.h"

#define BATCH 64	  /* events of one call */
#define MAX_THREADS 16	  /* that decode */
#define MUCH_TRACE 262144 /* bytes; less is not worth a thread */
#define FIRST_LOOK 4096	  /* bytes in which to look for the first time */
#define KERNEL_ADDRESS ((uint64_t)1 << 63)

/* The private part of an AUXTRACE_INFO record, in words. */
enum {
	INFO_PMU_TYPE,
	INFO_TIME_SHIFT,
	INFO_TIME_MULT,
	INFO_TIME_ZERO,
	INFO_HAS_TIME,
	INFO_MTC_BITS = 11,
	INFO_TSC_PER_CTC = 12,
	INFO_CTC_PER_TSC = 13,
	INFO_MAX_RATIO = 15,
	INFO_WORDS
};

struct pt_time { /* ns and ticks of the TSC */
	uint64_t shift, mult, zero;
	bool known;
};

/* A thread, over all cpus that it runs on. */
struct pt_thread {
	uint32_t pid, tid;
	uint64_t at;		/* where it went on after its last branch; 0: unknown */
	uint64_t insns, cycles; /* since its last branch */
	bool away;		/* it is in code that is not traced */
	bool known;		/* its stack is: it has a BEGIN, and no gap since */
};

struct pt_queue {
	uint32_t tid, cpu;
	struct perfdata_chunks chunks;
	struct ipt_piece *piece; /* NULL: none yet, or no more */
	size_t at;		 /* the next branch in it */
	uint64_t time;		 /* of that branch, or at most of the next piece */
	uint64_t tsc;		 /* of that branch */
	size_t thread;
	uint64_t
		at_end; /* the address at which the code was at the end of the piece before; 0: none */
	bool goes_on; /* the piece before led to the begin of this one */
	bool begun;
	uint8_t ratio; /* of the core's clock; 0: unknown */
};

struct pt_gap {
	enum ipt_gap why;
	uint64_t address, position;
	size_t queue;
	bool waits;
};

struct perfdata_pt {
	struct perfdata_code code;
	struct ipt_history history;
	struct ipt_world world;
	struct ipt_clock_info clock;
	struct ipt_ahead ahead;
	struct pt_time time;
	struct pt_queue *queues;
	size_t nr_queues, cap_queues;
	struct hash by_owner; /* of a queue: index + 1 */
	uint64_t bytes;
	size_t *heap; /* queues with something to come, by time */
	size_t nr_heap;
	struct pt_thread *threads;
	size_t nr_threads, cap_threads;
	struct hash by_tid; /* index + 1 */
	struct event events[BATCH];
	/* What all events of a thread on a queue have in common, which events[] need not get again. */
	struct event common;
	uint32_t version, versions[BATCH];
	size_t nr_events, taken;
	struct pt_gap gap;
};

/* Time */

static uint64_t ns_of(const struct pt_time *time, uint64_t tsc)
{
	uint64_t rest;

	if (!time->known)
		return tsc;
	rest = tsc & (((uint64_t)1 << time->shift) - 1);
	return time->zero + (tsc >> time->shift) * time->mult +
	       (uint64_t)((unsigned __int128)rest * time->mult >> time->shift);
}

static uint64_t tsc_of(const struct pt_time *time, uint64_t ns)
{
	if (!time->known || ns == NO_TIME || ns < time->zero)
		return 0;
	ns -= time->zero;
	return (uint64_t)(((unsigned __int128)ns << time->shift) / time->mult);
}

/* The first reading */

static void take_info(struct perfdata_pt *pt, const struct perfdata *p, const uint64_t *info)
{
	uint64_t bits = info[INFO_MTC_BITS], config = 0;

	for (size_t i = 0; i < p->nr_attrs; i++) {
		if (p->attrs[i].raw.type == info[INFO_PMU_TYPE])
			config = p->attrs[i].raw.config;
	}
	pt->time = (struct pt_time){ info[INFO_TIME_SHIFT], info[INFO_TIME_MULT],
				     info[INFO_TIME_ZERO], info[INFO_HAS_TIME] };
	if (!pt->time.mult || pt->time.shift > 63)
		pt->time.known = false;
	if (bits)
		pt->clock.mtc_shift = (config & bits) >> __builtin_ctzll(bits) & 15;
	pt->clock.tsc_per_ctc[0] = (uint32_t)info[INFO_TSC_PER_CTC];
	pt->clock.tsc_per_ctc[1] = (uint32_t)info[INFO_CTC_PER_TSC];
	pt->clock.base_ratio = (uint32_t)info[INFO_MAX_RATIO];
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

void perfdata_pt_add_trace(struct perfdata_pt *pt, const struct perfdata_chunk *chunk)
{
	size_t queue = queue_of(pt, chunk->tid, chunk->cpu);
	struct pt_queue *q = &pt->queues[queue];

	if (!chunk->len || chunk->offset + chunk->len < chunk->offset)
		return;
	GROW(q->chunks.all, q->chunks.nr + 1, q->chunks.cap);
	q->chunks.all[q->chunks.nr++] = *chunk;
	pt->bytes += chunk->len;
}

void perfdata_pt_add_switch(struct perfdata_pt *pt, const struct event *ev)
{
	size_t queue;

	ipt_history_thread(&pt->history, ev->pid, ev->tid);
	if (ev->cpu == NO_CPU)
		return;
	queue = queue_of(pt, NO_TASK, ev->cpu);
	ipt_history_switch(&pt->history, (uint32_t)queue, tsc_of(&pt->time, ev->time), ev->pid,
			   ev->tid);
}

static void add_map(struct perfdata_pt *pt, const struct event *ev)
{
	const struct event_map *map = &ev->map;
	struct ipt_code *code;

	if (!(map->prot & 4) || map->guest)
		return;
	code = perfdata_code_of(&pt->code, map);
	if (code)
		ipt_history_map(&pt->history, map->kernel ? IPT_KERNEL_PID : ev->pid,
				tsc_of(&pt->time, ev->time), map->addr, map->len, code);
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
					 tsc_of(&pt->time, ev->time));
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

	return perfdata_chunks_read(&pt->queues[queue].chunks, position, to, len);
}

/* The time of the first PSB packet, as far as its packets tell; else 0. */
static uint64_t first_time(const struct perfdata_pt *pt, size_t queue)
{
	const struct perfdata_chunks *chunks = &pt->queues[queue].chunks;
	uint8_t bytes[FIRST_LOOK + IPT_LONGEST] = { 0 };
	size_t len = chunks->nr && chunks->all[0].len < FIRST_LOOK ? (size_t)chunks->all[0].len
								   : FIRST_LOOK;
	const uint8_t *at, *end = bytes + len;
	struct ipt_packet packet;

	if (!chunks->nr || !perfdata_chunks_read(chunks, chunks->all[0].offset, bytes, len))
		return 0;
	at = ipt_packet_find_psb(bytes, end);
	while (at && at < end && *at != 0x19) {
		if (ipt_packet_read(at, end, &packet) <= 0 || packet.kind == IPT_PSBEND)
			return 0;
		at += packet.size;
	}
	if (at && end - at >= 8) {
		uint64_t tsc;

		memcpy(&tsc, at, sizeof(tsc));
		return ns_of(&pt->time, tsc >> 8);
	}
	return 0;
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
	pt->world = ipt_history_world(&pt->history);
	pt->ahead.world = &pt->world;
	pt->ahead.clock = &pt->clock;
	pt->ahead.read = read_trace;
	pt->ahead.data = pt;
	ipt_ahead_init(&pt->ahead);
	pt->heap = xcalloc(pt->nr_queues + 1, sizeof(*pt->heap));
	for (size_t i = 0; i < pt->nr_queues; i++) {
		struct pt_queue *q = &pt->queues[i];

		perfdata_chunks_complete(&q->chunks);
		for (size_t c = 0; c < q->chunks.nr; c++)
			ipt_ahead_add(&pt->ahead, (uint32_t)i, q->chunks.all[c].offset,
				      q->chunks.all[c].offset + q->chunks.all[c].len);
		q->thread = SIZE_MAX;
		q->time = first_time(pt, i);
		if (q->chunks.nr)
			pt->heap[pt->nr_heap++] = i;
	}
	for (size_t i = pt->nr_heap / 2; i-- > 0;)
		sink(pt, i);
	ipt_ahead_start(&pt->ahead, helpers(pt));
}

/* Branches */

static size_t thread_of(struct perfdata_pt *pt, uint32_t pid, uint32_t tid)
{
	uint32_t *place = hash_at(&pt->by_tid, (struct hash_key){ tid, tid ? 0 : pid });

	if (!*place) {
		GROW(pt->threads, pt->nr_threads + 1, pt->cap_threads);
		pt->threads[pt->nr_threads++] = (struct pt_thread){ .tid = tid };
		*place = (uint32_t)pt->nr_threads;
	}
	pt->threads[*place - 1].pid = pid;
	return *place - 1;
}

static void set_common(struct perfdata_pt *pt, const struct pt_queue *q,
		       const struct pt_thread *thread)
{
	pt->version++;
	pt->common = (struct event){
		.kind = EVENT_BRANCH,
		.cpu = q->cpu,
		.pid = thread->pid,
		.tid = thread->tid,
		.made_of = EVENT_BIT(EVENT_AUX),
		.branch = { .by_thread = true },
	};
}

/* An event that belongs to a thread. Other stages only change `outside`. */
static inline struct event *put_event(struct perfdata_pt *pt, const struct pt_queue *q,
				      const struct pt_thread *thread, enum branch_kind kind)
{
	size_t at = pt->nr_events++;
	struct event *ev = &pt->events[at];

	if (!pt->version || pt->common.tid != thread->tid || pt->common.pid != thread->pid ||
	    pt->common.cpu != q->cpu)
		set_common(pt, q, thread);
	if (pt->versions[at] != pt->version) {
		pt->versions[at] = pt->version;
		*ev = pt->common;
	}
	ev->time = q->time;
	ev->outside = 0;
	ev->branch.kind = kind;
	ev->branch.direct = ev->branch.over = false;
	ev->branch.from = ev->branch.to = ev->branch.next = 0;
	ev->branch.instructions = ev->branch.cycles = 0;
	ev->branch.context = IP_USER;
	return ev;
}

static uint64_t context_of(uint64_t address)
{
	return address & KERNEL_ADDRESS ? IP_KERNEL : IP_USER;
}

static void add_counts(struct pt_thread *thread, uint64_t insns, uint64_t cycles)
{
	thread->insns += insns;
	thread->cycles += cycles;
}

static void take_counts(struct pt_thread *thread, struct event_branch *branch)
{
	branch->instructions = thread->insns;
	branch->cycles = thread->cycles;
	thread->insns = thread->cycles = 0;
}

/* Where the thread goes on after it was away, or for the first time. */
static void put_begin(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		      uint64_t to)
{
	bool back = thread->known && thread->away;
	struct event *ev;

	/* Part of its trace is missing. */
	ev = put_event(pt, q, thread, back ? BRANCH_LEAVE : BRANCH_BEGIN);
	ev->branch.to = to;
	ev->branch.context = context_of(to);
	thread->at = to;
	thread->known = true;
	thread->away = false;
	thread->insns = thread->cycles = 0;
}

static inline void put_branch(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
			      const struct ipt_branch *b)
{
	static const uint8_t kinds[] = {
		[IPT_DID_JUMP] = BRANCH_JUMP,	[IPT_DID_JUMP_ANY] = BRANCH_JUMP,
		[IPT_DID_CALL] = BRANCH_CALL,	[IPT_DID_RETURN] = BRANCH_RETURN,
		[IPT_DID_ENTER] = BRANCH_ENTER, [IPT_DID_LEAVE] = BRANCH_LEAVE,
		[IPT_DID_END] = BRANCH_ENTER,	[IPT_DID_INTERRUPT] = BRANCH_ENTER,
		[IPT_DID_PAUSE] = BRANCH_ENTER,
	};
	struct event *ev = put_event(pt, q, thread, (enum branch_kind)kinds[b->kind]);

	ev->branch.from = b->from;
	ev->branch.to = b->to;
	ev->branch.next = ev->branch.kind == BRANCH_CALL || ev->branch.kind == BRANCH_ENTER
				  ? b->from + b->size
				  : 0;
	ev->branch.context = b->to ? context_of(b->to) : IP_KERNEL;
	ev->branch.instructions = b->insns + thread->insns;
	ev->branch.cycles = b->cycles + thread->cycles;
	thread->insns = thread->cycles = 0;
	ev->branch.direct = b->kind == IPT_DID_JUMP;
	thread->at = b->to;
	thread->away = !b->to;
}

/* The trace ends at the address `at`, maybe only for now. */
static void put_rest(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		     uint64_t at)
{
	struct event *ev;

	if (!thread->known || thread->away || !at)
		return;
	ev = put_event(pt, q, thread, BRANCH_JUMP);
	ev->branch.to = thread->at = at;
	ev->branch.context = context_of(at);
	ev->branch.direct = true;
	take_counts(thread, &ev->branch);
}

/*
 * Part of the trace is missing behind the address `at`. The stages after this one learn of it by the next BEGIN: an
 * END would say that the thread is in code that is not traced, and keeps its calls.
 */
static void lose_thread(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
			uint64_t at)
{
	put_rest(pt, q, thread, at);
	thread->known = false;
	thread->at = thread->insns = thread->cycles = 0;
}

static void note_gap(struct perfdata_pt *pt, struct pt_queue *q, const struct ipt_branch *b)
{
	pt->gap = (struct pt_gap){ (enum ipt_gap)b->size, b->from, b->to, (size_t)(q - pt->queues),
				   true };
	q->goes_on = false;
}

/* What is not traced is most likely the kernel. */
static uint64_t note_context(const struct pt_thread *thread, uint64_t address)
{
	if (!address)
		address = thread->at;
	return address ? context_of(address) : IP_KERNEL;
}

/* A frequency is worth a note only if it has changed: each PSB packet repeats it. */
static bool is_news(struct pt_queue *q, const struct ipt_branch *b)
{
	uint8_t before = q->ratio;

	if (b->size != NOTE_CBR)
		return true;
	q->ratio = (uint8_t)b->to;
	return before && before != q->ratio;
}

static void put_note(struct perfdata_pt *pt, const struct pt_queue *q,
		     const struct pt_thread *thread, const struct ipt_branch *b)
{
	size_t at = pt->nr_events++;

	pt->versions[at] = 0; /* not a branch */
	pt->events[at] = (struct event){
		.kind = EVENT_NOTE,
		.time = q->time,
		.cpu = q->cpu,
		.pid = thread->pid,
		.tid = thread->tid,
		.made_of = EVENT_BIT(EVENT_AUX),
		.note = { .kind = (enum note_kind)b->size,
			  .value = b->to,
			  .address = b->from,
			  .context = note_context(thread, b->from),
			  .instructions = b->insns + thread->insns,
			  .cycles = b->cycles + thread->cycles },
	};
}

/* A branch of a thread that is new here, or that has ended, if the trace's clock is late. */
static void put_first(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		      const struct ipt_branch *b)
{
	bool late = thread->at;

	if (late || b->to)
		put_begin(pt, q, thread, late ? thread->at : b->to);
	if (late)
		put_branch(pt, q, thread, b);
}

/* Makes at most two events of a branch. */
static inline void take_branch(struct perfdata_pt *pt, struct pt_queue *q,
			       const struct ipt_branch *b)
{
	struct pt_thread *thread;

	if (b->kind == IPT_DID_SWITCH) {
		if (q->thread != SIZE_MAX)
			add_counts(&pt->threads[q->thread], b->insns, b->cycles);
		q->thread = thread_of(pt, (uint32_t)b->to, (uint32_t)b->from);
		return;
	}
	if (q->thread == SIZE_MAX)
		q->thread = thread_of(pt, q->tid, q->tid);
	thread = &pt->threads[q->thread];
	switch (b->kind) {
	case IPT_DID_GO_ON:
		if (!q->goes_on || !thread->known || thread->away)
			put_begin(pt, q, thread, b->to);
		break;
	case IPT_DID_BEGIN: put_begin(pt, q, thread, b->to); break;
	case IPT_DID_GAP:
		add_counts(thread, b->insns, b->cycles);
		lose_thread(pt, q, thread, b->from);
		note_gap(pt, q, b);
		break;
	case IPT_DID_NOTE:
		if (is_news(q, b))
			put_note(pt, q, thread, b);
		break;
	default:
		if (!thread->known)
			put_first(pt, q, thread, b);
		else
			put_branch(pt, q, thread, b);
		break;
	}
}

static void end_piece(struct perfdata_pt *pt, struct pt_queue *q)
{
	const struct ipt_flow *flow = &q->piece->flow;

	/* A piece without a PSB packet is part of the one before. */
	if (q->piece->done && flow->begun) {
		q->goes_on = flow->at.block != NULL;
		q->at_end = ipt_flow_at(flow);
		if (q->thread != SIZE_MAX)
			add_counts(&pt->threads[q->thread], flow->insns, flow->cycles);
	}
	ipt_ahead_took(&pt->ahead, (uint32_t)(q - pt->queues));
	q->piece = NULL;
}

/* Part of the trace is missing before this piece. */
static void begin_span(struct perfdata_pt *pt, struct pt_queue *q)
{
	if (q->begun && q->thread != SIZE_MAX) {
		lose_thread(pt, q, &pt->threads[q->thread], q->at_end);
		pt->gap = (struct pt_gap){ IPT_GAP_LOST, 0, q->piece->begin,
					   (size_t)(q - pt->queues), true };
	}
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
	return true;
}

/* Updates the time of the queue; it never runs backwards. */
static inline void update_time(struct perfdata_pt *pt, struct pt_queue *q)
{
	uint64_t tsc = q->piece->flow.branches[q->at].time, time;

	if (tsc == q->tsc)
		return;
	q->tsc = tsc;
	time = ns_of(&pt->time, tsc);
	if (time > q->time)
		q->time = time;
}

/*
 * Takes branches of the first queue, as long as they come before those of the others. All events of a batch are of
 * one kind, so a note is alone.
 */
static void take_branches(struct perfdata_pt *pt, struct pt_queue *q, uint64_t limit)
{
	while (!pt->gap.waits && pt->nr_events < BATCH - 1) {
		const struct ipt_branch *b;

		if (q->at == q->piece->flow.nr)
			return;
		b = &q->piece->flow.branches[q->at];
		update_time(pt, q);
		if (q->time >= limit || (b->kind == IPT_DID_NOTE && pt->nr_events))
			return;
		take_branch(pt, q, b);
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

/* Of the last event that was handed over: its thread's calls are over. */
static void end_thread(struct perfdata_pt *pt, const struct event *ev)
{
	uint32_t at = hash_get(&pt->by_tid, (struct hash_key){ ev->tid, ev->tid ? 0 : ev->pid });
	struct pt_thread *thread = at ? &pt->threads[at - 1] : NULL;
	struct pt_queue none = { .cpu = ev->cpu, .time = ev->time };
	struct event *end;

	if (!thread || !thread->known)
		return;
	end = put_event(pt, &none, thread, BRANCH_END);
	end->branch.over = true;
	take_counts(thread, &end->branch);
	thread->known = thread->away = false;
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
				put_rest(pt, q, &pt->threads[q->thread], q->at_end);
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
		end_thread(pt, before);
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
	const struct perfdata_chunk *chunk = perfdata_chunks_at(&q->chunks, pt->gap.position);
	uint64_t offset = chunk ? chunk->file_offset + (pt->gap.position - chunk->offset) : 0;
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
		free(pt->queues[i].chunks.all);
	free(pt->queues);
	free(pt->heap);
	free(pt->threads);
	hash_release(&pt->by_owner);
	hash_release(&pt->by_tid);
	ipt_history_release(&pt->history);
	perfdata_code_release(&pt->code);
	free(pt);
}
