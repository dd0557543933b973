/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What swtch() and jump.S save. */
#pragma once

#ifndef __ASSEMBLER__
struct context {
	uint64_t kept[11], pc, sp; /* x19 to x29 */
};

static inline void first_context(struct context *context, void *stack_top, void (*start)(void))
{
	*context = (struct context){ .sp = (uintptr_t)stack_top, .pc = (uintptr_t)start + 4 };
}
#else
	.macro save_context at
	stp x19, x20, [\at]
	stp x21, x22, [\at, 16]
	stp x23, x24, [\at, 32]
	stp x25, x26, [\at, 48]
	stp x27, x28, [\at, 64]
	stp x29, x30, [\at, 80]
	mov x9, sp
	str x9, [\at, 96]
	.endm
	// After x29, it is the other thread.
	.macro load_context at
	ldp x19, x20, [\at]
	ldp x21, x22, [\at, 16]
	ldp x23, x24, [\at, 32]
	ldp x25, x26, [\at, 48]
	ldp x27, x28, [\at, 64]
	ldr x9, [\at, 96]
	ldp x29, x30, [\at, 80]
	.cfi_def_cfa x9, 0
	mov sp, x9
	.cfi_def_cfa sp, 0
	.endm
#endif
