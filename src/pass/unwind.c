// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

#ifdef HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#define MAX_FRAMES 127 /* as perf has it */
#define MAX_REGS 33
#define MAX_OPS 64	       /* depth of the stack of an expression, and its length */
#define MAX_FRAME_BYTES 0x4000 /* a frame pointer that leads further up is none */

struct unwind_image {
	bool opened;
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *eh, *debug;
};

/* How perf numbers the registers of a machine, by DWARF's numbers. */
struct machine {
	const char *arch;
	const uint8_t *perf; /* [dwarf] */
	uint8_t nr;
	uint8_t pc;	    /* perf's number; it has none in DWARF */
	uint8_t sp, fp, ra; /* DWARF's; ra is a register that holds the return address, or NONE */
	uint32_t kept;	    /* bits: registers that a function leaves as they were */
};

#define NONE 255

static const uint8_t x86_64[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23 };
static const uint8_t arm64[] = { 0,  1,	 2,  3,	 4,  5,	 6,  7,	 8,  9,	 10, 11, 12, 13, 14, 15,
				 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };

static const struct machine machines[] = {
	{ "x86_64", x86_64, sizeof(x86_64), 8, 7, 6, NONE, 0xf048 },	 /* rbx rbp r12-r15 */
	{ "aarch64", arm64, sizeof(arm64), 32, 31, 29, 30, 0x3ff80000 }, /* x19-x29 */
};

struct state { /* of the registers, in one frame */
	uint64_t reg[MAX_REGS];
	uint64_t known; /* bits */
	uint64_t pc;
	uint64_t cfa;
};

struct walk {
	struct unwind *unwind;
	const struct machine *machine;
	const struct cpu_state *user;
	uint64_t stack; /* where the copy begins */
	uint32_t pid;
};

static bool read_word(const struct walk *w, uint64_t address, uint64_t *value)
{
	uint64_t at = address - w->stack;

	if (at >= w->user->stack_len || w->user->stack_len - at < 8)
		return false;
	memcpy(value, w->user->stack + at, 8);
	return true;
}

static bool reg_value(const struct state *s, uint64_t nr, uint64_t *value)
{
	if (nr >= MAX_REGS || !(s->known >> nr & 1))
		return false;
	*value = s->reg[nr];
	return true;
}

/* ---- expressions ---- */

struct stack_copy {
	uint64_t at[MAX_OPS];
	unsigned nr;
};

static bool push(struct stack_copy *s, uint64_t value)
{
	if (s->nr == MAX_OPS)
		return false;
	s->at[s->nr++] = value;
	return true;
}

static bool two_operands(struct stack_copy *s, uint8_t op)
{
	uint64_t a, b;

	if (s->nr < 2)
		return false;
	b = s->at[--s->nr];
	a = s->at[--s->nr];
	switch (op) {
	case DW_OP_plus: return push(s, a + b);
	case DW_OP_minus: return push(s, a - b);
	case DW_OP_mul: return push(s, a * b);
	case DW_OP_and: return push(s, a & b);
	case DW_OP_or: return push(s, a | b);
	case DW_OP_xor: return push(s, a ^ b);
	case DW_OP_shl: return push(s, b < 64 ? a << b : 0);
	case DW_OP_shr: return push(s, b < 64 ? a >> b : 0);
	case DW_OP_ge: return push(s, (int64_t)a >= (int64_t)b);
	case DW_OP_gt: return push(s, (int64_t)a > (int64_t)b);
	case DW_OP_le: return push(s, (int64_t)a <= (int64_t)b);
	case DW_OP_lt: return push(s, (int64_t)a < (int64_t)b);
	case DW_OP_eq: return push(s, a == b);
	case DW_OP_ne: return push(s, a != b);
	}
	return false;
}

/* A register as seen by an expression: x86-64's number 16 is the pc. */
static bool base_register(const struct walk *w, const struct state *s, uint64_t nr, uint64_t *value)
{
	if (nr == 16 && w->machine->pc == 8) {
		*value = s->pc;
		return true;
	}
	return reg_value(s, nr, value);
}

static bool one_op(const struct walk *w, const struct state *s, const Dwarf_Op *op,
		   struct stack_copy *stack)
{
	uint64_t value, *top;

	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(stack, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return base_register(w, s, op->atom - DW_OP_breg0, &value) &&
		       push(stack, value + op->number);
	switch (op->atom) {
	case DW_OP_bregx:
		return base_register(w, s, op->number, &value) && push(stack, value + op->number2);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_addr: return push(stack, op->number);
	case DW_OP_call_frame_cfa: return push(stack, s->cfa);
	case DW_OP_plus_uconst:
		if (!stack->nr)
			return false;
		stack->at[stack->nr - 1] += op->number;
		return true;
	case DW_OP_deref:
		if (!stack->nr)
			return false;
		top = &stack->at[stack->nr - 1];
		return read_word(w, *top, top);
	case DW_OP_dup: return stack->nr && push(stack, stack->at[stack->nr - 1]);
	case DW_OP_drop: return stack->nr && stack->nr--;
	case DW_OP_nop: return true;
	}
	return two_operands(stack, op->atom);
}

/* *value is an address, unless the expression says that it is the value itself: *direct. */
static bool evaluate(const struct walk *w, const struct state *s, const Dwarf_Op *ops, size_t nr,
		     uint64_t *value, bool *direct)
{
	struct stack_copy stack = { .nr = 0 };

	*direct = false;
	if (nr > MAX_OPS)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (ops[i].atom == DW_OP_stack_value) {
			*direct = true;
			break;
		}
		if (nr == 1 && ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) {
			*direct = true;
			return reg_value(s, ops[i].atom - DW_OP_reg0, value);
		}
		if (nr == 1 && ops[i].atom == DW_OP_regx) {
			*direct = true;
			return reg_value(s, ops[i].number, value);
		}
		if (!one_op(w, s, &ops[i], &stack))
			return false;
	}
	if (!stack.nr)
		return false;
	*value = stack.at[stack.nr - 1];
	return true;
}

