/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RISC-V, in S-mode without translation: from the firmware to guest_main(), interrupts, user mode. */
	.section .boot, "ax"
	.global _start
_start:
	la sp, stack_top
	la t0, trap
	csrw stvec, t0
	csrw sscratch, zero
	li s0, 0
	li ra, 0
	j guest_main

	.macro registers instruction
	.set place, 8
	.irp name, ra, t0, t1, t2, a0, a1, a2, a3, a4, a5, a6, a7, t3, t4, t5, t6
	\instruction \name, place(sp)
	.set place, place + 8
	.endr
	.endm

	/* sscratch has the kernel's stack pointer in user mode, 0 otherwise. */
	.text
	.balign 4
trap:
	csrrw sp, sscratch, sp
	bnez sp, 1f
	csrrw sp, sscratch, zero
	addi sp, sp, -144
	registers sd
	call trap_c
	registers ld
	addi sp, sp, 144
	sret
1:	addi sp, sp, -144
	registers sd
	csrr t0, scause
	li t1, 8
	beq t0, t1, leave
	call trap_c
	registers ld
	addi sp, sp, 144
	csrrw sp, sscratch, sp
	sret

	.global run_user
run_user:
	addi sp, sp, -112
	sd ra, 0(sp)
	.set place, 8
	.irp name, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
	sd \name, place(sp)
	.set place, place + 8
	.endr
	csrw sepc, a0
	li t0, 0x120		/* from user mode, with interrupts on */
	csrc sstatus, t0
	li t0, 0x20
	csrs sstatus, t0
	csrw sscratch, sp
	la sp, user_stack_top
	sret

leave:
	csrw sscratch, zero
	addi sp, sp, 144
	ld ra, 0(sp)
	.set place, 8
	.irp name, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
	ld \name, place(sp)
	.set place, place + 8
	.endr
	addi sp, sp, 112
	ret

	.bss
	.balign 16
	.skip 16384
stack_top:
	.skip 4096
user_stack_top:
