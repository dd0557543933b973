// SPDX-License-Identifier: MIT
/*
 * stack: for programs whose calls the profiler shows. It puts their stack into a region of the system description, which
 * the profiler maps, too; it cannot map the stack that Microkit makes. Link this file in front of libmicrokit, and map
 * the region with setvar_vaddr="kscope_stack" setvar_size="kscope_stack_size".
 */
	.section .text.start, "ax"
	.global _start
	.type _start, %function
_start:
	adrp	x9, kscope_stack
	ldr	x9, [x9, :lo12:kscope_stack]
	adrp	x10, kscope_stack_size
	ldr	x10, [x10, :lo12:kscope_stack_size]
	add	x9, x9, x10
	mov	sp, x9
	mov	x29, xzr // the end of the frames
	mov	x30, xzr
	b	main
	.size _start, . - _start

	.data
	.balign	8
	.global	kscope_stack, kscope_stack_size
	.type	kscope_stack, %object
	.type	kscope_stack_size, %object
kscope_stack:
	.quad	0
	.size	kscope_stack, 8
kscope_stack_size:
	.quad	0
	.size	kscope_stack_size, 8
