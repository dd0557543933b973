// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exceptions of Cortex-M. The hardware stores the registers that a function may change on the stack
 * of the interrupted code, and sets lr to EXC_RETURN, a value that is no code address. A return to
 * that value ends the exception; its bits say on which stack the registers are:
 *
 *	bits 31-7	1
 *	bit 5		0: r4-r11 as well (v8-M, between the two security states)
 *	bit 4		0: floating-point registers as well
 *	bit 2		0: on the stack of handlers (MSP); 1: on that of threads (PSP)
 *	bit 1		0
 */
#include "unwind/walk.h"

#define EXC_RETURN_MIN 0xffffff80
#define EXC_RETURN_ZERO 2
#define LR_AT_RESET UINT64_C(0xffffffff)
#define NO_CALLEES 0x20
#define NO_FLOATS 0x10
#define ON_PSP 4

#define FRAME_BYTES 0x20 /* r0-r3, r12, lr, pc, xPSR */
#define FRAME_BYTES_FLOATS 0x68
#define XPSR_ALIGNED (1 << 9) /* the hardware skipped a word to align the stack */

#define CALLEES_BYTES 0x28	     /* a signature, an unused word, r4-r11 */
#define CALLEES_SIGNATURE 0xfefa125a /* bit 0 says whether there are floating-point registers */

#define R4 4
#define R11 11

bool m_profile_ends(const struct walk *w, uint64_t address)
{
	return w->machine->kind == ARM && address >= EXC_RETURN_MIN && address <= UINT32_MAX &&
	       (!(address & EXC_RETURN_ZERO) || (address | 1) == LR_AT_RESET);
}

/* Skips r4-r11, if they are there. */
static uint64_t take_callees(const struct walk *w, struct state *s, uint64_t frame)
{
	uint64_t value;

	if (!walk_word(w, frame, &value) || (value & ~UINT64_C(1)) != CALLEES_SIGNATURE)
		return frame;
	for (unsigned nr = R4; nr <= R11; nr++) {
		if (walk_word(w, frame + 8 + 4 * (nr - R4), &value))
			reg_set(s, nr, value);
	}
	return frame + CALLEES_BYTES;
}

/* Does the frame follow directly? The thread's stack is not the handler's. */
static bool find_frame(const struct walk *w, const struct state *s, uint64_t *frame)
{
	if (!(s->pc & ON_PSP))
		return reg_value(s, w->machine->sp, frame);
	*frame = w->cpu->outer_addr;
	return w->cpu->outer_len;
}

enum step m_profile_step(const struct walk *w, struct state *s)
{
	static const uint8_t order[] = { 0, 1, 2, 3, 12, 14 };
	struct state before = { .exact = true };
	uint64_t frame, xpsr, value;

	for (unsigned nr = 0; nr < w->machine->nr; nr++) {
		if (w->machine->kept >> nr & 1 && reg_value(s, nr, &value))
			reg_set(&before, nr, value);
	}
	if ((s->pc | 1) == LR_AT_RESET)
		return STEP_END;
	if (!find_frame(w, s, &frame))
		return STEP_LOST;
	if (!(s->pc & NO_CALLEES))
		frame = take_callees(w, &before, frame);
	for (unsigned i = 0; i < sizeof(order); i++) {
		if (walk_word(w, frame + 4 * i, &value))
			reg_set(&before, order[i], value);
	}
	if (!walk_word(w, frame + 24, &before.pc) || !walk_word(w, frame + 28, &xpsr))
		return STEP_LOST;
	before.pc &= ~UINT64_C(1);
	before.cfa = frame + (s->pc & NO_FLOATS ? FRAME_BYTES : FRAME_BYTES_FLOATS);
	if (xpsr & XPSR_ALIGNED)
		before.cfa += 4;
	reg_set(&before, w->machine->sp, before.cfa);
	*s = before;
	return STEP_TRAP;
}
