/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What swtch() and jump.S save. */
#pragma once

struct context {
	uint64_t ra, sp, kept[12]; /* s0 to s11 */
};

static inline void first_context(struct context *context, void *stack_top, void (*start)(void))
{
	*context = (struct context){ .sp = (uintptr_t)stack_top, .ra = (uintptr_t)start + 2 };
}
