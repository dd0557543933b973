// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/mem.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/leftover.h"

#define PAGE 4096
#define LARGE ((size_t)2 << 20)
#define ARENA_BLOCK ((size_t)64 << 10)
#define ENOUGH ((size_t)64 << 20)

struct arena_block {
	struct arena_block *next;
	uint8_t data[] __attribute__((aligned(8)));
};

/* Any thread may call this. It must not allocate: no exit(), whose handlers may. */
void mem_ran_out(void)
{
	static const char message[] =
		"kscope: out of memory (see ulimit -v, or use a machine with more memory)\n";
	ssize_t unused = write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)unused;
	leftover_remove_all();
	_exit(ERR_OUTPUT);
}

/*
 * Is there so little that malloc() must have failed, or that the stack could not grow? Only memory that can be
 * written counts for ulimit -d, and where the kernel does not overcommit.
 */
void mem_check(uint64_t size)
{
	size_t need = size < ENOUGH ? ENOUGH : size < SIZE_MAX ? (size_t)size : SIZE_MAX;
	void *room = mmap(NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		mem_ran_out();
	munmap(room, need);
}

/* A library used what malloc() did not return, or found that out with assert(). */
static void crashed(int number)
{
	mem_check(0);
	leftover_remove_all();
	signal(number, SIG_DFL);
	raise(number); /* when this handler returns */
}

void mem_watch_libraries(void)
{
	static uint8_t room[64 << 10];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	const struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_ONSTACK };
	struct sigaction now;

	/* Sanitizers have their own. */
	if (sigaction(SIGSEGV, NULL, &now) || now.sa_handler != SIG_DFL ||
	    sigaltstack(&stack, NULL))
		return;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGABRT, &action, NULL);
}

static void *or_die(void *p)
{
	if (!p)
		mem_ran_out();
	return p;
}

/*
 * Accesses to large tables are scattered: huge pages save faults and TLB misses. Mark the whole
 * block, or mremap() cannot move its pages when it grows.
 */
static void *in_large_pages(void *p, size_t size)
{
	size_t before = (uintptr_t)p % PAGE;

	if (size >= LARGE)
		madvise((uint8_t *)p - before, size + before, MADV_HUGEPAGE);
	return p;
}

void *xmalloc(size_t size)
{
	return or_die(malloc(size ? size : 1));
}

void *xcalloc(size_t nr, size_t size)
{
	return in_large_pages(or_die(calloc(nr ? nr : 1, size ? size : 1)), nr * size);
}

void *xrealloc(void *old, size_t nr, size_t size)
{
	return in_large_pages(or_die(reallocarray(old, nr ? nr : 1, size)), nr * size);
}

char *xstrdup(const char *s)
{
	return or_die(strdup(s));
}

char *xstrndup(const char *s, size_t len)
{
	return or_die(strndup(s, len));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return or_die(s);
}

size_t grown_capacity(size_t have, size_t want)
{
	size_t cap = have < 16 ? 16 : have + have / 2;

	return cap < want ? want : cap;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	void *p;

	size = (size + 7) & ~(size_t)7;
	if (size > arena->left) {
		size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
		struct arena_block *block = xmalloc(sizeof(*block) + room);

		block->next = arena->head;
		arena->head = block;
		arena->at = block->data;
		arena->left = room;
	}
	p = arena->at;
	arena->at += size;
	arena->left -= size;
	return p;
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
	char *copy = arena_alloc(arena, len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void arena_release(struct arena *arena)
{
	while (arena->head) {
		struct arena_block *next = arena->head->next;

		free(arena->head);
		arena->head = next;
	}
	memset(arena, 0, sizeof(*arena));
}
