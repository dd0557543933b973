// SPDX-License-Identifier: GPL-2.0-or-later
#include "insn.h"

#include <string.h>

#include "insn_parts.h"

enum insn_set insn_set_of(const char *arch)
{
	static const struct {
		const char *arch;
		enum insn_set set;
	} sets[] = {
		{ "x86_64", INSN_X86_64 }, { "i386", INSN_I386 },	{ "aarch64", INSN_AARCH64 },
		{ "arm", INSN_ARM },	   { "riscv64", INSN_RISCV64 }, { "riscv32", INSN_RISCV32 },
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		if (!strcmp(arch, sets[i].arch))
			return sets[i].set;
	}
	return INSN_OTHER;
}

static void go(struct insn *insn, enum wire_flow flow, uint64_t target)
{
	insn->flow = flow;
	insn->target = target;
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3: return true;
	default: return false;
	}
}

static void skip_prefixes(struct x86 *x, bool wide)
{
	for (; x->at + 1 < x->end && is_prefix(*x->at); x->at++) {
		x->rep |= *x->at == 0xf2 || *x->at == 0xf3;
		x->small |= *x->at == 0x66;
		x->other_address |= *x->at == 0x67;
	}
	if (wide && x->at + 1 < x->end && (*x->at & 0xf0) == 0x40)
		x->rex = *x->at++;
	x->small &= !(x->rex & 8);
}

/* The target of a relative branch. The rest of the instruction is its immediate. */
static uint64_t x86_target(const struct x86 *x, size_t opcode)
{
	size_t size = (size_t)(x->end - x->at) - opcode;

	if (!size || size > 4)
		return 0;
	return x->next + insn_sign(insn_little(x->at + opcode, size), (unsigned)size * 8);
}

static void x86_two_bytes(const struct x86 *x, struct insn *insn)
{
	uint8_t opcode = x->at + 1 < x->end ? x->at[1] : 0;
	uint8_t modrm = x->at + 2 < x->end ? x->at[2] : 0;

	if (opcode >= 0x80 && opcode <= 0x8f) {
		go(insn, WIRE_FLOW_COND, x86_target(x, 2));
		return;
	}
	switch (opcode) {
	case 0x01:
		if (modrm == 0xd8) { /* vmrun; if its guest leaves at once, control goes on */
			go(insn, WIRE_FLOW_LEAVE, 0);
			insn->flags |= WIRE_BLOCK_MAYBE;
		} else if (modrm == 0xd9) { /* vmmcall */
			go(insn, WIRE_FLOW_ENTER, 0);
		}
		break;
	case 0x05: /* syscall, sysenter */
	case 0x34: go(insn, WIRE_FLOW_ENTER, 0); break;
	case 0x07: /* sysret, sysexit */
	case 0x35: go(insn, WIRE_FLOW_LEAVE, 0); break;
	case 0x0b: /* ud2, ud1, ud0 */
	case 0xb9:
	case 0xff: go(insn, WIRE_FLOW_ENTER, 0); break;
	case 0x22: /* to cr3 */
		if ((modrm & 0x38) == 0x18)
			insn->flags |= WIRE_BLOCK_STATE;
		break;
	default: break;
	}
}

static void x86_ff(const struct x86 *x, struct insn *insn)
{
	switch (x->at + 1 < x->end ? x->at[1] >> 3 & 7 : 0) {
	case 2: go(insn, WIRE_FLOW_CALL_ANY, 0); break;
	case 3:
		go(insn, WIRE_FLOW_CALL_ANY, 0);
		insn->flags |= WIRE_BLOCK_STATE;
		break;
	case 4: go(insn, WIRE_FLOW_JUMP_ANY, 0); break;
	case 5:
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
		insn->flags |= WIRE_BLOCK_STATE;
		break;
	default: break;
	}
}

static bool is_string(uint8_t opcode)
{
	return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
	       (opcode >= 0xaa && opcode <= 0xaf);
}

