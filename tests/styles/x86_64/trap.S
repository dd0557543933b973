// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts and exceptions. See README.md about TRAP_SWITCHES and INTERRUPT_STACK.
#include "stubs.S"

	.type trap_entry, @function
trap_entry:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa rsp, 56
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	.irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	save \register
	.endr
	mov %rsp, %rdi
#ifdef INTERRUPT_STACK
	mov %rsp, %rbx
	.cfi_def_cfa_register rbx
	mov $INTERRUPT_STACK_END, %rsp
#endif
	call trap
#ifdef TRAP_SWITCHES
	mov %rax, %rsp		// the frame of another thread
#elif defined(INTERRUPT_STACK)
	mov %rbx, %rsp
#endif
	.cfi_def_cfa_register rsp
	.irp register, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	restore \register
	.endr
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	iretq
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// A new thread starts here, with the stack of a function that nothing called.
	.globl frame_start
	.type frame_start, @function
frame_start:
	.cfi_startproc
	.cfi_undefined rip
	nop
	call *%rbx
	ud2
	.cfi_endproc
	.size frame_start, . - frame_start
