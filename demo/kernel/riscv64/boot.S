// SPDX-License-Identifier: GPL-2.0-or-later
// From the firmware's entry in supervisor mode, with the MMU off, to kernel_main.
#include "arch.h"

	.section .text.boot, "ax"
	.globl boot_entry
boot_entry:			// a0: number of the hart, a1: device tree
	la t0, boot_hart
	sd a0, (t0)
	mv a0, a1
	la a1, stacks
	li t0, KERNEL_OFFSET + STACK_SIZE
	add a1, a1, t0
	j translate
	.globl ap_entry
ap_entry:			// a1: its stack
	li a0, 0
translate:
	la t0, boot_table
	srli t0, t0, 12
	li t1, 8 << 60		// Sv39
	or t0, t0, t1
	la t1, high
	li t2, KERNEL_OFFSET
	add t1, t1, t2
	sfence.vma
	csrw satp, t0
	jr t1

	.type high, @function
	.balign 4
high:
	.cfi_startproc
	.cfi_undefined ra
	la t0, vector
	csrw stvec, t0
	csrw sscratch, zero
	li t0, STATUS_SUM
	csrs sstatus, t0
	mv sp, a1
	li s0, 0
	li ra, 0
	call kernel_main
	.cfi_endproc
	.size high, . - high

	// Pages of 1 GB. The first has the devices, the third the memory, which boot_entry also
	// needs at its physical address.
	.data
	.balign 4096
	.globl boot_table
boot_table:
	.quad 0
	.quad 0
	.quad 0x80000000 >> 2 | 0xef
	.fill 253, 8, 0
	.quad 0xe7
	.quad 0
	.quad 0x80000000 >> 2 | 0xef
	.fill 253, 8, 0
	.globl boot_hart
boot_hart:
	.quad 0
