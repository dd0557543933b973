// SPDX-License-Identifier: GPL-2.0-or-later
// From PVH's 32-bit entry to guest_main, with the first GB and the local APIC at their addresses.
	.section .note.pvh, "a", @note
	.long 4, 4, 18
	.asciz "Xen"
	.long boot_entry

	.section .text.boot, "ax"
	.code32
	.globl boot_entry
	.type boot_entry, @function
boot_entry:
	.cfi_startproc
	.cfi_undefined 16 // rip
	mov $boot_pml4, %eax
	mov %eax, %cr3
	mov $0x20, %eax		// physical address extension
	mov %eax, %cr4
	mov $0xc0000080, %ecx	// EFER: long mode
	rdmsr
	or $0x100, %eax
	wrmsr
	mov $0x80000001, %eax	// paging, protected mode
	mov %eax, %cr0
	lgdt boot_gdt_pointer
	ljmp $8, $boot_64
	.cfi_endproc
	.size boot_entry, . - boot_entry

	.code64
	.type boot_64, @function
boot_64:
	.cfi_startproc
	.cfi_undefined rip
	mov $16, %eax
	mov %eax, %ss
	mov $BOOT_STACK_END, %rsp
	xor %ebp, %ebp
	call guest_main
	ud2
	.cfi_endproc
	.size boot_64, . - boot_64

	.data
	.balign 16
boot_gdt:
	.quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdt_pointer:
	.word boot_gdt_pointer - boot_gdt - 1
	.long boot_gdt
	.balign 4096
boot_pml4:
	.quad boot_pdpt + 3
	.fill 511, 8, 0
boot_pdpt:
	.quad 0x83		// large pages of 1 GB
	.quad 0, 0, 0xc0000093
	.fill 508, 8, 0
