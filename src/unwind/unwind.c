// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/log.h"
#include "base/mem.h"
#include "stage.h"
#include "unwind/walk.h"

#define MAX_FRAMES 127	     /* the same as in perf */
#define MAX_WHOLE_FRAMES 512 /* more do not fit into the copy of a stack */

/* ---- helpers of the methods ---- */

static bool read_copy(const uint8_t *copy, uint64_t len, uint64_t at, unsigned word,
		      uint64_t *value)
{
	if (at >= len || len - at < word)
		return false;
	*value = word == 8 ? le64_at(copy + at) : le32_at(copy + at);
	return true;
}

bool walk_word(const struct walk *w, uint64_t address, uint64_t *value)
{
	const struct cpu_state *cpu = w->cpu;
	unsigned word = w->machine->word;

	return read_copy(cpu->stack, cpu->stack_len, address - w->stack, word, value) ||
	       read_copy(cpu->outer, cpu->outer_len, address - cpu->outer_addr, word, value);
}

static const struct map *find_map(const struct walk *w, uint64_t address)
{
	const struct world *world = w->unwind->world;

	if (w->context == IP_KERNEL)
		return space_find(&world->spaces[SPACE_KERNEL], address);
	return world_map(world, w->pid, address);
}

struct spot *walk_spot(const struct walk *w, uint64_t address)
{
	struct unwind *u = w->unwind;
	const struct map *map = find_map(w, address);
	uint64_t offset;
	uint32_t *at;

	if (!map)
		return NULL;
	offset = address - map->start + map->offset;
	at = hash_at(&u->spot_index, (struct hash_key){ offset, map->image });
	if (!*at) {
		GROW(u->spots, u->nr_spots + 2, u->cap_spots);
		*at = (uint32_t)++u->nr_spots;
		u->spots[*at] = arena_alloc(&u->arena, sizeof(struct spot));
		*u->spots[*at] = (struct spot){
			.image = map->image,
			.vaddr = image_vaddr(&u->world->images, map->image, offset),
		};
	}
	return u->spots[*at];
}

struct spot *walk_spot_of(const struct walk *w, const struct state *s)
{
	return walk_spot(w, s->exact ? s->pc : s->pc - 1);
}

struct spot *walk_spot_named(const struct walk *w, uint64_t address)
{
	struct spot *spot = walk_spot(w, address);
	struct symfile *symfile;

	if (!spot || spot->has_function)
		return spot;
	spot->has_function = true;
	symfile = image_symfile(&w->unwind->world->images, spot->image);
	if (symfile && !symfile_function(symfile, spot->vaddr, &spot->function, &spot->label))
		spot->function = 0;
	spot->thumb = symfile && w->machine->kind == ARM && symfile_is_thumb(symfile, spot->vaddr);
	return spot;
}

uint64_t walk_function(const struct walk *w, uint64_t address)
{
	const struct spot *spot = walk_spot_named(w, address);

	return spot ? spot->function : 0;
}

static struct symfile *spot_symfile(const struct walk *w, const struct spot *spot)
{
	return spot ? image_symfile(&w->unwind->world->images, spot->image) : NULL;
}

static bool spot_is_code(const struct walk *w, uint64_t address)
{
	const struct spot *spot = walk_spot(w, address);
	struct symfile *symfile = spot_symfile(w, spot);

	return symfile && symfile_is_code(symfile, spot->vaddr);
}

const uint8_t *walk_code(const struct walk *w, uint64_t address, size_t len)
{
	const struct spot *spot = walk_spot(w, address);
	struct symfile *symfile = spot_symfile(w, spot);

	return symfile ? symfile_code(symfile, spot->vaddr, len) : NULL;
}

struct code_kind walk_code_kind(const struct walk *w, uint64_t address)
{
	const struct spot *spot = walk_spot_named(w, address);

	return (struct code_kind){ w->machine->kind, spot && spot->thumb };
}

