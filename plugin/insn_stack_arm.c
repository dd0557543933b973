// SPDX-License-Identifier: GPL-2.0-or-later
/* What an instruction of AArch64, Arm or Thumb does to the stack pointer. */
#include "insn_parts.h"

#define SP 13
#define ZR_OR_SP 31

static void moves(struct insn *insn, bool up, uint64_t bytes)
{
	insn->bytes = (int64_t)(up ? bytes : -bytes);
}

static bool changes_level(const struct insn *insn)
{
	return insn->flow == WIRE_FLOW_ENTER || insn->flow == WIRE_FLOW_LEAVE;
}

/* AArch64 */

/* A result in sp that is computed from another register. */
static enum insn_stack copy_from(unsigned rn, unsigned frame_pointer)
{
	return rn == frame_pointer ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
}

static bool aarch64_arithmetic(uint32_t w, struct insn *insn)
{
	unsigned rn = w >> 5 & 31;
	bool add = !(w & 0x40000000);

	if ((w & 0xbf80001f) == 0x9100001f) { /* add, sub of an immediate */
		if (rn == ZR_OR_SP)
			moves(insn, add, (uint64_t)(w >> 10 & 0xfff) << (w & 0x400000 ? 12 : 0));
		else
			insn->stack = copy_from(rn, 29);
	} else if ((w & 0xbfe0001f) == 0x8b20001f) { /* of a register */
		insn->stack = rn == ZR_OR_SP ? INSN_STACK_UNKNOWN : copy_from(rn, 29);
	} else if ((w & 0x1f80001f) == 0x1200001f && (w & 0x60000000) != 0x60000000) {
		/* and, eor; orr of zr and an immediate is mov */
		insn->stack =
			(w & 0x600003e0) == 0x200003e0 ? INSN_STACK_REPLACED : INSN_STACK_UNKNOWN;
	} else if ((w & 0xbf80001f) == 0x9180001f || (w & 0xffa0f01f) == 0x0420501f) {
		insn->stack = INSN_STACK_UNKNOWN; /* addg, subg; addvl, addpl */
	} else {
		return false;
	}
	return true;
}

static uint64_t pair_scale(uint32_t w)
{
	unsigned opc = w >> 30;

	if (w & 0x04000000) /* floating point and vectors */
		return 4ull << opc;
	if (opc == 1) /* stgp, ldpsw */
		return w & 0x400000 ? 4 : 16;
	return opc ? 8 : 4;
}

/* Loads and stores that write the address back to sp. */
static void aarch64_access(uint32_t w, struct insn *insn)
{
	if ((w >> 5 & 31) != ZR_OR_SP)
		return;
	if ((w & 0x3a800000) == 0x28800000) /* pairs */
		moves(insn, true, insn_sign(w >> 15, 7) * pair_scale(w));
	else if ((w & 0x3b200400) == 0x38000400)
		moves(insn, true, insn_sign(w >> 12, 9));
	else if ((w & 0xff200400) == 0xd9200400) /* stg and the like */
		moves(insn, true, insn_sign(w >> 12, 9) * 16);
	else if ((w & 0xbe800000) == 0x0c800000 || (w & 0xff200c00) == 0xf8200c00)
		insn->stack = INSN_STACK_UNKNOWN; /* ld1 and the like; ldraa */
}

void insn_stack_aarch64(uint32_t w, struct insn *insn)
{
	if (changes_level(insn))
		insn->stack = INSN_STACK_UNKNOWN;
	else if ((w & 0xfffff0ff) == 0xd50040bf || (w & 0xffffffe0) == 0xd5184200) /* msr spsel */
		insn->stack = INSN_STACK_REPLACED;
	else if (!aarch64_arithmetic(w, insn))
		aarch64_access(w, insn);
}

/* Arm and Thumb */

static uint32_t rotate(uint32_t value, unsigned by)
{
	by &= 31;
	return by ? value >> by | value << (32 - by) : value;
}

static uint64_t list_size(uint32_t list)
{
	return 4 * (uint64_t)__builtin_popcount(list & 0xffff);
}

/* Floating-point registers and other coprocessors; the same in Arm and Thumb. */
static void access_coprocessor(uint32_t w, struct insn *insn)
{
	if ((w & 0x0e200000) != 0x0c200000 || (w >> 16 & 15) != SP)
		return;
	if ((w & 0xe00) == 0xa00)
		moves(insn, w & 0x800000, (w & 0xff) * 4);
	else
		insn->stack = INSN_STACK_UNKNOWN;
}

