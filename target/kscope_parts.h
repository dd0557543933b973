/* SPDX-License-Identifier: MIT */
/* kscope_parts.h: the inside of struct kscope, whose memory is the caller's. Kernels do not use it. */
#ifndef KSCOPE_PARTS_H
#define KSCOPE_PARTS_H

#include "ring.h"

/* ---- records in a ring: a head, fixed words, frames ---- */

enum kscope_kind { KSCOPE_PAD, KSCOPE_SAMPLE, KSCOPE_ALLOC };

/* Numbers of 64 bits take two words on a 32-bit machine. */
#define KSCOPE_WORDS_64 (8 / sizeof(uintptr_t))
#define KSCOPE_HEAD_WORDS (4 + 3 * KSCOPE_WORDS_64)
/* Frames that were interrupted, besides the first one. Each is preceded by two words: a mark, and its link. */
#define KSCOPE_TRAPS 4
#define KSCOPE_MARK_KERNEL 1
#define KSCOPE_MARK_USER 2
#define KSCOPE_STACK_WORDS(depth) ((depth) + 2 * KSCOPE_TRAPS)
#define KSCOPE_RECORD_WORDS (KSCOPE_HEAD_WORDS + KSCOPE_STACK_WORDS(KSCOPE_DEPTH))

/* A record outside of its ring. Samples have a weight in `value`; allocations have a pointer there, and a size. */
struct kscope_record {
	enum kscope_kind kind;
	uint32_t task;
	bool user;
	unsigned event; /* or enum kscope_op */
	uint64_t time, value, size;
	uintptr_t link;
	const char *allocator;
	unsigned user_frames, nr, nr_traps;
	const uintptr_t *frames; /* without marks */
	struct {
		unsigned frame; /* its index */
		uintptr_t link;
	} traps[KSCOPE_TRAPS];
};

/* sample.c */
bool kscope_take(struct kscope_ring *ring, uintptr_t *words, struct kscope_record *record);

/* stack.c: writes frames and marks to a ring, from a position on. Returns the number of words. */
unsigned kscope_walk(const struct kscope *k, const struct kscope_at *at, struct kscope_ring *ring,
		     uint32_t to, unsigned max);
/* A return address without what is not part of it: a signature, or the Thumb bit. */
uintptr_t kscope_plain(const struct kscope *k, uintptr_t address);

/* ---- events ---- */

/* What the user asked for. */
struct kscope_slot {
	struct kscope_event event;
	char raw[12]; /* the name of a raw event */
	bool on;
	unsigned counter; /* of the PMU */
	uint64_t period;  /* the timer's is in ns, and so is that of a frequency */
	uint64_t hertz;	  /* 0: the period is fixed */
};

/* How a cpu does it; its interrupts change this. */
struct kscope_pace {
	uint64_t period; /* between the last sample and the next; 0: off */
	uint64_t aim;	 /* the period before jitter */
	uint64_t least;	 /* of a counter: what leaves the cpu time for other work */
	uint64_t last;	 /* time of the last sample; 0: there was none */
	uint64_t sum;	 /* of weights */
};

struct kscope_cpu {
	struct kscope_ring ring;
	struct kscope_pace pace[KSCOPE_EVENTS];
	uint32_t applied; /* the generation of the settings */
	uint32_t random;
	bool off;	/* `timer CORE off` */
	bool counters;	/* the PMU is initialized */
	uint32_t taken; /* records, also those that were dropped */
	uint64_t cost;	/* of a sample, in ns, lately */
	uint32_t throttled;
	/* Of the task that serves: */
	uint32_t taken_seen, dropped_seen, sequence;
	bool passed; /* in this pass, see serve.c */
	uint64_t taken_sum, dropped_sum, sent, sent_allocs, dropped_told, sent_at;
};

/* event.c */
bool kscope_event_find(const struct kscope *k, const char *name, struct kscope_event *event);
/* Finds a slot for an event; -1: all counters that can count it are in use. */
int kscope_event_slot(struct kscope *k, const struct kscope_event *event);

/* ---- the stream ---- */

struct wire;

