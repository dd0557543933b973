// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How an instruction uses the return address and the frame pointer: calls, returns, and loads and stores of the link
 * register. Decodes only these, from the bytes of the binary.
 */
#include <string.h>

#include "unwind/walk.h"

static uint32_t half_at(const uint8_t *code)
{
	return (uint32_t)(code[0] | code[1] << 8);
}

static uint32_t word_at(const uint8_t *code)
{
	return half_at(code) | half_at(code + 2) << 16;
}

/* The signed number in the lowest `bits` bits. */
static uint64_t as_signed(uint64_t value, unsigned bits)
{
	return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
}

static void go(struct insn *insn, enum insn_kind kind, uint64_t target)
{
	insn->kind = kind;
	insn->target = target;
}

/* ---- AArch64 ---- */

#define A64_FP 29
#define A64_LR 30
#define A64_SP 31

static void a64_branch(uint64_t at, uint32_t w, struct insn *insn)
{
	if ((w & 0x7c000000) == 0x14000000)
		go(insn, w >> 31 ? INSN_CALL : INSN_JUMP, at + as_signed(w, 26) * 4);
	else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000)
		go(insn, INSN_BRANCH, at + as_signed(w >> 5, 19) * 4);
	else if ((w & 0x7e000000) == 0x36000000)
		go(insn, INSN_BRANCH, at + as_signed(w >> 5, 14) * 4);
	else if ((w & 0xfffffc1f) == 0xd63f0000 || (w & 0xfefff800) == 0xd63f0800)
		insn->kind = INSN_CALL; /* blr, also with authentication */
	else if (w == 0xd65f03c0 || w == 0xd65f0bff || w == 0xd65f0fff)
		insn->kind = INSN_RETURN;
	else if ((w & 0xfe000000) == 0xd6000000 || !(w >> 16))
		insn->kind = INSN_AWAY; /* br, ret with another register, eret; udf */
}

static void a64_stack(uint32_t w, struct insn *insn)
{
	unsigned rt = w & 31, base = w >> 5 & 31, rt2 = w >> 10 & 31;
	bool pair = (w & 0xfe000000) == 0xa8000000;
	bool single = (w & 0xffa00000) == 0xf8000000 || (w & 0xff800000) == 0xf9000000;

	insn->sets_fp = (w & 0xff8003ff) == (0x91000000 | A64_SP << 5 | A64_FP); /* add x29, sp */
	insn->loads_fp = base == A64_SP && w >> 22 & 1 &&
			 ((pair && (rt == A64_FP || rt2 == A64_FP)) || (single && rt == A64_FP));
	if (base == A64_SP &&
	    ((pair && (rt == A64_LR || rt2 == A64_LR)) || (single && rt == A64_LR)))
		insn->kind = w >> 22 & 1 ? INSN_LOADS : INSN_SAVES;
}

static void decode_a64(const uint8_t *code, uint64_t at, struct insn *insn)
{
	uint32_t w = word_at(code);

	insn->len = 4;
	a64_stack(w, insn);
	a64_branch(at, w, insn);
}

/* ---- Arm ---- */

#define ARM_FP 11
#define THUMB_FP 7
#define ARM_LR 14
#define ARM_PC 15

/* Pops a list of registers; lr or pc, if present, is the last one. */
static void pops(struct insn *insn, uint32_t list)
{
	insn->moves = 4 * __builtin_popcount(list);
	insn->slot = insn->moves - 4;
	insn->list = (uint16_t)list;
}

static int32_t rotated(uint32_t value, uint32_t bits)
{
	return (int32_t)(value >> bits | value << (-bits & 31));
}

static void arm_moves(uint32_t w, struct insn *insn)
{
	int32_t number = rotated(w & 0xff, w >> 7 & 30), offset = (int32_t)(w & 0xfff);

	if ((w & 0x0fff0000) == 0x08bd0000)
		pops(insn, w & 0xffff);
	else if ((w & 0x0fff0000) == 0x092d0000)
		insn->moves = -4 * __builtin_popcount(w & 0xffff);
	else if ((w & 0x0fff0000) == 0x049d0000)
		insn->moves = offset;
	else if ((w & 0x0fff0000) == 0x052d0000)
		insn->moves = -offset;
	else if ((w & 0x0fff0000) == 0x059d0000)
		insn->slot = offset;
	else if ((w & 0x0ffff000) == 0x028dd000 || (w & 0x0ffff000) == 0x024dd000)
		insn->moves = w >> 23 & 1 ? number : -number;
	else if ((w & 0x0fbf0e00) == 0x0cbd0a00) /* vpop */
		insn->moves = (int32_t)(w & 0xff) * 4;
	else if ((w & 0x0fbf0e00) == 0x0d2d0a00)
		insn->moves = (int32_t)(w & 0xff) * -4;
	else
		insn->replaces = (w & 0x0c00f000) == 0x0000d000 || /* sp by calculation */
				 ((w & 0x0e100000) == 0x08100000 && w >> ARM_LR & 3);
}

static void arm_stack(uint32_t w, struct insn *insn)
{
	uint32_t form = w & 0x0fff0000, rt = w >> 12 & 15;

	arm_moves(w, insn);
	insn->sets_fp = (w & 0x0fffffff) == 0x01a0b00d || (w & 0x0ffff000) == 0x028db000;
	insn->loads_fp = insn->list >> ARM_FP & 1 ||
			 ((form == 0x049d0000 || form == 0x059d0000) && rt == ARM_FP);
	if ((w & 0x0e100000) == 0x08100000 && w >> ARM_LR & 3) /* ldm {... lr or pc} */
		insn->kind = INSN_LOADS;
	else if ((w & 0x0e100000) == 0x08000000 && w >> ARM_LR & 1) /* stm {... lr} */
		insn->kind = INSN_SAVES;
	else if ((form == 0x052d0000 || form == 0x058d0000) && rt == ARM_LR) /* str lr, [sp */
		insn->kind = INSN_SAVES;
	else if ((form == 0x049d0000 || form == 0x059d0000) && rt >= ARM_LR) /* ldr lr or pc, [sp */
		insn->kind = INSN_LOADS;
	else if ((w & 0x0c50f000) == 0x0410f000 || (w & 0x0fe0f010) == 0x0080f000)
		insn->kind = INSN_AWAY; /* ldr pc, add pc: a table of jumps */
}

static void decode_arm(const uint8_t *code, uint64_t at, struct insn *insn)
{
	uint32_t w = word_at(code), condition = w >> 28, form = w & 0x0fffffff;
	uint64_t target = (uint32_t)(at + 8 + as_signed(w, 24) * 4);

	insn->len = 4;
	if ((w & 0xfe000000) == 0xfa000000) /* blx to Thumb */
		go(insn, INSN_CALL, (uint32_t)(target + (w >> 23 & 2)));
	if (condition == 15)
		return;
	arm_stack(w, insn);
	if ((w & 0x0f000000) == 0x0b000000)
		go(insn, INSN_CALL, target);
	else if ((w & 0x0f000000) == 0x0a000000)
		go(insn, condition == 14 ? INSN_JUMP : INSN_BRANCH, target);
	else if ((w & 0x0ffffff0) == 0x012fff30)
		insn->kind = INSN_CALL;
	else if (form == 0x012fff1e || form == 0x01a0f00e) /* bx lr, mov pc, lr */
		insn->kind = INSN_RETURN;
	else if ((w & 0x0ffffff0) == 0x012fff10 && condition == 14)
		insn->kind = INSN_AWAY;
}

/* ---- Thumb ---- */

