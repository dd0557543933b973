// SPDX-License-Identifier: GPL-2.0-or-later
	// void call_on_interrupt_stack(void (*function)(void))
	.text
	.globl call_on_interrupt_stack
	.type call_on_interrupt_stack, %function
call_on_interrupt_stack:
	.cfi_startproc
	stp x29, x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov x29, sp
	.cfi_def_cfa_register x29
	ldr x9, =INTERRUPT_STACK_END
	mov sp, x9
	blr x0
	mov sp, x29
	.cfi_def_cfa_register sp
	ldp x29, x30, [sp], 16
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size call_on_interrupt_stack, . - call_on_interrupt_stack
	.ltorg
