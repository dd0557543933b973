/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_text: traces as text, for the tests of pass/track and pass/calls. Rows end with ';':
 *
 *	KIND FROM TO INSTRUCTIONS [WORD...]
 *
 * begin		has only TO
 * end			has no TO
 * jump, call, return	a call returns to the 4 bytes after FROM
 * enter		an interrupt at FROM, which returns there
 * syscall		an instruction at FROM that enters the kernel, which returns after its 4 bytes
 * leave		the return from an exception
 * cpu N		the following rows belong to this cpu; cpu -: the data does not tell
 * thread N		on the machine THREADS: the following rows belong to this thread
 * space N		the following rows belong to this address space, and to process N
 * guest N		the following rows run in this guest; 0: in none. enter and leave change it
 * off N, on N		interrupts are off or on, N instructions after the last branch; unknown N: either
 * note VALUE N		on the machine THREADS: ptwrite, N instructions after the last branch. Words: at=ADDRESS,
 *			cycles=N, outside
 * sums			the tables are too large: takes the sums, which empties them
 * check ADDRESS...	an unwound sample: the leaf and its callers. "..." at the end: the unwinder
 *			did not find the rest. "|": no call precedes the address after it
 *
 * The text has the true stack pointer, the event only what a trace would know of it:
 *
 * -N, +N	the code moved it by this many bytes, in addition to the call or return itself
 * ?		the trace does not know by how much the code moved it
 * !		the trace has it at TO
 * sp=V		it is V at TO, and the trace has it
 * stack=V	an instruction replaced it by V before the branch, and the trace has it
 * save=X	saves it under a name: with `stack=` or an exception, the one before; otherwise the
 *		one at TO
 * next=V	another return address; 0: unknown
 * after=V	see struct event_branch
 * left=V	the old stack pointer in the trace; 0: unknown
 * outside	its time is not selected
 * cycles=N	decimal
 * over		see struct event_branch
 *
 * Values are hexadecimal, @X is a saved stack pointer, and @X+N or @X-N one near it. Addresses of user
 * code begin with u. Functions begin at multiples of 0x1000, except that there are no known functions
 * from f000 on. The result is a line for each stack, leaf first, as "LEAF CALLER... : INSTRUCTIONS", and
 * one with the statistics that stand out.
 */
#ifndef KSCOPE_TESTS_UNIT_TRACE_TEXT_H
#define KSCOPE_TESTS_UNIT_TRACE_TEXT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "pass/calls.h"
#include "test.h"

#define TRACE_CPUS 4

enum machine {
	PUSHES,	 /* calls put the return address on the stack */
	LINKS,	 /* calls put it into a register */
	BLIND,	 /* a trace without stack pointers */
	THREADS, /* the same, and the data names the threads */
};

struct trace {
	struct calls calls;
	enum machine machine;
	uint64_t sp[TRACE_CPUS], space[TRACE_CPUS];
	uint16_t guest[TRACE_CPUS];
	uint32_t cpu, thread;
	bool no_cpu;	      /* of events */
	uint64_t time;	      /* instructions of all cpus so far */
	uint64_t from, until; /* what is selected of it */
	uint64_t saved[128];
	char text[8192];
	size_t len;
};

static inline uint64_t trace_function(void *data, uint64_t address, uint64_t context, uint32_t pid)
{
	(void)data, (void)pid;
	return context == IP_KERNEL && address >= 0xf000 && address < 0x10000 ? 0
									      : address & ~0xfffull;
}

static inline void trace_begin(struct trace *trace, enum machine machine)
{
	memset(trace, 0, sizeof(*trace));
	calls_init(&trace->calls);
	trace->calls.function = trace_function;
	trace->machine = machine;
	trace->until = UINT64_MAX;
	trace->thread = 1001;
	for (int i = 0; i < TRACE_CPUS; i++)
		trace->space[i] = 1;
}

static inline void trace_end(struct trace *trace)
{
	calls_release(&trace->calls);
}

static inline uint64_t trace_value(const struct trace *trace, const char *word)
{
	uint64_t value;
	char *end;

	if (*word != '@')
		return strtoull(word + (*word == 'u'), NULL, 16);
	value = trace->saved[word[1] & 127];
	end = (char *)word + 2;
	return value + (uint64_t)strtoll(*end ? end : "0", NULL, 10);
}

static inline const char *word_after(const char *word, const char *key)
{
	size_t len = strlen(key);

	return strncmp(word, key, len) ? NULL : word + len;
}

/* The words of a row. */
struct trace_row {
	struct event_branch b;
	uint64_t sp, stack, left;
	int32_t moved;
	bool read, unknown, has_left, outside;
	char save;
};

static inline void trace_word(const struct trace *trace, struct trace_row *row, const char *word)
{
	const char *value;

	if ((value = word_after(word, "sp=")))
		row->sp = trace_value(trace, value);
	else if ((value = word_after(word, "stack=")))
		row->stack = trace_value(trace, value);
	else if ((value = word_after(word, "next=")))
		row->b.next = trace_value(trace, value);
	else if ((value = word_after(word, "after=")))
		row->b.after = trace_value(trace, value);
	else if ((value = word_after(word, "cycles=")))
		row->b.cycles = strtoull(value, NULL, 10);
	else if ((value = word_after(word, "save=")))
		row->save = *value;
	else if ((value = word_after(word, "left="))) {
		row->left = trace_value(trace, value);
		row->has_left = true;
	} else if (!strcmp(word, "outside"))
		row->outside = true;
	else if (!strcmp(word, "over"))
		row->b.over = true;
	else if (*word == '?')
		row->unknown = true;
	else if (*word == '!')
		row->read = true;
	else if (*word == '-' || *word == '+')
		row->moved = atoi(word);
	else {
		fprintf(stderr, "unknown word: %s\n", word);
		abort();
	}
}

/* By how much the branch itself moves the stack pointer. */
static inline int32_t own_move(const struct trace *trace, enum branch_kind kind)
{
	if (trace->machine == LINKS)
		return 0;
	return kind == BRANCH_CALL ? -8 : kind == BRANCH_RETURN ? 8 : 0;
}

static inline void trace_sp(struct trace *trace, struct trace_row *row)
{
	struct event_branch *b = &row->b;
	uint64_t *sp = &trace->sp[trace->cpu], before = *sp + (uint64_t)(int64_t)row->moved;
	int32_t own = own_move(trace, b->kind);
	bool leaves = row->stack || b->kind == BRANCH_ENTER;

	b->moved = row->moved + own;
	b->has_moved = !row->unknown && !row->stack;
	*sp = (row->stack ? row->stack : before) + (uint64_t)(int64_t)own;
	if (row->sp)
		*sp = row->sp;
	if (row->save)
		trace->saved[row->save & 127] = leaves ? before : *sp;
	if (row->stack || row->sp || row->read)
		b->sp = *sp;
	if (leaves)
		b->left = before;
	if (row->has_left)
		b->left = row->left;
	b->taken = row->stack;
	b->pushed = b->kind == BRANCH_CALL && trace->machine != LINKS ? 8 : 0;
	if (trace->machine == BLIND || trace->machine == THREADS) {
		b->sp = b->left = b->taken = 0;
		b->has_moved = false;
	}
}

static inline void trace_branch(struct trace *trace, enum branch_kind kind, char *words,
				bool syscall)
{
	uint32_t pid = (uint32_t)trace->space[trace->cpu];
	struct event ev = { .kind = EVENT_BRANCH, .cpu = trace->cpu, .pid = pid, .tid = pid };
	struct trace_row row = { .b = { .kind = kind, .context = IP_KERNEL } };
	char *word;

	if (kind != BRANCH_BEGIN)
		row.b.from = trace_value(trace, strtok_r(words, " ", &words));
	if (kind != BRANCH_END) {
		word = strtok_r(words, " ", &words);
		row.b.to = trace_value(trace, word);
		row.b.context = *word == 'u' ? IP_USER : IP_KERNEL;
	}
	if (kind != BRANCH_BEGIN)
		row.b.instructions = strtoull(strtok_r(words, " ", &words), NULL, 10);
	row.b.space = trace->space[trace->cpu];
	row.b.guest = trace->guest[trace->cpu];
	if (kind == BRANCH_CALL || syscall)
		row.b.next = row.b.from + 4;
	else if (kind == BRANCH_ENTER)
		row.b.next = row.b.from;
	while ((word = strtok_r(words, " ", &words)))
		trace_word(trace, &row, word);
	trace_sp(trace, &row);
	if (trace->machine == THREADS) {
		row.b.by_thread = true;
		row.b.space = 0;
		ev.tid = trace->thread;
		if (trace->no_cpu)
			ev.cpu = NO_CPU;
	}
	trace->time += row.b.instructions;
	ev.time = trace->time;
	ev.branch = row.b;
	if (row.outside || ev.time < trace->from || ev.time >= trace->until)
		ev.outside = OUTSIDE_WHEN;
	calls_add(&trace->calls, &ev);
}

