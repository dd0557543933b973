// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control flow of a vCPU, block by block. A block is usually followed by one that followed it before,
 * and then the trace has one bit for the step: wire/trace.h. Only steps that are new, or that the code
 * does not explain, take the slow path, which reads registers.
 */
#include "trace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "api.h"
#include "args.h"
#include "range.h"
#include "sample.h"
#include "trace_parts.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define SYNC_BYTES (1u << 20) /* between two points where a reader can start */
#define CLOCK_NS 100000
#define CLOCK_WORDS 16	  /* words of steps between two readings of the clock */
#define RETRY_BLOCKS 4096 /* blocks to skip after a loss */

/* An instruction where tracing begins or ends. */
struct place {
	struct block *block;
	unsigned index;
	bool end;
};

/* The current block of a vCPU that is not traced now. */
static struct node nowhere = { .way = WAY_SLOW };

static struct tracer *_Atomic tracers[WIRE_CPUS_MAX];
static atomic_bool running;

/* Begin and end */

static bool is_tracing(const struct tracer *t)
{
	return t->cur != &nowhere;
}

/*
 * Code may run at addresses that it was not translated for, and a handler of M-profile may return. A
 * direct branch needs no check: its distance is fixed.
 */
static void set_careful(struct tracer *t)
{
	bool careful = t->shift || t->written.exception ||
		       (t->written.level == WIRE_LEVEL_USER && look_moves());

	t->careful = careful ? WAY_JUMP_ANY : WAY_SLOW;
}

static void give_up(struct tracer *t)
{
	t->cur = &nowhere;
	t->retry = RETRY_BLOCKS;
	t->out.steps = EMIT_NO_STEPS;
	t->out.run = NULL;
	t->out.at = t->out.begin;
	emit_sleep(&t->out);
	t->out.since_sync = SYNC_BYTES; /* the next begin needs a new dictionary */
}

static void publish_counts(struct tracer *t)
{
	atomic_store_explicit(&t->out.track->instructions, t->total, memory_order_relaxed);
	atomic_store_explicit(&t->out.track->branches, t->branches, memory_order_relaxed);
}

static void begin(struct tracer *t, struct node *node, unsigned skip)
{
	uint64_t pc = skip ? node->block->start : trace_real_pc(t, node);
	bool fits;

	look_at(t->cpu, pc, &t->written);
	trace_set_active(t, 0);
	t->unwanted = NULL;
	t->saved_mask = WIRE_MASK_UNKNOWN;
	if (!args_wants_level(t->written.level)) {
		t->unwanted = node;
		return;
	}
	t->shift = pc - node->wire.start;
	t->total += node->wire.count - skip;
	if (t->out.since_sync >= SYNC_BYTES) {
		fits = trace_put_sync(t, node, skip, 0);
	} else {
		fits = emit_room(&t->out);
		if (fits) {
			trace_put_exact_time(t);
			trace_put_begin(t, node, skip, 0);
		}
	}
	if (!fits) {
		t->total -= node->wire.count - skip;
		give_up(t);
		return;
	}
	t->cur = node;
	trace_set_active(t, t->written.exception);
	set_careful(t);
}

/* Ends the trace after `ran` instructions of the current block. */
static void end(struct tracer *t, unsigned ran)
{
	struct node *cur = t->cur;

	t->unwanted = NULL;
	if (!is_tracing(t))
		return;
	if (!emit_room(&t->out)) {
		give_up(t);
		return;
	}
	trace_put_exact_time(t);
	emit_close_steps(&t->out);
	emit_byte(&t->out, WIRE_TRACE_END);
	emit_number(&t->out, ran);
	emit_sleep(&t->out);
	t->total -= cur->wire.count - ran;
	t->cur = &nowhere;
	publish_counts(t);
}

/* Steps */

/* A step that is not a bit. */
static __attribute__((noinline)) void slow_step(struct tracer *t, struct node *to)
{
	struct step step = { .to = to, .ran = t->cur->wire.count };

	if (!atomic_load_explicit(&running, memory_order_relaxed)) {
		end(t, t->cur->wire.count);
		return;
	}
	trace_explain(t, &step);
	if (step.state)
		trace_guess_mask(t, &step);
	if (step.state && !args_wants_level(step.look.level)) {
		end(t, (unsigned)step.ran);
		t->unwanted = to;
		return;
	}
	if (!emit_room(&t->out)) {
		give_up(t);
		return;
	}
	if (step.state && t->written.level != WIRE_LEVEL_USER && step.look.level == WIRE_LEVEL_USER)
		trace_note_code(t, step.pc, &step.look);
	trace_put_step(t, &step);
	set_careful(t);
	if (t->out.since_sync >= SYNC_BYTES) {
		look_at(t->cpu, step.pc, &t->written); /* a reader may begin here */
		if (!trace_put_sync(t, to, 0, WIRE_BEGIN_GOES_ON))
			give_up(t);
	}
	/* At the first instruction of an exception, some cpus do not have the interrupted address. */
	if (args.check && !step.trap && is_tracing(t) && !trace_check(t, false))
		give_up(t);
}

