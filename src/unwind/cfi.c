// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules of .eh_frame and .debug_frame. libdw finds and interprets them; the result for an
 * address is cached in a compact form, because the same addresses recur.
 *
 * Without libdw there are no rules.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unwind/walk.h"

#ifdef HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>

#define MAX_OPS 64 /* in an expression, and on its stack */

struct cfi_image {
	struct cfi_file { /* the binary, and its separate debug file */
		bool opened;
		Dwarf *dwarf;
		Dwarf_CFI *eh, *debug;
	} file[2];
};

/* How to find the caller's value of a register. */
struct cfi_rule {
	uint8_t reg;
	enum {
		RULE_SAME,
		RULE_AT_CFA,  /* in memory, at cfa + offset */
		RULE_CFA,     /* it is cfa + offset */
		RULE_COPY,    /* it is register `from` + offset */
		RULE_ADDRESS, /* in memory, at the value of the expression */
		RULE_VALUE,   /* it is the value of the expression */
	} how;
	uint8_t from;
	uint64_t offset;
	Dwarf_Op *ops; /* of an expression */
	size_t nr_ops;
	bool own_ops; /* ops is allocated */
};

struct cfi_row {
	uint8_t ra;	/* the register whose rule gives the return address */
	bool signal;	/* a signal frame: the caller was interrupted */
	bool no_caller; /* the return address is undefined */
	struct cfi_rule cfa;
	unsigned nr;
	struct cfi_rule rules[];
};

/* ---- expressions ---- */

struct operands {
	uint64_t at[MAX_OPS];
	unsigned nr;
};

static bool push(struct operands *s, uint64_t value)
{
	if (s->nr == MAX_OPS)
		return false;
	s->at[s->nr++] = value;
	return true;
}

static bool two_operands(struct operands *s, uint8_t op)
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

/* The value of a register in a rule, where the pc may have a number. */
static bool rule_register(const struct walk *w, const struct state *s, uint64_t nr, uint64_t *value)
{
	if (nr == w->machine->pc) {
		*value = s->pc;
		return true;
	}
	return reg_value(s, nr, value);
}

static bool one_op(const struct walk *w, const struct state *s, const Dwarf_Op *op,
		   struct operands *stack)
{
	uint64_t value, *top;

	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(stack, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return rule_register(w, s, op->atom - DW_OP_breg0, &value) &&
		       push(stack, value + op->number);
	switch (op->atom) {
	case DW_OP_bregx:
		return rule_register(w, s, op->number, &value) && push(stack, value + op->number2);
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
		return walk_word(w, *top, top);
	case DW_OP_dup: return stack->nr && push(stack, stack->at[stack->nr - 1]);
	case DW_OP_drop: return stack->nr && stack->nr--;
	case DW_OP_nop: return true;
	}
	return two_operands(stack, op->atom);
}

static bool evaluate(const struct walk *w, const struct state *s, const struct cfi_rule *rule,
		     uint64_t *value)
{
	struct operands stack = { .nr = 0 };

	for (size_t i = 0; i < rule->nr_ops; i++) {
		if (!one_op(w, s, &rule->ops[i], &stack))
			return false;
	}
	if (!stack.nr)
		return false;
	*value = stack.at[stack.nr - 1];
	return true;
}

/* ---- rules ---- */

static bool apply(const struct walk *w, const struct cfi_rule *rule, const struct state *s,
		  uint64_t *value)
{
	switch (rule->how) {
	case RULE_SAME: return reg_value(s, rule->reg, value);
	case RULE_AT_CFA: return walk_word(w, s->cfa + rule->offset, value);
	case RULE_CFA: *value = s->cfa + rule->offset; return true;
	case RULE_COPY:
		if (!rule_register(w, s, rule->from, value))
			return false;
		*value += rule->offset;
		return true;
	case RULE_ADDRESS: return evaluate(w, s, rule, value) && walk_word(w, *value, value);
	case RULE_VALUE: return evaluate(w, s, rule, value);
	}
	return false;
}

/* Is it `register + offset`? */
static bool is_based(const Dwarf_Op *op, uint64_t *reg, uint64_t *offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = op->atom - DW_OP_breg0;
		*offset = op->number;
		return true;
	}
	*reg = op->number;
	*offset = op->number2;
	return op->atom == DW_OP_bregx;
}

static bool is_register(const Dwarf_Op *op, uint64_t *reg)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		*reg = op->atom - DW_OP_reg0;
		return true;
	}
	*reg = op->number;
	return op->atom == DW_OP_regx;
}

/* Is it `cfa + offset`? */
static bool is_cfa(const Dwarf_Op *ops, size_t nr, uint64_t *offset)
{
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	*offset = nr > 1 ? ops[1].number : 0;
	return nr == 1 || (nr == 2 && ops[1].atom == DW_OP_plus_uconst);
}

/*
 * Converts libdw's operations to a rule. libdw owns the operations and keeps them, except if they
 * are in `room`, the caller's buffer. False: empty, or implausibly long.
 */
