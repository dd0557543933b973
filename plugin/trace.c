// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control flow of a vCPU, block by block. A block is usually followed by one that followed it before,
 * and then the trace has one bit for the step: wire/trace.h. Only steps that are new, or that the code
 * does not explain, take the slow path, which reads registers.
 */
#include "trace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "args.h"
#include "block.h"
#include "emit.h"
#include "look.h"
#include "range.h"
#include "sample.h"
#include "stream.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

#define SYNC_BYTES (1u << 20) /* between two points where a reader can start */
#define CLOCK_NS 100000
#define CLOCK_WORDS 16	  /* words of steps between two readings of the clock */
#define RETRY_BLOCKS 4096 /* blocks to skip after a loss */
#define PAGE_MASK 0xfffull
#define REAL_MODE_END 0x110000

struct tracer {
	struct node *cur; /* the current block; NULL: not tracing */
	struct emit_out out;
	struct wire_calls calls;
	bool careful;	       /* code may run at addresses it was not translated for */
	bool wanted;	       /* trace this vCPU */
	unsigned retry;	       /* after a loss: blocks to skip until there may be room */
	struct node *unwanted; /* the current block, if its level is not traced */
	unsigned cpu;
	uint32_t dictionary, n_ids;
	uint64_t shift;	     /* distance of the current block from its translated address */
	uint64_t defined;    /* end of the last definition */
	unsigned words;	     /* of steps since the last reading of the clock */
	uint64_t branches;   /* in full words */
	uint64_t total;	     /* instructions, including all of the current block */
	uint64_t resume;     /* return address of the last trap */
	struct look written; /* the last state */
	/* M-profile: a bit for each exception that was entered and not left, and its handler. */
	uint64_t active[REGS_EXCEPTIONS / 64];
	uint32_t handlers[REGS_EXCEPTIONS];
	uint64_t noted_page, noted_space; /* of the last call of code_note() */
	uint64_t check_at; /* when the next sample is due, by check_clock(); 0: not set */
	uint64_t place;	   /* of the last sample */
	bool in_word;	   /* take the next sample between steps that are bits */
};

/* How control went from one block to the next. */
struct step {
	struct node *to;
	uint64_t pc; /* at which `to` really runs */
	int ran;     /* instructions of the block before */
	bool trap;
	bool leave;		/* M-profile: an exception returned, whatever the flow */
	bool enters;		/* by a trap or a system call */
	struct look_trap about; /* the trap; resume 0: unknown */
	bool state;		/* write the registers in `look` */
	struct look look;
};

/* An instruction where tracing begins or ends. */
struct place {
	struct block *block;
	unsigned index;
	bool end;
};

static struct tracer *_Atomic tracers[WIRE_CPUS_MAX];
static atomic_bool running;
static _Atomic uint64_t clock_last;

/* Time */

/* A time that no other vCPU has written: a task that migrates leaves one before it enters another. */
static uint64_t exact_time(struct tracer *t)
{
	uint64_t last = atomic_load_explicit(&clock_last, memory_order_relaxed), now;

	emit_wake(&t->out);
	now = sample_now();
	do {
		if (now <= last)
			now = last + 1;
	} while (!atomic_compare_exchange_weak(&clock_last, &last, now));
	return now;
}

static void put_exact_time(struct tracer *t)
{
	emit_time(&t->out, exact_time(t));
}

/* Codes */

/* left: the interrupted stack pointer, or look->sp; 0: unknown. */
static void put_state(struct tracer *t, const struct look *look, uint64_t shift, uint64_t left)
{
	unsigned mask = left != look->sp ? WIRE_STATE_LEFT : 0;

	mask |= look->sp != t->written.sp ? WIRE_STATE_SP : 0;
	mask |= look->space != t->written.space ? WIRE_STATE_SPACE : 0;
	mask |= look->level != t->written.level ? WIRE_STATE_LEVEL : 0;
	mask |= shift != t->shift ? WIRE_STATE_SHIFT : 0;
	emit_byte(&t->out, WIRE_TRACE_STATE);
	emit_byte(&t->out, (uint8_t)mask);
	if (mask & WIRE_STATE_SP)
		emit_signed(&t->out, look->sp - t->written.sp);
	if (mask & WIRE_STATE_SPACE)
		emit_number(&t->out, look->space);
	if (mask & WIRE_STATE_LEVEL)
		emit_number(&t->out, look->level);
	if (mask & WIRE_STATE_SHIFT)
		emit_signed(&t->out, shift);
	if (mask & WIRE_STATE_LEFT)
		emit_signed(&t->out, left ? left - look->sp : 0);
	t->written = *look;
	t->shift = shift;
}

