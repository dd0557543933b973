// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts and exceptions. See README.md about TRAP_SWITCHES and INTERRUPT_STACK.
#include "mode.h"

	.macro save_register number, name
	sd \name, 8 * \number(sp)
	.cfi_offset \name, 8 * \number - FRAME_SIZE
	.endm
	.macro load_register number, name
	ld \name, 8 * \number(sp)
	.endm
	.macro forget_register number, name
	.cfi_restore \name
	.endm

	.text
	.balign 4
	.globl trap_entry
	.type trap_entry, @function
trap_entry:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column PC_COLUMN
	.cfi_def_cfa sp, 0
	.cfi_escape 0x14, 2, 0	// DW_CFA_val_offset: the interrupted sp is the CFA
	.cfi_same_value PC_COLUMN	// in a register that samples do not have
	addi sp, sp, -FRAME_SIZE
	.cfi_def_cfa_offset FRAME_SIZE
	sd t0, 8 * 5(sp)
	.cfi_offset t0, 8 * 5 - FRAME_SIZE
	csrr t0, CSR(epc)
	.cfi_register PC_COLUMN, t0
	sd t0, FRAME_PC(sp)
	.cfi_offset PC_COLUMN, FRAME_PC - FRAME_SIZE
	csrr t0, CSR(status)
	sd t0, FRAME_STATUS(sp)
	ld t0, 8 * 5(sp)
	for_registers save_register
	mv a0, sp
#ifdef INTERRUPT_STACK
	mv s0, sp
	.cfi_def_cfa_register s0
	la sp, INTERRUPT_STACK_END
#endif
	jal trap
#ifdef TRAP_SWITCHES
	mv sp, a0		// the frame of another thread
#elif defined(INTERRUPT_STACK)
	mv sp, s0
#endif
	.cfi_def_cfa_register sp
	ld t0, FRAME_PC(sp)
	csrw CSR(epc), t0
	ld t0, FRAME_STATUS(sp)
	csrw CSR(status), t0
	for_registers load_register
	addi sp, sp, FRAME_SIZE
	.cfi_def_cfa_offset 0
	for_registers forget_register
	.cfi_same_value PC_COLUMN
	TRAP_RETURN
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// A new thread starts here, with the stack of a function that nothing called.
	.globl frame_start
	.type frame_start, @function
frame_start:
	.cfi_startproc
	.cfi_undefined ra
	jalr s1
	unimp
	.cfi_endproc
	.size frame_start, . - frame_start
