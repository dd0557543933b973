// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's entry from user code, and its exit. In user mode, the cpu's stack for the kernel is the end
// of the thread's frame.
#include "stubs.S"

	.type trap_entry, @function
trap_entry:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_undefined rip
	.irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	push %\register
	.endr
	mov %rsp, %rdi
	mov $INTERRUPT_STACK_END, %rsp
	call kernel_trap
	ud2
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// void restore_user(struct frame *frame)
	.globl restore_user
	.type restore_user, @function
restore_user:
	.cfi_startproc
	lea 22 * 8(%rdi), %rax
	mov %rax, task_state + 4	// rsp0
	.set slot, 0
	.irp register, r15, r14, r13, r12, r11, r10, r9, r8, rbp, , rsi, rdx, rcx, rbx, rax
	.ifnb \register
	mov 8 * slot(%rdi), %\register
	.endif
	.set slot, slot + 1
	.endr
	lea 17 * 8(%rdi), %rsp		// rip, cs, flags, rsp, ss
	.cfi_undefined rip
	mov 9 * 8(%rdi), %rdi
	iretq
	.cfi_endproc
	.size restore_user, . - restore_user