bool walk_is_return(const struct walk *w, uint64_t address)
{
	struct code_kind kind = walk_code_kind(w, address - 1);
	const uint8_t *code = NULL;
	size_t len;

	for (len = CALL_BYTES; len >= 2 && !code; len--)
		code = walk_code(w, address - len, len);
	return code && insn_call_ends(&kind, code, len + 1);
}

bool walk_is_uncalled(const struct walk *w, uint64_t address)
{
	const struct spot *spot = walk_spot_named(w, address);

	return spot && spot->function && spot->function == spot->vaddr &&
	       walk_code(w, address, 1) && !walk_is_return(w, address);
}

/* Is the address in the same half of the address space as the sample, or above it on 32 bits? */
static bool same_half(const struct walk *w, uint64_t address)
{
	/* On arm64 the byte above may be a tag. With five levels of tables, addresses use 57 bits. */
	unsigned top = w->machine->kind == AARCH64 ? 55 : 63;

	if (w->machine->word == 4)
		return address >> 30 >= w->start >> 30;
	return (address >> top & 1) == (w->start >> top & 1);
}

bool walk_is_code(const struct walk *w, uint64_t address)
{
	if (spot_is_code(w, address))
		return true;
	/* Without a known binary any address may be code. */
	return !w->known && address && same_half(w, address);
}

bool walk_is_target(const struct walk *w, uint64_t address)
{
	return address && (walk_is_code(w, address) || walk_is_code(w, address - 1));
}

bool walk_is_user(const struct walk *w, uint64_t address)
{
	return address && !walk_is_code(w, address) && !same_half(w, address);
}

uint64_t walk_return(const struct walk *w, uint64_t address)
{
	switch (w->machine->kind) {
	case AARCH64: /* pointer authentication uses the bits above 47 */
		return address >> 55 & 1 ? address | UINT64_C(0xffff) << 48
					 : address & ~(UINT64_C(0xffff) << 48);
	case ARM: return address & ~UINT64_C(1); /* Thumb */
	default: return address;
	}
}

#define NEAR ((uint64_t)4 << 30) /* modules of a kernel are not further away */

/* Data of a known binary, or the stack itself. */
static bool is_data(const struct walk *w, uint64_t address)
{
	const struct cpu_state *cpu = w->cpu;
	const struct spot *spot = walk_spot(w, address);
	struct symfile *symfile = spot_symfile(w, spot);

	if (spot_is_code(w, address))
		return false;
	return address - w->stack < cpu->stack_len || address - cpu->outer_addr < cpu->outer_len ||
	       (symfile && symfile_is_loaded(symfile, spot->vaddr));
}

/* An address that the machine can have: with five levels of tables, addresses use 57 bits. */
static bool is_canonical(const struct walk *w, uint64_t address)
{
	if (w->machine->word == 4)
		return address <= UINT32_MAX;
	return address >> 56 == 0 || address >> 56 == 0xff;
}

static bool is_mapped_code(const struct walk *w, uint64_t address)
{
	const struct map *map = find_map(w, address);

	return map && map->code;
}

/*
 * perf.data has all maps of a process: what is outside is no code. In a kernel whose binary is known, a step must
 * lead to code of the kernel or of a module.
 */
static bool is_plausible(const struct walk *w, const struct state *s)
{
	uint64_t pc = s->pc;

	if (pc && !is_canonical(w, pc))
		return false;
	if (pc && !w->cpu->whole)
		return is_mapped_code(w, pc) || (!s->exact && is_mapped_code(w, pc - 1));
	if (w->context != IP_KERNEL || !w->known)
		return true;
	if (s->exact ? walk_is_code(w, pc) : walk_is_target(w, pc))
		return true;
	return !is_data(w, pc) && same_half(w, pc) &&
	       (pc - w->start < NEAR || w->start - pc < NEAR);
}

/* ---- one step ---- */

/* Is it assembly: a symbol without a size, or no rules in a binary that has some? */
static bool may_be_trap(const struct walk *w, const struct state *s)
{
	const struct spot *spot = walk_spot_named(w, s->exact ? s->pc : s->pc - 1);

	return spot && (spot->label || (w->unwind->method != UNWIND_FP && cfi_present(w, s)));
}

