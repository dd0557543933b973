// SPDX-License-Identifier: GPL-2.0-or-later
	// void switch_to(void **from_sp, void *to_sp)
	.text
	.globl switch_to
	.type switch_to, @function
switch_to:
	.cfi_startproc
	.irp register, rbx, rbp, r12, r13, r14, r15
	save \register
	.endr
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	.irp register, r15, r14, r13, r12, rbp, rbx
	restore \register
	.endr
	ret
	.cfi_endproc
	.size switch_to, . - switch_to

	// The ret above goes 2 bytes forward.
	thread_starts
