// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_feature: the features of perf.data: machine, build ids, event names. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "read/perfdata.h"

static void add_fact(struct perfdata *p, const char *key, char *value)
{
	for (size_t i = 0; i < p->nr_facts; i++) {
		if (!strcmp(p->facts[i].key, key)) {
			free(value);
			return;
		}
	}
	GROW(p->facts, p->nr_facts + 1, p->cap_facts);
	p->facts[p->nr_facts++] = (struct fact){ key, value };
}

/* ---- build ids ---- */

static struct hash_key path_key(const char *path, size_t len)
{
	return (struct hash_key){ hash_bytes(path, len), len };
}

/* Old records have no length: drop zero words at the end. Garbage there cannot be detected. */
static uint8_t trimmed_length(const uint8_t *id)
{
	uint8_t len = 20;

	while (len && !id[len - 1] && !id[len - 2] && !id[len - 3] && !id[len - 4])
		len -= 4;
	return len;
}

/* As for perf, any binary of the kernel that is not a module (x.ko, x.ko.xz, [x]) is the kernel. */
static bool is_kernel_image(const char *path, size_t len, uint16_t misc)
{
	const char *slash = memrchr(path, '/', len), *end = path + len;
	const char *name = slash ? slash + 1 : path;
	bool module = memmem(name, (size_t)(end - name), ".ko.", 4) ||
		      (end - name >= 3 && !memcmp(end - 3, ".ko", 3));

	return (misc & PERF_MISC_CPUMODE) == PERF_MISC_KERNEL && *path != '[' && !module;
}

static bool add_build_id(struct perfdata *p, struct cursor body, uint16_t misc)
{
	const uint8_t *id, *path;
	struct build_id found = { 0 };
	uint32_t *at;
	size_t len;

	cursor_u32(&body); /* pid; unused, all processes share the file */
	id = cursor_bytes(&body, 24);
	if (!id)
		return false;
	path = body.at;
	len = strnlen((const char *)path, (size_t)(body.end - path));
	found.len = misc & PERF_MISC_BUILD_ID_SIZE ? id[20] : trimmed_length(id);
	if (found.len > sizeof(found.bytes) || !len)
		return false;
	memcpy(found.bytes, id, found.len);
	at = hash_at(&p->build_id_index, path_key((const char *)path, len));
	if (!*at) {
		GROW(p->build_ids, p->nr_build_ids + 1, p->cap_build_ids);
		*at = (uint32_t)++p->nr_build_ids;
	}
	p->build_ids[*at - 1] = found;
	if (is_kernel_image((const char *)path, len, misc))
		p->kernel_build_id = found;
	return true;
}

bool header_build_id_record(struct perfdata *p, const struct record *rec)
{
	return add_build_id(p, record_body(p, rec), rec->misc);
}

const struct build_id *header_build_id(const struct perfdata *p, const char *path)
{
	uint32_t at = hash_get(&p->build_id_index, path_key(path, strlen(path)));

	return at ? &p->build_ids[at - 1] : NULL;
}

/* ---- features ---- */

/* A length, which includes the padding, and the text. NULL: damaged. The caller frees it. */
static char *feature_string(struct cursor *c)
{
	uint32_t len = cursor_u32(c);
	const uint8_t *text = cursor_bytes(c, len);

	return text ? xstrndup((const char *)text, strnlen((const char *)text, len)) : NULL;
}

static bool text_fact(struct perfdata *p, struct cursor *c, const char *key)
{
	char *text = feature_string(c);

	if (!text)
		return false;
	if (*text)
		add_fact(p, key, text);
	else
		free(text);
	return true;
}

static bool feature_build_ids(struct perfdata *p, struct cursor *c)
{
	while (c->end - c->at >= (ptrdiff_t)sizeof(struct perf_record)) {
		struct record rec = record_at(p, c->at, 0);
		const uint8_t *data = c->at;

		if (rec.size < sizeof(struct perf_record) || !cursor_bytes(c, rec.size))
			return false;
		rec.data = data;
		if (!header_build_id_record(p, &rec))
			return false;
	}
	return true;
}

static bool feature_nrcpus(struct perfdata *p, struct cursor *c)
{
	uint32_t available = cursor_u32(c);

	if (!c->bad)
		add_fact(p, "nrcpus", xasprintf("%" PRIu32, available));
	return !c->bad;
}