/*
 * Records the page of code at an address: for new blocks, and where a program resumes, which may be
 * another program with the same blocks in another address space.
 */
static void note_code(struct tracer *t, uint64_t pc, const struct look *look)
{
	struct regs_view view = { .cpu = t->cpu };
	struct regs regs = { .pc = pc, .space = look->space, .level = look->level };
	uint64_t page = pc & ~PAGE_MASK;

	/* Most system calls return to the same page as the last one. */
	if (page == t->noted_page && look->space == t->noted_space)
		return;
	t->noted_page = page;
	t->noted_space = look->space;
	code_note(t->out.track, &view, &regs);
}

static uint64_t sum_of(const struct block_move *move, unsigned word)
{
	int64_t sum = move->bytes + (int64_t)move->words * word;
	bool known = !move->unknown && word && !(sum & 1) && llabs(sum) < WIRE_STACK_MAX;

	return (uint64_t)(known ? sum : WIRE_STACK_UNKNOWN);
}

static void put_definition(struct tracer *t, const struct block *block)
{
	unsigned word = look_word(t->cpu, block->start, block->mode), flags = block->flags;
	uint64_t move = sum_of(&block->move, word);

	if (flags & WIRE_BLOCK_STATE ? block->replaces : move)
		flags |= WIRE_BLOCK_STACK;
	emit_signed(&t->out, block->start - t->defined);
	emit_byte(&t->out, (uint8_t)(block->flow | flags << WIRE_FLAGS_SHIFT));
	emit_number(&t->out, block->count);
	emit_number(&t->out, block->size);
	emit_number(&t->out, block->last);
	t->defined = block->start + block->size;
	if (wire_flow_has_target(block->flow))
		emit_signed(&t->out, block->target - t->defined);
	if (!(flags & WIRE_BLOCK_STACK))
		return;
	emit_signed(&t->out, move);
	if (flags & WIRE_BLOCK_STATE)
		emit_signed(&t->out, sum_of(&block->after, word));
}

static void put_go(struct tracer *t, struct node *to)
{
	if (to->dictionary == t->dictionary) {
		emit_byte(&t->out, WIRE_TRACE_GO);
		emit_number(&t->out, to->id);
		return;
	}
	to->dictionary = t->dictionary;
	to->id = t->n_ids++;
	to->wire.next[0] = to->wire.next[1] = NULL;
	emit_byte(&t->out, WIRE_TRACE_NEW);
	put_definition(t, to->block);
	note_code(t, to->wire.start + t->shift, &t->written);
}

/* Begin and end */

static void set_careful(struct tracer *t)
{
	t->careful = t->shift || t->written.exception ||
		     (t->written.level == WIRE_LEVEL_USER && look_moves());
}

/* M-profile: the state shows that no exception is active, or that this one is. */
static void set_active(struct tracer *t, unsigned exception)
{
	if (exception)
		t->active[exception / 64] |= 1ull << exception % 64;
	else
		memset(t->active, 0, sizeof(t->active));
}

static bool is_active(const struct tracer *t, unsigned exception)
{
	return t->active[exception / 64] >> exception % 64 & 1;
}

static void put_begin(struct tracer *t, struct node *at, unsigned skip, unsigned flags)
{
	struct look look = t->written;
	uint64_t shift = t->shift;

	t->shift = 0;
	t->written = (struct look){ 0 };
	emit_byte(&t->out, WIRE_TRACE_BEGIN);
	emit_byte(&t->out, (uint8_t)flags);
	emit_number(&t->out, skip);
	emit_number(&t->out, t->total - at->wire.count + skip);
	put_state(t, &look, shift, look.sp);
	put_go(t, at);
}

/* Starts a new dictionary, which depends on nothing before it. */
static bool put_sync(struct tracer *t, struct node *at, unsigned skip, unsigned flags)
{
	emit_commit(&t->out);
	t->out.time = exact_time(t);
	if (!trace_sync(t->out.track, t->out.time) || !emit_room(&t->out))
		return false;
	t->out.since_sync = 0;
	t->dictionary++;
	t->n_ids = 0;
	t->calls = (struct wire_calls){ 0 };
	t->defined = 0;
	put_begin(t, at, skip, flags | WIRE_BEGIN_EMPTY);
	return true;
}

static void give_up(struct tracer *t)
{
	t->cur = NULL;
	t->retry = RETRY_BLOCKS;
	t->out.n_steps = 0;
	t->out.steps = 0;
	t->out.run = NULL;
	t->out.at = t->out.begin;
	emit_sleep(&t->out);
	t->out.since_sync = SYNC_BYTES; /* the next begin needs a new dictionary */
}

/* Check points: samples inside the trace. */

/* Where instruction counts are exact, and the same in every run, an instruction is a ns. */
static uint64_t check_clock(const struct tracer *t)
{
	bool exact = args.clock == WIRE_CLOCK_INSTRUCTIONS ||
		     (args.clock == WIRE_CLOCK_GUEST && api_counts_time());

	return exact ? t->total : sample_now();
}

/*
 * Whether a sample is due. Samples alternate between slow steps, which include switches of the stack and
 * returns from traps, and all other steps. If that kind does not come for another period, either will do.
 */
static bool check_due(struct tracer *t, bool in_word)
{
	uint64_t now = check_clock(t);

	if (!t->check_at)
		t->check_at = now + args.check;
	if (now < t->check_at || (in_word != t->in_word && now < t->check_at + args.check))
		return false;
	t->check_at = now + args.check;
	t->in_word = !in_word;
	return true;
}

/* Takes a sample before the current block runs, if one is due. */
static __attribute__((noinline)) void check(struct tracer *t, bool in_word)
{
	uint64_t pc;

	if (!t->cur || !check_due(t, in_word))
		return;
	if (!emit_room(&t->out)) {
		give_up(t);
		return;
	}
	emit_time(&t->out, sample_now());
	emit_close_steps(&t->out);
	pc = t->cur->wire.start + t->shift;
	if (!sample_in_trace(t->out.track, t->cpu, pc, t->place + 1))
		return;
	emit_byte(&t->out, WIRE_TRACE_SAMPLE);
	emit_number(&t->out, ++t->place);
}

static void publish_counts(struct tracer *t)
{
	atomic_store_explicit(&t->out.track->instructions, t->total, memory_order_relaxed);
	atomic_store_explicit(&t->out.track->branches, t->branches, memory_order_relaxed);
}

static uint64_t real_pc(const struct tracer *t, const struct node *node)
{
	return look_pc(t->cpu, node->wire.start);
}

static void begin(struct tracer *t, struct node *node, unsigned skip)
{
	uint64_t pc = skip ? node->wire.start : real_pc(t, node);
	bool fits;

	look_at(t->cpu, pc, &t->written);
	set_active(t, 0);
	t->unwanted = NULL;
	if (!args_wants_level(t->written.level)) {
		t->unwanted = node;
		return;
	}
	t->shift = pc - node->wire.start;
	t->total += node->wire.count - skip;
	if (t->out.since_sync >= SYNC_BYTES) {
		fits = put_sync(t, node, skip, 0);
	} else {
		fits = emit_room(&t->out);
		if (fits) {
			put_exact_time(t);
			put_begin(t, node, skip, 0);
		}
	}
	if (!fits) {
		t->total -= node->wire.count - skip;
		give_up(t);
		return;
	}
	t->cur = node;
	set_active(t, t->written.exception);
	set_careful(t);
}

