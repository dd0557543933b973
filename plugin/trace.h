/* SPDX-License-Identifier: GPL-2.0-or-later */
/* trace: mode=trace, the control flow of all vCPUs. alloc: the functions of alloc=, realloc= and free=. */
#ifndef KSCOPE_PLUGIN_TRACE_H
#define KSCOPE_PLUGIN_TRACE_H

#include <stdbool.h>

struct qemu_plugin_tb;

int trace_open(void); /* 0, or -1 after a message */
void trace_translate(struct qemu_plugin_tb *tb);
void trace_cpu_init(unsigned cpu);
void trace_cpu_exit(unsigned cpu);
/* The vCPU waits, and goes on. */
void trace_cpu_idle(unsigned cpu);
void trace_cpu_resume(unsigned cpu);
void trace_set_running(bool on);
void trace_close(void);

int alloc_open(void);
void alloc_translate(struct qemu_plugin_tb *tb);
void alloc_cpu_init(unsigned cpu);
void alloc_flush(void);

#endif