/* How a stream is encoded. Each function adds to a message; what does not fit sets `full`, and comes again. */
struct kscope_format {
	const char *name;
	unsigned batch;	      /* records in a message, at most */
	bool allocs;	      /* it can tell allocations */
	bool maps_first;      /* its tools take maps that follow their process for others */
	const char *greeting; /* a line for a host that connects; NULL: none */
	/* A message begins and ends. cpu -1: it is about the whole recording. open() reports drops, or nothing does. */
	uint8_t *(*open)(struct kscope *k, struct wire *w, int cpu);
	void (*close)(struct wire *w, uint8_t *opened);
	/* The size of the record at this place. NULL: half a message means nothing to its readers. */
	size_t (*size)(const uint8_t *at);
	/* NULL: the format has no such thing. */
	void (*hello)(struct kscope *k, struct wire *w);
	void (*event)(struct wire *w, unsigned id, const struct kscope_slot *slot);
	void (*task)(struct wire *w, const struct kscope_task *task);
	void (*map)(struct wire *w, const struct kscope_map *map);
	void (*record)(struct kscope *k, struct wire *w, unsigned cpu,
		       const struct kscope_record *record);
	void (*counters)(struct kscope *k, struct wire *w, unsigned cpu);
	void (*round)(struct wire *w, uint64_t time);
	void (*end)(struct kscope *k, struct wire *w);
	/* In a stream; NULL: not at all. Outside of streams, answers are text. */
	void (*answer)(struct wire *w, const char *text);
	/* A command in the language of the format's own tools; the answer is sent as it is. NULL, or false: it is none. */
	bool (*command)(struct kscope *k, const char *line, char *answer, size_t size);
};
extern const struct kscope_format kscope_format_wire, kscope_format_sel4, kscope_format_kpdata;

enum kscope_state {
	KSCOPE_IDLE,
	KSCOPE_STREAMS,
	KSCOPE_ENDS, /* after `stop`: sends the rest */
};

/* The next part of the descriptions. */
enum kscope_part { KSCOPE_PART_EVENT, KSCOPE_PART_TASK, KSCOPE_PART_MAP, KSCOPE_PART_NONE };

struct kscope {
	const struct kscope_port *port;
	struct kscope_cpu cpu[KSCOPE_CPUS];
	struct kscope_slot slot[KSCOPE_EVENTS];
	uint32_t generation; /* of the settings */
	bool running;
	/* Settings */
	unsigned depth;
	unsigned jitter; /* percent */
	bool drop_newest, hold;
	uint8_t *memory;
	size_t size, queue_limit, cpu_limit; /* bytes */
	const struct kscope_format *format;
	unsigned counters; /* of the PMU */
	/* The task that serves */
	enum kscope_state state;
	uint32_t recording; /* counts `start` */
	uint64_t begun;	    /* when it was */
	bool greet, flush, ended;
	bool describes;		/* descriptions come before records this time */
	const char *greeting;	/* what the host has to get of it before anything else */
	uint32_t task, process; /* the last answer of kscope_process() */
	enum kscope_part part;
	size_t part_at;
	uint32_t messages, sequence;	    /* all, and those that are about no cpu */
	uint32_t described_at, describe_at; /* describe_at: the next time */
	unsigned next_cpu;
	bool fresh;		     /* records were sent since the last round */
	uint64_t pass;		     /* when the pass over the rings began */
	struct kscope_record record; /* taken, but not sent */
	int record_cpu;		     /* -1: none */
	uintptr_t words[KSCOPE_RECORD_WORDS];
	char line[KSCOPE_LINE];
	unsigned line_len;
	bool line_long, line_whole;
	uint8_t out[KSCOPE_CHUNK + 48 * KSCOPE_CPUS];
	size_t out_len, out_sent;
	bool out_text; /* an answer outside of streams */
};

/* serve.c: for formats whose samples belong to processes. The process of a task, or the task itself. */
uint32_t kscope_process(struct kscope *k, uint32_t task);

/* serve.c: these are for commands. */
bool kscope_start(struct kscope *k, const char **why);
void kscope_stop(struct kscope *k);
void kscope_clear(struct kscope *k);
void kscope_flush(struct kscope *k);
/* Divides the memory into rings. */
bool kscope_divide(struct kscope *k);
/* Settings of the cpus have changed. */
void kscope_settle(struct kscope *k);

#endif
