// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_tracing: names of events by their number: of tracepoints in the tracing data, a copy of the kernel's
 * descriptions, and of all events in a feature of simpleperf.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/event.h"
#include "read/perfdata.h"

static void learn(struct perfdata *p, uint32_t type, uint64_t config, const char *name, size_t len)
{
	uint32_t *at = hash_at(&p->known_names, (struct hash_key){ config, type });

	if (*at)
		return;
	GROW(p->names, p->nr_names + 1, p->cap_names);
	p->names[p->nr_names++] = xstrndup(name, len);
	*at = (uint32_t)p->nr_names;
}

const char *tracing_name(const struct perfdata *p, uint32_t type, uint64_t config)
{
	uint32_t at = hash_get(&p->known_names, (struct hash_key){ config, type });

	return at ? p->names[at - 1] : NULL;
}

void tracing_release(struct perfdata *p)
{
	for (size_t i = 0; i < p->nr_names; i++)
		free(p->names[i]);
	free(p->names);
	hash_release(&p->known_names);
	buf_release(&p->tracing);
}

/* Tracing data */

struct text {
	const char *at;
	size_t len;
};

static bool take_text(struct cursor *c, uint64_t len, struct text *text)
{
	*text = (struct text){ (const char *)cursor_bytes(c, len), (size_t)len };
	return text->at;
}

/* Up to the next 0. */
static bool take_string(struct cursor *c, struct text *text)
{
	const uint8_t *end = memchr(c->at, '\0', (size_t)(c->end - c->at));

	if (!end) {
		c->bad = true;
		return false;
	}
	take_text(c, (uint64_t)(end - c->at), text);
	cursor_bytes(c, 1);
	return true;
}

/* A part with a title. */
static bool take_part(struct cursor *c, const char *title)
{
	struct text text;

	if (!take_string(c, &text) || text.len != strlen(title) ||
	    memcmp(text.at, title, text.len) != 0)
		return false;
	return take_text(c, cursor_u64(c), &text);
}

/* The rest of the line that begins with the key; the lines before it end in *rest. */
static bool find_line(struct text *rest, const char *key, struct text *value)
{
	size_t skip = strlen(key);

	while (rest->len) {
		const char *end = memchr(rest->at, '\n', rest->len);
		size_t len = end ? (size_t)(end - rest->at) : rest->len;
		bool found = len > skip && !memcmp(rest->at, key, skip);

		*value = (struct text){ rest->at + skip, len - skip };
		rest->at += end ? len + 1 : len;
		rest->len -= end ? len + 1 : len;
		if (found)
			return true;
	}
	return false;
}

/* What /sys/kernel/tracing/events has of one event begins with its name and its number. */
static void take_format(struct perfdata *p, struct buf *name, struct text system,
			struct text format)
{
	struct text event, id;
	uint64_t number;

	if (!find_line(&format, "name: ", &event) || !find_line(&format, "ID: ", &id) ||
	    !text_u64(id.at, id.len, &number))
		return;
	buf_clear(name);
	buf_add(name, system.at, system.len);
	buf_addc(name, ':');
	buf_add(name, event.at, event.len);
	learn(p, SOURCE_TRACEPOINT, number, name->data, name->len);
}

static bool take_formats(struct perfdata *p, struct cursor *c, struct buf *name)
{
	uint32_t nr_systems = cursor_u32(c);

	for (uint32_t i = 0; i < nr_systems && !c->bad; i++) {
		struct text system, format;
		uint32_t nr;

		if (!take_string(c, &system))
			break;
		nr = cursor_u32(c);
		for (uint32_t j = 0; j < nr && !c->bad; j++) {
			if (take_text(c, cursor_u64(c), &format))
				take_format(p, name, system, format);
		}
	}
	return !c->bad;
}

/* A magic number, the version, the byte order, the size of a long and of a page; then the parts. */
static bool take_all(struct perfdata *p, struct cursor *c, struct buf *name)
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	const uint8_t *head = cursor_bytes(c, sizeof(magic)), *big;
	struct text text;
	uint32_t nr;

	if (!head || memcmp(head, magic, sizeof(magic)) != 0 || !take_string(c, &text))
		return false;
	big = cursor_bytes(c, 1);
	c->swap = p->swap != (big && (*big != 0) != p->big);
	cursor_bytes(c, 1);
	cursor_u32(c);
	if (!take_part(c, "header_page") || !take_part(c, "header_event"))
		return false;
	nr = cursor_u32(c);
	for (uint32_t i = 0; i < nr && !c->bad; i++)
		take_text(c, cursor_u64(c), &text);
	return !c->bad && take_formats(p, c, name);
}

bool tracing_take(struct perfdata *p, const uint8_t *data, size_t len)
{
	struct cursor c = { .at = data, .end = data + len };
	struct buf name = { 0 };
	bool good;

	buf_clear(&p->tracing);
	buf_add(&p->tracing, data, len);
	good = take_all(p, &c, &name);
	buf_release(&name);
	if (!good) /* perf rejects a file with such data */
		buf_clear(&p->tracing);
	return good;
}

/* What simpleperf knows of the recording */

/* name,type,config */
static void take_type(struct perfdata *p, struct text line)
{
	const char *end = line.at + line.len, *type, *config;
	uint64_t number;
	uint32_t kind;

	config = memrchr(line.at, ',', line.len);
	type = config ? memrchr(line.at, ',', (size_t)(config - line.at)) : NULL;
	if (type && type > line.at && text_u32(type + 1, (size_t)(config - type - 1), &kind) &&
	    text_u64(config + 1, (size_t)(end - config - 1), &number))
		learn(p, kind, number, line.at, (size_t)(type - line.at));
}

/* Pairs of strings. */
bool tracing_meta_info(struct perfdata *p, struct cursor *c)
{
	static const char wanted[] = "event_type_info";
	struct text key, value, line;

	while (c->at < c->end) {
		if (!take_string(c, &key) || !take_string(c, &value))
			return false;
		if (key.len != strlen(wanted) || memcmp(key.at, wanted, key.len) != 0)
			continue;
		while (find_line(&value, "", &line))
			take_type(p, line);
	}
	return true;
}
