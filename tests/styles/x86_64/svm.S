// SPDX-License-Identifier: GPL-2.0-or-later
#include "svm.h"

	// Calls \name with every register of a guest but rax and rsp; rdi is the last one.
	.macro for_guest name
	.set slot, 0
	.irp register, rbx, rcx, rdx, rsi, rbp, , r8, r9, r10, r11, r12, r13, r14, r15
	.ifnb \register
	\name \register, slot
	.endif
	.set slot, slot + 1
	.endr
	.endm
	.macro load_guest register, slot
	mov 8 * \slot(%rdi), %\register
	.endm
	.macro save_guest register, slot
	mov %\register, 8 * \slot(%rdi)
	.endm

	// void enter_guest(uint64_t vmcb, uint64_t *registers): returns when the guest leaves
	.text
	.globl enter_guest
	.type enter_guest, @function
enter_guest:
	.cfi_startproc
	.irp register, rbx, rbp, r12, r13, r14, r15
	save \register
	.endr
	save rsi
	mov %rdi, %rax
	mov %rsi, %rdi
	for_guest load_guest
	mov 8 * GUEST_RDI(%rdi), %rdi
	clgi
	sti			// for the guest; there are none here until stgi
	vmload
	vmrun
	vmsave
	push %rdi
	.cfi_adjust_cfa_offset 8
	mov 8(%rsp), %rdi
	for_guest save_guest
	pop %rax
	.cfi_adjust_cfa_offset -8
	mov %rax, 8 * GUEST_RDI(%rdi)
	stgi			// here comes the interrupt for which the guest left
	cli
	pop %rax
	.cfi_adjust_cfa_offset -8
	.irp register, r15, r14, r13, r12, rbp, rbx
	restore \register
	.endr
	ret
	.cfi_endproc
	.size enter_guest, . - enter_guest

	// void leave_guest(uint64_t call)
	.globl leave_guest
	.type leave_guest, @function
leave_guest:
	.cfi_startproc
	mov %rdi, %rax
	vmmcall
	ret
	.cfi_endproc
	.size leave_guest, . - leave_guest

	.globl cause_undefined
	.type cause_undefined, @function
cause_undefined:
	.cfi_startproc
	ud2
	ret
	.cfi_endproc
	.size cause_undefined, . - cause_undefined

	// For a guest.
	thread_starts
