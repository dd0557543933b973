// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfscript: the output of perf script, of any version and with most of its options. A sample is
 * a first line with the task and the time, a line for each frame, and an empty line; without a
 * call chain all of it is on one line. The reader skips other lines inside a sample if perf prints
 * such (source lines, registers, dumps); the rest is damage. With -F any part of the first line may
 * be missing, or all of it.
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
#include "read/perfscript_extra.h"
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
	bool regular;	 /* the text has first lines with a time or an event: all samples have */
	bool anonymous;	 /* the sample has no first line */
	bool tabs;	 /* the sample's frames are indented with tabs */
	bool single;	 /* its frame is in the layout of single lines */
	bool named;	 /* a frame has more than an address */
	bool from_first; /* the sample's only frame was on its first line, or took its place */
	bool has_stack;	 /* a branch stack */
	bool listing;	 /* the code of its branches (-F brstackinsn) */
	bool stacks_told;
	uint64_t bare_at;
	bool cut; /* the last line is cut, and not reported yet */
	uint64_t last_at;
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

static void open_sample(struct perfscript *p)
{
	p->open = true;
	p->is_bare = p->anonymous = p->single = p->from_first = p->has_stack = p->named =
		p->listing = false;
	p->nr = 0;
}

static void begin_sample(struct reader *r, struct first_line *first)
{
	struct perfscript *p = r->priv;
	struct span text;

	set_task(r, first);
	p->event = span_len(first->event) ? intern(r, first->event) : 0;
	open_sample(p);
	p->regular |= !p->now.skip;
	p->has_stack = script_has_stack(first->tail);
	p->from_first = script_tail_frame(first, &text);
	if (p->from_first)
		add_frame(r, text);
}

/* -F without time and event: the line may be anything. A frame must follow. */
static void begin_bare(struct reader *r, struct span line, uint64_t offset)
{
	struct perfscript *p = r->priv;
	struct first_line first;

	if (script_is_record(line))
		return;
	script_bare_start(line, &first);
	set_task(r, &first);
	p->event = 0;
	open_sample(p);
	p->is_bare = true;
	p->bare_at = offset;
	buf_clear(&p->bare);
	buf_add(&p->bare, line.at, span_len(line));
}

static int not_bare(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;
	struct span line = { p->bare.data, p->bare.data + p->bare.len };

	p->open = p->cut = false;
	/* For example of --call-trace: perf's output, but with neither event nor address. */
	if (script_has_time(line))
		return reader_damage(r, ev, p->bare_at, 0, p->bare.len,
				     "neither a sample nor a branch: %.60s", span_trim(line).at);
	return reader_damage(r, ev, p->bare_at, 0, p->bare.len, "not perf script output: %.60s",
			     p->bare.data);
}

/* The frames that follow belong to nothing. */
static int no_first_line(struct reader *r, struct event *ev, uint64_t offset, uint64_t bytes)
{
	struct perfscript *p = r->priv;

	p->now.skip = true;
	p->is_bare = false;
	return reader_damage(r, ev, offset, 1, bytes,
			     "a stack without the first line of its sample");
}

static int bad_line(struct reader *r, struct event *ev, struct span line, uint64_t offset,
		    uint64_t lost, const char *what)
{
	struct perfscript *p = r->priv;
	struct span text = span_trim(line);
	int shown = span_len(text) < 60 ? (int)span_len(text) : 60;

	p->cut = false;
	return reader_damage(r, ev, offset, lost, span_len(line), "%s: %.*s", what, shown, text.at);
}

/* Ends the current sample. False: there is none, or it is not a sample. */
static bool end_sample(struct reader *r)
{
	struct perfscript *p = r->priv;
	bool counts = p->open && !p->now.skip;

	p->open = false;
	if (counts && !p->nr && p->has_stack && !p->stacks_told) {
		p->stacks_told = true;
		reader_missing(r,
			       "%s: kscope does not read branch stacks (-F brstack): samples with "
			       "only a branch stack have no frames",
			       r->in->path);
	}
	if (counts)
		p->stage = STAGE_SOURCE;
	return counts;
}

