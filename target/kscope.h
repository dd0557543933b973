/* SPDX-License-Identifier: MIT */
/*
 * kscope.h: a sampling profiler that a kernel builds in. doc/porting.md shows how, step by step.
 *
 *	sample		takes samples, in interrupts
 *	stack		walks frame pointers
 *	event		what triggers samples, and how often
 *	ring		records of one cpu, from its interrupts to the task that sends them
 *	serve		that task: sends the stream, and obeys commands
 *	command		the commands
 *	text		numbers and words in them
 *	format_*	what the stream looks like: kscope's own, seL4's, Akaros'
 *	pmu_*		counters of processors
 *
 * Freestanding C: no allocation, no library function but the memcpy and memset that compilers emit anyway. All memory
 * is the caller's. The interrupts of each cpu write to a ring of their own, without locks; one task, on any cpu, calls
 * kscope_serve(). Samples may come from NMIs, too.
 */
#ifndef KSCOPE_TARGET_H
#define KSCOPE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits. A kernel with little memory can define smaller ones, the same for all files. */
#ifndef KSCOPE_CPUS
#define KSCOPE_CPUS 64
#endif
#ifndef KSCOPE_CHUNK
#define KSCOPE_CHUNK 2048 /* bytes of a message: a damaged byte on the line loses one */
#endif
#define KSCOPE_DEPTH 127 /* frames of a sample, at most */
#define KSCOPE_EVENTS 8	 /* at the same time; the first one is the timer */
#define KSCOPE_LINE 128	 /* bytes of a command */

struct kscope;

/* Where a cpu was when it was interrupted. */
struct kscope_at {
	uint32_t task; /* the kernel's number of the running task; 0: none */
	bool user;     /* not in the kernel */
	uintptr_t pc, fp, sp;
	uintptr_t link; /* the link register; on x86, the word on top of the stack; 0: unknown */
};

/* A task, for its name. */
struct kscope_task {
	uint32_t id;	  /* not 0 */
	uint32_t process; /* whose memory it uses: the id of one of its tasks; 0: its own */
	const char *name;
	uint64_t since; /* when it got this name; 0: before the start */
};

/* A binary in memory. */
struct kscope_map {
	uint32_t process;		/* 0: in the kernel */
	const char *path;		/* kscope looks for a file with this name */
	uint64_t address, size, offset; /* size 0: all of it, where it is linked */
	uint64_t since;			/* 0: before the start */
};

/*
 * What the kernel provides. `data` is port->data. Only time is required; a feature whose functions are missing is
 * not available, and the commands say so.
 */
struct kscope_port {
	void *data;
	const char *arch; /* as uname -m: x86_64, aarch64, riscv64, arm... */
	const char *name; /* of the kernel */
	unsigned cpus;
	uint64_t boot; /* a number that differs from boot to boot; 0: there is none */
	/* Nanoseconds, the same on all cpus; never goes back. */
	uint64_t (*time)(void *data);
	/*
	 * Copies `size` bytes of the memory that `at` was in, or returns false. It must not fault, whatever the address
	 * is. Samples call it for each frame.
	 */
	bool (*read)(void *data, const struct kscope_at *at, void *to, uintptr_t from, size_t size);
	/* Interrupts this cpu once, after `ns`; 0: not at all. The interrupt calls kscope_timer(). */
	void (*timer)(void *data, uint64_t ns);
	/* Where user code was, before it entered the kernel in the task of `at`. */
	bool (*user)(void *data, const struct kscope_at *at, struct kscope_at *user);
	/*	 * Returns true if the entry code of an interrupt or exception built the frame at `fp`; `back` is the return
	 * address of its handler. Sets `before` to where the interrupted code was. Without it, a function that was
	 * interrupted before it had a frame lacks its caller. If entry_size is not 0, the walk calls it only for return
	 * addresses in that range, which is faster. `fp` may be wrong, if the stack is: check it, as in `read`.
	 */
	uintptr_t entry, entry_size;
	bool (*trap)(void *data, const struct kscope_at *at, uintptr_t back, uintptr_t fp,
		     struct kscope_at *before);
	/* Describes task or map number `i`, from 0; false: there are no more. */
	bool (*task)(void *data, size_t i, struct kscope_task *task);
	bool (*map)(void *data, size_t i, struct kscope_map *map);
	/* The link to the host. Neither waits: send returns how many bytes it took, receive a byte or -1. */
	size_t (*send)(void *data, const void *bytes, size_t size);
	int (*receive)(void *data);
	/* Makes another cpu call kscope_apply() soon. Without it, the kernel's own tick has to, on each cpu. */
	void (*kick)(void *data, unsigned cpu);
	/* The counters of the processor: &kscope_pmu_armv8...; NULL: none. */
	const struct kscope_pmu *pmu;
	/* The number of bits of a virtual address, such as 48, if the kernel signs return addresses; else 0. */
	unsigned address_bits;
};

