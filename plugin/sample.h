/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample: looks at the vCPUs by host time, guest time or instructions. */
#ifndef KSCOPE_PLUGIN_SAMPLE_H
#define KSCOPE_PLUGIN_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regs.h"
#include "stream.h"

struct qemu_plugin_tb;

int sample_open(void); /* 0, or -1 after a message */
void sample_cpu_init(unsigned cpu);
void sample_cpu_exit(unsigned cpu);
void sample_cpu_idle(unsigned cpu);
void sample_cpu_resume(unsigned cpu);
void sample_syscall(unsigned cpu, bool returns);
void sample_translate(struct qemu_plugin_tb *tb);
/* Stops the threads; no sample comes after it. */
void sample_close(void);

/* The clock that times of records are of, from any thread but a running vCPU's with -icount. */
uint64_t sample_now(void);
/* Whether anything is recorded now: start= and the control socket say so, and from=, to=. */
bool sample_running(void);
void sample_set_running(bool on);
uint64_t sample_instructions(void);

/*
 * The copy of the stack that goes with registers, into memory of the calling thread that holds until
 * its next call. 0 bytes if there is none.
 */
size_t sample_stack(const struct regs_view *view, const struct regs *regs, const uint8_t **stack);
/* Fills in what `regs` know. The caller adds time and weight. */
void sample_from_regs(struct wire_sample *sample, const struct regs *regs);
/* Notes the code at regs->pc, if it was not yet, or has changed. */
void sample_code(struct track *track, const struct regs_view *view, const struct regs *regs);

#endif
