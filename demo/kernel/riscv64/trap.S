// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts, exceptions and the task switch. Debuggers and kscope unwind through them by the .cfi
// directives or, in builds with frame pointers, by the chain of those.
#include "arch.h"

	// sscratch is the kernel's stack while user code runs, else 0. It gets the interrupted sp.
	.text
	.balign 4
	.globl vector
	.type vector, @function
vector:
	csrrw sp, sscratch, sp
	bnez sp, 1f
	csrr sp, sscratch
1:	addi sp, sp, -FRAME_SIZE
	.size vector, . - vector

	// All but x0 and sp
	.macro registers instruction
	.irp number, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, \
		23, 24, 25, 26, 27, 28, 29, 30, 31
	\instruction x\number, 8 * \number(sp)
	.endr
	.endm

	.type trap_entry, @function
trap_entry:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column 64		// the address is in sepc, not in ra
	.cfi_def_cfa sp, FRAME_SIZE
	registers sd
	csrrw t0, sscratch, zero
	csrr t1, sepc
	csrr t2, sstatus
	sd t0, 16(sp)
	sd t1, FRAME_PC(sp)
	sd t2, FRAME_STATUS(sp)
	.cfi_offset 64, FRAME_PC - FRAME_SIZE
	.irp number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, \
		22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.cfi_offset \number, 8 * \number - FRAME_SIZE
	.endr
	// Links the interrupted frame into the frame pointer chain, if it is in the kernel.
	andi t2, t2, STATUS_SPP
	bnez t2, 1f
	li s0, 0
	li t1, 0
1:	sd s0, FRAME_LINK(sp)
	sd t1, FRAME_LINK + 8(sp)
	addi s0, sp, FRAME_LINK + 16
	mv a0, sp
	call trap
	.globl trap_back, trap_return
trap_back:
trap_return:
	ld t1, FRAME_PC(sp)
	ld t2, FRAME_STATUS(sp)
	csrw sepc, t1
	csrw sstatus, t2
	andi t2, t2, STATUS_SPP
	bnez t2, 1f
	addi t0, sp, FRAME_SIZE
	csrw sscratch, t0
1:	registers ld
	ld sp, 16(sp)
	.cfi_def_cfa_offset 0
	sret
	.cfi_endproc
	.size trap_entry, . - trap_entry

	.macro saved instruction
	\instruction ra, 0(sp)
	\instruction s0, 8(sp)
	\instruction s1, 16(sp)
	\instruction s2, 24(sp)
	\instruction s3, 32(sp)
	\instruction s4, 40(sp)
	\instruction s5, 48(sp)
	\instruction s6, 56(sp)
	\instruction s7, 64(sp)
	\instruction s8, 72(sp)
	\instruction s9, 80(sp)
	\instruction s10, 88(sp)
	\instruction s11, 96(sp)
	.endm

	// void switch_to(void **from_sp, void *to_sp)
	.globl switch_to
	.type switch_to, @function
switch_to:
	.cfi_startproc
	addi sp, sp, -SWITCH_SIZE
	.cfi_def_cfa_offset SWITCH_SIZE
	saved sd
	.cfi_rel_offset ra, 0
	.cfi_rel_offset s0, 8
	.cfi_rel_offset s1, 16
	.irp number, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27
	.cfi_rel_offset \number, 8 * (\number - 15)
	.endr
	sd sp, (a0)
	mv sp, a1
	saved ld
	.irp number, 1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27
	.cfi_restore \number
	.endr
	addi sp, sp, SWITCH_SIZE
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size switch_to, . - switch_to

	// A new kernel task starts here, from switch_to.
	.globl task_start
	.type task_start, @function
task_start:
	.cfi_startproc
	.cfi_undefined ra
	csrsi sstatus, STATUS_SIE
	li s0, 0
	call task_run
	.cfi_endproc
	.size task_start, . - task_start
