// SPDX-License-Identifier: GPL-2.0-or-later
/* Traces that are long enough for a thread: what it decodes ahead is what one cpu's decoder returns. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "read/wire_merge.h"
#include "test.h"

#define CPUS 3
#define PIECES 300
#define STEP 2000000 /* ns from one piece to the next */
#define DAMAGED 150  /* this piece of cpu 1 */

#define TIMED 20 /* pieces with several times */

static const struct wire_trace_info info;

struct trace { /* of one cpu */
	struct buf pieces[PIECES];
	uint64_t digest, alone; /* of its events: after the merge, and decoded alone */
	size_t nr, nr_alone;
};

/* A block that jumps to itself, or goes on. The first piece of a trace and the one after damage. */
static void add_begin(struct buf *buf)
{
	static const uint8_t begin[] = {
		0xc6, 2,    0,	  0,		       /* begin, nothing is known */
		0xc5, 5,    0x80, 0x80, 0x02, 1,       /* sp 0x4000, kernel */
		0xc1, 0x80, 0x40, 2,	2,    4, 2, 7, /* the loop, to its beginning */
		0xc0, 0,			       /* once more */
	};

	buf_add(buf, begin, sizeof(begin));
}

/* The loop runs many times. */
static void add_loop(struct buf *buf, unsigned words)
{
	static const uint8_t steps[8 * 127];
	uint8_t code = (uint8_t)words;

	buf_add(buf, &code, 1);
	buf_add(buf, steps, 8 * (size_t)words);
}

static void add_time(struct buf *buf)
{
	static const uint8_t time[] = { 0xc4, 0x80, 0x89, 0x7a }; /* STEP */

	buf_add(buf, time, sizeof(time));
}

static void add_steps(struct buf *buf, unsigned words)
{
	add_time(buf);
	add_loop(buf, words);
}

static bool begins(uint32_t cpu, size_t piece)
{
	return !piece || (cpu == 1 && piece == DAMAGED + 2);
}

static void make_trace(struct trace *trace, uint32_t cpu)
{
	for (size_t i = 0; i < PIECES; i++) {
		struct buf *buf = &trace->pieces[i];

		if (begins(cpu, i))
			add_begin(buf);
		add_steps(buf, 1 + (unsigned)(i * 7 + cpu) % 127);
		if (cpu == 1 && i == DAMAGED)
			buf_add(buf, "\xff", 1);
	}
}

static uint64_t time_of(uint32_t cpu, size_t piece)
{
	return begins(cpu, piece) ? piece * STEP : NO_TIME;
}

static uint64_t digest(uint64_t before, const struct event *ev)
{
	uint64_t words[] = { before,	      ev->time,
			     ev->cpu,	      ev->branch.kind,
			     ev->branch.from, ev->branch.to,
			     ev->branch.next, ev->branch.instructions };

	return hash_bytes(words, sizeof(words));
}

static void decode_alone(struct trace *trace, uint32_t cpu)
{
	struct wire_trace decoder;
	struct event ev;

	wire_trace_init(&decoder, cpu, info);
	for (size_t i = 0; i < PIECES; i++) {
		const struct buf *buf = &trace->pieces[i];

		wire_trace_feed(&decoder, (const uint8_t *)buf->data, buf->len, time_of(cpu, i));
		for (; wire_trace_next(&decoder, &ev) > 0; trace->nr_alone++)
			trace->alone = digest(trace->alone, &ev);
	}
	wire_trace_release(&decoder);
}

struct result {
	uint64_t last; /* time */
	bool ordered;
	size_t nr_damaged;
	uint64_t damaged_at;
};

static void take(struct trace *traces, struct result *result, const struct event *ev)
{
	struct trace *trace = &traces[ev->cpu];

	trace->digest = digest(trace->digest, ev);
	trace->nr++;
	result->ordered &= ev->time >= result->last;
	result->last = ev->time;
}

/* As the reader does: one event, then those that follow it. */
static void drain(struct wire_merge *merge, struct trace *traces, struct result *result)
{
	struct event ev, *more;
	size_t nr;
	int ret;

	while ((ret = wire_merge_next(merge, &ev))) {
		if (ret < 0) {
			result->nr_damaged++;
			result->damaged_at = merge->wrong_offset;
			continue;
		}
		take(traces, result, &ev);
		while ((nr = wire_merge_peek(merge, 50, &more))) {
			for (size_t i = 0; i < nr; i++)
				take(traces, result, &more[i]);
			wire_merge_take(merge, nr);
		}
	}
}

static void add_piece(struct wire_merge *merge, const struct trace *trace, uint32_t cpu,
		      size_t piece)
{
	const struct buf *buf = &trace->pieces[piece];

	wire_merge_add(merge, cpu, (const uint8_t *)buf->data, buf->len, time_of(cpu, piece), false,
		       piece << 16);
}

static void test_merge(struct trace *traces)
{
	struct result result = { .ordered = true };
	struct wire_merge merge = { 0 };
	bool same = true;

	for (size_t i = 0; i < PIECES; i++) {
		for (uint32_t cpu = 0; cpu < CPUS; cpu++)
			add_piece(&merge, &traces[cpu], cpu, i);
		wire_merge_until(&merge, i * STEP);
		drain(&merge, traces, &result);
	}
	wire_merge_until(&merge, UINT64_MAX);
	drain(&merge, traces, &result);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		same &= traces[cpu].nr == traces[cpu].nr_alone &&
			traces[cpu].digest == traces[cpu].alone;
	check("ahead: each cpu's events, all of them and in their order",
	      same && traces[0].nr > 1000000);
	check("ahead: in order of time", result.ordered);
	check("ahead: one damaged place, where it is",
	      result.nr_damaged == 1 &&
		      result.damaged_at == (DAMAGED << 16) + traces[1].pieces[DAMAGED].len);
	wire_merge_release(&merge);
}

/* A reader may stop at any time, for example if its output fails. */
static void test_release(const struct trace *traces)
{
	struct wire_merge merge = { 0 };
	struct event ev;

	for (size_t i = 0; i < PIECES; i++) {
		for (uint32_t cpu = 0; cpu < CPUS; cpu++)
			add_piece(&merge, &traces[cpu], cpu, i);
	}
	wire_merge_until(&merge, UINT64_MAX);
	check("ahead: the first event", wire_merge_next(&merge, &ev) == 1);
	wire_merge_release(&merge);
	check("ahead: and no more", !merge.ahead.nr);
}

/* Between two times, there are more or fewer events than the decoder keeps without a time. */
static void make_timed(struct trace *trace, uint32_t cpu)
{
	for (size_t i = 0; i < TIMED; i++) {
		struct buf *buf = &trace->pieces[i];

		buf_clear(buf);
		if (!i)
			add_begin(buf);
		for (size_t j = 0; j < 5; j++) {
			for (size_t loops = (i + j * 3 + cpu) % 4; loops; loops--)
				add_loop(buf, 120);
			add_time(buf);
		}
	}
}

static void merge_timed(struct trace *traces, bool threaded)
{
	struct wire_merge merge = { .ahead.info.has_waits = true, .ahead.tried = !threaded };
	struct result result = { 0 };

	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		traces[cpu].digest = traces[cpu].nr = 0;
		for (size_t i = 0; i < TIMED; i++)
			add_piece(&merge, &traces[cpu], cpu, i);
	}
	wire_merge_until(&merge, UINT64_MAX);
	drain(&merge, traces, &result);
	wire_merge_release(&merge);
}

/* The times of events between two readings of the clock do not depend on how far the thread is ahead. */
static void test_times(struct trace *traces)
{
	uint64_t digests[CPUS];
	bool same = true;

	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		make_timed(&traces[cpu], cpu);
	merge_timed(traces, false);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		digests[cpu] = traces[cpu].digest;
	for (unsigned i = 0; i < 3; i++) {
		merge_timed(traces, true);
		for (uint32_t cpu = 0; cpu < CPUS; cpu++)
			same &= traces[cpu].digest == digests[cpu];
	}
	check("ahead: the same times with and without a thread", same && traces[0].nr > 1000000);
}

/*
 * A step that comes right after a time happened at that time, even if the cpu then waits long for the host: another
 * cpu may go on with its task.
 */
static void test_exact(void)
{
	static const uint8_t go[] = { 0xc0, 0 };
	struct wire_merge merge = { .ahead.info.has_waits = true, .ahead.tried = true };
	struct buf buf = { 0 };
	struct event ev;
	bool exact = true;
	size_t nr = 0;

	add_begin(&buf);
	for (int i = 0; i < 3; i++) {
		add_time(&buf);
		buf_add(&buf, go, sizeof(go));
		buf_add(&buf, go, sizeof(go));
	}
	add_time(&buf);
	wire_merge_add(&merge, 0, (const uint8_t *)buf.data, buf.len, 0, false, 0);
	wire_merge_until(&merge, UINT64_MAX);
	for (; wire_merge_next(&merge, &ev) > 0; nr++) { /* two events before the first time */
		uint64_t since = nr < 2 ? 0 : ev.time - ((nr - 2) / 2 + 1) * STEP;

		exact &= nr < 2 || (nr % 2 ? since > 0 && since < STEP : since == 0);
	}
	check("ahead: a step right after a time has that time, the next one a later one",
	      exact && nr == 8);
	wire_merge_release(&merge);
	buf_release(&buf);
}

int main(void)
{
	struct trace *traces = xcalloc(CPUS, sizeof(*traces));

	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		make_trace(&traces[cpu], cpu);
		decode_alone(&traces[cpu], cpu);
	}
	test_merge(traces);
	test_release(traces);
	test_times(traces);
	test_exact();
	for (size_t i = 0; i < CPUS * PIECES; i++)
		buf_release(&traces[i / PIECES].pieces[i % PIECES]);
	free(traces);
	return test_result();
}
