// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfscript_line.h"

#include "base/text.h"
#include "model/event.h"

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

struct span span_trim(struct span s)
{
	while (s.at < s.end && is_blank(*s.at))
		s.at++;
	while (s.at < s.end && (is_blank(s.end[-1]) || s.end[-1] == '\r'))
		s.end--;
	return s;
}

/* Removes the last word from *s and returns it. */
static struct span last_word(struct span *s)
{
	struct span word;

	*s = span_trim(*s);
	word = (struct span){ s->end, s->end };
	while (word.at > s->at && !is_blank(word.at[-1]))
		word.at--;
	s->end = word.at;
	return word;
}

bool span_begins(struct span s, const char *with)
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
static bool parse_task(struct span left, struct start *start, struct span *comm)
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
	*comm = span_trim(left);
	return task_word(word, start);
}

/* The same without a task: COMM [CPU]. */
static void parse_comm(struct span left, struct start *start, struct span *comm)
{
	struct span rest = span_trim(left);

	if (cpu_word(last_word(&rest), &start->cpu))
		left = rest;
	*comm = span_trim(left);
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
	if (*at == '.' || (at > line && !is_blank(at[-1])) ||
	    !text_seconds(at, (size_t)(colon - at), ns))
		return NULL;
	return at;
}

/* The event name ends at a colon that is followed by a blank or the end of the line. */
static bool event_name(struct span *right, struct span *name)
{
	*right = span_trim(*right);
	name->at = right->at;
	for (const char *c = right->at; c < right->end; c++) {
		if (*c == ':' && c > right->at && (c + 1 == right->end || is_blank(c[1]))) {
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

	*right = span_trim(*right);
	at = right->at;
	while (at < right->end && digit(*at))
		at++;
	if (at > right->at && (at == right->end || is_blank(*at)) &&
	    text_u64(right->at, (size_t)(at - right->at), &start->period))
		right->at = at;
}

bool script_frame(struct span line, struct span *text)
{
	bool tab = line.at < line.end && *line.at == '\t';
	size_t digits;

	line = span_trim(line);
	digits = hex_digits(line);
	if (!digits || digits > 16)
		return false;
	*text = (struct span){ line.at + digits, line.end };
	if (text->at == text->end)
		return tab; /* only the address */
	return is_blank(*text->at) && !span_begins(span_trim(*text), "insn:");
}

bool script_usual_frame(struct span line)
{
	struct span text;

	return span_len(line) >= 1 + 16 && *line.at == '\t' && script_frame(line, &text) &&
	       text.at == line.at + 1 + 16;
}

/* Records, and what perf synthesizes of a hardware trace in addition to branches and samples. */
static bool is_no_sample(struct span event)
{
	static const char *const starts[] = { "PERF_RECORD_", "DEFERRED CALLCHAIN",
					      "cbr:",	      "psb:",
					      "ptwrite:",     "mwait:",
					      "pwre:",	      "pwrx:",
					      "exstop:",      "evt:",
					      "iflag:" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (span_begins(event, starts[i]))
			return true;
	}
	return false;
}

/* The part after the time: PERIOD EVENT: and maybe a frame. */
static bool parse_event(struct span right, struct first_line *first)
{
	take_period(&right, &first->start);
	right = span_trim(right);
	first->start.skip = is_no_sample(right);
	if (first->start.skip) {
		first->event = first->tail = (struct span){ right.end, right.end };
		return true;
	}
	if (!event_name(&right, &first->event)) {
		/* Without an event only a frame may follow. */
		struct span text;

		first->event = (struct span){ right.at, right.at };
		if (right.at < right.end && !script_frame(right, &text) &&
		    !memmem(right.at, span_len(right), " => ", 4))
			return false;
	}
	first->tail = right;
	return true;
}

const struct start script_no_start = {
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
		if (c + 1 < line.end && !is_blank(c[1]))
			continue;
		first->start = script_no_start;
		at = time_before(line.at, c, &first->start.time);
		if (!at)
			continue;
		if (!parse_task((struct span){ line.at, at }, &first->start, &first->comm)) {
			if (task)
				continue;
			parse_comm((struct span){ line.at, at }, &first->start, &first->comm);
		}
		return parse_event((struct span){ c + 1, line.end }, first);
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
		if (c + 1 < line.end && !is_blank(c[1]))
			continue;
		first->start = script_no_start;
		left = (struct span){ line.at, c };
		first->event = last_word(&left);
		first->tail = (struct span){ c + 1, line.end };
		if (parse_task(left, &first->start, &first->comm) && span_len(first->comm)) {
			/* Two numbers: the second is the period. */
			struct start other = first->start;
			struct span comm, before = left;

			word = last_word(&before);
			if (text_u64(word.at, span_len(word), &other.period) &&
			    parse_task(before, &other, &comm) && span_len(comm)) {
				first->start = other;
				first->comm = comm;
			}
			return true;
		}
	}
	return false;
}

bool script_timed_start(struct span line, struct first_line *first)
{
	return timed_start(line, true, first);
}

bool script_start(struct span line, struct first_line *first)
{
	return timed_start(line, true, first) || timed_start(line, false, first) ||
	       (line.at < line.end && !is_blank(*line.at) && timeless_start(line, first));
}

void script_bare_start(struct span line, struct first_line *first)
{
	*first = (struct first_line){ .start = script_no_start };
	if (!parse_task(line, &first->start, &first->comm))
		parse_comm(line, &first->start, &first->comm);
}

/* The address of data, which may come before that of the code. */
#define LEAST_ADDRESS 8 /* digits: a name may consist of fewer */

static struct span without_data(struct span tail)
{
	struct span rest;
	size_t digits;

	if (!span_len(tail))
		return tail;
	rest = span_trim((struct span){ tail.at + hex_digits(tail), tail.end });
	digits = hex_digits(rest);
	return digits >= LEAST_ADDRESS && digits < span_len(rest) && is_blank(rest.at[digits])
		       ? rest
		       : tail;
}

bool script_tail_frame(const struct first_line *first, struct span *text)
{
	struct span tail = without_data(span_trim(first->tail));

	return !first->start.skip && span_len(tail) && script_frame(tail, text) &&
	       (!span_len(first->event) || tail.end[-1] == ')' || text->at - first->tail.at > 16);
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
		if (span_begins(binary, starts[i]))
			return true;
	}
	for (size_t i = 0; i < sizeof(users) / sizeof(*users); i++) {
		if (span_begins(binary, users[i]))
			return false;
	}
	/* A module is in brackets or ends in .ko. */
	return span_begins(binary, "[") || memmem(binary.at, span_len(binary), "vmlinux", 7) ||
	       (span_len(binary) > 3 && !memcmp(binary.end - 3, ".ko", 3));
}

static struct span last_part(struct span path)
{
	const char *slash = memrchr(path.at, '/', span_len(path));

	if (slash && slash + 1 < path.end && *path.at != '[')
		path.at = slash + 1;
	return path;
}

struct frame_parts script_frame_parts(struct span text)
{
	struct frame_parts parts = { .binary = { text.end, text.end } };
	const char *open = NULL;

	text = span_trim(text);
	if (text.at < text.end && text.end[-1] == ')')
		open = opening(text);
	if (open && (open == text.at || is_blank(open[-1]))) {
		parts.binary = (struct span){ open + 1, text.end - 1 };
		text.end = open;
	}
	parts.name = without_offset(span_trim(text));
	parts.inlined = span_len(parts.binary) == 7 && span_begins(parts.binary, "inlined");
	if (parts.inlined)
		parts.binary.at = parts.binary.end;
	parts.kernel = is_kernel(parts.binary);
	parts.binary = last_part(parts.binary);
	return parts;
}
