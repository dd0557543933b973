// SPDX-License-Identifier: GPL-2.0-or-later
/* See trace.h. */
#include "trace.h"

#include "api.h"

int trace_open(void)
{
	api_say("mode=trace is not part of this build");
	return -1;
}

void trace_translate(struct qemu_plugin_tb *tb)
{
	(void)tb;
}

void trace_cpu_init(unsigned cpu)
{
	(void)cpu;
}

void trace_cpu_exit(unsigned cpu)
{
	(void)cpu;
}

void trace_cpu_idle(unsigned cpu)
{
	(void)cpu;
}

void trace_flush(void)
{
}

void trace_set_running(bool on)
{
	(void)on;
}

void trace_close(void)
{
}
