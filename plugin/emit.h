/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emit: writes the codes of wire/trace.h into the ring of a track. They stay private to the thread of
 * the vCPU until emit_commit().
 */
#ifndef KSCOPE_PLUGIN_EMIT_H
#define KSCOPE_PLUGIN_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "stream.h"
#include "wire/trace.h"

#define CODE_ROOM 256 /* more than is written between two calls of emit_room() */

/* No pending steps: only the marker. */
#define EMIT_NO_STEPS (1ull << 63)

struct emit_out {
	struct track *track;
	uint8_t *begin, *at, *end; /* begin: end of the committed bytes */
	uint8_t *run;		   /* first byte of the current steps of 64, or NULL */
	uint64_t steps;		   /* not yet written: see emit_step() */
	uint64_t since_sync;	   /* bytes */
	uint64_t time;		   /* last one written */
	bool asleep;		   /* see emit_sleep() */
};

void emit_open(struct emit_out *out, struct track *track); /* asleep; track: may be NULL */
/* Makes the bytes so far visible to the writer thread. */
void emit_commit(struct emit_out *out);
/* Makes room for CODE_ROOM bytes. False: there is none, and the trace has to start afresh. */
bool emit_room(struct emit_out *out);
/* Writes the pending steps. To be called before any other code. */
void emit_close_steps(struct emit_out *out);
void emit_time(struct emit_out *out, uint64_t now);
/* Between these two, the vCPU writes no trace, and the writer thread does not wait for any. */
void emit_sleep(struct emit_out *out);
void emit_wake(struct emit_out *out); /* before reading the clock */

static inline void emit_byte(struct emit_out *out, uint8_t byte)
{
	*out->at++ = byte;
}

static inline void emit_number(struct emit_out *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		*out->at++ = (uint8_t)(value | 0x80);
	*out->at++ = (uint8_t)value;
}

static inline void emit_signed(struct emit_out *out, uint64_t value)
{
	emit_number(out, wire_zigzag(value));
}

/*
 * Adds a step at the top. The lowest set bit is a marker below the oldest step. True: the word is full, and
 * needs emit_word().
 */
static inline bool emit_step(struct emit_out *out, bool bit)
{
	bool full = out->steps & 1;

	out->steps = out->steps >> 1 | (uint64_t)bit << 63;
	return full;
}

/* Writes 64 steps. */
static inline void emit_word(struct emit_out *out)
{
	if (!out->run || *out->run == WIRE_TRACE_WORDS_MAX) {
		out->run = out->at++;
		*out->run = 0;
	}
	++*out->run;
	memcpy(out->at, &out->steps, 8);
	out->at += 8;
	out->steps = EMIT_NO_STEPS;
}

#endif
