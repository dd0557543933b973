/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AArch64, QEMU's virt machine: an address space that is only named, then guest_main(). */
	.section .boot, "ax"
	.global _start
_start:
	ldr x0, =pml4
	msr ttbr0_el1, x0
	ldr x0, =stack_top
	mov sp, x0
	mov x29, xzr
	mov x30, xzr
	mov w0, #0
	bl guest_main
	ldr w0, =0x84000008 /* PSCI: off */
	hvc #0
1:	wfi
	b 1b
	.bss
	.balign 4096
	.global pml4
pml4:	.skip 4096
	.skip 16384
stack_top:
