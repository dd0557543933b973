/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stage: the steps between the readers and the writers. A stage is one file that defines its ops;
 * stages.def lists all stages in the order in which events pass them.
 *
 * A stage with `makes` 0 is a filter: it emits each event that it takes, changed or not, once,
 * several times or not at all. Any other stage is a listener: the events that it takes also go to
 * the next stage, and it makes new events from them. A writer that takes an event does not get the
 * events made from it.
 */
#ifndef KSCOPE_STAGE_H
#define KSCOPE_STAGE_H

#include "format.h"
#include "model/event.h"

struct chain;
struct merge;
struct selection;
struct stage;
struct verify;

struct stage_ops {
	const char *name;
	uint32_t takes, makes;		  /* EVENT_BIT()s */
	const struct option_use *options; /* set in the private state before open(); NULL: none */
	size_t priv_size;
	/* Whether this run needs the stage; NULL: always. */
	bool (*needed)(const struct chain *chain);
	/* At the end: whether the options had an effect; NULL: always. */
	bool (*acts)(const struct stage *s);
	/* All of these return 0, or -1 with chain->err set. NULL: nothing to do. */
	int (*open)(struct stage *s);			/* before the first event that it takes */
	int (*push)(struct stage *s, struct event *ev); /* calls stage_emit() any number of times */
	/* Optional, for speed, of a listener: pushes several events of one kind. */
	int (*push_all)(struct stage *s, struct event *events, size_t nr);
	int (*flush)(struct stage *s,
		     uint64_t until); /* no older event follows; UINT64_MAX: the end */
	void (*close)(struct stage *s);
};

/* What all stages of one run share. */
struct chain {
	struct world *world;
	const struct options *options;
	const struct selection *selection;
	const struct merge *merge; /* for the names of inputs in messages */
	struct stage_ops sink;
	struct stage *stages; /* those that this run needs, in order; the last is the sink */
	size_t nr;
	struct stage *first[EVENT_KINDS]; /* takes an event that was read; NULL: none */
	bool all_branches;		  /* it needs also jumps inside a function */
	bool decodes; /* a writer needs the branches of hardware traces, and does not take their bytes */
	uint64_t unselected;   /* samples that are not selected */
	uint64_t outside;      /* branches, notes, calls and allocations, likewise */
	uint64_t slices;       /* that are selected */
	bool partial;	       /* something that the input refers to is missing */
	struct verify *verify; /* NULL: do not verify */
	struct err err;
};

struct stage {
	const struct stage_ops *ops;
	struct chain *chain;
	struct stage *next[EVENT_KINDS]; /* takes an event that this stage emits */
	void *priv;			 /* before open(): zeroed, except for the options */
	uint32_t
		wanted; /* EVENT_BIT()s of what it makes, for writers that do not take the original */
	bool opened;
	uint64_t emitted;
};

/*
 * Builds the chain. It ends with a sink, whose push() passes events to the writers. wants[] has the
 * EVENT_BIT()s that each writer takes: stages whose events no writer needs are left out.
 */
void chain_init(struct chain *chain, int (*sink)(struct stage *s, struct event *ev), void *priv,
		const uint32_t *wants, size_t nr_wants);
/* Passes events that were read, all of one kind, to the first stage that takes them. */
int chain_push(struct chain *chain, struct event *events, size_t nr);
/* No event older than `until` follows. */
int chain_flush(struct chain *chain, uint64_t until);
void chain_release(struct chain *chain);
/* Marks the options of stages that had an effect. */
void chain_mark_options(const struct chain *chain);
/* Whether a stage of this run has the option, even if no event has reached that stage. */
bool chain_has_option(const struct chain *chain, const char *name);
/* Whether this run has the stage. */
bool chain_has(const struct chain *chain, const struct stage_ops *ops);
/* The private state of a stage, for its statistics; NULL if no event has reached it. */
const void *chain_find(const struct chain *chain, const struct stage_ops *ops);

enum {
#define STAGE(name) STAGE_##name,
#include "stages.def"
#undef STAGE
	NR_STAGES
};

extern const struct stage_ops *const stages[NR_STAGES];

/* Marks the stages that a run may need if a writer takes these EVENT_BIT()s. */
void stages_mark(uint32_t wants, bool marks[NR_STAGES]);

/*
 * A stage makes events of the kinds `kinds` from events of the kinds `made_of` (EVENT_BIT()s). Returns the kinds that
 * a writer gets if it takes `takes`: none if it takes the originals. Calls become slices and sums: a writer that takes
 * both gets only the slices, because they contain more.
 */
uint32_t stage_gives(uint32_t takes, uint32_t made_of, uint32_t kinds);

/* Passes an event to the stages after this one. */
int stage_emit(struct stage *s, struct event *ev);
/* For --verify: these samples of the event, or this part of their weight, do not reach the writers. */
void stage_leave_out(const struct stage *s, const struct event *ev, uint32_t source,
		     uint64_t samples, uint64_t weight);
/* For --verify: how much weight the samples of a source that this stage makes must have in all. Adds up. */
void stage_sum(const struct stage *s, uint32_t source, uint64_t weight);
/* Initializes an event that a stage makes: no input, time, cpu or task. */
void stage_event(const struct stage *s, struct event *ev, enum event_kind kind);
/* Emits the source of the samples that a stage makes; they refer to it by *handle. */
int stage_source(struct stage *s, const struct event_source *source, uint32_t *handle);

#define STAGE(name) extern const struct stage_ops stage_##name;
#include "stages.def"
#undef STAGE

#endif