/* A kind of event that can trigger samples. The types are those of perf. */
struct kscope_event {
	const char *name;
	uint32_t type;	 /* 0: hardware, 1: software, 4: raw */
	uint64_t config; /* its number, for perf and for the PMU */
	uint64_t raw;	 /* what the PMU's register takes */
};
#define KSCOPE_HARDWARE 0
#define KSCOPE_SOFTWARE 1
#define KSCOPE_RAW 4

/* Counters of a processor. All functions are for the cpu that calls them. */
struct kscope_pmu {
	const char *name;
	const struct kscope_event *events; /* up to a row without a name */
	unsigned (*init)(void); /* returns the number of counters, at most KSCOPE_EVENTS - 1 */
	/* Whether this counter can count this event. */
	bool (*takes)(unsigned counter, const struct kscope_event *event);
	/* Counts, and interrupts after `period` events. Event NULL: the same as before. Period 0: stops. */
	void (*set)(unsigned counter, const struct kscope_event *event, uint64_t period);
	uint32_t (*overflows)(
		void); /* the counters that have overflowed, one bit each; clears them */
	uint64_t (*period_max)(unsigned counter); /* they differ: some are narrower than others */
};
extern const struct kscope_pmu kscope_pmu_armv8; /* AArch64: PMUv3 */
extern const struct kscope_pmu kscope_pmu_x86;	 /* x86-64: architectural performance monitoring */
extern const struct kscope_pmu kscope_pmu_riscv; /* RISC-V: SBI PMU with Sscofpmf */
extern bool
	kscope_pmu_armv8_qemu; /* set it before kscope_init() under QEMU with -icount: see pmu_armv8.c */

/*
 * Prepares the profiler. `k` and `memory` belong to it from now on; `memory` is for the rings, as large as can be
 * spared. False: `time` is missing, there are no cpus or too many, or the memory is too small.
 */
bool kscope_init(struct kscope *k, const struct kscope_port *port, void *memory, size_t size);

/*
 * The interrupts. All are for the cpu that calls them, with interrupts off (NMIs may come). kscope_timer() takes a
 * sample and sets the timer for the next one; kscope_counter() does the same for the counters that have overflowed.
 * These, kscope_apply(), kscope_sample() and kscope_alloc() do nothing before kscope_init(), if `k` is zero until then.
 */
void kscope_timer(struct kscope *k, unsigned cpu, const struct kscope_at *at);
void kscope_counter(struct kscope *k, unsigned cpu, const struct kscope_at *at);
/* Applies commands to this cpu: starts or stops its timer and counters. Cheap if nothing has changed. */
void kscope_apply(struct kscope *k, unsigned cpu);

/* Takes a sample, whatever triggered it, that stands for `weight` events. `event` is 0 for the timer. */
void kscope_sample(struct kscope *k, unsigned cpu, unsigned event, uint64_t weight,
		   const struct kscope_at *at);

/* Returns the caller's frame pointer. `frame` is __builtin_frame_address(0) of a function with a frame. */
static inline uintptr_t kscope_callers_fp(const void *frame)
{
#if defined(__riscv)
	return ((const uintptr_t *)frame)[-2];
#else
	return ((const uintptr_t *)frame)[0];
#endif
}

enum kscope_op { KSCOPE_NEW, KSCOPE_RESIZE, KSCOPE_FREE };
/*
 * The allocator calls this, with interrupts off. `allocator` is a string that is never freed. At a resize, `pointer` is the old
 * one. Formats that have no allocations ignore it.
 */
void kscope_alloc(struct kscope *k, unsigned cpu, enum kscope_op op, const char *allocator,
		  uint64_t pointer, uint64_t size, const struct kscope_at *at);

/*
 * Reads commands from the link, and sends what was collected. Call it again and again. Returns false if there is
 * nothing more to do at the moment: the task may sleep for some milliseconds. Of this function and those below, one
 * runs at a time: if several tasks call them, the kernel needs a lock.
 */
bool kscope_serve(struct kscope *k);
/*
 * A host has connected to the link, if the link can tell, as TCP can. It gets the greeting of the format, if that has
 * one, and what it needs to understand a stream that runs already. Call it from the task that serves.
 */
void kscope_connected(struct kscope *k);
/* Obeys one command, as if it came over the link. Returns false, with the reason in `answer`, if it is wrong. */
bool kscope_command(struct kscope *k, const char *line, char *answer, size_t size);
/* Tasks or maps have changed: the stream describes them again. */
void kscope_changed(struct kscope *k);
/* Whether samples are being taken. */
bool kscope_is_running(const struct kscope *k);
/* After `stop`, whether the host has everything: the kernel may power off. */
bool kscope_is_done(const struct kscope *k);

/* Samples and allocations since `start`. taken = sent + dropped, once kscope_is_done(). */
struct kscope_counts {
	uint64_t taken, sent, dropped;
};
void kscope_count(const struct kscope *k, unsigned cpu, struct kscope_counts *counts);

#include "kscope_parts.h"

#ifdef __cplusplus
}
#endif

#endif