static void x86_one_byte(const struct x86 *x, struct insn *insn)
{
	uint8_t opcode = *x->at;

	if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3)) {
		go(insn, WIRE_FLOW_COND, x86_target(x, 1));
		return;
	}
	if (x->rep && is_string(opcode)) { /* QEMU runs each iteration as a block */
		insn->repeats = true;
		go(insn, WIRE_FLOW_COND, x->address);
		return;
	}
	switch (opcode) {
	case 0x0f: x86_two_bytes(x, insn); break;
	case 0xe8: go(insn, WIRE_FLOW_CALL, x86_target(x, 1)); break;
	case 0xe9:
	case 0xeb: go(insn, WIRE_FLOW_JUMP, x86_target(x, 1)); break;
	case 0xc2:
	case 0xc3: go(insn, WIRE_FLOW_RETURN, 0); break;
	case 0xca: /* far */
	case 0xcb:
	case 0xea:
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
		insn->flags |= WIRE_BLOCK_STATE;
		break;
	case 0x9a:
		go(insn, WIRE_FLOW_CALL_ANY, 0);
		insn->flags |= WIRE_BLOCK_STATE;
		break;
	case 0xcc:
	case 0xcd: go(insn, WIRE_FLOW_ENTER, 0); break;
	case 0xcf: go(insn, WIRE_FLOW_LEAVE, 0); break;
	case 0xf4: go(insn, WIRE_FLOW_WAIT, 0); break;
	case 0xff: x86_ff(x, insn); break;
	default: break;
	}
}

/* Only in 64-bit mode is REX a prefix; otherwise it is a separate instruction. */
static enum insn_mode x86_mode(const struct x86 *x)
{
	if (x->rex)
		return INSN_MODE_64;
	return (*x->at & 0xf0) == 0x40 ? INSN_MODE_32 : INSN_MODE_ANY;
}

static void decode_x86(bool wide, uint64_t address, const uint8_t *bytes, size_t size,
		       struct insn *insn)
{
	struct x86 x = {
		.at = bytes, .end = bytes + size, .address = address, .next = address + size
	};

	skip_prefixes(&x, wide);
	x86_one_byte(&x, insn);
	insn_stack_x86(&x, insn);
	insn_mask_x86(&x, insn);
	insn->mode = x86_mode(&x);
}

static bool aarch64_sets_space(uint32_t w)
{
	switch (w & ~31u) {
	case 0xd5182000: /* msr ttbr0_el1, ttbr1_el1, ttbr0_el12, ttbr0_el2, vttbr_el2, hcr_el2 */
	case 0xd5182020:
	case 0xd51d2000:
	case 0xd51c2000:
	case 0xd51c2100:
	case 0xd51c1100: return true;
	default: return false;
	}
}

static void decode_aarch64(uint64_t address, uint32_t w, struct insn *insn)
{
	if (w >> 26 == 0x25)
		go(insn, WIRE_FLOW_CALL, address + insn_sign(w, 26) * 4);
	else if (w >> 26 == 0x05)
		go(insn, WIRE_FLOW_JUMP, address + insn_sign(w, 26) * 4);
	else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000)
		go(insn, WIRE_FLOW_COND, address + insn_sign(w >> 5, 19) * 4);
	else if ((w & 0x7e000000) == 0x36000000)
		go(insn, WIRE_FLOW_COND, address + insn_sign(w >> 5, 14) * 4);
	else if ((w & 0xfffffc1f) == 0xd61f0000 || (w & 0xfefff800) == 0xd61f0800)
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
	else if ((w & 0xfffffc1f) == 0xd63f0000 || (w & 0xfefff800) == 0xd63f0800)
		go(insn, WIRE_FLOW_CALL_ANY, 0);
	else if ((w & 0xfffffc1f) == 0xd65f0000 || (w & 0xfffffbff) == 0xd65f0bff)
		go(insn, WIRE_FLOW_RETURN, 0);
	else if (w == 0xd69f03e0 || (w & 0xfffffbff) == 0xd69f0bff)
		go(insn, WIRE_FLOW_LEAVE, 0);
	else if ((w & 0xff000000) == 0xd4000000 || w <= 0xffff) /* svc, hvc, smc, brk, hlt, udf */
		go(insn, WIRE_FLOW_ENTER, 0);
	else if (w == 0xd503207f) /* wfi; spin locks use wfe, which QEMU does not wait for */
		go(insn, WIRE_FLOW_WAIT, 0);
	if (aarch64_sets_space(w))
		insn->flags |= WIRE_BLOCK_STATE;
	insn_stack_aarch64(w, insn);
	insn_mask_aarch64(w, insn);
}

