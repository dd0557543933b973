// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's entry from user code, and its exit. In user mode the kernel's sp is the thread's frame.
#include "level.h"

	.macro store_pair a, b
	stp x\a, x\b, [sp, 8 * \a]
	.endm
	.macro fetch_pair a, b
	ldp x\a, x\b, [x0, 8 * \a]
	.endm
	.macro user_vector kind
	.balign 128
	stp x0, x1, [sp]
	for_pairs store_pair
	mrs x0, EL(elr)
	mrs x1, EL(spsr)
	mrs x2, sp_el0
	stp x30, x0, [sp, FRAME_PC - 8]
	stp x1, x2, [sp, FRAME_PC + 8]
	mov x0, sp
	mov x1, \kind
	b trap_entry
	.endm
	.macro other_vector
	.balign 128
	ldr x0, =INTERRUPT_STACK_END
	mov sp, x0
	mov x1, TRAP_KIND_OTHER
	b trap_entry
	.endm

	.text
	.balign 2048
	.globl vectors
	.type vectors, %function
vectors:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_undefined x30
	.rept 8				// the kernel itself: never
	other_vector
	.endr
	user_vector TRAP_KIND_SYNC
	user_vector TRAP_KIND_INTERRUPT
	.rept 6
	other_vector
	.endr
	.cfi_endproc
	.size vectors, . - vectors

	.type trap_entry, %function
trap_entry:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_undefined x30
	ldr x2, =INTERRUPT_STACK_END
	mov sp, x2
	bl kernel_trap
	brk #0
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// void restore_user(struct frame *frame)
	.globl restore_user
	.type restore_user, %function
restore_user:
	.cfi_startproc
	stp x29, x30, [sp, -16]!	// so that unwinders find them until the last moment
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	ldp x30, x1, [x0, FRAME_PC - 8]
	ldp x2, x3, [x0, FRAME_PC + 8]
	msr EL(elr), x1
	msr EL(spsr), x2
	msr sp_el0, x3
	for_pairs fetch_pair
	mov sp, x0
	.cfi_def_cfa_offset 0
	.cfi_undefined x30
	ldp x0, x1, [sp]
	eret
	.cfi_endproc
	.size restore_user, . - restore_user
	.ltorg
