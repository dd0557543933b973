// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/straight.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/world.h"

#define KNOWN 65536	     /* runs */
#define INSNS_MAX (1u << 21) /* of all of them */
#define RUN_MAX 65536	     /* instructions: a longer straight run is an error */

struct strand {
	uint64_t at;   /* the next instruction; 0: unknown */
	uint64_t done; /* instructions since the last branch that a note has taken */
	uint64_t context;
	uint32_t pid, tid;
	bool used;
	bool began;    /* right here */
	bool outside;  /* its thread or its level is not selected */
	uint64_t from; /* see came_from of struct straight */
	bool from_outside;
};

/* A run that was looked up. */
struct straight_known {
	uint64_t start, from, to;
	uint32_t nr;
	uint32_t pid; /* 0 in a kernel */
	uint32_t version;
	uint32_t first;	  /* of its instructions */
	uint32_t late;	  /* bytes of its start that did not run */
	uint16_t context; /* the end of it: markers differ there */
	uint8_t kind;	  /* of the branch */
	uint8_t state;
	bool began;
};

void straights_init(struct straights *all, struct world *world)
{
	*all = (struct straights){ .world = world };
	all->known = xcalloc(KNOWN, sizeof(*all->known));
	all->insns = xcalloc(INSNS_MAX, sizeof(*all->insns));
}

void straights_release(struct straights *all)
{
	hash_release(&all->by_owner);
	free(all->strands);
	free(all->known);
	free(all->insns);
	memset(all, 0, sizeof(*all));
}

void straights_forget(struct straights *all)
{
	memset(all->known, 0, KNOWN * sizeof(*all->known));
	all->nr_insns = 0;
	all->forgotten++;
}

/* Decodes up to `nr` instructions, and moves on in the code. Returns how many. */
static size_t decode(struct insn_code *code, struct straight_insn *insns, size_t nr)
{
	size_t n = 0;

	for (; n < nr && code->bytes; n++) {
		size_t size = insn_size(code);

		if (!size)
			break;
		insns[n] = (struct straight_insn){ .size = (uint8_t)size };
		code->bytes += size;
		code->len -= size;
	}
	return n;
}

/*
 * Whether instructions that end before `next`, the last of which has this size, lead to the branch. An
 * interrupt comes before the instruction at `from`. Where the trace ends, or if the return address of a trap
 * is not known, `from` is only a limit. Code may also go on to `to` without a branch, where an emulator cut it.
 */
static bool leads_to(const struct straight_known *run, uint64_t next, size_t size)
{
	if (!run->from || next - size == run->from || next == run->from || next == run->to)
		return true;
	return next < run->from && (run->kind == BRANCH_END || run->kind == BRANCH_ENTER);
}

/*
 * A trace may begin in the middle of a block, of which it tells the start: then only the last instructions
 * before the branch ran.
 */
static bool find_late_start(struct straights *all, struct straight_known *run,
			    struct insn_code *code, const uint8_t *begin)
{
	struct straight_insn *insns = &all->insns[run->first];
	size_t nr = run->nr, skip;

	while (run->start + (size_t)(code->bytes - begin) <= run->from && nr < RUN_MAX &&
	       decode(code, &insns[nr], 1))
		nr++;
	if (run->start + (size_t)(code->bytes - begin) - insns[nr - 1].size != run->from)
		return false;
	skip = nr - run->nr;
	for (size_t i = 0; i < skip; i++)
		run->late += insns[i].size;
	memmove(insns, insns + skip, run->nr * sizeof(*insns));
	return true;
}

static enum straight_state find_code(struct straights *all, struct straight_known *run,
				     uint64_t context)
{
	struct straight_insn *insns = &all->insns[run->first];
	struct insn_code code;
	const uint8_t *begin;

	world_code(all->world, run->pid, context, run->start, &code);
	begin = code.bytes;
	if (!begin)
		return STRAIGHT_NO_CODE;
	if (!insn_supports(code.machine))
		return STRAIGHT_NO_DECODER;
	if (decode(&code, insns, run->nr) < run->nr)
		return STRAIGHT_DIFFERENT;
	if (leads_to(run, run->start + (size_t)(code.bytes - begin), insns[run->nr - 1].size) ||
	    (run->began && find_late_start(all, run, &code, begin)))
		return STRAIGHT_KNOWN;
	return STRAIGHT_DIFFERENT;
}

static void look_up(struct straights *all, struct straight_known *run, uint64_t context)
{
	if (all->nr_insns + RUN_MAX > INSNS_MAX)
		straights_forget(all);
	run->first = (uint32_t)all->nr_insns;
	run->state = (uint8_t)find_code(all, run, context);
	if (run->state == STRAIGHT_KNOWN)
		all->nr_insns += run->nr;
}

static bool is_same(const struct straight_known *a, const struct straight_known *b)
{
	return a->start == b->start && a->from == b->from && a->to == b->to && a->nr == b->nr &&
	       a->pid == b->pid && a->version == b->version && a->context == b->context &&
	       a->kind == b->kind && a->began == b->began;
}

static const struct straight_known *known_run(struct straights *all, const struct strand *strand,
					      const struct event_branch *branch, uint64_t nr)
{
	struct straight_known want = { .start = strand->at,
				       .from = branch->from,
				       .to = branch->kind == BRANCH_JUMP ? branch->to : 0,
				       .nr = (uint32_t)nr,
				       .pid = strand->context == IP_KERNEL ? 0 : strand->pid,
				       .version =
					       world_maps(all->world, strand->pid, strand->context),
				       .context = (uint16_t)strand->context,
				       .kind = (uint8_t)branch->kind,
				       .began = strand->began };
	struct straight_known *known = &all->known[(want.start * 31 + want.from * 7 + want.nr +
						    want.pid) * 0x9e3779b97f4a7c15ull >>
							   32 &
						   (KNOWN - 1)];

	if (!known->nr || !is_same(known, &want)) {
		look_up(all, &want, strand->context);
		*known = want;
	}
	return known;
}

static struct strand *strand_of(struct straights *all, const struct event *ev)
{
	struct hash_key key = { (uint64_t)ev->input << 32 | ev->cpu, 0 };
	uint32_t *place;

	if (ev->kind == EVENT_NOTE || ev->branch.by_thread)
		key = (struct hash_key){ (uint64_t)ev->input << 32 | ev->tid,
					 ev->tid && ev->tid != NO_TASK ? 1
								       : 2 + (uint64_t)ev->cpu };
	place = hash_at(&all->by_owner, key);
	if (!*place) {
		GROW(all->strands, all->nr_strands + 1, all->cap_strands);
		all->strands[all->nr_strands++] = (struct strand){ 0 };
		*place = (uint32_t)all->nr_strands;
	}
	return &all->strands[*place - 1];
}

/* Finds the code of a run. */
static void find_run(struct straights *all, const struct strand *strand,
		     const struct event_branch *branch, struct straight *run)
{
	const struct straight_known *known;

	if (!strand->at || run->nr > RUN_MAX)
		return;
	known = known_run(all, strand, branch, run->nr);
	run->state = (enum straight_state)known->state;
	run->address += known->late;
	run->insns = &all->insns[known->first];
}

/* What ran belongs to the thread and the level before the branch, and to the time and the cpu of the branch. */
static bool fill(struct straights *all, const struct strand *strand, const struct event *ev,
		 struct straight *run)
{
	bool gap = ev->branch.kind == BRANCH_BEGIN;
	uint64_t nr = ev->branch.instructions;

	nr -= strand->done < nr ? strand->done : nr;
	*run = (struct straight){ .state = gap ? STRAIGHT_GAP : STRAIGHT_NO_CODE,
				  .address = strand->at,
				  .nr = nr,
				  .context = strand->context,
				  .pid = strand->pid,
				  .tid = strand->tid,
				  .cpu = ev->cpu,
				  .by_thread = ev->branch.by_thread,
				  .came_from = strand->from,
				  .came_to = strand->from ? strand->at : 0,
				  .came_outside = strand->from_outside };
	run->outside = strand->outside || ev->outside & (OUTSIDE_WHEN | OUTSIDE_WHERE);
	if (gap ? !strand->used : !nr)
		return false;
	if (!gap && !run->outside)
		find_run(all, strand, &ev->branch, run);
	return true;
}

uint64_t straight_end(const struct straight *run)
{
	uint64_t end = run->address;

	for (uint64_t i = 0; i < run->nr; i++)
		end += run->insns[i].size;
	return end;
}

bool straights_take(struct straights *all, const struct event *ev, struct straight *run)
{
	const struct event_branch *branch = &ev->branch;
	struct strand *strand = strand_of(all, ev);
	bool ran = fill(all, strand, ev, run);

	*strand = (struct strand){ .at = branch->to,
				   .context = branch->context,
				   .pid = ev->pid,
				   .tid = ev->tid,
				   .used = true,
				   .began = branch->kind == BRANCH_BEGIN,
				   .from = branch->kind == BRANCH_JUMP ? branch->from : 0,
				   .from_outside = run->outside,
				   .outside = ev->outside & OUTSIDE_WHO };
	return ran;
}

bool straights_take_note(struct straights *all, const struct event *ev, struct straight *run)
{
	/* Nothing but the number of instructions tells where the run ends. */
	static const struct event_branch anywhere = { .kind = BRANCH_END };
	struct strand *strand = strand_of(all, ev);

	if (!strand->used || ev->note.instructions <= strand->done)
		return false;
	*run = (struct straight){ .state = STRAIGHT_NO_CODE,
				  .address = strand->at,
				  .nr = ev->note.instructions - strand->done,
				  .context = strand->context,
				  .pid = strand->pid,
				  .tid = strand->tid,
				  .cpu = ev->cpu,
				  .by_thread = true,
				  .came_from = strand->from,
				  .came_to = strand->from ? strand->at : 0,
				  .came_outside = strand->from_outside };
	find_run(all, strand, &anywhere, run);
	if (run->state != STRAIGHT_KNOWN)
		return false;
	run->outside = strand->outside || ev->outside & (OUTSIDE_WHEN | OUTSIDE_WHERE);
	strand->done = ev->note.instructions;
	strand->at = straight_end(run);
	strand->began = false;
	strand->from = 0;
	return true;
}

bool straights_open(const struct straights *all, size_t *at, struct straight *run)
{
	for (; *at < all->nr_strands; (*at)++) {
		const struct strand *strand = &all->strands[*at];

		if (!strand->from)
			continue;
		*run = (struct straight){ .context = strand->context,
					  .pid = strand->pid,
					  .tid = strand->tid,
					  .came_from = strand->from,
					  .came_to = strand->at,
					  .came_outside = strand->from_outside };
		(*at)++;
		return true;
	}
	return false;
}
