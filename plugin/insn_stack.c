// SPDX-License-Identifier: GPL-2.0-or-later
/* What an instruction of x86 or RISC-V does to the stack pointer. */
#include "insn_parts.h"

#define RSP 4
#define RBP 5

static void moves(struct insn *insn, uint64_t bytes)
{
	insn->bytes = (int64_t)bytes;
}

static void pops(const struct x86 *x, struct insn *insn, int n)
{
	if (x->small)
		insn->bytes = 2 * n;
	else
		insn->words = n;
}

/* The bytes after the opcode, from `offset` to the end of the instruction, as a signed number. */
static uint64_t x86_immediate(const struct x86 *x, size_t offset)
{
	size_t size = (size_t)(x->end - x->at);

	size = size > offset ? size - offset : 0;
	return size ? insn_sign(insn_little(x->at + offset, size), (unsigned)size * 8) : 0;
}

struct modrm {
	unsigned mod, reg, rm; /* reg and rm with the bits of REX */
	unsigned op;	       /* reg without them */
};

static struct modrm get_modrm(const struct x86 *x, size_t offset)
{
	uint8_t byte = x->at + offset < x->end ? x->at[offset] : 0;

	return (struct modrm){
		.mod = byte >> 6,
		.reg = (byte >> 3 & 7) | (x->rex & 4) << 1,
		.rm = (byte & 7) | (x->rex & 1) << 3,
		.op = byte >> 3 & 7,
	};
}

static bool writes_rm(const struct modrm *m)
{
	return m->mod == 3 && m->rm == RSP;
}

/* lea to sp: from sp itself it moves it, and from the frame pointer it restores it. */
static void lea_to_sp(const struct x86 *x, const struct modrm *m, struct insn *insn)
{
	uint8_t sib = x->at + 2 < x->end ? x->at[2] : 0;
	bool has_sib = (m->rm & 7) == 4;
	unsigned base = has_sib ? (sib & 7) | (x->rex & 1) << 3 : m->rm;
	bool has_index = has_sib && ((sib >> 3 & 7) != 4 || x->rex & 2);
	bool is_fixed = !m->mod && (base & 7) == RBP; /* an address in the code */

	if (is_fixed || (base != RBP && base != RSP))
		insn->stack = INSN_STACK_REPLACED;
	else if (base == RBP || has_index || x->other_address || x->small)
		insn->stack = INSN_STACK_UNKNOWN;
	else if (m->mod)
		moves(insn, x86_immediate(x, 3));
}

/* add, or, adc, sbb, and, sub, xor of sp and an immediate. */
static void group_1(const struct x86 *x, const struct modrm *m, struct insn *insn)
{
	uint64_t value = x86_immediate(x, 2);

	if (!writes_rm(m) || m->op == 7)
		return;
	if ((m->op == 0 || m->op == 5) && !x->small)
		moves(insn, m->op ? -value : value);
	else
		insn->stack = INSN_STACK_UNKNOWN;
}

static void mov_to_sp(const struct modrm *m, unsigned from, struct insn *insn)
{
	insn->stack = m->mod == 3 && from == RBP ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
}

static void group_ff(const struct x86 *x, const struct modrm *m, struct insn *insn)
{
	switch (m->op) {
	case 0:
	case 1:
		if (writes_rm(m))
			moves(insn, m->op ? -1ull : 1);
		break;
	case 2:
	case 6: pops(x, insn, -1); break;
	case 3: insn->stack = INSN_STACK_UNKNOWN; break;
	default: break;
	}
}

