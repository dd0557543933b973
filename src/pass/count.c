// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/count.h"

#include "base/log.h"
#include "stage.h"

/* Adds only what still fits into 64 bits, so that no sum of any writer overflows. */
static uint64_t add_up(struct stage *s, uint64_t *sum, uint64_t more)
{
	struct sample_count *count = s->priv;

	if (more > UINT64_MAX - *sum) {
		if (!count->overflowed)
			log_warn("the sum of the samples exceeds 64 bits: later samples are not "
				 "counted");
		count->overflowed = s->chain->partial = true;
		more = UINT64_MAX - *sum;
	}
	*sum += more;
	return more;
}

/* A chain that is also split, for another writer, counts as the samples made from it. */
static bool is_split(const struct stage *s, const struct event *ev)
{
	return ev->kind == EVENT_CHAIN && chain_has(s->chain, &stage_split);
}

static int count_push(struct stage *s, struct event *ev)
{
	struct sample_count *count = s->priv;
	struct event_sample *sample = &ev->sample;
	uint64_t samples, weight;

	if (ev->outside)
		return 0;
	if (is_split(s, ev))
		return stage_emit(s, ev);
	samples = sample->count + !sample->count;
	weight = sample->weight;
	sample->count = add_up(s, &count->samples, samples);
	sample->weight = sample->count ? add_up(s, &count->weight, weight) : 0;
	stage_leave_out(s, ev, sample->source, samples - sample->count, weight - sample->weight);
	if (!sample->count)
		return 0;
	if (ev->cpu < COUNT_CPUS)
		count->by_cpu[ev->cpu] += sample->count;
	return stage_emit(s, ev);
}

const struct stage_ops stage_count = {
	.name = "count",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_CHAIN),
	.priv_size = sizeof(struct sample_count),
	.push = count_push,
};
