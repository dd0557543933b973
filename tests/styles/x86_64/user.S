// SPDX-License-Identifier: GPL-2.0-or-later
	.section .text.boot, "ax"
	.globl user_start
	.type user_start, @function
user_start:
	.cfi_startproc
	.cfi_undefined rip
	mov $SEED, %ebx		// the page begins differently in every program
	call user_main
	ud2
	.cfi_endproc
	.size user_start, . - user_start

	.text
	.globl user_call
	.type user_call, @function
user_call:
	.cfi_startproc
	int $0x80
	ret
	.cfi_endproc
	.size user_call, . - user_call
