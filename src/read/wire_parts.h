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
#ifndef KSCOPE_READ_WIRE_PARTS_H
#define KSCOPE_READ_WIRE_PARTS_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/pb.h"
#include "format.h"
#include "base/order.h"
#include "place/place.h"
#include "read/wire_merge.h"
#include "wire/wire.h"

#define WIRE_EVENTS 8

/* Messages of kscope.proto, decoded. What a message does not have is 0 or empty. */
struct info_message { /* strings are owned */
	bool told;
	char *arch, *producer, *command, *kernel, *event;
	char **elfs;
	size_t nr_elfs, cap_elfs;
	uint64_t version, cpus, clock, period, start;
	bool user_mode, trace, bad;
};

struct sample_message { /* pointers lead into the message */
	uint64_t time, pc, space, weight, level, task;
	bool idle, no_space;
	uint64_t outer_address;
	struct pb registers, stack, outer, chain;
};

struct alloc_message {
	uint64_t op, pointer, size;
	struct pb allocator, at;
};

struct code_message {
	uint64_t time, space, level, address;
	struct pb bytes;
};

/* wire_message.c; false: not protobuf. */
bool wire_get_sample(struct pb message, struct sample_message *sample);
bool wire_get_alloc(struct pb message, struct alloc_message *alloc);
bool wire_get_code(struct pb message, struct code_message *code);
bool wire_get_info(struct pb message, struct info_message *info);
void wire_info_release(struct info_message *info);
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
void wire_space_code(struct wire_spaces *spaces, const struct code_message *code,
		     struct wire_events *out);
void wire_spaces_release(struct wire_spaces *spaces);
struct event *wire_add(struct wire_events *events, enum event_kind kind);

struct wire_item {     /* what waits in the order; the message follows */
	uint32_t kind; /* enum wire_chunk_field */
	uint32_t cpu;
};

struct wire_cpu {
	uint32_t sequence; /* of the next chunk */
	uint64_t samples, allocs, damaged;
	uint64_t space; /* that ran last in the trace, and its process; pid 0: none */
	uint32_t pid;
	bool user;
};

struct wire_reader {
	struct info_message info;
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
	uint64_t regs[WIRE_REGISTERS_MAX];
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
