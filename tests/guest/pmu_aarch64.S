/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AArch64, without translation, in EL1 or EL2: from reset to guest_main(), interrupts, user mode. */
	.section .boot, "ax"
	.global _start
_start:
	ldr x0, =stack_top
	mov sp, x0
	ldr x0, =vectors
	mrs x1, CurrentEL
	cmp x1, #2 << 2
	b.eq 1f
	msr vbar_el1, x0
	b 2f
1:	msr vbar_el2, x0
	ldr x0, =0x88000000	/* HCR: EL1 has 64 bits; TGE: traps of EL0 come here, interrupts, too */
	msr hcr_el2, x0
	isb
2:	mov x29, xzr
	mov x30, xzr
	b guest_main

	.macro vector kind
	.balign 128
	stp x0, x1, [sp, #-176]!
	mov x0, \kind
	b trap
	.endm

	.text
	.balign 2048
vectors:
	.rept 4
	vector 3
	.endr
	vector 0
	vector 1
	vector 3
	vector 3
	.balign 128
	b leave			/* svc in EL0 */
	vector 1
	vector 3
	vector 3
	.rept 4
	vector 3
	.endr

trap:
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	stp x8, x9, [sp, #64]
	stp x10, x11, [sp, #80]
	stp x12, x13, [sp, #96]
	stp x14, x15, [sp, #112]
	stp x16, x17, [sp, #128]
	stp x18, x29, [sp, #144]
	str x30, [sp, #160]
	bl trap_c
	ldr x30, [sp, #160]
	ldp x18, x29, [sp, #144]
	ldp x16, x17, [sp, #128]
	ldp x14, x15, [sp, #112]
	ldp x12, x13, [sp, #96]
	ldp x10, x11, [sp, #80]
	ldp x8, x9, [sp, #64]
	ldp x6, x7, [sp, #48]
	ldp x4, x5, [sp, #32]
	ldp x2, x3, [sp, #16]
	ldp x0, x1, [sp], #176
	eret

	.global run_user
run_user:
	stp x29, x30, [sp, #-96]!
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	stp x23, x24, [sp, #48]
	stp x25, x26, [sp, #64]
	stp x27, x28, [sp, #80]
	ldr x1, =user_stack_top
	msr sp_el0, x1
	mrs x1, CurrentEL
	cmp x1, #2 << 2
	b.eq 1f
	msr elr_el1, x0
	msr spsr_el1, xzr
	eret
1:	msr elr_el2, x0
	msr spsr_el2, xzr
	eret

leave:
	ldp x19, x20, [sp, #16]
	ldp x21, x22, [sp, #32]
	ldp x23, x24, [sp, #48]
	ldp x25, x26, [sp, #64]
	ldp x27, x28, [sp, #80]
	ldp x29, x30, [sp], #96
	ret

	.bss
	.balign 16
	.skip 16384
stack_top:
	.skip 4096
user_stack_top:
