/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU loads everything to where it runs: there is no flash to copy data from. */
#include "arch.h"

ENTRY(boot_entry)
PHDRS
{
	text PT_LOAD FLAGS(5);
	data PT_LOAD FLAGS(6);
	bss PT_LOAD FLAGS(6);
	psram PT_LOAD FLAGS(6);
	note PT_NOTE FLAGS(4);
}
SECTIONS
{
	. = CODE_START;
	.text : { *(.vectors) *(.text .text.*) } :text
	.rodata : { *(.rodata .rodata.*) } :text
	.note : { *(.note.*) } :text :note
	. = ALIGN(4096);
	.data : { *(.data .data.*) } :data
	. = PSRAM_START; /* the large ones: sched.c, heap.c */
	.psram (NOLOAD) : { *(.bss.user_memory) *(.bss.memory) } :psram
	. = RAM_START;
	/* The stack of handlers is below those of tasks, so that frame pointers lead up. */
	.bss (NOLOAD) : { *(.bss.handler_stack) *(.bss .bss.*) *(COMMON) } :bss
	/DISCARD/ : { *(.comment) *(.ARM.exidx*) *(.ARM.extab*) }
}