static bool make_rule(struct cfi_rule *rule, Dwarf_Op *ops, size_t nr, const Dwarf_Op *room)
{
	bool value = nr > 1 && ops[nr - 1].atom == DW_OP_stack_value;
	uint64_t reg;

	nr -= value;
	if (!nr || nr > MAX_OPS)
		return false;
	if (is_cfa(ops, nr, &rule->offset)) {
		rule->how = value ? RULE_CFA : RULE_AT_CFA;
		return true;
	}
	rule->offset = 0;
	if (nr == 1 && (is_register(ops, &reg) || (value && is_based(ops, &reg, &rule->offset)))) {
		rule->how = RULE_COPY;
		rule->from = reg < MAX_REGS ? (uint8_t)reg : NO_REG;
		return true;
	}
	rule->how = value ? RULE_VALUE : RULE_ADDRESS;
	rule->ops = ops;
	rule->nr_ops = nr;
	rule->own_ops = ops == room;
	if (rule->own_ops) {
		rule->ops = xmalloc(nr * sizeof(*ops));
		memcpy(rule->ops, ops, nr * sizeof(*ops));
	}
	return true;
}

static bool make_cfa_rule(struct cfi_rule *rule, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	uint64_t reg;
	size_t nr;

	if (dwarf_frame_cfa(frame, &ops, &nr) < 0 || !nr)
		return false;
	if (nr == 1 && is_based(ops, &reg, &rule->offset)) {
		rule->how = RULE_COPY;
		rule->from = reg < MAX_REGS ? (uint8_t)reg : NO_REG;
		return true;
	}
	if (!make_rule(rule, ops, nr, NULL))
		return false;
	if (rule->how == RULE_ADDRESS) /* the expression's value is the cfa itself */
		rule->how = RULE_VALUE;
	return true;
}

/* Appends the rule of DWARF's register `nr` to the row, as `reg`, unless its value is lost. */
static void add_rule(struct cfi_row *row, const struct machine *m, Dwarf_Frame *frame, unsigned nr,
		     unsigned reg)
{
	struct cfi_rule rule = { .reg = (uint8_t)reg };
	Dwarf_Op room[3], *ops;
	size_t nr_ops;

	if (dwarf_frame_register(frame, (int)nr, room, &ops, &nr_ops) < 0)
		return;
	if (nr_ops) {
		if (make_rule(&rule, ops, nr_ops, room))
			row->rules[row->nr++] = rule;
		return;
	}
	/*
	 * No operations: unchanged if ops is NULL, else undefined. But libdw's ABI defaults have
	 * rax in place of rbx, so check here which registers the ABI preserves.
	 */
	rule.how = RULE_SAME;
	if (!ops || (nr < 32 && m->kept >> nr & 1))
		row->rules[row->nr++] = rule;
	else if (reg == row->ra)
		row->no_caller = true;
}

/*
 * The return address may have a number that no register has: 64 in the signal frames of RISC-V. It
 * gets the one after the registers.
 */
static struct cfi_row *make_row(const struct machine *m, Dwarf_Frame *frame)
{
	struct cfi_row *row = xcalloc(1, sizeof(*row) + (m->nr + 1) * sizeof(row->rules[0]));
	int ra = dwarf_frame_info(frame, NULL, NULL, &row->signal);

	if (ra < 0 || !make_cfa_rule(&row->cfa, frame)) {
		free(row);
		return NULL;
	}
	row->ra = ra < MAX_REGS ? (uint8_t)ra : m->nr;
	for (unsigned nr = 0; nr < m->nr; nr++)
		add_rule(row, m, frame, nr, nr);
	if (ra >= m->nr)
		add_rule(row, m, frame, (unsigned)ra, row->ra);
	return row;
}

/* ---- files with rules ---- */

static void open_file(struct cfi_file *file, struct Elf *elf)
{
	file->opened = true;
	if (!elf)
		return;
	file->eh = dwarf_getcfi_elf(elf);
	file->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (file->dwarf)
		file->debug = dwarf_getcfi(file->dwarf);
}

/* The binary, or its debug file, which is opened only if the binary has no rule. */
static struct cfi_file *file_of(struct unwind *u, uint32_t handle, bool debug)
{
	struct images *images = &u->world->images;
	struct cfi_file *file;

	if (handle >= u->nr_cfis) {
		u->cfis = xrealloc(u->cfis, images->nr, sizeof(*u->cfis));
		memset(u->cfis + u->nr_cfis, 0, (images->nr - u->nr_cfis) * sizeof(*u->cfis));
		u->nr_cfis = images->nr;
	}
	file = &u->cfis[handle].file[debug];
	if (!file->opened) {
		struct symfile *symfile = image_symfile(images, handle);

		open_file(file, !symfile ? NULL
				: debug	 ? symfile_debug_elf(symfile)
					 : symfile_elf(symfile));
	}
	return file;
}

static struct cfi_row *find_row(const struct walk *w, const struct spot *spot, bool debug)
{
	const struct cfi_file *file = file_of(w->unwind, spot->image, debug);
	Dwarf_Frame *frame = NULL;
	struct cfi_row *row;

