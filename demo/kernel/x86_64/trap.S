// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts, exceptions and the task switch. Debuggers and kscope unwind through them by the .cfi
// directives or, in builds with frame pointers, by the chain of those.
#include "arch.h"

	.text
	.balign 16
	.globl trap_stubs
	.type trap_stubs, @function
trap_stubs:			// 16 bytes each
	.cfi_startproc simple
	.cfi_signal_frame
	.set vector, 0
	.rept VECTORS
	.balign 16
	.if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17
	.cfi_def_cfa rsp, 48	// the cpu has pushed an error code
	.else
	.cfi_def_cfa rsp, 40
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	push $0
	.cfi_adjust_cfa_offset 8
	.endif
	push $vector
	.cfi_adjust_cfa_offset 8
	jmp trap_entry
	.set vector, vector + 1
	.endr
	.cfi_endproc
	.size trap_stubs, . - trap_stubs

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
	cld
	mov %rsp, %rdi
	// Links the interrupted frame into the frame pointer chain, if it is in the kernel.
	testb $3, 18 * 8(%rsp)
	jnz 1f
	push 17 * 8(%rsp)
	.cfi_adjust_cfa_offset 8
	push %rbp
	.cfi_adjust_cfa_offset 8
	jmp 2f
	.cfi_adjust_cfa_offset -16
1:	push $0
	.cfi_adjust_cfa_offset 8
	push $0
	.cfi_adjust_cfa_offset 8
2:	mov %rsp, %rbp
	call trap
	.globl trap_back
trap_back:
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	.globl trap_return
trap_return:
	.irp register, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	restore \register
	.endr
	add $16, %rsp
	.cfi_adjust_cfa_offset -16
	iretq
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// void switch_to(void **from_sp, void *to_sp)
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

	// A new kernel task starts here, from switch_to.
	.globl task_start
	.type task_start, @function
task_start:
	.cfi_startproc
	.cfi_undefined rip
	sti
	xor %ebp, %ebp
	call task_run
	.cfi_endproc
	.size task_start, . - task_start
