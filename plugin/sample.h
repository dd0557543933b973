/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample: looks at vCPUs, by host time, guest time (tick.c) or instructions (count.c).
 *
 * Where QEMU exports what it needs, a look is a work item: QEMU runs it in the vCPU's thread between
 * two blocks, and code that is not looked at runs as fast as without plugin. Elsewhere a vCPU looks
 * at itself in a callback of a block.
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

/* A vCPU as the sampler knows it. */
struct vcpu {
	unsigned index;
	pthread_mutex_t lock; /* for `state` and `here`: the ticker must not ask one that is gone */
	struct CPUState *state; /* NULL until it is needed */
	bool here;		/* may be asked */
	_Atomic bool idle;	/* waits for an interrupt, or for a system call to end */
	_Atomic bool asked;	/* and has not answered yet */
	/* Of the thread that runs it. */
	uint64_t armed; /* instructions until the next look */
	uint64_t seen;	/* instructions at the last look */
	uint64_t random;
	uint64_t cpu_time;    /* of the thread, at the last sample */
	bool masked;	      /* interrupts, at the last look */
	_Atomic uint64_t ran; /* instructions */
};

int sample_open(void); /* 0, or -1 after a message */
void sample_cpu_init(unsigned cpu);
void sample_cpu_exit(unsigned cpu);
void sample_cpu_idle(unsigned cpu);
void sample_cpu_resume(unsigned cpu);
void sample_syscall(unsigned cpu, bool returns);
void sample_translate(struct qemu_plugin_tb *tb);
bool sample_wants_blocks(void);
/* Stops the threads; no sample comes after it. */
void sample_close(void);

/*
 * The time of records: the host's monotonic clock, or with another clock= the guest's if QEMU has
 * it. With -icount that one cannot be read while a block runs; then it is the time it had when it
 * was last read. sample_round(): what sample_now() will not go below any more.
 */
uint64_t sample_now(void);
uint64_t sample_round(void);
/* For a function that QEMU calls between blocks: its clock can be read. Returns what was before. */
bool sample_between_blocks(bool yes);

/* Whether anything is recorded now: start= and the control socket say so, and from=, to=. */
bool sample_running(void);
void sample_set_running(bool on);
uint64_t sample_instructions(void);

struct vcpu *sample_vcpu(unsigned cpu); /* NULL without memory */
unsigned sample_vcpus(void);		/* the highest number plus 1 */
/* True if vCPUs are looked at by work items. */
bool sample_by_work(void);
/* Asks a vCPU for a look at it, from any thread; an idle one gets an idle sample at once. */
void sample_ask(struct vcpu *vcpu);
/* The look itself. weight 0: the time since the last one. */
void sample_take(struct vcpu *vcpu, const struct regs_view *view, uint64_t pc, uint64_t weight);
/* A period, changed at random by up to a half if jitter is on; the same numbers in every run. */
uint64_t sample_jitter(uint64_t *state, uint64_t period);

/*
 * The copy of the stack that goes with registers, into memory of the calling thread that holds until
 * its next call. 0 bytes if there is none.
 */
size_t sample_stack(const struct regs_view *view, const struct regs *regs, const uint8_t **stack);
/* Fills in what `regs` know, registers and stack borrowed. The caller may add time and weight. */
void sample_from_regs(struct wire_sample *sample, const struct regs_view *view,
		      const struct regs *regs);

/* outer.c: the stack that the one in `sample` was entered from, borrowed likewise. */
void outer_stack(struct wire_sample *sample, const struct regs_view *view, const struct regs *regs);

/* code.c: notes the code at regs->pc, if it was not yet, or has changed. */
void code_note(struct track *track, const struct regs_view *view, const struct regs *regs);

/* tick.c: the ticker thread, or a timer of the guest's clock. */
int tick_open(void);
void tick_start(void);
bool tick_wants_blocks(void); /* starts only at the first translation: earlier QEMU is not ready */
void tick_close(void);

/* count.c: counts instructions in blocks, for clock=instructions and for looks in callbacks. */
int count_open(void);
void count_cpu_init(struct vcpu *vcpu);
void count_translate(struct qemu_plugin_tb *tb);
/*
 * Blocks that were left in their middle, by an exception or to access a device, were counted whole.
 * Between blocks, with -icount and one vCPU, QEMU knows it exactly.
 */
void count_correct(struct vcpu *vcpu);
void count_close(void);

/* maestro.c: a sample of format=maestro. */
void maestro_put(struct track *track, const struct regs_view *view, const struct regs *regs);

#endif
