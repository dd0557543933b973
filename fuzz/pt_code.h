/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pt_code: x86 code with every kind of branch, for fuzz_pt.c, and for the files that fuzz/pt_seeds.py makes.
 * The comments are 64-bit code; as 32-bit code, the bytes are other instructions here and there.
 */
#ifndef KSCOPE_FUZZ_PT_CODE_H
#define KSCOPE_FUZZ_PT_CODE_H

#include <stdint.h>

static const uint8_t pt_code[] = {
	0x90,				    /* 00: nop */
	0x74, 0x0d,			    /* 01: je 10 */
	0xeb, 0x0b,			    /* 03: jmp 10 */
	0xe8, 0x16, 0x00, 0x00, 0x00,	    /* 05: call 20 */
	0xff, 0xe0,			    /* 0a: jmp *%rax */
	0xff, 0xd0,			    /* 0c: call *%rax */
	0xc3,				    /* 0e: ret */
	0x90,				    /* 0f: nop */
	0xe8, 0x00, 0x00, 0x00, 0x00,	    /* 10: call 15, the next instruction */
	0x58,				    /* 15: pop %rax */
	0x75, 0xf8,			    /* 16: jne 10 */
	0x0f, 0x05,			    /* 18: syscall */
	0xeb, 0xfe,			    /* 1a: jmp 1a */
	0x48, 0xcf,			    /* 1c: iretq */
	0x90, 0x90,			    /* 1e: nop; nop */
	0x55,				    /* 20: push %rbp */
	0xe3, 0x02,			    /* 21: jrcxz 25 */
	0xe2, 0xfc,			    /* 23: loop 21 */
	0x5d,				    /* 25: pop %rbp */
	0xc3,				    /* 26: ret */
	0xcc,				    /* 27: int3 */
	0xf3, 0x48, 0x0f, 0xae, 0xe0,	    /* 28: ptwrite %rax */
	0xeb, 0x01,			    /* 2d: jmp 30 */
	0x90,				    /* 2f: nop */
	0xe8, 0xeb, 0xff, 0xff, 0xff,	    /* 30: call 20 */
	0x74, 0xe9,			    /* 35: je 20 */
	0xc7, 0xf8, 0x02, 0x00, 0x00, 0x00, /* 37: xbegin 3f */
	0x0f, 0x01, 0xd5,		    /* 3d: xend */
	0x0f, 0x01, 0xc9,		    /* 40: mwait */
	0xeb, 0xeb,			    /* 43: jmp 30 */
	0x90, 0x90, 0x90,		    /* 45: nop; nop; nop */
	0xe8, 0xfb, 0xff, 0xff, 0xff,	    /* 48: call 48 */
	0x90, 0x90, 0x90,		    /* 4d: nop; nop; nop */
	0xff, 0x28,			    /* 50: ljmp *(%rax) */
	0xff, 0x18,			    /* 52: lcall *(%rax) */
	0xcb,				    /* 54: lret */
	0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 55: jmp 105a */
	0x0f, 0x84, 0x00, 0x00, 0x00, 0x80, /* 5a: je 80000060 less 4 GiB */
	0xc2, 0x08, 0x00,		    /* 60: ret $8 */
	0x06,				    /* 63: no instruction; push %es */
	0x0f, 0x01, 0xc1,		    /* 64: vmcall */
	0x0f, 0x01, 0xc2,		    /* 67: vmlaunch */
	0xcd, 0x80,			    /* 6a: int $0x80 */
	0x90, 0x90,			    /* 6c: nop; nop */
	0xe8, 0xad,			    /* 6e: call 20, if ff ff ff follows */
};

/* Mapped right behind it. */
static const uint8_t pt_code_next[] = {
	0xff, 0xff, 0xff, /* 70: the rest of the call */
	0x75, 0x8b,	  /* 73: jne 00 */
	0xc3,		  /* 75: ret */
};

#endif
