// SPDX-License-Identifier: GPL-2.0-or-later
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/source.h"
#include "pass/slices.h"

#define BUG "this is a bug in kscope, please report it"

struct amount { /* sums of weights may overflow, on both sides alike */
	uint64_t samples, weight;
};

struct account { /* of the samples of one event that took the same way */
	uint32_t source, kind;
	struct amount came, reached, left_out;
	bool is_sum;  /* the weight of all that came should be: */
	uint64_t sum; /* by what the stage that made them took */
};

struct open_slice {
	uint32_t frame;
	enum slice_kind kind;
	uint64_t since;
};

struct axis { /* of a task, or of a cpu */
	struct open_slice *open;
	size_t nr, cap;
};

struct put { /* what a writer got */
	struct written all;
	uint64_t begins, ends; /* of slices of functions */
};

struct verify {
	struct account *accounts;
	size_t nr, cap;
	struct hash account_index;
	struct axis *axes;
	size_t nr_axes, cap_axes;
	struct hash axis_index;
	uint64_t slices;       /* that ended as they began */
	uint64_t wrong;	       /* that did not */
	char first_wrong[100]; /* the first of them */
	struct put *put;       /* by writer */
	size_t nr_writers;
};

struct verify *verify_new(size_t nr_writers)
{
	struct verify *v = xcalloc(1, sizeof(*v));

	v->put = xcalloc(nr_writers, sizeof(*v->put));
	v->nr_writers = nr_writers;
	return v;
}

void verify_free(struct verify *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->nr_axes; i++)
		free(v->axes[i].open);
	free(v->axes);
	free(v->accounts);
	free(v->put);
	hash_release(&v->account_index);
	hash_release(&v->axis_index);
	free(v);
}

/* ---- samples ---- */

static bool is_sample(const struct event *ev)
{
	return ev->kind == EVENT_SAMPLE || ev->kind == EVENT_CHAIN;
}

static void add(struct amount *to, uint64_t samples, uint64_t weight)
{
	to->samples += samples;
	to->weight += weight;
}

static void add_sample(struct amount *to, const struct event_sample *sample)
{
	add(to, sample->count + !sample->count, sample->weight);
}

/* Samples that a stage made of other samples have an account of their own. */
static struct account *account_of(struct verify *v, const struct event *ev, uint32_t source)
{
	struct hash_key key = { source, (uint64_t)ev->made_of << 32 | ev->kind };
	uint32_t *at = hash_at(&v->account_index, key);

	if (!*at) {
		GROW(v->accounts, v->nr + 1, v->cap);
		v->accounts[v->nr++] = (struct account){ .source = source, .kind = ev->kind };
		*at = (uint32_t)v->nr;
	}
	return &v->accounts[*at - 1];
}

void verify_came(struct verify *v, const struct event *ev, uint32_t source)
{
	if (is_sample(ev) && !ev->outside)
		add_sample(&account_of(v, ev, source)->came, &ev->sample);
}

void verify_sum(struct verify *v, const struct event *ev, uint32_t source, uint64_t weight)
{
	struct account *account = account_of(v, ev, source);

	account->is_sum = true;
	account->sum += weight;
}

void verify_left_out(struct verify *v, const struct event *ev, uint32_t source, uint64_t samples,
		     uint64_t weight)
{
	if (is_sample(ev))
		add(&account_of(v, ev, source)->left_out, samples, weight);
}

/* ---- slices ---- */

static bool is_of_timeline(const struct event *ev)
{
	return ev->kind == EVENT_SLICE || ev->kind == EVENT_STRETCH;
}

static bool is_split(const struct event *ev)
{
	return is_of_timeline(ev) && ev->slice.kind == SLICE_SPLIT;
}

static bool is_slice(const struct event *ev)
{
	return is_of_timeline(ev) && ev->slice.kind < SLICE_NOTE;
}

/* Other slices are of a cpu, or say that there is nothing. */
static bool is_of_function(const struct event *ev)
{
	return is_slice(ev) && ev->slice.kind <= SLICE_SAMPLED;
}

static struct axis *axis_of(struct verify *v, const struct event *ev)
{
	uint32_t *at = hash_at(&v->axis_index, slices_axis(ev));

	if (!*at) {
		GROW(v->axes, v->nr_axes + 1, v->cap_axes);
		v->axes[v->nr_axes++] = (struct axis){ 0 };
		*at = (uint32_t)v->nr_axes;
	}
	return &v->axes[*at - 1];
}

static void add_wrong(struct verify *v, uint64_t nr, const char *why, uint64_t time)
{
	if (!v->wrong)
		snprintf(v->first_wrong, sizeof(v->first_wrong), "at %" PRIu64 ": %s", time, why);
	v->wrong += nr;
}

static void end_slice(struct verify *v, struct axis *axis, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	const struct open_slice *open;

	if (!axis->nr) {
		add_wrong(v, 1, "an end without a start", ev->time);
		return;
	}
	open = &axis->open[--axis->nr];
	if (open->frame != slice->frame || open->kind != slice->kind)
		add_wrong(v, 1, "the end of a different slice", ev->time);
	else if (open->since != slice->since)
		add_wrong(v, 1, "an end whose start time is wrong", ev->time);
	else if (ev->time < open->since)
		add_wrong(v, 1, "an end before its start", ev->time);
	else
		v->slices++;
}

static void see_slice(struct verify *v, const struct event *ev)
{
	struct axis *axis = axis_of(v, ev);

	if (ev->slice.leave) {
		end_slice(v, axis, ev);
		return;
	}
	GROW(axis->open, axis->nr + 1, axis->cap);
	axis->open[axis->nr++] = (struct open_slice){ ev->slice.frame, ev->slice.kind, ev->time };
}

/* At the end of a timeline, or of a part of it. */
static void expect_ends(struct verify *v)
{
	for (size_t i = 0; i < v->nr_axes; i++) {
		struct axis *axis = &v->axes[i];

		if (axis->nr)
			add_wrong(v, axis->nr, "a slice that never ends",
				  axis->open[axis->nr - 1].since);
		axis->nr = 0;
	}
}

void verify_reached(struct verify *v, const struct event *ev)
{
	if (ev->outside)
		return;
	if (is_sample(ev))
		add_sample(&account_of(v, ev, ev->sample.source)->reached, &ev->sample);
	else if (is_slice(ev))
		see_slice(v, ev);
	else if (is_split(ev))
		expect_ends(v);
}

/* ---- writers ---- */

void verify_put(struct verify *v, size_t writer, const struct event *ev)
{
	struct put *put = &v->put[writer];

	if (ev->outside)
		return;
	if (is_sample(ev)) {
		written_sample(&put->all, &ev->sample);
	} else if (is_slice(ev)) {
		written_slice(&put->all, &ev->slice);
	}
	if (is_of_function(ev)) {
		put->begins += !ev->slice.leave;
		put->ends += ev->slice.leave;
	}
}

static int check_total(const struct writer *writer, const char *what, uint64_t put,
		       uint64_t written, struct err *err)
{
	if (put == written)
		return 0;
	return err_set(err, ERR_OUTPUT,
		       "--verify: the %s output has %" PRIu64 " %s instead of %" PRIu64 ": " BUG,
		       writer->ops->name, written, what, put);
}

