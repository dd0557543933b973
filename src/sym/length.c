// SPDX-License-Identifier: GPL-2.0-or-later
/* Lengths of instructions: enough of each encoding to find where the next instruction begins. */
#include <elf.h>

#include "sym/internal.h"

/* ---- x86 ---- */

enum {		/* what follows an opcode */
       M = 1,	/* ModRM, and what it asks for */
       B = 2,	/* a byte */
       Z = 4,	/* 4 bytes, or 2 with an operand size prefix */
       W = 8,	/* 2 bytes */
       V = 16,	/* like Z, but 8 bytes with REX.W */
       A = 32,	/* an address */
       P = 64,	/* a prefix */
       T = 128, /* a byte, or like Z, if the ModRM byte says "test" */
       FAR = W | Z,
};

static const uint8_t one_byte[256] = {
	[0x00 ... 0x03] = M,
	[0x04] = B,
	[0x05] = Z,
	[0x08 ... 0x0b] = M,
	[0x0c] = B,
	[0x0d] = Z,
	[0x10 ... 0x13] = M,
	[0x14] = B,
	[0x15] = Z,
	[0x18 ... 0x1b] = M,
	[0x1c] = B,
	[0x1d] = Z,
	[0x20 ... 0x23] = M,
	[0x24] = B,
	[0x25] = Z,
	[0x26] = P,
	[0x28 ... 0x2b] = M,
	[0x2c] = B,
	[0x2d] = Z,
	[0x2e] = P,
	[0x30 ... 0x33] = M,
	[0x34] = B,
	[0x35] = Z,
	[0x36] = P,
	[0x38 ... 0x3b] = M,
	[0x3c] = B,
	[0x3d] = Z,
	[0x3e] = P,
	[0x62 ... 0x63] = M,
	[0x64 ... 0x67] = P,
	[0x68] = Z,
	[0x69] = M | Z,
	[0x6a] = B,
	[0x6b] = M | B,
	[0x70 ... 0x7f] = B,
	[0x80] = M | B,
	[0x81] = M | Z,
	[0x82 ... 0x83] = M | B,
	[0x84 ... 0x8f] = M,
	[0x9a] = FAR,
	[0xa0 ... 0xa3] = A,
	[0xa8] = B,
	[0xa9] = Z,
	[0xb0 ... 0xb7] = B,
	[0xb8 ... 0xbf] = V,
	[0xc0 ... 0xc1] = M | B,
	[0xc2] = W,
	[0xc4 ... 0xc5] = M,
	[0xc6] = M | B,
	[0xc7] = M | Z,
	[0xc8] = W | B,
	[0xca] = W,
	[0xcd] = B,
	[0xd0 ... 0xd3] = M,
	[0xd4 ... 0xd5] = B,
	[0xd8 ... 0xdf] = M,
	[0xe0 ... 0xe7] = B,
	[0xe8 ... 0xe9] = Z,
	[0xea] = FAR,
	[0xeb] = B,
	[0xf0] = P,
	[0xf2 ... 0xf3] = P,
	[0xf6 ... 0xf7] = M | T,
	[0xfe ... 0xff] = M,
};

/* After 0f. */
static const uint8_t two_bytes[256] = {
	[0x00 ... 0x03] = M, [0x0d] = M,	  [0x0f] = M | B,
	[0x10 ... 0x2f] = M, [0x40 ... 0x6f] = M, [0x70 ... 0x73] = M | B,
	[0x74 ... 0x76] = M, [0x78 ... 0x7f] = M, [0x80 ... 0x8f] = Z,
	[0x90 ... 0x9f] = M, [0xa3] = M,	  [0xa4] = M | B,
	[0xa5 ... 0xa7] = M, [0xab] = M,	  [0xac] = M | B,
	[0xad ... 0xb9] = M, [0xba] = M | B,	  [0xbb ... 0xc1] = M,
	[0xc2] = M | B,	     [0xc3] = M,	  [0xc4 ... 0xc6] = M | B,
	[0xc7] = M,	     [0xd0 ... 0xff] = M,
};

struct x86 {
	const uint8_t *at, *end; /* what is left of the code */
	bool wide;		 /* 64-bit code */
	bool rex_w, short_operand, short_address;
	bool failed;
};

static unsigned x86_byte(struct x86 *x)
{
	if (x->at == x->end) {
		x->failed = true;
		return 0;
	}
	return *x->at++;
}

static void x86_skip(struct x86 *x, size_t len)
{
	if ((size_t)(x->end - x->at) < len)
		x->failed = true;
	else
		x->at += len;
}

static void x86_short_memory(struct x86 *x, unsigned mod, unsigned rm)
{
	if (mod == 1)
		x86_skip(x, 1);
	else if (mod == 2 || rm == 6)
		x86_skip(x, 2);
}

