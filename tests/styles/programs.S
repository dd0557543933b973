// SPDX-License-Identifier: GPL-2.0-or-later
	// The programs. Not at the start of a page, where kscope would take them for kernel code.
	.section .rodata
	.macro program name
	.balign 4096
	.skip 64
	.globl user_\name, user_\name\()_end
user_\name:
	.incbin "\name\().bin"
user_\name\()_end:
	.endm
	program red
	program green
	program blue
