// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether the link register still holds the return address at a point in the code. The code itself
 * says so: we follow it from there. If it returns by the register, or stores it, the register is
 * live; if it loads the register or makes a call first, the return address is on the stack. Every
 * way leads to the same answer, so the first one that is found counts.
 */
#include "unwind/walk.h"

#define MAX_INSNS 256 /* that are looked at */
#define MAX_WAYS 16

struct search {
	uint64_t ways[MAX_WAYS]; /* to follow later */
	uint64_t seen[MAX_WAYS]; /* targets of branches */
	unsigned nr_ways, nr_seen, insns;
};

static void add_way(struct search *search, uint64_t target)
{
	for (unsigned i = 0; i < search->nr_seen; i++) {
		if (search->seen[i] == target)
			return;
	}
	if (search->nr_seen == MAX_WAYS || search->nr_ways == MAX_WAYS)
		return;
	search->seen[search->nr_seen++] = target;
	search->ways[search->nr_ways++] = target;
}

static bool decode_at(const struct walk *w, const struct code_kind *kind, uint64_t at,
		      struct insn *insn)
{
	const uint8_t *code = walk_code(w, at, 4);
	size_t len = 4;

	if (!code) {
		code = walk_code(w, at, 2);
		len = 2;
	}
	return code && insn_decode(kind, code, len, at, insn);
}

/* Follows one way to its end. */
static enum link follow(const struct walk *w, const struct code_kind *kind, uint64_t at,
			struct search *search)
{
	struct insn insn;

	while (search->insns++ < MAX_INSNS && decode_at(w, kind, at, &insn)) {
		switch (insn.kind) {
		case INSN_RETURN:
		case INSN_SAVES: return LINK_LIVE;
		case INSN_LOADS: return LINK_SAVED;
		case INSN_CALL: return LINK_CALLS;
		case INSN_AWAY: return LINK_UNKNOWN;
		case INSN_JUMP: add_way(search, insn.target); return LINK_UNKNOWN;
		case INSN_BRANCH: add_way(search, insn.target); break;
		case INSN_OTHER: break;
		}
		at += insn.len;
	}
	return LINK_UNKNOWN;
}

static enum link find_link(const struct walk *w, uint64_t pc)
{
	struct code_kind kind = walk_code_kind(w, pc);
	struct search search = { .nr_ways = 0 };
	enum link link = LINK_UNKNOWN;

	add_way(&search, pc);
	while (link == LINK_UNKNOWN && search.nr_ways)
		link = follow(w, &kind, search.ways[--search.nr_ways], &search);
	return link;
}

enum link link_at(const struct walk *w, uint64_t pc)
{
	struct spot *spot = walk_spot(w, pc);

	if (!spot || w->machine->lr == NO_REG)
		return LINK_UNKNOWN;
	if (!spot->has_link)
		spot->link = find_link(w, pc);
	spot->has_link = true;
	return spot->link;
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

bool link_may_return(const struct walk *w, const struct state *s)
{
	uint64_t lr;

	return s->exact && reg_value(s, w->machine->lr, &lr) && link_at(w, s->pc) != LINK_SAVED &&
	       link_is_own(w, walk_return(w, lr), walk_function(w, s->pc));
}
