/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kpdata_record: walks through an Akaros kpdata stream, record by record, and skips damage. The
 * stream has no magic number and no checksum. A record is valid if its size matches the count or the
 * path inside it, and if other records follow it.
 *
 *	record = type (1 byte), size of the body (LEB128), body
 *
 *	type		body of v1		of v2		of v3
 *	1 kernel trace	time cpu n		info ...	info time pid cpu n
 *	2 user trace	time pid cpu n		info ...	as v2
 *	3 map		time addr len offset pid path
 *	4 process	time pid path
 *
 * Fields are little-endian and packed: info, time, addr, len and offset have 64 bits, pid has 32,
 * cpu and n have 16. n addresses of 64 bits follow in a trace. A path ends with a NUL.
 */
#ifndef KSCOPE_READ_KPDATA_RECORD_H
#define KSCOPE_READ_KPDATA_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/le.h"

enum kp_type { KP_KERNEL = 1, KP_USER, KP_MAP, KP_PROCESS };
enum kp_version { KP_ANY, KP_V1, KP_V2, KP_V3, KP_VERSIONS };

#define KP_NO_PID UINT32_MAX
#define KP_MAX_PATH 4096

struct kp_record {
	enum kp_type type;
	size_t size;	/* including the type and size fields */
	size_t body;	/* offset of the body in the record */
	size_t content; /* offset of the addresses or the path in the record */
	uint64_t time, info;
	uint32_t pid; /* KP_NO_PID: the record has none */
	uint16_t cpu, nr;
	uint64_t addr, len, offset;
	unsigned votes; /* with KP_ANY: a bit for each version whose layout fits, if n > 0 */
};

enum kp_result { KP_GOOD, KP_BAD, KP_CUT, KP_END };

/*
 * Parses the record at the start of [data, data+have). KP_CUT: it takes *need bytes to decide.
 * KP_BAD: *why is the reason, and record->size the size in the record, or 0. With KP_ANY a trace may
 * have any version; then only type, size and votes are set.
 */
enum kp_result kp_parse(const uint8_t *data, size_t have, enum kp_version version,
			struct kp_record *record, size_t *need, const char **why);

/*
 * Where the bytes come from. peek() returns the bytes at `offset`, at least `want` if the stream has
 * that many. It may set a window, which stays valid until its next call; bytes inside the window
 * need no call.
 */
struct kp_bytes {
	const uint8_t *(*peek)(struct kp_bytes *bytes, uint64_t offset, size_t want, size_t *have);
	void *ctx;
	const uint8_t *window; /* bytes from window_offset */
	uint64_t window_offset;
	size_t window_len;
};

/* The part of the window that starts at `offset`; NULL: none. */
static inline const uint8_t *kp_window(const struct kp_bytes *bytes, uint64_t offset, size_t *have)
{
	uint64_t at = offset - bytes->window_offset; /* before the window this wraps */

	*have = at < bytes->window_len ? bytes->window_len - (size_t)at : 0;
	return *have ? bytes->window + at : NULL;
}

static inline const uint8_t *kp_peek(struct kp_bytes *bytes, uint64_t offset, size_t want,
				     size_t *have)
{
	const uint8_t *data = kp_window(bytes, offset, have);

	return *have >= want ? data : bytes->peek(bytes, offset, want, have);
}

struct kp_step {
	enum kp_result what; /* KP_GOOD: a record; KP_BAD: a damaged stretch; or KP_END */
	uint64_t bytes;	     /* distance to the next step */
	struct kp_record record;
	const char *why; /* reason for KP_BAD */

	bool knows_next; /* `next` is the record after this one */
	struct kp_record next;
};

/*
 * Examines the bytes at `offset`. The caller zeroes `step` before the first call, and advances
 * `offset` by step->bytes before each further one. The same bytes always give the same steps,
 * wherever the walk starts. `trusted`: an earlier walk found an intact record here, so kp_step() does
 * not check whether it is cut off.
 */
void kp_step(struct kp_bytes *bytes, uint64_t offset, enum kp_version version, bool trusted,
	     struct kp_step *step);

static inline uint64_t kp_u64(const uint8_t *at)
{
	return le64_at(at);
}

#endif
