// SPDX-License-Identifier: GPL-2.0-or-later
/* Check points: samples inside the trace. */
#include "api.h"
#include "args.h"
#include "sample.h"
#include "trace_parts.h"

/* Where instruction counts are exact, and the same in every run, an instruction is a ns. */
static uint64_t check_clock(const struct tracer *t)
{
	bool exact = args.clock == WIRE_CLOCK_INSTRUCTIONS ||
		     (args.clock == WIRE_CLOCK_GUEST && api_counts_time());

	return exact ? t->total : sample_now();
}

/*
 * Whether a sample is due. Samples alternate between slow steps, which include switches of the stack and
 * returns from traps, and all other steps. If the wanted kind is a period late, either will do.
 */
static bool check_due(struct tracer *t, bool in_word)
{
	uint64_t now = check_clock(t);

	if (!t->check_at)
		t->check_at = now + args.check;
	if (now < t->check_at || (in_word != t->in_word && now < t->check_at + args.check))
		return false;
	t->check_at = now + args.check;
	t->in_word = !in_word;
	return true;
}

bool trace_check(struct tracer *t, bool in_word)
{
	uint64_t pc;

	if (!check_due(t, in_word))
		return true;
	if (!emit_room(&t->out))
		return false;
	emit_time(&t->out, sample_now());
	emit_close_steps(&t->out);
	pc = t->cur->wire.start + t->shift;
	if (!sample_in_trace(t->out.track, t->cpu, pc, t->place + 1))
		return true;
	emit_byte(&t->out, WIRE_TRACE_SAMPLE);
	emit_number(&t->out, ++t->place);
	return true;
}
