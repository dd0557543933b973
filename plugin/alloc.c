// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc: hooks the allocation functions that alloc=, realloc= and free= name. Their arguments are known
 * at the entry, their results at the return. The code at the return address may have been translated
 * long before the call, so every block has a small callback, which tests one bit. A pending call is
 * identified by its return address and stack pointer, which differ between tasks, nested calls and
 * recursion.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "args.h"
#include "range.h"
#include "regs.h"
#include "sample.h"
#include "stream.h"
#include "trace.h"

#define WAITING 4096	   /* maximum of calls that have not returned; a power of two */
#define PROBES 8	   /* slots that a call may use */
#define RETURN_BITS 65536  /* a filter of return addresses */
#define STACK_ARGUMENTS 64 /* bytes of arguments that a callee may pop at its return */

struct call {
	uint64_t next, sp, space; /* next: return address; 0: the slot is free */
	uint64_t pointer, size;
	uint64_t serial;
	const struct args_hook *hook;
};

/* The last operation of a vCPU. Allocators call each other, and only the innermost one counts. */
struct last_op {
	uint64_t pointer;
	uint64_t serial; /* of the last call at that time */
};

/* The name of the heap, that of the first hook: one function may free what another allocated. */
static const char *heap;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call calls[WAITING];
static _Atomic uint64_t n_calls;
static _Atomic uint64_t returns[RETURN_BITS / 64];
static struct last_op last_ops[WIRE_CPUS_MAX][WIRE_OP_FREE + 1];

static uint64_t mix(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ull;
	return value ^ value >> 32;
}

static bool may_return_to(uint64_t address)
{
	uint64_t bit = mix(address) % RETURN_BITS;

	return atomic_load_explicit(&returns[bit / 64], memory_order_relaxed) >> bit % 64 & 1;
}

static void note_return(uint64_t address)
{
	uint64_t bit = mix(address) % RETURN_BITS;

	atomic_fetch_or_explicit(&returns[bit / 64], 1ull << bit % 64, memory_order_relaxed);
}

/* Stores a new call in a free slot, in that of the same call if it never returned, or in the oldest. */
static void wait_for(const struct call *call)
{
	struct call *best = NULL;

	pthread_mutex_lock(&lock);
	for (uint64_t i = 0; i < PROBES; i++) {
		struct call *at = &calls[(mix(call->next) + i) % WAITING];

		if (!at->next ||
		    (at->next == call->next && at->sp == call->sp && at->space == call->space)) {
			best = at;
			break;
		}
		if (!best || at->serial < best->serial)
			best = at;
	}
	*best = *call;
	best->serial = ++n_calls;
	pthread_mutex_unlock(&lock);
}

/* Kernel addresses are the same in all address spaces, and kernel tasks switch between these. */
static uint64_t space_of(const struct regs *regs)
{
	return regs->level == WIRE_LEVEL_USER ? regs->space : 0;
}

static bool take_call(uint64_t next, const struct regs *regs, struct call *call)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (uint64_t i = 0; i < PROBES && !found; i++) {
		struct call *at = &calls[(mix(next) + i) % WAITING];

		/* The return pops a return address on the stack, and maybe arguments. */
		if (at->next != next || at->space != space_of(regs) || regs->sp < at->sp ||
		    regs->sp - at->sp > regs->word + STACK_ARGUMENTS)
			continue;
		*call = *at;
		at->next = 0;
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void put(unsigned cpu, const struct regs_view *view, const struct regs *regs,
		enum wire_op op, uint64_t pointer, uint64_t size)
{
	struct wire_sample at = { .time = sample_now() };
	struct wire_alloc alloc = { op, heap, pointer, size, &at };
	struct track *track = stream_known_track(cpu);

	if (!track)
		return;
	last_ops[cpu][op] = (struct last_op){ pointer, atomic_load(&n_calls) };
	sample_from_regs(&at, view, regs);
	code_note(track, view, regs);
	track_put_alloc(track, &alloc);
}

static bool is_wanted(unsigned cpu)
{
	return sample_running() && args_wants_cpu(cpu);
}

static void on_entry(unsigned cpu, void *data)
{
	const struct args_hook *hook = data;
	struct regs_view view = { .cpu = cpu = api_running_cpu(cpu) };
	struct call call = { .hook = hook };
	struct regs regs;

	if (!is_wanted(cpu))
		return;
	regs_read(&view, hook->place.address, &regs);
	if (!args_wants_level(regs.level))
		return;
	if (hook->kind != HOOK_ALLOC && !regs_argument(&view, &regs, hook->pointer, &call.pointer))
		return;
	if (hook->kind == HOOK_FREE) {
		if (call.pointer)
			put(cpu, &view, &regs, WIRE_OP_FREE, call.pointer, 0);
		return;
	}
	if (!regs_argument(&view, &regs, hook->size, &call.size) ||
	    !regs_return_address(&view, &regs, &call.next))
		return;
	call.sp = regs.sp;
	call.space = space_of(&regs);
	wait_for(&call);
	note_return(call.next);
}

static bool was_done_by_callee(const struct call *call, unsigned cpu, enum wire_op op,
			       uint64_t pointer)
{
	const struct last_op *last = &last_ops[cpu][op];

	return cpu < WIRE_CPUS_MAX && last->pointer == pointer && last->serial >= call->serial;
}

/* A realloc is a resize of the block if it did not move, else a free and a new block. */
static void put_resized(unsigned cpu, const struct regs_view *view, const struct regs *regs,
			const struct call *call, uint64_t result)
{
	bool freed = !call->pointer || was_done_by_callee(call, cpu, WIRE_OP_FREE, call->pointer);
	bool made = result == call->pointer || was_done_by_callee(call, cpu, WIRE_OP_NEW, result);

	if (!result && call->size)
		return; /* it failed; with size 0 it is a free */
	if (result != call->pointer && !freed)
		put(cpu, view, regs, WIRE_OP_FREE, call->pointer, 0);
	if (result)
		put(cpu, view, regs, made ? WIRE_OP_RESIZE : WIRE_OP_NEW, result, call->size);
}

static __attribute__((noinline)) void on_return(unsigned cpu, uint64_t address)
{
	struct regs_view view = { .cpu = cpu = api_running_cpu(cpu) };
	struct regs regs;
	struct call call;
	uint64_t result;

	regs_read(&view, address, &regs);
	if (!regs.n || !take_call(address, &regs, &call) || !is_wanted(cpu))
		return;
	result = regs_result(&regs);
	if (call.hook->kind == HOOK_REALLOC)
		put_resized(cpu, &view, &regs, &call, result);
	else if (result && !was_done_by_callee(&call, cpu, WIRE_OP_NEW, result))
		put(cpu, &view, &regs, WIRE_OP_NEW, result, call.size);
}

static void on_block(unsigned cpu, void *data)
{
	uint64_t address = (uint64_t)(uintptr_t)data;

	if (__builtin_expect(may_return_to(address), 0))
		on_return(cpu, address);
}

int alloc_open(void)
{
	for (size_t i = args.n_hooks; i-- > 0;) {
		if (args.hooks[i].kind == HOOK_ALLOC || !heap)
			heap = args.hooks[i].name;
	}
	if (!args.n_hooks || regs_at_block())
		return 0;
	api_say("alloc=, realloc= and free= need registers, but plugins cannot read them in this "
		"QEMU");
	return -1;
}

void alloc_translate(struct qemu_plugin_tb *tb)
{
	size_t n = args.n_hooks ? api.tb_n_insns(tb) : 0;

	if (!n)
		return;
	/* Before the hooks: a return may lead to the entry of a hooked function. */
	api.tb_exec_cb(tb, on_block, API_R_REGS, (void *)(uintptr_t)api.tb_vaddr(tb));
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, i);

		for (size_t j = 0; j < args.n_hooks; j++) {
			if (!range_is_at(&args.hooks[j].place, insn))
				continue;
			if (i == 0)
				api.tb_exec_cb(tb, on_entry, API_R_REGS, &args.hooks[j]);
			else
				api.insn_exec_cb(insn, on_entry, API_R_REGS, &args.hooks[j]);
		}
	}
}

void alloc_cpu_init(unsigned cpu)
{
	(void)cpu;
}

void alloc_flush(void)
{
}
