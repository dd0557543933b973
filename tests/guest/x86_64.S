/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64 by Multiboot: one page table that maps the first 2 MB, then guest_main(), then the end. */
	.code32
	.section .boot, "ax"
	.balign 4
	.long 0x1badb002, 0, -0x1badb002
	.global _start
_start:
	movl $pml4, %eax
	movl %eax, %cr3
	movl $(pdpt + 3), pml4
	movl $(pd + 3), pdpt
	movl $0x83, pd
	movl %cr4, %eax
	orl $0x20, %eax
	movl %eax, %cr4
	movl $0xc0000080, %ecx
	rdmsr
	orl $0x100, %eax
	wrmsr
	movl %cr0, %eax
	orl $0x80000001, %eax
	movl %eax, %cr0
	lgdt gdt_pointer
	ljmp $8, $long_mode
	.code64
long_mode:
	movl $stack_top, %esp
	xorl %ebp, %ebp
	xorl %edi, %edi
	call guest_main
	movw $0xf4, %dx
	xorl %eax, %eax
	outl %eax, %dx
1:	hlt
	jmp 1b
	.balign 8
gdt:	.quad 0, 0x00af9a000000ffff
gdt_pointer:
	.word 15
	.long gdt
	.bss
	.balign 4096
	.global pml4
pml4:	.skip 4096
pdpt:	.skip 4096
pd:	.skip 4096
	.skip 16384
stack_top:
