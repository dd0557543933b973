/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the wire reader share. wire/README.md describes the stream.
 *
 *	wire		the reader: records in the order of time, as events
 *	wire_chunk	where a chunk begins and ends
 *	wire_message	the records of a chunk
 *	wire_place	where the kernel was, found before the first sample is handed on
 *	wire_space	processes, told apart by their address spaces
 *	wire_trace	the control flow of one cpu
 *	wire_merge	that of several cpus, in the order of time
 */
#ifndef KSCOPE_READ_WIRE_H
#define KSCOPE_READ_WIRE_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/pb.h"
#include "format.h"
#include "pass/order.h"
#include "place/place.h"
#include "read/wire_merge.h"

#define WIRE_MAX_CHUNK ((size_t)16 << 20) /* as wire/kscope.proto has it */
#define WIRE_MAX_CPUS 4096
#define WIRE_MAX_REGS 64
#define WIRE_EVENTS 8
#define WIRE_MAX_CHAIN 4096
#define WIRE_IDLE ((uint64_t)-0x20000) /* an address that stands for waiting */

enum wire_clock { WIRE_HOST, WIRE_GUEST, WIRE_INSTRUCTIONS };

struct wire_info { /* strings are owned */
	bool told;
	char *arch, *producer, *command, *kernel, *event;
	char **elfs;
	size_t nr_elfs, cap_elfs;
	uint64_t version, cpus, clock, period, start;
	bool user_mode, trace, bad;
};

enum wire_level { WIRE_USER, WIRE_KERNEL, WIRE_HYPERVISOR, WIRE_FIRMWARE };

struct wire_sample { /* pointers lead into the message */
	uint64_t time, pc, space, weight, level, task;
	bool idle, no_space;
	uint64_t outer_address;
	struct pb registers, stack, outer, chain;
};

struct wire_alloc {
	uint64_t op, pointer, size;
	struct pb allocator, at;
};

struct wire_code {
	uint64_t time, space, level, address;
	struct pb bytes;
};

/* wire_message.c; false: not protobuf. What a message does not have is 0 or empty. */
bool wire_sample(struct pb message, struct wire_sample *sample);
bool wire_alloc(struct pb message, struct wire_alloc *alloc);
bool wire_code(struct pb message, struct wire_code *code);
bool wire_info(struct pb message, struct wire_info *info);
void wire_info_release(struct wire_info *info);
/* Little-endian words; at most `max`. Returns how many. */
size_t wire_words(struct pb bytes, uint64_t *words, size_t max);

/*
 * Processes. The data has only the register that names the address space; every space gets a
 * number, and a name by the binary that runs there. A space in which another program runs than
 * before is another process: the register's value was used again.
 */
struct wire_process {
	uint32_t pid;
	uint32_t program; /* handle of its path; 0: not known */
	bool user_seen;
	struct hash pages; /* of code that was told, by address */
};

struct wire_spaces { /* zeroed but for the first four: ready */
	struct place *place;
	uint64_t mask; /* of the bits of the register that tell spaces apart */
	struct strtab *strings;
	const char *program;		/* that the emulator runs itself; NULL: it is a machine */
	struct wire_process *processes; /* [0] is none */
	size_t nr, cap;
	struct hash by_space, maps; /* maps: which were told, by process, place and path */
	uint32_t nr_pids;
};

struct wire_events { /* a few events that stand before the one at hand; what they point to lives on */
	struct event at[WIRE_EVENTS];
	size_t nr, next;
};

uint32_t wire_space_pid(struct wire_spaces *spaces, uint64_t space, bool user,
			struct wire_events *out);
void wire_space_code(struct wire_spaces *spaces, const struct wire_code *code,
		     struct wire_events *out);
void wire_spaces_release(struct wire_spaces *spaces);
struct event *wire_add(struct wire_events *events, enum event_kind kind);

/* Fields of a chunk. */
enum wire_record { WIRE_SAMPLE = 6, WIRE_ALLOC = 7, WIRE_CODE = 8, WIRE_TRACE = 9 };

struct wire_item { /* what waits in the order; the message follows */
	uint32_t kind, cpu;
};

struct wire_cpu {
	uint32_t sequence; /* of the next chunk */
	uint64_t samples, allocs, damaged;
	uint64_t space; /* that ran last in the trace, and its process; pid 0: none */
	uint32_t pid;
	bool user;
};

struct wire {
	const char *event_name; /* --event-name; NULL: not given */
	struct wire_info info;
	struct order order;
	struct wire_spaces spaces;
	struct wire_events before; /* what stands before the record at hand */
	bool waiting;		   /* for that: `event` */
	struct event event;
	struct wire_cpu *cpus;
	size_t nr_cpus;
	struct wire_merge traces;
	uint64_t round; /* the last one: nothing older comes */
	unsigned told;	/* how much of the preamble */
	size_t modules_told;
	bool ended, finished, idle_told;
	char nrcpus[21];
	const char **elfs; /* borrowed strings */
	uint64_t slide, anchor_addr;
	const char *anchor;
	uint64_t regs[WIRE_MAX_REGS];
	uint64_t *ips;
	size_t cap_ips;
	struct cpu_state state;
	struct buf scratch;
};

struct wire_chunk {
	uint64_t offset;  /* of its tag */
	size_t head, len; /* of what stands before the message, and of that */
	const uint8_t *data;
	bool cut; /* the input ends inside */
};

/* wire_chunk.c: is this the head of a chunk? Its size is then in *head, that of the rest in *len. */
bool wire_head(const uint8_t *data, size_t have, size_t *head, size_t *len);
/* 1: a chunk, which stays until it is skipped; 0: the end; -1: none is here. */
int wire_peek(struct in *in, struct wire_chunk *chunk);
/* Goes on to the next head of a chunk, or to the end. */
void wire_resync(struct in *in);

/* wire_place.c: fills spaces.place and mask, slide and anchor. */
int wire_place(struct reader *r);
const char *wire_kernel(const struct reader *r); /* the path, or NULL */

#endif