/* ---- rules ---- */

static void open_image(struct unwind_image *image, const char *file)
{
	image->opened = true;
	image->fd = -1;
	if (!file)
		return;
	elf_version(EV_CURRENT);
	image->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (image->fd < 0)
		return;
	image->elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	if (!image->elf)
		return;
	image->eh = dwarf_getcfi_elf(image->elf);
	image->dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (image->dwarf)
		image->debug = dwarf_getcfi(image->dwarf);
}

static struct unwind_image *image_of(struct unwind *u, uint32_t handle)
{
	struct images *images = &u->world->images;

	if (handle >= u->nr_images) {
		u->images = xrealloc(u->images, images->nr, sizeof(*u->images));
		memset(u->images + u->nr_images, 0,
		       (images->nr - u->nr_images) * sizeof(*u->images));
		u->nr_images = images->nr;
	}
	if (!u->images[handle].opened) {
		const char *file = image_symfile(images, handle) ? images->all[handle].file : NULL;

		open_image(&u->images[handle], file);
	}
	return &u->images[handle];
}

static Dwarf_Frame *find_rules(struct unwind_image *image, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;

	if (image->eh && !dwarf_cfi_addrframe(image->eh, vaddr, &frame))
		return frame;
	if (image->debug && !dwarf_cfi_addrframe(image->debug, vaddr, &frame))
		return frame;
	return NULL;
}

/* The rules for an address of a process, or NULL. */
static Dwarf_Frame *rules_at(struct walk *w, uint64_t address)
{
	struct unwind *u = w->unwind;
	const struct map *map = world_map(u->world, w->pid, address);
	uint64_t offset;
	uint32_t image, *at;

	if (!map)
		return NULL;
	offset = address - map->start + map->offset;
	image = map->image;
	at = hash_at(&u->frame_index, (struct hash_key){ offset, image });
	if (!*at) {
		GROW(u->frames, u->nr_frames + 2, u->cap_frames);
		u->frames[0] = NULL;
		u->frames[++u->nr_frames] = NULL;
		*at = (uint32_t)u->nr_frames;
		u->frames[*at] = find_rules(image_of(u, image),
					    image_vaddr(&u->world->images, image, offset));
	}
	return u->frames[*at];
}

/* A register in the caller's frame. */
static void restore(const struct walk *w, Dwarf_Frame *rules, unsigned nr, const struct state *s,
		    struct state *caller)
{
	Dwarf_Op room[3], *ops;
	uint64_t value;
	size_t nr_ops;
	bool direct;

	if (dwarf_frame_register(rules, (int)nr, room, &ops, &nr_ops) < 0)
		return;
	if (!nr_ops) {
		/*
		 * The same as here; or, with room in ops, lost. But libdw takes rax for rbx when
		 * it fills in what the ABI says, so that has to be known here.
		 */
		bool same = !ops || (nr < 32 && w->machine->kept >> nr & 1);

		if (!same || !reg_value(s, nr, &value))
			return;
	} else if (!evaluate(w, s, ops, nr_ops, &value, &direct) ||
		   (!direct && !read_word(w, value, &value))) {
		return;
	}
	caller->reg[nr] = value;
	caller->known |= 1ULL << nr;
}

static bool step_by_rules(const struct walk *w, Dwarf_Frame *rules, struct state *s, bool *signal)
{
	const struct machine *m = w->machine;
	struct state caller = { .known = 0 };
	Dwarf_Op *ops;
	size_t nr_ops;
	bool direct;
	int ra = dwarf_frame_info(rules, NULL, NULL, signal);

	if (ra < 0 || ra >= MAX_REGS || dwarf_frame_cfa(rules, &ops, &nr_ops) < 0 ||
	    !evaluate(w, s, ops, nr_ops, &s->cfa, &direct))
		return false;
	for (unsigned nr = 0; nr < m->nr; nr++)
		restore(w, rules, nr, s, &caller);
	if (ra >= m->nr)
		restore(w, rules, (unsigned)ra, s, &caller);
	if (!(caller.known >> ra & 1))
		return false;
	caller.pc = caller.reg[ra];
	if (ra >= m->nr)
		caller.known &= ~(1ULL << ra);
	/* The stack pointer of the caller is what the CFA is defined to be. */
	if (!*signal) {
		caller.reg[m->sp] = s->cfa;
		caller.known |= 1ULL << m->sp;
	}
	caller.cfa = s->cfa;
	*s = caller;
	return true;
}

/* Where there are no rules: a saved frame pointer, and the return address above it. */
static bool step_by_frame_pointer(const struct walk *w, struct state *s)
{
	const struct machine *m = w->machine;
	uint64_t fp, sp, next, pc;

	if (!reg_value(s, m->fp, &fp) || !reg_value(s, m->sp, &sp) || fp < sp ||
	    fp - sp > MAX_FRAME_BYTES || !read_word(w, fp, &next) || !read_word(w, fp + 8, &pc))
		return false;
	s->known = 1ULL << m->fp | 1ULL << m->sp;
	s->reg[m->fp] = next;
	s->reg[m->sp] = s->cfa = fp + 16;
	s->pc = pc;
	return true;
}

static bool step(struct walk *w, struct state *s, bool first, bool *signal)
{
	/* A return address may be just behind the function that the call is the end of. */
	Dwarf_Frame *rules = rules_at(w, first || *signal ? s->pc : s->pc - 1);

	*signal = false;
	if (rules)
		return step_by_rules(w, rules, s, signal);
	return step_by_frame_pointer(w, s);
}

static uint64_t perf_register(const struct cpu_state *user, unsigned nr, bool *known)
{
	*known = user->mask >> nr & 1;
	return *known ? user->regs[__builtin_popcountll(user->mask & ((1ULL << nr) - 1))] : 0;
}

static bool start(const struct walk *w, struct state *s)
{
	const struct machine *m = w->machine;
	bool known;

	*s = (struct state){ .known = 0 };
	for (unsigned nr = 0; nr < m->nr; nr++) {
		s->reg[nr] = perf_register(w->user, m->perf[nr], &known);
		s->known |= (uint64_t)known << nr;
	}
	s->pc = perf_register(w->user, m->pc, &known);
	s->cfa = s->reg[m->sp];
	return known && s->known >> m->sp & 1;
}

static const struct machine *machine_of(const struct world *world)
{
	const char *arch = world_arch(world);

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		if (!strcmp(machines[i].arch, arch))
			return &machines[i];
	}
	return NULL;
}

/* Appends the frames to what is in unwind->ips; returns how many words there are then. */
static uint32_t walk_stack(struct walk *w, uint32_t nr)
{
	struct state s;
	bool signal = false;

	if (!start(w, &s))
		return nr;
	w->stack = s.reg[w->machine->sp];
	for (unsigned depth = 0; depth < MAX_FRAMES && s.pc && !ip_is_marker(s.pc); depth++) {
		w->unwind->ips[nr++] = s.pc;
		if (!step(w, &s, !depth, &signal))
			break;
	}
	return nr;
}

void unwind_sample(struct unwind *u, struct event *ev)
{
	struct event_sample *sample = &ev->sample;
	struct walk w = {
		.unwind = u,
		.machine = machine_of(u->world),
		.user = sample->state,
		.pid = ev->pid,
	};
	uint32_t nr = sample->nr, marked;

	if (!w.machine || w.user->abi != 2) {
		if (!u->told)
			log_warn("stacks of this machine (%s) cannot be unwound: "
				 "they stay as they are",
				 world_arch(u->world));
		u->told = true;
		return;
	}
	/* Without a chain the pc was put in its place; it comes again from the registers. */
	if (nr == 1 && sample->context == IP_USER && !ip_is_marker(sample->ips[0]))
		nr = 0;
	GROW(u->ips, nr + 1 + MAX_FRAMES, u->cap_ips);
	memcpy(u->ips, sample->ips, nr * sizeof(*u->ips));
	/* What the kernel found of the user's stack itself, if anything, is only its beginning. */
	for (uint32_t i = 0; i < nr; i++) {
		if (u->ips[i] == IP_USER)
			nr = i;
	}
	u->ips[nr] = IP_USER;
	marked = nr + 1;
	nr = walk_stack(&w, marked);
	if (nr == marked)
		return;
	sample->ips = u->ips;
	sample->nr = nr;
	sample->nr_unwound = nr - marked;
}

void unwind_release(struct unwind *u)
{
	for (size_t i = 1; i <= u->nr_frames; i++)
		free(u->frames[i]);
	for (size_t i = 0; i < u->nr_images; i++) {
		struct unwind_image *image = &u->images[i];

		if (!image->opened)
			continue;
		if (image->eh)
			dwarf_cfi_end(image->eh);
		if (image->dwarf)
			dwarf_end(image->dwarf);
		if (image->elf)
			elf_end(image->elf);
		if (image->fd >= 0)
			close(image->fd);
	}
	free(u->images);
	free(u->frames);
	free(u->ips);
	hash_release(&u->frame_index);
}
#else
void unwind_sample(struct unwind *u, struct event *ev)
{
	(void)ev;
	if (!u->told)
		log_warn("built without libdw: user stacks are not unwound");
	u->told = true;
}

void unwind_release(struct unwind *u)
{
	(void)u;
}
#endif
