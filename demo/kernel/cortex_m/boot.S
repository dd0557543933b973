// SPDX-License-Identifier: GPL-2.0-or-later
// The vectors, and the way from reset to kernel_main.
#include "arch.h"

	.syntax unified
	.cfi_sections .debug_frame

	.section .vectors, "a"
	.globl vectors
vectors:
	.word handler_stack_top
	.word boot_entry
	.rept 14 + 32			// exceptions of the core, then interrupts
	.word trap_entry
	.endr

	.section .bss.handler_stack, "aw", %nobits
	.balign 8
handler_stack:
	.space HANDLER_STACK_SIZE
	.globl handler_stack_top
handler_stack_top:

	// Threads use PSP, so that MSP is free for handlers.
	.text
	.globl boot_entry
	.type boot_entry, %function
boot_entry:
	.cfi_startproc
	.cfi_undefined lr
	cpsid i
	ldr r0, =stacks + STACK_SIZE - CONTEXT_SIZE
	msr psp, r0
	movs r0, #2
	msr control, r0
	isb
	mov r7, #0
	mov lr, r7
	bl board_init
	movs r0, #1			// this is the first cpu
	bl kernel_main
	udf #0
	.cfi_endproc
	.size boot_entry, . - boot_entry
	.ltorg
