/* SPDX-License-Identifier: MIT */
/*
 * emulate: what `kscope record emulate` and the plugin share. All processes of the program append records to one
 * perf.data, whose header kscope writes before and completes after the run. A thread collects its packets in a
 * file of its own, in a folder, so that they are not lost if the thread is killed.
 */
#ifndef KSCOPE_WIRE_EMULATE_H
#define KSCOPE_WIRE_EMULATE_H

#include <stdint.h>

#define EMULATE_SAMPLE_TYPE 0x10007 /* IP | TID | TIME | IDENTIFIER */
#define EMULATE_EVENT 1		    /* the id of the only event */
#define EMULATE_THREADS_MAX 65536   /* queues of a perf.data */
#define EMULATE_BYTES 131072	    /* of packets in one record */
#define EMULATE_PART "part-" /* the names of the files of threads begin so; struct emulate_part */
#define EMULATE_QUEUES "queues" /* the name of the file with struct emulate_queues */

/* A thread's packets that are in no record yet. */
struct emulate_part {
	uint64_t used;	 /* bytes */
	uint64_t offset; /* of the first in the thread's trace */
	uint64_t tsc;	 /* of the first, at most */
	uint32_t queue, tid;
	uint8_t bytes[EMULATE_BYTES];
};

/* The threads of each queue. Processes add to it, with atomic operations. */
struct emulate_queues {
	uint32_t nr;
	uint32_t tids[EMULATE_THREADS_MAX];
	uint64_t offsets
		[EMULATE_THREADS_MAX]; /* bytes in records; an execve() does not end the trace */
};

/* The record that comes before packets. They are not part of its size. */
struct emulate_auxtrace {
	uint32_t type; /* 71 */
	uint16_t misc, record_size;
	uint64_t size, offset, reference;
	uint32_t idx, tid, cpu, reserved;
};

#endif
