// SPDX-License-Identifier: GPL-2.0-or-later
// From QEMU's entry in machine mode to guest_main.
#include "mode.h"

	.section .text.boot, "ax"
	.globl boot_entry
	.type boot_entry, @function
boot_entry:
	.cfi_startproc
	.cfi_undefined ra
#ifndef MACHINE_MODE
	li t0, -1		// the supervisor may use all memory
	csrw pmpaddr0, t0
	li t0, 0x1f
	csrw pmpcfg0, t0
	li t0, 0xffff
	csrw medeleg, t0
	csrw mideleg, t0
	li t0, 7
	csrw mcounteren, t0
	li t0, 1
	slli t0, t0, 63		// the supervisor has its own timer
	csrw 0x30a, t0		// menvcfg
	li t0, 0x1800
	csrc mstatus, t0
	li t0, 0x800
	csrs mstatus, t0
	la t0, boot_mode
	csrw mepc, t0
	mret
boot_mode:
#endif
	la t0, trap_entry
	csrw CSR(tvec), t0
	la sp, BOOT_STACK_END
	li s0, 0
	jal guest_main
	unimp
	.cfi_endproc
	.size boot_entry, . - boot_entry
