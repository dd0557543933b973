// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_json: the samples.json of the seL4 profiler's host tool, of all generations: the mapping in
 * the file, before or after the samples, or elsewhere; numbers as numbers or strings; keys in any
 * order. One sample at a time, whatever the size of the file.
 */
#include "read/sel4_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "read/sel4.h"

enum state { AT_START, AT_TOP, AT_SAMPLES, AT_END };
enum step { STEP_ON, STEP_SAMPLE, STEP_FAILED };

struct sel4_json {
	struct sel4 sel4;
	enum state state;
	bool bare; /* a list of samples without the object around it */
	char field[16]; /* the last one looked at: for messages */
	struct buf text;
};

static int sel4_json_probe(const uint8_t *head, size_t len)
{
	size_t i = 0;

	while (i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i == len || (head[i] != '{' && head[i] != '['))
		return 0;
	if (memmem(head, len, "\"elf_tcb_mappings\"", 18) || memmem(head, len, "\"samples\"", 9))
		return 72;
	return head[i] == '[' && memmem(head, len, "\"ip\"", 4) ? 40 : 0;
}

static int sel4_json_open(struct reader *r)
{
	return sel4_open(r, r->priv);
}

static bool key_is(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && !memcmp(key, name, len);
}

static bool parse_ips(struct json *js, struct sel4_sample *sample)
{
	sample->nr_ips = 0;
	if (!json_take(js, '['))
		return js->cut ? false : json_fail(js, "expected a list");
	while (!json_take(js, ']')) {
		uint64_t ip;

		if (js->cut || !json_u64(js, &ip))
			return false;
		if (sample->nr_ips < SEL4_MAX_DEPTH)
			sample->chain[++sample->nr_ips] = ip;
		json_take(js, ',');
	}
	return true;
}

static bool parse_field(struct json *js, struct sel4_sample *sample, const char *key, size_t len)
{
	if (key_is(key, len, "ips"))
		return parse_ips(js, sample);
	if (key_is(key, len, "ip"))
		return json_u64(js, &sample->chain[0]);
	if (key_is(key, len, "pid") || key_is(key, len, "pd"))
		return json_u32(js, &sample->pid);
	if (key_is(key, len, "time") || key_is(key, len, "timestamp"))
		return json_u64(js, &sample->time);
	if (key_is(key, len, "cpu"))
		return json_u32(js, &sample->cpu);
	if (key_is(key, len, "period"))
		return json_u64(js, &sample->period);
	if (key_is(key, len, "nr"))
		return json_u64(js, &sample->nr);
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
	if (!json_take(js, '{'))
		return js->cut ? false : json_fail(js, "expected a sample, an object");
	while (!json_take(js, '}')) {
		if (js->cut || !json_raw_string(js, &key, &len))
			return false;
		if (!json_take(js, ':'))
			return js->cut ? false : json_fail(js, "expected ':'");
		if (!parse_field(js, sample, key, len)) {
			snprintf(p->field, sizeof(p->field), "%.*s: ",
				 len > 12 ? 12 : (int)len, key);
			return false;
		}
		json_take(js, ',');
	}
	return true;
}

static bool parse_mappings(struct json *js, struct sel4 *s, struct buf *name)
{
	uint32_t pid;

	if (!json_take(js, '{'))
		return js->cut ? false : json_fail(js, "'elf_tcb_mappings' must be an object");
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
	if (!json_raw_string(js, &key, &len))
		return false;
	if (!json_take(js, ':'))
		return js->cut ? false : json_fail(js, "expected ':'");
	if (key_is(key, len, "elf_tcb_mappings"))
		return parse_mappings(js, &p->sel4, &p->text);
	if (!key_is(key, len, "samples"))
		return json_skip(js);
	if (!json_take(js, '['))
		return js->cut ? false : json_fail(js, "'samples' must be a list");
	p->state = AT_SAMPLES;
	return true;
}

static enum step parse_step(struct json *js, struct sel4_json *p)
{
	switch (p->state) {
	case AT_START:
		p->bare = json_peek(js) == '[';
		p->state = p->bare ? AT_SAMPLES : AT_TOP;
		return json_take(js, p->bare ? '[' : '{') ? STEP_ON : STEP_FAILED;
	case AT_TOP:
		return parse_top(js, p) ? STEP_ON : STEP_FAILED;
	case AT_SAMPLES:
		if (json_take(js, ',') || js->cut)
			return js->cut ? STEP_FAILED : STEP_ON;
		if (json_take(js, ']')) {
			p->state = p->bare ? AT_END : AT_TOP;
			return STEP_ON;
		}
		return parse_sample(js, p) ? STEP_SAMPLE : STEP_FAILED;
	default:
		return STEP_FAILED;
	}
}

/* The input ends in the middle of something. */
static int cut_short(struct reader *r, struct event *ev, size_t rest)
{
	struct sel4_json *p = r->priv;
	uint64_t offset = in_offset(r->in);
	bool in_sample = p->state == AT_SAMPLES && rest;

	in_skip(r->in, rest);
	p->state = AT_END;
	return reader_damage(r, ev, offset, in_sample, rest, "the file is cut short %s",
			     in_sample ? "in a sample" : "before its closing brackets");
}

/*
 * Not what it should be. A whole object of the wrong content is one lost sample; after anything
 * else the next object is where it goes on.
 */
static int damaged(struct reader *r, struct event *ev, const uint8_t *start, const struct json *js)
{
	struct sel4_json *p = r->priv;
	struct json skip = { .at = start, .end = js->end };
	uint64_t offset = in_offset(r->in), at = offset + (uint64_t)(js->at - start);
	const char *what = js->wrong ? js->wrong : "not JSON";
	size_t bytes;

	if (p->state != AT_SAMPLES)
		return err_at(&r->err, ERR_INPUT, r->in->path, at, "%s", what);
	if (!json_skip(&skip)) {
		const uint8_t *from = js->at > start ? js->at : start + 1;
		const uint8_t *next = memchr(from, '{', (size_t)(js->end - from));

		skip.at = next ? next : js->end;
	}
	bytes = (size_t)(skip.at - start);
	in_skip(r->in, bytes);
	return reader_damage(r, ev, at, 1, bytes, "%s%s", p->field, what);
}

static int sel4_json_next(struct reader *r, struct event *ev)
{
	struct sel4_json *p = r->priv;
	size_t want = 1;

	while (!sel4_tell(r, &p->sel4, ev)) {
		struct json js = { 0 };
		enum state state = p->state;
		enum step step;
		size_t have;

		if (state == AT_END)
			return sel4_end(r, &p->sel4), 0;
		const uint8_t *start = in_peek(r->in, want, &have);

		js.at = start;
		js.end = start + have;
		step = parse_step(&js, p);
		if (step != STEP_FAILED) {
			in_skip(r->in, (uint64_t)(js.at - start));
			want = 1;
			if (step == STEP_SAMPLE) {
				sel4_event(r, &p->sel4, ev);
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

int sel4_json_mappings(const char *path, struct sel4 *s, struct err *err)
{
	struct sel4_json p = { .state = AT_START };
	struct json js = { 0 };
	struct in in;
	const uint8_t *start;
	size_t have;

	if (in_open(&in, path, err) < 0)
		return -1;
	p.sel4 = *s;
	start = in_peek(&in, IN_MAX_PEEK, &have);
	js.at = start;
	js.end = start + have;
	while (p.state != AT_END && p.state != AT_SAMPLES && parse_step(&js, &p) == STEP_ON)
		;
	*s = p.sel4;
	if (js.wrong || js.cut)
		err_at(err, ERR_INPUT, path, (uint64_t)(js.at - start), "%s",
		       js.wrong ? js.wrong : "the file is cut short");
	buf_release(&p.text);
	in_close(&in);
	return err->code ? -1 : 0;
}

const struct reader_ops read_sel4_json = {
	.name = "sel4-json",
	.about = "seL4 profiler samples.json, all generations",
	.probe = sel4_json_probe,
	.priv_size = sizeof(struct sel4_json),
	.open = sel4_json_open,
	.next = sel4_json_next,
	.close = sel4_json_close,
};