static bool feature_cmdline(struct perfdata *p, struct cursor *c)
{
	uint32_t nr = cursor_u32(c);
	struct buf line = { 0 };

	for (uint32_t i = 0; i < nr && !c->bad; i++) {
		char *word = feature_string(c);

		if (word && i)
			buf_addc(&line, ' ');
		if (word)
			buf_adds(&line, word);
		free(word);
	}
	if (line.len && !c->bad)
		add_fact(p, "cmdline", xstrndup(line.data, line.len));
	buf_release(&line);
	return !c->bad;
}

/* Event names. Finds an event by its ids, or by its position if it has none. */
static bool feature_event_desc(struct perfdata *p, struct cursor *c)
{
	uint32_t nr = cursor_u32(c), size = cursor_u32(c);

	for (uint32_t i = 0; i < nr && !c->bad; i++) {
		const uint8_t *raw = cursor_bytes(c, size);
		uint32_t nr_ids = cursor_u32(c);
		char *name = feature_string(c);
		size_t attr = i;

		for (uint32_t j = 0; j < nr_ids && !c->bad; j++) {
			const struct known_id *known = header_id(p, cursor_u64(c));

			if (known)
				attr = known->attr;
		}
		if (!raw || c->bad)
			free(name);
		else
			header_name(p, attr, name);
	}
	return !c->bad;
}

static bool feature_compressed(struct perfdata *p, struct cursor *c)
{
	uint32_t type;

	(void)p;
	cursor_u32(c); /* version */
	type = cursor_u32(c);
	return !c->bad && type == 1; /* zstd is the only one */
}

static bool feature_clock(struct perfdata *p, struct cursor *c)
{
	uint32_t clock;
	uint64_t wall, then;

	cursor_u32(c); /* version */
	clock = cursor_u32(c);
	wall = cursor_u64(c);
	then = cursor_u64(c);
	if (c->bad)
		return false;
	add_fact(p, "clock",
		 xasprintf("%" PRIu32 " wall %" PRIu64 " at %" PRIu64, clock, wall, then));
	return true;
}

bool feature_read(struct perfdata *p, unsigned bit, struct cursor *c)
{
	switch (bit) {
	case PERF_FEATURE_TRACING_DATA: return tracing_take(p, c->at, (size_t)(c->end - c->at));
	case PERF_FEATURE_BUILD_ID: return feature_build_ids(p, c);
	case PERF_FEATURE_HOSTNAME: return text_fact(p, c, "hostname");
	case PERF_FEATURE_OSRELEASE: return text_fact(p, c, "osrelease");
	case PERF_FEATURE_VERSION: return text_fact(p, c, "recorder");
	case PERF_FEATURE_ARCH: return text_fact(p, c, "arch");
	case PERF_FEATURE_NRCPUS: return feature_nrcpus(p, c);
	case PERF_FEATURE_CPUDESC: return text_fact(p, c, "cpudesc");
	case PERF_FEATURE_CMDLINE: return feature_cmdline(p, c);
	case PERF_FEATURE_EVENT_DESC: return feature_event_desc(p, c);
	case PERF_FEATURE_COMPRESSED: return feature_compressed(p, c);
	case PERF_FEATURE_CLOCK_DATA: return feature_clock(p, c);
	case PERF_FEATURE_SIMPLE_META_INFO: return tracing_meta_info(p, c);
	}
	return true;
}

bool feature_wanted(unsigned bit)
{
	switch (bit) {
	case PERF_FEATURE_TRACING_DATA:
	case PERF_FEATURE_BUILD_ID:
	case PERF_FEATURE_HOSTNAME:
	case PERF_FEATURE_OSRELEASE:
	case PERF_FEATURE_VERSION:
	case PERF_FEATURE_ARCH:
	case PERF_FEATURE_NRCPUS:
	case PERF_FEATURE_CPUDESC:
	case PERF_FEATURE_CMDLINE:
	case PERF_FEATURE_EVENT_DESC:
	case PERF_FEATURE_COMPRESSED:
	case PERF_FEATURE_CLOCK_DATA:
	case PERF_FEATURE_SIMPLE_META_INFO: return true;
	}
	return false;
}

bool header_feature_record(struct reader *r, const struct record *rec)
{
	struct perfdata *p = r->priv;
	struct cursor c = record_body(p, rec);
	uint64_t bit = cursor_u64(&c);

	if (c.bad)
		return false;
	/* The last record has no feature: it only marks the end. */
	if (bit >= PERF_FEATURES || c.at == c.end)
		return true;
	return feature_read(p, (unsigned)bit, &c);
}
