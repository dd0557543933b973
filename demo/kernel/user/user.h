// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a user program begins, at the first byte of its text: user_main(units), then it ends. Its
 * name is near, so that two programs differ from the start.
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
	".balign 4\n");
