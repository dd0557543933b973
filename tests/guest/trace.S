// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest for traces: i386, no paging. Between `begin` and `end` is everything that makes counting
 * instructions hard: calls and loops, faults in the middle of a block, traps that are meant, string
 * instructions, devices, and timer interrupts that come anywhere. With -icount the time stamp counter
 * counts instructions; their number goes to port 0xe9 in hexadecimal.
 */
	.section .boot, "a"
	.align 4
	.long 0x1badb002, 0, -0x1badb002

	.text
	.globl _start
_start:
	cli
	mov $stack, %esp
	lgdt gdt_pointer
	ljmp $8, $1f
1:	mov $16, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	lidt idt_pointer
	mov $0, %edi
	mov $on_divide, %eax
	call set_gate
	mov $6, %edi
	mov $on_undefined, %eax
	call set_gate
	mov $0x20, %edi
	mov $on_timer, %eax
	call set_gate
	mov $0x80, %edi
	mov $on_system, %eax
	call set_gate
	/* The interrupt controller: vectors from 0x20, only the timer. */
	mov $0x11, %al
	out %al, $0x20
	mov $0x20, %al
	out %al, $0x21
	mov $4, %al
	out %al, $0x21
	mov $1, %al
	out %al, $0x21
	mov $0xfe, %al
	out %al, $0x21
	/* The timer: every 84 us. */
	mov $0x34, %al
	out %al, $0x43
	mov $100, %al
	out %al, $0x40
	mov $0, %al
	out %al, $0x40
	sti

	.globl begin
begin:
	rdtsc
	mov %eax, %esi
	mov $2000, %ebp
round:
	call work
	call faults
	call strings
	call devices
	dec %ebp
	jnz round
	.globl end
end:
	rdtsc
	sub %esi, %eax
	mov $8, %ecx
1:	rol $4, %eax
	push %eax
	and $15, %eax
	mov digits(%eax), %al
	out %al, $0xe9
	pop %eax
	loop 1b
	mov $0, %al
	out %al, $0xf4
2:	hlt
	jmp 2b

	.globl work
	.type work, @function
work:
	mov $100, %ecx
1:	call leaf
	dec %ecx
	jnz 1b
	mov $leaf, %eax
	call *%eax
	jmp leaf
	.globl leaf
	.type leaf, @function
leaf:
	mov $5, %edx
1:	dec %edx
	jnz 1b
	ret

	.globl faults
	.type faults, @function
faults:
	mov $1, %eax
	xor %ecx, %ecx
	xor %edx, %edx
	nop
	div %ecx	/* in the middle of a block; the handler goes on behind it */
	nop
	int $0x80
	nop
	ud2
	nop
	ret

	.globl strings
	.type strings, @function
strings:
	push %esi
	push %edi
	mov $space, %edi
	mov $20, %ecx
	mov $0, %al
	rep stosb
	mov $space, %esi
	mov $space + 64, %edi
	mov $7, %ecx
	rep movsl
	pop %edi
	pop %esi
	ret

	.globl devices
	.type devices, @function
devices:
	nop
	in $0x61, %al	/* QEMU leaves a block at a device and goes on in another */
	nop
	nop
	in $0x61, %al
	nop
	ret

on_divide:
	addl $2, (%esp)
	iret
on_undefined:
	addl $2, (%esp)
	iret
on_system:
	push %eax
	call leaf
	pop %eax
	iret
on_timer:
	push %eax
	push %edx
	call leaf
	mov $0x20, %al
	out %al, $0x20
	pop %edx
	pop %eax
	iret

/* Handler eax for vector edi. */
set_gate:
	lea idt(, %edi, 8), %edi
	mov %ax, (%edi)
	movw $8, 2(%edi)
	movw $0x8e00, 4(%edi)
	shr $16, %eax
	mov %ax, 6(%edi)
	ret

	.data
digits:	.ascii "0123456789abcdef"
	.align 8
gdt:	.quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdt_pointer:
	.word 23
	.long gdt
idt_pointer:
	.word 2047
	.long idt
	.bss
	.align 16
idt:	.space 2048
space:	.space 256
	.space 4096
stack:
