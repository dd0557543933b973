/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What swtch() and jump.S save. */
#pragma once

#define CONTEXT_SP 48
#define CONTEXT_PC 56

#ifndef __ASSEMBLER__
struct context {
	uint64_t kept[6]; /* rbp, rbx, r12 to r15 */
	uint64_t sp, pc;
};

static inline void first_context(struct context *context, void *stack_top, void (*start)(void))
{
	*context = (struct context){ .sp = (uintptr_t)stack_top - 16, .pc = (uintptr_t)start + 1 };
}
#endif
