/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_file: the layout of a perf.data file, as perf(1) writes it. Only numbers and structures, in
 * the byte order of the recording machine.
 */
#ifndef KSCOPE_ABI_PERF_FILE_H
#define KSCOPE_ABI_PERF_FILE_H

#include <stdint.h>

#define PERF_MAGIC "PERFILE2"
#define PERF_PIPE_HEADER 16   /* magic and size, directly followed by records */
#define PERF_ATTR_SIZE_MIN 64 /* the first version of perf_event_attr */

struct perf_section {
	uint64_t offset, size;
};

struct perf_header {
	char magic[8];
	uint64_t size;	    /* of this header: 104 in a file, 16 in a pipe */
	uint64_t attr_size; /* of struct perf_file_attr */
	struct perf_section attrs, data, event_types;
	uint64_t features[4]; /* one bit each; each has a section after the data */
};

struct perf_attr { /* perf_event_attr up to PERF_ATTR_SIZE_VER5 */
	uint32_t type, size;
	uint64_t config;
	uint64_t sample_period; /* or frequency */
	uint64_t sample_type, read_format;
	uint64_t flags;
	uint32_t wakeup_events, bp_type;
	uint64_t config1, config2;
	uint64_t branch_sample_type, sample_regs_user;
	uint32_t sample_stack_user;
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack, reserved;
};

struct perf_file_attr {
	struct perf_attr attr;
	struct perf_section ids;
};

/* attr.flags, as a little-endian machine numbers the bits */
enum {
	PERF_ATTR_INHERIT = 1 << 1,
	PERF_ATTR_EXCLUDE_USER = 1 << 4,
	PERF_ATTR_EXCLUDE_KERNEL = 1 << 5,
	PERF_ATTR_EXCLUDE_HV = 1 << 6,
	PERF_ATTR_MMAP = 1 << 8,
	PERF_ATTR_COMM = 1 << 9,
	PERF_ATTR_FREQ = 1 << 10,
	PERF_ATTR_TASK = 1 << 13,
	PERF_ATTR_SAMPLE_ID_ALL = 1 << 18,
	PERF_ATTR_EXCLUDE_HOST = 1 << 19,
	PERF_ATTR_EXCLUDE_GUEST = 1 << 20,
	PERF_ATTR_MMAP2 = 1 << 23,
	PERF_ATTR_COMM_EXEC = 1 << 24,
	PERF_ATTR_CONTEXT_SWITCH = 1 << 26,
	PERF_ATTR_KSYMBOL = 1 << 29,
};

#define PERF_ATTR_PRECISE_SHIFT 15 /* two bits: by how far an address may be off */

/* attr.sample_type: the fields of a sample, not in their order in the record */
#define PERF_SAMPLE_IP (1ULL << 0)
#define PERF_SAMPLE_TID (1ULL << 1)
#define PERF_SAMPLE_TIME (1ULL << 2)
#define PERF_SAMPLE_ADDR (1ULL << 3)
#define PERF_SAMPLE_READ (1ULL << 4)
#define PERF_SAMPLE_CALLCHAIN (1ULL << 5)
#define PERF_SAMPLE_ID (1ULL << 6)
#define PERF_SAMPLE_CPU (1ULL << 7)
#define PERF_SAMPLE_PERIOD (1ULL << 8)
#define PERF_SAMPLE_STREAM_ID (1ULL << 9)
#define PERF_SAMPLE_RAW (1ULL << 10)
#define PERF_SAMPLE_BRANCH_STACK (1ULL << 11)
#define PERF_SAMPLE_REGS_USER (1ULL << 12)
#define PERF_SAMPLE_STACK_USER (1ULL << 13)
#define PERF_SAMPLE_WEIGHT (1ULL << 14)
#define PERF_SAMPLE_DATA_SRC (1ULL << 15)
#define PERF_SAMPLE_IDENTIFIER (1ULL << 16)
#define PERF_SAMPLE_TRANSACTION (1ULL << 17)
#define PERF_SAMPLE_REGS_INTR (1ULL << 18)
#define PERF_SAMPLE_PHYS_ADDR (1ULL << 19)
#define PERF_SAMPLE_AUX (1ULL << 20)
#define PERF_SAMPLE_CGROUP (1ULL << 21)
#define PERF_SAMPLE_DATA_PAGE_SIZE (1ULL << 22)
#define PERF_SAMPLE_CODE_PAGE_SIZE (1ULL << 23)
#define PERF_SAMPLE_WEIGHT_STRUCT (1ULL << 24)

/* attr.read_format */
enum {
	PERF_READ_ENABLED = 1,
	PERF_READ_RUNNING = 2,
	PERF_READ_ID = 4,
	PERF_READ_GROUP = 8,
	PERF_READ_LOST = 16,
};

/* attr.branch_sample_type */
#define PERF_BRANCH_CALL_STACK (1ULL << 11) /* the branches are the calls that did not return */
/* Bits that add words to a branch stack */
#define PERF_BRANCH_HW_INDEX (1ULL << 17)
#define PERF_BRANCH_COUNTERS (1ULL << 19)

/* In a call chain: the next word is the cookie of a later record with the rest of the chain. */
#define PERF_CONTEXT_USER_DEFERRED ((uint64_t)-640)

struct perf_record {
	uint32_t type;
	uint16_t misc, size; /* size includes this header */
};

