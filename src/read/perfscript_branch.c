// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfscript_branch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/event.h"
#include "model/frame.h"
#include "read/perf_branch.h"

#define MIN_FUNCTION 64	      /* bytes: the first guess of how long a function is */
#define MAX_OFFSET 0x10000000 /* more is an error of perf */
#define MIN_CALL 2	      /* bytes of a call instruction */
#define MAX_CALL 7
#define MAX_DEPTH 4096
#define NO_CODE "5:" /* the error of perf which says that only the code is missing */

/* Nobody prints where a function ends. It is as long as needed, up to the next one. */
struct script_function {
	uint64_t start, len;
	uint32_t pid; /* 0: the kernel's */
	uint32_t name, binary;
	bool told;
};

/* An address with what the text says about it. */
struct script_place {
	uint64_t start; /* of its function; UINT64_MAX if unknown */
	bool kernel;
};

struct place {
	uint64_t address;
	struct span text;
	struct script_place known;
};

struct script_thread {
	bool away; /* it runs code that is not traced */
	struct perf_away kernel;
	/* If the text does not say what is a call: the addresses of calls that are not over. */
	uint64_t *calls;
	size_t nr, cap;
};

struct branch_line {
	struct place from, to;
	uint32_t flags; /* enum perf_branch_flags */
	uint64_t instructions, cycles;
	uint64_t size; /* of the branch instruction; 0: unknown */
};

void script_branches_release(struct script_branches *all)
{
	for (size_t i = 0; i < all->nr_threads; i++)
		free(all->threads[i].calls);
	free(all->threads);
	free(all->functions);
	free(all->order);
	free(all->places);
	hash_release(&all->function_at);
	hash_release(&all->place_at);
	hash_release(&all->thread_by_tid);
}

/* ---- words ---- */

static struct span take_word(struct span *rest)
{
	struct span word;

	while (rest->at < rest->end && is_blank(*rest->at))
		rest->at++;
	word.at = rest->at;
	while (rest->at < rest->end && !is_blank(*rest->at))
		rest->at++;
	word.end = rest->at;
	return word;
}

static bool word_is(struct span word, const char *text)
{
	return span_len(word) == strlen(text) && !memcmp(word.at, text, span_len(word));
}

static bool address_word(struct span word, uint64_t *address)
{
	return span_len(word) && span_len(word) <= 16 && text_hex(word.at, span_len(word), address);
}

/* ---- flags ---- */

static const struct {
	const char *word;
	uint32_t flags;
} words[] = {
	{ "call", PERF_IS_CALL },
	{ "return", PERF_IS_RETURN },
	{ "jcc", PERF_IS_CONDITIONAL },
	{ "jmp", PERF_IS_BRANCH },
	{ "syscall", PERF_IS_CALL | PERF_IS_SYSCALL },
	{ "sysret", PERF_IS_RETURN | PERF_IS_SYSCALL },
	{ "int", PERF_IS_CALL | PERF_IS_INTERRUPT },
	{ "hw", PERF_IS_ASYNC },
	{ "iret", PERF_IS_RETURN | PERF_IS_INTERRUPT },
	{ "async", PERF_IS_ASYNC },
	{ "abrt", PERF_IS_ABORT },
	{ "vmentry", PERF_IS_CALL | PERF_IS_VMENTRY },
	{ "vmexit", PERF_IS_CALL | PERF_IS_VMEXIT },
	{ "strt", PERF_IS_BEGIN },
	{ "end", PERF_IS_END },
};

/* Newer versions of perf add "/miss" or the like. */
static uint32_t flag_word(struct span word)
{
	const char *slash = memchr(word.at, '/', span_len(word));

	if (slash)
		word.end = slash;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (word_is(word, words[i].word))
			return words[i].flags;
	}
	return 0;
}

/* ---- places ---- */

/* The end of a place at the end of the line: its binary, or its name. */
static struct span cut_extra(struct span text)
{
	static const char *const extras[] = { " insn:", " ilen:", " IPC:" };

	for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++) {
		const char *at = memmem(text.at, span_len(text), extras[i], strlen(extras[i]));

		if (at)
			text.end = at;
	}
	return text;
}

static const char *find_arrow(struct span text)
{
	return memmem(text.at, span_len(text), " => ", 4);
}

bool script_has_arrow(struct span tail)
{
	tail = span_trim(tail);
	return find_arrow(tail) || span_begins(tail, "=> ") ||
	       (span_len(tail) > 2 && !memcmp(tail.end - 3, " =>", 3));
}

bool script_is_branch(struct span tail)
{
	const char *arrow = find_arrow(tail);
	struct span after = { arrow ? arrow + 4 : tail.end, tail.end };
	uint64_t address;

	return arrow && address_word(take_word(&after), &address);
}

/* ---- extra parts ---- */

static void parse_counts(struct span extra, struct branch_line *line)
{
	const char *at = memmem(extra.at, span_len(extra), "IPC:", 4);
	const char *open = at ? memchr(at, '(', (size_t)(extra.end - at)) : NULL;
	const char *slash = open ? memchr(open, '/', (size_t)(extra.end - open)) : NULL;
	const char *close = slash ? memchr(slash, ')', (size_t)(extra.end - slash)) : NULL;

	if (!close || !text_u64(open + 1, (size_t)(slash - open - 1), &line->instructions) ||
	    !text_u64(slash + 1, (size_t)(close - slash - 1), &line->cycles))
		line->instructions = line->cycles = 0;
}

/* The bytes of the instruction, "insn: e8 01 02 03 04", or only their number, "ilen: 5". */
static void parse_insn(struct span extra, struct branch_line *line)
{
	const char *insn = memmem(extra.at, span_len(extra), " insn:", 6);
	const char *ilen = memmem(extra.at, span_len(extra), " ilen:", 6);
	struct span rest = { insn ? insn + 6 : extra.end, extra.end }, word;
	struct span number = { ilen ? ilen + 6 : extra.end, extra.end };
	uint64_t byte;

	while (span_len(word = take_word(&rest)) == 2 && text_hex(word.at, 2, &byte))
		line->size++;
	word = take_word(&number);
	if (span_len(word) && text_u64(word.at, span_len(word), &byte))
		line->size = byte;
}

static bool parse_line(struct span tail, struct branch_line *line)
{
	const char *arrow = find_arrow(tail);
	struct span left = { tail.at, arrow }, right = { arrow + 4, tail.end }, word;

	*line = (struct branch_line){ 0 };
	do {
		word = take_word(&left);
		if (!span_len(word))
			return false;
		line->flags |= flag_word(word);
	} while (!address_word(word, &line->from.address));
	if (!address_word(take_word(&right), &line->to.address))
		return false;
	parse_counts(right, line);
	parse_insn(right, line);
	line->from.text = span_trim(left);
	line->to.text = span_trim(cut_extra(right));
	return true;
}

/* ---- functions ---- */

static struct event *queue_event(struct script_branches *all, const struct first_line *first,
				 enum event_kind kind)
{
	struct event *ev = &all->queue[all->nr++];

	*ev = (struct event){ .kind = kind,
			      .time = first->start.time,
			      .cpu = first->start.cpu,
			      .pid = first->start.pid,
			      .tid = first->start.tid };
	return ev;
}

static uint64_t power_above(uint64_t offset)
{
	uint64_t size = MIN_FUNCTION;

	while (size <= offset)
		size *= 2;
	return size;
}

