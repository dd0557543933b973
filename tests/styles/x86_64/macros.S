// SPDX-License-Identifier: GPL-2.0-or-later
// push and pop, with rules.
	.macro save register
	push %\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endm
	.macro restore register
	pop %\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endm