/* Code without rules: an interrupt stub, or a plain function. */
static enum step step_without_rules(const struct walk *w, struct state *s)
{
	bool trap = w->context == IP_KERNEL && may_be_trap(w, s);
	enum step step = STEP_NONE;

	if (trap)
		step = trap_pushed(w, s, s->exact ? TRAP_AT_ENTRY : TRAP_ANYWHERE);
	if (trap && step == STEP_NONE)
		step = trap_syscall(w, s);
	if (step == STEP_NONE)
		step = trap_saved(w, s);
	if (step == STEP_NONE)
		step = fp_leaf(w, s);
	if (step == STEP_NONE)
		step = link_step(w, s);
	if (trap && step == STEP_NONE && s->exact)
		step = trap_pushed(w, s, TRAP_ANYWHERE);
	return step;
}

/* Tries the methods in order. ORC is only for the kernel: user code then uses UNWIND_AUTO. */
static enum step take_step(const struct walk *w, struct state *s)
{
	enum unwind_method method = w->unwind->method;
	enum step step = STEP_NONE;

	if (w->context == IP_USER && method == UNWIND_ORC)
		method = UNWIND_AUTO;
	if (w->context == IP_KERNEL && (method == UNWIND_AUTO || method == UNWIND_ORC))
		step = orc_step(w, s);
	if (step == STEP_NONE && (method == UNWIND_AUTO || method == UNWIND_CFI))
		step = cfi_step(w, s);
	if (step == STEP_NONE && (method == UNWIND_AUTO || method == UNWIND_CFI))
		step = exidx_step(w, s);
	if (step == STEP_NONE)
		step = step_without_rules(w, s);
	if (step == STEP_NONE && (method == UNWIND_AUTO || method == UNWIND_FP))
		step = fp_step(w, s);
	return step;
}

/* ---- the walk ---- */

static uint64_t nth_register(const struct cpu_state *cpu, unsigned nr, bool *known)
{
	*known = nr < 64 && cpu->mask >> nr & 1;
	return *known ? cpu->regs[__builtin_popcountll(cpu->mask & ((1ULL << nr) - 1))] : 0;
}

/* Sets the initial state. The pc of a whole state is the first address of its chain. */
static bool start(struct walk *w, uint64_t pc, struct state *s)
{
	const struct machine *m = w->machine;
	bool known = true;

	*s = (struct state){ .exact = true };
	for (unsigned nr = 0; nr < m->nr; nr++) {
		s->reg[nr] = nth_register(w->cpu, w->cpu->whole ? nr : m->perf[nr], &known);
		s->known |= (uint64_t)known << nr;
	}
	s->pc = w->cpu->whole ? pc : nth_register(w->cpu, m->perf_pc, &known);
	s->cfa = s->reg[m->sp];
	w->stack = s->reg[m->sp];
	w->start = s->pc;
	w->known = !w->cpu->whole || spot_is_code(w, s->pc);
	return (w->cpu->whole || known) && s->known >> m->sp & 1;
}

struct walked {
	uint64_t *ips;
	uint32_t nr;
	bool ended;
};

static void add_ip(struct walked *chain, uint64_t ip)
{
	chain->ips[chain->nr++] = ip;
}

/*
 * What looks like a return address may be EXC_RETURN of Cortex-M, which ends an exception. Or it is the
 * start of a function that nothing called: a new thread starts there, with the state of its entry.
 */
static enum step settle(const struct walk *w, struct state *s)
{
	if (m_profile_ends(w, s->pc))
		return m_profile_step(w, s);
	s->pc = walk_return(w, s->pc);
	s->first = walk_is_uncalled(w, s->pc);
	s->exact |= s->first;
	return STEP_CALLER;
}

/* Steps out of a thread's first function. If it has a caller, the kernel put that there, too. */
static enum step settle_first(const struct walk *w, const struct state *s, enum step step,
			      uint64_t pc)
{
	bool found = step == STEP_TRAP || step == STEP_USER ||
		     (step == STEP_CALLER && s->pc != pc && walk_is_target(w, s->pc));

	return found ? step : STEP_END;
}

static void walk_stack(struct walk *w, struct state *s, unsigned max, struct walked *chain)
{
	for (unsigned depth = 0; depth < max && s->pc && !ip_is_marker(s->pc); depth++) {
		uint64_t sp = s->reg[w->machine->sp], pc = s->pc;
		bool first = s->first, exact = s->exact;
		enum step step;

		add_ip(chain, pc);
		step = take_step(w, s);
		if (step == STEP_CALLER)
			step = settle(w, s);
		if (first)
			step = settle_first(w, s, step, pc);
		if ((step == STEP_CALLER || step == STEP_TRAP) && s->exact && is_plausible(w, s))
			add_ip(chain, w->context); /* the next ip is not a return address */
		if (step == STEP_USER && !is_canonical(w, s->pc))
			step = STEP_LOST;
		if (step == STEP_USER && s->pc && !ip_is_marker(s->pc)) {
			add_ip(chain, IP_USER);
			add_ip(chain, s->pc);
		}
		chain->ended = step == STEP_END || step == STEP_USER;
		if ((step != STEP_CALLER && step != STEP_TRAP) || !is_plausible(w, s))
			return;
		/* A function may start right after the call to it: the entry is the return address. */
		if (s->pc == pc && s->reg[w->machine->sp] == sp && s->exact == exact)
			return;
	}
	chain->ended |= !s->pc;
}

/* If no call precedes the return address at the root, the kernel put it there: it is exact. */
static void mark_root(const struct walk *w, struct walked *chain)
{
	uint64_t *root = &chain->ips[chain->nr - 1];

	if (!chain->ended || chain->nr < 3 || ip_is_marker(root[-1]) || walk_is_return(w, *root) ||
	    !walk_code(w, *root, 1))
		return;
	root[1] = root[0];
	root[0] = w->context;
	chain->nr++;
}

/* ---- events ---- */

struct subject { /* the parts of an event that matter here */
	const struct cpu_state *cpu;
	const uint64_t *ips;
	uint32_t nr, unwound;
	uint64_t context;
	bool ended;
};

static void count(struct unwind *u, const struct walk *w, const struct walked *chain)
{
	struct unwind_count *to = !w->known		    ? &u->elsewhere
				  : w->context == IP_KERNEL ? &u->kernel
							    : &u->user;

	to->chains++;
	to->ended += chain->ended;
}

/* Finds the whole chain; only the pc is known. */
static void unwind_whole(struct unwind *u, struct walk *w, struct subject *subject)
{
	struct walked chain;
	struct state s;
	uint32_t at = 0;

	while (at < subject->nr && ip_is_marker(subject->ips[at]))
		at++;
	if (at == subject->nr)
		return;
	w->context = subject->context;
	GROW(u->ips, at + 2 * MAX_WHOLE_FRAMES + 3, u->cap_ips);
	memcpy(u->ips, subject->ips, at * sizeof(*u->ips));
	chain = (struct walked){ .ips = u->ips, .nr = at };
	if (!start(w, subject->ips[at], &s))
		return;
	walk_stack(w, &s, MAX_WHOLE_FRAMES, &chain);
	if (chain.nr == at)
		return;
	mark_root(w, &chain);
	count(u, w, &chain);
	subject->ended = chain.ended;
	subject->ips = u->ips;
	subject->nr = chain.nr;
	subject->unwound = chain.nr - at;
}

/* Adds the user's stack to the kernel's part of the chain. */
static void unwind_user(struct unwind *u, struct walk *w, struct subject *subject)
{
	uint32_t nr = subject->nr, marked;
	struct walked chain;
	struct state s;

	w->context = IP_USER;
	/* Without a recorded chain ips is the pc, which the registers have, too. */
	if (nr == 1 && subject->context == IP_USER && !ip_is_marker(subject->ips[0]))
		nr = 0;
	GROW(u->ips, nr + 1 + 2 * MAX_FRAMES + 2, u->cap_ips);
	memcpy(u->ips, subject->ips, nr * sizeof(*u->ips));
	/* Drop the user part of the recorded chain: it is only the beginning. */
	for (uint32_t i = 0; i < nr; i++) {
		if (u->ips[i] == IP_USER)
			nr = i;
	}
	u->ips[nr] = IP_USER;
	marked = nr + 1;
	chain = (struct walked){ .ips = u->ips, .nr = marked };
	if (!start(w, 0, &s))
		return;
	walk_stack(w, &s, MAX_FRAMES, &chain);
	if (chain.nr == marked)
		return;
	count(u, w, &chain);
	subject->ended = chain.ended;
	subject->ips = u->ips;
	subject->nr = chain.nr;
	subject->unwound = chain.nr - marked;
}

static void unwind_subject(struct unwind *u, uint32_t pid, struct subject *subject)
{
	const struct cpu_state *cpu = subject->cpu;
	struct walk w = {
		.unwind = u,
		.machine = machine_by_arch(world_arch(u->world)),
		.cpu = cpu,
		.pid = pid,
	};

	u->used = true;
	if (w.machine && cpu->whole) {
		unwind_whole(u, &w, subject);
	} else if (w.machine && w.machine->perf && cpu->abi == 2) {
		unwind_user(u, &w, subject);
	} else {
		if (!u->warned)
			log_warn("cannot unwind stacks of this architecture (%s); "
				 "keeping them as recorded",
				 world_arch(u->world));
		u->warned = true;
	}
}

void unwind_event(struct unwind *u, struct event *ev)
{
	struct event_sample *sample = &ev->sample;
	struct event_alloc *alloc = &ev->alloc;
	struct subject subject;

	if ((ev->kind == EVENT_SAMPLE || ev->kind == EVENT_CHECK) && sample->state) {
		subject = (struct subject){ sample->state,	sample->ips,	 sample->nr,
					    sample->nr_unwound, sample->context, false };
		unwind_subject(u, ev->pid, &subject);
		sample->ips = subject.ips;
		sample->nr = subject.nr;
		sample->nr_unwound = subject.unwound;
		sample->ended = subject.ended;
	} else if (ev->kind == EVENT_ALLOC && alloc->state) {
		subject = (struct subject){ alloc->state,   alloc->ips, alloc->nr, 0,
					    alloc->context, false };
		unwind_subject(u, ev->pid, &subject);
		alloc->ips = subject.ips;
		alloc->nr = subject.nr;
	} else if (ev->kind == EVENT_SAMPLE && sample->nr_links) {
		caller_add(u, ev);
	}
}

void unwind_release(struct unwind *u)
{
	cfi_release(u);
	orc_release(u);
	exidx_release(u);
	arena_release(&u->arena);
	free(u->spots);
	free(u->ips);
	hash_release(&u->spot_index);
}

static const char *const methods[] = { "auto", "fp", "cfi", "orc", NULL };

const struct option_table unwind_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "unwind", 0, "METHOD", "unwind stacks by auto (default), fp, cfi or orc",
		  OPTION_WORD(struct unwind, method, methods) },
		{ 0 },
	},
};

static int unwind_open(struct stage *s)
{
	struct unwind *u = s->priv;

	u->world = s->chain->world;
	return 0;
}

static bool unwind_acts(const struct stage *s)
{
	const struct unwind *u = s->priv;

	return u->used;
}

static int unwind_push(struct stage *s, struct event *ev)
{
	unwind_event(s->priv, ev);
	return stage_emit(s, ev);
}

static void unwind_close(struct stage *s)
{
	unwind_release(s->priv);
}

const struct stage_ops stage_unwind = {
	.name = "unwind",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_ALLOC) | EVENT_BIT(EVENT_CHECK),
	.options = OPTION_USES({ &unwind_table, 0 }),
	.acts = unwind_acts,
	.priv_size = sizeof(struct unwind),
	.open = unwind_open,
	.push = unwind_push,
	.close = unwind_close,
};
