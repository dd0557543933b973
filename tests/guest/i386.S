/* SPDX-License-Identifier: GPL-2.0-or-later */
/* i386 by Multiboot. */
	.section .boot, "ax"
	.balign 4
	.long 0x1badb002, 0, -0x1badb002
	.global _start
_start:
	movl $pml4, %eax
	movl %eax, %cr3
	movl $stack_top, %esp
	xorl %ebp, %ebp
	pushl $0
	call guest_main
	movw $0xf4, %dx
	xorl %eax, %eax
	outl %eax, %dx
1:	hlt
	jmp 1b
	.bss
	.balign 4096
	.global pml4
pml4:	.skip 4096
	.skip 16384
stack_top:
