/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline: what the writers of timelines share: names and arguments of slices. */
#ifndef KSCOPE_WRITE_TIMELINE_H
#define KSCOPE_WRITE_TIMELINE_H

#include "base/buf.h"
#include "model/event.h"
#include "model/world.h"

#define TIMELINE_MAX_TEXT 32000 /* bytes of a name; what the Fuchsia trace format allows */

#define TIMELINE_KINDS SLICE_SPLIT /* kinds that are shown with their names */

enum timeline_arg_id {
	TIMELINE_INSTRUCTIONS,
	TIMELINE_OWN,
	TIMELINE_LINES,
	TIMELINE_OWN_LINES,
	TIMELINE_SAMPLES,
	TIMELINE_TIME,
	TIMELINE_BEGAN_BEFORE,
	TIMELINE_GOES_ON,
	TIMELINE_CYCLES,
	TIMELINE_OWN_CYCLES,
	TIMELINE_ADDRESS,
	TIMELINE_FUNCTION,
	TIMELINE_NOTE, /* the first field of a note */
	TIMELINE_ARGS = TIMELINE_NOTE + NOTE_FIELDS
};

enum timeline_type { TIMELINE_NUMBER, TIMELINE_TRUE, TIMELINE_TEXT };

struct timeline_arg_info {
	const char *name;
	enum timeline_type type;
};

struct timeline_arg_info timeline_arg_info(unsigned id);
extern const char *const timeline_kind_names[TIMELINE_KINDS];

struct timeline_arg {
	enum timeline_arg_id id;
	uint64_t number; /* of a TIMELINE_NUMBER */
	/* Of a TIMELINE_TEXT: */
	const char *text;
	size_t len;
};

struct timeline_args {
	struct timeline_arg all[TIMELINE_ARGS];
	size_t nr;
	char time[48], address[24];
};

/* The arguments of the begin or the end of a slice, and of a note. The texts are valid as long as these, and `scratch`. */
void timeline_args(struct timeline_args *args, struct buf *scratch, struct world *world,
		   const struct event *ev);

/* A pid or a tid, as far as it fits: Perfetto has signed ones of 32 bits. An unknown one is the largest. */
static inline uint32_t timeline_id(uint32_t id)
{
	return id & INT32_MAX;
}

/* What a rate is, and its value, which holds from ev->slice.since on. */
#define TIMELINE_RATE "instructions/s"
uint64_t timeline_rate(const struct event *ev);

/* Whether the slice is on the time axis of a cpu, not of a task. */
bool timeline_on_cpu(const struct event *ev);
#define TIMELINE_CPU_NAME 48
/* masked: of the axis of SLICE_MASKED. */
void timeline_cpu_name(char name[TIMELINE_CPU_NAME], uint32_t cpu, bool masked);

/* The name of a slice, and of a task or a process (tid == pid): handles of texts, never 0. */
uint32_t timeline_name(struct world *world, const struct event *ev);
uint32_t timeline_comm(struct world *world, uint32_t pid, uint32_t tid);
/* A name in UTF-8 without control characters, TIMELINE_MAX_TEXT at most. `scratch` owns it. */
const char *timeline_text(struct buf *scratch, const struct world *world, uint32_t name);

/* The time of day of a time, in ns since 1970; 0: unknown. */
uint64_t timeline_wall(const struct world *world, uint64_t time);

struct timeline_size {
	uint64_t events, slices;
	uint64_t first, last; /* ns */
};

/* Call this for each event, and the other one at the end, to warn if the timeline is empty or too large. */
void timeline_count(struct timeline_size *size, const struct event_slice *slice);
void timeline_warn(const struct timeline_size *size, const char *path);

/* A number for each text. Zeroed: all are 0. */
struct timeline_numbers {
	uint32_t *of;
	size_t cap;
};

/* Valid until the next call. */
uint32_t *timeline_number(struct timeline_numbers *numbers, uint32_t name);
void timeline_numbers_release(struct timeline_numbers *numbers);

#endif
