// SPDX-License-Identifier: GPL-2.0-or-later
// From the firmware's entry in supervisor mode, with the MMU off, to kernel_main.
//
// All harts start at boot_entry, and only their number tells them apart: OpenSBI 1.1 (QEMU 7.2) marks a hart as
// started before it stores the address and the argument. A hart that looks in between starts at the
// kernel's first address, with the device tree as its argument.
#include "arch.h"

	.section .text.boot, "ax"
	.globl boot_entry
boot_entry:			// a0: number of the hart, a1: device tree, for the first hart
	la t0, boot_hart
	ld t1, (t0)
	bgez t1, 1f
	sd a0, (t0)		// the first hart is cpu 0
	li t2, 0
	mv a0, a1
	j 2f
1:	sltu t2, a0, t1		// the others follow in their order, see hart_of()
	add t2, t2, a0
	li a0, 0
2:	addi t2, t2, 1
	li t1, STACK_SIZE
	mul t2, t2, t1
	la a1, stacks
	add a1, a1, t2
	li t0, KERNEL_OFFSET
	add a1, a1, t0
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
	.quad -1
