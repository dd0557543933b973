/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of the reader of kscope's own recordings. wire/README.md specifies the stream, wire/wire.h
 * and wire/trace.h have its numbers and rules.
 *
 *	wire		the reader: turns records into events, in order of time
 *	wire_chunk	finds the start and the end of chunks
 *	wire_take	takes the records of chunks, and reports damage
 *	wire_link	chunks that come twice or late, targets that start over
 *	wire_message	decodes messages
 *	wire_describe	what samples refer to: events, tasks and binaries, from version 5 on
 *	wire_place	finds the address of the kernel, before the first sample or on the way
 *	wire_space	makes processes of address spaces
 *	wire_check	keeps the samples inside a trace
 *	wire_trace	decodes the trace of one cpu
 *	wire_ahead	decodes the traces of all cpus in batches, if possible in a thread
 *	wire_merge	merges the traces of several cpus, in order of time
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
#define WIRE_RUN 64 /* branches at a time; they stay in the cpu's cache */

/* Decoded messages of kscope.proto. Missing fields are 0 or empty. */
struct info_message { /* owns its strings */
	bool found;
	char *arch, *producer, *command, *kernel, *event;
	char **elfs;
	size_t nr_elfs, cap_elfs;
	uint64_t version, cpus, clock, period, start;
	bool user_mode, trace, bad;
};

struct interrupted_message {
	uint64_t frame, link;
};

struct sample_message { /* points into the message */
	uint64_t time, pc, space, weight, level, task, place, event, user_frames, link;
	struct interrupted_message interrupted[WIRE_INTERRUPTED_MAX];
	size_t nr_interrupted;
	bool idle, no_space;
	uint64_t outer_address;
	struct pb registers, stack, outer, chain, frames;
};

struct alloc_message {
	uint64_t op, pointer, size;
	struct pb allocator, at;
};

struct code_message {
	uint64_t time, space, level, address;
	struct pb bytes;
};

struct event_message {
	uint64_t id, type, config, period, frequency;
	struct pb name, unit;
};

struct task_message {
	uint64_t id, process, time;
	struct pb name;
};

struct map_message {
	uint64_t time, process, address, size, offset;
	struct pb path, build_id;
};

struct counter_message {
	uint64_t time, event, value;
};

/* wire_message.c. False: the message is damaged. */
bool wire_get_sample(struct pb message, struct sample_message *sample);
bool wire_get_alloc(struct pb message, struct alloc_message *alloc);
bool wire_get_code(struct pb message, struct code_message *code);
bool wire_get_info(struct pb message, struct info_message *info);
bool wire_get_event(struct pb message, struct event_message *event);
bool wire_get_task(struct pb message, struct task_message *task);
bool wire_get_map(struct pb message, struct map_message *map);
bool wire_get_counter(struct pb message, struct counter_message *counter);
struct wire_chunk;
/* The `info` of a chunk, if it has one. */
void wire_chunk_info(const struct wire_chunk *chunk, struct info_message *info);
void wire_info_release(struct info_message *info);
/* Decodes at most `max` little-endian words. Returns their number. */
size_t wire_words(struct pb bytes, uint64_t *words, size_t max);
/* Decodes at most `max` frames of a sample at `pc`. Sets how many it has, which may be more. False: damaged. */
bool wire_get_frames(struct pb bytes, uint64_t pc, uint64_t *words, size_t max, size_t *nr);

/*
 * Processes. The stream has only the register of the address space. Each address space becomes a
 * process, with a number and the name of the binary that runs in it. If another program appears in
 * an address space, the guest has reused the register's value: that is a new process.
 */
struct wire_process {
	uint32_t pid;
	uint32_t program; /* handle of its path; 0: unknown */
	bool user_seen;
	struct hash pages; /* digests of its code, by address */
};

struct wire_spaces { /* zeroed, except for the first five members */
	struct place *place;
	uint64_t mask; /* the bits of the register that identify a space */
	struct strtab *strings;
	const char *program;		/* in user mode: the program; NULL for a machine */
	unsigned guest_shift;		/* see struct wire_trace_info */
	struct wire_process *processes; /* [0] is unused */
	size_t nr, cap;
	struct hash by_space, maps; /* maps: those emitted, by process, address and path */
	uint32_t nr_pids;
};

struct wire_events { /* events to emit before the current one; they point to lasting data */
	struct event at[WIRE_EVENTS];
	size_t nr, next;
};

uint32_t wire_space_pid(struct wire_spaces *spaces, uint64_t space, bool user,
			struct wire_events *out);
void wire_space_code(struct wire_spaces *spaces, const struct code_message *code,
		     struct wire_events *out);
/* All processes have ended: the same register means another one from now on. */
void wire_spaces_forget(struct wire_spaces *spaces);
void wire_spaces_release(struct wire_spaces *spaces);
struct event *wire_add(struct wire_events *events, enum event_kind kind);

/*
 * What a stream of version 5 describes. Things are described again and again: only what is new becomes an event.
 * Zeroed: nothing is described.
 */
