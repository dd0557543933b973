// SPDX-License-Identifier: GPL-2.0-or-later
	// void call_on_interrupt_stack(void (*function)(void))
	.text
	.globl call_on_interrupt_stack
	.type call_on_interrupt_stack, @function
call_on_interrupt_stack:
	.cfi_startproc
	addi sp, sp, -16
	.cfi_def_cfa_offset 16
	sd ra, 8(sp)
	.cfi_offset ra, -8
	sd s0, (sp)
	.cfi_offset s0, -16
	mv s0, sp
	.cfi_def_cfa_register s0
	la sp, INTERRUPT_STACK_END
	jalr a0
	mv sp, s0
	.cfi_def_cfa_register sp
	ld ra, 8(sp)
	ld s0, (sp)
	addi sp, sp, 16
	.cfi_def_cfa_offset 0
	.cfi_restore ra
	.cfi_restore s0
	ret
	.cfi_endproc
	.size call_on_interrupt_stack, . - call_on_interrupt_stack