static void thumb_short_moves(uint32_t h, struct insn *insn)
{
	uint32_t list = (h & 0xff) | (h & 0x100) << 6; /* lr or pc */

	if ((h & 0xfe00) == 0xb400)
		insn->moves = -4 * __builtin_popcount(list);
	else if ((h & 0xfe00) == 0xbc00)
		pops(insn, list);
	else if ((h & 0xff00) == 0xb000)
		insn->moves = (int32_t)(h & 0x7f) * (h & 0x80 ? -4 : 4);
	else
		insn->replaces = (h & 0xff87) == 0x4685 || (h & 0xff87) == 0x4485;
}

static void thumb_short(uint64_t at, uint32_t h, struct insn *insn)
{
	insn->len = 2;
	thumb_short_moves(h, insn);
	insn->sets_fp = h == 0x466f || h == 0x46eb || (h & 0xff00) == 0xaf00; /* mov, add */
	insn->loads_fp = insn->list >> THUMB_FP & 1;
	if ((h & 0xff80) == 0x4780)
		insn->kind = INSN_CALL;
	else if ((h & 0xfffb) == 0x4770 || h == 0x46f7) /* bx lr, bxns lr, mov pc, lr */
		insn->kind = INSN_RETURN;
	else if ((h & 0xff80) == 0x4700 || (h & 0xfd87) == 0x4487 || (h & 0xff00) == 0xde00)
		insn->kind = INSN_AWAY; /* bx, add pc, mov pc, udf */
	else if ((h & 0xff00) == 0xb500)
		insn->kind = INSN_SAVES;
	else if ((h & 0xff00) == 0xbd00)
		insn->kind = INSN_LOADS;
	else if ((h & 0xf500) == 0xb100) /* cbz, cbnz */
		go(insn, INSN_BRANCH, at + 4 + ((h >> 9 & 1) << 6 | (h >> 3 & 31) << 1));
	else if ((h & 0xf800) == 0xe000)
		go(insn, INSN_JUMP, (uint32_t)(at + 4 + as_signed(h, 11) * 2));
	else if ((h & 0xf000) == 0xd000 && (h >> 8 & 15) < 14)
		go(insn, INSN_BRANCH, (uint32_t)(at + 4 + as_signed(h, 8) * 2));
}

/* The distance of bl, blx and b.w. */
static uint64_t thumb_far(uint32_t a, uint32_t b)
{
	uint64_t sign = a >> 10 & 1;

	return as_signed(sign << 24 | ((b >> 13 & 1) == sign) << 23 |
				 ((b >> 11 & 1) == sign) << 22 | (a & 0x3ff) << 12 |
				 (b & 0x7ff) << 1,
			 25);
}

static uint64_t thumb_near(uint32_t a, uint32_t b)
{
	return as_signed((a >> 10 & 1) << 20 | (b >> 11 & 1) << 19 | (b >> 13 & 1) << 18 |
				 (a & 63) << 12 | (b & 0x7ff) << 1,
			 21);
}

static void thumb_branch(uint64_t at, uint32_t a, uint32_t b, struct insn *insn)
{
	uint64_t far = (uint32_t)(at + 4 + thumb_far(a, b));

	if ((b & 0xd000) == 0xd000)
		go(insn, INSN_CALL, far);
	else if ((b & 0xd001) == 0xc000) /* blx to Arm */
		go(insn, INSN_CALL, far & ~UINT64_C(3));
	else if ((b & 0xd000) == 0x9000)
		go(insn, INSN_JUMP, far);
	else if ((b & 0xd000) == 0x8000 && (a >> 6 & 15) < 14)
		go(insn, INSN_BRANCH, (uint32_t)(at + 4 + thumb_near(a, b)));
}

/* The immediate operand of add and sub. */
static int32_t thumb_number(uint32_t a, uint32_t b)
{
	uint32_t number = (a >> 10 & 1) << 11 | (b >> 12 & 7) << 8 | (b & 0xff);

	if (a >> 9 & 1 || !(number >> 8)) /* addw, subw; or 8 bits */
		return (int32_t)number;
	return number >> 10 ? rotated(0x80 | (number & 0x7f), number >> 7) : 0;
}

static void thumb_long_moves(uint32_t a, uint32_t b, struct insn *insn)
{
	int32_t number = thumb_number(a, b);

	if (a == 0xe92d)
		insn->moves = -4 * __builtin_popcount(b);
	else if (a == 0xe8bd)
		pops(insn, b);
	else if (a == 0xf84d && (b & 0xf00) == 0xd00)
		insn->moves = -(int32_t)(b & 0xff);
	else if (a == 0xf85d && (b & 0xf00) == 0xb00)
		insn->moves = (int32_t)(b & 0xff);
	else if (a == 0xf8dd)
		insn->slot = (int32_t)(b & 0xfff);
	else if (((a & 0xfbff) == 0xf10d || (a & 0xfbff) == 0xf20d) && (b & 0x8f00) == 0x0d00)
		insn->moves = number; /* add, addw */
	else if (((a & 0xfbff) == 0xf1ad || (a & 0xfbff) == 0xf2ad) && (b & 0x8f00) == 0x0d00)
		insn->moves = -number;
	else if ((a & 0xffbf) == 0xecbd)
		insn->moves = (int32_t)(b & 0xff) * 4; /* vpop */
	else if ((a & 0xffbf) == 0xed2d)
		insn->moves = (int32_t)(b & 0xff) * -4;
}

static void thumb_long(uint64_t at, uint32_t a, uint32_t b, struct insn *insn)
{
	uint32_t rt = b >> 12, rt2 = b >> 8 & 15;

	insn->len = 4;
	thumb_long_moves(a, b, insn);
	insn->sets_fp = ((a & 0xfbff) == 0xf10d || (a & 0xfbff) == 0xf20d) && !(b & 0x8000) &&
			(rt2 == THUMB_FP || rt2 == ARM_FP);
	insn->loads_fp = insn->list >> THUMB_FP & 1 || insn->list >> ARM_FP & 1 ||
			 ((a == 0xf85d || a == 0xf8dd) && (rt == THUMB_FP || rt == ARM_FP));
	if ((a & 0xf800) == 0xf000 && b >> 15)
		thumb_branch(at, a, b, insn);
	else if (((a & 0xffd0) == 0xe880 || (a & 0xffd0) == 0xe900) && b >> ARM_LR & 1)
		insn->kind = INSN_SAVES;     /* stm, stmdb {... lr} */
	else if (a == 0xe8bd && b >> ARM_LR) /* pop.w {... lr or pc} */
		insn->kind = INSN_LOADS;
	else if ((a == 0xf84d || a == 0xf8cd) && rt == ARM_LR) /* str.w lr, [sp */
		insn->kind = INSN_SAVES;
	else if ((a == 0xf85d || a == 0xf8dd) && rt >= ARM_LR) /* ldr.w lr or pc, [sp */
		insn->kind = INSN_LOADS;
	else if ((a & 0xfe5f) == 0xe84d && (rt == ARM_LR || rt2 == ARM_LR)) /* strd, [sp */
		insn->kind = INSN_SAVES;
	else if (((a & 0xfff0) == 0xe8d0 && (b & 0xffe0) == 0xf000) ||
		 ((a & 0xff70) == 0xf850 && rt == ARM_PC))
		insn->kind = INSN_AWAY; /* tbb, tbh, ldr.w pc */
}

static bool thumb_is_long(uint32_t h)
{
	return h >> 11 >= 0x1d;
}

static bool decode_thumb(const uint8_t *code, size_t len, uint64_t at, struct insn *insn)
{
	uint32_t h = half_at(code);

	if (!thumb_is_long(h)) {
		thumb_short(at, h, insn);
		return true;
	}
	if (len < 4)
		return false;
	thumb_long(at, h, half_at(code + 2), insn);
	return true;
}

/* ---- RISC-V ---- */

#define RV_RA 1
#define RV_SP 2
#define RV_T0 5
#define RV_FP 8

