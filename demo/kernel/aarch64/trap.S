// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts, exceptions and the task switch. Debuggers and kscope unwind through them by the .cfi
// directives or, in builds with frame pointers, by the chain of those.
#include "arch.h"

	.macro vector kind
	.balign 128
	sub sp, sp, FRAME_SIZE
	stp x0, x1, [sp]
	mov x1, \kind
	b trap_entry
	.endm

	.text
	.balign 2048
	.globl vectors
	.type vectors, %function
vectors:
	.rept 4				// EL1 with SP_EL0: never
	vector TRAP_OTHER
	.endr
	.rept 2				// EL1, then EL0
	vector TRAP_SYNC
	vector TRAP_INTERRUPT
	vector TRAP_OTHER
	vector TRAP_OTHER
	.endr
	.rept 4				// 32 bits: never
	vector TRAP_OTHER
	.endr
	.size vectors, . - vectors

	.macro pairs instruction
	\instruction x2, x3, [sp, 16]
	\instruction x4, x5, [sp, 32]
	\instruction x6, x7, [sp, 48]
	\instruction x8, x9, [sp, 64]
	\instruction x10, x11, [sp, 80]
	\instruction x12, x13, [sp, 96]
	\instruction x14, x15, [sp, 112]
	\instruction x16, x17, [sp, 128]
	\instruction x18, x19, [sp, 144]
	\instruction x20, x21, [sp, 160]
	\instruction x22, x23, [sp, 176]
	\instruction x24, x25, [sp, 192]
	\instruction x26, x27, [sp, 208]
	\instruction x28, x29, [sp, 224]
	.endm

	.type trap_entry, %function
trap_entry:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column 32		// the address is in ELR, not in x30
	.cfi_def_cfa sp, FRAME_SIZE
	pairs stp
	mrs x2, sp_el0
	mrs x3, elr_el1
	mrs x4, spsr_el1
	stp x30, x2, [sp, 240]
	stp x3, x4, [sp, FRAME_ELR]
	.cfi_offset 32, FRAME_ELR - FRAME_SIZE
	.irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, \
		23, 24, 25, 26, 27, 28, 29, 30
	.cfi_offset \number, 8 * \number - FRAME_SIZE
	.endr
	// Links the interrupted frame into the frame pointer chain, if it is in the kernel.
	tst x4, #0xf
	csel x3, xzr, x3, eq
	csel x5, xzr, x29, eq
	stp x5, x3, [sp, FRAME_LINK]
	add x29, sp, FRAME_LINK
	mov x0, sp
	bl trap
	.globl trap_back, trap_return
trap_back:
trap_return:
	ldp x3, x4, [sp, FRAME_ELR]
	ldp x30, x2, [sp, 240]
	msr sp_el0, x2
	msr elr_el1, x3
	msr spsr_el1, x4
	ldp x0, x1, [sp]
	pairs ldp
	add sp, sp, FRAME_SIZE
	.cfi_def_cfa_offset 0
	eret
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// void switch_to(void **from_sp, void *to_sp)
	.globl switch_to
	.type switch_to, %function
switch_to:
	.cfi_startproc
	sub sp, sp, 96
	.cfi_def_cfa_offset 96
	stp x19, x20, [sp]
	stp x21, x22, [sp, 16]
	stp x23, x24, [sp, 32]
	stp x25, x26, [sp, 48]
	stp x27, x28, [sp, 64]
	stp x29, x30, [sp, 80]
	.irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
	.cfi_offset \number, 8 * (\number - 19) - 96
	.endr
	mov x2, sp
	str x2, [x0]
	mov sp, x1
	ldp x19, x20, [sp]
	ldp x21, x22, [sp, 16]
	ldp x23, x24, [sp, 32]
	ldp x25, x26, [sp, 48]
	ldp x27, x28, [sp, 64]
	ldp x29, x30, [sp, 80]
	.irp number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
	.cfi_restore \number
	.endr
	add sp, sp, 96
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size switch_to, . - switch_to

	// A new kernel task starts here, from switch_to.
	.globl task_start
	.type task_start, %function
task_start:
	.cfi_startproc
	.cfi_undefined x30
	msr daifclr, #2
	mov x29, xzr
	bl task_run
	.cfi_endproc
	.size task_start, . - task_start
