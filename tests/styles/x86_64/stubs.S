// SPDX-License-Identifier: GPL-2.0-or-later
// Where the cpu enters the kernel.
	.text
	.balign 16
	.globl trap_stubs
	.type trap_stubs, @function
trap_stubs:			// one for each vector, 16 bytes each
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	.set vector, 0
	.rept 256
	.balign 16
	.if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17
	.cfi_def_cfa rsp, 48	// the cpu has pushed an error code
	.else
	.cfi_def_cfa rsp, 40
	push $0
	.cfi_adjust_cfa_offset 8
	.endif
	push $vector
	.cfi_adjust_cfa_offset 8
	jmp trap_entry
	.set vector, vector + 1
	.endr
	.cfi_endproc
	.size trap_stubs, . - trap_stubs
