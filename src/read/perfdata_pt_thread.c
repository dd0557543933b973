// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_pt_thread: the events of threads, from the branches of Intel PT. */
#include "base/mem.h"
#include "read/perfdata_pt_parts.h"

#define KERNEL_ADDRESS ((uint64_t)1 << 63)

/* Each cpu has an idle thread of its own, or one that is not known. */
static struct hash_key key_of(uint32_t tid, uint32_t cpu)
{
	return (struct hash_key){ tid, tid && tid != NO_TASK ? 0 : 1 + (uint64_t)cpu };
}

static size_t thread_of(struct perfdata_pt *pt, const struct pt_queue *q, uint32_t pid,
			uint32_t tid)
{
	uint32_t *place = hash_at(&pt->by_tid, key_of(tid, q->cpu));

	if (!*place) {
		GROW(pt->threads, pt->nr_threads + 1, pt->cap_threads);
		pt->threads[pt->nr_threads++] = (struct pt_thread){ .tid = tid };
		*place = (uint32_t)pt->nr_threads;
	}
	pt->threads[*place - 1].pid = pid;
	return *place - 1;
}

static __attribute__((noinline)) void set_common(struct perfdata_pt *pt, const struct pt_queue *q,
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

static inline void use_common(struct perfdata_pt *pt, const struct pt_queue *q,
			      const struct pt_thread *thread)
{
	if (!pt->version || pt->common.tid != thread->tid || pt->common.pid != thread->pid ||
	    pt->common.cpu != q->cpu)
		set_common(pt, q, thread);
}

/* Other stages only change `outside`. */
static inline void begin_event(const struct perfdata_pt *pt, uint64_t time, struct event *ev,
			       uint32_t *version)
{
	if (*version != pt->version) {
		*version = pt->version;
		*ev = pt->common;
	}
	ev->time = time;
	ev->outside = 0;
	ev->branch.over = false;
}

/* An event that belongs to a thread. */
static struct event *put_event(struct perfdata_pt *pt, const struct pt_queue *q,
			       const struct pt_thread *thread, enum branch_kind kind)
{
	size_t at = pt->nr_events++;
	struct event *ev = &pt->events[at];

	use_common(pt, q, thread);
	begin_event(pt, q->time, ev, &pt->versions[at]);
	ev->branch.kind = kind;
	ev->branch.direct = false;
	ev->branch.from = ev->branch.to = ev->branch.next = 0;
	ev->branch.instructions = ev->branch.cycles = 0;
	ev->branch.context = IP_USER;
	return ev;
}

static uint64_t context_of(uint64_t address)
{
	return address & KERNEL_ADDRESS ? IP_KERNEL : IP_USER;
}

static void take_counts(struct pt_thread *thread, struct event_branch *branch)
{
	branch->instructions += thread->insns;
	branch->cycles += thread->cycles;
	thread->insns = thread->cycles = 0;
}

/* Where the thread goes on after it was away, or for the first time. */
static void put_begin(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		      uint64_t to)
{
	bool back = thread->known && thread->away;
	bool inside = back && thread->blind && (to & KERNEL_ADDRESS);
	struct event *ev;

	/* BEGIN: part of its trace is missing. */
	ev = put_event(pt, q, thread, inside ? BRANCH_JUMP : back ? BRANCH_LEAVE : BRANCH_BEGIN);
	ev->branch.from = inside ? thread->at : 0;
	ev->branch.to = to;
	ev->branch.over = !back && thread->away;
	ev->branch.context = context_of(to);
	thread->at = to;
	thread->known = true;
	thread->away = thread->entered = thread->blind = false;
	thread->insns = thread->cycles = 0;
}

/* Sets what is the branch's own. */
static inline void fill_branch(struct event_branch *branch, const struct ipt_branch *b)
{
	static const uint8_t kinds[] = {
		[IPT_DID_JUMP] = BRANCH_JUMP,	[IPT_DID_JUMP_ANY] = BRANCH_JUMP,
		[IPT_DID_CALL] = BRANCH_CALL,	[IPT_DID_RETURN] = BRANCH_RETURN,
		[IPT_DID_ENTER] = BRANCH_ENTER, [IPT_DID_LEAVE] = BRANCH_LEAVE,
		[IPT_DID_END] = BRANCH_ENTER,	[IPT_DID_INTERRUPT] = BRANCH_ENTER,
		[IPT_DID_PAUSE] = BRANCH_ENTER,
	};
	enum branch_kind kind = (enum branch_kind)kinds[b->kind];
	uint64_t next = kind == BRANCH_CALL || kind == BRANCH_ENTER ? b->from + b->size : 0;

	branch->kind = kind;
	branch->direct = b->kind == IPT_DID_JUMP;
	branch->from = b->from;
	branch->to = b->to;
	branch->next = next;
	branch->context = b->to ? context_of(b->to) : IP_KERNEL;
	branch->instructions = b->insns;
	branch->cycles = b->cycles;
}

/* Puts a branch of a thread, and up to max - 1 that follow with the same time (the usual case). Returns how many. */
static size_t put_branches(struct perfdata_pt *pt, const struct pt_queue *q,
			   struct pt_thread *thread, const struct ipt_branch *b, size_t max)
{
	struct event *first = pt->events + pt->nr_events, *ev = first;
	const struct ipt_branch *end = b + max;
	uint32_t *version = pt->versions + pt->nr_events;

	use_common(pt, q, thread);
	do {
		begin_event(pt, q->time, ev, version++);
		fill_branch(&ev++->branch, b++);
	} while (b < end && ev < pt->events + PT_BATCH - 1 && b->kind <= IPT_DID_PAUSE &&
		 b->time == q->tsc);
	take_counts(thread, &first->branch);
	thread->at = b[-1].to;
	thread->away = !b[-1].to;
	thread->entered = ev[-1].branch.kind == BRANCH_ENTER && b[-1].to & KERNEL_ADDRESS;
	pt->nr_events = (size_t)(ev - pt->events);
	return (size_t)(ev - first);
}

void pt_put_rest(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread, uint64_t at)
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

void pt_lose_thread(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		    uint64_t at)
{
	pt_put_rest(pt, q, thread, at);
	thread->known = false;
	thread->at = thread->insns = thread->cycles = 0;
}

/* Whether a gap is only the kernel's code, which is not at hand: the thread comes back from it. */
static bool is_blind(const struct pt_thread *thread, const struct ipt_branch *b)
{
	return b->size == IPT_GAP_FOREIGN && thread->known &&
	       (thread->away || (thread->entered && thread->at == b->from));
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
		put_branches(pt, q, thread, b, 1);
}

/* A thread runs here now, maybe after it was on another cpu. */
static void come_back(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		      uint64_t tsc)
{
	if (ipt_dark_ran(&pt->dark, thread->pid, thread->tid, tsc))
		pt_lose_thread(pt, q, thread, thread->insns ? thread->at : 0);
}

void pt_take_branch(struct perfdata_pt *pt, struct pt_queue *q, const struct ipt_branch *b)
{
	struct pt_thread *thread;

	if (b->kind == IPT_DID_SWITCH) {
		if (q->thread != SIZE_MAX)
			pt_add_counts(&pt->threads[q->thread], b->insns, b->cycles);
		q->thread = thread_of(pt, q, (uint32_t)b->to, (uint32_t)b->from);
		come_back(pt, q, &pt->threads[q->thread], b->time);
		return;
	}
	if (q->thread == SIZE_MAX)
		q->thread = thread_of(pt, q, q->tid, q->tid);
	thread = &pt->threads[q->thread];
	switch (b->kind) {
	case IPT_DID_GO_ON:
		come_back(pt, q, thread, b->time);
		if (!q->goes_on || !thread->known || thread->away)
			put_begin(pt, q, thread, b->to);
		break;
	case IPT_DID_BEGIN:
		come_back(pt, q, thread, b->time);
		put_begin(pt, q, thread, b->to);
		break;
	case IPT_DID_GAP:
		pt_add_counts(thread, b->insns, b->cycles);
		if (is_blind(thread, b))
			thread->away = thread->blind = true;
		else
			pt_lose_thread(pt, q, thread, b->from);
		note_gap(pt, q, b);
		break;
	case IPT_DID_NOTE:
		if (is_news(q, b))
			put_note(pt, q, thread, b);
		break;
	default:
		if (!thread->known)
			put_first(pt, q, thread, b);
		else /* the caller counts one of them */
			q->at += put_branches(pt, q, thread, b, q->piece->flow.nr - q->at) - 1;
		break;
	}
}

/* The thread is somewhere, but what it did since its last branch is not known. */
static void put_unknown(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread)
{
	put_event(pt, q, thread, BRANCH_BEGIN)->branch.over = true;
	thread->insns = thread->cycles = 0;
}

void pt_end_thread(struct perfdata_pt *pt, const struct event *ev)
{
	uint32_t at = hash_get(&pt->by_tid, key_of(ev->tid, ev->cpu));
	struct pt_thread *thread = at ? &pt->threads[at - 1] : NULL;
	struct pt_queue none = { .cpu = ev->cpu, .time = ev->time };
	struct event *end;

	if (!thread || !thread->known)
		return;
	if (ipt_dark_ran(&pt->dark, thread->pid, thread->tid, ipt_ns_to_tsc(&pt->time, ev->time)))
		put_unknown(pt, &none, thread);
	end = put_event(pt, &none, thread, BRANCH_END);
	end->branch.over = true;
	take_counts(thread, &end->branch);
	thread->known = thread->away = false;
}
