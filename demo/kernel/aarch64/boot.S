// SPDX-License-Identifier: GPL-2.0-or-later
// From QEMU's entry in EL1, with the MMU off, to kernel_main.
#include "arch.h"

	.section .text.boot, "ax"
	.globl boot_entry
boot_entry:
	adrp x1, stacks
	add x1, x1, STACK_SIZE
	mov x2, KERNEL_OFFSET
	add x1, x1, x2
	mov x0, DEVICE_TREE
	b translate
	.globl ap_entry
ap_entry:			// x0: its stack
	mov x1, x0
	mov x0, xzr
translate:
	ldr x2, =0x00000000000004ff	// MAIR: 0 is normal memory, 1 is for devices
	msr mair_el1, x2
	ldr x2, =0x00000011b5193519	// TCR: 39 bits, pages of 4 KB, both halves
	msr tcr_el1, x2
	adrp x2, boot_low
	msr ttbr0_el1, x2
	adrp x2, boot_high
	msr ttbr1_el1, x2
	isb
	mrs x2, sctlr_el1
	mov x3, #0x1005			// translation, caches
	orr x2, x2, x3
	msr sctlr_el1, x2
	isb
	ldr x2, =high
	br x2
	.ltorg

	.type high, %function
high:
	.cfi_startproc
	.cfi_undefined x30
	adrp x2, vectors
	add x2, x2, :lo12:vectors
	msr vbar_el1, x2
	mov sp, x1
	mov x29, xzr
	mov x30, xzr
	bl kernel_main
	.cfi_endproc
	.size high, . - high

	// The first GB has the devices, the second the memory.
	.data
	.balign 4096
	.globl boot_low
boot_low:
	.quad 0x00600000 << 32 | 0x405
	.quad 0x40000000 | 0x701
	.fill 510, 8, 0
boot_high:
	.quad 0x00600000 << 32 | 0x405
	.quad 0x40000000 | 0x701
	.fill 510, 8, 0