static inline void trace_mask(struct trace *trace, const char *interrupts, const char *words)
{
	uint64_t instructions = strtoull(words, NULL, 10);
	struct event ev = { .kind = EVENT_MASK,
			    .cpu = trace->cpu,
			    .time = trace->time + instructions,
			    .mask = { .instructions = instructions, .context = IP_KERNEL } };

	ev.mask.interrupts = !strcmp(interrupts, "off")	 ? INTERRUPTS_OFF
			     : !strcmp(interrupts, "on") ? INTERRUPTS_ON
							 : INTERRUPTS_UNKNOWN;
	calls_mask(&trace->calls, &ev);
}

static inline void trace_note(struct trace *trace, char *words)
{
	uint64_t value = strtoull(strtok_r(words, " ", &words), NULL, 16);
	uint64_t instructions = strtoull(strtok_r(words, " ", &words), NULL, 10);
	struct event ev = { .kind = EVENT_NOTE,
			    .cpu = trace->no_cpu ? NO_CPU : trace->cpu,
			    .pid = (uint32_t)trace->space[trace->cpu],
			    .tid = trace->thread,
			    .time = trace->time + instructions,
			    .note = { .kind = NOTE_PTWRITE,
				      .value = value,
				      .instructions = instructions,
				      .context = IP_KERNEL } };
	char *word;

	if (ev.time < trace->from || ev.time >= trace->until)
		ev.outside = OUTSIDE_WHEN;
	while ((word = strtok_r(words, " ", &words))) {
		if (!strcmp(word, "outside"))
			ev.outside |= OUTSIDE_WHO;
		else if (!strncmp(word, "cycles=", 7))
			ev.note.cycles = strtoull(word + 7, NULL, 10);
		else
			ev.note.address = strtoull(word + 3, NULL, 16);
	}
	calls_note(&trace->calls, &ev);
}

static inline void trace_check(struct trace *trace, char *words)
{
	uint64_t ips[64];
	struct event ev = { .kind = EVENT_CHECK,
			    .cpu = trace->cpu,
			    .sample = { .ips = ips, .context = IP_KERNEL, .ended = true } };
	uint64_t context = 0;
	char *word;

	while ((word = strtok_r(words, " ", &words))) {
		uint64_t here = *word == 'u' ? IP_USER : IP_KERNEL;

		if (!strcmp(word, "...")) {
			ev.sample.ended = false;
			break;
		}
		if (!strcmp(word, "|")) {
			ips[ev.sample.nr++] = context;
			continue;
		}
		if (!context)
			ev.sample.context = here;
		if (here != context)
			ips[ev.sample.nr++] = here;
		context = here;
		ips[ev.sample.nr++] = trace_value(trace, word);
	}
	calls_check(&trace->calls, &ev);
}

static inline void trace_take_sums(struct trace *trace)
{
	struct event ev;

	while (calls_sample(&trace->calls, &ev))
		;
}

static inline void trace_row(struct trace *trace, char *text)
{
	static const char *const kinds[] = {
		[BRANCH_JUMP] = "jump",	  [BRANCH_CALL] = "call",   [BRANCH_RETURN] = "return",
		[BRANCH_ENTER] = "enter", [BRANCH_LEAVE] = "leave", [BRANCH_BEGIN] = "begin",
		[BRANCH_END] = "end",
	};
	char *words, *kind = strtok_r(text, " ", &words);

	if (!strcmp(kind, "cpu") && !(trace->no_cpu = *words == '-'))
		trace->cpu = (uint32_t)atoi(words);
	else if (!strcmp(kind, "thread"))
		trace->thread = *words == '-' ? 0 : 1000 + (uint32_t)atoi(words);
	else if (!strcmp(kind, "space"))
		trace->space[trace->cpu] = (uint64_t)atoi(words);
	else if (!strcmp(kind, "guest"))
		trace->guest[trace->cpu] = (uint16_t)atoi(words);
	else if (!strcmp(kind, "check"))
		trace_check(trace, words);
	else if (!strcmp(kind, "off") || !strcmp(kind, "on") || !strcmp(kind, "unknown"))
		trace_mask(trace, kind, words);
	else if (!strcmp(kind, "note"))
		trace_note(trace, words);
	else if (!strcmp(kind, "sums"))
		trace_take_sums(trace);
	else if (!strcmp(kind, "syscall"))
		trace_branch(trace, BRANCH_ENTER, words, true);
	else
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (!strcmp(kind, kinds[i]))
				trace_branch(trace, (enum branch_kind)i, words, false);
		}
}

