// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads memory that may not be there, on machines with an MMU. */
#include "kernel.h"

/* The sums cannot overflow: `size` is compared first. */
static bool is_inside(uintptr_t from, size_t size, uintptr_t start, size_t length)
{
	return size <= length && from - start <= length - size;
}

/* An address space has one page for user code, which may read all of it. */
static bool user_may_read(uintptr_t from, size_t size)
{
	const struct work *work = current()->work;

	return work && work->program && is_inside(from, size, USER_TEXT, USER_SIZE);
}

/* The kernel's code, data and stacks are one piece of memory, and all of it is mapped. */
static bool kernel_may_read(uintptr_t from, size_t size)
{
	return is_inside(from, size, (uintptr_t)kernel_start, (size_t)(kernel_end - kernel_start));
}

bool read_checked(void *to, uintptr_t from, size_t size, bool user)
{
	const volatile uint64_t *words = (const volatile uint64_t *)from;

	if (!(user ? user_may_read(from, size) : kernel_may_read(from, size)))
		return false;
	if (size == 16 &&
	    ((uintptr_t)to | from) % 8 == 0) { /* what a profiler reads for each frame */
		((uint64_t *)to)[0] = words[0];
		((uint64_t *)to)[1] = words[1];
		return true;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
	return true;
}
