// SPDX-License-Identifier: GPL-2.0-or-later
// push and pop with rules, and where threads start.
	.macro save register
	push %\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endm
	.macro restore register
	pop %\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endm
	// After the nop: the address before it, where unwinders look up a return address, is then in this function.
	.macro thread_starts
	.globl thread_start
	.type thread_start, @function
thread_start:
	.cfi_startproc
	.cfi_undefined rip
	nop
	call thread_run
	ud2
	.cfi_endproc
	.size thread_start, . - thread_start
	.endm