static void anonymous_sample(struct perfscript *p)
{
	p->now = script_no_start;
	p->comm = p->event = 0;
	open_sample(p);
	p->anonymous = true;
}

/* Old versions of perf print an empty name, after a blank. */
static bool ends_blank(struct span line)
{
	if (line.end[-1] == '\r')
		line.end--;
	return line.end > line.at && is_blank(line.end[-1]);
}

/*
 * Takes a frame on a line of its own. The address of data (-F addr) may be on the first line, or in
 * its place. Physical addresses and the like look like frames, but have no names and are indented
 * differently. A line that ends in its address is cut if others have names, or if it is too short.
 */
static int take_frame(struct reader *r, struct span line, struct span text, uint64_t offset,
		      struct event *ev)
{
	struct perfscript *p = r->priv;
	bool tab = *line.at == '\t', named, cut;
	const char *inner = tab ? memchr(text.at, '\t', span_len(text)) : NULL;
	struct span second = { 0 }; /* a frame on the same line, behind one that is cut */

	if (inner && script_usual_frame((struct span){ inner, line.end }) &&
	    script_frame((struct span){ inner, line.end }, &second))
		text.end = inner;
	text = p->single ? script_cut_extras(text) : span_trim(text);
	named = span_len(text) && !span_begins(text, "(inlined)"); /* by -F ip, too */
	if (p->from_first && (tab || !p->anonymous)) {
		p->nr = 0;
		p->named = false;
	}
	p->from_first = p->anonymous && !p->nr && !tab;
	if (!p->nr)
		p->tabs = tab;
	if (p->tabs != tab && script_no_name(text))
		return 0;
	cut = !named && !ends_blank(line) && (p->nr ? p->named : tab && !script_usual_frame(line));
	p->named |= named;
	add_frame(r, text);
	if (second.at)
		add_frame(r, span_trim(second));
	return cut || second.at ? bad_line(r, ev, line, offset, 0, "truncated stack line") : 0;
}

/* Tracepoints may print arrows, too. Without events (-F), the text has branches or it has none. */
static bool is_bad_branch(const struct perfscript *p, const struct first_line *first)
{
	bool expected = span_len(first->event) ? span_begins(first->event, "branches")
					       : p->branches.nr_threads;

	return expected && script_has_arrow(first->tail);
}

/* A branch has no other lines. */
static bool take_branch(struct reader *r, struct first_line *first)
{
	struct perfscript *p = r->priv;

	set_task(r, first);
	if (!script_branch(r, &p->branches, first))
		return false;
	p->regular = true;
	p->is_branch = true;
	p->stage = STAGE_COMM;
	return true;
}

/* Takes a line that is not the first one of a sample, or a first line without time and event. */
static int take_rest(struct reader *r, struct span line, uint64_t offset, bool *again,
		     struct event *ev)
{
	struct perfscript *p = r->priv;
	struct span text;
	bool single; /* -F ip,sym without call chains: each line is a sample */

	if (p->open && p->now.skip && script_has_time(line))
		p->open = false;
	if (p->open && (p->now.skip || (p->listing && *line.at == '\t')))
		return 0;
	/* Outside of a sample, a word of hexadecimal digits at the start may be a comm. */
	if ((p->open || script_first_frame(line)) && script_frame(line, &text)) {
		if (p->open && p->is_bare && p->regular && !p->nr)
			return no_first_line(r, ev, p->bare_at, p->bare.len);
		single = *line.at == ' ' && text.at == line.at + 1 + 16;
		if (p->open && p->single && single && p->nr == 1) {
			*again = end_sample(r);
			return 0;
		}
		if (!p->open) {
			anonymous_sample(p);
			p->single = single;
			if (p->regular)
				return no_first_line(r, ev, offset, span_len(line));
		}
		return take_frame(r, line, text, offset, ev);
	}
	if (!p->open)
		begin_bare(r, line, offset);
	else if (!script_extra_line(line))
		return bad_line(r, ev, line, offset, 0, "not a stack line");
	p->has_stack |= script_has_stack(line);
	p->listing |= *line.at == '\t' && line.end[-1] == ':';
	return 0;
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
	bool tab;