/* Instructions with a modrm byte. */
static void x86_modrm(const struct x86 *x, struct insn *insn)
{
	struct modrm m = get_modrm(x, 1);

	switch (*x->at) {
	case 0x81:
	case 0x83: group_1(x, &m, insn); break;
	case 0x87: /* xchg */
		if (m.reg == RSP || writes_rm(&m))
			insn->stack = INSN_STACK_REPLACED;
		break;
	case 0x89:
		if (writes_rm(&m))
			mov_to_sp(&m, m.reg, insn);
		break;
	case 0x8b:
		if (m.reg == RSP)
			mov_to_sp(&m, m.rm, insn);
		break;
	case 0x8d:
		if (m.reg == RSP)
			lea_to_sp(x, &m, insn);
		break;
	case 0x8f: /* pop; with another op it is no pop */
		if (writes_rm(&m))
			insn->stack = INSN_STACK_REPLACED;
		else if (!m.op)
			pops(x, insn, 1);
		break;
	case 0xc7:
		if (writes_rm(&m))
			insn->stack = INSN_STACK_REPLACED;
		break;
	case 0xc1: /* shifts */
	case 0xd1:
	case 0xd3:
		if (writes_rm(&m))
			insn->stack = INSN_STACK_UNKNOWN;
		break;
	case 0xf7: /* not, neg */
		if (writes_rm(&m) && (m.op == 2 || m.op == 3))
			insn->stack = INSN_STACK_UNKNOWN;
		break;
	case 0xff: group_ff(x, &m, insn); break;
	default: /* add, or, adc, sbb, and, sub, xor of registers */
		if (*x->at < 0x38 &&
		    (((*x->at & 7) == 1 && writes_rm(&m)) || ((*x->at & 7) == 3 && m.reg == RSP)))
			insn->stack = INSN_STACK_UNKNOWN;
	}
}

static void x86_0f(const struct x86 *x, struct insn *insn)
{
	uint8_t opcode = x->at + 1 < x->end ? x->at[1] : 0;
	struct modrm m = get_modrm(x, 2);

	switch (opcode) {
	case 0x01:
		if (insn->flow == WIRE_FLOW_LEAVE) /* vmrun */
			insn->stack = INSN_STACK_REPLACED;
		break;
	case 0xa0: /* push and pop of fs and gs */
	case 0xa8: pops(x, insn, -1); break;
	case 0xa1:
	case 0xa9: pops(x, insn, 1); break;
	case 0xb2: /* lss */
		if (m.reg == RSP)
			insn->stack = INSN_STACK_REPLACED;
		break;
	case 0x0b: /* undefined; sysenter, sysexit */
	case 0xb9:
	case 0xff:
	case 0x34:
	case 0x35: insn->stack = INSN_STACK_UNKNOWN; break;
	default: /* cmov */
		if (opcode >> 4 == 4 && m.reg == RSP)
			insn->stack = INSN_STACK_UNKNOWN;
	}
}

/* The whole register is in the opcode. */
static void x86_register(const struct x86 *x, struct insn *insn)
{
	bool is_sp = (*x->at & 7) == RSP && !(x->rex & 1);

	switch (*x->at & 0xf8) {
	case 0x40: moves(insn, is_sp ? 1 : 0); break; /* inc, dec */
	case 0x48: moves(insn, is_sp ? -1ull : 0); break;
	case 0x50: pops(x, insn, -1); break;
	case 0x58:
		if (is_sp)
			insn->stack = INSN_STACK_REPLACED;
		else
			pops(x, insn, 1);
		break;
	default: /* xchg with ax, mov */
		if (is_sp)
			insn->stack = INSN_STACK_REPLACED;
	}
}

static void x86_enter(const struct x86 *x, struct insn *insn)
{
	size_t size = (size_t)(x->end - x->at);

	if (size != 4 || x->at[3] || x->small) {
		insn->stack = INSN_STACK_UNKNOWN;
		return;
	}
	insn->words = -1;
	moves(insn, -insn_little(x->at + 1, 2));
}

