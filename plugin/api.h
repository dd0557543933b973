/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * api: the same interface to every QEMU from 7.2 to 11.1. The plugin looks up all functions by name
 * when it is loaded. A function that this QEMU does not have is NULL, and the plugin tests for the
 * function, never for a version number. Builds of QEMU with modules, such as Debian's, also export
 * functions that are not part of QEMU's plugin interface.
 */
#ifndef KSCOPE_PLUGIN_API_H
#define KSCOPE_PLUGIN_API_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct CPUState;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} api_u64;

/* The public members of GLib's structures. */
typedef struct {
	uint8_t *data;
	unsigned len;
} GByteArray;
typedef struct {
	char *data;
	unsigned len;
} GArray;

enum { API_NO_REGS, API_R_REGS, API_RW_REGS };
enum {
	API_COND_NEVER,
	API_COND_ALWAYS,
	API_COND_EQ,
	API_COND_NE,
	API_COND_LT,
	API_COND_LE,
	API_COND_GT,
	API_COND_GE
};
enum { API_ADD_U64, API_STORE_U64 };
enum { API_CLOCK_REALTIME, API_CLOCK_VIRTUAL };

typedef void api_exec_cb(unsigned cpu, void *data);
typedef void api_work_cb(struct CPUState *cpu, void *data); /* data: run_on_cpu_data, a union */

struct api {
	/* Facts about the emulator. */
	bool user_mode;
	bool callbacks_have_data; /* 11.1 and later */
	char arch[16];		  /* as in uname -m */
	char version[32];	  /* "7.2.22", or "" */
	unsigned cpus;		  /* at the start; 0 in user mode */
	unsigned max_cpus;

	/* QEMU's plugin interface: functions of every version. */
	size_t (*tb_n_insns)(const struct qemu_plugin_tb *);
	uint64_t (*tb_vaddr)(const struct qemu_plugin_tb *);
	struct qemu_plugin_insn *(*tb_get_insn)(const struct qemu_plugin_tb *, size_t);
	size_t (*insn_size)(const struct qemu_plugin_insn *);
	uint64_t (*insn_vaddr)(const struct qemu_plugin_insn *);
	void *(*insn_haddr)(const struct qemu_plugin_insn *); /* in this process */
	const char *(*insn_symbol)(const struct qemu_plugin_insn *);
	void (*tb_exec_cb)(struct qemu_plugin_tb *, api_exec_cb *, int flags, void *);
	void (*insn_exec_cb)(struct qemu_plugin_insn *, api_exec_cb *, int flags, void *);

	/* Since 9.0. */
	GArray *(*get_registers)(void);
	struct qemu_plugin_scoreboard *(*scoreboard_new)(size_t);
	void *(*scoreboard_find)(struct qemu_plugin_scoreboard *, unsigned);
	uint64_t (*u64_get)(api_u64, unsigned);
	void (*u64_set)(api_u64, unsigned, uint64_t);
	void (*tb_exec_inline)(struct qemu_plugin_tb *, int op, api_u64, uint64_t);
	void (*insn_exec_inline)(struct qemu_plugin_insn *, int op, api_u64, uint64_t);

	/* Since 9.1. */
	void (*tb_exec_cond_cb)(struct qemu_plugin_tb *, api_exec_cb *, int flags, int cond,
				api_u64, uint64_t, void *);
	void (*insn_exec_cond_cb)(struct qemu_plugin_insn *, api_exec_cb *, int flags, int cond,
				  api_u64, uint64_t, void *);

	/* Since 9.2. */
	bool (*read_memory)(uint64_t, GByteArray *, size_t);

	/* Exported by some builds. */
	void (*async_run_on_cpu)(struct CPUState *, api_work_cb *, void *);
	struct CPUState *(*get_cpu)(int);
	int (*memory_rw_debug)(struct CPUState *, uint64_t, void *, size_t, bool);
	int (*gdb_read)(struct CPUState *, GByteArray *, int);	/* of the target's architecture */
	void *(*find_property)(void *object, const char *name); /* a vCPU is an object */
	bool (*runstate_is_running)(void);
	bool (*cpu_is_idle)(struct CPUState *);
	void (*physical_rw)(uint64_t, void *, uint64_t, bool);
	int64_t (*clock_ns)(int);
	int64_t (*icount_raw)(void);
	void (*timer_init)(void *timer, void *lists, int clock, int scale, int attributes,
			   void (*)(void *), void *);
	void (*timer_mod)(void *timer, int64_t);
	void *timer_lists; /* of QEMU's main loop */
	const int *icount; /* not 0: -icount */

	/* GLib, which every QEMU has. */
	GByteArray *(*byte_array_new)(void);
	GByteArray *(*byte_array_set_size)(GByteArray *, unsigned);
	uint8_t *(*byte_array_free)(GByteArray *, int);
	unsigned (*array_element_size)(GArray *);
	char *(*array_free)(GArray *, int);
};

extern struct api api;

/* A system call of a program, before and after QEMU carries it out. */
struct api_syscall {
	bool returns;
	int64_t number;
	uint64_t args[6]; /* before */
	int64_t result;	  /* after */
};

/* Callbacks, the same for every version of QEMU. NULL: not needed. */
struct api_hooks {
	void (*cpu_init)(unsigned cpu);
	void (*cpu_exit)(unsigned cpu);
	void (*cpu_idle)(unsigned cpu);
	void (*cpu_resume)(unsigned cpu);
	void (*translate)(struct qemu_plugin_tb *tb);
	void (*flush)(void); /* QEMU has discarded all blocks */
	void (*exit)(void);
	void (*syscall)(unsigned cpu, const struct api_syscall *call); /* user mode */
};

/* The argument of qemu_plugin_install(). */
typedef struct {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
} api_info;

/* For qemu_plugin_install(). */
int api_open(const api_info *info); /* 0, or -1 after a message */
/* May be called several times, to add callbacks. */
void api_hook(uint64_t id, const struct api_hooks *hooks);

/* Copies at most `size` bytes of an instruction. Returns their number. */
size_t api_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t size);
/* In a callback: reads a register of its vCPU by QEMU's handle. Returns the number of bytes, or 0. */
size_t api_read_register(void *handle, GByteArray *into);
/* The vCPU that this thread runs; NULL: unknown. */
struct CPUState *api_current_cpu(void);
/* Whether public functions act on this vCPU: QEMU may run a work item while another one is current. */
bool api_is_current(struct CPUState *cpu);
/*
 * True if several vCPUs share a thread (-icount, thread=single), on QEMU 9.0 or later. Since 10.0 such a
 * QEMU passes callbacks the number of the vCPU that translated the block, not of the one that runs
 * it; api_running_cpu() returns the right number. The code for scoreboards is wrong for all vCPUs
 * except 0 and may crash, so the plugin does not use them there.
 */
bool api_mixes_cpus(void);
unsigned api_running_cpu(unsigned given);
/* Whether a work item may read public registers. */
bool api_reads_in_work(void);
/* Whether QEMU derives guest time from instructions: then a callback cannot read the clock. */
bool api_counts_time(void);
/* Prints a message on stderr, after the plugin's name. */
void api_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Starts a thread that blocks all signals, so that QEMU gets them. Returns 0 or an errno. */
int api_thread(pthread_t *thread, void *(*body)(void *));
/*
 * Moves a descriptor above the standard ones. With the number of one that was closed when QEMU started, it would
 * receive QEMU's messages or the guest's output. Hands on -1.
 */
int api_above_standard(int fd);

#endif
