// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The records of one thread. A thread's file is open only while a part of it is read: there may be more threads
 * than a process may have files.
 *
 * Arguments and return values follow some records. Their size depends on types that only uftrace knows, but
 * the record after them is easily recognized.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/store.h"
#include "abi/uftrace_file.h"
#include "read/uftrace_parts.h"

#define MAX_MORE 8192		 /* bytes of arguments; uftrace has 1024 */
#define STEP 8			 /* arguments are padded to this */
#define LONG ((uint64_t)1 << 50) /* ns, 13 days: no two records of a thread are so far apart */

static uint64_t get64(const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* The buffer is no larger than a small file: there may be many. False: there is no file. */
static bool make_room(struct uftrace_thread *t)
{
	uint64_t size;

	if (store_read(t->store, t->path, NULL, 0, 0, &size) < 0)
		return false;
	if (size + 1 < t->room)
		t->room = (size_t)size + 1;
	t->data = xmalloc(t->room);
	return true;
}

/* Reads on until `want` bytes are there, or the file ends. Returns how many there are. */
static size_t fill(struct uftrace_thread *t, size_t want)
{
	ssize_t got;

	if (t->len - t->at >= want || t->ended)
		return t->len - t->at;
	if (!t->data && !make_room(t)) {
		t->ended = true;
		return 0;
	}
	memmove(t->data, t->data + t->at, t->len - t->at);
	t->offset += t->at;
	t->len -= t->at;
	t->at = 0;
	got = store_read(t->store, t->path, t->data + t->len, t->room - t->len, t->offset + t->len,
			 NULL);
	t->ended = got < (ssize_t)(t->room - t->len);
	t->len += got > 0 ? (size_t)got : 0;
	return t->len - t->at;
}

static const uint8_t *peek(const struct uftrace_thread *t)
{
	return t->data + t->at;
}

static void skip(struct uftrace_thread *t, size_t n)
{
	t->at += n;
}

/* Whether a record may follow another one in the file. */
static bool may_follow(const struct uftrace_thread *t, const uint8_t *at)
{
	uint64_t time = get64(at), word = get64(at + 8);
	uint32_t depth = uftrace_depth(word), last = uftrace_depth(t->word);

	if (!uftrace_is_record(word) || time < t->time || time - t->time > LONG)
		return false;
	switch (uftrace_type(word)) {
	case UFTRACE_ENTRY: return depth <= last + 1;
	case UFTRACE_EXIT: return depth <= last;
	default: return true;
	}
}

/* The distance to the next record, beginning at `from`. SIZE_MAX: none within `most` bytes. */
static size_t find_record(struct uftrace_thread *t, size_t from, size_t most)
{
	size_t have = fill(t, most + UFTRACE_RECORD);

	for (size_t n = from; n <= most && n + UFTRACE_RECORD <= have; n += STEP) {
		if (may_follow(t, peek(t) + n))
			return n;
	}
	return SIZE_MAX;
}

static void skip_more(struct uftrace_thread *t)
{
	size_t n = find_record(t, 0, MAX_MORE);

	if (n == SIZE_MAX && t->ended && t->len - t->at <= MAX_MORE)
		n = t->len - t->at; /* the last record's */
	if (n != SIZE_MAX)
		skip(t, n);
}

/* Skips what is no record. */
static int damage(struct uftrace_thread *t, uint64_t *from, uint64_t *bytes)
{
	*from = t->offset + t->at;
	for (bool found = false; !found && t->len > t->at;) {
		size_t n = find_record(t, STEP, MAX_MORE), have = t->len - t->at;

		found = n != SIZE_MAX;
		if (!found)
			n = t->ended || have < MAX_MORE ? have : MAX_MORE;
		skip(t, n);
		if (!found)
			fill(t, 1);
	}
	*bytes = t->offset + t->at - *from;
	return -1;
}

int uftrace_ready(struct uftrace_thread *t, uint64_t *from, uint64_t *bytes, const char **why)
{
	size_t have;

	if (t->ready)
		return 1;
	have = fill(t, UFTRACE_RECORD);
	if (!have)
		return 0;
	if (have < UFTRACE_RECORD) {
		*from = t->offset + t->at;
		*bytes = have;
		*why = "the file ends inside a record";
		skip(t, have);
		return -1;
	}
	if (!uftrace_is_record(get64(peek(t) + 8))) {
		*why = "this is not a record: its magic number is wrong";
		return damage(t, from, bytes);
	}
	t->time = get64(peek(t));
	t->word = get64(peek(t) + 8);
	t->ready = true;
	return 1;
}

void uftrace_take(struct uftrace_thread *t)
{
	t->ready = false;
	skip(t, UFTRACE_RECORD);
	if (uftrace_has_more(t->word))
		skip_more(t);
}

/* Calls */

static bool is_open(const struct uftrace_thread *t, uint64_t function)
{
	for (size_t i = 0; i < t->nr; i++) {
		if (t->open[i] == function)
			return true;
	}
	return false;
}

/* Callers that were entered before the recording, or in a part that is lost. */
static void add_unknown(struct uftrace_thread *t, size_t depth)
{
	GROW(t->open, depth + 1, t->cap);
	while (t->nr < depth)
		t->open[t->nr++] = 0;
}

static bool enter(struct uftrace_thread *t, uint32_t depth, uint64_t function,
		  struct event_call *call)
{
	add_unknown(t, depth);
	t->open[t->nr++] = function;
	call->function = function;
	call->leave = false;
	uftrace_take(t);
	return true;
}

static bool leave(struct uftrace_thread *t, uint32_t depth, uint64_t function,
		  struct event_call *call)
{
	bool known = t->nr > depth && t->open[depth];

	call->function = known ? t->open[depth] : function;
	call->leave = true;
	add_unknown(t, depth);
	t->nr = depth;
	uftrace_take(t);
	/* Otherwise it would seem to end an outer call of the same function. */
	return known || !is_open(t, function);
}

bool uftrace_take_call(struct uftrace_thread *t, struct event_call *call)
{
	bool exits = uftrace_type(t->word) == UFTRACE_EXIT;
	uint32_t depth = uftrace_depth(t->word);

	/* Exits are missing after a longjmp(), or in a part that is lost. */
	while (t->nr > depth + (exits ? 1 : 0)) {
		call->function = t->open[--t->nr];
		call->leave = true;
		if (call->function)
			return true;
	}
	return exits ? leave(t, depth, uftrace_address(t->word), call)
		     : enter(t, depth, uftrace_address(t->word), call);
}

void uftrace_release_thread(struct uftrace_thread *t)
{
	free(t->path);
	free(t->data);
	free(t->open);
}
