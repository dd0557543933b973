// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts and exceptions. See README.md about TRAP_SWITCHES and INTERRUPT_STACK.
#include "level.h"

	// Saves everything in the vector: only at its first instructions is the interrupted pc nowhere
	// but in ELR.
	.macro vector kind
	.balign 128
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column PC_COLUMN
	.cfi_def_cfa sp, 0
	.cfi_escape 0x14, 31, 0	// DW_CFA_val_offset: the interrupted sp is the CFA
	.cfi_same_value PC_COLUMN	// in a register that samples do not have
	sub sp, sp, FRAME_SIZE
	.cfi_def_cfa_offset FRAME_SIZE
	stp x0, x1, [sp]
	.cfi_offset 0, -FRAME_SIZE
	.cfi_offset 1, 8 - FRAME_SIZE
	mrs x0, EL(elr)
	.cfi_register PC_COLUMN, x0
	mrs x1, EL(spsr)
	stp x30, x0, [sp, FRAME_PC - 8]
	.cfi_offset 30, FRAME_PC - 8 - FRAME_SIZE
	.cfi_offset PC_COLUMN, FRAME_PC - FRAME_SIZE
	str x1, [sp, FRAME_PC + 8]
	for_pairs save_pair
	mov x0, sp
	mov x1, \kind
	b trap_entry
	.cfi_endproc
	.endm

	.text
	.balign 2048
	.globl vectors
	.type vectors, %function
vectors:
	.rept 4				// with SP_EL0: never
	vector TRAP_KIND_OTHER
	.endr
	vector TRAP_KIND_SYNC
	vector TRAP_KIND_INTERRUPT
	.rept 10			// other kinds, and from lower levels: never
	vector TRAP_KIND_OTHER
	.endr
	.size vectors, . - vectors

	.macro saved_pair a, b
	.cfi_offset \a, 8 * \a - FRAME_SIZE
	.cfi_offset \b, 8 * \b - FRAME_SIZE
	.endm
	.type trap_entry, %function
trap_entry:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column PC_COLUMN
	.cfi_def_cfa sp, FRAME_SIZE
	.cfi_escape 0x14, 31, 0
	saved_pair 0, 1
	for_pairs saved_pair
	.cfi_offset 30, FRAME_PC - 8 - FRAME_SIZE
	.cfi_offset PC_COLUMN, FRAME_PC - FRAME_SIZE
#ifdef INTERRUPT_STACK
	mov x19, sp
	.cfi_def_cfa_register x19
	ldr x2, =INTERRUPT_STACK_END
	mov sp, x2
#endif
	bl trap
#ifdef TRAP_SWITCHES
	mov sp, x0		// the frame of another thread
#elif defined(INTERRUPT_STACK)
	mov sp, x19
#endif
	.cfi_def_cfa_register sp
	ldr x1, [sp, FRAME_PC + 8]
	ldp x30, x0, [sp, FRAME_PC - 8]
	msr EL(elr), x0
	msr EL(spsr), x1
	for_pairs load_pair
	ldp x0, x1, [sp]
	add sp, sp, FRAME_SIZE
	.cfi_def_cfa_offset 0
	forget_pair 0, 1
	for_pairs forget_pair
	.cfi_restore 30
	.cfi_same_value PC_COLUMN
	eret
	.cfi_endproc
	.size trap_entry, . - trap_entry
	.ltorg

	// A new thread starts here, with the stack of a function that nothing called.
	.globl frame_start
	.type frame_start, %function
frame_start:
	.cfi_startproc
	.cfi_undefined x30
	blr x19
	brk #0
	.cfi_endproc
	.size frame_start, . - frame_start
