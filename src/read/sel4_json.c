// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_json: samples.json of the seL4 profiler's host tool, all generations. The mapping may come
 * before or after the samples or from another file, numbers may be strings, and keys come in any
 * order. The reader keeps only one sample in memory.
 */
#include "read/sel4_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/store.h"
#include "read/sel4.h"

#define MAPPING_TAIL ((size_t)64 << 10)
#define FARTHEST ((size_t)1 << 20) /* bytes of damage at the start, before the samples */

enum state { AT_START, AT_TOP, AT_SAMPLES, AT_END };
enum step { STEP_ON, STEP_SAMPLE, STEP_FAILED };

struct sel4_json {
	struct sel4 sel4;
	enum state state;
	bool bare;		      /* a list of samples without an object around it */
	char field[16];		      /* the field that failed to parse, for messages */
	bool has_ip, has_cpu, has_nr; /* fields of the current sample */
	bool again;  /* a document starts inside a sample: netconn connected twice */
	bool listed; /* the list of samples has started */
	struct buf text;
};

static bool key_is(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && !memcmp(key, name, len);
}

/* The first weeks of the first generation wrote pd_mappings. */
static bool is_mapping(const char *key, size_t len)
{
	return key_is(key, len, "elf_tcb_mappings") || key_is(key, len, "pd_mappings");
}

/* The position after the mapping's key, or NULL. */
static const uint8_t *find_mapping(const uint8_t *data, size_t len)
{
	static const char *const keys[] = { "\"elf_tcb_mappings\"", "\"pd_mappings\"" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const uint8_t *found = memmem(data, len, keys[i], strlen(keys[i]));

		if (found)
			return found + strlen(keys[i]);
	}
	return NULL;
}

static int sel4_json_probe(const uint8_t *head, size_t len)
{
	size_t i = 0;

	while (i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i == len || (head[i] != '{' && head[i] != '['))
		return 0;
	if (find_mapping(head, len) || memmem(head, len, "\"samples\"", 9))
		return 72;
	return head[i] == '[' && memmem(head, len, "\"ip\"", 4) ? 40 : 0;
}

/* After a damaged start, the list of samples without its bracket, or a sample; NULL: none. */
static const uint8_t *find_samples(const uint8_t *data, const uint8_t *end)
{
	const uint8_t *list = memmem(data, (size_t)(end - data), "\"samples\"", 9);
	const uint8_t *ip = memmem(data, (size_t)(end - data), "\"ip\"", 4);
	struct json js = { .at = list ? list + 9 : end, .end = end };

	if (list && (!ip || list < ip) && json_take(&js, ':') && json_take(&js, '['))
		return js.at;
	return ip ? memrchr(data, '{', (size_t)(ip - data)) : NULL;
}

/* The keys are usual words: there must be several of them. */
static int sel4_json_search(const uint8_t *data, size_t len)
{
	if (find_mapping(data, len))
		return find_samples(data, data + len) ? 90 : 0;
	return memmem(data, len, "\"period\"", 8) && memmem(data, len, "\"pid\"", 5) &&
			       find_samples(data, data + len)
		       ? 80
		       : 0;
}

static bool parse_ips(struct json *js, struct sel4_sample *sample)
{
	sample->nr_ips = 0;
	if (!json_take(js, '['))
		return js->cut ? false : json_fail(js, "expected a list");
	while (!json_take(js, ']')) {
		uint64_t ip;

		if (js->cut || !json_address(js, &ip))
			return false;
		if (sample->nr_ips < SEL4_MAX_DEPTH)
			sample->chain[++sample->nr_ips] = ip;
		json_take(js, ',');
	}
	return true;
}

static bool parse_ip(struct json *js, uint64_t *ip)
{
	const uint8_t *start = js->at;

	if (!json_address(js, ip))
		return false;
	if (!ip_is_marker(*ip))
		return true;
	js->at = start;
	return json_fail(js, SEL4_NO_ADDRESS);
}

static bool parse_field(struct json *js, struct sel4_json *p, const char *key, size_t len)
{
	struct sel4_sample *sample = &p->sel4.sample;

	if (json_null(js) || js->cut)
		return !js->cut;
	if (key_is(key, len, "ips"))
		return parse_ips(js, sample);
	if (key_is(key, len, "ip")) {
		p->has_ip = true;
		return parse_ip(js, &sample->chain[0]);
	}
	if (key_is(key, len, "pid") || key_is(key, len, "pd"))
		return json_u32(js, &sample->pid);
	if (key_is(key, len, "time") || key_is(key, len, "timestamp"))
		return json_u64(js, &sample->time);
	if (key_is(key, len, "cpu")) {
		p->has_cpu = true;
		return json_u32(js, &sample->cpu);
	}
	if (key_is(key, len, "period"))
		return json_u64(js, &sample->period);
	if (key_is(key, len, "nr")) {
		p->has_nr = true;
		return json_u64(js, &sample->nr);
	}
	if (key_is(key, len, "samples") || is_mapping(key, len)) {
		p->again = true;
		return json_fail(js, "another document begins inside the list of samples");
	}
	return json_skip(js);
}

static void reset(struct sel4_sample *sample)
{
	sample->chain[0] = sample->time = sample->period = sample->nr = 0;
	sample->pid = sample->cpu = 0;
	sample->nr_ips = 0;
}

static bool parse_sample(struct json *js, struct sel4_json *p)
{
	struct sel4_sample *sample = &p->sel4.sample;
	const char *key;
	size_t len;

	reset(sample);
	p->field[0] = '\0';
	p->has_ip = p->has_cpu = p->has_nr = p->again = false;
	if (!json_take(js, '{'))
		return js->cut ? false : json_fail(js, "expected a sample object");
	while (!json_take(js, '}')) {
		if (js->cut || !json_key(js, &p->text, &key, &len))
			return false;
		if (!parse_field(js, p, key, len)) {
			snprintf(p->field, sizeof(p->field), "%.*s: ", len > 12 ? 12 : (int)len,
				 key);
			return false;
		}
		json_take(js, ',');
	}
	/* A tool that omits zeros omits cpu 0, too: a cpu without nr means nr was never written. */
	if (p->has_cpu && !p->has_nr)
		sample->nr = SEL4_NOT_COUNTED;
	return p->has_ip || json_fail(js, "sample has no ip");
}

static bool parse_mappings(struct json *js, struct sel4 *s, struct buf *name)
{
	uint32_t pid;

	if (!json_take(js, '{'))
		return js->cut ? false : json_fail(js, "the mapping must be an object");
	while (!json_take(js, '}')) {
		if (js->cut || !json_string(js, name))
			return false;
		if (!json_take(js, ':'))
			return js->cut ? false : json_fail(js, "expected ':'");
		if (!json_u32(js, &pid))
			return false;
		sel4_map(s, name->data, name->len, pid);
		json_take(js, ',');
	}
	return true;
}

static bool parse_top(struct json *js, struct sel4_json *p)
{
	const char *key;
	size_t len;

	if (json_take(js, '}')) {
		p->state = AT_END;
		return true;
	}
	if (js->cut || json_take(js, ','))
		return !js->cut;
	if (!json_key(js, &p->text, &key, &len))
		return false;
	if (is_mapping(key, len))
		return parse_mappings(js, &p->sel4, &p->text);
	if (!key_is(key, len, "samples"))
		return json_skip(js);
	if (!json_take(js, '['))
		return js->cut ? false : json_fail(js, "'samples' must be a list");
	p->state = AT_SAMPLES;
	p->listed = true;
	return true;
}

static enum step parse_step(struct json *js, struct sel4_json *p)
{
	switch (p->state) {
	case AT_START:
		p->bare = json_peek(js) == '[';
		p->state = p->bare ? AT_SAMPLES : AT_TOP;
		p->listed |= p->bare;
		return json_take(js, p->bare ? '[' : '{') ? STEP_ON : STEP_FAILED;
	case AT_TOP: return parse_top(js, p) ? STEP_ON : STEP_FAILED;
	case AT_SAMPLES:
		if (json_take(js, ',') || js->cut)
			return js->cut ? STEP_FAILED : STEP_ON;
		if (json_take(js, ']')) {
			p->state = p->bare ? AT_END : AT_TOP;
			return STEP_ON;
		}
		return parse_sample(js, p) ? STEP_SAMPLE : STEP_FAILED;
	default: return STEP_FAILED;
	}
}

/* The mapping that is somewhere in these bytes, if any. */
static void take_mapping(const uint8_t *data, size_t len, struct sel4 *s, struct buf *name)
{
	struct json js = { .at = find_mapping(data, len), .end = data + len };

	if (js.at && json_take(&js, ':'))
		parse_mappings(&js, s, name);
}

/*
 * If the mapping is not at the start of the file, look for it at the end: maps should come before
 * the samples. Works only for an uncompressed file, which can seek.
 */
static int mapping_at_end(struct reader *r, struct sel4 *found)
{
	struct sel4_json *p = r->priv;
	uint64_t size = r->in->size, start = in_offset(r->in);
	const uint8_t *tail;
	size_t have;

	if (!size || r->in->unpack)
		return 0;
	if (in_seek(r->in, size > MAPPING_TAIL ? size - MAPPING_TAIL : 0, &r->err) < 0)
		return -1;
	tail = in_peek(r->in, MAPPING_TAIL, &have);
	take_mapping(tail, have, found, &p->text);
	return in_seek(r->in, start, &r->err);
}

static int sel4_json_open(struct reader *r)
{
	struct sel4_json *p = r->priv;
	struct sel4 late = { 0 };
	size_t have;
	const uint8_t *head = in_peek(r->in, 1, &have);
	bool first = find_mapping(head, have);
	int ret = first ? 0 : mapping_at_end(r, &late);

	if (ret == 0)
		ret = sel4_open(r, &p->sel4, first || late.nr_mappings);
	for (size_t i = 0; i < late.nr_mappings; i++)
		sel4_map(&p->sel4, late.mappings[i].elf, strlen(late.mappings[i].elf),
			 late.mappings[i].pid);
	sel4_close(&late);
	return ret;
}

/* The input ends inside the document. */
static int cut_short(struct reader *r, struct event *ev, size_t rest)
{
	struct sel4_json *p = r->priv;
	uint64_t offset = in_offset(r->in);
	bool in_sample = p->state == AT_SAMPLES && rest;

	in_skip(r->in, rest);
	p->state = AT_END;
	return reader_damage(r, ev, offset, in_sample, rest, "%s",
			     in_sample ? "truncated sample"
				       : "truncated: closing brackets are missing");
}

/* Where to resume after damage at js->at: after the object if it is well-formed, or at the next. */
static const uint8_t *behind_damage(const uint8_t *start, const struct json *js)
{
	struct json skip = { .at = start, .end = js->end };
	const uint8_t *from = js->at > start ? js->at : start + 1, *next;

	if (json_peek(&skip) == '{' && json_skip(&skip))
		return skip.at;
	next = memchr(from, '{', (size_t)(js->end - from));
	return next ? next : js->end;
}

/* The start is damaged: goes on with the samples. 0: there are none. */
static int begin_at_samples(struct reader *r, struct event *ev, uint64_t at, const char *what)
{
	struct sel4_json *p = r->priv;
	size_t have, bytes;
	const uint8_t *data = in_peek(r->in, FARTHEST, &have), *found;
	bool lost;

	found = find_samples(data, data + have);
	if (!found)
		return 0;
	bytes = (size_t)(found - data);
	take_mapping(data, bytes, &p->sel4, &p->text);
	lost = !bytes || found[-1] != '['; /* none if the list begins here */
	in_skip(r->in, bytes);
	p->state = AT_SAMPLES;
	p->listed = true;
	return reader_damage(r, ev, at, lost, bytes, "%s; continuing at the next samples", what);
}

/* Reports damage and skips it. Damage before the samples is an error if no samples follow. */
static int damaged(struct reader *r, struct event *ev, const uint8_t *start, const struct json *js)
{
	struct sel4_json *p = r->priv;
	uint64_t at = in_offset(r->in) + (uint64_t)(js->at - start);
	const char *what = js->wrong ? js->wrong : "not JSON";
	size_t bytes;

	if (p->again) {
		p->again = false;
		p->state = AT_START;
		return reader_damage(r, ev, at, 0, 0, "%s", what);
	}
	if (p->state == AT_TOP && p->listed) {
		/* An extra bracket ended the list: treat the objects that follow as samples. */
		const uint8_t *next = memchr(js->at, '{', (size_t)(js->end - js->at));

		bytes = (size_t)((next ? next : js->end) - start);
		in_skip(r->in, bytes);
		p->state = AT_SAMPLES;
		return reader_damage(r, ev, at, 0, bytes,
				     "unexpected data after the list of samples");
	}
	if (p->state != AT_SAMPLES && begin_at_samples(r, ev, at, what))
		return 1;
	if (p->state != AT_SAMPLES)
		return err_at(&r->err, ERR_INPUT, r->in->path, at, "%s", what);
	bytes = (size_t)(behind_damage(start, js) - start);
	in_skip(r->in, bytes);
	return reader_damage(r, ev, at, 1, bytes, "%s%s", p->field, what);
}

/* After the document. 0: end of input, 1: damage in *ev, 2: another document starts, -1: r->err. */
static int at_end(struct reader *r, struct event *ev)
{
	struct sel4_json *p = r->priv;
	struct json js = { 0 };
	size_t have = 1;
	uint64_t offset;

	while (have) {
		js.at = in_peek(r->in, 1, &have);
		js.end = js.at + have;
		js.cut = false;
		json_peek(&js);
		in_skip(r->in, have - (size_t)(js.end - js.at));
		if (!js.cut)
			break;
	}
	if (!have && !p->listed && !r->nr_damaged)
		return err_at(&r->err, ERR_INPUT, r->in->path, in_offset(r->in),
			      "the file ends without a 'samples' list");
	if (!have)
		return sel4_end(r, &p->sel4), 0;
	if (*js.at == '{' || *js.at == '[') {
		p->state = AT_START;
		return 2;
	}
	offset = in_offset(r->in);
	return reader_damage(r, ev, offset, 0, in_skip(r->in, UINT64_MAX),
			     "unexpected data after the document");
}

static int sel4_json_next(struct reader *r, struct event *ev)
{
	struct sel4_json *p = r->priv;
	size_t want = 1;

	while (!sel4_tell(&p->sel4, ev)) {
		struct json js = { 0 };
		enum state state = p->state;
		enum step step;
		size_t have;

		if (state == AT_END) {
			int ret = at_end(r, ev);

			if (ret < 2)
				return ret;
			continue;
		}
		const uint8_t *start = in_peek(r->in, want, &have);

		if (!have && !in_offset(r->in))
			return 0;
		js.at = start;
		js.end = start + have;
		step = parse_step(&js, p);
		if (step != STEP_FAILED) {
			uint64_t offset = in_offset(r->in);

			in_skip(r->in, (uint64_t)(js.at - start));
			want = 1;
			if (step == STEP_SAMPLE) {
				sel4_event(&p->sel4, offset, ev);
				return 1;
			}
			continue;
		}
		p->state = state;
		if (!js.cut)
			return damaged(r, ev, start, &js);
		if (have < want || have >= IN_MAX_PEEK)
			return cut_short(r, ev, have);
		want = have * 2;
	}
	return 1;
}

static void sel4_json_close(struct reader *r)
{
	struct sel4_json *p = r->priv;

	sel4_close(&p->sel4);
	buf_release(&p->text);
}

int sel4_json_mappings(struct store *store, const char *path, struct sel4 *s, struct err *err)
{
	struct sel4_json p = { .state = AT_START };
	struct json js = { 0 };
	enum step step = STEP_ON;
	struct in in;
	const uint8_t *start;
	size_t have;

	if (store_in(store, &in, path, err) < 0)
		return -1;
	p.sel4 = *s;
	start = in_peek(&in, IN_MAX_PEEK, &have);
	js.at = start;
	js.end = start + have;
	while (p.state != AT_END && p.state != AT_SAMPLES && step == STEP_ON)
		step = parse_step(&js, &p);
	*s = p.sel4;
	if (step == STEP_FAILED)
		err_at(err, ERR_INPUT, path, (uint64_t)(js.at - start), "%s",
		       js.wrong ? js.wrong
		       : js.cut ? "truncated file"
				: "not JSON");
	buf_release(&p.text);
	in_close(&in);
	return err->code ? -1 : 0;
}

const struct reader_ops read_sel4_json = {
	.name = "sel4-json",
	.about = "seL4 profiler samples.json, all generations",
	.probe = sel4_json_probe,
	.header = true,
	.search = sel4_json_search,
	.options = SEL4_OPTIONS(struct sel4_json),
	.priv_size = sizeof(struct sel4_json),
	.open = sel4_json_open,
	.next = sel4_json_next,
	.close = sel4_json_close,
};
