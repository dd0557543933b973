/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What swtch() and jump.S save. */
#pragma once

struct context {
	uint64_t kept[11], pc, sp; /* x19 to x29 */
};

static inline void first_context(struct context *context, void *stack_top, void (*start)(void))
{
	*context = (struct context){ .sp = (uintptr_t)stack_top, .pc = (uintptr_t)start + 4 };
}