enum perf_record_type {
	PERF_RECORD_MMAP = 1,
	PERF_RECORD_LOST = 2,
	PERF_RECORD_COMM = 3,
	PERF_RECORD_EXIT = 4,
	PERF_RECORD_THROTTLE = 5,
	PERF_RECORD_UNTHROTTLE = 6,
	PERF_RECORD_FORK = 7,
	PERF_RECORD_READ = 8,
	PERF_RECORD_SAMPLE = 9,
	PERF_RECORD_MMAP2 = 10,
	PERF_RECORD_AUX = 11,
	PERF_RECORD_ITRACE_START = 12,
	PERF_RECORD_LOST_SAMPLES = 13,
	PERF_RECORD_SWITCH = 14,
	PERF_RECORD_SWITCH_CPU_WIDE = 15,
	PERF_RECORD_NAMESPACES = 16,
	PERF_RECORD_KSYMBOL = 17,
	PERF_RECORD_BPF_EVENT = 18,
	PERF_RECORD_CGROUP = 19,
	PERF_RECORD_TEXT_POKE = 20,
	PERF_RECORD_AUX_OUTPUT_HW_ID = 21,
	PERF_RECORD_CALLCHAIN_DEFERRED = 22,
	/* Records that perf itself writes, not the kernel. */
	PERF_RECORD_HEADER_ATTR = 64,
	PERF_RECORD_HEADER_EVENT_TYPE = 65,
	PERF_RECORD_HEADER_TRACING_DATA = 66,
	PERF_RECORD_HEADER_BUILD_ID = 67,
	PERF_RECORD_FINISHED_ROUND = 68,
	PERF_RECORD_ID_INDEX = 69,
	PERF_RECORD_AUXTRACE_INFO = 70,
	PERF_RECORD_AUXTRACE = 71,
	PERF_RECORD_AUXTRACE_ERROR = 72,
	PERF_RECORD_THREAD_MAP = 73,
	PERF_RECORD_CPU_MAP = 74,
	PERF_RECORD_STAT_CONFIG = 75,
	PERF_RECORD_STAT = 76,
	PERF_RECORD_STAT_ROUND = 77,
	PERF_RECORD_EVENT_UPDATE = 78,
	PERF_RECORD_TIME_CONV = 79,
	PERF_RECORD_HEADER_FEATURE = 80,
	PERF_RECORD_COMPRESSED = 81,
	PERF_RECORD_FINISHED_INIT = 82,
	PERF_RECORD_COMPRESSED2 = 83,
	PERF_RECORD_KNOWN_USER_END,
};

/* Records of simpleperf. Their size has 32 bits: the upper 16 are in the place of misc. */
enum {
	SIMPLE_RECORD_KERNEL_SYMBOL = 32769,
	SIMPLE_RECORD_DSO = 32770,
	SIMPLE_RECORD_SYMBOL = 32771,
	SIMPLE_RECORD_SPLIT = 32772, /* a part of a record that is too large */
	SIMPLE_RECORD_SPLIT_END = 32773,
	SIMPLE_RECORD_EVENT_ID = 32774,
	SIMPLE_RECORD_CALLCHAIN = 32775,
	SIMPLE_RECORD_UNWINDING_RESULT = 32776,
	SIMPLE_RECORD_TRACING_DATA = 32777,
	SIMPLE_RECORD_DEBUG = 32778,
};

/* The type of the hardware trace in PERF_RECORD_AUXTRACE_INFO */
enum {
	PERF_AUXTRACE_INTEL_PT = 1,
	PERF_AUXTRACE_INTEL_BTS = 2,
	PERF_AUXTRACE_CS_ETM = 3,
	PERF_AUXTRACE_ARM_SPE = 4,
	PERF_AUXTRACE_S390_CPUMSF = 5,
	PERF_AUXTRACE_HISI_PTT = 6,
};

enum {
	PERF_EVENT_UPDATE_UNIT = 0,
	PERF_EVENT_UPDATE_SCALE = 1,
	PERF_EVENT_UPDATE_NAME = 2,
	PERF_EVENT_UPDATE_CPUS = 3,
};

enum {
	PERF_KSYMBOL_UNREGISTER = 1, /* flags */
};

/* record.misc */
enum {
	PERF_MISC_CPUMODE = 7,
	PERF_MISC_KERNEL = 1,
	PERF_MISC_USER = 2,
	PERF_MISC_HYPERVISOR = 3,
	PERF_MISC_GUEST_KERNEL = 4,
	PERF_MISC_GUEST_USER = 5,
	PERF_MISC_COMM_EXEC = 1 << 13,
	PERF_MISC_FORK_EXEC = 1 << 13, /* synthesized by perf: without the parent's maps */
	PERF_MISC_SWITCH_OUT = 1 << 13,
	PERF_MISC_SWITCH_OUT_PREEMPT = 1 << 14,
	PERF_MISC_MMAP_DATA = 1 << 13,
	PERF_MISC_EXACT_IP = 1 << 14,
	PERF_MISC_MMAP_BUILD_ID = 1 << 14,
	PERF_MISC_BUILD_ID_SIZE = 1 << 15,
};

enum perf_feature {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_VERSION = 5,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_CPUDESC = 8,
	PERF_FEATURE_CPUID = 9,
	PERF_FEATURE_TOTAL_MEM = 10,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_SAMPLE_TIME = 21,
	PERF_FEATURE_CLOCKID = 23,
	PERF_FEATURE_DIR_FORMAT = 24,
	PERF_FEATURE_COMPRESSED = 27,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_FEATURE_SIMPLE_META_INFO = 129, /* simpleperf's */
	PERF_FEATURES = 256,
};

#endif
