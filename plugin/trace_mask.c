// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether interrupts are on. Most instructions that switch them on or off have a fixed effect, which the
 * definition of their block states. After any other, the plugin reads the mask register. Where QEMU does not
 * expose that, the plugin infers the mask from the value that the code writes.
 */
#include "trace_parts.h"
#include "wire/wire.h"

static unsigned by_bits(const struct insn_mask *insn, uint64_t value, uint64_t on)
{
	bool set = value & on;

	switch (insn->write) {
	case INSN_WRITES: return set ? WIRE_MASK_ON : WIRE_MASK_OFF;
	case INSN_SETS_BITS: return set ? WIRE_MASK_ON : WIRE_MASK_SAME;
	case INSN_CLEARS_BITS: return set ? WIRE_MASK_OFF : WIRE_MASK_SAME;
	default: return WIRE_MASK_UNKNOWN;
	}
}

/* The effect of the last instruction, by the register that it took the value from. */
static unsigned by_source(struct tracer *t, const struct insn_mask *insn)
{
	uint64_t value;

	if (insn->otherwise)
		return insn->otherwise;
	if (!regs_number(t->cpu, insn->source, &value))
		return WIRE_MASK_UNKNOWN;
	if (insn->off && value & insn->off)
		return WIRE_MASK_OFF;
	if (insn->off)
		return insn->write == INSN_WRITES ? WIRE_MASK_ON : WIRE_MASK_SAME;
	if (by_bits(insn, value, insn->saved))
		t->saved_mask = by_bits(insn, value, insn->saved);
	return by_bits(insn, value, insn->on);
}

unsigned trace_mask_after(struct tracer *t, bool trap)
{
	/* Exceptions of M-profile keep the mask; others keep the source register. */
	unsigned mask =
		trap && !regs_is_m_profile() ? WIRE_MASK_SAME : look_mask(t->cpu, t->written.level);

	return mask ? mask : by_source(t, &t->cur->block->last_mask);
}

void trace_guess_mask(struct tracer *t, struct step *step)
{
	if (step->look.mask || regs_is_m_profile()) /* whose exceptions keep the mask */
		return;
	if (step->enters) {
		step->look.mask = WIRE_MASK_OFF;
		t->saved_mask = WIRE_MASK_UNKNOWN;
	} else if (t->cur->block->flow == WIRE_FLOW_LEAVE && step->look.level == t->written.level) {
		step->look.mask = t->saved_mask;
	}
}
