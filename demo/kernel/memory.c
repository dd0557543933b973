// SPDX-License-Identifier: GPL-2.0-or-later
/* What compilers call to copy and to clear memory. */
#include "kernel.h"

#define NO_CALLS __attribute__((no_builtin)) /* of itself */

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);

NO_CALLS void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
}

NO_CALLS void *memset(void *to, int value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)value;
	return to;
}

#ifdef __arm__
void __aeabi_memcpy(void *to, const void *from, size_t size);
void __aeabi_memclr(void *to, size_t size);

NO_CALLS void __aeabi_memcpy(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
}

NO_CALLS void __aeabi_memclr(void *to, size_t size)
{
	memset(to, 0, size);
}

__asm__(".globl __aeabi_memcpy4, __aeabi_memcpy8, __aeabi_memclr4, __aeabi_memclr8\n"
	".thumb_set __aeabi_memcpy4, __aeabi_memcpy\n"
	".thumb_set __aeabi_memcpy8, __aeabi_memcpy\n"
	".thumb_set __aeabi_memclr4, __aeabi_memclr\n"
	".thumb_set __aeabi_memclr8, __aeabi_memclr\n");
#endif
