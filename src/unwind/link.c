// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether the link register still holds the return address at a point in the code. To find out, we
 * follow the code from there. If it returns by the register, or stores it, the register is live; if it
 * loads the register or makes a call first, the return address is on the stack. Every path leads to the
 * same answer, so the first answer counts.
 */
#include "unwind/walk.h"

#define MAX_INSNS 256 /* to decode */
#define MAX_WAYS 16
#define MAX_PROLOGUE 64 /* instructions */

struct way {
	uint64_t at;
	int64_t sp; /* relative to the stack pointer at the start */
	bool replaced;
};

struct search {
	struct way ways[MAX_WAYS]; /* to follow later */
	uint64_t seen[MAX_WAYS];   /* targets of branches */
	unsigned nr_ways, nr_seen, insns;
	bool past_calls;
	uint64_t function; /* where link_frame() begins */
};

/* Where the code loads the return address from, relative to the stack pointer at the start. */
struct place {
	int64_t sp, slot, after; /* sp, after: the stack pointer before and after the load */
	uint16_t list;		 /* the registers that the same instruction loads */
	bool known;
};

static void add_way(struct search *search, const struct way *from, uint64_t target)
{
	for (unsigned i = 0; i < search->nr_seen; i++) {
		if (search->seen[i] == target)
			return;
	}
	if (search->nr_seen == MAX_WAYS || search->nr_ways == MAX_WAYS)
		return;
	search->seen[search->nr_seen++] = target;
	search->ways[search->nr_ways] = *from;
	search->ways[search->nr_ways++].at = target;
}

static bool decode_at(const struct walk *w, const struct code_kind *kind, uint64_t at,
		      struct insn *insn)
{
	const uint8_t *code = walk_code(w, at, 4), *before;
	size_t len = 4;

	if (!code) {
		code = walk_code(w, at, 2);
		len = 2;
	}
	if (!code || !insn_decode(kind, code, len, at, insn))
		return false;
	before = insn->kind == INSN_AWAY ? walk_code(w, at - 4, 4) : NULL;
	if (before)
		insn_join(kind, before, code, at, insn);
	return true;
}

/* Follows one way to its end. */
static enum link follow(const struct walk *w, const struct code_kind *kind, struct way way,
			struct search *search, struct place *place)
{
	struct insn insn;

	while (search->insns++ < MAX_INSNS && decode_at(w, kind, way.at, &insn)) {
		*place = (struct place){ way.sp, way.sp + insn.slot, way.sp + insn.moves, insn.list,
					 !way.replaced && !insn.replaces };
		way.sp += insn.moves;
		way.replaced |= insn.replaces;
		switch (insn.kind) {
		case INSN_RETURN:
		case INSN_SAVES: return LINK_LIVE;
		case INSN_LOADS: return LINK_SAVED;
		case INSN_CALL:
			if (!search->past_calls)
				return LINK_CALLS;
			break;
		case INSN_AWAY: return LINK_UNKNOWN;
		case INSN_JUMP: add_way(search, &way, insn.target); return LINK_UNKNOWN;
		case INSN_BRANCH: add_way(search, &way, insn.target); break;
		case INSN_OTHER: break;
		}
		way.at += insn.len;
	}
	return LINK_UNKNOWN;
}

static enum link find_link(const struct walk *w, uint64_t pc, bool past_calls, struct place *place)
{
	struct code_kind kind = walk_code_kind(w, pc);
	struct search search = { .past_calls = past_calls };
	enum link link = LINK_UNKNOWN;

	add_way(&search, &(struct way){ .at = pc }, pc);
	while (link == LINK_UNKNOWN && search.nr_ways)
		link = follow(w, &kind, search.ways[--search.nr_ways], &search, place);
	return link;
}

enum link link_at(const struct walk *w, uint64_t pc)
{
	struct spot *spot = walk_spot(w, pc);
	struct place place;

	if (!spot || w->machine->lr == NO_REG)
		return LINK_UNKNOWN;
	if (!spot->has_link)
		spot->link = find_link(w, pc, false, &place);
	spot->has_link = true;
	return spot->link;
}

/*
 * Follows one way, as long as it stays in its function, to the first instruction that tells whether the function has
 * a frame. Jumps may lead to other functions: tail calls, or parts of the function that are elsewhere.
 */
static enum own_frame follow_frame(const struct walk *w, const struct code_kind *kind,
				   struct way way, struct search *search)
{
	const struct spot *spot = walk_spot_named(w, way.at);
	uint64_t function = spot ? spot->function : 0;
	enum own_frame before = function == search->function	  ? FRAME_NOT_YET
				: spot && spot->vaddr == function ? FRAME_NONE /* a tail call */
								  : FRAME_UNKNOWN;
	struct insn insn;

	while (search->insns++ < MAX_INSNS && walk_function(w, way.at) == function &&
	       decode_at(w, kind, way.at, &insn)) {
		if (insn.sets_fp)
			return before;
		if (insn.loads_fp)
			return FRAME_HERE;
		switch (insn.kind) {
		case INSN_SAVES: return before;
		case INSN_RETURN: return FRAME_NONE;
		case INSN_LOADS:
		case INSN_CALL: return FRAME_HERE;
		case INSN_AWAY: return FRAME_UNKNOWN;
		case INSN_JUMP: add_way(search, &way, insn.target); return FRAME_UNKNOWN;
		case INSN_BRANCH: add_way(search, &way, insn.target); break;
		case INSN_OTHER: break;
		}
		way.at += insn.len;
	}
	return FRAME_UNKNOWN;
}

/* Whether the function's code up to the pc neither sets up a frame nor calls: then the pc is in the prologue. */
static bool starts_so(const struct walk *w, const struct code_kind *kind, const struct spot *spot,
		      uint64_t pc)
{
	uint64_t at = pc - (spot->vaddr - spot->function);
	struct insn insn;

	for (unsigned n = 0; at < pc; at += insn.len) {
		if (n++ == MAX_PROLOGUE || !decode_at(w, kind, at, &insn) || insn.sets_fp ||
		    insn.kind == INSN_CALL)
			return false;
	}
	return at == pc;
}

static enum own_frame find_frame(const struct walk *w, const struct spot *spot, uint64_t pc)
{
	struct code_kind kind = walk_code_kind(w, pc);
	enum own_frame frame = FRAME_UNKNOWN;
	struct search search = { .function = spot->function };

	add_way(&search, &(struct way){ .at = pc }, pc);
	while (frame == FRAME_UNKNOWN && search.nr_ways)
		frame = follow_frame(w, &kind, search.ways[--search.nr_ways], &search);
	if (frame == FRAME_NONE || frame == FRAME_HERE)
		return frame;
	/* Compilers may use the link register for something else in a function with a frame. */
	if (spot->label || !starts_so(w, &kind, spot, pc))
		return FRAME_UNKNOWN;
	return frame == FRAME_NOT_YET ? FRAME_NOT_YET : FRAME_PERHAPS_NOT;
}

enum own_frame link_frame(const struct walk *w, uint64_t pc)
{
	struct spot *spot = walk_spot_named(w, pc);

	if (!spot || !spot->function || w->machine->lr == NO_REG)
		return FRAME_UNKNOWN;
	if (!spot->has_frame)
		spot->frame = find_frame(w, spot, pc);
	spot->has_frame = true;
	return spot->frame;
}

uint64_t link_call_target(const struct walk *w, uint64_t lr)
{
	struct code_kind kind = walk_code_kind(w, lr - 1);
	const struct spot *spot = walk_spot(w, lr - 4);
	const uint8_t *code = walk_code(w, lr - 4, 4);
	struct insn insn;

	if (!code || !insn_decode(&kind, code, 4, spot->vaddr, &insn) || insn.len != 4)
		return 0;
	return insn.kind == INSN_CALL ? insn.target : 0;
}

bool link_is_own(const struct walk *w, uint64_t lr, uint64_t function)
{
	uint64_t target = link_call_target(w, lr);

	return !target || target == function || walk_function(w, lr - 1) != function;
}

bool link_is_target(const struct walk *w, uint64_t pc, uint64_t lr)
{
	return link_at(w, pc) == LINK_CALLS && !walk_is_return(w, lr);
}

bool link_may_return(const struct walk *w, const struct state *s)
{
	uint64_t function = walk_function(w, s->pc), lr, target;
	enum link link = link_at(w, s->pc);

	if (!s->exact || link == LINK_SAVED || !reg_value(s, w->machine->lr, &lr))
		return false;
	lr = walk_return(w, lr);
	target = link_call_target(w, lr);
	/* A function that does not return need not save the register. */
	if (link == LINK_CALLS && target && target != function)
		return false;
	return link_is_own(w, lr, function) && !link_is_target(w, s->pc, lr);
}

static void restore(const struct walk *w, struct state *s, const struct place *place, uint64_t sp)
{
	uint64_t at = sp + (uint64_t)place->sp, value;

	for (unsigned nr = 0; nr < w->machine->nr; nr++) {
		if (!(place->list >> nr & 1))
			continue;
		if (walk_word(w, at, &value))
			reg_set(s, nr, value);
		at += w->machine->word;
	}
	reg_set(s, w->machine->sp, sp + (uint64_t)place->after);
}

enum step link_step(const struct walk *w, struct state *s)
{
	struct place place = { .known = false };
	uint64_t sp, pc;

	if (w->machine->kind != ARM || !reg_value(s, w->machine->sp, &sp))
		return STEP_NONE;
	if (find_link(w, s->pc, true, &place) != LINK_SAVED || !place.known ||
	    !walk_word(w, sp + (uint64_t)place.slot, &pc))
		return STEP_NONE;
	if (!m_profile_ends(w, pc) && !walk_is_return(w, walk_return(w, pc)))
		return STEP_NONE;
	s->known &= w->machine->kept;
	restore(w, s, &place, sp);
	s->by_record = place.list >> w->machine->fp & 1;
	s->cfa = s->reg[w->machine->sp];
	s->pc = pc;
	s->exact = s->first = false;
	return STEP_CALLER;
}