static void x86_memory(struct x86 *x, unsigned modrm)
{
	unsigned mod = modrm >> 6, base = modrm & 7;

	if (mod == 3)
		return;
	if (!x->wide && x->short_address) {
		x86_short_memory(x, mod, base);
		return;
	}
	if (base == 4)
		base = x86_byte(x) & 7;
	if (mod == 1)
		x86_skip(x, 1);
	else if (mod == 2 || base == 5)
		x86_skip(x, 4);
}

static void x86_address(struct x86 *x)
{
	unsigned len = x->wide ? 8 : 4;

	x86_skip(x, x->short_address ? len / 2 : len);
}

static void x86_operands(struct x86 *x, unsigned flags, unsigned opcode)
{
	unsigned len = x->short_operand ? 2 : 4;

	if (flags & M) {
		unsigned modrm = x86_byte(x);

		x86_memory(x, modrm);
		if (flags & T && (modrm >> 3 & 7) < 2)
			flags |= opcode & 1 ? Z : B;
	}
	if (flags & A)
		x86_address(x);
	if (flags & V)
		x86_skip(x, x->rex_w ? 8 : len);
	if (flags & Z)
		x86_skip(x, len);
	if (flags & W)
		x86_skip(x, 2);
	if (flags & B)
		x86_skip(x, 1);
}

/* An opcode of the maps that VEX and EVEX number. */
static void x86_map(struct x86 *x, unsigned map)
{
	unsigned opcode = x86_byte(x), flags = M;

	if (map == 1)
		flags = opcode == 0x77 ? 0 : M | (two_bytes[opcode] & B);
	else if (map == 3 || map == 8)
		flags = M | B;
	else if (map == 10)
		flags = M | Z;
	x->short_operand = false;
	x86_operands(x, flags, opcode);
}

/* AVX and the like: a prefix of several bytes that says which map the opcode is of. */
static bool x86_vex(struct x86 *x, unsigned opcode)
{
	unsigned next = x->at < x->end ? *x->at : 0;

	if (opcode == 0x8f ? (next & 0x1f) < 8 : !x->wide && next < 0xc0)
		return false;
	switch (opcode) {
	case 0x62:
		x86_skip(x, 3);
		x86_map(x, next & 7);
		return true;
	case 0x8f:
	case 0xc4:
		x86_skip(x, 2);
		x86_map(x, next & 0x1f);
		return true;
	case 0xc5:
		x86_skip(x, 1);
		x86_map(x, 1);
		return true;
	default: return false;
	}
}

static void x86_two_bytes(struct x86 *x)
{
	unsigned opcode = x86_byte(x);

	if (opcode == 0x38 || opcode == 0x3a) {
		x86_byte(x);
		x86_operands(x, opcode == 0x3a ? M | B : M, opcode);
	} else if (opcode >= 0x20 && opcode <= 0x23) {
		x86_byte(x); /* control and debug registers: never in memory */
	} else {
		/* In 64-bit code, jumps have 4 bytes whatever the prefix says. */
		x->short_operand &= !(x->wide && opcode >= 0x80 && opcode <= 0x8f);
		x86_operands(x, two_bytes[opcode], opcode);
	}
}

static unsigned x86_prefixes(struct x86 *x)
{
	unsigned opcode = x86_byte(x);

	while (!x->failed && one_byte[opcode] & P) {
		x->short_operand |= opcode == 0x66;
		x->short_address |= opcode == 0x67;
		opcode = x86_byte(x);
	}
	if (x->wide && opcode >> 4 == 4) {
		x->rex_w = opcode & 8;
		x->short_operand &= !x->rex_w;
		opcode = x86_byte(x);
	}
	return opcode;
}

static size_t x86_length(const uint8_t *code, size_t len, bool wide)
{
	struct x86 x = { .at = code, .end = code + len, .wide = wide };
	unsigned opcode = x86_prefixes(&x);

	if (opcode == 0x0f) {
		x86_two_bytes(&x);
	} else if (!x86_vex(&x, opcode)) {
		x.short_operand &= !(wide && opcode >= 0xe8 && opcode <= 0xe9);
		x86_operands(&x, one_byte[opcode], opcode);
	}
	return x.failed ? len : (size_t)(x.at - code);
}

/* ---- all ---- */

size_t code_length(uint16_t machine, bool thumb, const uint8_t *code, size_t len)
{
	size_t length = 4;

	switch (machine) {
	case EM_X86_64:
	case EM_386: return x86_length(code, len, machine == EM_X86_64);
	case EM_RISCV: length = (code[0] & 3) == 3 ? 4 : 2; break;
	case EM_ARM: length = len > 1 && thumb && code[1] >> 3 < 0x1d ? 2 : 4; break;
	case EM_AARCH64: break;
	default: return 0;
	}
	return length < len ? length : len;
}
