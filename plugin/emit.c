// SPDX-License-Identifier: GPL-2.0-or-later
#include "emit.h"

#define PIECE 16384 /* bytes per commit */

void emit_open(struct emit_out *out, struct track *track)
{
	*out = (struct emit_out){ .track = track, .steps = EMIT_NO_STEPS, .asleep = true };
}

void emit_commit(struct emit_out *out)
{
	size_t size = (size_t)(out->at - out->begin);

	out->run = NULL;
	if (!size)
		return;
	trace_commit(out->track, size, out->time);
	out->since_sync += size;
	out->begin = out->at = out->end = NULL;
}

bool emit_room(struct emit_out *out)
{
	if (out->end - out->at >= CODE_ROOM)
		return true;
	emit_commit(out);
	out->begin = out->at = trace_room(out->track, PIECE);
	out->end = out->at ? out->at + PIECE : NULL;
	return out->at;
}

void emit_close_steps(struct emit_out *out)
{
	unsigned n = 63 - (unsigned)__builtin_ctzll(out->steps);
	uint64_t steps;

	out->run = NULL;
	if (!n)
		return;
	steps = out->steps >> (64 - n);
	emit_byte(out, (uint8_t)(WIRE_TRACE_STEPS | n));
	for (unsigned i = 0; i < n; i += 8) {
		emit_byte(out, (uint8_t)steps);
		steps >>= 8;
	}
	out->steps = EMIT_NO_STEPS;
}

void emit_time(struct emit_out *out, uint64_t now)
{
	if (now <= out->time)
		return;
	emit_close_steps(out);
	emit_byte(out, WIRE_TRACE_TIME);
	emit_number(out, now - out->time);
	out->time = now;
}

void emit_sleep(struct emit_out *out)
{
	emit_commit(out);
	trace_sleep(out->track);
	out->asleep = true;
}

void emit_wake(struct emit_out *out)
{
	if (out->asleep)
		trace_wake(out->track, out->time);
	out->asleep = false;
}