struct known_event {
	bool told, described; /* told without a description: a sample came first */
	bool came;	      /* a chunk described it */
	uint32_t name, unit;  /* handles of strings; 0: none */
	uint32_t type;
	uint64_t config, period, frequency;
};

struct known_task {
	uint32_t id, process, name;
	uint64_t time;
};

struct known_map {
	uint32_t process, path;
	uint64_t time, address, size, offset;
	uint8_t build_id[20], build_id_len;
	bool main; /* the kernel itself: its first map */
};

struct wire_described {
	bool on;		    /* the stream is of version 5 */
	struct known_event *events; /* by id */
	size_t nr_events, cap_events;
	struct known_task *tasks;
	size_t nr_tasks, cap_tasks;
	struct known_map *maps;
	size_t nr_maps, cap_maps;
	struct hash task_by_id, map_by_place;
	struct hash has_map; /* processes */
	size_t early_event, early_map, early_task,
		early_program; /* the next ones of the preamble */
	size_t elf;	       /* the next --elf PID=FILE */
	bool has_kernel;       /* the kernel's first map is known */
	bool kernel_told;      /* the kernel is mapped */
	bool kernel_named;     /* and is a process of its own */
	bool too_many_tasks, too_many_maps, renamed;
	uint32_t named; /* the event that --event-name names, + 1 */
};

struct order_item;
struct wire_reader;
/* wire_describe.c: notes what a chunk describes, unless it is known. For a file, before the first event. */
void wire_describe_early(struct reader *r, const struct wire_chunk *chunk);
/* The next event of what was noted. False: there is none. */
bool wire_described_next(struct reader *r, struct event *ev);
/* Whether a record of this kind is a description. */
bool wire_describes(uint32_t kind);
/* The first chunk is missing, and this one shows that the stream is of version 5. */
void wire_described_guess(struct wire_reader *w, const struct wire_chunk *chunk);
/* Whether a description can be read, and since when it holds. */
bool wire_description_time(uint32_t kind, struct pb message, uint64_t *time);
/* An event has no time: if it was described before, a new description holds from here on. */
bool wire_event_came(struct wire_reader *w, struct pb message);
/* Adds events to w->before for what is new in a description. */
void wire_describe(struct reader *r, const struct order_item *item, uint32_t kind,
		   struct pb message);
/* The source of an event, and the task of a sample. May add events to w->before. */
uint32_t wire_described_source(struct reader *r, uint64_t id);
void wire_described_task(struct reader *r, const struct sample_message *sample, struct event *ev);
/* Maps the kernel, if nothing says where it is. */
void wire_described_kernel(struct reader *r);
/* The target starts over: what is described next is newer. */
void wire_described_forget(struct wire_described *described);
void wire_described_release(struct wire_described *described);

struct wire_item {     /* head of a record in the order; the message follows */
	uint32_t kind; /* enum wire_chunk_field */
	uint32_t cpu;
};

/* Samples inside the trace of a cpu. Each waits until the trace reaches its place. Zeroed: ready. */
struct wire_check { /* owned */
	uint64_t place;
	uint8_t *data;
	size_t len;
};

struct wire_checks {
	struct wire_check *waiting; /* from `next` on, in order of their places */
	size_t nr, cap, next;
	struct wire_check taken; /* the last one */
};

void wire_checks_add(struct wire_checks *checks, uint64_t place, struct pb message);
/* The sample at a place, valid until the next call; earlier ones are dropped. False: there is none. */
bool wire_checks_take(struct wire_checks *checks, uint64_t place, struct pb *message);
void wire_checks_release(struct wire_checks *checks);

/* Which chunks of a cpu have arrived. Zeroed: none. */
struct wire_window {
	uint32_t next; /* sequence */
	uint64_t seen; /* a bit for each one before it, from the last one back */
};

struct wire_turns {
	struct wire_window now, before; /* before: the last jump far ahead, if it jumped */
	bool jumped;
};

enum wire_turn { WIRE_TURN_NEXT, WIRE_TURN_GAP, WIRE_TURN_LATE, WIRE_TURN_TWICE };

enum wire_turn wire_turn_take(struct wire_turns *turns, uint32_t sequence);

/* The target may start over. Its times go on after those of the boot before it. */
struct wire_boot {
	uint64_t shift; /* of its clock */
	uint64_t last;	/* the newest time so far */
	bool fresh;	/* it has no record yet: the shift is not known */
	bool unsure;	/* an `info` without a `start` came: it may have restarted */
	bool over;	/* it has restarted, which ends a trace */
};

struct wire_cpu {
	struct wire_turns turn;
	bool hole; /* a chunk is missing before the next trace */
	struct wire_checks checks;
	uint64_t samples, allocs, damaged, dropped;
	uint64_t space; /* of the last branch, with its process; pid 0: none */
	uint32_t pid;
	bool user;
};

