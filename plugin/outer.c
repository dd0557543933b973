// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * outer: copies the interrupted stack, for kernels that handle interrupts on a separate one. Linux on
 * x86-64 stores its address in the topmost word of the interrupt stack; on machines with a link
 * register the frame pointers lead to it. Cortex-M has a stack pointer for handlers and one for threads.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "args.h"
#include "sample.h"

#define FRAMES_MAX 128

static __thread uint8_t *outer_copy;

static bool word_at(const struct regs *regs, const struct wire_sample *sample, uint64_t address,
		    uint64_t *value)
{
	uint64_t at = address - regs->sp;

	*value = 0;
	if (at >= sample->stack_size || sample->stack_size - at < regs->word)
		return false;
	memcpy(value, (const uint8_t *)sample->stack + at, regs->word);
	return true;
}

/* If the copy ended early, memory ends there: the last word is the topmost of the stack. */
static uint64_t by_top_word(const struct regs *regs, const struct wire_sample *sample)
{
	uint64_t top = 0;

	if (sample->stack_size < args.stack)
		word_at(regs, sample, regs->sp + sample->stack_size - regs->word, &top);
	return top;
}

static bool is_riscv(void)
{
	return !strncmp(api.arch, "riscv", 5);
}

/*
 * Linux on RISC-V saves the interrupted registers on the stack: the pc, x1 to x31 and four others. It
 * enters a handler with sp at the saved registers, and with the interrupted sp (x2) in the frame
 * pointer (x8). In this case, returns the interrupted frame pointer, else fp.
 */
static uint64_t before_trap(const struct regs *regs, const struct wire_sample *sample,
			    uint64_t registers, uint64_t fp)
{
	uint64_t sp, interrupted;

	if (is_riscv() && fp == registers + 36 * regs->word &&
	    word_at(regs, sample, registers + 2 * regs->word, &sp) && sp == fp &&
	    word_at(regs, sample, registers + 8 * regs->word, &interrupted))
		return interrupted;
	return fp;
}

/* The first frame outside of the copy. */
static uint64_t by_frame_pointer(const struct regs *regs, const struct wire_sample *sample)
{
	uint64_t below = is_riscv() ? 2 * regs->word : 0;
	uint64_t fp = before_trap(regs, sample, regs->sp, regs->fp), next;

	for (unsigned n = 0; n < FRAMES_MAX; n++) {
		if (!word_at(regs, sample, fp - below, &next))
			return fp - below;
		fp = before_trap(regs, sample, fp, next);
	}
	return 0;
}

static bool is_outer(const struct regs *regs, const struct wire_sample *sample, uint64_t address)
{
	unsigned top = 8 * regs->word - 1;

	return address && !(address & (regs->word - 1)) && address >> top == regs->sp >> top &&
	       address - regs->sp >= sample->stack_size;
}

void outer_stack(struct wire_sample *sample, const struct regs_view *view, const struct regs *regs)
{
	uint64_t address = 0;

	/* The stack may be empty: at the entry of the first function on the interrupt stack. */
	if (!args.stack || !regs->n || regs->level == WIRE_LEVEL_USER)
		return;
	if (!strcmp(api.arch, "x86_64"))
		address = sample->stack_size ? by_top_word(regs, sample) : 0;
	else if (!strcmp(api.arch, "aarch64") || is_riscv())
		address = by_frame_pointer(regs, sample);
	if (regs->outer) /* the unwinder needs its address, even if the copy of the stack contains it */
		address = regs->outer;
	else if (!is_outer(regs, sample, address))
		return;
	if (!outer_copy)
		outer_copy = malloc(args.stack);
	if (!outer_copy)
		return;
	sample->outer_size = regs_memory(view, address, outer_copy, args.stack);
	sample->outer_address = address;
	sample->outer = outer_copy;
}