static inline void trace_rows(struct trace *trace, const char *rows)
{
	char *copy = strdup(rows), *rest = copy, *row;

	while ((row = strtok_r(rest, ";", &rest)))
		trace_row(trace, row);
	free(copy);
}

__attribute__((format(printf, 2, 3))) static inline void trace_print(struct trace *trace,
								     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (trace->len < sizeof(trace->text))
		trace->len += (size_t)vsnprintf(trace->text + trace->len,
						sizeof(trace->text) - trace->len, format, args);
	va_end(args);
}

static inline void trace_print_sums(struct trace *trace)
{
	const char *mode = "";
	struct event ev;

	while (calls_sample(&trace->calls, &ev)) {
		for (uint32_t i = 0; i < ev.sample.nr; i++) {
			uint64_t ip = ev.sample.ips[i];

			if (ip_is_marker(ip))
				mode = ip == IP_USER ? "u" : "";
			else
				trace_print(trace, "%s%" PRIx64 " ", mode, ip);
		}
		trace_print(trace, ": %" PRIu64 "\n", ev.sample.weight);
	}
}

static inline void trace_print_if(struct trace *trace, const char *name, uint64_t value,
				  uint64_t usual)
{
	if (value != usual)
		trace_print(trace, "%s %" PRIu64 " ", name, value);
}

/* What is not as in a plain trace of one task. */
static inline void trace_print_stats(struct trace *trace)
{
	const struct track_stats *s = &trace->calls.track.stats;
	const struct calls_checks *checks = &trace->calls.checks;
	size_t start = trace->len;

	trace_print_if(trace, "tasks", s->tasks, 1);
	trace_print_if(trace, "switches", s->switches, 0);
	trace_print_if(trace, "traps", s->traps, 0);
	trace_print_if(trace, "leaves", s->leaves, s->traps);
	trace_print_if(trace, "leaves-found", s->leaves_found, s->leaves);
	trace_print_if(trace, "lost", s->returns - s->found, 0);
	trace_print_if(trace, "jumps", s->jumps, 0);
	trace_print_if(trace, "beyond", s->beyond, 0);
	trace_print_if(trace, "strayed", s->strayed, 0);
	trace_print_if(trace, "doubtful", s->doubtful, 0);
	trace_print_if(trace, "rooted", s->rooted, s->instructions);
	trace_print_if(trace, "equal", checks->equal, 0);
	trace_print_if(trace, "partial", checks->partial, 0);
	trace_print_if(trace, "different", checks->different, 0);
	if (trace->len > start)
		trace->text[trace->len - 1] = '\n';
}

/* Runs a trace on a machine, and compares what comes out. */
static inline void expect_on(enum machine machine, const char *name, const char *rows,
			     const char *want)
{
	static const char *const machines[] = { "calls push", "calls link", "no stack pointers",
						"threads" };
	struct trace trace;
	char title[200];

	trace_begin(&trace, machine);
	trace_rows(&trace, rows);
	trace_print_sums(&trace);
	trace_print_stats(&trace);
	snprintf(title, sizeof(title), "%s (%s)", name, machines[machine]);
	check(title, !strcmp(trace.text, want));
	if (strcmp(trace.text, want))
		printf("have:\n%swant:\n%s", trace.text, want);
	trace_end(&trace);
}

static inline void expect(const char *name, const char *rows, const char *want)
{
	expect_on(PUSHES, name, rows, want);
	expect_on(LINKS, name, rows, want);
}

#endif