static void arm_to_pc(uint32_t w, struct insn *insn)
{
	bool from_sp = (w >> 16 & 15) == 13;

	if ((w & 0x0ffffff0) == 0x012fff10) /* bx */
		go(insn, (w & 15) == 14 ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((w & 0x0ffffff0) == 0x012fff30) /* blx */
		go(insn, WIRE_FLOW_CALL_ANY, 0);
	else if ((w & 0x0fffffff) == 0x01a0f00e) /* mov pc, lr */
		go(insn, WIRE_FLOW_RETURN, 0);
	else if ((w & 0x0e508000) == 0x08508000) /* ldm ^ with pc */
		go(insn, WIRE_FLOW_LEAVE, 0);
	else if ((w & 0x0e108000) == 0x08108000) /* ldm with pc */
		go(insn, from_sp ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((w & 0x0c50f000) == 0x0410f000) /* ldr pc */
		go(insn, from_sp ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((w & 0x0c10f000) == 0x0010f000 && (w & 0x01800000) != 0x01000000 &&
		 (w & 0x90) != 0x90) /* movs pc, subs pc */
		go(insn, WIRE_FLOW_LEAVE, 0);
	else if ((w & 0x0c10f000) == 0x0000f000 && (w & 0x01800000) != 0x01000000 &&
		 (w & 0x90) != 0x90)
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
}

void insn_make_conditional(struct insn *insn)
{
	if (insn->flow != WIRE_FLOW_ON && insn->flow != WIRE_FLOW_COND)
		insn->flags |= WIRE_BLOCK_MAYBE;
	if (insn->stack == INSN_STACK_MOVES && (insn->words || insn->bytes))
		insn->stack = INSN_STACK_UNKNOWN;
	if (insn->mask.mask != WIRE_MASK_SAME)
		insn->mask = (struct insn_mask){ .mask = WIRE_MASK_UNKNOWN,
						 .otherwise = WIRE_MASK_UNKNOWN };
}

static void decode_arm(uint64_t address, uint32_t w, struct insn *insn)
{
	unsigned cond = w >> 28;

	if (cond == 15) {
		if ((w & 0xfe000000) == 0xfa000000) /* blx */
			go(insn, WIRE_FLOW_CALL,
			   address + 8 + insn_sign(w, 24) * 4 + (w >> 23 & 2));
		else if ((w & 0xfe50ffff) == 0xf8100a00) /* rfe */
			go(insn, WIRE_FLOW_LEAVE, 0);
		insn_stack_arm(w, insn);
		insn_mask_arm(w, insn);
		return;
	}
	if ((w & 0x0f000000) == 0x0b000000)
		go(insn, WIRE_FLOW_CALL, address + 8 + insn_sign(w, 24) * 4);
	else if ((w & 0x0f000000) == 0x0a000000)
		go(insn, cond == 14 ? WIRE_FLOW_JUMP : WIRE_FLOW_COND,
		   address + 8 + insn_sign(w, 24) * 4);
	else if ((w & 0x0f000000) == 0x0f000000 || (w & 0x0ff000f0) == 0x01200070) /* svc, bkpt */
		go(insn, WIRE_FLOW_ENTER, 0);
	else if ((w & 0x0fffffff) == 0x0320f003) /* wfi */
		go(insn, WIRE_FLOW_WAIT, 0);
	else
		arm_to_pc(w, insn);
	if ((w & 0x0fff0fff) == 0x0e020f10) /* mcr p15, 0, rt, c2, c0, 0 */
		insn->flags |= WIRE_BLOCK_STATE;
	insn_stack_arm(w, insn);
	insn_mask_arm(w, insn);
	if (cond != 14)
		insn_make_conditional(insn);
}

static void decode_thumb16(uint64_t address, uint32_t h, struct insn *insn)
{
	uint64_t pc = address + 4;

	if ((h & 0xf000) == 0xd000 && (h >> 8 & 15) < 14)
		go(insn, WIRE_FLOW_COND, pc + insn_sign(h, 8) * 2);
	else if ((h & 0xff00) == 0xdf00 || (h & 0xff00) == 0xbe00) /* svc, bkpt */
		go(insn, WIRE_FLOW_ENTER, 0);
	else if ((h & 0xf800) == 0xe000)
		go(insn, WIRE_FLOW_JUMP, pc + insn_sign(h, 11) * 2);
	else if ((h & 0xf500) == 0xb100) /* cbz, cbnz */
		go(insn, WIRE_FLOW_COND, pc + (h >> 3 & 31) * 2 + (h >> 9 & 1) * 64);
	else if ((h & 0xff87) == 0x4700 || (h & 0xff87) == 0x4687) /* bx, mov pc */
		go(insn, (h >> 3 & 15) == 14 ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((h & 0xff87) == 0x4780)
		go(insn, WIRE_FLOW_CALL_ANY, 0);
	else if ((h & 0xff00) == 0xbd00) /* pop with pc */
		go(insn, WIRE_FLOW_RETURN, 0);
	else if (h == 0xbf30) /* wfi */
		go(insn, WIRE_FLOW_WAIT, 0);
	else if ((h & 0xff00) == 0xbf00 && h & 15) /* it */
		insn->ahead = 4 - (unsigned)__builtin_ctz(h & 15);
	if ((h & 0xff00) == 0xbe00) /* bkpt, after which semihosting goes on */
		insn->flags |= WIRE_BLOCK_MAYBE;
	insn_stack_thumb16(h, insn);
	insn_mask_thumb16(h, insn);
}

static uint64_t thumb_far(uint32_t a, uint32_t b)
{
	uint64_t s = a >> 10 & 1, i1 = !((b >> 13 & 1) ^ s), i2 = !((b >> 11 & 1) ^ s);

	return insn_sign(
		s << 24 | i1 << 23 | i2 << 22 | (uint64_t)(a & 0x3ff) << 12 | (b & 0x7ff) << 1, 25);
}

static uint64_t thumb_near(uint32_t a, uint32_t b)
{
	uint64_t s = a >> 10 & 1, j1 = b >> 13 & 1, j2 = b >> 11 & 1;

	return insn_sign(
		s << 20 | j2 << 19 | j1 << 18 | (uint64_t)(a & 0x3f) << 12 | (b & 0x7ff) << 1, 21);
}

static void thumb_branch(uint64_t pc, uint32_t a, uint32_t b, struct insn *insn)
{
	if ((b & 0xd000) == 0xd000)
		go(insn, WIRE_FLOW_CALL, pc + thumb_far(a, b));
	else if ((b & 0xd001) == 0xc000)
		go(insn, WIRE_FLOW_CALL, (pc & ~3ull) + thumb_far(a, b));
	else if ((b & 0xd000) == 0x9000)
		go(insn, WIRE_FLOW_JUMP, pc + thumb_far(a, b));
	else if ((b & 0xd000) == 0x8000 && (a >> 6 & 15) < 14)
		go(insn, WIRE_FLOW_COND, pc + thumb_near(a, b));
	else if (a == 0xf3de && (b & 0xff00) == 0x8f00) /* subs pc, lr */
		go(insn, WIRE_FLOW_LEAVE, 0);
}

static void decode_thumb32(uint64_t address, uint32_t a, uint32_t b, struct insn *insn)
{
	bool from_sp = (a & 15) == 13;

	if ((a & 0xf800) == 0xf000 && b & 0x8000)
		thumb_branch(address + 4, a, b, insn);
	else if ((a & 0xffd0) == 0xe890 && b & 0x8000) /* ldm with pc */
		go(insn, from_sp ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((a & 0xffd0) == 0xe910 && b & 0x8000)
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
	else if ((a & 0xff70) == 0xf850 && b >> 12 == 15) /* ldr pc */
		go(insn, from_sp ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
	else if ((a & 0xfff0) == 0xe8d0 && (b & 0xffe0) == 0xf000) /* tbb, tbh */
		go(insn, WIRE_FLOW_JUMP_ANY, 0);
	else if ((a & 0xffd0) == 0xe990 && b == 0xc000) /* rfe */
		go(insn, WIRE_FLOW_LEAVE, 0);
	if (a == 0xee02 && (b & 0x0fff) == 0x0f10)
		insn->flags |= WIRE_BLOCK_STATE;
	insn_stack_thumb32(a, b, insn);
	insn_mask_thumb32(a, b, insn);
}

static bool is_link(unsigned reg)
{
	return reg == 1 || reg == 5;
}

static uint64_t jal_target(uint32_t w)
{
	return insn_sign((w >> 31 & 1) << 20 | (w >> 12 & 0xff) << 12 | (w >> 20 & 1) << 11 |
				 (w >> 21 & 0x3ff) << 1,
			 21);
}

static uint64_t branch_target(uint32_t w)
{
	return insn_sign((w >> 31 & 1) << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 0x3f) << 5 |
				 (w >> 8 & 15) << 1,
			 13);
}

static bool riscv_sets_space(uint32_t csr)
{
	return csr == 0x180 || csr == 0x280 || csr == 0x680; /* satp, vsatp, hgatp */
}

/* sscratch, mscratch: the first instruction of a trap handler swaps a register with it. */
static bool riscv_may_be_trap(uint32_t csr)
{
	return csr == 0x140 || csr == 0x340;
}

static void riscv_system(uint32_t w, struct insn *insn)
{
	if (w == 0x00000073 || w == 0x00100073) /* ecall, ebreak */
		go(insn, WIRE_FLOW_ENTER, 0);
	else if (w == 0x10200073 || w == 0x30200073 || w == 0x00200073) /* sret, mret, uret */
		go(insn, WIRE_FLOW_LEAVE, 0);
	else if (w == 0x10500073)
		go(insn, WIRE_FLOW_WAIT, 0);
	else if ((w >> 12 & 3) && (riscv_sets_space(w >> 20) || riscv_may_be_trap(w >> 20)))
		insn->flags |= WIRE_BLOCK_STATE;
}

static void decode_riscv(uint64_t address, uint32_t w, struct insn *insn)
{
	unsigned rd = w >> 7 & 31, rs1 = w >> 15 & 31;

	switch (w & 0x7f) {
	case 0x6f:
		go(insn, is_link(rd) ? WIRE_FLOW_CALL : WIRE_FLOW_JUMP, address + jal_target(w));
		break;
	case 0x67:
		go(insn,
		   is_link(rd)	  ? WIRE_FLOW_CALL_ANY
		   : is_link(rs1) ? WIRE_FLOW_RETURN
				  : WIRE_FLOW_JUMP_ANY,
		   0);
		break;
	case 0x63: go(insn, WIRE_FLOW_COND, address + branch_target(w)); break;
	case 0x73: riscv_system(w, insn); break;
	default: break;
	}
	insn_stack_riscv(w, insn);
	insn_mask_riscv(w, insn);
}

static uint64_t short_jump(uint32_t h)
{
	return insn_sign((h >> 12 & 1) << 11 | (h >> 11 & 1) << 4 | (h >> 9 & 3) << 8 |
				 (h >> 8 & 1) << 10 | (h >> 7 & 1) << 6 | (h >> 6 & 1) << 7 |
				 (h >> 3 & 7) << 1 | (h >> 2 & 1) << 5,
			 12);
}

static uint64_t short_branch(uint32_t h)
{
	return insn_sign((h >> 12 & 1) << 8 | (h >> 10 & 3) << 3 | (h >> 5 & 3) << 6 |
				 (h >> 3 & 3) << 1 | (h >> 2 & 1) << 5,
			 9);
}

static void decode_riscv16(bool wide, uint64_t address, uint32_t h, struct insn *insn)
{
	unsigned reg = h >> 7 & 31, rs2 = h >> 2 & 31;

	switch ((h & 3) << 3 | h >> 13) {
	case 1 << 3 | 1: /* c.jal; c.addiw in RV64 */
		if (!wide)
			go(insn, WIRE_FLOW_CALL, address + short_jump(h));
		break;
	case 1 << 3 | 5: go(insn, WIRE_FLOW_JUMP, address + short_jump(h)); break;
	case 1 << 3 | 6:
	case 1 << 3 | 7: go(insn, WIRE_FLOW_COND, address + short_branch(h)); break;
	case 2 << 3 | 4:
		if (h == 0x9002)
			go(insn, WIRE_FLOW_ENTER, 0);
		else if (!rs2 && h & 0x1000)
			go(insn, WIRE_FLOW_CALL_ANY, 0);
		else if (!rs2)
			go(insn, is_link(reg) ? WIRE_FLOW_RETURN : WIRE_FLOW_JUMP_ANY, 0);
		break;
	default: break;
	}
	insn_stack_riscv16(h, insn);
}

void insn_decode(enum insn_set set, uint64_t address, const uint8_t *bytes, size_t size,
		 struct insn *insn)
{
	uint32_t w = (uint32_t)insn_little(bytes, size);

	*insn = (struct insn){ .flow = WIRE_FLOW_ON };
	if (!size)
		return;
	switch (set) {
	case INSN_X86_64: decode_x86(true, address, bytes, size, insn); break;
	case INSN_I386: decode_x86(false, address, bytes, size, insn); break;
	case INSN_AARCH64: decode_aarch64(address, w, insn); break;
	case INSN_ARM: decode_arm(address, w, insn); break;
	case INSN_THUMB:
		if (size == 2)
			decode_thumb16(address, w, insn);
		else
			decode_thumb32(address, w & 0xffff, w >> 16, insn);
		break;
	case INSN_RISCV64:
	case INSN_RISCV32:
		if (size == 2)
			decode_riscv16(set == INSN_RISCV64, address, w, insn);
		else
			decode_riscv(address, w, insn);
		break;
	default: break;
	}
	if (set == INSN_I386 || set == INSN_ARM || set == INSN_THUMB || set == INSN_RISCV32)
		insn->target &= 0xffffffff;
	if (insn->stack == INSN_STACK_REPLACED || insn->stack == INSN_STACK_REPLACED_HIGH)
		insn->flags |= WIRE_BLOCK_STATE;
}
