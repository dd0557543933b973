// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfscript_line.h"

#include "base/text.h"
#include "model/event.h"
#include "read/perfscript_extra.h"

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

/* "[-01]" is an unknown cpu. */
static bool cpu_word(struct span word, uint32_t *cpu)
{
	return span_len(word) > 2 && *word.at == '[' && word.end[-1] == ']' &&
	       (text_u32(word.at + 1, span_len(word) - 2, cpu) ||
		(span_len(word) == 5 && span_begins(word, "[-01]")));
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

/* An address that is right-aligned in 16 columns, behind a blank. The text before ends at `before`. */
static bool aligned_address(const char *before, struct span rest)
{
	size_t digits = hex_digits(rest);

	return digits && digits <= 16 && rest.at + digits - before >= 1 + 16 &&
	       (digits == span_len(rest) || is_blank(rest.at[digits]));
}

/* The address of the code; that of data, a weight or the name of a callee may come before it. */
static bool last_address(struct span tail, const char *before, struct span *from)
{
	bool found = false;

	while (tail.at < tail.end) {
		while (tail.at < tail.end && is_blank(*tail.at))
			tail.at++;
		if (aligned_address(before, tail) &&
		    (!found || span_len(span_trim(tail)) > hex_digits(tail))) {
			*from = tail;
			found = true;
		}
		while (tail.at < tail.end && !is_blank(*tail.at))
			tail.at++;
		before = tail.at;
	}
	return found;
}

/* A number that is aligned as an address is the period if an event or another address follows. */
static void take_period(struct span *right, struct start *start)
{
	struct span number = span_trim(*right), rest, word;
	bool address = aligned_address(right->at, number);

	for (rest = number; rest.at < rest.end && digit(*rest.at);)
		rest.at++;
	number.end = rest.at;
	if (!span_len(number) || (span_len(rest) && !is_blank(*rest.at)))
		return;
	rest = span_trim(rest);
	for (word = rest; word.at < word.end && !is_blank(*word.at);)
		word.at++;
	if (address && !aligned_address(number.end, rest) &&
	    (word.at == rest.at || word.at[-1] != ':'))
		return;
	if (text_u64(number.at, span_len(number), &start->period))
		right->at = number.end;
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

bool script_first_frame(struct span line)
{
	return is_blank(*line.at) || hex_digits(line) == 16;
}

/* Records, and what perf synthesizes of a hardware trace in addition to branches and samples. */
static bool is_no_sample(struct span event)
{
	static const char *const starts[] = { "PERF_RECORD_", "DEFERRED CALLCHAIN",
					      "cbr:",	      "psb:",
					      "ptwrite:",     "mwait:",
					      "pwre:",	      "pwrx:",
					      "exstop:",      "evt:",
					      "iflag:",	      "psb offs:",
					      "metric:" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (span_begins(event, starts[i]))
			return true;
	}
	return false;
}

bool script_is_record(struct span line)
{
	/* A record of namespaces has several lines. */
	return span_begins(line, "PERF_RECORD_") || span_begins(line, "\t\t") ||
	       memmem(line.at, span_len(line), " PERF_RECORD_", 13) != NULL;
}

/* The part after the time: PERIOD EVENT: and maybe a frame. */
static bool parse_event(struct span right, struct first_line *first)
{
	const char *before;
	struct span text;

	take_period(&right, &first->start);
	before = right.at;
	right = span_trim(right);
	first->start.skip = is_no_sample(right);
	if (first->start.skip) {
		first->event = first->tail = (struct span){ right.end, right.end };
		return true;
	}
	first->before = before;
	first->event = (struct span){ right.at, right.at };
	if (!aligned_address(before, right) && event_name(&right, &first->event))
		first->before = right.at;
	else if (span_len(right) && !script_frame(right, &text) &&
		 !aligned_address(before, right) && !memmem(right.at, span_len(right), " => ", 4))
		return false; /* without an event only a frame may follow */
	first->tail = right;
	return true;
}

const struct start script_no_start = {
	.time = NO_TIME, .period = 1, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
};

bool script_has_time(struct span line)
{
	uint64_t time;

	for (const char *c = line.at; c < line.end; c++) {
		c = memchr(c, ':', (size_t)(line.end - c));
		if (!c)
			return false;
		if (time_before(line.at, c, &time))
			return true;
	}
	return false;
}

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
		first->before = first->tail.at;
		if (parse_task(left, &first->start, &first->comm) && span_len(first->comm)) {
			bool skip = is_no_sample((struct span){ first->event.at, line.end });
			/* Two numbers: the second is the period. */
			struct start other = first->start;
			struct span comm, before = left;

			word = last_word(&before);
			if (text_u64(word.at, span_len(word), &other.period) &&
			    parse_task(before, &other, &comm) && span_len(comm)) {
				first->start = other;
				first->comm = comm;
			}
			first->start.skip = skip;
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
	struct span text;

	if (timed_start(line, true, first) || timed_start(line, false, first))
		return true;
	if (line.at == line.end || script_has_time(line) || !timeless_start(line, first))
		return false;
	/* Other lines of a sample begin with blanks, too. */
	return !is_blank(*line.at) || first->start.skip || first->start.cpu != NO_CPU ||
	       script_tail_frame(first, &text);
}

void script_bare_start(struct span line, struct first_line *first)
{
	*first = (struct first_line){ .start = script_no_start };
	if (!parse_task(line, &first->start, &first->comm))
		parse_comm(line, &first->start, &first->comm);
}

bool script_tail_frame(const struct first_line *first, struct span *text)
{
	struct span tail = { first->tail.at, span_trim(first->tail).end }, cut;

	if (first->start.skip || !span_len(span_trim(tail)))
		return false;
	if (!last_address(tail, first->before, &cut)) {
		/* Other versions align less, but then a binary has to follow. */
		cut = script_cut_extras(span_trim(tail));
		return script_frame(cut, text) && (!span_len(first->event) || cut.end[-1] == ')');
	}
	cut = script_cut_extras(cut);
	*text = (struct span){ cut.at + hex_digits(cut), cut.end };
	return true;
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