/* Arithmetic whose result goes to sp. opcode: Arm's. known: the second operand is `value`. */
static void arithmetic(unsigned opcode, unsigned rn, bool known, uint64_t value, struct insn *insn)
{
	bool add = opcode == 4, sub = opcode == 2;

	if ((add || sub) && rn == SP && known)
		moves(insn, add, value);
	else if (rn == SP || rn == 11 || !(add || sub))
		insn->stack = INSN_STACK_UNKNOWN;
	else
		insn->stack = INSN_STACK_REPLACED;
}

static void arm_arithmetic(uint32_t w, struct insn *insn)
{
	unsigned opcode = w >> 21 & 15, rn = w >> 16 & 15;
	bool immediate = w & 0x02000000;

	if (!immediate && (w & 0x90) == 0x90)
		return;			  /* multiplication and the like */
	if (opcode >= 8 && opcode < 12) { /* comparisons; without flags movw, movt */
		if (immediate && (w & 0x00b00000) == 0)
			insn->stack = INSN_STACK_REPLACED;
		return;
	}
	if (opcode == 13 || opcode == 15) /* mov */
		insn->stack =
			!immediate && (w & 0xfff) == 11 ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
	else
		arithmetic(opcode, rn, immediate, rotate(w & 0xff, w >> 7 & 30), insn);
}

static void arm_multiple(uint32_t w, struct insn *insn)
{
	unsigned rn = w >> 16 & 15;
	bool load = w & 0x100000, user = w & 0x400000 && !(load && w & 0x8000);

	if (user)
		return; /* registers of user mode */
	if (load && w & 0x2000)
		insn->stack = rn == SP || rn == 11 ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
	else if (rn == SP && w & 0x200000)
		moves(insn, w & 0x800000, list_size(w));
}

/* ldr, str, and those of other sizes. */
static void arm_single(uint32_t w, bool known, uint64_t value, struct insn *insn)
{
	bool writes_back = !(w & 0x01000000) || w & 0x00200000;

	if (!writes_back || (w >> 16 & 15) != SP)
		return;
	if (known)
		moves(insn, w & 0x800000, value);
	else
		insn->stack = INSN_STACK_UNKNOWN;
}

/* cps, msr: another mode has another stack pointer. */
static bool arm_changes_mode(uint32_t w)
{
	return (w & 0xfff20000) == 0xf1020000 ||
	       (w >> 28 != 15 &&
		((w & 0x0ff1f000) == 0x0321f000 || (w & 0x0ff1fff0) == 0x0121f000));
}

static void arm_unconditional(uint32_t w, struct insn *insn)
{
	bool neon = (w & 0xff100000) == 0xf4000000 && (w >> 16 & 15) == SP && (w & 15) != 15;

	if (neon || (w & 0xfe5f0000) == 0xf84d0000) /* srs */
		insn->stack = INSN_STACK_UNKNOWN;
}

static bool is_media(uint32_t w)
{
	return (w & 0x0e000010) == 0x06000010;
}

static bool is_extra_access(uint32_t w)
{
	return (w & 0x0e000090) == 0x00000090 && w & 0x60;
}

void insn_stack_arm(uint32_t w, struct insn *insn)
{
	bool to_sp = (w >> 12 & 15) == SP;

	if (changes_level(insn))
		insn->stack = INSN_STACK_UNKNOWN;
	else if (arm_changes_mode(w))
		insn->stack = INSN_STACK_REPLACED;
	else if (w >> 28 == 15)
		arm_unconditional(w, insn);
	else if ((w & 0x0e000000) == 0x08000000)
		arm_multiple(w, insn);
	else if ((w & 0x0c500000) == 0x04100000 && to_sp && !is_media(w)) /* ldr sp */
		insn->stack = INSN_STACK_REPLACED;
	else if ((w & 0x0c000000) == 0x04000000 && !is_media(w))
		arm_single(w, !(w & 0x02000000), w & 0xfff, insn);
	else if (is_extra_access(w))
		arm_single(w, w & 0x400000, (w >> 4 & 0xf0) | (w & 15), insn);
	else if ((w & 0x0c000000) == 0 && to_sp)
		arm_arithmetic(w, insn);
	else
		access_coprocessor(w, insn);
}

void insn_stack_thumb16(uint32_t h, struct insn *insn)
{
	if (changes_level(insn))
		insn->stack = INSN_STACK_UNKNOWN;
	else if ((h & 0xf600) == 0xb400) /* push, pop */
		moves(insn, h & 0x800, list_size(h & 0x1ff));
	else if ((h & 0xff00) == 0xb000) /* add, sub of an immediate */
		moves(insn, !(h & 0x80), (h & 0x7f) * 4);
	else if ((h & 0xff87) == 0x4485) /* add of a register */
		insn->stack = INSN_STACK_UNKNOWN;
	else if ((h & 0xff87) == 0x4685) /* mov */
		insn->stack = copy_from(h >> 3 & 15, 7);
}

