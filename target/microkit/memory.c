// SPDX-License-Identifier: MIT
/* memory: the two functions that compilers call without being asked. Systems with a C library have their own. */
#include <stddef.h>

__attribute__((weak)) void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

__attribute__((weak)) void *memset(void *to, int byte, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((volatile char *)to)[i] = (char)byte;
	return to;
}
