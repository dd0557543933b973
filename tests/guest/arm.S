/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arm, QEMU's virt machine. */
	.arch armv7-a
	.arch_extension virt
	.section .boot, "ax"
	.global _start
_start:
	ldr r0, =pml4
	mcr p15, 0, r0, c2, c0, 0
	ldr sp, =stack_top
	mov r11, #0
	mov r0, #0
	bl guest_main
	ldr r0, =0x84000008 /* PSCI: off */
	hvc #0
1:	wfi
	b 1b
	.bss
	.balign 16384
	.global pml4
pml4:	.skip 4096
	.skip 16384
stack_top:
