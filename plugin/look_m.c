// SPDX-License-Identifier: GPL-2.0-or-later
/* M-profile: the number of the current exception, and what an exception stored on the stack. */
#include "look.h"
#include "regs.h"
#include "wire/wire.h"

/* Where exceptions stored the registers of the last interrupted threads; 0: unused. */
#define PARKED_MAX 64
struct parked {
	uint32_t frames[PARKED_MAX];
	unsigned n;
};

/* See search_frame(). */
static uint64_t thread_sps[WIRE_CPUS_MAX];
static struct parked parked_threads[WIRE_CPUS_MAX];

unsigned look_exception(unsigned cpu)
{
	uint64_t xpsr;

	return regs_mode(cpu, &xpsr) ? xpsr & REGS_EXCEPTION : 0;
}

/* lr at the start of a handler. */
#define M_FROM_THREAD 8u
#define M_BASIC_FRAME 16u

/* The words that an exception of M-profile stores: r0 to r3, r12, lr, pc, xPSR. */
enum { M_STORED = 5, M_PC = 6, M_XPSR = 7, M_WORDS = 8 };
#define M_THUMB (1u << 24)
#define M_FLAGS (31u << 27)
#define M_FRAME 0x20
#define M_FRAME_WITH_FP 0x68
#define M_ALIGNED (1u << 9) /* in the stored xPSR: a word was skipped to align the frame */

/*
 * The stack pointer of threads, for a QEMU that does not list it. A handler writes it by msr. When an
 * exception interrupts a thread, the thread's registers are both on its stack and in the cpu: the plugin
 * searches for them around the last known stack pointer. The match at the highest address is the newest,
 * unless it belongs to another thread, which may have stopped at the same place.
 */
#define SEARCH_BYTES 4096
#define SEARCH_PIECE 256

static bool is_frame(const uint32_t *words, const uint64_t *stored, uint64_t xpsr)
{
	for (size_t i = 0; i < M_STORED; i++) {
		if (words[i] != stored[i])
			return false;
	}
	return words[M_XPSR] & M_THUMB && !(words[M_XPSR] & REGS_EXCEPTION) &&
	       !((words[M_XPSR] ^ xpsr) & M_FLAGS);
}

static bool is_parked(const struct parked *parked, uint64_t frame)
{
	for (size_t i = 0; i < PARKED_MAX; i++) {
		if (parked->frames[i] == frame)
			return true;
	}
	return false;
}

static void park(struct parked *parked, uint64_t frame)
{
	if (frame)
		parked->frames[parked->n++ % PARKED_MAX] = (uint32_t)frame;
}

void look_resumed(unsigned cpu, uint64_t sp)
{
	struct parked *parked;

	if (regs_lists(cpu, REG_SP_0) || cpu >= WIRE_CPUS_MAX)
		return;
	parked = &parked_threads[cpu];
	for (size_t i = 0; i < PARKED_MAX; i++) {
		uint64_t size = (sp - parked->frames[i]) & ~4ull;

		if (size == M_FRAME || size == M_FRAME_WITH_FP)
			parked->frames[i] = 0;
	}
}

static uint64_t search_frame(unsigned cpu, uint64_t near)
{
	static const uint8_t numbers[M_STORED] = { 0, 1, 2, 3, 12 };
	uint64_t low = (near - SEARCH_BYTES) & ~7ull, stored[M_STORED], xpsr;
	uint32_t words[2 * SEARCH_BYTES / 4] = { 0 };
	struct regs_view view = { .cpu = cpu };

	for (size_t i = 0; i < M_STORED; i++) {
		if (!regs_number(cpu, numbers[i], &stored[i]))
			return 0;
	}
	if (near < SEARCH_BYTES || !regs_mode(cpu, &xpsr))
		return 0;
	for (size_t at = 0; at < sizeof(words); at += SEARCH_PIECE)
		regs_memory(&view, low + at, words + at / 4, SEARCH_PIECE);
	for (size_t i = sizeof(words) / 4 - M_WORDS; i > 0; i--) {
		if (is_frame(words + i, stored, xpsr) &&
		    !is_parked(&parked_threads[cpu], low + i * 4))
			return low + i * 4;
	}
	return 0;
}

static bool thread_sp(unsigned cpu, const struct look *before, uint64_t *sp)
{
	if (regs_special(cpu, REG_SP_0, sp))
		return true;
	if (cpu >= WIRE_CPUS_MAX)
		return false;
	if (!before->exception) {
		thread_sps[cpu] = search_frame(cpu, before->sp);
		park(&parked_threads[cpu], thread_sps[cpu]);
	}
	*sp = thread_sps[cpu];
	return *sp != 0;
}

void look_note_thread_sp(unsigned cpu, unsigned source)
{
	uint64_t value;

	if (!regs_lists(cpu, REG_SP_0) && cpu < WIRE_CPUS_MAX)
		thread_sps[cpu] = regs_number(cpu, source, &value) ? value : 0;
}

bool look_frame(unsigned cpu, uint64_t sp, const struct look *before, struct look_trap *trap,
		unsigned *exception)
{
	struct regs_view view = { .cpu = cpu };
	uint32_t words[M_WORDS];
	uint64_t lr, at = sp;

	*trap = (struct look_trap){ 0 };
	*exception = 0;
	if (!regs_special(cpu, REG_LINK, &lr) || !regs_is_exception_return(lr))
		return false;
	trap->level = lr & M_FROM_THREAD ? regs_level(cpu, 0) : WIRE_LEVEL_KERNEL;
	if (lr & REGS_ON_PROCESS_STACK && !thread_sp(cpu, before, &at))
		return true;
	if (regs_memory(&view, at, words, sizeof(words)) < sizeof(words))
		return true;
	trap->resume = words[M_PC];
	trap->left = at + (lr & M_BASIC_FRAME ? M_FRAME : M_FRAME_WITH_FP) +
		     (words[M_XPSR] & M_ALIGNED ? 4 : 0);
	if (!(lr & M_FROM_THREAD))
		*exception = words[M_XPSR] & REGS_EXCEPTION;
	return true;
}
