// SPDX-License-Identifier: GPL-2.0-or-later
// The vector table, and from reset to guest_main. All threads use PSP, all handlers MSP.

	.section .text.boot, "ax"
	.type vectors, %object
vectors:
	.word INTERRUPT_STACK_END
	.word boot_entry
	.rept 9			// NMI, faults
	.word fault_handler
	.endr
	.word svc_handler
	.word fault_handler
	.word fault_handler
	.word pendsv_handler
	.word timer_handler
	.rept 32
	.word soft_handler
	.endr
	.size vectors, . - vectors

	.globl boot_entry
	.type boot_entry, %function
	.thumb_func
boot_entry:
	.fnstart
	.cantunwind
	.cfi_startproc
	.cfi_undefined lr
#ifdef __ARM_FP
	ldr r0, =0xe000ed88	// CPACR: all code may use the FPU
	ldr r1, [r0]
	orr r1, r1, 0xf00000
	str r1, [r0]
	dsb
	isb
#endif
	ldr r0, =BOOT_STACK_END
	msr psp, r0
	movs r0, 2
	msr control, r0
	isb
	movs r0, 0
	mov lr, r0
	bl guest_main
	udf 0
	.cfi_endproc
	.fnend
	.size boot_entry, . - boot_entry
	.ltorg
