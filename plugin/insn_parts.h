/* SPDX-License-Identifier: GPL-2.0-or-later */
/* insn_parts: what the files of insn share. */
#ifndef KSCOPE_PLUGIN_INSN_PARTS_H
#define KSCOPE_PLUGIN_INSN_PARTS_H

#include "insn.h"

/* An x86 instruction after its prefixes. */
struct x86 {
	const uint8_t *at, *end;
	uint64_t address, next;
	uint8_t rex;
	bool rep;
	bool small;	    /* 16-bit operands */
	bool other_address; /* of the other size */
};

static inline uint64_t insn_little(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size && i < 8; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

/* Sign-extends the lowest `bits`. */
static inline uint64_t insn_sign(uint64_t value, unsigned bits)
{
	uint64_t top = 1ull << (bits - 1);

	value &= top | (top - 1);
	return (value ^ top) - top;
}

/* These set insn->mask. */
void insn_mask_x86(const struct x86 *x, struct insn *insn);
void insn_mask_aarch64(uint32_t w, struct insn *insn);
void insn_mask_arm(uint32_t w, struct insn *insn);
void insn_mask_thumb16(uint32_t h, struct insn *insn);
void insn_mask_thumb32(uint32_t a, uint32_t b, struct insn *insn);
void insn_mask_riscv(uint32_t w, struct insn *insn);

/* These set insn->stack, words and bytes. The flow is known. */
void insn_stack_x86(const struct x86 *x, struct insn *insn);
void insn_stack_aarch64(uint32_t w, struct insn *insn);
void insn_stack_arm(uint32_t w, struct insn *insn);
void insn_stack_thumb16(uint32_t h, struct insn *insn);
void insn_stack_thumb32(uint32_t a, uint32_t b, struct insn *insn);
void insn_stack_riscv(uint32_t w, struct insn *insn);
void insn_stack_riscv16(uint32_t h, struct insn *insn);

#endif
