/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tiny_guest: the smallest guest that a recording can be tested with. A multiboot kernel for
 * qemu-system-i386: says "ready" on the serial port and works, three parts in `heavy` and one in
 * `light`. With -append exit it says "done" after some rounds, and ends QEMU with status 33 by
 * isa-debug-exit at 0xf4. Each round takes 64 bytes from `take`; every second one gives them back.
 */
	.set MAGIC, 0x1badb002
	.section .multiboot, "a"
	.align 4
	.long MAGIC, 0, -MAGIC

	.text
	.macro function name
	.globl \name
	.type \name, @function
\name:
	.endm
	.macro end name
	.size \name, . - \name
	.endm

function _start
	movl $stack_top, %esp
	movl $ready, %esi
	call say
	movl 16(%ebx), %edi		/* the command line: "FILE exit" */
	call wants_exit
	movl %eax, %ebp			/* rounds left; 0: no end */
1:	call round
	testl %ebp, %ebp
	jz 1b
	decl %ebp
	jnz 1b
	movl $done, %esi
	call say
	movb $16, %al
	outb %al, $0xf4
2:	hlt
	jmp 2b
end _start

/* edi: text. eax: 30 if it ends in "t". */
function wants_exit
	xorl %eax, %eax
1:	movb (%edi), %cl
	testb %cl, %cl
	jz 2f
	movb %cl, %dl
	incl %edi
	jmp 1b
2:	cmpb $'t', %dl
	jne 3f
	movl $30, %eax
3:	ret
end wants_exit

function say
1:	lodsb
	testb %al, %al
	jz 2f
	movw $0x3f8, %dx
	outb %al, %dx
	jmp 1b
2:	ret
end say

function round
	pushl $64
	call take
	addl $4, %esp
	incl rounds
	testl $1, rounds
	jz 1f
	pushl %eax
	call give
	addl $4, %esp
1:	call heavy
	call light
	ret
end round

function heavy
	movl $3000000, %ecx
1:	decl %ecx
	jnz 1b
	ret
end heavy

function light
	movl $1000000, %ecx
1:	decl %ecx
	jnz 1b
	ret
end light

function take
	movl next, %eax
	movl 4(%esp), %edx
	addl %edx, next
	ret
end take

function give
	nop
	ret
end give

	.section .rodata
ready:	.asciz "ready\n"
done:	.asciz "done\n"
	.data
next:	.long 0x400000
rounds:	.long 0
	.bss
	.align 16
	.skip 4096
stack_top:
