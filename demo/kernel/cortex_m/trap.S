// SPDX-License-Identifier: GPL-2.0-or-later
// Exceptions, interrupts and the start of tasks. Debuggers and kscope unwind through them by the
// .cfi directives: lr is EXC_RETURN, so they take the rest from what the hardware stored. In builds
// with frame pointers, the chain of those leads to the interrupted code.
#include "arch.h"

	.syntax unified
	.cfi_sections .debug_frame

	.text
	.globl trap_entry
	.type trap_entry, %function
trap_entry:
	.cfi_startproc
	push {r3-r11, lr}		// r3 only aligns the stack
	.cfi_def_cfa_offset 40
	.cfi_offset lr, -4
	.irp number, 4, 5, 6, 7, 8, 9, 10, 11
	.cfi_offset r\number, 4 * \number - 52
	.endr
	// Links the interrupted frame into the frame pointer chain, if it is in the kernel.
	tst lr, #4
	itee eq
	addeq r0, sp, #40		// a handler, on this stack
	mrsne r0, psp
	mrsne r1, control
	mov r2, r7
	ldr r3, [r0, #24]
	orr r3, r3, #1			// as return addresses have it
	it ne
	tstne r1, #1
	itt ne
	movne r2, #0
	movne r3, #0
	push {r2, r3}
	.cfi_def_cfa_offset FRAME_SIZE
	mov r7, sp
	.globl trap_linked, trap_unlinked, trap_end
trap_linked:
	mov r0, sp
	bl trap
	.globl trap_back
trap_back:
	ldr r7, [sp, #FRAME_R7]
trap_unlinked:
	add sp, sp, #8
	.cfi_def_cfa_offset 40
	pop {r3-r11, pc}
trap_end:
	.cfi_endproc
	.size trap_entry, . - trap_entry

	// A new kernel task starts here.
	.globl task_start
	.type task_start, %function
task_start:
	.cfi_startproc
	.cfi_undefined lr
	mov r7, #0
	bl task_run
	udf #0				// never: the return address must be in a function
	.cfi_endproc
	.size task_start, . - task_start