	if ((!file->eh || dwarf_cfi_addrframe(file->eh, spot->vaddr, &frame)) &&
	    (!file->debug || dwarf_cfi_addrframe(file->debug, spot->vaddr, &frame)))
		return NULL;
	row = make_row(w->machine, frame);
	free(frame);
	return row;
}

/* ---- a step ---- */

/*
 * Rules without a return address mark the root of a thread, where the link register is left over
 * from the last call. But hand-written rules may also omit it in a leaf, which never stores it.
 */
static bool is_root(const struct walk *w, const struct state *s, uint64_t *lr)
{
	if (!s->exact || w->machine->lr == NO_REG || !reg_value(s, w->machine->lr, lr) || !*lr)
		return true;
	*lr = walk_return(w, *lr);
	return !walk_is_target(w, *lr) || walk_function(w, *lr - 1) == walk_function(w, s->pc);
}

/* Do the rules wrongly take the link register for the return address? */
static bool are_wrong(const struct walk *w, const struct state *s, const struct cfi_row *row)
{
	if (w->machine->lr == NO_REG || row->ra != w->machine->lr || row->no_caller)
		return false;
	for (unsigned i = 0; i < row->nr; i++) {
		if (row->rules[i].reg == row->ra && row->rules[i].how != RULE_SAME)
			return false;
	}
	return !link_may_return(w, s);
}

static enum step finish(const struct walk *w, const struct cfi_row *row, struct state *caller)
{
	caller->exact = row->signal;
	if (!caller->pc)
		return STEP_END;
	if (!row->signal)
		return STEP_CALLER;
	return w->context == IP_KERNEL && walk_is_user(w, caller->pc) ? STEP_USER : STEP_TRAP;
}

enum step cfi_step(const struct walk *w, struct state *s)
{
	const struct machine *m = w->machine;
	struct spot *spot = walk_spot_of(w, s);
	struct state caller = { .known = 0 };
	const struct cfi_row *row;
	uint64_t value;

	if (!spot)
		return STEP_NONE;
	if (!spot->has_cfi)
		spot->cfi = find_row(w, spot, false);
	if (!spot->has_cfi && !spot->cfi && w->cpu->whole)
		spot->cfi = find_row(w, spot, true);
	spot->has_cfi = true;
	row = spot->cfi;
	if (!row || (w->cpu->whole && are_wrong(w, s, row)))
		return STEP_NONE;
	if (!apply(w, &row->cfa, s, &s->cfa))
		return STEP_LOST;
	caller.by_record = s->by_record;
	for (unsigned i = 0; i < row->nr; i++) {
		const struct cfi_rule *rule = &row->rules[i];

		if (!apply(w, rule, s, &value))
			continue;
		reg_set(&caller, rule->reg, value);
		if (rule->reg == m->fp)
			caller.by_record |= rule->how != RULE_SAME;
	}
	if (row->no_caller && is_root(w, s, &caller.pc))
		return STEP_END;
	if (!row->no_caller && !reg_value(&caller, row->ra, &caller.pc))
		return STEP_LOST;
	caller.pc = walk_return(w, caller.pc);
	if (row->ra >= m->nr)
		caller.known &= ~(1ULL << row->ra);
	/* By definition the CFA is the caller's stack pointer. */
	if (!row->signal)
		reg_set(&caller, m->sp, s->cfa);
	caller.cfa = s->cfa;
	*s = caller;
	return finish(w, row, s);
}

bool cfi_present(const struct walk *w, const struct state *s)
{
	struct spot *spot = walk_spot_of(w, s);
	bool present = false;

	for (unsigned i = 0; i < 2 && spot && !present; i++) {
		const struct cfi_file *file = file_of(w->unwind, spot->image, i);

		present = file->eh || file->debug;
	}
	return present;
}

static void free_row(struct cfi_row *row)
{
	if (!row)
		return;
	for (unsigned i = 0; i < row->nr; i++) {
		if (row->rules[i].own_ops)
			free(row->rules[i].ops);
	}
	free(row);
}

void cfi_release(struct unwind *u)
{
	for (size_t i = 1; i <= u->nr_spots; i++)
		free_row(u->spots[i]->cfi);
	for (size_t i = 0; i < u->nr_cfis; i++) {
		for (unsigned n = 0; n < 2; n++) {
			if (u->cfis[i].file[n].eh)
				dwarf_cfi_end(u->cfis[i].file[n].eh);
			if (u->cfis[i].file[n].dwarf)
				dwarf_end(u->cfis[i].file[n].dwarf);
		}
	}
	free(u->cfis);
}

#else

enum step cfi_step(const struct walk *w, struct state *s)
{
	(void)w, (void)s;
	return STEP_NONE;
}

bool cfi_present(const struct walk *w, const struct state *s)
{
	(void)w, (void)s;
	return false;
}

void cfi_release(struct unwind *u)
{
	(void)u;
}

#endif
