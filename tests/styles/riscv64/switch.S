// SPDX-License-Identifier: GPL-2.0-or-later
	.macro for_kept do
	\do 0, ra
	\do 1, s0
	\do 2, s1
	\do 3, s2
	\do 4, s3
	\do 5, s4
	\do 6, s5
	\do 7, s6
	\do 8, s7
	\do 9, s8
	\do 10, s9
	\do 11, s10
	\do 12, s11
	.endm
	.macro save_kept slot, name
	sd \name, 8 * \slot(sp)
	.cfi_offset \name, 8 * \slot - 112
	.endm
	.macro load_kept slot, name
	ld \name, 8 * \slot(sp)
	.endm
	.macro forget_kept slot, name
	.cfi_restore \name
	.endm

	// void switch_to(void **from_sp, void *to_sp)
	.text
	.globl switch_to
	.type switch_to, @function
switch_to:
	.cfi_startproc
	addi sp, sp, -112
	.cfi_def_cfa_offset 112
	for_kept save_kept
	sd sp, (a0)
	mv sp, a1
	for_kept load_kept
	addi sp, sp, 112
	.cfi_def_cfa_offset 0
	for_kept forget_kept
	ret
	.cfi_endproc
	.size switch_to, . - switch_to

	// A new thread starts here, after the nop: the address before it, where unwinders look up a
	// return address, is then in this function.
	.globl thread_start
	.type thread_start, @function
thread_start:
	.cfi_startproc
	.cfi_undefined ra
	c.nop
	jal thread_run
	unimp
	.cfi_endproc
	.size thread_start, . - thread_start
