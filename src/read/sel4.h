/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sel4: what the three forms of the seL4 profiler's data have in common: the sample, the mapping
 * from protection domains to binaries, and the repair of its clock.
 */
#ifndef KSCOPE_READ_SEL4_H
#define KSCOPE_READ_SEL4_H

#include "base/buf.h"
#include "format.h"

#define SEL4_CPUS 256
#define SEL4_MAX_DEPTH 1024 /* the original sends 16 */
#define SEL4_NOT_COUNTED UINT64_MAX

struct sel4_sample { /* absent fields are 0, as in protobuf */
	uint64_t time, period;
	uint64_t nr; /* of the ips that count; SEL4_NOT_COUNTED: those before the first 0 */
	uint32_t pid, cpu;
	uint64_t nr_ips;
	uint64_t chain[1 + SEL4_MAX_DEPTH]; /* ip, then ips */
};

struct sel4_mapping {
	uint32_t pid;
	char *elf;
	bool given; /* on the command line */
};

struct sel4 {
	const char *event_name; /* --event-name; NULL: not given */
	uint64_t tick_hz;	/* --tick-hz: of the data's clock; 0: it counts nanoseconds */
	struct sel4_sample sample;
	struct sel4_mapping *mappings;
	size_t nr_mappings, cap_mappings;
	size_t told;	/* steps of the preamble, then mappings, handed out so far */
	char clock[48]; /* in words */
	bool comm_next; /* a mapping's map was told, its name is next */
	uint64_t last[SEL4_CPUS], newest, wraps; /* of the clock */
	bool wide;		   /* times beyond 32 bits were seen: it does not wrap */
	struct unmapped *unmapped; /* pids without a binary, and how many samples each has */
	size_t nr_unmapped, cap_unmapped;
	uint64_t more_unmapped; /* samples of those that were not noted any more */
};

extern const struct option_table sel4_tick_table; /* a uint64_t */

/* The options of a reader whose private state has a struct sel4 named `sel4`. */
#define SEL4_OPTIONS(priv)                                                  \
	OPTION_USES({ &sel4_tick_table, offsetof(priv, sel4.tick_hz) },     \
		    { &event_name_table, offsetof(priv, sel4.event_name) }, \
		    { &build_dir_table, OPTION_ELSEWHERE }, { &elf_table, OPTION_ELSEWHERE })

/*
 * Takes --elf and, unless the data has a mapping of its own, BUILD_DIR/sample_header.json. So the
 * command line is believed first, then the data, then what lies beside the binaries.
 */
int sel4_open(struct reader *r, struct sel4 *s, bool has_mapping);
void sel4_close(struct sel4 *s);
/* The first mapping of a pid wins, so --elf does. */
void sel4_map(struct sel4 *s, const char *elf, size_t len, uint32_t pid);
/* What is known and not told yet: the preamble, then mappings. False: nothing is. */
bool sel4_tell(struct sel4 *s, struct event *ev);
/* s->sample as an event. */
void sel4_event(struct sel4 *s, struct event *ev);
/* At the end: says what was repaired and what was missing. */
void sel4_end(struct reader *r, struct sel4 *s);

#endif