/* Ends the trace after `ran` instructions of the current block. */
static void end(struct tracer *t, unsigned ran)
{
	struct node *cur = t->cur;

	t->unwanted = NULL;
	if (!cur)
		return;
	if (!emit_room(&t->out)) {
		give_up(t);
		return;
	}
	put_exact_time(t);
	emit_close_steps(&t->out);
	emit_byte(&t->out, WIRE_TRACE_END);
	emit_number(&t->out, ran);
	emit_sleep(&t->out);
	t->total -= cur->wire.count - ran;
	t->cur = NULL;
	publish_counts(t);
}

/* Steps */

static bool is_direct(const struct block *block)
{
	return block->flow == WIRE_FLOW_ON || block->flow == WIRE_FLOW_WAIT ||
	       block->flow == WIRE_FLOW_JUMP || block->flow == WIRE_FLOW_COND ||
	       block->flow == WIRE_FLOW_CALL;
}

/* In real mode, jumps wrap around at the end of a segment. */
static bool is_target(const struct block *block, uint64_t address)
{
	return address == block->target ||
	       (address < REAL_MODE_END &&
		(address == block->target + 0x10000 || address + 0x10000 == block->target));
}

/* Whether the last instruction of a block can lead to an address. */
static bool leads_to(const struct block *block, uint64_t address)
{
	uint64_t after = block->start + block->size;

	switch (block->flow) {
	case WIRE_FLOW_ON:
	case WIRE_FLOW_WAIT: return address == after;
	case WIRE_FLOW_COND: return address == after || is_target(block, address);
	case WIRE_FLOW_JUMP:
	case WIRE_FLOW_CALL:
		return is_target(block, address) ||
		       ((block->flags & WIRE_BLOCK_MAYBE || block->thumb) && address == after);
	default: return true;
	}
}

/* Notes that a trap led to the block. In a program it may be a signal handler, which code also calls. */
static void note_vector(const struct step *step, enum vector kind)
{
	if (!api.user_mode || kind != VECTOR_UNEXPLAINED)
		atomic_fetch_or(&step->to->block->vector, (uint8_t)kind);
}

/* Finds how many instructions of the block ran before the trap, which returns to `resume`. */
static void count_trap(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	uint64_t resume = step->about.resume - t->shift;
	int index = block_index(block, resume);
	bool next = is_direct(block) && leads_to(block, resume);
	uint8_t seen = atomic_load(&step->to->block->vector) & (VECTOR_FAULT | VECTOR_INTERRUPT);

	step->trap = true;
	if (index < 0) {
		if (next)
			note_vector(step, VECTOR_INTERRUPT);
		return;
	}
	/* A block that jumps to itself may be complete or not: an earlier trap to this vector tells. */
	if (next && seen != VECTOR_FAULT)
		return;
	if (!next)
		note_vector(step, VECTOR_FAULT);
	step->ran = index;
}

static void explain_direct(const struct tracer *t, struct step *step)
{
	uint64_t address = step->pc - t->shift;
	int index = block_index(t->cur->block, address);

	if (leads_to(t->cur->block, address))
		return;
	if (index > 0) { /* QEMU left the block to run the rest as another one */
		step->ran = index;
		return;
	}
	if (look_for_trap(t->cpu, step->pc, &step->look, &step->about)) {
		count_trap(t, step);
	} else if (index == 0) {
		step->ran = 0;
	} else {
		note_vector(step, VECTOR_UNEXPLAINED);
		step->trap = true;
		step->about.resume = 0;
	}
}

/* Whether a trap came instead of the jump, call or return. */
static bool is_trap(const struct tracer *t, const struct step *step)
{
	const struct block *block = t->cur->block;
	int index = block_index(block, step->about.resume - t->shift);

	if (block->flow == WIRE_FLOW_ENTER)
		return index >= 0 && index < block->count - 1;
	if (atomic_load(&step->to->block->vector) || look_knows_vectors())
		return true;
	if (!look_is_sure())
		return false;
	switch (block->flow) {
	case WIRE_FLOW_RETURN: return !look_returned(t->cpu, step->look.sp, step->pc);
	case WIRE_FLOW_CALL_ANY:
		return !look_called(t->cpu, step->look.sp, block->start + block->size + t->shift);
	case WIRE_FLOW_JUMP_ANY: return step->about.resume != t->resume;
	default: return false;
	}
}

