/* SPDX-License-Identifier: GPL-2.0-or-later */
/* progress: a progress line on a terminal, for jobs that take over a second. */
#ifndef KSCOPE_BASE_PROGRESS_H
#define KSCOPE_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	bool terminal, shown;
	uint32_t calls;
	uint64_t next; /* ns: when to show again */
};

void progress_start(struct progress *p, const char *what);
/* Cheap: reads the clock once every few thousand calls. */
bool progress_due(struct progress *p);
void progress_show(struct progress *p, uint64_t done, uint64_t all);
void progress_end(struct progress *p);

#endif