/* Code calls functions that save or restore registers for their caller by t0. */
static enum insn_kind rv_jump_kind(unsigned rd)
{
	return rd == RV_RA ? INSN_CALL : rd == RV_T0 ? INSN_SAVES : INSN_JUMP;
}

static void rv_word(uint64_t at, uint32_t w, struct insn *insn)
{
	unsigned rd = w >> 7 & 31, form = w >> 12 & 7, rs1 = w >> 15 & 31, rs2 = w >> 20 & 31;

	insn->len = 4;
	switch (w & 0x7f) {
	case 0x6f:
		go(insn, rv_jump_kind(rd),
		   at + as_signed((w >> 31) << 20 | (w >> 12 & 0xff) << 12 | (w >> 20 & 1) << 11 |
					  (w >> 21 & 0x3ff) << 1,
				  21));
		break;
	case 0x67:
		insn->kind = rd ? rv_jump_kind(rd) : rs1 == RV_RA ? INSN_RETURN : INSN_AWAY;
		break;
	case 0x63:
		go(insn, INSN_BRANCH,
		   at + as_signed((w >> 31) << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 63) << 5 |
					  (w >> 8 & 15) << 1,
				  13));
		break;
	case 0x23:
		if (rs1 == RV_SP && rs2 == RV_RA && (form == 2 || form == 3))
			insn->kind = INSN_SAVES;
		break;
	case 0x03:
		if (rs1 == RV_SP && rd == RV_RA && (form == 2 || form == 3))
			insn->kind = INSN_LOADS;
		insn->loads_fp = rs1 == RV_SP && rd == RV_FP && (form == 2 || form == 3);
		break;
	case 0x13: insn->sets_fp = rs1 == RV_SP && rd == RV_FP && !form; break;
	}
}

static uint64_t rv_short_jump(uint32_t h)
{
	return as_signed((h >> 12 & 1) << 11 | (h >> 11 & 1) << 4 | (h >> 9 & 3) << 8 |
				 (h >> 8 & 1) << 10 | (h >> 7 & 1) << 6 | (h >> 6 & 1) << 7 |
				 (h >> 3 & 7) << 1 | (h >> 2 & 1) << 5,
			 12);
}

static uint64_t rv_short_branch(uint32_t h)
{
	return as_signed((h >> 12 & 1) << 8 | (h >> 10 & 3) << 3 | (h >> 5 & 3) << 6 |
				 (h >> 3 & 3) << 1 | (h >> 2 & 1) << 5,
			 9);
}

/* c.jr and c.jalr */
static void rv_short_register(uint32_t h, struct insn *insn)
{
	unsigned rd = h >> 7 & 31, rs2 = h >> 2 & 31;

	insn->sets_fp = rd == RV_FP && rs2 == RV_SP && !(h >> 12 & 1); /* c.mv */
	if (!rd || rs2)
		return;
	insn->kind = h >> 12 & 1 ? INSN_CALL : rd == RV_RA ? INSN_RETURN : INSN_AWAY;
}

static void rv_short(uint64_t at, uint32_t h, bool is_64bit, struct insn *insn)
{
	unsigned rd = h >> 7 & 31, rs2 = h >> 2 & 31;

	insn->len = 2;
	switch ((h & 3) << 3 | h >> 13) {
	case 0: insn->sets_fp = h >> 5 && !(h >> 2 & 7); break; /* c.addi4spn s0 */
	case 1 << 3 | 1: /* c.jal; on 64 bits it is c.addiw */
		if (!is_64bit)
			go(insn, INSN_CALL, at + rv_short_jump(h));
		break;
	case 1 << 3 | 5: go(insn, INSN_JUMP, at + rv_short_jump(h)); break;
	case 1 << 3 | 6:
	case 1 << 3 | 7: go(insn, INSN_BRANCH, at + rv_short_branch(h)); break;
	case 2 << 3 | 2: /* c.lwsp */
	case 2 << 3 | 3: /* c.ldsp; on 32 bits it is c.flwsp */
		if (rd == RV_RA && (is_64bit || h >> 13 == 2))
			insn->kind = INSN_LOADS;
		insn->loads_fp = rd == RV_FP && (is_64bit || h >> 13 == 2);
		break;
	case 2 << 3 | 4: rv_short_register(h, insn); break;
	case 2 << 3 | 6: /* c.swsp */
	case 2 << 3 | 7: /* c.sdsp; on 32 bits it is c.fswsp */
		if (rs2 == RV_RA && (is_64bit || h >> 13 == 6))
			insn->kind = INSN_SAVES;
		break;
	}
}