static void explain_any(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	int index = block_index(block, step->pc - t->shift);
	bool found;

	if (index > 0) {
		step->ran = index;
		return;
	}
	found = look_for_trap(t->cpu, step->pc, &step->look, &step->about);
	if (found && is_trap(t, step)) {
		count_trap(t, step);
		return;
	}
	step->about.resume = 0;
	if (block->flow == WIRE_FLOW_ENTER && step->pc != block->start + block->size + t->shift)
		note_vector(step, VECTOR_UNEXPLAINED); /* interrupts may lead there, too */
	if (found || block->flow == WIRE_FLOW_ENTER)
		return;
	/* If QEMU does not list a trap's registers, known vectors and the level must do. */
	step->trap = atomic_load(&step->to->block->vector) & VECTOR_UNEXPLAINED ||
		     (block->flow != WIRE_FLOW_LEAVE && t->written.level == WIRE_LEVEL_USER &&
		      step->look.level != WIRE_LEVEL_USER);
}

/* M-profile: whether the block may end with the return from an exception. */
static bool may_leave(const struct block *block)
{
	return block->flow == WIRE_FLOW_RETURN || block->flow == WIRE_FLOW_JUMP_ANY;
}

/*
 * M-profile: whether an exception may have returned to itself, because it was pending again. Only this
 * returns to the first instruction of a handler.
 */
static bool may_repeat(const struct tracer *t, const struct node *to)
{
	return t->cur->block->flow == WIRE_FLOW_RETURN &&
	       t->handlers[t->written.exception] == to->wire.start;
}

/* Whether the exception is an instruction's fault, not an interrupt or a system call. */
static bool is_fault(unsigned exception)
{
	return (exception >= 3 && exception <= 7) || exception == 12;
}

/* M-profile: finds how many instructions of the block ran before an exception. */
static void count_exception(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	uint64_t resume = step->about.resume - t->shift;
	int index = block_index(block, resume);
	/* Interrupts come after a block, which may have led to its own start. */
	bool complete = is_direct(block) ? leads_to(block, resume) : index == 0;

	step->trap = true;
	if (index >= 0 && (is_fault(step->look.exception) || !complete))
		step->ran = index;
}

static void enter_exception(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	uint64_t *resume = &step->about.resume;
	unsigned interrupted;

	step->enters = true;
	if (!look_frame(t->cpu, step->look.sp, &t->written, &step->about, &interrupted)) {
		step->trap = true;
		return;
	}
	/*
	 * This exception did not interrupt the handler before it: that handler returned, and this
	 * exception came before an instruction of the interrupted code ran.
	 */
	step->leave = t->written.exception && interrupted != t->written.exception;
	if (step->leave)
		step->trap = true;
	else if (from->flow != WIRE_FLOW_ENTER || (*resume && *resume != from->start + from->size))
		count_exception(t, step);
}

/* M-profile: explains a step by the number of the exception. */
static bool explain_exception(const struct tracer *t, struct step *step)
{
	unsigned now = step->look.exception, before = t->written.exception, interrupted;
	struct look_trap trap;

	if (now == before && !(now && may_repeat(t, step->to) &&
			       look_frame(t->cpu, step->look.sp, &t->written, &trap, &interrupted)))
		return false;
	step->state = true;
	if (!now || (now != before && is_active(t, now)))
		step->leave = true;
	else
		enter_exception(t, step);
	return true;
}

static void follow_exception(struct tracer *t, const struct step *step)
{
	unsigned before = t->written.exception, now = step->look.exception;

	if (step->leave)
		t->active[before / 64] &= ~(1ull << before % 64);
	if (step->leave && !now)
		look_resumed(t->cpu, step->look.sp);
	if (now && !is_active(t, now))
		t->handlers[now] = (uint32_t)step->to->wire.start;
	set_active(t, now);
}

