// SPDX-License-Identifier: GPL-2.0-or-later
// From PVH's 32-bit entry, and the 16-bit entry of a secondary cpu, to kernel_main.
#include "arch.h"

	.section .note.pvh, "a", @note
	.long 4, 4, 18
	.asciz "Xen"
	.long boot_entry - KERNEL_OFFSET

	.section .text.boot, "ax"
	.code32
	.globl boot_entry
boot_entry:			// ebx: PVH start info
	cli
	cld
	mov %ebx, %edi
	jmp to_64_bits
ap_entry:
	mov $KERNEL_DATA, %eax
	mov %eax, %ds
	xor %edi, %edi
to_64_bits:
	mov $(boot_pml4 - KERNEL_OFFSET), %eax
	mov %eax, %cr3
	mov $0x20, %eax		// physical address extension
	mov %eax, %cr4
	mov $0xc0000080, %ecx	// EFER: long mode
	rdmsr
	or $0x100, %eax
	wrmsr
	mov $0x80000001, %eax	// paging, protected mode
	mov %eax, %cr0
	lgdt boot_gdt_pointer - KERNEL_OFFSET
	ljmp $KERNEL_CODE, $(low - KERNEL_OFFSET)

	.code64
low:
	movabs $high, %rax
	jmp *%rax
	.type high, @function
high:
	.cfi_startproc
	.cfi_undefined rip
	xor %eax, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov boot_stack(%rip), %rsp
	xor %ebp, %ebp
	call kernel_main
	.cfi_endproc
	.size high, . - high

	// Copied to TRAMPOLINE: the entry of a secondary cpu.
	.section .rodata
	.code16
	.globl trampoline, trampoline_end
trampoline:
	cli
	xor %ax, %ax
	mov %ax, %ds
	lgdtl TRAMPOLINE + 2f - trampoline
	mov %cr0, %eax
	or $1, %eax
	mov %eax, %cr0
	ljmpl $FLAT_CODE, $(ap_entry - KERNEL_OFFSET)
	.balign 4
2:	.word boot_gdt_end - boot_gdt - 1
	.long boot_gdt - KERNEL_OFFSET
trampoline_end:

	.data
	.balign 16
boot_gdt:
	.quad 0
	.quad 0x00af9b000000ffff	// KERNEL_CODE
	.quad 0x00cf93000000ffff	// KERNEL_DATA
	.quad 0x00cf9b000000ffff	// 32 bits
boot_gdt_end:
	.set FLAT_CODE, 0x18
boot_gdt_pointer:
	.word boot_gdt_end - boot_gdt - 1
	.long boot_gdt - KERNEL_OFFSET
	.globl boot_stack
	.balign 8
boot_stack:
	.quad stacks + STACK_SIZE

	// The first GB, identity-mapped and at KERNEL_OFFSET; above that the HPET and the APIC.
	.balign 4096
	.globl boot_pml4
boot_pml4:
	.quad boot_pdpt_low - KERNEL_OFFSET + 3
	.fill 510, 8, 0
	.quad boot_pdpt - KERNEL_OFFSET + 3
boot_pdpt_low:
	.quad boot_pd - KERNEL_OFFSET + 3
	.fill 511, 8, 0
boot_pdpt:
	.fill 510, 8, 0
	.quad boot_pd - KERNEL_OFFSET + 3
	.quad boot_pd_devices - KERNEL_OFFSET + 3
boot_pd:
	.set page, 0
	.rept 512
	.quad page + 0x83
	.set page, page + 0x200000
	.endr
boot_pd_devices:
	.fill 502, 8, 0
	.quad 0xfec00000 + 0x93
	.quad 0xfee00000 + 0x93
	.fill 8, 8, 0