/* The immediates of Thumb: bytes in a pattern, or a byte that is rotated. */
static uint32_t thumb_immediate(uint32_t imm12)
{
	uint32_t byte = imm12 & 0xff;

	switch (imm12 >> 8) {
	case 0: return byte;
	case 1: return byte << 16 | byte;
	case 2: return byte << 24 | byte << 8;
	case 3: return byte * 0x01010101;
	default: return rotate(0x80 | (byte & 0x7f), imm12 >> 7);
	}
}

/* Arm's opcode of an instruction of Thumb. */
static unsigned opcode_of(uint32_t a)
{
	switch (a >> 5 & 15) {
	case 8: return 4;  /* add */
	case 13: return 2; /* sub */
	default: return 0;
	}
}

static void thumb_arithmetic(uint32_t a, uint32_t b, struct insn *insn)
{
	uint32_t imm12 = (a >> 10 & 1) << 11 | (b >> 12 & 7) << 8 | (b & 0xff);
	unsigned rn = a & 15;

	if ((b >> 8 & 15) != SP)
		return;
	if ((a & 0xffef) == 0xea4f) /* mov of a register */
		insn->stack = !(b & 0x70f0) ? copy_from(b & 15, 7) : INSN_STACK_UNKNOWN;
	else if ((a & 0xfbef) == 0xf04f || (a & 0xfb70) == 0xf240) /* mov, movw, movt */
		insn->stack = INSN_STACK_REPLACED;
	else if (rn == 7)
		insn->stack = INSN_STACK_UNKNOWN;
	else if ((a & 0xfe00) == 0xea00)
		arithmetic(opcode_of(a), rn, false, 0, insn);
	else if ((a & 0xfb50) == 0xf200) /* addw, subw */
		arithmetic(a & 0x80 ? 2 : 4, rn, true, imm12, insn);
	else if (!(a & 0x200))
		arithmetic(opcode_of(a), rn, true, thumb_immediate(imm12), insn);
}

static void thumb_access(uint32_t a, uint32_t b, struct insn *insn)
{
	bool from_sp = (a & 15) == SP;

	if ((a & 0xff70) == 0xf850 && b >> 12 == SP) { /* ldr sp */
		insn->stack = INSN_STACK_REPLACED;
	} else if (!from_sp) {
		return;
	} else if ((a & 0xfe40) == 0xe840) { /* ldrd, strd */
		if (a & 0x20)
			moves(insn, a & 0x80, (b & 0xff) * 4);
	} else if ((a & 0xff10) == 0xf900) { /* vectors */
		if ((b & 15) != 15)
			insn->stack = INSN_STACK_UNKNOWN;
	} else if ((a & 0xfe80) == 0xf800) { /* ldr, str, and those of other sizes */
		if ((b & 0x800) && (!(b & 0x400) || b & 0x100))
			moves(insn, b & 0x200, b & 0xff);
	}
}

/*
 * M-profile: whether msr writes msp, psp or control. It does not matter that a handler which writes a
 * thread's stack pointer keeps its own.
 */
static bool is_m_stack(uint32_t b)
{
	return (b & 0xff00) == 0x8800 && ((b & 0xff) == 8 || (b & 0xff) == 9 || (b & 0xff) == 20);
}

void insn_stack_thumb32(uint32_t a, uint32_t b, struct insn *insn)
{
	unsigned op = a >> 7 & 3;

	if (changes_level(insn)) {
		insn->stack = INSN_STACK_UNKNOWN;
	} else if (a == 0xf3af && (b & 0xd100) == 0x8100) { /* cps to a mode */
		insn->stack = INSN_STACK_REPLACED;
	} else if ((a & 0xfff0) == 0xf380 && is_m_stack(b)) {
		insn->stack = INSN_STACK_REPLACED;
	} else if ((a & 0xfff0) == 0xf380 && (b & 0xd1ff) == 0x8100) { /* msr cpsr_c */
		insn->stack = INSN_STACK_REPLACED;
	} else if ((a & 0xfe40) == 0xe800) { /* ldm, stm; srs */
		if (op == 0 || op == 3)
			insn->stack = INSN_STACK_UNKNOWN;
		else if ((a & 0x2f) == (0x20 | SP))
			moves(insn, op == 1, list_size(b));
	} else if ((a & 0xfe00) == 0xea00 || ((a & 0xf800) == 0xf000 && !(b & 0x8000))) {
		thumb_arithmetic(a, b, insn);
	} else if ((a & 0xec00) == 0xec00) {
		access_coprocessor(a << 16 | b, insn);
	} else {
		thumb_access(a, b, insn);
	}
}
