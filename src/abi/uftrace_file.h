/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uftrace_file: the layout of uftrace's data folder, in version 4.
 *
 *	info		a header of 40 bytes, then lines of "key:value"
 *	task.txt	when programs start (SESS), threads begin (TASK), processes fork (FORK), and
 *			libraries are loaded (DLOP)
 *	sid-ID.map	what a program has mapped, as in /proc/PID/maps
 *	NAME.sym	symbols of a binary: "address type name", relative to its first map
 *	TID.dat		records of one thread
 *	perf-cpuN.dat	records of perf: names of threads (COMM), among others; sample_id has pid, tid, time
 *
 * A record has 16 bytes: the time in ns, then 64 bits: 2 of its type, a bit if arguments follow, 3 of magic,
 * 10 of the depth of the call, 48 of the function's address (LOST: how many records; 0: unknown).
 */
#ifndef KSCOPE_ABI_UFTRACE_FILE_H
#define KSCOPE_ABI_UFTRACE_FILE_H

#include <stdint.h>

#define UFTRACE_MAGIC "Ftrace!"
#define UFTRACE_HEADER 40 /* bytes */
#define UFTRACE_VERSION 4
#define UFTRACE_VERSION_MIN 3

/* Offsets in the header. */
#define UFTRACE_AT_VERSION 8
#define UFTRACE_AT_SIZE 12
#define UFTRACE_AT_ENDIAN 14 /* 1: little, as in an ELF file */
#define UFTRACE_AT_CLASS 15  /* 2: 64 bits */
#define UFTRACE_AT_FEATURES 16
#define UFTRACE_AT_INFO 24 /* which lines follow */
#define UFTRACE_AT_MAX_STACK 32

enum uftrace_feature {
	UFTRACE_TASK_SESSION = 1 << 1,
	UFTRACE_SYM_REL_ADDR = 1 << 5,
	UFTRACE_MAX_STACK = 1 << 6,
	UFTRACE_PERF_EVENT = 1 << 8,
};

enum uftrace_info {
	UFTRACE_EXE_NAME = 1 << 0,
	UFTRACE_CMDLINE = 1 << 3,
	UFTRACE_OSINFO = 1 << 6,
	UFTRACE_TASKINFO = 1 << 7,
	UFTRACE_RECORD_VERSION = 1 << 13,
};

#define UFTRACE_PERF_COMM 3 /* pid, tid, a name of 8 or 16 bytes, sample_id */
#define UFTRACE_COMM_LEN 16

#define UFTRACE_RECORD 16 /* bytes */
enum uftrace_type { UFTRACE_ENTRY, UFTRACE_EXIT, UFTRACE_LOST, UFTRACE_EVENT };

#define UFTRACE_RECORD_MAGIC 5
#define UFTRACE_DEPTHS 1024
#define UFTRACE_ADDRESS_BITS 48
#define UFTRACE_ADDRESS_MASK (((uint64_t)1 << UFTRACE_ADDRESS_BITS) - 1)

/* The second half of a record. */
static inline uint64_t uftrace_word(enum uftrace_type type, uint64_t depth, uint64_t addr)
{
	return type | UFTRACE_RECORD_MAGIC << 3 | depth << 6 | addr << 16;
}

static inline enum uftrace_type uftrace_type(uint64_t word)
{
	return word & 3;
}

static inline int uftrace_has_more(uint64_t word)
{
	return word >> 2 & 1;
}

static inline int uftrace_is_record(uint64_t word)
{
	return (word >> 3 & 7) == UFTRACE_RECORD_MAGIC;
}

static inline uint32_t uftrace_depth(uint64_t word)
{
	return word >> 6 & (UFTRACE_DEPTHS - 1);
}

static inline uint64_t uftrace_address(uint64_t word)
{
	return word >> 16;
}

#endif