void insn_stack_x86(const struct x86 *x, struct insn *insn)
{
	switch (*x->at) {
	case 0x06: /* segments */
	case 0x0e:
	case 0x16:
	case 0x1e:
	case 0x68: /* immediates */
	case 0x6a:
	case 0x9c: /* flags */
	case 0xe8: pops(x, insn, -1); break;
	case 0x07:
	case 0x17:
	case 0x1f:
	case 0x9d:
	case 0xc3: pops(x, insn, 1); break;
	case 0xc2:
		insn->words = 1;
		moves(insn, x->end - x->at > 2 ? insn_little(x->at + 1, 2) : 0);
		break;
	case 0x60: pops(x, insn, -8); break;
	case 0x61: pops(x, insn, 8); break;
	case 0xc8: x86_enter(x, insn); break;
	case 0x9a: /* far; leave; interrupts */
	case 0xc9:
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf: insn->stack = INSN_STACK_UNKNOWN; break;
	case 0x0f: x86_0f(x, insn); break;
	default:
		if ((*x->at >= 0x40 && *x->at < 0x60) || (*x->at & 0xf8) == 0x90 ||
		    (*x->at & 0xf8) == 0xb8)
			x86_register(x, insn);
		else
			x86_modrm(x, insn);
	}
}

/* RISC-V */

static void riscv_immediate(uint32_t w, struct insn *insn)
{
	unsigned rs1 = w >> 15 & 31;

	if (w >> 12 & 7 || rs1 == 8)
		insn->stack = INSN_STACK_UNKNOWN;
	else if (rs1 == 2)
		moves(insn, insn_sign(w >> 20, 12));
	else
		insn->stack = INSN_STACK_REPLACED;
}

/* Linux computes the address of a cpu's interrupt stack by an addition. */
static void riscv_operation(uint32_t w, struct insn *insn)
{
	unsigned rs1 = w >> 15 & 31, rs2 = w >> 20 & 31;
	bool own = rs1 == 2 || rs2 == 2 || rs1 == 8 || rs2 == 8;

	insn->stack = own ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
}

void insn_stack_riscv(uint32_t w, struct insn *insn)
{
	if ((w >> 7 & 31) != 2)
		return;
	switch (w & 0x7f) {
	case 0x13: riscv_immediate(w, insn); break;
	case 0x03: insn->stack = INSN_STACK_REPLACED; break; /* a load */
	case 0x17:					     /* auipc, lui */
	case 0x37: insn->stack = INSN_STACK_REPLACED_HIGH; break;
	case 0x73: /* csrrw... */
		if (w >> 12 & 3)
			insn->stack = INSN_STACK_REPLACED;
		break;
	case 0x33: riscv_operation(w, insn); break;
	case 0x1b: /* 32-bit operations; amo */
	case 0x2f:
	case 0x3b: insn->stack = INSN_STACK_UNKNOWN; break;
	default: break; /* branches and stores have no rd */
	}
}

/* cm.push, cm.pop, cm.popret. In a cpu without Zcmp, these are floating-point stores. */
static bool may_be_zcmp(uint32_t h)
{
	return (h & 0xf903) == 0xb802 && !(h & 0x100) && (h >> 4 & 15) >= 4;
}

void insn_stack_riscv16(uint32_t h, struct insn *insn)
{
	unsigned rs2 = h >> 2 & 31;

	if (may_be_zcmp(h))
		insn->stack = INSN_STACK_UNKNOWN;
	if ((h >> 7 & 31) != 2)
		return;
	switch ((h & 3) << 3 | h >> 13) {
	case 1 << 3 | 0: moves(insn, insn_sign((h >> 12 & 1) << 5 | rs2, 6)); break; /* c.addi */
	case 1 << 3 | 3: /* c.addi16sp */
		moves(insn, insn_sign((h >> 12 & 1) << 9 | (h >> 6 & 1) << 4 | (h >> 5 & 1) << 6 |
					      (h >> 3 & 3) << 7 | (h >> 2 & 1) << 5,
				      10));
		break;
	case 1 << 3 | 2: /* c.li; c.lwsp, c.ldsp */
	case 2 << 3 | 2:
	case 2 << 3 | 3: insn->stack = INSN_STACK_REPLACED; break;
	case 2 << 3 | 0: insn->stack = INSN_STACK_UNKNOWN; break; /* c.slli */
	case 2 << 3 | 4:					  /* c.mv, c.add */
		if (rs2 && h & 0x1000)
			insn->stack = INSN_STACK_UNKNOWN;
		else if (rs2)
			insn->stack = rs2 == 8 ? INSN_STACK_UNKNOWN : INSN_STACK_REPLACED;
		break;
	default: break;
	}
}