static int check_writer(const struct writer *writer, const struct put *put, struct err *err)
{
	const struct written *written = &writer->written;
	bool calls = written->knows & WROTE_CALLS;

	if (written->knows & WROTE_SAMPLES &&
	    check_total(writer, "samples", put->all.samples, written->samples, err) < 0)
		return -1;
	if (written->knows & WROTE_WEIGHT &&
	    check_total(writer, "units of weight", put->all.weight, written->weight, err) < 0)
		return -1;
	if (!(written->knows & (WROTE_SLICES | WROTE_CALLS)))
		return 0;
	if (check_total(writer, "slice starts", calls ? put->begins : put->all.begins,
			written->begins, err) < 0)
		return -1;
	return check_total(writer, "slice ends", calls ? put->ends : put->all.ends, written->ends,
			   err);
}

/* ---- the end ---- */

static int check_account(const struct account *account, struct world *world, struct err *err)
{
	const struct amount *came = &account->came, *reached = &account->reached;
	const struct amount *left_out = &account->left_out;

	if (account->is_sum && came->weight != account->sum)
		return err_set(err, ERR_OUTPUT,
			       "--verify: %s: sums of %" PRIu64 " instead of %" PRIu64 ": " BUG,
			       str_text(world->strings, source_name(world, account->source)),
			       came->weight, account->sum);
	if (came->samples == reached->samples + left_out->samples &&
	    came->weight == reached->weight + left_out->weight)
		return 0;
	return err_set(err, ERR_OUTPUT,
		       "--verify: %s: read %" PRIu64 " samples (weight %" PRIu64
		       "), left out %" PRIu64 " (%" PRIu64 "), but wrote %" PRIu64 " (%" PRIu64
		       "): " BUG,
		       str_text(world->strings, source_name(world, account->source)), came->samples,
		       came->weight, left_out->samples, left_out->weight, reached->samples,
		       reached->weight);
}

static void tell_account(const struct account *account, struct world *world)
{
	log_say("verified: %s: %" PRIu64 " %s (weight %" PRIu64 "), %" PRIu64 " left out",
		str_text(world->strings, source_name(world, account->source)),
		account->reached.samples, account->kind == EVENT_CHAIN ? "chains" : "samples",
		account->reached.weight, account->left_out.samples);
}

static void tell_writer(const struct writer *writer)
{
	const struct written *written = &writer->written;

	if (written->knows & WROTE_WEIGHT)
		log_say("verified: the %s output has a weight of %" PRIu64, writer->ops->name,
			written->weight);
	else if (written->knows & WROTE_SAMPLES)
		log_say("verified: the %s output has %" PRIu64 " samples", writer->ops->name,
			written->samples);
	if (written->knows & (WROTE_SLICES | WROTE_CALLS))
		log_say("verified: the %s output has %" PRIu64 " slice start%s and %" PRIu64
			" slice end%s",
			writer->ops->name, written->begins, written->begins == 1 ? "" : "s",
			written->ends, written->ends == 1 ? "" : "s");
}

int verify_end(struct verify *v, struct world *world, uint32_t takes, struct writer *const *to,
	       bool tell, struct err *err)
{
	for (size_t i = 0; i < v->nr; i++) {
		if (takes & EVENT_BIT(v->accounts[i].kind) &&
		    check_account(&v->accounts[i], world, err) < 0)
			return -1;
	}
	expect_ends(v);
	if (v->wrong)
		return err_set(err, ERR_OUTPUT,
			       "--verify: %" PRIu64 " of %" PRIu64
			       " slices are wrong (the first %s): " BUG,
			       v->wrong, v->slices + v->wrong, v->first_wrong);
	for (size_t i = 0; i < v->nr_writers; i++) {
		if (check_writer(to[i], &v->put[i], err) < 0)
			return -1;
	}
	for (size_t i = 0; tell && i < v->nr; i++) {
		if (takes & EVENT_BIT(v->accounts[i].kind))
			tell_account(&v->accounts[i], world);
	}
	if (tell && v->slices)
		log_say("verified: %" PRIu64 " slice%s", v->slices,
			v->slices == 1 ? " starts and ends" : "s start and end");
	for (size_t i = 0; tell && i < v->nr_writers; i++)
		tell_writer(to[i]);
	return 0;
}
