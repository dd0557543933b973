/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_parts: what the files of `kscope record gdb` share. gdb.c is the source: when the target is stopped, and for how
 * long. gdb_target.c asks the stub what it can do and what runs there, gdb_look.c reads all threads of a stopped
 * target, gdb_out.c writes the stream; gdb_packet.c has the protocol, gdb_regs.c and gdb_xml.c the registers,
 * gdb_guard.c the process that lets the target go on if kscope is killed.
 */
#ifndef KSCOPE_RECORD_GDB_PARTS_H
#define KSCOPE_RECORD_GDB_PARTS_H

#include "record/gdb.h"
#include "record/gdb_guard.h"
#include "record/gdb_packet.h"
#include "record/gdb_regs.h"
#include "record/link.h"
#include "wire/wire.h"

#define GDB_NO_ANSWER \
	"%s: no answer; another debugger may be connected: a gdb stub serves one at a time"
#define GDB_CLOSED "closed the connection: its own messages may say why"
#define GDB_PAGE 4096
#define GDB_ID_MAX 40

extern const struct link_ops gdb_link_unix;

/* A thread of a program, or a cpu of a machine. Its index is the cpu in the stream. */
struct gdb_thread {
	char id[GDB_ID_MAX]; /* "": the only one, which has no name */
	bool listed;	     /* it exists */
	bool asked;	     /* it was there when the registers were asked for */
	uint32_t task;	     /* of a program: its number */
	uint64_t last;	     /* the target's time of its last sample */
	bool halted;
	struct gdb_values values;
	struct gdb_state state;
	uint8_t *stack, *outer;
	size_t stack_size, outer_size;
	uint64_t outer_address;
	uint8_t code[WIRE_CODE_SIZE]; /* the first bytes of the page at pc */
	bool has_code;
};

struct gdb_target {
	struct gdb_layout layout;
	bool user_mode;
	bool resumes_with_signal; /* vCont;C */
	bool vcont;
	bool binary;			 /* memory as bytes: the x packet */
	bool says_halted;		 /* qThreadExtraInfo says whether a cpu waits */
	bool has_program, has_libraries; /* the stub can name them */
	char **elfs;			 /* of a program: what it runs, if this machine has it */
	size_t nr_elfs;
	struct gdb_thread *threads;
	size_t nr, cap;
};

struct gdb_page {
	uint64_t page, space, digest;
};

#define GDB_PAGES 4096

/* The stream. */
struct gdb_out {
	struct raw *raw;
	struct gdb_track {
		struct buf records;
		uint32_t sequence;
		uint64_t samples;
	} * tracks; /* by cpu */
	size_t nr, cap;
	uint32_t sequence; /* of chunks without a cpu */
	uint64_t samples;
	struct gdb_page pages[GDB_PAGES];
};

struct gdb {
	struct record_source *source;
	const struct gdb_options *options;
	struct link link;
	struct gdb_talk talk;
	struct gdb_guard guard;
	struct gdb_target target;
	struct gdb_batch batch;
	struct gdb_out out;
	enum { GDB_CONNECTS, GDB_GREETS, GDB_SAMPLES, GDB_STOPS, GDB_OVER } phase;
	bool ending, hurry, released;
	char *detach;			   /* the request that releases the target */
	bool told_files;		   /* that the target asks for files */
	uint64_t deadline;		   /* of the phase */
	uint64_t began;			   /* when the target first ran */
	uint64_t resumed;		   /* when it ran again */
	uint64_t asked;			   /* when kscope asked it to stop */
	uint64_t next;			   /* when to ask again */
	uint64_t stopped;		   /* the sum of the time it was stopped */
	double recent_stopped, recent_ran; /* the same, of the last seconds */
	uint64_t last;			   /* the target's time of the last stop */
	uint64_t stops, listed_at, flushed_at, random;
};

/* gdb_target.c. After qSupported: finds out all about the target. Returns -1 and sets source->err. */
int gdb_target_read(struct gdb *gdb);
/* Of a program: asks for its file and its libraries, and notes those that this machine has. */
void gdb_target_paths(struct gdb *gdb);
/* Asks for the list of threads. False: the link is lost. */
bool gdb_target_list(struct gdb *gdb);
void gdb_target_release(struct gdb_target *target);

/* gdb_look.c: reads the state of every thread. False: the link is lost. */
bool gdb_look(struct gdb *gdb);

/* gdb_out.c */
void gdb_out_begin(struct gdb *gdb);
/* Adds a sample of a thread at a time, which gets a weight. */
void gdb_out_thread(struct gdb *gdb, uint32_t cpu, uint64_t time);
/* Writes what there is. No later sample is older than `round`. */
void gdb_out_flush(struct gdb_out *out, uint64_t round);
void gdb_out_end(struct gdb_out *out, const char *reason);
void gdb_out_release(struct gdb_out *out);

#endif
