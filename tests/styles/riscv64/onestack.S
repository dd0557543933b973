// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's entry from user code, and its exit. In user mode sscratch has the thread's frame.
#include "mode.h"

	.macro store_register number, name
	sd \name, 8 * \number(sp)
	.endm
	.macro fetch_register number, name
	.ifnc \name, a0
	ld \name, 8 * \number(a0)
	.endif
	.endm

	.text
	.balign 4
	.globl trap_entry
	.type trap_entry, @function
trap_entry:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_undefined ra
	csrrw sp, sscratch, sp
	for_registers store_register
	csrr t0, sscratch
	sd t0, 8 * 2(sp)
	csrr t0, sepc
	sd t0, FRAME_PC(sp)
	csrr t0, sstatus
	sd t0, FRAME_STATUS(sp)
	mv a0, sp
	la sp, INTERRUPT_STACK_END
	jal kernel_trap
	unimp
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// void restore_user(struct frame *frame)
	.globl restore_user
	.type restore_user, @function
restore_user:
	.cfi_startproc
	addi sp, sp, -16
	.cfi_def_cfa_offset 16
	sd ra, 8(sp)		// so that unwinders find it until the last moment
	.cfi_offset ra, -8
	csrw sscratch, a0
	ld t0, FRAME_PC(a0)
	csrw sepc, t0
	ld t0, FRAME_STATUS(a0)
	csrw sstatus, t0
	for_registers fetch_register
	ld sp, 8 * 2(a0)
	.cfi_def_cfa_offset 0
	.cfi_undefined ra
	ld a0, 8 * 10(a0)
	sret
	.cfi_endproc
	.size restore_user, . - restore_user