static bool decode_riscv(const uint8_t *code, size_t len, uint64_t at, bool is_64bit,
			 struct insn *insn)
{
	uint32_t h = half_at(code);

	if ((h & 3) != 3) {
		rv_short(at, h, is_64bit, insn);
		return true;
	}
	if (len < 4)
		return false;
	rv_word(at, word_at(code), insn);
	return true;
}

/* auipc and jr: a tail call */
void insn_join(const struct code_kind *kind, const uint8_t *before, const uint8_t *code,
	       uint64_t at, struct insn *insn)
{
	uint32_t first = word_at(before), second;

	if ((kind->machine != RISCV64 && kind->machine != RISCV32) || insn->kind != INSN_AWAY ||
	    insn->len != 4)
		return;
	second = word_at(code);
	if ((first & 0x7f) != 0x17 || (second & 0x7f) != 0x67 ||
	    (first >> 7 & 31) != (second >> 15 & 31))
		return;
	go(insn, INSN_JUMP,
	   at - 4 + as_signed(first & 0xfffff000, 32) + as_signed(second >> 20, 12));
}

/* ---- all of them ---- */

bool insn_decode(const struct code_kind *kind, const uint8_t *code, size_t len, uint64_t at,
		 struct insn *insn)
{
	*insn = (struct insn){ .kind = INSN_OTHER };
	if (len < 2)
		return false;
	switch (kind->machine) {
	case AARCH64:
	case ARM:
		if (kind->machine == ARM && kind->thumb)
			return decode_thumb(code, len, at, insn);
		if (len < 4)
			return false;
		(kind->machine == ARM ? decode_arm : decode_a64)(code, at, insn);
		return true;
	case RISCV64: return decode_riscv(code, len, at, true, insn);
	case RISCV32: return decode_riscv(code, len, at, false, insn);
	default: return false;
	}
}

/* The bytes of an x86 instruction of one byte with this ModRM byte, and perhaps a SIB byte after it. */
static size_t x86_len(uint8_t modrm, uint8_t sib)
{
	unsigned mode = modrm >> 6, has_sib = (modrm & 7) == 4;

	if (mode == 3)
		return 2;
	if (mode == 0 && ((modrm & 7) == 5 || (has_sib && (sib & 7) == 5)))
		return 6 + has_sib;
	return (mode == 0 ? 2 : mode == 1 ? 3 : 6) + has_sib;
}

/* call rel32, or through a register or memory */
static bool x86_call_ends(const uint8_t *code, size_t len)
{
	if (len >= 5 && code[len - 5] == 0xe8)
		return true;
	for (size_t back = 2; back <= CALL_BYTES && back <= len; back++) {
		const uint8_t *at = code + len - back;

		if (at[0] == 0xff && (at[1] & 0x38) == 0x10 &&
		    x86_len(at[1], back > 2 ? at[2] : 0) == back)
			return true;
	}
	return false;
}

bool insn_call_ends(const struct code_kind *kind, const uint8_t *code, size_t len)
{
	struct insn insn;

	if (kind->machine == X86_64 || kind->machine == I386)
		return x86_call_ends(code, len);
	for (size_t back = 4; back >= 2 && back <= 4; back -= 2) {
		if (back <= len && insn_decode(kind, code + len - back, back, 0, &insn) &&
		    insn.len == back && insn.kind == INSN_CALL)
			return true;
	}
	return false;
}