/* Writes the time, and hands the trace over at most every CLOCK_NS. */
static void update_time(struct tracer *t)
{
	t->words = 0;
	emit_time(&t->out, sample_now());
	if (t->out.time < t->handed + CLOCK_NS)
		return;
	t->handed = t->out.time;
	emit_commit(&t->out);
	publish_counts(t);
}

/* Writes 64 steps. */
static __attribute__((noinline)) void full_word(struct tracer *t)
{
	emit_word(&t->out);
	t->branches += 64;
	if (unlikely(++t->words == CLOCK_WORDS))
		update_time(t);
	if (unlikely(!emit_room(&t->out)))
		give_up(t);
	else if (unlikely(!atomic_load_explicit(&running, memory_order_relaxed)))
		end(t, t->cur->wire.count);
	else if (unlikely(args.check) && !trace_check(t, true))
		give_up(t);
}

/* Waiting vCPUs */

static struct tracer *tracer_of(unsigned cpu)
{
	struct tracer *t = cpu < WIRE_CPUS_MAX ? atomic_load(&tracers[cpu]) : NULL;

	return t && is_tracing(t) ? t : NULL;
}

void trace_cpu_idle(unsigned cpu)
{
	struct tracer *t = tracer_of(cpu);

	if (!t)
		return;
	if (!emit_room(&t->out)) {
		give_up(t);
		return;
	}
	emit_time(&t->out, sample_now());
	emit_close_steps(&t->out);
	emit_sleep(&t->out);
	publish_counts(t);
}

void trace_cpu_resume(unsigned cpu)
{
	struct tracer *t = tracer_of(cpu);

	if (!t)
		return;
	if (emit_room(&t->out))
		trace_put_exact_time(t);
	else
		give_up(t);
}

/* A step while the trace is off. */
static __attribute__((noinline)) void idle_step(struct tracer *t, struct node *to)
{
	const struct node *before = t->unwanted;
	struct look look;

	if (!t->wanted || !atomic_load_explicit(&running, memory_order_relaxed))
		return;
	if (t->retry) {
		t->retry--;
		return;
	}
	if (!before) {
		begin(t, to, 0);
		return;
	}
	t->unwanted = to;
	if (block_is_direct(before->block) && block_leads_to(before->block, to->block->start))
		return;
	look_at(t->cpu, to->block->start, &look);
	if (args_wants_level(look.level))
		begin(t, to, 0);
}

/* Rare cases are calls at the end, so that the usual step saves no registers. */
static inline __attribute__((always_inline)) void take_step(struct tracer *t, struct node *to,
							    int bit)
{
	if (unlikely(bit < 0)) {
		slow_step(t, to);
		return;
	}
	t->total += to->wire.count;
	t->cur = to;
	if (unlikely(emit_step(&t->out, bit)))
		full_word(t);
}

static inline __attribute__((always_inline)) void step(struct tracer *t, struct node *to)
{
	struct node *cur = t->cur;

	if (cur->way == WAY_RETURN)
		take_step(t, to, wire_return_bit(&t->calls, &cur->wire, &to->wire));
	else if (cur->way == WAY_JUMP_ANY)
		take_step(t, to, wire_next_bit(&cur->wire, &to->wire));
	else
		take_step(t, to, wire_call_bit(&t->calls, &cur->wire, &to->wire));
}

static void mask_step(struct tracer *t, struct node *to)
{
	int bit = wire_next_bit(&t->cur->wire, &to->wire);

	if (bit >= 0 && !emit_room(&t->out)) {
		give_up(t);
		return;
	}
	if (bit >= 0)
		trace_put_mask(t, false);
	take_step(t, to, bit);
}

/* A step from a block whose way is `careful` or higher. */
static __attribute__((noinline)) void careful_step(struct tracer *t, struct node *to)
{
	if (!is_tracing(t))
		idle_step(t, to);
	else if (t->cur->way == WAY_MASK)
		mask_step(t, to);
	else if (t->cur->way == WAY_SLOW || trace_real_pc(t, to) - to->wire.start != t->shift ||
		 (t->written.exception && trace_leaves_exception(t, to)))
		slow_step(t, to);
	else
		step(t, to);
}

