/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of wire_trace share. */
#ifndef KSCOPE_READ_WIRE_TRACE_PARTS_H
#define KSCOPE_READ_WIRE_TRACE_PARTS_H

#include "read/wire_trace.h"
#include "wire/wire.h"

#define WIRE_TRACE_WAITS 0x80 /* in the mask of a block: it ends with a wait */

/* wire_trace_block.c: numbers, and definitions of blocks. False or NULL: damage. */

static inline bool wire_trace_byte(struct wire_trace *trace, unsigned *value)
{
	if (trace->at == trace->end)
		return false;
	*value = *trace->at++;
	return true;
}

bool wire_trace_number(struct wire_trace *trace, uint64_t *value);
bool wire_trace_signed(struct wire_trace *trace, uint64_t *value);
struct wire_trace_block *wire_trace_definition(struct wire_trace *trace);

/* Events */

static inline void wire_trace_head(const struct wire_trace *trace, struct event *ev,
				   enum event_kind kind)
{
	ev->kind = kind;
	ev->input = 0;
	ev->time = trace->time;
	ev->cpu = trace->cpu;
	ev->made_of = 0;
	ev->outside = 0;
}

/* Where the next event of a step goes. */
static inline struct event *wire_trace_place(struct wire_trace *trace)
{
	return &trace->queue[trace->nr_queued];
}

/* wire_trace_mask.c: whether interrupts are on. since: instructions since the last branch. */

void wire_trace_forget_masks(struct wire_trace *trace);
/* Adds an event if it changed. */
void wire_trace_show_mask(struct wire_trace *trace, unsigned level, uint64_t since);
void wire_trace_set_mask(struct wire_trace *trace, unsigned level, unsigned mask, uint64_t since);
/* At a time code: there is one before and after each wait, if QEMU tells of it. */
void wire_trace_wait(struct wire_trace *trace);
/* The instructions of the current block that ran, and what a trap interrupted. */
void wire_trace_mask_in_block(struct wire_trace *trace, uint64_t ran);
/* The state after a step. Code switches interrupts on before its branch; a trap, off after it. */
void wire_trace_mask_of_state(struct wire_trace *trace);

#endif
