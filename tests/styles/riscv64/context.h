/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What swtch() and jump.S save. */
#pragma once

#ifndef __ASSEMBLER__
struct context {
	uint64_t ra, sp, kept[12]; /* s0 to s11 */
};

static inline void first_context(struct context *context, void *stack_top, void (*start)(void))
{
	*context = (struct context){ .sp = (uintptr_t)stack_top, .ra = (uintptr_t)start + 2 };
}
#else
	.macro for_context do, at
	\do s1, 24(\at)
	\do s2, 32(\at)
	\do s3, 40(\at)
	\do s4, 48(\at)
	\do s5, 56(\at)
	\do s6, 64(\at)
	\do s7, 72(\at)
	\do s8, 80(\at)
	\do s9, 88(\at)
	\do s10, 96(\at)
	\do s11, 104(\at)
	.endm
	.macro save_context at
	sd ra, 0(\at)
	sd sp, 8(\at)
	sd s0, 16(\at)
	for_context sd, \at
	.endm
	// After s0, it is the other thread.
	.macro load_context at
	for_context ld, \at
	ld t1, 0(\at)
	ld t2, 8(\at)
	ld s0, 16(\at)
	.cfi_def_cfa t2, 0
	.cfi_register ra, t1
	mv ra, t1
	.cfi_restore ra
	mv sp, t2
	.cfi_def_cfa sp, 0
	.endm
#endif