/* The place of the first function in `order` that begins after this address. */
static size_t order_after(const struct script_branches *all, uint32_t pid, uint64_t address)
{
	size_t first = 0, last = all->nr_functions;

	while (first < last) {
		size_t middle = (first + last) / 2;
		const struct script_function *f = &all->functions[all->order[middle]];

		if (f->pid < pid || (f->pid == pid && f->start <= address))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* So that a function does not hide the next one, which is known already. */
static uint64_t room_after(const struct script_branches *all, const struct script_function *f)
{
	size_t next = order_after(all, f->pid, f->start);
	const struct script_function *other =
		next < all->nr_functions ? &all->functions[all->order[next]] : NULL;

	return other && other->pid == f->pid ? other->start - f->start : UINT64_MAX;
}

static uint32_t add_function(struct script_branches *all, const struct script_function *f)
{
	size_t at = order_after(all, f->pid, f->start), nr = all->nr_functions;

	GROW(all->functions, nr + 1, all->cap_functions);
	GROW(all->order, nr + 1, all->cap_order);
	memmove(all->order + at + 1, all->order + at, (nr - at) * sizeof(*all->order));
	all->functions[nr] = *f;
	all->order[at] = (uint32_t)nr;
	return (uint32_t)all->nr_functions++;
}

static void tell_function(struct reader *r, struct script_branches *all,
			  const struct first_line *first, const struct script_function *f)
{
	struct strtab *strings = r->frames->strings;
	struct event *ev = queue_event(all, first, EVENT_SYMBOL);

	ev->symbol =
		(struct event_symbol){ .addr = f->start,
				       .len = f->len,
				       .name = str_text(strings, f->name),
				       .binary = f->binary ? str_text(strings, f->binary) : NULL,
				       .user = f->pid != 0 };
	if (f->pid)
		ev->pid = ev->tid = f->pid;
}

/* The function has this address: tells its name, unless that is known. */
static void need_function(struct reader *r, struct script_branches *all,
			  const struct first_line *first, struct script_function want,
			  uint64_t address)
{
	uint32_t *at = hash_at(&all->function_at, (struct hash_key){ want.start, want.pid });
	struct script_function *f;
	uint64_t room;

	if (!*at)
		*at = add_function(all, &want) + 1;
	f = &all->functions[*at - 1];
	room = room_after(all, f);
	if (f->told && f->name == want.name && f->binary == want.binary &&
	    address - f->start < f->len)
		return;
	want.len = want.len ? want.len : power_above(address - f->start);
	want.told = true;
	*f = want;
	if (f->len > room)
		f->len = room;
	tell_function(r, all, first, f);
}

/* The offset after a name, "+0x12"; UINT64_MAX if there is none. */
static uint64_t offset_after(struct span name, struct span text)
{
	struct span rest = { name.end, text.end }, word = take_word(&rest);
	uint64_t offset;

	if (name.end < text.end && *name.end == '+' && span_len(word) > 3 &&
	    text_hex(word.at + 3, span_len(word) - 3, &offset) && offset < MAX_OFFSET)
		return offset;
	return UINT64_MAX;
}

static uint32_t intern(struct reader *r, struct span text)
{
	return span_len(text) ? str_intern(r->frames->strings, text.at, span_len(text)) : 0;
}

/* A place that the text has not had before. */
static struct script_place new_place(struct reader *r, struct script_branches *all,
				     const struct first_line *first, const struct place *place)
{
	struct frame_parts parts = script_frame_parts(place->text);
	uint64_t offset = offset_after(parts.name, place->text);
	bool kernel = parts.kernel || place->address >> 63;
	struct script_function f = { .start = place->address,
				     .pid = kernel ? 0 : first->start.pid,
				     .name = script_name(r, &parts),
				     .binary = intern(r, parts.binary) };

	if (word_is(parts.binary, "[unknown]"))
		f.binary = 0;
	if (offset <= place->address)
		f.start -= offset;
	else
		f.len = 1; /* where the function begins is unknown */
	if (span_len(parts.name) || f.binary)
		need_function(r, all, first, f, place->address);
	return (struct script_place){ f.len ? UINT64_MAX : f.start, kernel };
}

static void name_place(struct reader *r, struct script_branches *all,
		       const struct first_line *first, struct place *place)
{
	struct hash_key key = { place->address ^ (uint64_t)first->start.pid << 48,
				hash_bytes(place->text.at, span_len(place->text)) };
	uint32_t *at;

	if (!place->address)
		return;
	at = hash_at(&all->place_at, key);
	if (!*at) {
		GROW(all->places, all->nr_places + 1, all->cap_places);
		all->places[all->nr_places] = new_place(r, all, first, place);
		*at = (uint32_t)++all->nr_places;
	}
	place->known = all->places[*at - 1];
}

/* ---- branches ---- */

static struct script_thread *thread_of(struct script_branches *all, uint32_t tid)
{
	uint32_t *at = hash_at(&all->thread_by_tid, (struct hash_key){ tid, 0 });

	if (!*at) {
		GROW(all->threads, all->nr_threads + 1, all->cap_threads);
		all->threads[all->nr_threads] = (struct script_thread){ 0 };
		*at = (uint32_t)++all->nr_threads;
	}
	return &all->threads[*at - 1];
}

/* Whether the thread returns there: right after one of its calls. That and later calls are over. */
static bool ends_call(struct script_thread *thread, uint64_t address)
{
	for (size_t i = thread->nr; i-- > 0;) {
		uint64_t size = address - thread->calls[i];

		if (size < MIN_CALL || size > MAX_CALL)
			continue;
		thread->nr = i;
		return true;
	}
	return false;
}

static void push_call(struct script_thread *thread, uint64_t address)
{
	if (thread->nr == MAX_DEPTH)
		thread->nr = 0;
	GROW(thread->calls, thread->nr + 1, thread->cap);
	thread->calls[thread->nr++] = address;
}

/* The text does not say what kind of branch it is. */
static uint32_t guess_flags(struct script_thread *thread, const struct branch_line *line)
{
	const struct place *from = &line->from, *to = &line->to;

	if (!from->address)
		return PERF_IS_BEGIN;
	if (!to->address)
		return from->known.kernel ? PERF_IS_END : PERF_IS_END | PERF_IS_INTERRUPT;
	if (from->known.kernel != to->known.kernel)
		return PERF_IS_INTERRUPT | (from->known.kernel ? PERF_IS_RETURN : PERF_IS_CALL);
	if (ends_call(thread, to->address))
		return PERF_IS_RETURN;
	if (to->address != to->known.start)
		return PERF_IS_BRANCH;
	push_call(thread, from->address);
	return PERF_IS_CALL;
}

static void add_branch(struct script_branches *all, const struct first_line *first,
		       const struct branch_line *line)
{
	struct script_thread *thread = thread_of(all, first->start.tid);
	struct event *ev = queue_event(all, first, EVENT_BRANCH);

	ev->branch = perf_branch(&(struct perf_branch){
		.flags = line->flags ? line->flags : guess_flags(thread, line),
		.from = line->from.address,
		.to = line->to.address,
		.size = line->size,
		.from_kernel = line->from.known.kernel,
		.to_kernel = line->to.known.kernel,
		.instructions = line->instructions,
		.cycles = line->cycles,
	});
	perf_branch_back(&thread->kernel, &ev->branch);
	thread->away = !ev->branch.to || ev->branch.kind == BRANCH_END;
}

bool script_branch(struct reader *r, struct script_branches *all, const struct first_line *first)
{
	struct branch_line line;

	if (!script_is_branch(first->tail) || !parse_line(first->tail, &line))
		return false;
	all->nr = all->next = 0;
	name_place(r, all, first, &line.from);
	name_place(r, all, first, &line.to);
	add_branch(all, first, &line);
	return true;
}

/* ---- errors ---- */

static bool number_after(struct span line, const char *key, struct span *number)
{
	const char *at = memmem(line.at, span_len(line), key, strlen(key));
	struct span rest = { at ? at + strlen(key) : line.end, line.end };

	*number = take_word(&rest);
	return at != NULL;
}

bool script_is_error(struct span line)
{
	return span_begins(span_trim(line), "instruction trace error");
}

/*
 * " instruction trace error type 1 time 12.345678901 cpu 0 pid 1 tid 2 ip 0x0 code 7: Overflow packet". The next
 * branch of the thread begins its trace anew, and the tracker sees the gap, unless the thread runs code that is
 * not traced.
 */
bool script_error(struct script_branches *all, struct span line)
{
	struct first_line first = { .start = script_no_start };
	struct span time, pid, tid, code;
	struct script_thread *thread;
	struct event *ev;

	if (!script_is_error(line))
		return false;
	all->nr = all->next = 0;
	if (number_after(line, " time ", &time))
		text_seconds(time.at, span_len(time), &first.start.time);
	if (number_after(line, " pid ", &pid))
		text_u32(pid.at, span_len(pid), &first.start.pid);
	if (number_after(line, " tid ", &tid))
		text_u32(tid.at, span_len(tid), &first.start.tid);
	thread = thread_of(all, first.start.tid);
	if (!number_after(line, " code ", &code) || !word_is(code, NO_CODE))
		thread->kernel.back = 0;
	if (thread->away) {
		ev = queue_event(all, &first, EVENT_BRANCH);
		ev->branch = (struct event_branch){
			.kind = BRANCH_END, .by_thread = true, .over = true, .context = IP_USER
		};
		thread->away = false;
	}
	queue_event(all, &first, EVENT_LOST)->lost.count = 1;
	return true;
}
