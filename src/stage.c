// SPDX-License-Identifier: GPL-2.0-or-later
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/world.h"
#include "pass/merge.h"
#include "verify.h"

const struct stage_ops *const stages[NR_STAGES] = {
#define STAGE(name) &stage_##name,
#include "stages.def"
#undef STAGE
};

/* A lost event only shows a listener where something is missing: a writer may take it, too. */
static uint32_t originals(const struct stage_ops *ops)
{
	return ops->takes & ~EVENT_BIT(EVENT_LOST);
}

uint32_t stage_gives(uint32_t takes, uint32_t made_of, uint32_t kinds)
{
	uint32_t calls = EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CALL);

	if (takes & made_of)
		return 0;
	if (takes & EVENT_BIT(EVENT_SLICE) && made_of & calls)
		takes &= ~EVENT_BIT(EVENT_SAMPLE);
	return takes & kinds;
}

/*
 * Marks the stages that a writer needs, from the last to the first. If chain is NULL, marks those
 * that any run might need. Returns the EVENT_BIT()s that the first of them needs.
 */
static uint32_t mark_needed(const struct chain *chain, uint32_t wants, bool *needed)
{
	uint32_t wanted = wants;

	for (size_t i = NR_STAGES; i-- > 0;) {
		const struct stage_ops *ops = stages[i];
		/* A writer that takes an event does not get the events made from it. */
		bool useful = ops->makes ? ops->makes & wanted && !(originals(ops) & wants)
					 : ops->takes & (wanted | EVENT_STATE);

		if (!useful || (chain && ops->needed && !ops->needed(chain)))
			continue;
		needed[i] = true;
		if (ops->makes)
			wanted |= ops->takes;
	}
	return wanted;
}

void stages_mark(uint32_t wants, bool marks[NR_STAGES])
{
	mark_needed(NULL, wants, marks);
}

/* Whether an event that has come to this stage is of use: to the world, a writer or a listener. */
static bool is_live(const struct chain *chain, size_t i, uint32_t bit)
{
	if (bit & (EVENT_STATE | chain->sink.takes))
		return true;
	for (; i < chain->nr; i++) {
		if (chain->stages[i].ops->makes && chain->stages[i].ops->takes & bit)
			return true;
	}
	return false;
}

/* Finds the first stage from `from` on that takes each kind of event. */
static void link_to(const struct chain *chain, size_t from, struct stage **next)
{
	for (unsigned kind = 0; kind < EVENT_KINDS; kind++) {
		next[kind] = NULL;
		for (size_t i = from; i < chain->nr && !next[kind]; i++) {
			if (chain->stages[i].ops->takes & EVENT_BIT(kind) &&
			    is_live(chain, i, EVENT_BIT(kind)))
				next[kind] = &chain->stages[i];
		}
	}
}

static uint32_t wanted_of(const struct stage_ops *ops, const uint32_t *wants, size_t nr_wants)
{
	uint32_t wanted = 0;

	for (size_t i = 0; i < nr_wants; i++)
		wanted |= stage_gives(wants[i], originals(ops), ops->makes);
	return wanted;
}

void chain_init(struct chain *chain, int (*sink)(struct stage *s, struct event *ev), void *priv,
		const uint32_t *wants, size_t nr_wants)
{
	bool needed[NR_STAGES] = { 0 };

	chain->sink = (struct stage_ops){ .name = "sink", .push = sink };
	for (size_t i = 0; i < nr_wants; i++) {
		uint32_t wanted = mark_needed(chain, wants[i], needed);

		if (!(wants[i] & EVENT_BIT(EVENT_AUX)))
			chain->decodes |= wanted & EVENT_BIT(EVENT_BRANCH);
		chain->all_branches |=
			wants[i] & (EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_SLICE));
		chain->sink.takes |= wants[i];
	}
	chain->stages = xcalloc(NR_STAGES + 1, sizeof(*chain->stages));
	chain->nr = 0;
	for (size_t i = 0; i < NR_STAGES; i++) {
		if (needed[i])
			chain->stages[chain->nr++] = (struct stage){
				.ops = stages[i],
				.wanted = wanted_of(stages[i], wants, nr_wants),
			};
	}
	chain->stages[chain->nr++] =
		(struct stage){ .ops = &chain->sink, .priv = priv, .opened = true };
	link_to(chain, 0, chain->first);
	for (size_t i = 0; i < chain->nr; i++) {
		chain->stages[i].chain = chain;
		link_to(chain, i + 1, chain->stages[i].next);
	}
}

static int open_stage(struct stage *s)
{
	s->opened = true;
	if (!s->priv && s->ops->priv_size)
		s->priv = xcalloc(1, s->ops->priv_size);
	if (option_apply(s->ops->options, s->priv, s->chain->options->given, &s->chain->err) < 0)
		return -1;
	return s->ops->open ? s->ops->open(s) : 0;
}

/*
 * Passes an event to a listener. A chain counts as delivered if the listener made samples of it, for writers that do
 * not take chains; otherwise it is lost.
 */
static int tell(struct stage *s, struct event *ev)
{
	uint64_t before = s->emitted;

	if (s->ops->push(s, ev) < 0)
		return -1;
	if (s->chain->verify && ev->kind == EVENT_CHAIN && s->emitted > before &&
	    !(s->chain->sink.takes & EVENT_BIT(EVENT_CHAIN)))
		verify_reached(s->chain->verify, ev);
	return 0;
}

/* Passes the event to listeners up to the first filter, which decides what to emit. */
static int push(struct stage *s, struct event *ev)
{
	while (s) {
		if (!s->opened && open_stage(s) < 0)
			return -1;
		if (!s->ops->makes)
			return s->ops->push(s, ev);
		if (tell(s, ev) < 0)
			return -1;
		s = s->next[ev->kind];
	}
	return 0;
}

int chain_push(struct chain *chain, struct event *events, size_t nr)
{
	struct stage *first = chain->first[events->kind];

	/* Only if no other stage takes them: it would get this stage's events too early. */
	if (first && first->opened && first->ops->push_all && !first->next[events->kind])
		return first->ops->push_all(first, events, nr);
	for (size_t i = 0; i < nr; i++) {
		if (push(first, &events[i]) < 0)
			return -1;
	}
	return 0;
}

int stage_emit(struct stage *s, struct event *ev)
{
	s->emitted++;
	if (s->ops->makes) {
		ev->made_of |= originals(s->ops);
		if (s->chain->verify)
			verify_came(s->chain->verify, ev, ev->sample.source);
	}
	return push(s->next[ev->kind], ev);
}

void stage_leave_out(const struct stage *s, const struct event *ev, uint32_t source,
		     uint64_t samples, uint64_t weight)
{
	if (s->chain->verify)
		verify_left_out(s->chain->verify, ev, source, samples, weight);
}

void stage_sum(const struct stage *s, uint32_t source, uint64_t weight)
{
	struct event sample = { .kind = EVENT_SAMPLE, .made_of = s->ops->takes };

	if (s->chain->verify)
		verify_sum(s->chain->verify, &sample, source, weight);
}

void stage_event(const struct stage *s, struct event *ev, enum event_kind kind)
{
	*ev = (struct event){ .kind = kind,
			      .input = (uint32_t)s->chain->merge->nr,
			      .time = NO_TIME,
			      .cpu = NO_CPU,
			      .pid = NO_TASK,
			      .tid = NO_TASK };
}

int stage_source(struct stage *s, const struct event_source *source, uint32_t *handle)
{
	struct event ev;

	stage_event(s, &ev, EVENT_SOURCE);
	ev.source = *source;
	world_apply(s->chain->world, &ev);
	*handle = ev.source.id;
	return stage_emit(s, &ev);
}

int chain_flush(struct chain *chain, uint64_t until)
{
	for (size_t i = 0; i < chain->nr; i++) {
		struct stage *s = &chain->stages[i];

		if (s->opened && s->ops->flush && s->ops->flush(s, until) < 0)
			return -1;
	}
	return 0;
}

void chain_release(struct chain *chain)
{
	for (size_t i = 0; i < chain->nr; i++) {
		struct stage *s = &chain->stages[i];

		if (s->opened && s->ops->close)
			s->ops->close(s);
		if (s->ops->priv_size)
			free(s->priv);
	}
	free(chain->stages);
	chain->stages = NULL;
	chain->nr = 0;
}

void chain_mark_options(const struct chain *chain)
{
	for (size_t i = 0; i < chain->nr; i++) {
		const struct stage *s = &chain->stages[i];

		if (s->opened && (!s->ops->acts || s->ops->acts(s)))
			option_mark(s->ops->options, chain->options->given);
	}
	/* An option that makes a stage unnecessary has an effect, too: --level all. */
	for (size_t i = 0; i < NR_STAGES; i++) {
		if (stages[i]->needed && !stages[i]->needed(chain))
			option_mark(stages[i]->options, chain->options->given);
	}
}

bool chain_has_option(const struct chain *chain, const char *name)
{
	for (size_t i = 0; i < chain->nr; i++) {
		if (option_in(chain->stages[i].ops->options, name))
			return true;
	}
	return false;
}

bool chain_has(const struct chain *chain, const struct stage_ops *ops)
{
	for (size_t i = 0; i < chain->nr; i++) {
		if (chain->stages[i].ops == ops)
			return true;
	}
	return false;
}

const void *chain_find(const struct chain *chain, const struct stage_ops *ops)
{
	for (size_t i = 0; i < chain->nr; i++) {
		if (chain->stages[i].ops == ops && chain->stages[i].opened)
			return chain->stages[i].priv;
	}
	return NULL;
}