static void put_step(struct tracer *t, const struct step *step)
{
	struct node *cur = t->cur;
	uint64_t shift = step->pc - step->to->wire.start;
	bool moved = shift != t->shift;

	if (step->state)
		put_exact_time(t);
	emit_close_steps(&t->out);
	if (step->ran != cur->wire.count) {
		emit_byte(&t->out, WIRE_TRACE_SHORT);
		emit_number(&t->out, (uint64_t)step->ran);
		t->total -= (unsigned)(cur->wire.count - step->ran);
	}
	if (step->leave)
		emit_byte(&t->out, WIRE_TRACE_LEAVE);
	if (step->trap) {
		emit_byte(&t->out, WIRE_TRACE_TRAP);
		emit_byte(&t->out, (uint8_t)(step->about.level << WIRE_TRAP_LEVEL_SHIFT |
					     (step->about.resume ? WIRE_TRAP_RESUME : 0)));
		if (step->about.resume)
			emit_signed(&t->out, step->about.resume - (cur->wire.start + t->shift));
		t->resume = step->about.resume;
	}
	if (step->state && look_has_exceptions())
		follow_exception(t, step);
	if (step->state || moved)
		put_state(t, &step->look, shift, step->enters ? step->about.left : step->look.sp);
	put_go(t, step->to);
	if (!step->trap && !step->leave && step->ran == cur->wire.count)
		wire_learn(&t->calls, &cur->wire, &step->to->wire, moved);
	t->total += step->to->wire.count;
	t->cur = step->to;
}

/* For an explained step: completes what look_for_trap() found about the interrupted code. */
static void explain_left(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	bool call = from->flow == WIRE_FLOW_ENTER && !step->trap && step->ran == from->count;
	bool on = step->pc - t->shift == from->start + from->size;

	step->enters = step->trap || (call && !(on && from->flags & WIRE_BLOCK_MAYBE));
	if (call && (on || (from->keeps_sp && !api.user_mode)))
		step->about.left = step->look.sp; /* the instruction does not switch the stack */
	else if (api.user_mode)
		step->about.left = 0;
}

static void explain(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	bool direct = is_direct(from), moved;

	/* After a return from an exception, the interrupted level is user unless the trap has another. */
	step->about.level = from->flow == WIRE_FLOW_LEAVE ? WIRE_LEVEL_USER : t->written.level;
	step->pc = real_pc(t, step->to);
	moved = step->pc - step->to->wire.start != t->shift;
	step->state = from->flags & WIRE_BLOCK_STATE || step->to->block->flags & WIRE_BLOCK_STATE ||
		      from->flow == WIRE_FLOW_ENTER || from->flow == WIRE_FLOW_LEAVE ||
		      args.all_states;
	if (direct && leads_to(from, step->pc - t->shift) && !step->state && !moved)
		return;
	look_at(t->cpu, step->pc, &step->look);
	if (from->thread_sp)
		look_note_thread_sp(t->cpu, from->thread_sp - 1u);
	if (look_has_exceptions() && explain_exception(t, step))
		return;
	if (direct)
		explain_direct(t, step);
	else
		explain_any(t, step);
	step->state |= step->trap;
	explain_left(t, step);
}

/* A step that is not a bit. */
static __attribute__((noinline)) void slow_step(struct tracer *t, struct node *to)
{
	struct step step = { .to = to, .ran = t->cur->wire.count };

	if (!atomic_load_explicit(&running, memory_order_relaxed)) {
		end(t, t->cur->wire.count);
		return;
	}
	explain(t, &step);
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
		note_code(t, step.pc, &step.look);
	put_step(t, &step);
	set_careful(t);
	if (t->out.since_sync >= SYNC_BYTES) {
		look_at(t->cpu, step.pc, &t->written); /* a reader may begin here */
		if (!put_sync(t, to, 0, WIRE_BEGIN_GOES_ON))
			give_up(t);
	}
	/* At the first instruction of an exception, some cpus do not have the interrupted address. */
	if (args.check && !step.trap)
		check(t, false);
}

