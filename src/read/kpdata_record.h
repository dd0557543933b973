/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kpdata_record: one step through the bytes of an Akaros kpdata stream: the next record, or the
 * next stretch that is damaged. The stream has no magic number and no checksum; what vouches for a
 * record is that its size and the count or the path inside it agree, and that others follow it.
 *
 *	record = type (1 byte), size of the body (LEB128), body
 *
 *	type		body of v1		of v2		of v3
 *	1 kernel trace	time cpu n		info ...	info time pid cpu n
 *	2 user trace	time pid cpu n		info ...	as v2
 *	3 map		time addr len offset pid path
 *	4 process	time pid path
 *
 * info, time, addr, len and offset have 64 bits, pid 32, cpu and n 16, little-endian and packed; n
 * addresses of 64 bits follow in a trace; a path ends with a NUL.
 */
#ifndef KSCOPE_READ_KPDATA_RECORD_H
#define KSCOPE_READ_KPDATA_RECORD_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum kp_type { KP_KERNEL = 1, KP_USER, KP_MAP, KP_PROCESS };
enum kp_version { KP_ANY, KP_V1, KP_V2, KP_V3, KP_VERSIONS };

#define KP_NO_PID UINT32_MAX
#define KP_MAX_PATH 4096

struct kp_record {
	enum kp_type type;
	size_t size;	/* with type and size fields */
	size_t body;	/* where it starts, from the record's start */
	size_t content; /* where the addresses or the path are, likewise */
	uint64_t time, info;
	uint32_t pid; /* KP_NO_PID: the record has none */
	uint16_t cpu, nr;
	uint64_t addr, len, offset;
	unsigned votes; /* only with KP_ANY: a bit for each version with such traces of n > 0 */
};

enum kp_result { KP_GOOD, KP_BAD, KP_CUT, KP_END };

/*
 * The record at the start of [data, data+have). KP_CUT: more is needed to tell, *need bytes.
 * KP_BAD: *why says it in words, and record->size is what it claims to be, or 0. With KP_ANY a
 * trace may be of any version; then its other fields are not filled.
 */
enum kp_result kp_parse(const uint8_t *data, size_t have, enum kp_version version,
			struct kp_record *record, size_t *need, const char **why);

/*
 * Where the bytes come from. peek() returns those at `offset`, at least `want` of them if the
 * stream has that many. It may publish a window that stays valid until its next call: bytes inside
 * the window are then read without a call.
 */
struct kp_bytes {
	const uint8_t *(*peek)(struct kp_bytes *bytes, uint64_t offset, size_t want, size_t *have);
	void *ctx;
	const uint8_t *window; /* bytes from window_offset */
	uint64_t window_offset;
	size_t window_len;
};

/* What of the window is from `offset` on; NULL: nothing. */
static inline const uint8_t *kp_window(const struct kp_bytes *bytes, uint64_t offset, size_t *have)
{
	uint64_t at = offset - bytes->window_offset; /* wraps before the window: too large */

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
	uint64_t bytes;	     /* how far the next step is */
	struct kp_record record;
	const char *why; /* of KP_BAD */

	bool knows_next; /* the record behind this one was parsed, too */
	struct kp_record next;
};

/*
 * One step of a walk: what is at `offset`. `step` is zeroed before the first one; the next one is
 * step->bytes further. The same bytes always give the same steps, wherever a walk began. `trusted`:
 * such a walk has found a record here before, so it is not examined for one that broke off.
 */
void kp_step(struct kp_bytes *bytes, uint64_t offset, enum kp_version version, bool trusted,
	     struct kp_step *step);

static inline uint64_t kp_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

#endif
