/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample: takes samples of vCPUs, by host time or guest time (tick.c) or by instructions (count.c).
 *
 * If QEMU exports the functions it needs, a sample is taken in a work item: QEMU runs it in the thread
 * of the vCPU between two blocks, and the guest's code runs as fast as without the plugin. Otherwise the
 * vCPU takes the sample in a callback of a block.
 */
#ifndef KSCOPE_PLUGIN_SAMPLE_H
#define KSCOPE_PLUGIN_SAMPLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regs.h"
#include "stream.h"

struct qemu_plugin_tb;

/* The sampler's state of a vCPU. */
struct vcpu {
	unsigned index;
	pthread_mutex_t lock;	/* of `state` and `here`: the vCPU may exit while it is used */
	struct CPUState *state; /* NULL until it is needed */
	bool here;		/* takes requests */
	_Atomic bool idle;	/* waits for an interrupt or in a system call */
	_Atomic bool asked;	/* a request is pending */
	/* Only for the thread of the vCPU. */
	uint64_t armed; /* instructions until the next callback */
	uint64_t seen;	/* instructions at the last sample */
	uint64_t random;
	uint64_t cpu_time;    /* of the thread, at the last sample */
	bool masked;	      /* interrupts were masked at the last sample */
	_Atomic uint64_t ran; /* instructions */
};

void sample_open(void);
void sample_cpu_init(unsigned cpu);
void sample_cpu_exit(unsigned cpu);
void sample_cpu_idle(unsigned cpu);
void sample_cpu_resume(unsigned cpu);
void sample_syscall(unsigned cpu, bool returns);
void sample_translate(struct qemu_plugin_tb *tb);
bool sample_wants_blocks(void);
/* Stops the threads. There are no samples afterwards. */
void sample_close(void);

/*
 * The time of records: the host's monotonic clock, or with another clock= the guest's if QEMU exports
 * it. With -icount the guest's clock cannot be read while a block runs; then this is the last value
 * read. sample_round(): no later sample_now() is below this.
 */
uint64_t sample_now(void);
uint64_t sample_round(void);
/* For functions that QEMU calls between blocks, which can read the clock. Returns the old value. */
bool sample_between_blocks(bool yes);

/* Whether recording is on: start=, from=, to= and the control socket set it. */
bool sample_running(void);
void sample_set_running(bool on);
uint64_t sample_instructions(void);

struct vcpu *sample_vcpu(unsigned cpu); /* NULL without memory */
unsigned sample_vcpus(void);		/* the highest number plus 1 */
/* Whether samples are taken in work items. */
bool sample_by_work(void);
/* Requests a sample of a vCPU, from any thread. An idle vCPU gets an idle sample at once. */
void sample_ask(struct vcpu *vcpu);
/* Takes a sample. weight 0: the time since the last one. */
void sample_take(struct vcpu *vcpu, const struct regs_view *view, uint64_t pc, uint64_t weight);
/*
 * In a callback at the start of a block that runs at `pc`: takes a sample inside a trace, which has a
 * code with the number `place` for it. False: there was no room.
 */
bool sample_in_trace(struct track *track, unsigned cpu, uint64_t pc, uint64_t place);
/* A period, randomized by up to a half if jitter is on. The sequence is the same in every run. */
uint64_t sample_jitter(uint64_t *state, uint64_t period);

/*
 * Copies the stack. The copy is valid until the next call in the same thread. Returns its size, which
 * may be 0.
 */
size_t sample_stack(const struct regs_view *view, const struct regs *regs, const uint8_t **stack);
/* Fills a sample, which borrows registers and stack. The caller may add time and weight. */
void sample_from_regs(struct wire_sample *sample, const struct regs_view *view,
		      const struct regs *regs);

/* outer.c: adds the interrupted stack to the sample, which borrows it, too. */
void outer_stack(struct wire_sample *sample, const struct regs_view *view, const struct regs *regs);

/* code.c: records the page of code at regs->pc, if it is new or has changed. */
void code_note(struct track *track, const struct regs_view *view, const struct regs *regs);

/* tick.c: requests samples from a thread, or from a timer of the guest's clock. */
void tick_open(void);
void tick_start(void);
bool tick_wants_blocks(void); /* it can start only at the first translation, when QEMU is ready */
void tick_close(void);

/* count.c: counts instructions, for clock=instructions and for samples in callbacks. */
void count_open(void);
void count_cpu_init(struct vcpu *vcpu);
void count_translate(struct qemu_plugin_tb *tb);
/*
 * Corrects the count: it is too high if exceptions or device accesses ended blocks early. Works between
 * blocks, with -icount and one vCPU: then QEMU has the exact number.
 */
void count_correct(struct vcpu *vcpu);
void count_close(void);

/* maestro.c: a sample of format=maestro. */
void maestro_put(struct track *track, const struct regs_view *view, const struct regs *regs);

#endif
