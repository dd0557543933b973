/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of pt.
 *
 *	pt		threads and their control flow
 *	pt_packets	its packets
 *	pt_signal	where signals interrupt it
 *	pt_maps		what code is where
 *	pt_exec		other programs
 *	pt_file		a thread's files
 */
#ifndef KSCOPE_PLUGIN_PT_PARTS_H
#define KSCOPE_PLUGIN_PT_PARTS_H

#include "api.h"
#include "pt_packets.h"
#include "wire/emulate.h"

struct qemu_plugin_tb;

/* pt */

uint64_t pt_now(void); /* in ns */
/* The thread's packets become a record, before another program replaces this one. */
void pt_pause(void);
static inline uint64_t pt_tsc(uint64_t ns)
{
	return ns / 10 * 21 + ns % 10 * 21 / 10; /* 2.1 GHz */
}

/* pt_file */

struct pt_id {
	uint32_t pid, tid;
};

/* A thread's files. */
struct pt_file {
	struct pt_id id;
	struct emulate_part *part; /* NULL: they cannot be written */
	uint64_t written, tsc;	   /* see struct emulate_state */
};

struct pt_id pt_id(void);		 /* of this thread */
int pt_file_check(void);		 /* 0, or -1 after a message */
bool pt_file_open(struct pt_file *file); /* of this thread; false after a message */
void pt_file_close(struct pt_file *file);
/* What was written before this is not lost if the thread is killed. ip: the code that runs */
static inline void pt_file_keep(struct pt_file *file, const struct pt_packets *packets, uint64_t ip)
{
	struct emulate_state *state = emulate_other(file->part);

	state->used = (uint64_t)(packets->at - file->part->bytes);
	state->tnt = packets->tnt;
	state->nr_tnt = packets->nr_tnt;
	state->on = packets->on;
	state->ip = ip;
	emulate_turn(file->part);
}
/* Makes a record of the packets. */
void pt_file_flush(struct pt_file *file, struct pt_packets *packets, uint64_t ip);

void pt_file_comm(struct pt_file *file, const char *comm, bool exec);
void pt_file_fork(struct pt_file *file, struct pt_id parent);
void pt_file_exit(struct pt_file *file, struct pt_id parent);
/* Code of a file. */
void pt_file_map(struct pt_file *file, uint64_t addr, uint64_t len, uint64_t offset,
		 const char *path);

/* pt_maps */

/* Writes the maps of the code of a block, unless they are known. */
void pt_maps_translate(struct pt_file *file, const struct qemu_plugin_tb *tb);
/* Counts them. A thread has to note the time before it runs code of a new one. */
extern _Atomic unsigned pt_maps_version;
/* A system call changed the maps. */
void pt_maps_changed(void);
/* No other thread has the maps locked while this one forks. */
void pt_maps_lock(void);
void pt_maps_unlock(void);

/* pt_signal */

struct pt_signal {
	uint64_t interrupted; /* the address */
	bool fault;	      /* an instruction caused it */
};
/* Remembers the handlers of signals. */
void pt_signal_syscall(const struct api_syscall *call);
/* Whether a signal has led to this address right now. last: the address of the block that ran before */
bool pt_signal_at(unsigned cpu, uint64_t address, uint64_t last, struct pt_signal *signal);
/* Whether that needs registers, in the callback of a block. */
bool pt_signal_reads(void);

/* Memory of the program. It is where QEMU says that code is: this far from the program's own address. */
extern _Atomic uint64_t pt_guest_shift;
static inline const void *pt_guest(uint64_t address)
{
	return (const void *)(uintptr_t)(address + pt_guest_shift);
}
/* Copies its bytes. Returns false if they are not there. */
bool pt_guest_read(uint64_t address, void *bytes, size_t size);
/* Copies a string. Returns false if it is longer, or not readable. */
bool pt_guest_text(uint64_t address, char *text, size_t size);

/* pt_exec */

/* An execve() runs the other program in QEMU, too. Returns if that is not possible. */
void pt_exec(const struct api_syscall *call);
int pt_exec_open(void);	    /* 0, or -1 after a message */
extern const char *pt_comm; /* the program's name */

#endif
