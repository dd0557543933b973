// SPDX-License-Identifier: GPL-2.0-or-later
	// int jump_set(struct context *here): returns 0, and once more for every jump
	.text
	.globl jump_set
	.type jump_set, @function
jump_set:
	.cfi_startproc
	save_context a0
	li a0, 0
	ret
	.cfi_endproc
	.size jump_set, . - jump_set

	// void jump(struct context *to, int value): jump_set(to) returns `value`
	.globl jump
	.type jump, @function
jump:
	.cfi_startproc
	load_context a0
	mv a0, a1
	ret
	.cfi_endproc
	.size jump, . - jump

	// A new thread starts here, after the nop: the address before it, where unwinders look up a
	// return address, is then in this function.
	.globl thread_start
	.type thread_start, @function
thread_start:
	.cfi_startproc
	.cfi_undefined ra
	c.nop
	jal thread_run
	unimp
	.cfi_endproc
	.size thread_start, . - thread_start
