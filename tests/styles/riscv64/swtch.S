// SPDX-License-Identifier: GPL-2.0-or-later
	// void swtch(struct context *from, struct context *to)
	.text
	.globl swtch
	.type swtch, @function
swtch:
	.cfi_startproc
	save_context a0
	load_context a1
	ret
	.cfi_endproc
	.size swtch, . - swtch

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