/* Writes the time, at most every CLOCK_NS. */
static void update_time(struct tracer *t)
{
	uint64_t now = sample_now();

	t->words = 0;
	if (now < t->out.time + CLOCK_NS)
		return;
	emit_time(&t->out, now);
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
	else if (unlikely(args.check))
		check(t, true);
}

/* Waiting vCPUs */

static struct tracer *tracer_of(unsigned cpu)
{
	struct tracer *t = cpu < WIRE_CPUS_MAX ? atomic_load(&tracers[cpu]) : NULL;

	return t && t->cur ? t : NULL;
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
		put_exact_time(t);
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
	if (is_direct(before->block) && leads_to(before->block, to->wire.start))
		return;
	look_at(t->cpu, to->wire.start, &look);
	if (args_wants_level(look.level))
		begin(t, to, 0);
}

/* Whether the shift of the next block is another one. */
static bool is_moved(struct tracer *t, const struct node *from, const struct node *to)
{
	if (is_direct(from->block) &&
	    (!t->shift || !((from->wire.start ^ to->wire.start) & ~PAGE_MASK)))
		return false;
	return real_pc(t, to) - to->wire.start != t->shift;
}

/* M-profile: in a handler, whether another exception is active at the next block. */
static bool is_left(struct tracer *t, const struct node *from, const struct node *to)
{
	return t->written.exception && may_leave(from->block) &&
	       (look_exception(t->cpu) != t->written.exception || may_repeat(t, to));
}

/* Rare cases are calls at the end, so that the usual step saves no registers. */
static inline __attribute__((always_inline)) void step(struct tracer *t, struct node *to)
{
	struct node *cur = t->cur;
	int bit = wire_step_bit(&t->calls, &cur->wire, &to->wire);

	if (unlikely(bit < 0)) {
		slow_step(t, to);
		return;
	}
	t->total += to->wire.count;
	t->cur = to;
	t->out.steps |= (uint64_t)bit << t->out.n_steps;
	if (unlikely(++t->out.n_steps == 64))
		full_word(t);
}

static __attribute__((noinline)) void careful_step(struct tracer *t, struct node *to)
{
	if (!t->cur)
		idle_step(t, to);
	else if (is_moved(t, t->cur, to) || is_left(t, t->cur, to))
		slow_step(t, to);
	else
		step(t, to);
}

/* Of a vCPU whose nodes are not in the block. */
static __attribute__((noinline)) void far_step(struct tracer *t, struct block *block, unsigned cpu)
{
	struct node *to = block_node(block, cpu);

	if (to)
		careful_step(t, to);
}

static void on_block(unsigned cpu, void *data)
{
	struct tracer *t = atomic_load_explicit(&tracers[cpu], memory_order_relaxed);
	struct block *block = data;

	if (unlikely(!t))
		return;
	if (unlikely(cpu >= block_cpus))
		far_step(t, block, cpu);
	else if (unlikely(t->careful || !t->cur))
		careful_step(t, &block->nodes[cpu]);
	else
		step(t, &block->nodes[cpu]);
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
	on_block(now, data);
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
	else if (!t->cur && !t->retry)
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

	if (!block)
		return;
	api.tb_exec_cb(tb, api_mixes_cpus() ? on_mixed_block : on_block, API_R_REGS, block);
	if (args.n_from || args.n_to)
		hook_places(tb, block);
}

void trace_cpu_init(unsigned cpu)
{
	struct tracer *t;

	if (!args.trace || cpu >= WIRE_CPUS_MAX || atomic_load(&tracers[cpu]))
		return;
	look_cpu_init(cpu);
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->cpu = cpu;
	t->wanted = args_wants_cpu(cpu);
	t->out.track = t->wanted ? stream_track(cpu) : NULL;
	t->wanted &= t->out.track != NULL;
	t->out.since_sync = SYNC_BYTES;
	atomic_store(&tracers[cpu], t);
}

void trace_cpu_exit(unsigned cpu)
{
	struct tracer *t = cpu < WIRE_CPUS_MAX ? atomic_load(&tracers[cpu]) : NULL;

	if (!t || !t->wanted)
		return;
	if (t->cur)
		end(t, t->cur->wire.count);
}

void trace_flush(void)
{
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
