// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define SECOND 1000000000ULL
#define CALLS 4096

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void progress_start(struct progress *p, const char *what)
{
	memset(p, 0, sizeof(*p));
	p->what = what;
	p->terminal = isatty(STDERR_FILENO) && log_level > 0;
	p->next = now() + SECOND;
}

bool progress_due(struct progress *p)
{
	uint64_t time;

	if (++p->calls % CALLS)
		return false;
	time = now();
	if (time < p->next)
		return false;
	p->next = time + SECOND / 5;
	return true;
}

void progress_show(struct progress *p, uint64_t done, uint64_t all)
{
	if (!p->terminal)
		return;
	if (all && done <= all)
		fprintf(stderr, "\r%s: %3.0f%% of %.1f MB\033[K", p->what,
			100.0 * (double)done / (double)all, (double)all / 1e6);
	else
		fprintf(stderr, "\r%s: %.1f MB\033[K", p->what, (double)done / 1e6);
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
}
