// SPDX-License-Identifier: GPL-2.0-or-later
	// void swtch(struct context *from, struct context *to)
#include "context.h"

	.text
	.globl swtch
	.type swtch, @function
swtch:
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
	mov 8(%rsi), %rbx
	mov 16(%rsi), %r12
	mov 24(%rsi), %r13
	mov 32(%rsi), %r14
	mov 40(%rsi), %r15
	mov CONTEXT_SP(%rsi), %rdx
	mov CONTEXT_PC(%rsi), %rax
	mov (%rsi), %rcx
	mov %rdx, %rsp		// here it becomes the other thread
	.cfi_def_cfa rsp, 0
	.cfi_register rip, rax
	.cfi_register rbp, rcx
	mov %rcx, %rbp
	.cfi_restore rbp
	jmp *%rax
	.cfi_endproc
	.size swtch, . - swtch

	thread_starts
