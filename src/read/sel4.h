/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sel4: common code for the three formats of the seL4 profiler: the sample, the mapping from
 * protection domains to binaries, and the repair of the profiler's clock.
 */
#ifndef KSCOPE_READ_SEL4_H
#define KSCOPE_READ_SEL4_H

#include "base/buf.h"
#include "base/hash.h"
#include "format.h"

#define SEL4_CPUS 256
#define SEL4_MAX_DEPTH 1024 /* the original sends 16 */
#define SEL4_NOT_COUNTED UINT64_MAX
#define SEL4_NO_ADDRESS "not a code address"

struct sel4_sample { /* absent fields are 0, as in protobuf */
	uint64_t time, period;
	uint64_t nr; /* valid ips; SEL4_NOT_COUNTED: all before the first 0 */
	uint32_t pid, cpu;
	uint64_t nr_ips;
	uint64_t chain[1 + SEL4_MAX_DEPTH]; /* ip, then ips */
};

struct sel4_mapping {
	uint32_t pid;
	char *elf;
	bool given; /* with --elf */
};

struct sel4 {
	const char *event_name; /* --event-name; NULL: not given */
	uint64_t tick_hz;	/* --tick-hz: of the data's clock; 0: it counts nanoseconds */
	struct sel4_sample sample;
	struct sel4_mapping *mappings;
	size_t nr_mappings, cap_mappings;
	size_t told;	/* events of the preamble, then mappings, that were emitted */
	char clock[48]; /* value of the meta event */
	bool comm_next; /* the mapping's map was emitted, its comm is next */
	uint64_t last[SEL4_CPUS], newest, wraps; /* of the clock */
	bool wide;			 /* a time had more than 32 bits: the clock does not wrap */
	bool connected;			 /* a connection has begun, and has no sample yet */
	uint64_t shift;			 /* of a wide clock that began again */
	struct hash_key seen[SEL4_CPUS]; /* digests of the last samples */
	struct unmapped *unmapped;	 /* pids without a binary, and their number of samples */
	size_t nr_unmapped, cap_unmapped;
	uint64_t more_unmapped; /* samples of pids beyond the table's limit */
	uint64_t wrong_callers; /* ips that are not addresses */
	uint64_t wrong_at;	/* where the sample of the first one is */
};

extern const struct option_table sel4_tick_table; /* a uint64_t */

/* The options of a reader whose private state has a struct sel4 named `sel4`. */
#define SEL4_OPTIONS(priv)                                                  \
	OPTION_USES({ &sel4_tick_table, offsetof(priv, sel4.tick_hz) },     \
		    { &event_name_table, offsetof(priv, sel4.event_name) }, \
		    { &build_dir_table, OPTION_ELSEWHERE }, { &elf_table, OPTION_ELSEWHERE })

/*
 * Takes the mappings of --elf and, unless the data has its own, of BUILD_DIR/sample_header.json.
 * So the command line has precedence over the data, and the data over the build directory.
 */
int sel4_open(struct reader *r, struct sel4 *s, bool has_mapping);
void sel4_close(struct sel4 *s);
/* The first mapping of a pid wins, so --elf has precedence. */
void sel4_map(struct sel4 *s, const char *elf, size_t len, uint32_t pid);
/* Emits the next event of the preamble, or the next new mapping. False: there is none. */
bool sel4_tell(struct sel4 *s, struct event *ev);
/* A new connection begins: the clock may begin again, too. */
void sel4_connected(struct sel4 *s);
/* Turns s->sample, from `offset` of the input, into an event. */
void sel4_event(struct sel4 *s, uint64_t offset, struct event *ev);
/* The same for a sample from a link, of `bytes` at `offset`, which may have come twice. Returns 1. */
int sel4_take(struct reader *r, struct sel4 *s, uint64_t offset, uint64_t bytes, struct event *ev);
/* At the end of the input: warns about clock repairs and missing binaries. */
void sel4_end(struct reader *r, struct sel4 *s);

#endif