static inline __attribute__((always_inline)) void any_step(struct tracer *t, struct node *to)
{
	if (t->cur->way == WAY_NEXT)
		take_step(t, to, wire_next_bit(&t->cur->wire, &to->wire));
	else if (unlikely(t->cur->way >= t->careful))
		careful_step(t, to);
	else
		step(t, to);
}

static void on_block(unsigned cpu, void *data)
{
	struct tracer *t = atomic_load_explicit(&tracers[cpu], memory_order_relaxed);
	struct block *block = data;

	if (likely(t))
		any_step(t, &block->nodes[cpu]);
}

/* For a guest with more vCPUs than there are nodes in the block. */
static void on_far_block(unsigned cpu, void *data)
{
	struct tracer *t = atomic_load_explicit(&tracers[cpu], memory_order_relaxed);
	struct node *to = block_node(data, cpu);

	if (t && to)
		any_step(t, to);
}

/* For a QEMU whose vCPUs take turns in one thread, and which passes the wrong number. */
static void on_mixed_block(unsigned cpu, void *data)
{
	static unsigned last;
	unsigned now = api_running_cpu(cpu);

	if (unlikely(now != last)) {
		trace_cpu_idle(last);
		trace_cpu_resume(now);
		last = now;
	}
	on_far_block(now, data);
}

/* At an instruction of from= or to=, which may be inside a block. */
static void on_place(unsigned cpu, void *data)
{
	const struct place *place = data;
	unsigned running_cpu = api_running_cpu(cpu);
	struct tracer *t = atomic_load(&tracers[running_cpu]);
	struct node *node = block_node(place->block, running_cpu);

	if (!t || !node || !t->wanted)
		return;
	if (place->end)
		end(t, place->index);
	else if (!is_tracing(t) && !t->retry)
		begin(t, node, place->index);
}

static void hook_place(struct block *block, struct qemu_plugin_insn *insn, unsigned index,
		       bool ends)
{
	struct place *place = malloc(sizeof(*place)); /* never freed, as the block */

	if (!place)
		return;
	*place = (struct place){ block, index, ends };
	api.insn_exec_cb(insn, on_place, API_R_REGS, place);
}

static void hook_places(struct qemu_plugin_tb *tb, struct block *block)
{
	for (unsigned i = 0; i < block->count; i++) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, i);

		for (size_t j = 0; j < args.n_from; j++) {
			if (range_is_at(&args.from[j], insn))
				hook_place(block, insn, i, false);
		}
		for (size_t j = 0; j < args.n_to; j++) {
			if (range_is_at(&args.to[j], insn))
				hook_place(block, insn, i, true);
		}
	}
}

/* For the rest of the plugin */

int trace_open(void)
{
	atomic_store(&running, !args.paused && !args.n_from);
	look_open();
	if (args.check && !regs_at_block()) {
		api_say("check=: this QEMU does not allow reading the registers inside a trace");
		return -1;
	}
	if (block_open()) {
		api_say("cannot start tracing: out of memory");
		return -1;
	}
	return 0;
}

void trace_translate(struct qemu_plugin_tb *tb)
{
	struct block *block = args.trace ? block_of(tb) : NULL;
	api_exec_cb *callback = block_max_cpus > block_cpus ? on_far_block : on_block;

	if (!block)
		return;
	api.tb_exec_cb(tb, api_mixes_cpus() ? on_mixed_block : callback, API_R_REGS, block);
	if (args.n_from || args.n_to)
		hook_places(tb, block);
}

void trace_cpu_init(unsigned cpu)
{
	struct tracer *t;

	if (!args.trace || cpu >= WIRE_CPUS_MAX || cpu >= block_max_cpus ||
	    atomic_load(&tracers[cpu]))
		return;
	look_cpu_init();
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->cpu = cpu;
	t->wanted = args_wants_cpu(cpu);
	emit_open(&t->out, t->wanted ? stream_track(cpu) : NULL);
	t->wanted &= t->out.track != NULL;
	t->out.since_sync = SYNC_BYTES;
	t->cur = &nowhere;
	atomic_store(&tracers[cpu], t);
}

void trace_cpu_exit(unsigned cpu)
{
	struct tracer *t = cpu < WIRE_CPUS_MAX ? atomic_load(&tracers[cpu]) : NULL;

	if (!t || !t->wanted)
		return;
	if (is_tracing(t))
		end(t, t->cur->wire.count);
}

void trace_set_running(bool on)
{
	atomic_store(&running, on);
}

void trace_close(void)
{
	struct timespec nap = { .tv_nsec = 5000000 };

	if (!args.trace)
		return;
	atomic_store(&running, false);
	nanosleep(&nap, NULL); /* running vCPUs end their own traces */
	for (unsigned cpu = 0; cpu < WIRE_CPUS_MAX; cpu++)
		trace_cpu_exit(cpu);
}
