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

#define MAX_FRAMES 65536

struct start { /* the first line of a sample */
	uint64_t time, period;
	uint32_t cpu, pid, tid;
	uint32_t comm, event; /* handles; 0: missing */
	bool skip;	      /* not a sample, even if frames follow */
	bool bare;	      /* no time and no event: a sample only if frames follow */
};

struct place { /* a parsed frame */
	uint32_t name, binary;
	uint8_t flags;
	bool inlined;
};

enum stage { STAGE_READ, STAGE_SOURCE, STAGE_COMM, STAGE_SAMPLE };

struct perfscript {
	struct start now;
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
};

struct span {
	const char *at, *end;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.at < s.end && blank(*s.at))
		s.at++;
	while (s.at < s.end && (blank(s.end[-1]) || s.end[-1] == '\r'))
		s.end--;
	return s;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t span_len(struct span s)
{
	return (size_t)(s.end - s.at);
}

/* Removes the last word from *s and returns it. */
static struct span last_word(struct span *s)
{
	struct span word;

	*s = trim(*s);
	word = (struct span){ s->end, s->end };
	while (word.at > s->at && !blank(word.at[-1]))
		word.at--;
	s->end = word.at;
	return word;
}

static bool task_number(struct span word, uint32_t *number)
{
	bool minus = word.at < word.end && *word.at == '-';

	if (!text_u32(word.at + minus, span_len(word) - minus, number) || !digit(word.at[minus]))
		return false;
	if (minus)
		*number = -*number;
	return true;
}

/* TID, or PID/TID. */
static bool task_word(struct span word, struct start *start)
{
	const char *slash = memchr(word.at, '/', span_len(word));

	if (slash)
		return task_number((struct span){ word.at, slash }, &start->pid) &&
		       task_number((struct span){ slash + 1, word.end }, &start->tid);
	if (!task_number(word, &start->tid))
		return false;
	start->pid = start->tid; /* the pid is unknown */
	return true;
}

static bool cpu_word(struct span word, uint32_t *cpu)
{
	return span_len(word) > 2 && *word.at == '[' && word.end[-1] == ']' &&
	       text_u32(word.at + 1, span_len(word) - 2, cpu);
}

/* The cpu mode: K, U, GK, Sp... */
static bool mode_word(struct span word)
{
	if (span_len(word) == 0 || span_len(word) > 4)
		return false;
	for (const char *c = word.at; c < word.end; c++) {
		if ((*c | 0x20) < 'a' || (*c | 0x20) > 'z')
			return false;
	}
	return *word.at >= 'A' && *word.at <= 'Z';
}

/* A time of day, which follows a date. */
static bool clock_word(struct span word)
{
	return span_len(word) > 8 && digit(*word.at) && word.at[2] == ':' && word.at[5] == ':';
}

/* The part before the time: COMM TID [CPU] MODE DATE, of which only the task is mandatory. */
static bool who(struct span left, struct start *start, struct span *comm)
{
	struct span word = last_word(&left);

	if (clock_word(word)) {
		last_word(&left);
		word = last_word(&left);
	}
	if (mode_word(word))
		word = last_word(&left);
	if (cpu_word(word, &start->cpu))
		word = last_word(&left);
	*comm = trim(left);
	return task_word(word, start);
}

/* The same without a task: COMM [CPU]. */
static void who_else(struct span left, struct start *start, struct span *comm)
{
	struct span rest = trim(left);

	if (cpu_word(last_word(&rest), &start->cpu))
		left = rest;
	*comm = trim(left);
}

/* The time that ends at `colon`, seconds with 6 or 9 decimals; NULL if there is none. */
static const char *time_before(const char *line, const char *colon, uint64_t *ns)
{
	const char *at = colon;
	size_t decimals = 0;

	while (at > line && digit(at[-1]))
		at--;
	decimals = (size_t)(colon - at);
	if ((decimals != 6 && decimals != 9) || at == line || at[-1] != '.')
		return NULL;
	at--;
	while (at > line && digit(at[-1]))
		at--;
	if (*at == '.' || (at > line && !blank(at[-1])) ||
	    !text_seconds(at, (size_t)(colon - at), ns))
		return NULL;
	return at;
}

