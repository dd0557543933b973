/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loaded at KERNEL_START, runs KERNEL_OFFSET above that. */
#include "arch.h"

ENTRY(entry)
PHDRS
{
	text PT_LOAD FLAGS(5);
	data PT_LOAD FLAGS(6);
	note PT_NOTE FLAGS(4);
}
SECTIONS
{
	. = KERNEL_OFFSET + KERNEL_START;
	kernel_start = .;
	/* The work is in one page: QEMU takes three times as long for a loop that crosses a page. */
	.text : AT(ADDR(.text) - KERNEL_OFFSET) {
		*(.text.boot)
		. = ALIGN(4096);
		*/work.c.o(.text .text.*)
		*(.text .text.*)
	} :text
	.rodata : AT(ADDR(.rodata) - KERNEL_OFFSET) { *(.rodata .rodata.*) } :text
	.note : AT(ADDR(.note) - KERNEL_OFFSET) { *(.note.*) } :text :note
	.eh_frame : AT(ADDR(.eh_frame) - KERNEL_OFFSET) { *(.eh_frame) } :text
	. = ALIGN(4096);
	.data : AT(ADDR(.data) - KERNEL_OFFSET) { *(.data .data.*) } :data
	.bss : AT(ADDR(.bss) - KERNEL_OFFSET) { *(.bss .bss.*) *(COMMON) } :data
	kernel_end = .;
	entry = boot_entry - KERNEL_OFFSET;
	/DISCARD/ : { *(.comment) }
}
