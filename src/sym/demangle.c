// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Readable C++ and Rust names, by libiberty. The rules are those of addr2line -C: parameters
 * are shown, the hash at the end of a Rust name is not, a clone of the compiler (.isra.0, .cold)
 * is marked as such.
 */
#ifdef HAVE_LIBIBERTY
/* libiberty.h, included by that header, has an xrealloc of its own, which nothing here calls. */
#define xrealloc libiberty_xrealloc
#include <libiberty/demangle.h>
#undef xrealloc
#endif

#include "sym/internal.h"

#ifdef HAVE_LIBIBERTY

#include <setjmp.h>
#include <string.h>

#include "base/buf.h"

/*
 * A few hundred bytes of mangled name can stand for gigabytes (a substitution of substitutions),
 * and libiberty cannot be told to stop. It keeps its state on the stack when it calls back (but
 * for a punycode identifier of Rust, which is lost then), so it can be left with longjmp.
 */
#define OUTPUT_MAX ((size_t)64 << 10)
/*
 * libiberty refuses names over 1024 bytes unless told otherwise, as its stack use follows the
 * length. Templates make longer ones; this much stays below 2 MB of stack.
 */
#define INPUT_MAX 4096

struct sink {
	struct buf text;
	jmp_buf too_long;
};

static void collect(const char *part, size_t len, void *arg)
{
	struct sink *sink = arg;

	if (sink->text.len + len > OUTPUT_MAX)
		longjmp(sink->too_long, 1);
	buf_add(&sink->text, part, len);
}

static int unlimited(const char *name)
{
	return strlen(name) > DEMANGLE_RECURSION_LIMIT / 2 ? DMGL_NO_RECURSE_LIMIT : 0;
}

static bool run(struct sink *sink, const char *name)
{
	const int flags = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(sink->too_long))
		return false;
	if (rust_demangle_callback(name, flags, collect, sink))
		return true;
	buf_clear(&sink->text);
	return cplus_demangle_v3_callback(name, flags | unlimited(name), collect, sink) != 0;
}

const char *demangle(struct arena *arena, const char *name)
{
	struct sink sink = { 0 };
	const char *plain = NULL;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || strlen(name) > INPUT_MAX)
		return NULL;
	if (run(&sink, name) && sink.text.len)
		plain = arena_strndup(arena, sink.text.data, sink.text.len);
	buf_release(&sink.text);
	return plain;
}

#else

const char *demangle(struct arena *arena, const char *name)
{
	(void)arena;
	(void)name;
	return NULL;
}

#endif