struct wire_reader {
	const char *event_name; /* --event-name; NULL: not given */
	struct info_message info;
	struct order order;
	struct wire_spaces spaces;
	struct wire_described described;
	struct wire_events before; /* to emit before `event` */
	bool waiting;		   /* `event` waits */
	struct event event;
	bool tracing; /* branches follow */
	bool late;    /* reported that a trace came late */
	struct wire_cpu *cpus;
	size_t nr_cpus;
	struct wire_turns others; /* chunks without a cpu, in a stream with descriptions */
	struct wire_merge traces;
	uint64_t round; /* no later record is older */
	struct wire_boot boot;
	uint32_t boots;
	bool checked;	      /* every chunk has to have a checksum */
	bool plain;	      /* there was a chunk without one */
	const char *lost_why; /* searching for the next chunk; NULL: no */
	uint64_t lost_at;     /* from where */
	bool lost_end;	      /* because the input ends, unless there is another chunk */
	unsigned preamble;    /* next part of it */
	size_t modules_emitted;
	bool ended, finished, idle_emitted;
	unsigned refusals; /* answers of the target that it cannot obey */
	char nrcpus[21];
	const char **elfs;	    /* borrowed strings */
	struct wire_survey *survey; /* of a stream: what its chunks told so far; NULL: settled */
	uint64_t slide, anchor_addr;
	const char *anchor;
	uint64_t regs[WIRE_REGISTERS_MAX];
	struct link_word links[2 + WIRE_INTERRUPTED_MAX]; /* of the current sample */
	uint32_t nr_links;
	uint64_t *ips;
	size_t cap_ips;
	struct cpu_state state;
	struct buf scratch;
};

struct wire_chunk {
	uint64_t offset;  /* of its tag */
	size_t head, len; /* sizes of tag and length, and of the message */
	const uint8_t *data;
	bool cut; /* the input ends inside the chunk */
	enum { WIRE_CHECK_NONE, WIRE_CHECK_GOOD, WIRE_CHECK_WRONG } check;
};

/* wire_chunk.c: whether a chunk starts here. Sets the sizes of its head and of its message. */
bool wire_head(const uint8_t *data, size_t have, size_t *head, size_t *len);
#define WIRE_HEAD_MAX 16 /* bytes of tag, length and sync */
/* How many bytes of text come before the first chunk. If the text is longer, ask again for the rest. */
size_t wire_text(const uint8_t *data, size_t have);
/* 1: a chunk, valid until the caller skips it; 0: end of the input; -1: damage. */
int wire_peek(struct in *in, struct wire_chunk *chunk);
/* Whether wire_peek() can go on without waiting for the writer of a pipe. */
bool wire_ready(struct in *in);
/* The same for the first chunk, which text may precede. */
bool wire_begins(struct in *in);
/* Skips text, up to the next chunk or the end. False: it needs more of a pipe; call it again. */
bool wire_skip_text(struct in *in);
/* Skips to the next head of a chunk, or to the end. False: it needs more of a pipe; call it again. */
bool wire_resync(struct in *in);
/* Whether another chunk begins inside this one: the link broke there, or the length is wrong. */
bool wire_is_broken(const struct wire_chunk *chunk);

/* wire.c: the source by the clock, and the kernel's map, if nothing describes them. */
void wire_clock_source(const struct reader *r, struct event_source *source);
void wire_kernel_map(const struct reader *r, struct event *ev);

/* wire_take.c: takes the next chunk. False: the input is still being written and has no more yet. */
bool wire_take(struct reader *r);
/* Takes the lines of text before the stream: a boot log, or what the target answered to commands. */
void wire_take_text(struct reader *r);
struct wire_cpu *wire_cpu(struct wire_reader *w, uint32_t cpu);
/* Reports damage before the next event. */
void wire_damage(struct reader *r, uint64_t offset, uint64_t count, uint64_t bytes,
		 const char *text);

/* wire_link.c: the recording's time for a time of the current boot. */
uint64_t wire_boot_time(const struct wire_boot *boot, uint64_t time);
/* The same for the next one in the stream. */
uint64_t wire_boot_note(struct wire_boot *boot, uint64_t time);
/* Whether the target has restarted, by the chunk's `info`, or by the sequence after an `info` without `start`. */
bool wire_boot_info(struct wire_reader *w, const struct wire_chunk *chunk);
bool wire_boot_sequence(struct wire_reader *w, uint32_t cpu, uint64_t sequence);
void wire_boot_next(struct wire_reader *w, const struct wire_chunk *chunk);

/*
 * wire_place.c: sets spaces.place, spaces.mask, slide and anchor. A file is searched before the first
 * event. A stream cannot be: its chunks are searched on the way, and the kernel's map is emitted when
 * its place is known.
 */
int wire_place(struct reader *r);
void wire_place_chunk(struct reader *r, const struct wire_chunk *chunk);
void wire_place_end(struct reader *r);
bool wire_placing(const struct wire_reader *w); /* the kernel's place is not known yet */
void wire_place_release(struct wire_reader *w);
const char *wire_kernel(const struct reader *r); /* the path, or NULL */
/* Whether a path in the recording is one of this machine, or in the archive that it came with. */
bool wire_may_open(const struct reader *r, const char *path);

#endif
