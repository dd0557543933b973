// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest for address spaces under a hypervisor: AArch64, QEMU's virt machine, started at EL2. Code at
 * EL2 runs the functions guest_* at EL1, each with other page tables, and host_* as a host with VHE
 * would. The tables of stage 1 and 2 map every address to itself.
 */
	.arch armv8.1-a
	.text
	.globl _start
_start:
	ldr x0, =stack
	mov sp, x0
	ldr x0, =vectors
	msr vbar_el2, x0
	msr cptr_el2, xzr
	ldr x0, =stage1
	mov x1, #0x405		/* block, used, attributes 1 */
	bl fill
	ldr x0, =stage2
	ldr x1, =0x4fd		/* block, used, normal memory, read and write */
	bl fill
	ldr x0, =stage2
	str xzr, [x0, #8 * 3]	/* nothing at 0xc0000000 */
	ldr x0, =0x80000019 | 1 << 6 | 2 << 16 /* 39 bits, from level 1, 40 bits out */
	msr vtcr_el2, x0
	ldr x0, =0x200000019	/* 39 bits */
	msr tcr_el1, x0
	mov x0, #0xff00
	msr mair_el1, x0
	/* Without stage 2. */
	mov x0, #1 << 31
	msr hcr_el2, x0
	ldr x0, =stage1
	msr ttbr0_el1, x0
	ldr x0, =guest_plain
	bl enter
	/* Two guests with stage 2 only, as seL4's threads. */
	ldr x0, =stage2
	movk x0, #5, lsl #48
	msr vttbr_el2, x0
	ldr x0, =1 << 31 | 1
	msr hcr_el2, x0
	ldr x0, =guest_five
	bl enter
	ldr x0, =stage2
	movk x0, #6, lsl #48
	msr vttbr_el2, x0
	ldr x0, =guest_six
	bl enter
	/* Both stages. */
	mrs x0, sctlr_el1
	orr x0, x0, #1
	msr sctlr_el1, x0
	ldr x0, =guest_both
	bl enter
	/* A host with VHE, whose page table has the name of EL1's. */
	ldr x0, =1 << 31 | 1 << 34 | 1 << 27
	msr hcr_el2, x0
	isb
	ldr x0, =host_table
	msr ttbr0_el1, x0
	bl host_work
	ldr x0, =0x84000008	/* PSCI: off */
	smc #0
1:	wfi
	b 1b

/* Calls function x0 at EL1. It returns by hvc, and the handler of that comes back here. */
	.globl enter
enter:
	stp x29, x30, [sp, #-16]!
	msr elr_el2, x0
	mov x0, #0x3c5
	msr spsr_el2, x0
	eret
back:
	ldp x29, x30, [sp], #16
	ret

/* Maps 512 GiB in blocks of 1 GiB: table x0, attributes x1. */
fill:
	mov x2, #512
	mov x3, #1 << 30
1:	str x1, [x0], #8
	add x1, x1, x3
	subs x2, x2, #1
	b.ne 1b
	ret

	.macro function name
	.globl \name
	.type \name, @function
\name:
	mov x9, #300
1:	sub x9, x9, #1
	cbnz x9, 1b
	.endm

	function guest_plain
	hvc #0
	function guest_five
	mov x1, #0xc0000000
	nop
	.globl faults
faults:
	ldr x2, [x1]		/* in the middle of a block; EL2 skips it */
	nop
	hvc #0
	function guest_six
	hvc #0
	function guest_both
	hvc #0
	function host_work
	ret

	.balign 2048
vectors:
	.rept 8
	.balign 128
	b .
	.endr
	.balign 128
	.globl from_guest
from_guest:
	mrs x10, esr_el2
	lsr x10, x10, #26
	cmp x10, #0x16		/* hvc */
	b.eq back
	mrs x10, elr_el2
	add x10, x10, #4
	msr elr_el2, x10
	eret
	.rept 7
	.balign 128
	b .
	.endr

	.bss
	.balign 4096
	.globl stage1, stage2, host_table
stage1:	.space 4096
stage2:	.space 4096
host_table: .space 4096
	.space 4096
stack:
