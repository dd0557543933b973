// SPDX-License-Identifier: GPL-2.0-or-later
	// void call_on_interrupt_stack(void (*function)(void))
	.text
	.globl call_on_interrupt_stack
	.type call_on_interrupt_stack, @function
call_on_interrupt_stack:
	.cfi_startproc
	save rbx
	mov %rsp, %rbx
	.cfi_def_cfa_register rbx
	mov $INTERRUPT_STACK_END, %rsp
	call *%rdi
	mov %rbx, %rsp
	.cfi_def_cfa_register rsp
	restore rbx
	ret
	.cfi_endproc
	.size call_on_interrupt_stack, . - call_on_interrupt_stack
