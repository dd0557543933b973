// SPDX-License-Identifier: GPL-2.0-or-later
// PendSV saves on the thread's stack what the processor has not saved there, and changes PSP. The
// value in lr, EXC_RETURN, describes the processor's own frame to unwinders.
	.text
	.globl pendsv_handler
	.type pendsv_handler, %function
	.thumb_func
pendsv_handler:
	.fnstart
	.cfi_startproc
	.save {r3, lr}
	push {r3, lr}
	.cfi_def_cfa_offset 8
	.cfi_offset lr, -4
	mrs r0, psp
#ifdef __ARM_FP
	tst lr, 0x10		// the thread has used the FPU
	it eq
	vstmdbeq r0!, {s16-s31}
#endif
	stmdb r0!, {r4-r11, lr}
	bl pendsv_switch
	pop {r3, lr}
	.cfi_def_cfa_offset 0
	.cfi_restore lr
	ldmia r0!, {r4-r11, lr}
#ifdef __ARM_FP
	tst lr, 0x10
	it eq
	vldmiaeq r0!, {s16-s31}
#endif
	msr psp, r0
	bx lr
	.cfi_endproc
	.fnend
	.size pendsv_handler, . - pendsv_handler

	// A new thread starts here, with the stack of a function that nothing called.
	.globl frame_start
	.type frame_start, %function
	.thumb_func
frame_start:
	.fnstart
	.cantunwind
	.cfi_startproc
	.cfi_undefined lr
	blx r4
	udf 0
	.cfi_endproc
	.fnend
	.size frame_start, . - frame_start
