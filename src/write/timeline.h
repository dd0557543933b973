/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline: what the writers of timelines share: names and arguments of slices. */
#ifndef KSCOPE_WRITE_TIMELINE_H
#define KSCOPE_WRITE_TIMELINE_H

#include "base/buf.h"
#include "model/event.h"
#include "model/world.h"

#define TIMELINE_MAX_TEXT 32000 /* bytes of a name; what the Fuchsia trace format allows */

#define TIMELINE_KINDS SLICE_SPLIT /* kinds of slices; what follows is none */

enum timeline_arg_id {
	TIMELINE_INSTRUCTIONS,
	TIMELINE_OWN,
	TIMELINE_LINES,
	TIMELINE_OWN_LINES,
	TIMELINE_SPAN,
	TIMELINE_BEGAN_BEFORE,
	TIMELINE_GOES_ON,
	TIMELINE_ARGS
};

extern const char *const timeline_arg_names[TIMELINE_ARGS];
extern const char *const timeline_kind_names[TIMELINE_KINDS];

enum timeline_type { TIMELINE_NUMBER, TIMELINE_TRUE, TIMELINE_TEXT };

struct timeline_arg {
	enum timeline_arg_id id;
	enum timeline_type type;
	uint64_t number;
};

struct timeline_args {
	struct timeline_arg all[TIMELINE_ARGS];
	size_t nr;
	char text[64]; /* of the argument that is a TIMELINE_TEXT */
	size_t len;
};

/* The arguments of the begin or the end of a slice. */
void timeline_args(struct timeline_args *args, const struct event *ev);

/* A pid or a tid, as far as it fits: Perfetto has signed ones of 32 bits. An unknown one is the largest. */
static inline uint32_t timeline_id(uint32_t id)
{
	return id & INT32_MAX;
}

/* What a rate is, and its value, which holds from ev->slice.since on. */
#define TIMELINE_RATE "instructions/s"
uint64_t timeline_rate(const struct event *ev);

/* Whether the slice is on the time axis of a cpu, not of a task. */
bool timeline_on_cpu(const struct event_slice *slice);
#define TIMELINE_CPU_NAME 48
/* masked: of the axis of SLICE_MASKED. */
void timeline_cpu_name(char name[TIMELINE_CPU_NAME], uint32_t cpu, bool masked);

/* The name of a slice, and of a task or a process (tid == pid): handles of texts, never 0. */
uint32_t timeline_name(struct world *world, const struct event *ev);
uint32_t timeline_comm(struct world *world, uint32_t pid, uint32_t tid);
/* A name in UTF-8 without control characters, TIMELINE_MAX_TEXT at most. `scratch` owns it. */
const char *timeline_text(struct buf *scratch, const struct world *world, uint32_t name);

/* Call this at the end of a timeline without slices. */
void timeline_warn_empty(const char *path);

/* A number for each text. Zeroed: all are 0. */
struct timeline_numbers {
	uint32_t *of;
	size_t cap;
};

/* Valid until the next call. */
uint32_t *timeline_number(struct timeline_numbers *numbers, uint32_t name);
void timeline_numbers_release(struct timeline_numbers *numbers);

#endif
