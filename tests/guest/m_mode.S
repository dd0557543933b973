// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest for traps to machine mode: RISC-V, QEMU's virt machine without firmware. An instruction in the
 * middle of a block faults, in machine mode and in user mode, and the handler skips it.
 */
	.text
	.globl _start
_start:
	la sp, stack
	la t0, handler
	csrw mtvec, t0
	li t0, -1		/* user mode may use all memory */
	csrw pmpaddr0, t0
	li t0, 0x1f
	csrw pmpcfg0, t0
	li t1, 100
1:	call machine_work
	addi t1, t1, -1
	bnez t1, 1b
	la t0, user_work
	csrw mepc, t0
	li t0, 0x1800
	csrc mstatus, t0
	mret
	.globl off
off:
	li t0, 0x100000		/* QEMU's test device: off */
	li t1, 0x5555
	sw t1, 0(t0)
1:	j 1b

	.globl machine_work
	.type machine_work, @function
machine_work:
	nop
	.globl machine_fault
machine_fault:
	.4byte 0xffffffff
	nop
	ret

	.globl user_work
	.type user_work, @function
user_work:
	nop
	.globl user_fault
user_fault:
	.4byte 0xffffffff
	nop
	ecall

	.balign 4
	.globl handler
handler:
	csrr t2, mcause
	addi t2, t2, -8
	beqz t2, off		/* ecall of user mode */
	csrr t2, mepc
	addi t2, t2, 4
	csrw mepc, t2
	mret

	.bss
	.space 4096
stack:
