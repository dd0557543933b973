// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/source.h"
#include "model/world.h"
#include "pass/slices.h"
#include "stage.h"

void selection_release(struct selection *sel)
{
	free(sel->cpus.ranges);
	free(sel->pids.ranges);
	free(sel->tids.ranges);
	free(sel->comms.all);
	free(sel->sources.all);
	memset(sel, 0, sizeof(*sel));
}

/* "+LEN" in seconds, or in whole nanoseconds with "ns" behind it. */
static bool parse_end(const char *text, uint64_t from, uint64_t *until)
{
	size_t len = strlen(text);
	uint64_t span;

	if (*text != '+')
		return text_seconds(text, len, until);
	text++;
	len--;
	if (len > 2 && !strcmp(text + len - 2, "ns") ? !text_u64(text, len - 2, &span)
						     : !text_seconds(text, len, &span))
		return false;
	return !__builtin_add_overflow(from, span, until);
}

static int only_one(const struct selection *sel, bool relative, struct err *err)
{
	if (sel->timed && sel->relative != relative)
		return err_set(err, ERR_USAGE, "use --time or --rel, not both");
	return 0;
}

/* "START,LEN" in seconds, LEN may be empty. */
static int select_relative(const struct option_row *row, void *field, const char *arg,
			   struct err *err)
{
	struct selection *sel = field;
	size_t len = strcspn(arg, ",");
	const char *length = arg[len] ? arg + len + 1 : "";
	uint64_t ns = 0;

	if (only_one(sel, true, err) < 0)
		return -1;
	if (!text_seconds(arg, len, &sel->from) ||
	    (*length && (!text_seconds(length, strlen(length), &ns) || !ns)))
		return err_set(err, ERR_USAGE, "--%s expects START,LENGTH in seconds, not '%s'",
			       row->name, arg);
	sel->timed = sel->relative = true;
	sel->until = UINT64_MAX;
	if (ns && sel->from <= UINT64_MAX - ns)
		sel->until = sel->from + ns;
	return 0;
}

/* "A,B" or "A,+LEN" in seconds, either may be empty. */
static int select_time(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct selection *sel = field;
	const char *comma = strchr(arg, ',');
	const char *until = comma ? comma + 1 : "";
	size_t len = comma ? (size_t)(comma - arg) : strlen(arg);

	if (only_one(sel, false, err) < 0)
		return -1;
	sel->timed = true;
	sel->from = 0;
	sel->until = UINT64_MAX;
	if ((len && !text_seconds(arg, len, &sel->from)) ||
	    (*until && !parse_end(until, sel->from, &sel->until)) || sel->from > sel->until)
		return err_set(err, ERR_USAGE,
			       "--%s expects START,END or START,+LENGTH in seconds, not '%s'",
			       row->name, arg);
	return 0;
}

int select_ids(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct id_set *set = field;
	const char *at = arg;

	for (;;) {
		size_t len = strcspn(at, ",");
		const char *dash = memchr(at, '-', len);
		size_t first = dash ? (size_t)(dash - at) : len;
		struct id_range range;

		if (!text_u32(at, first, &range.first))
			break;
		range.last = range.first;
		if (dash &&
		    (!text_u32(dash + 1, len - first - 1, &range.last) || range.last < range.first))
			break;
		GROW(set->ranges, set->nr + 1, set->cap);
		set->ranges[set->nr++] = range;
		if (!at[len])
			return 0;
		at += len + 1;
	}
	return err_set(err, ERR_USAGE, "--%s expects numbers such as 1,3-5, not '%s'", row->name,
		       arg);
}

const char *const select_levels[] = { "all", "user", "kernel", NULL };

/* clang-format off: tables are read by the row. */
const struct option_table select_table = {
	"Selection",
	(const struct option_row[]){
		{ "time", 0, "A,B", "select events from A to B seconds; B may be a length, +LEN",
		  .set = select_time },
		{ "rel", 0, "START,LEN", "select LEN seconds, START seconds after the first event",
		  .set = select_relative },
		{ "cpu", 0, "LIST", "select events on these CPUs, such as 0,2-3",
		  OPTION_SET(select_ids, struct selection, cpus) },
		{ "pid", 0, "LIST", "select events of these processes",
		  OPTION_SET(select_ids, struct selection, pids) },
		{ "tid", 0, "LIST", "select events of these threads",
		  OPTION_SET(select_ids, struct selection, tids) },
		{ "level", 0, "LEVEL", "select only user or kernel code, or all (default)",
		  OPTION_WORD(struct selection, level, select_levels) },
		{ 0 },
	},
};

const struct option_table pick_table = {
	"Selection",
	(const struct option_row[]){
		{ "comm", 0, "NAME", "select samples of tasks with this name (may be repeated)",
		  OPTION_APPEND(struct selection, comms) },
		{ "event", 'e', "NAME", "select samples of this event (may be repeated)",
		  OPTION_APPEND(struct selection, sources) },
		{ 0 },
	},
};
/* clang-format on */

static bool in_set(const struct id_set *set, uint32_t id)
{
	for (size_t i = 0; i < set->nr; i++) {
		if (id >= set->ranges[i].first && id <= set->ranges[i].last)
			return true;
	}
	return set->nr == 0;
}

static bool in_list(const struct option_list *list, const char *text)
{
	for (size_t i = 0; i < list->nr; i++) {
		if (!strcmp(list->all[i], text))
			return true;
	}
	return list->nr == 0;
}

static void shift(uint64_t *time, uint64_t by)
{
	*time = *time > UINT64_MAX - by ? UINT64_MAX : *time + by;
}

void select_begin(struct selection *sel, const struct event *ev)
{
	if (!sel->relative || ev->time == NO_TIME || !(EVENT_BIT(ev->kind) & stage_select.takes))
		return;
	shift(&sel->from, ev->time);
	shift(&sel->until, ev->time);
	sel->relative = false;
}

bool select_clip(const struct selection *sel, uint64_t *from, uint64_t *until)
{
	if (!sel->timed)
		return true;
	if (*from == *until) /* an empty span cannot be clipped: select it by its time */
		return *from >= sel->from && (*from < sel->until || sel->until == UINT64_MAX);
	*from = *from < sel->from ? sel->from : *from;
	*until = *until > sel->until ? sel->until : *until;
	return *from < *until;
}

static bool right_time(const struct selection *sel, const struct event *ev)
{
	return !sel->timed || (!sel->relative && ev->time != NO_TIME && ev->time >= sel->from &&
			       (ev->time < sel->until || sel->until == UINT64_MAX));
}

static bool right_level(const struct selection *sel, const struct event *ev)
{
	uint64_t context;

	switch (ev->kind) {
	case EVENT_ALLOC: context = ev->alloc.context; break;
	case EVENT_CALL: context = ev->call.context; break;
	case EVENT_BRANCH: context = ev->branch.context; break;
	case EVENT_MASK: context = ev->mask.context; break;
	case EVENT_NOTE: context = ev->note.context; break;
	default: context = ev->sample.context; break;
	}
	switch (sel->level) {
	case LEVEL_USER: return context == IP_USER || context == IP_GUEST_USER;
	case LEVEL_KERNEL: return context == IP_KERNEL || context == IP_GUEST_KERNEL;
	default: return true;
	}
}

static bool right_task(const struct selection *sel, const struct event *ev)
{
	return in_set(&sel->pids, ev->pid) && in_set(&sel->tids, ev->tid) && right_level(sel, ev);
}

static int drop(struct stage *s, const struct event *sample, uint32_t source)
{
	uint64_t nr = sample->sample.count + !sample->sample.count;

	s->chain->unselected += nr;
	stage_leave_out(s, sample, source, nr, sample->sample.weight);
	return 0;
}

/* ---- select: by the fields of an event, before stages make others from it ---- */

static bool selects_early(const struct chain *chain)
{
	const struct selection *sel = chain->selection;

	return sel->timed || sel->cpus.nr || sel->pids.nr || sel->tids.nr || sel->level;
}

/*
 * Where stretches of time begin and end depends on all samples. No stretch that is selected has the stack of a
 * sample before it, or on another cpu: these need not be unwound.
 */
static int pass_for_stretches(struct stage *s, struct event *ev)
{
	if (!chain_has(s->chain, &stage_stretches))
		return 0;
	if (ev->outside & OUTSIDE_WHERE || ev->time < s->chain->selection->from)
		ev->sample.state = NULL;
	return stage_emit(s, ev);
}

static int select_push(struct stage *s, struct event *ev)
{
	const struct selection *sel = s->chain->selection;

	if (!right_time(sel, ev))
		ev->outside |= OUTSIDE_WHEN;
	if (!in_set(&sel->cpus, ev->cpu))
		ev->outside |= OUTSIDE_WHERE;
	if (ev->kind == EVENT_COUNTER) /* of a cpu, whoever runs on it */
		return ev->outside ? 0 : stage_emit(s, ev);
	if (!right_task(sel, ev))
		ev->outside |= OUTSIDE_WHO;
	if (ev->outside && (ev->kind == EVENT_SAMPLE || ev->kind == EVENT_CHAIN)) {
		drop(s, ev, world_source(s->chain->world, ev->input, ev->sample.source));
		return pass_for_stretches(s, ev);
	}
	if (ev->outside && ev->kind == EVENT_CHECK)
		return 0;
	s->chain->outside += ev->outside != 0;
	return stage_emit(s, ev);
}

const struct stage_ops stage_select = {
	.name = "select",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_CHAIN) | EVENT_BIT(EVENT_ALLOC) |
		 EVENT_BIT(EVENT_CALL) | EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CHECK) |
		 EVENT_BIT(EVENT_MASK) | EVENT_BIT(EVENT_NOTE) | EVENT_BIT(EVENT_COUNTER),
	.options = OPTION_USES({ &select_table, OPTION_ELSEWHERE }),
	.needed = selects_early,
	.push = select_push,
};

/* ---- pick: by names, and by the task of samples and slices that stages have made ---- */

static bool selects_late(const struct chain *chain)
{
	const struct selection *sel = chain->selection;

	return sel->comms.nr || sel->sources.nr || sel->cpus.nr || sel->pids.nr || sel->tids.nr ||
	       sel->level;
}

static bool right_comm(const struct selection *sel, const struct world *world, uint32_t pid,
		       uint32_t tid)
{
	return !sel->comms.nr ||
	       in_list(&sel->comms, str_text(world->strings, world_comm(world, pid, tid)));
}

bool select_task(const struct selection *sel, const struct world *world, uint32_t pid, uint32_t tid)
{
	return in_set(&sel->pids, pid) && in_set(&sel->tids, tid) &&
	       right_comm(sel, world, pid, tid);
}

bool select_source(const struct selection *sel, struct world *world, uint32_t source)
{
	return !sel->sources.nr ||
	       in_list(&sel->sources, str_text(world->strings, source_name(world, source)));
}

static bool right_names(const struct selection *sel, struct world *world, const struct event *ev)
{
	return right_comm(sel, world, ev->pid, ev->tid) &&
	       select_source(sel, world, ev->sample.source);
}

/* A task may change its name while its calls are open, as in an exec: the name at the start of a slice counts. */
struct open_slices {
	bool *named; /* of each open slice: its task had a selected name when it began */
	size_t nr, cap;
};

struct pick {
	struct open_slices *axes;
	size_t nr, cap;
	struct hash index; /* by slices_axis(): position + 1 */
};

static struct open_slices *open_on_axis(struct pick *pick, const struct event *ev)
{
	uint32_t *at = hash_at(&pick->index, slices_axis(ev));

	if (!*at) {
		GROW(pick->axes, pick->nr + 1, pick->cap);
		pick->axes[pick->nr++] = (struct open_slices){ 0 };
		*at = (uint32_t)pick->nr;
	}
	return &pick->axes[*at - 1];
}

static bool began_with_comm(struct stage *s, const struct event *ev)
{
	const struct chain *chain = s->chain;
	struct open_slices *open;
	bool named;

	if (!chain->selection->comms.nr)
		return true;
	if (ev->slice.kind >= SLICE_NOTE)
		return right_comm(chain->selection, chain->world, ev->pid, ev->tid);
	open = open_on_axis(s->priv, ev);
	if (ev->slice.leave)
		return open->nr && open->named[--open->nr];
	named = right_comm(chain->selection, chain->world, ev->pid, ev->tid);
	GROW(open->named, open->nr + 1, open->cap);
	return open->named[open->nr++] = named;
}

/* Calls of another name or level still pass, because the time of their callers depends on theirs. */
static int pick_slice(struct stage *s, struct event *ev)
{
	const struct selection *sel = s->chain->selection;
	bool kernel = s->chain->world->frames.all[ev->slice.frame].flags & FRAME_KERNEL;

	if (ev->pid == NO_TASK) /* of a cpu */
		return stage_emit(s, ev);
	/* Stretches are selected by the tasks of their samples. */
	if (ev->kind == EVENT_SLICE) {
		if (!in_set(&sel->pids, ev->pid) || !in_set(&sel->tids, ev->tid))
			return 0;
		if (!began_with_comm(s, ev))
			ev->outside |= OUTSIDE_WHO;
	}
	if (ev->slice.frame && sel->level && kernel != (sel->level == LEVEL_KERNEL))
		ev->outside |= OUTSIDE_WHO;
	return stage_emit(s, ev);
}

static int pick_push(struct stage *s, struct event *ev)
{
	const struct selection *sel = s->chain->selection;

	if (ev->kind == EVENT_SLICE || ev->kind == EVENT_STRETCH)
		return pick_slice(s, ev);
	if (ev->outside)
		return 0;
	if (ev->made_of &&
	    (!right_task(sel, ev) || (ev->cpu != NO_CPU && !in_set(&sel->cpus, ev->cpu))))
		return drop(s, ev, ev->sample.source);
	if (!right_names(sel, s->chain->world, ev))
		return drop(s, ev, ev->sample.source);
	return stage_emit(s, ev);
}

static void pick_close(struct stage *s)
{
	struct pick *pick = s->priv;

	for (size_t i = 0; i < pick->nr; i++)
		free(pick->axes[i].named);
	free(pick->axes);
	hash_release(&pick->index);
}

const struct stage_ops stage_pick = {
	.name = "pick",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_CHAIN) | EVENT_BIT(EVENT_SLICE) |
		 EVENT_BIT(EVENT_STRETCH),
	.options = OPTION_USES({ &pick_table, OPTION_ELSEWHERE }),
	.needed = selects_late,
	.priv_size = sizeof(struct pick),
	.push = pick_push,
	.close = pick_close,
};
