// SPDX-License-Identifier: GPL-2.0-or-later
	.macro for_kept do
	\do 19, 20
	\do 21, 22
	\do 23, 24
	\do 25, 26
	\do 27, 28
	\do 29, 30
	.endm
	.macro save_kept a, b
	stp x\a, x\b, [sp, 8 * (\a - 19)]
	.cfi_offset \a, 8 * (\a - 19) - 96
	.cfi_offset \b, 8 * (\b - 19) - 96
	.endm
	.macro load_kept a, b
	ldp x\a, x\b, [sp, 8 * (\a - 19)]
	.endm

	// void switch_to(void **from_sp, void *to_sp)
	.text
	.globl switch_to
	.type switch_to, %function
switch_to:
	.cfi_startproc
	sub sp, sp, 96
	.cfi_def_cfa_offset 96
	for_kept save_kept
	mov x2, sp
	str x2, [x0]
	mov sp, x1
	for_kept load_kept
	add sp, sp, 96
	.cfi_def_cfa_offset 0
	for_kept forget_pair
	ret
	.cfi_endproc
	.size switch_to, . - switch_to

	// A new thread starts here, after the nop: the address before it, where unwinders look up a
	// return address, is then in this function.
	.globl thread_start
	.type thread_start, %function
thread_start:
	.cfi_startproc
	.cfi_undefined x30
	nop
	bl thread_run
	brk #0
	.cfi_endproc
	.size thread_start, . - thread_start
