// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sampler that walks frame pointers does not see the caller of a function that has no frame of its own, or none
 * yet, or none any more. The return address is then in the link register, or on top of the stack, and comes with the
 * sample. Anywhere else, that word is something else: often a return address of earlier calls. The code of the
 * function tells; if it does not, the chain stays as it is.
 *
 * x86 has one place where the code tells that the caller is missing, but the sample does not have it: after
 * push %rbp, before mov %rsp,%rbp, the return address is the second word of the stack.
 */
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "unwind/walk.h"

#define MAX_INSNS 256 /* to decode */
#define MAX_PROLOGUE 64
#define MAX_WAYS 16

/* ---- x86: is the return address on top of the stack? ---- */

struct ways {
	uint64_t at[MAX_WAYS]; /* targets of branches, in the order they were found */
	unsigned nr, done;
};

static void add_way(struct ways *ways, uint64_t at)
{
	for (unsigned i = 0; i < ways->nr; i++) {
		if (ways->at[i] == at)
			return;
	}
	if (ways->nr < MAX_WAYS)
		ways->at[ways->nr++] = at;
}

static bool flow_at(const struct walk *w, uint64_t at, struct insn_flow *flow)
{
	const struct spot *spot = walk_spot(w, at);
	struct symfile *symfile =
		spot ? image_symfile(&w->unwind->world->images, spot->image) : NULL;
	struct insn_code code;

	if (!symfile)
		return false;
	symfile_insns(symfile, spot->vaddr, &code);
	return code.bytes && insn_flow(&code, at, flow);
}

/* The first instruction from a place on that moves the stack pointer, or returns. */
enum move {
	MOVE_UNKNOWN,
	MOVE_NONE,  /* a return: the stack pointer is where it was at the entry */
	MOVE_ENTRY, /* down, in a function that a jump leads to: likewise */
	MOVE_DOWN,
	MOVE_OTHER,
};

static enum move follow(const struct walk *w, uint64_t at, uint64_t start, struct ways *ways,
			unsigned *insns)
{
	const struct spot *spot = walk_spot_named(w, at);
	uint64_t function = spot ? spot->function : 0;
	bool entry = function != start && spot && spot->vaddr == function;
	struct insn_flow flow;

	while ((*insns)++ < MAX_INSNS && walk_function(w, at) == function &&
	       flow_at(w, at, &flow)) {
		if (flow.moves)
			return !flow.down ? MOVE_OTHER : entry ? MOVE_ENTRY : MOVE_DOWN;
		switch (flow.kind) {
		case INSN_RETURNS: return MOVE_NONE;
		case INSN_JUMPS: add_way(ways, flow.target); return MOVE_UNKNOWN;
		case INSN_BRANCHES: add_way(ways, flow.target); break;
		case INSN_LEAVES: return MOVE_UNKNOWN;
		case INSN_CALLS:
		case INSN_GOES_ON: break;
		}
		at += flow.size;
	}
	return MOVE_UNKNOWN;
}

/* At each place in the code, the stack pointer has the same distance from the entry's, so the first answer counts. */
static enum move find_move(const struct walk *w, uint64_t pc, uint64_t start)
{
	struct ways ways = { .at = { pc }, .nr = 1 };
	enum move move = MOVE_UNKNOWN;
	unsigned insns = 0;

	while (move == MOVE_UNKNOWN && ways.done < ways.nr)
		move = follow(w, ways.at[ways.done++], start, &ways, &insns);
	return move;
}

/* Whether the function's code up to the pc leaves the stack pointer alone. */
static bool is_at_start(const struct walk *w, const struct spot *spot, uint64_t pc)
{
	uint64_t at = pc - (spot->vaddr - spot->function);
	struct insn_flow flow;

	for (unsigned n = 0; at < pc; at += flow.size) {
		if (n++ == MAX_PROLOGUE || !flow_at(w, at, &flow) || flow.moves)
			return false;
	}
	return at == pc;
}

static enum own_frame find_top(const struct walk *w, const struct spot *spot, uint64_t pc)
{
	enum move move = find_move(w, pc, spot->function);

	if (move == MOVE_NONE || move == MOVE_ENTRY)
		return FRAME_NONE;
	if (move == MOVE_OTHER || !is_at_start(w, spot, pc))
		return FRAME_HERE;
	return move == MOVE_DOWN ? FRAME_NOT_YET : FRAME_PERHAPS_NOT;
}

static enum own_frame frame_on_stack(const struct walk *w, uint64_t pc)
{
	struct spot *spot = walk_spot_named(w, pc);

	if (!spot || !spot->function)
		return FRAME_UNKNOWN;
	if (!spot->has_frame)
		spot->frame = (uint8_t)find_top(w, spot, pc);
	spot->has_frame = true;
	return spot->frame;
}

/* call rel32. An indirect call may have any target. */
static bool calls_other(const struct walk *w, uint64_t link, uint64_t function)
{
	const struct spot *spot = walk_spot(w, link - 5);
	const uint8_t *code = walk_code(w, link - 5, 5);

	if (!code || code[0] != 0xe8)
		return false;
	return spot->vaddr + 5 + (uint64_t)(int64_t)(int32_t)le32_at(code + 1) != function;
}

/* ---- all machines ---- */

/* Whether code may return to the address: as far as it is known, a call precedes it. */
static bool may_return_to(const struct walk *w, uint64_t link)
{
	const struct spot *spot = walk_spot(w, link - 1);

	return spot && (walk_is_return(w, link) || !walk_code(w, link - 1, 1));
}

static bool is_caller(const struct walk *w, uint64_t pc, uint64_t link)
{
	uint64_t function = walk_function(w, pc), target;
	bool on_stack = w->machine->lr == NO_REG;

	if (!may_return_to(w, link))
		return false;
	switch (on_stack ? frame_on_stack(w, pc) : link_frame(w, pc)) {
	case FRAME_NONE:
	case FRAME_NOT_YET: return on_stack || link_is_own(w, link, function);
	case FRAME_PERHAPS_NOT:
		if (on_stack)
			return !calls_other(w, link, function);
		target = link_call_target(w, link);
		return !target || target == function;
	default: return false;
	}
}

/*
 * Two equal return addresses in a row are a recursion of the function itself. If it is another function, its caller
 * is in the chain already.
 */
static bool is_there(const struct walk *w, const struct event_sample *sample, uint32_t at,
		     uint64_t link)
{
	return at + 1 < sample->nr && walk_return(w, sample->ips[at + 1]) == link &&
	       walk_function(w, link - 1) != walk_function(w, sample->ips[at]);
}

static void insert(struct unwind *u, struct event_sample *sample, uint32_t at, uint64_t link)
{
	uint32_t rest = sample->nr - at;

	if (sample->ips != u->ips) {
		GROW(u->ips, sample->nr + sample->nr_links, u->cap_ips);
		memcpy(u->ips, sample->ips, sample->nr * sizeof(*u->ips));
		sample->ips = u->ips;
	}
	memmove(u->ips + at + 1, u->ips + at, rest * sizeof(*u->ips));
	u->ips[at] = link;
	sample->nr++;
}

/* The marker before a place in the chain, or the context of the sample. */
static uint64_t context_at(const struct event_sample *sample, uint32_t at)
{
	return at && ip_is_marker(sample->ips[at - 1]) ? sample->ips[at - 1] : sample->context;
}

static void add_at(struct unwind *u, struct event *ev, const struct link_word *word)
{
	struct event_sample *sample = &ev->sample;
	struct walk w = {
		.unwind = u,
		.machine = machine_by_arch(world_arch(u->world)),
		.context = context_at(sample, word->at),
		.pid = ev->pid,
	};
	uint64_t link;

	if (!w.machine || word->at >= sample->nr || ip_is_marker(sample->ips[word->at]) ||
	    (w.context != IP_KERNEL && w.context != IP_USER))
		return;
	link = walk_return(&w, word->word);
	if (!ip_is_marker(link) && is_caller(&w, sample->ips[word->at], link) &&
	    !is_there(&w, sample, word->at, link))
		insert(u, sample, word->at + 1, link);
}

/* From the last one on, so that the others stay at their places. */
void caller_add(struct unwind *u, struct event *ev)
{
	for (uint32_t i = ev->sample.nr_links; i-- > 0;)
		add_at(u, ev, &ev->sample.links[i]);
}
