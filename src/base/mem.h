/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mem: allocation that does not fail (out of memory ends the program with a message and ERR_OUTPUT), growing arrays,
 * and an arena for objects that live as long as their owner.
 */
#ifndef KSCOPE_BASE_MEM_H
#define KSCOPE_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Ends the program. */
__attribute__((noreturn)) void mem_ran_out(void); /* a part of its type, as libdw wants it */
/*
 * Treats a SIGSEGV or SIGABRT when no address space is left as out of memory: a library did not check malloc(), or the
 * stack could not grow.
 */
void mem_watch_libraries(void);
/* After an unexplained failure of a library that needed so many bytes: ends the program if they are not left. */
void mem_check(uint64_t size);

void *xmalloc(size_t size);
void *xcalloc(size_t nr, size_t size);
void *xrealloc(void *old, size_t nr, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

size_t grown_capacity(size_t have, size_t want);

/* Makes room for `want` elements in the array `ptr`, whose capacity is `cap`. */
#define GROW(ptr, want, cap)                                            \
	do {                                                            \
		if ((size_t)(want) > (size_t)(cap)) {                   \
			(cap) = grown_capacity((cap), (want));          \
			(ptr) = xrealloc((ptr), (cap), sizeof(*(ptr))); \
		}                                                       \
	} while (0)

struct arena {
	struct arena_block *head;
	uint8_t *at;
	size_t left;
};

/* Aligned to 8 bytes, not zeroed. arena_release() frees everything at once. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strndup(struct arena *arena, const char *s, size_t len);
void arena_release(struct arena *arena);

#endif