/* The event name ends at a colon that is followed by a blank or the end of the line. */
static bool event_name(struct span *right, struct span *name)
{
	*right = trim(*right);
	name->at = right->at;
	for (const char *c = right->at; c < right->end; c++) {
		if (*c == ':' && c > right->at && (c + 1 == right->end || blank(c[1]))) {
			name->end = c;
			right->at = c + 1;
			return true;
		}
	}
	return false;
}

static void take_period(struct span *right, struct start *start)
{
	const char *at;

	*right = trim(*right);
	at = right->at;
	while (at < right->end && digit(*at))
		at++;
	if (at > right->at && (at == right->end || blank(*at)) &&
	    text_u64(right->at, (size_t)(at - right->at), &start->period))
		right->at = at;
}

static bool begins(struct span s, const char *with)
{
	return span_len(s) >= strlen(with) && !memcmp(s.at, with, strlen(with));
}

static size_t hex_digits(struct span s)
{
	const char *at = s.at;

	while (at < s.end && (digit(*at) || ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f')))
		at++;
	return (size_t)(at - s.at);
}

/* The text after the address of a frame; false if the line is not a frame. */
static bool frame_text(struct span line, struct span *text)
{
	bool tab = line.at < line.end && *line.at == '\t';
	size_t digits;

	line = trim(line);
	digits = hex_digits(line);
	if (!digits || digits > 16)
		return false;
	*text = (struct span){ line.at + digits, line.end };
	if (text->at == text->end)
		return tab; /* only the address */
	return blank(*text->at) && !begins(trim(*text), "insn:");
}

/* A frame in perf's usual layout: a tab, then the address right-aligned in 16 columns. */
static bool clear_frame(struct span line)
{
	struct span text;

	return span_len(line) >= 1 + 16 && *line.at == '\t' && frame_text(line, &text) &&
	       text.at == line.at + 1 + 16;
}

struct first_line {
	struct start start;
	struct span comm, event, tail;
};

/* The part after the time: PERIOD EVENT: and maybe a frame. */
static bool what(struct span right, struct first_line *first)
{
	take_period(&right, &first->start);
	right = trim(right);
	first->start.skip = begins(right, "PERF_RECORD_") || begins(right, "DEFERRED CALLCHAIN");
	if (first->start.skip) {
		first->event = first->tail = (struct span){ right.end, right.end };
		return true;
	}
	if (!event_name(&right, &first->event)) {
		/* Without an event only a frame may follow. */
		struct span text;

		first->event = (struct span){ right.at, right.at };
		if (right.at < right.end && !frame_text(right, &text))
			return false;
	}
	first->tail = right;
	return true;
}

static const struct start no_start = {
	.time = NO_TIME, .period = 1, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
};

/* Finds the first time on the line; `task`: the first one that follows a task. */
static bool timed_start(struct span line, bool task, struct first_line *first)
{
	for (const char *c = line.at; c < line.end; c++) {
		const char *at;

		c = memchr(c, ':', (size_t)(line.end - c));
		if (!c)
			return false;
		if (c + 1 < line.end && !blank(c[1]))
			continue;
		first->start = no_start;
		at = time_before(line.at, c, &first->start.time);
		if (!at)
			continue;
		if (!who((struct span){ line.at, at }, &first->start, &first->comm)) {
			if (task)
				continue;
			who_else((struct span){ line.at, at }, &first->start, &first->comm);
		}
		return what((struct span){ c + 1, line.end }, first);
	}
	return false;
}

/* Old or reduced output without a time: COMM TID [CPU] PERIOD EVENT: */
static bool timeless_start(struct span line, struct first_line *first)
{
	for (const char *c = line.at; c < line.end; c++) {
		struct span left, word;

		c = memchr(c, ':', (size_t)(line.end - c));
		if (!c)
			return false;
		if (c + 1 < line.end && !blank(c[1]))
			continue;
		first->start = no_start;
		left = (struct span){ line.at, c };
		first->event = last_word(&left);
		first->tail = (struct span){ c + 1, line.end };
		if (who(left, &first->start, &first->comm) && span_len(first->comm)) {
			/* Two numbers: the second is the period. */
			struct start other = first->start;
			struct span comm, before = left;

			word = last_word(&before);
			if (text_u64(word.at, span_len(word), &other.period) &&
			    who(before, &other, &comm) && span_len(comm)) {
				first->start = other;
				first->comm = comm;
			}
			return true;
		}
	}
	return false;
}

/* ---- frames ---- */

/* The parenthesis that matches the one at the end, or NULL. */
static const char *opening(struct span s)
{
	int depth = 0;

	for (const char *c = s.end; c > s.at; c--) {
		if (c[-1] == ')')
			depth++;
		else if (c[-1] == '(' && --depth == 0)
			return c - 1;
	}
	return NULL;
}

static struct span without_offset(struct span name)
{
	const char *at = name.end;

	while (at > name.at && hex_digits((struct span){ at - 1, at }))
		at--;
	if (at - name.at > 3 && at < name.end && !memcmp(at - 3, "+0x", 3))
		name.end = at - 3;
	return name;
}

static bool is_kernel(struct span binary)
{
	static const char *const starts[] = { "[kernel", "[guest.kernel", "[bpf", "bpf_prog_",
					      "bpf_trampoline_" };
	static const char *const users[] = { "[vdso", "[vsyscall", "[unknown",
					     "[heap", "[stack",	   "[anon" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (begins(binary, starts[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++) {
		if (begins(binary, users[i]))
			return false;
	}
	/* A module is in brackets or ends in .ko. */
	return begins(binary, "[") || memmem(binary.at, span_len(binary), "vmlinux", 7) ||
	       (span_len(binary) > 3 && !memcmp(binary.end - 3, ".ko", 3));
}

static struct span last_part(struct span path)
{
	const char *slash = memrchr(path.at, '/', span_len(path));

	if (slash && slash + 1 < path.end && *path.at != '[')
		path.at = slash + 1;
	return path;
}

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

static struct place read_place(struct reader *r, struct span text)
{
	const char *open = NULL;
	struct span name, binary = { text.end, text.end };
	struct place place = { 0 };

	text = trim(text);
	if (text.at < text.end && text.end[-1] == ')')
		open = opening(text);
	if (open && (open == text.at || blank(open[-1]))) {
		binary = (struct span){ open + 1, text.end - 1 };
		text.end = open;
	}
	name = without_offset(trim(text));
	place.inlined = span_len(binary) == 7 && begins(binary, "inlined");
	if (place.inlined)
		binary.at = binary.end;
	place.flags = is_kernel(binary) ? FRAME_KERNEL : 0;
	binary = last_part(binary);
	if (!span_len(name) || (span_len(name) == 9 && begins(name, "[unknown]")))
		place.name = unknown_name(r, binary);
	else
		place.name = intern(r, name);
	if (span_len(binary) && !begins(binary, "[unknown]"))
		place.binary = intern(r, binary);
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

		if (!begins(line, titles[i].title))
			continue;
		value = trim((struct span){ line.at + strlen(titles[i].title), line.end });
		buf_clear(&p->text);
		buf_add(&p->text, value.at, span_len(value));
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ titles[i].key, p->text.data };
		return true;
	}
	return false;
}

static bool read_start(struct span line, struct first_line *first)
{
	return timed_start(line, true, first) || timed_start(line, false, first) ||
	       (line.at < line.end && !blank(*line.at) && timeless_start(line, first));
}

/* A frame at the end of the first line: it has a binary, or 16 columns for its address. */
static bool tail_frame(const struct first_line *first, struct span *text)
{
	struct span tail = trim(first->tail);

	return !first->start.skip && span_len(tail) && frame_text(tail, text) &&
	       (!span_len(first->event) || tail.end[-1] == ')' || text->at - first->tail.at > 16);
}

static void begin_sample(struct reader *r, const struct first_line *first)
{
	struct perfscript *p = r->priv;
	struct span text;

	p->now = first->start;
	p->now.comm = span_len(first->comm) ? intern(r, first->comm) : 0;
	p->now.event = span_len(first->event) ? intern(r, first->event) : 0;
	if (p->now.tid == NO_TASK && p->now.comm)
		p->now.pid = p->now.tid = p->now.comm; /* keeps tasks of different names apart */
	p->open = true;
	p->nr = 0;
	if (tail_frame(first, &text))
		add_frame(r, text);
}

/* -F without time and event: the line may be anything. A frame must follow. */
static void begin_bare(struct reader *r, struct span line, uint64_t offset)
{
	struct perfscript *p = r->priv;
	struct first_line first = { .start = no_start };

	if (!who(line, &first.start, &first.comm))
		who_else(line, &first.start, &first.comm);
	first.start.bare = true;
	begin_sample(r, &first);
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
	p->now = no_start;
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
	if (p->open && p->now.bare && !p->nr && !clear_frame(line)) {
		*again = true;
		return not_bare(r, ev);
	}
	if (!span_len(trim(line))) {
		end_sample(p);
		return 0;
	}
	if (timed_start(line, true, &first) ||
	    (!(p->open && frame_text(line, &text)) && read_start(line, &first))) {
		if (end_sample(p))
			*again = true;
		else
			begin_sample(r, &first);
		return 0;
	}
	/* Outside of a sample, a word of hexadecimal digits at the start may be a comm. */
	if ((p->open || blank(*line.at)) && frame_text(line, &text)) {
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
	uint32_t *known = hash_at(&p->sources, (struct hash_key){ p->now.event, 1 });

	if (*known)
		return 0;
	*known = p->now.event + 1;
	ev->kind = EVENT_SOURCE;
	ev->source.id = p->now.event + 1;
	source_from_name(&ev->source,
			 p->now.event ? str_text(r->frames->strings, p->now.event) : "samples");
	return 1;
}

static int tell_comm(struct reader *r, struct event *ev)
{
	struct perfscript *p = r->priv;
	uint32_t *known;

	if (!p->now.comm || p->now.tid == NO_TASK)
		return 0;
	known = hash_at(&p->comms, (struct hash_key){ p->now.pid, p->now.tid });
	if (*known == p->now.comm)
		return 0;
	*known = p->now.comm;
	/* perf prints :PID for a task without a name. */
	if (*str_text(r->frames->strings, p->now.comm) == ':')
		return 0;
	ev->kind = EVENT_COMM;
	ev->time = p->now.time;
	ev->pid = p->now.pid;
	ev->tid = p->now.tid;
	ev->comm.comm = str_text(r->frames->strings, p->now.comm);
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
		.source = p->now.event + 1,
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
		p->stage = STAGE_SAMPLE;
		if (tell_comm(r, ev))
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
			if (p->open && p->now.bare && !p->nr)
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
	bool titled = begins(rest, "# ========");
	struct first_line first;

	while (rest.at < rest.end) {
		struct span line = next_line(&rest), second, text;

		if (memchr(line.at, '\0', span_len(line)))
			return 0;
		if (!span_len(trim(line)) || *line.at == '#')
			continue;
		if (timed_start(line, true, &first))
			return 72;
		/* Anything else is weak evidence: a frame has to follow. */
		second = next_line(&rest);
		if (clear_frame(line) || clear_frame(second))
			return 40;
		return read_start(line, &first) && second.at < second.end && blank(*second.at) &&
				       frame_text(second, &text)
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
