// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfscript: the output of perf script, of any version and with most of its options. A sample is
 * a first line with the task and the time, a line for each frame, and an empty line; without a
 * call chain all of it is on one line. The reader skips other lines inside a sample (source lines,
 * registers, dumps). With -F any part of the first line may be missing, or all of it.
 *
 * Frames are identified by name and binary. The reader ignores their addresses: some versions of
 * perf print them relative to the file and others do not, and the text does not say which.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "model/frame.h"
#include "model/source.h"
#include "read/perfscript_branch.h"
#include "read/perfscript_line.h"

#define MAX_FRAMES 65536

struct place { /* a parsed frame */
	uint32_t name, binary;
	uint8_t flags;
	bool inlined;
};

enum stage { STAGE_READ, STAGE_SOURCE, STAGE_COMM, STAGE_SAMPLE, STAGE_BRANCH };

struct perfscript {
	struct start now;     /* the current sample */
	uint32_t comm, event; /* its handles; 0: missing */
	bool is_bare;	      /* no time and no event: a sample only if frames follow */
	bool open, ended;
	bool tabs; /* the sample's frames are indented with tabs */
	uint64_t bare_at;
	enum stage stage;
	struct place *places; /* one for each distinct text; [0] is unused */
	size_t nr_places, cap_places;
	struct hash place_index;
	uint32_t *chain; /* places */
	size_t nr, cap_chain;
	uint64_t *ips;
	size_t cap_ips;
	struct hash comms;   /* pid and tid to the comm last emitted */
	struct hash sources; /* event names whose source was emitted */
	struct buf text, bare;
	struct script_branches branches;
	bool is_branch; /* the current line */
};

/* ---- frames ---- */

static uint32_t intern(struct reader *r, struct span s)
{
	return str_intern(r->frames->strings, s.at, span_len(s));
}

static uint32_t unknown_name(struct reader *r, struct span binary)
{
	struct perfscript *p = r->priv;

	if (!span_len(binary))
		return str_intern_z(r->frames->strings, "[unknown]");
	if (*binary.at == '[')
		return intern(r, binary);
	buf_clear(&p->text);
	buf_addc(&p->text, '[');
	buf_add(&p->text, binary.at, span_len(binary));
	buf_addc(&p->text, ']');
	return str_intern(r->frames->strings, p->text.data, p->text.len);
}

uint32_t script_name(struct reader *r, const struct frame_parts *parts)
{
	if (!span_len(parts->name) ||
	    (span_len(parts->name) == 9 && span_begins(parts->name, "[unknown]")))
		return unknown_name(r, parts->binary);
	return intern(r, parts->name);
}

static struct place read_place(struct reader *r, struct span text)
{
	struct frame_parts parts = script_frame_parts(text);
	struct place place = {
		.flags = parts.kernel ? FRAME_KERNEL : 0,
		.inlined = parts.inlined,
	};

	place.name = script_name(r, &parts);
	if (span_len(parts.binary) && !span_begins(parts.binary, "[unknown]"))
		place.binary = intern(r, parts.binary);
	return place;
}

static void add_frame(struct reader *r, struct span text)
{
	struct perfscript *p = r->priv;
	struct hash_key key = { hash_bytes(text.at, span_len(text)), span_len(text) };
	uint32_t *at;

	if (p->nr >= MAX_FRAMES)
		return;
	at = hash_at(&p->place_index, key);
	if (!*at) {
		*at = (uint32_t)p->nr_places + 1;
		GROW(p->places, p->nr_places + 2, p->cap_places);
		p->places[++p->nr_places] = read_place(r, text);
	}
	GROW(p->chain, p->nr + 1, p->cap_chain);
	p->chain[p->nr++] = *at;
}

/* ---- lines ---- */

static const struct {
	const char *title, *key;
} titles[] = {
	{ "# hostname :", "hostname" },
	{ "# os release :", "osrelease" },
	{ "# arch :", "arch" },
	{ "# cmdline :", "cmdline" },
	{ "# cpudesc :", "cpudesc" },
	{ "# nrcpus avail :", "nrcpus" },
	{ "# perf version :", "recorder" },
};

static bool take_title(struct perfscript *p, struct span line, struct event *ev)
{
	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++) {
		struct span value;

		if (!span_begins(line, titles[i].title))
			continue;
		value = span_trim((struct span){ line.at + strlen(titles[i].title), line.end });
		buf_clear(&p->text);
		buf_add(&p->text, value.at, span_len(value));
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ titles[i].key, p->text.data };
		return true;
	}
	return false;
}

static void set_task(struct reader *r, struct first_line *first)
{
	struct perfscript *p = r->priv;

	p->comm = span_len(first->comm) ? intern(r, first->comm) : 0;
	if (first->start.tid == NO_TASK && p->comm)
		first->start.pid = first->start.tid =
			p->comm; /* keeps tasks of different names apart */
	p->now = first->start;
}

static void begin_sample(struct reader *r, struct first_line *first)
{
	struct perfscript *p = r->priv;
	struct span text;

	set_task(r, first);
	p->event = span_len(first->event) ? intern(r, first->event) : 0;
	p->is_bare = false;
	p->open = true;
	p->nr = 0;
	if (script_tail_frame(first, &text))
		add_frame(r, text);
}

/* -F without time and event: the line may be anything. A frame must follow. */
static void begin_bare(struct reader *r, struct span line, uint64_t offset)
{
	struct perfscript *p = r->priv;
	struct first_line first;

	script_bare_start(line, &first);
	begin_sample(r, &first);
	p->is_bare = true;
	p->bare_at = offset;
	buf_clear(&p->bare);
	buf_add(&p->bare, line.at, span_len(line));
}

static int not_bare(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;

	p->open = false;
	return reader_damage(r, ev, p->bare_at, 0, p->bare.len, "not perf script output: %.60s",
			     p->bare.data);
}

/* Ends the current sample. False: there is none, or it is not a sample. */
static bool end_sample(struct perfscript *p)
{
	bool counts = p->open && !p->now.skip;

	p->open = false;
	if (counts)
		p->stage = STAGE_SOURCE;
	return counts;
}

static void anonymous_sample(struct perfscript *p)
{
	p->now = script_no_start;
	p->comm = p->event = 0;
	p->is_bare = false;
	p->open = true;
	p->nr = 0;
}

/* Registers, physical addresses and the like may look like frames, but are indented differently. */
static void take_frame(struct reader *r, struct span line, struct span text)
{
	struct perfscript *p = r->priv;
	bool tab = *line.at == '\t';

	if (!p->nr)
		p->tabs = tab;
	if (p->tabs == tab)
		add_frame(r, text);
}

/* A branch has no other lines. */
static bool take_branch(struct reader *r, struct first_line *first)
{
	struct perfscript *p = r->priv;

	set_task(r, first);
	if (!script_branch(r, &p->branches, first))
		return false;
	p->is_branch = true;
	p->stage = STAGE_COMM;
	return true;
}

/*
 * Takes one line. 1: *ev is filled, 0: continue. A line that begins a sample while another is open
 * ends that one; *again then asks the caller to read the line again afterwards.
 */
static int take_line(struct reader *r, struct span line, uint64_t offset, bool *again,
		     struct event *ev)
{
	struct perfscript *p = r->priv;
	struct first_line first;
	struct span text;

	*again = false;
	if (line.at < line.end && *line.at == '#')
		return take_title(p, line, ev);
	if (p->open && p->is_bare && !p->nr && !script_usual_frame(line)) {
		*again = true;
		return not_bare(r, ev);
	}
	if (!span_len(span_trim(line))) {
		end_sample(p);
		return 0;
	}
	if (script_timed_start(line, &first) ||
	    (!(p->open && script_frame(line, &text)) && script_start(line, &first))) {
		if (end_sample(p))
			*again = true;
		else if (!take_branch(r, &first))
			begin_sample(r, &first);
		return 0;
	}
	if (!p->open && script_error(&p->branches, line)) {
		p->stage = STAGE_BRANCH;
		return 0;
	}
	/* Outside of a sample, a word of hexadecimal digits at the start may be a comm. */
	if ((p->open || is_blank(*line.at)) && script_frame(line, &text)) {
		if (!p->open)
			anonymous_sample(p);
		take_frame(r, line, text);
	} else if (!p->open) {
		begin_bare(r, line, offset);
	}
	return 0;
}

/* ---- events ---- */

static int tell_source(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;
	uint32_t *known = hash_at(&p->sources, (struct hash_key){ p->event, 1 });

	if (*known)
		return 0;
	*known = p->event + 1;
	ev->kind = EVENT_SOURCE;
	ev->source.id = p->event + 1;
	source_from_name(&ev->source,
			 p->event ? str_text(r->frames->strings, p->event) : "samples");
	return 1;
}

