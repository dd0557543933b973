// SPDX-License-Identifier: GPL-2.0-or-later
// From QEMU's entry in EL1 or EL2 to guest_main. The MMU stays off.
#include "level.h"

	.section .text.boot, "ax"
	.globl boot_entry
	.type boot_entry, %function
boot_entry:
	.cfi_startproc
	.cfi_undefined x30
	ldr x0, =vectors
	msr EL(vbar), x0
#if LEVEL == 2
	ldr x0, =0x80000038	// interrupts go to EL2; EL1 has 64 bits
	msr hcr_el2, x0
#endif
	isb
	ldr x0, =BOOT_STACK_END
	mov sp, x0
	mov x29, xzr
	mov x30, xzr
	bl guest_main
	brk #0
	.cfi_endproc
	.size boot_entry, . - boot_entry
	.ltorg
