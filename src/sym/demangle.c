// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Readable C++ and Rust names, by libiberty. The rules are those of addr2line -C: show parameters,
 * drop the hash at the end of a Rust name, mark compiler clones (.isra.0, .cold).
 */
#ifdef HAVE_LIBIBERTY
/* demangle.h includes libiberty.h, whose xrealloc clashes with ours. */
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
 * A few hundred bytes of mangled name can expand to gigabytes (nested substitutions), and libiberty
 * has no way to stop. It keeps its state on the stack during a callback (except for a punycode
 * identifier of Rust, which leaks), so longjmp can leave it.
 */
#define OUTPUT_MAX ((size_t)64 << 10)
/*
 * By default libiberty refuses names over 1024 bytes, because its stack use grows with the length.
 * Templates have longer names; this limit keeps the stack below 2 MB.
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