static int tell_comm(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;
	uint32_t *known;

	if (!p->comm || p->now.tid == NO_TASK)
		return 0;
	known = hash_at(&p->comms, (struct hash_key){ p->now.pid, p->now.tid });
	if (*known == p->comm)
		return 0;
	*known = p->comm;
	/* perf prints :PID for a task without a name. */
	if (*str_text(r->frames->strings, p->comm) == ':')
		return 0;
	ev->kind = EVENT_COMM;
	ev->time = p->now.time;
	ev->pid = p->now.pid;
	ev->tid = p->now.tid;
	ev->comm.comm = str_text(r->frames->strings, p->comm);
	return 1;
}

/* An inlined function has the binary of its caller, which comes after it in the chain. */
static void tell_sample(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;
	uint32_t binary = 0;
	uint8_t flags = 0;

	GROW(p->ips, p->nr + 1, p->cap_ips);
	for (size_t i = p->nr; i-- > 0;) {
		struct place place = p->places[p->chain[i]];

		if (!place.inlined) {
			binary = place.binary;
			flags = place.flags;
		}
		p->ips[i] = frame_named(r->frames, place.name, binary, flags);
	}
	ev->kind = EVENT_SAMPLE;
	ev->time = p->now.time;
	ev->cpu = p->now.cpu;
	ev->pid = p->now.pid;
	ev->tid = p->now.tid;
	ev->sample = (struct event_sample){
		.ips = p->ips,
		.nr = (uint32_t)p->nr,
		.source = p->event + 1,
		.weight = p->now.period,
		.context = IP_NAMED,
	};
}

static int tell(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;

	if (p->stage == STAGE_SOURCE) {
		p->stage = STAGE_COMM;
		if (tell_source(r, ev))
			return 1;
	}
	if (p->stage == STAGE_COMM) {
		p->stage = p->is_branch ? STAGE_BRANCH : STAGE_SAMPLE;
		p->is_branch = false;
		if (tell_comm(r, ev))
			return 1;
	}
	if (p->stage == STAGE_BRANCH) {
		*ev = p->branches.queue[p->branches.next++];
		if (p->branches.next == p->branches.nr)
			p->stage = STAGE_READ;
		return 1;
	}
	p->stage = STAGE_READ;
	tell_sample(r, ev);
	return 1;
}

static int perfscript_next(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;

	for (;;) {
		uint64_t offset = in_offset(r->in);
		struct span line;
		size_t len;
		bool again;
		int ret;

		if (p->stage != STAGE_READ)
			return tell(r, ev);
		if (p->ended)
			return 0;
		if (!text_line(r->in, &line.at, &len)) {
			p->ended = true;
			if (p->open && p->is_bare && !p->nr)
				return not_bare(r, ev);
			end_sample(p);
			continue;
		}
		line.end = line.at + len;
		ret = take_line(r, line, offset, &again, ev);
		if (again && in_seek(r->in, offset, &r->err) < 0)
			return -1;
		if (ret)
			return ret;
	}
}

static void perfscript_close(struct reader *r)
{
	struct perfscript *p = r->priv;

	free(p->places);
	free(p->chain);
	free(p->ips);
	hash_release(&p->place_index);
	hash_release(&p->comms);
	hash_release(&p->sources);
	buf_release(&p->text);
	buf_release(&p->bare);
	script_branches_release(&p->branches);
}

static struct span next_line(struct span *rest)
{
	const char *newline = memchr(rest->at, '\n', span_len(*rest));
	struct span line = { rest->at, newline ? newline : rest->end };

	rest->at = newline ? newline + 1 : rest->end;
	return line;
}

static int perfscript_probe(const uint8_t *head, size_t len)
{
	struct span rest = { (const char *)head, (const char *)head + len };
	bool titled = span_begins(rest, "# ========");
	struct first_line first;

	while (rest.at < rest.end) {
		struct span line = next_line(&rest), second, text;

		if (memchr(line.at, '\0', span_len(line)))
			return 0;
		if (!span_len(span_trim(line)) || *line.at == '#')
			continue;
		if (script_is_error(line)) {
			titled = true;
			continue;
		}
		if (script_timed_start(line, &first))
			return 72;
		/* Anything else is weak evidence: a frame has to follow. */
		second = next_line(&rest);
		if (script_usual_frame(line) || script_usual_frame(second))
			return 40;
		return script_start(line, &first) && second.at < second.end &&
				       is_blank(*second.at) && script_frame(second, &text)
			       ? 40
			       : 0;
	}
	return titled ? 48 : 0;
}

const struct reader_ops read_perfscript = {
	.name = "perfscript",
	.about = "output of perf script",
	.probe = perfscript_probe,
	.priv_size = sizeof(struct perfscript),
	.next = perfscript_next,
	.close = perfscript_close,
};
