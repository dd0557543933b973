// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How an instruction switches interrupts on or off. Instructions that enter or leave an exception handler
 * are not here: a state follows them.
 */
#include "insn_parts.h"

static void set(struct insn *insn, enum wire_mask mask)
{
	insn->mask.mask = (uint8_t)mask;
}

static void set_by(struct insn *insn, struct insn_mask mask)
{
	mask.mask = WIRE_MASK_UNKNOWN;
	insn->mask = mask;
}

static void set_unknown(struct insn *insn, enum wire_mask otherwise)
{
	set_by(insn, (struct insn_mask){ .otherwise = (uint8_t)otherwise });
}

void insn_mask_x86(const struct x86 *x, struct insn *insn)
{
	switch (*x->at) {
	case 0xfa: set(insn, WIRE_MASK_OFF); break;
	case 0xfb: set(insn, WIRE_MASK_ON); break;
	case 0x9d: set_unknown(insn, WIRE_MASK_UNKNOWN); break; /* popf */
	default: break;
	}
}

void insn_mask_aarch64(uint32_t w, struct insn *insn)
{
	if ((w & 0xfffff2ff) == 0xd50342df) /* msr daifset with I */
		set(insn, WIRE_MASK_OFF);
	else if ((w & 0xfffff2ff) == 0xd50342ff) /* msr daifclr */
		set(insn, WIRE_MASK_ON);
	else if (w == 0xd51b423f) /* msr daif, xzr */
		set(insn, WIRE_MASK_ON);
	else if ((w & 0xffffffe0) == 0xd51b4220)
		set_by(insn,
		       (struct insn_mask){ .write = INSN_WRITES, .source = w & 31, .off = 0x80 });
}

void insn_mask_arm(uint32_t w, struct insn *insn)
{
	if ((w & 0xfff1fe20) == 0xf1000000 && w & 0x80) { /* cps with i */
		if ((w >> 18 & 3) >= 2)
			set(insn, w >> 18 & 1 ? WIRE_MASK_OFF : WIRE_MASK_ON);
	} else if (w >> 28 != 15 && ((w & 0x0ff1fff0) == 0x0121f000 ||
				     (w & 0x0ff1f000) == 0x0321f000)) { /* msr cpsr_c */
		set_unknown(insn, WIRE_MASK_UNKNOWN);
	}
}

/*
 * cpsie and cpsid. M-profile has PRIMASK for i, FAULTMASK for f, and BASEPRI: interrupts are on if
 * none of them masks any.
 */
void insn_mask_thumb16(uint32_t h, struct insn *insn)
{
	if ((h & 0xffe8) != 0xb660 || !(h & 3))
		return;
	if (h & 0x10)
		set_unknown(insn, WIRE_MASK_OFF);
	else
		set_unknown(insn, h & 2 ? WIRE_MASK_ON : WIRE_MASK_UNKNOWN);
}

void insn_mask_thumb32(uint32_t a, uint32_t b, struct insn *insn)
{
	struct insn_mask mask = { .write = INSN_WRITES, .source = a & 15, .off = 1 };

	if ((a & 0xfff0) != 0xf380 || b >> 12 != 8)
		return;
	if (b & 0x100 && !(b & 0xff)) { /* A-profile: msr cpsr_c */
		set_unknown(insn, WIRE_MASK_UNKNOWN);
		return;
	}
	switch (b & 0xff) { /* M-profile */
	case 16:	    /* primask, faultmask */
	case 19: set_by(insn, mask); break;
	case 17: /* basepri, basepri_max */
	case 18:
		mask.write = (b & 0xff) == 17 ? INSN_WRITES : INSN_SETS_BITS;
		mask.off = 0xff;
		set_by(insn, mask);
		break;
	default: break;
	}
}

/* csrrw, csrrs, csrrc of sstatus and mstatus, and those with an immediate. */
void insn_mask_riscv(uint32_t w, struct insn *insn)
{
	static const uint8_t writes[] = { INSN_WRITES_NOTHING, INSN_WRITES, INSN_SETS_BITS,
					  INSN_CLEARS_BITS };
	bool machine = w >> 20 == 0x300, immediate = w & 0x4000;
	unsigned from = w >> 15 & 31, to = w >> 7 & 31, write = writes[w >> 12 & 3];
	uint8_t on = machine ? 8 : 2;

	if ((w & 0x7f) != 0x73 || (w >> 20 != 0x100 && !machine) || !write)
		return;
	if (!from && write != INSN_WRITES) /* only reads */
		return;
	if (immediate && write == INSN_WRITES)
		set(insn, from & on ? WIRE_MASK_ON : WIRE_MASK_OFF);
	else if (immediate && from & on)
		set(insn, write == INSN_SETS_BITS ? WIRE_MASK_ON : WIRE_MASK_OFF);
	else if (!immediate && from == to && from)
		set_unknown(insn, WIRE_MASK_UNKNOWN);
	else if (!immediate)
		set_by(insn, (struct insn_mask){ .write = (uint8_t)write,
						 .source = (uint8_t)from,
						 .on = on,
						 .saved = machine ? 0x80 : 0x20 });
}
