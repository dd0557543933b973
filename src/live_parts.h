/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_parts: shared by live.c, which reads, and live_view.c, which sums up what was read. */
#ifndef KSCOPE_LIVE_PARTS_H
#define KSCOPE_LIVE_PARTS_H

#include "live.h"

#define LIVE_SECOND 1000000000ULL
#define LIVE_CPUS 4096 /* higher ones count as unknown */
#define LIVE_SOURCES 64

struct live_slot { /* samples that came in one second */
	uint64_t second;
	struct tally tally;
};

struct live_sum { /* of one event */
	uint32_t source;
	struct tally all;
	struct live_slot slots[LIVE_SECONDS];
};

struct live {
	struct job job;
	struct strtab strings;
	struct writer writer, *to[1];
	struct tally_options options;
	struct in in; /* until the job has it */
	bool job_opened, compressed;
	enum live_state state;
	const struct reader_ops *ops; /* NULL: not known yet */
	struct err err;

	uint64_t now, began; /* live_clock(): of this step; of the sums */
	struct live_sum *sums;
	size_t nr_sums, cap_sums, shown;
	uint64_t samples, weight;
	uint64_t base_lost, base_damaged, base_others; /* before live_reset() */
	struct live_cpu *cpus;			       /* `busy` and `all` are for views */
	size_t nr_cpus, cap_cpus;
};

int live_put(struct writer *w, const struct event *ev);
void live_forget(struct live *live);

#endif
