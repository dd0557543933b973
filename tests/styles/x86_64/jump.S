// SPDX-License-Identifier: GPL-2.0-or-later
#include "context.h"

	// int jump_set(struct context *here): returns 0, and once more for every jump
	.text
	.globl jump_set
	.type jump_set, @function
jump_set:
	.cfi_startproc
	mov (%rsp), %rax
	lea 8(%rsp), %rdx
	mov %rbp, (%rdi)
	mov %rbx, 8(%rdi)
	mov %r12, 16(%rdi)
	mov %r13, 24(%rdi)
	mov %r14, 32(%rdi)
	mov %r15, 40(%rdi)
	mov %rdx, CONTEXT_SP(%rdi)
	mov %rax, CONTEXT_PC(%rdi)
	xor %eax, %eax
	ret
	.cfi_endproc
	.size jump_set, . - jump_set

	// void jump(struct context *to, int value): jump_set(to) returns `value`
	.globl jump
	.type jump, @function
jump:
	.cfi_startproc
	mov %esi, %eax
	mov 8(%rdi), %rbx
	mov 16(%rdi), %r12
	mov 24(%rdi), %r13
	mov 32(%rdi), %r14
	mov 40(%rdi), %r15
	mov CONTEXT_SP(%rdi), %rdx
	mov CONTEXT_PC(%rdi), %r8
	mov (%rdi), %rcx
	mov %rdx, %rsp		// here it becomes the other place
	.cfi_def_cfa rsp, 0
	.cfi_register rip, r8
	.cfi_register rbp, rcx
	mov %rcx, %rbp
	.cfi_restore rbp
	jmp *%r8
	.cfi_endproc
	.size jump, . - jump

	thread_starts
