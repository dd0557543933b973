// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KNOWN 65536 /* places in memory whose count is known; a power of 2 */
#define MERGE_AT 65536

/* The count of a place in memory. */
struct coverage_known {
	uint64_t a, b;
	uint32_t pid, version;
	uint16_t context; /* the end of it: markers differ there */
	uint16_t kind;
	uint32_t count; /* index + 1; 0: this entry is free */
};

void coverage_init(struct coverage *coverage, struct world *world)
{
	*coverage = (struct coverage){ .world = world };
	straights_init(&coverage->straights, world);
	coverage->known = xcalloc(KNOWN, sizeof(*coverage->known));
}

void coverage_release(struct coverage *coverage)
{
	straights_release(&coverage->straights);
	free(coverage->counts);
	free(coverage->known);
	free(coverage->lines);
	free(coverage->functions);
	free(coverage->jumps);
	free(coverage->lineless);
	memset(coverage, 0, sizeof(*coverage));
}

/* ---- the counts ---- */

static int by_place(const void *va, const void *vb)
{
	const struct coverage_count *a = va, *b = vb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return a->b < b->b ? -1 : a->b > b->b;
}

/* Sorts the counts by image, kind and address, and puts equal ones together. */
static void merge(struct coverage *coverage)
{
	struct coverage_count *all = coverage->counts;
	size_t nr = 0;

	if (coverage->nr_counts)
		qsort(all, coverage->nr_counts, sizeof(*all), by_place);
	for (size_t i = 0; i < coverage->nr_counts; i++) {
		if (nr && by_place(&all[nr - 1], &all[i]) == 0)
			all[nr - 1].count += all[i].count;
		else
			all[nr++] = all[i];
	}
	coverage->nr_counts = coverage->merged = nr;
	memset(coverage->known, 0, KNOWN * sizeof(*coverage->known));
}

/* A place that was forgotten gets a second count. Both are added up before memory grows much. */
static uint32_t new_count(struct coverage *coverage, const struct coverage_count *count)
{
	if (coverage->nr_counts >= 2 * coverage->merged + MERGE_AT)
		merge(coverage);
	GROW(coverage->counts, coverage->nr_counts + 1, coverage->cap_counts);
	coverage->counts[coverage->nr_counts++] = *count;
	return (uint32_t)coverage->nr_counts;
}

/* Turns an address in memory into a place in a binary. An image of 0 has no file. */
static struct coverage_count locate(struct coverage *coverage, const struct straight *run,
				    const struct coverage_known *at)
{
	struct world *world = coverage->world;
	struct coverage_count count = { .kind = at->kind };
	uint64_t a = 0, b = 0;

	if (at->kind >= COVERAGE_JUMPED) {
		count.image = world_image(world, run->pid, run->context, at->b, &b);
		if (world_image(world, run->pid, run->context, at->a, &a) != count.image)
			a = 0;
	} else {
		count.image = world_image(world, run->pid, run->context, at->a, &a);
		b = a + (at->b - at->a);
	}
	count.a = a;
	count.b = b;
	return count;
}

static void count(struct coverage *coverage, const struct straight *run, uint64_t a, uint64_t b,
		  enum coverage_kind kind)
{
	struct coverage_known want = { .a = a,
				       .b = b,
				       .pid = run->context == IP_KERNEL ? 0 : run->pid,
				       .version =
					       world_maps(coverage->world, run->pid, run->context),
				       .context = (uint16_t)run->context,
				       .kind = (uint16_t)kind };
	struct coverage_known *known =
		&coverage->known[(a * 31 + b * 7 + want.pid + want.kind) * 0x9e3779b97f4a7c15ull >>
					 32 &
				 (KNOWN - 1)];

	want.count = known->count;
	if (!known->count || memcmp(known, &want, sizeof(want)) != 0) {
		struct coverage_count new = locate(coverage, run, &want);

		want.count = new_count(coverage, &new);
		*known = want;
	}
	coverage->counts[known->count - 1].count++;
}

/* ---- events ---- */

static bool is_branch(const struct event_branch *branch, uint64_t end)
{
	switch (branch->kind) {
	case BRANCH_JUMP: return branch->to != end; /* or an emulator cut the code */
	case BRANCH_CALL:
	case BRANCH_RETURN: return true;
	default: return false;
	}
}

static void take_run(struct coverage *coverage, const struct straight *run, const struct event *ev)
{
	bool branches = false;
	uint64_t end;

	if (run->state == STRAIGHT_GAP) {
		coverage->gaps++;
		return;
	}
	if (run->state != STRAIGHT_KNOWN) {
		coverage->unknown[run->state] += run->nr;
		return;
	}
	coverage->instructions += run->nr;
	end = straight_end(run);
	if (ev->kind == EVENT_BRANCH)
		branches = is_branch(&ev->branch, end);
	count(coverage, run, run->address, end, branches ? COVERAGE_RAN_OUT : COVERAGE_RAN);
}

/* Only an interrupt may come before the first instruction of a run. */
static bool lacks_number(const struct straight *run, const struct event *ev)
{
	const struct event_branch *branch = &ev->branch;

	return ev->kind == EVENT_BRANCH && run->address && !branch->instructions &&
	       (branch->kind == BRANCH_JUMP || branch->kind == BRANCH_CALL ||
		branch->kind == BRANCH_RETURN);
}

/* The jump belongs to what ran before it, and its target to what ran there. */
static void take_jump(struct coverage *coverage, const struct straight *run)
{
	enum coverage_kind kind = COVERAGE_JUMPED;

	if (run->outside && run->came_outside)
		return;
	if (run->outside)
		kind = COVERAGE_LEFT;
	else if (run->came_outside)
		kind = COVERAGE_CAME;
	count(coverage, run, run->came_from, run->came_to, kind);
}

void coverage_add(struct coverage *coverage, const struct event *ev)
{
	struct straight run = { 0 };
	bool note = ev->kind == EVENT_NOTE, ran;

	ran = note ? straights_take_note(&coverage->straights, ev, &run)
		   : straights_take(&coverage->straights, ev, &run);
	coverage->branches += !note;
	if (note && !ran)
		return;
	if (run.came_from)
		take_jump(coverage, &run);
	if (run.outside)
		return;
	coverage->uncounted += lacks_number(&run, ev);
	if (ran)
		take_run(coverage, &run, ev);
}

void coverage_end(struct coverage *coverage)
{
	struct straight run;
	size_t at = 0;

	while (straights_open(&coverage->straights, &at, &run)) {
		run.outside = true;
		take_jump(coverage, &run);
	}
	merge(coverage);
}
