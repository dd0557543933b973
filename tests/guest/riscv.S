/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RISC-V, QEMU's virt machine without firmware: every hart comes here, in machine mode, and waits
 * until all CPUS of them are here. The last one that is done switches the machine off.
 */
#ifndef CPUS
#define CPUS 1
#endif
	.section .boot, "ax"
	.global _start
_start:
	la t0, pml4
	srli t0, t0, 12
#if __riscv_xlen == 64
	li t1, 8 << 60
#else
	li t1, 1 << 31
#endif
	or t0, t0, t1
	csrw satp, t0
	csrr a0, mhartid
	la sp, stacks
	addi t0, a0, 1
	slli t0, t0, 14
	add sp, sp, t0
	li s0, 0
	la t0, present
	li t1, 1
	amoadd.w zero, t1, (t0)
	li t1, CPUS
1:	lw t2, (t0)
	bne t1, t2, 1b
	call guest_main
	la t0, done
	li t1, 1
	amoadd.w t2, t1, (t0)
	addi t2, t2, 1
	li t1, CPUS
	bne t1, t2, 2f
	li t0, 0x100000
	li t1, 0x5555
	sw t1, (t0)
2:	wfi
	j 2b
	.bss
	.balign 4096
	.global pml4
pml4:	.skip 4096
stacks:	.skip 16384 * 8
present: .skip 4
done:	.skip 4