	*again = false;
	if (line.at < line.end && *line.at == '#')
		return take_title(p, line, ev);
	if (p->open && p->is_bare && !p->nr && !script_usual_frame(line)) {
		*again = true;
		return not_bare(r, ev);
	}
	tab = line.at < line.end && *line.at == '\t';
	if (!span_len(span_trim(line))) {
		if (tab && p->open && !p->now.skip)
			return reader_damage(r, ev, offset, 0, span_len(line), "empty stack line");
		/* Only samples with call chains end with such a line: what is on the first one is an address of data. */
		if (p->from_first && !p->anonymous && !p->named)
			p->nr = 0;
		end_sample(r);
		return 0;
	}
	if (!tab && script_is_record(line) && !script_has_time(line)) {
		*again = end_sample(r);
		return 0;
	}
	if (tab && script_has_time(line)) { /* the end of a frame's line is missing */
		*again = end_sample(r);
		if (*again)
			return 0;
		anonymous_sample(p);
		return no_first_line(r, ev, offset, span_len(line));
	}
	if (!tab && (script_timed_start(line, &first) ||
		     (!(p->open && script_frame(line, &text)) && script_start(line, &first)))) {
		*again = end_sample(r);
		if (*again || take_branch(r, &first))
			return 0;
		if (is_bad_branch(p, &first))
			return bad_line(r, ev, line, offset, 1, "not a branch");
		begin_sample(r, &first);
		return 0;
	}
	if (script_is_error(line)) { /* between samples: one on a single line is still open */
		*again = end_sample(r);
		if (!*again && script_error(&p->branches, line))
			p->stage = STAGE_BRANCH;
		return 0;
	}
	return take_rest(r, line, offset, again, ev);
}

static int end(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;

	if (!p->cut)
		return 0;
	p->cut = false;
	return reader_damage(r, ev, p->last_at, 0, 0, TEXT_CUT "; its sample may be incomplete");
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
			return end(r, ev);
		if (!text_line(r->in, &line.at, &len)) {
			p->ended = true;
			if (p->open && p->is_bare && !p->nr)
				return not_bare(r, ev);
			end_sample(r);
			continue;
		}
		line.end = line.at + len;
		p->cut = !text_line_ended(r->in);
		p->last_at = offset;
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

/* The bits of evidence in a line without a time, and the line after it. */
static int probe_timeless(struct span line, struct span second)
{
	struct first_line first, other;
	struct span text;

	if (script_usual_frame(line) || script_usual_frame(second))
		return 40;
	if (!script_start(line, &first))
		return 0;
	if (script_tail_frame(&first, &text))
		return 40;
	/* Without frames, two lines with all of task, cpu and event are needed. */
	if (first.start.cpu != NO_CPU &&
	    (!span_len(second) || (script_start(second, &other) && other.start.cpu != NO_CPU)))
		return 40;
	return second.at < second.end && script_frame(second, &text) &&
			       (is_blank(*second.at) || script_first_frame(second) ||
				span_trim(second).end[-1] == ')')
		       ? 40
		       : 0;
}

static int perfscript_probe(const uint8_t *head, size_t len)
{
	struct span rest = { (const char *)head, (const char *)head + len };
	const char *end_of_head = rest.end;
	bool titled = span_begins(rest, "# ========");
	struct first_line first;

	while (rest.at < rest.end) {
		struct span line = next_line(&rest);

		if (memchr(line.at, '\0', span_len(line)))
			return 0;
		if (!span_len(span_trim(line)) || *line.at == '#')
			continue;
		if (script_timed_start(line, &first))
			return 72;
		if (script_is_error(line) || script_is_record(line)) {
			titled = true;
			continue;
		}
		if (titled && line.end == end_of_head) /* it may go on */
			break;
		if (script_start(line, &first) && first.start.skip)
			continue;
		return probe_timeless(line, next_line(&rest)); /* weak evidence */
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
