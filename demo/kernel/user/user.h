// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The entry of a user program, at the first byte of its text: calls user_main(units), then exits.
 * The program's name follows, so that two programs differ in their first bytes; RISC-V's assembler
 * could not fill an odd number of bytes up with nops.
 */
#pragma once

#include "kernel.h"

void user_main(uint64_t units);

__asm__(".globl _start\n"
	".type _start, %function\n"
	"_start:\n"
	"	.cfi_startproc\n" USER_START "	.cfi_endproc\n"
	".size _start, . - _start\n"
	".asciz \"" PROGRAM "\"\n"
	".balign 4, 0xff\n");
