// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ORC: the unwind tables of Linux on x86-64, two parallel sections. Entry i of .orc_unwind_ip is
 * the start of the code that entry i of .orc_unwind describes, relative to its own address. An
 * entry of .orc_unwind is two offsets and 16 bits:
 *
 *	Linux	     0-3     4-7     8    9    10   11
 *	4.14 - 6.2   sp_reg  bp_reg  type      end
 *	6.3	     sp_reg  bp_reg  type      sig  end
 *	6.4 -	     sp_reg  bp_reg  type           sig
 *
 * The contents reveal the version: nearly all entries are for plain calls, whose type is 0 in the
 * old encoding and 2 in the new one, and only 6.3 has bit 11 together with a 2-bit type.
 */
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "unwind/walk.h"

#define ENTRIES_MAX ((size_t)1 << 26)
#define ENTRY_LEN 6

enum { ORC_NONE, ORC_END, ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL }; /* as since 6.4 */
enum { BASE_NONE, BASE_PREV_SP, BASE_DX, BASE_DI, BASE_BP, BASE_SP, BASE_R10, BASE_R13 };
#define BASE_BP_INDIRECT 8
#define BASE_SP_INDIRECT 9

enum orc_version { ORC_OLD, ORC_6_3, ORC_NEW };

struct orc_table {
	bool opened;
	enum orc_version version;
	struct sym_section ips, entries;
	uint32_t *order; /* by address; NULL: already sorted. Linux before 5.6 sorted at boot */
	size_t nr;
};

static uint64_t entry_ip(const struct orc_table *t, size_t i)
{
	int32_t distance = (int32_t)le32_at(t->ips.data + 4 * i);

	return t->ips.addr + 4 * i + (uint64_t)(int64_t)distance;
}

static uint16_t entry_flags(const struct orc_table *t, size_t i)
{
	return le16_at(t->entries.data + ENTRY_LEN * i + 4);
}

static enum orc_version find_version(const struct orc_table *t)
{
	size_t plain = 0, two = 0, high = 0;

	for (size_t i = 0; i < t->nr; i++) {
		uint16_t flags = entry_flags(t, i);

		if (flags & 15) {
			plain += (flags >> 8 & 3) == 0;
			two += (flags >> 8 & 7) == ORC_CALL;
		}
		high += flags >> 11 & 1;
	}
	if (two > plain)
		return ORC_NEW;
	return high ? ORC_6_3 : ORC_OLD;
}

static int by_ip(const void *a, const void *b, void *table)
{
	size_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t ip_x = entry_ip(table, x), ip_y = entry_ip(table, y);

	if (ip_x != ip_y)
		return ip_x < ip_y ? -1 : 1;
	/* An entry without a rule ends a function: sort it before one that begins there. */
	if (!(entry_flags(table, x) & 15) != !(entry_flags(table, y) & 15))
		return entry_flags(table, x) & 15 ? 1 : -1;
	return x < y ? -1 : 1;
}

static void sort_entries(struct orc_table *t)
{
	size_t i = 1;

	while (i < t->nr && entry_ip(t, i - 1) <= entry_ip(t, i))
		i++;
	if (i >= t->nr)
		return;
	t->order = xmalloc(t->nr * sizeof(*t->order));
	for (i = 0; i < t->nr; i++)
		t->order[i] = (uint32_t)i;
	qsort_r(t->order, t->nr, sizeof(*t->order), by_ip, t);
}

static void open_table(struct orc_table *t, struct symfile *symfile)
{
	t->opened = true;
	if (!symfile || symfile_is_relocatable(symfile) ||
	    !symfile_section(symfile, ".orc_unwind_ip", &t->ips) ||
	    !symfile_section(symfile, ".orc_unwind", &t->entries))
		return;
	t->nr = t->ips.len / 4;
	if (t->nr > t->entries.len / ENTRY_LEN)
		t->nr = t->entries.len / ENTRY_LEN;
	if (t->nr > ENTRIES_MAX)
		t->nr = ENTRIES_MAX;
	t->version = find_version(t);
	sort_entries(t);
}

static struct orc_table *table_of(struct unwind *u, uint32_t image)
{
	struct images *images = &u->world->images;

	if (image >= u->nr_orcs) {
		u->orcs = xrealloc(u->orcs, images->nr, sizeof(*u->orcs));
		memset(u->orcs + u->nr_orcs, 0, (images->nr - u->nr_orcs) * sizeof(*u->orcs));
		u->nr_orcs = images->nr;
	}
	if (!u->orcs[image].opened)
		open_table(&u->orcs[image], image_symfile(images, image));
	return &u->orcs[image];
}

static struct orc_row decode(const struct orc_table *t, size_t i)
{
	uint16_t flags = entry_flags(t, i);
	struct orc_row row = { .sp_reg = flags & 15, .bp_reg = flags >> 4 & 15 };
	bool end;

	row.sp_offset = (int16_t)le16_at(t->entries.data + ENTRY_LEN * i);
	row.bp_offset = (int16_t)le16_at(t->entries.data + ENTRY_LEN * i + 2);
	if (t->version == ORC_NEW) {
		row.type = flags >> 8 & 7;
		return row;
	}
	end = flags >> (t->version == ORC_6_3 ? 11 : 10) & 1;
	row.type = (uint8_t)(ORC_CALL + (flags >> 8 & 3));
	if (row.sp_reg == BASE_NONE)
		row.type = end ? ORC_END : ORC_NONE;
	return row;
}

/* The last entry that begins at or before the address. */
static struct orc_row find_row(const struct orc_table *t, uint64_t vaddr)
{
	size_t lo = 0, hi = t->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (entry_ip(t, t->order ? t->order[mid] : mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return (struct orc_row){ .type = ORC_NONE };
	return decode(t, t->order ? t->order[lo - 1] : lo - 1);
}

/* The DWARF number of a base register. */
static uint64_t base_register(uint8_t base)
{
	static const uint8_t numbers[] = { NO_REG, NO_REG, 1, 5, 6, 7, 10, 13, 6, 7 };

	return base < sizeof(numbers) ? numbers[base] : NO_REG;
}

/* The caller's stack pointer, or the address of a trap's registers. */
static bool previous_sp(const struct walk *w, const struct state *s, const struct orc_row *row,
			uint64_t *sp)
{
	uint64_t offset = (uint64_t)(int64_t)row->sp_offset;

	if (!reg_value(s, base_register(row->sp_reg), sp))
		return false;
	if (row->sp_reg == BASE_SP_INDIRECT) { /* another stack: its top has the old pointer */
		if (!walk_word(w, *sp, sp))
			return false;
		*sp += offset;
		return true;
	}
	*sp += offset;
	return row->sp_reg != BASE_BP_INDIRECT || walk_word(w, *sp, sp);
}

/* Restores the caller's rbp. */
static void restore_bp(const struct walk *w, const struct state *s, const struct orc_row *row,
		       uint64_t sp, struct state *caller)
{
	uint64_t offset = (uint64_t)(int64_t)row->bp_offset;
	uint64_t at = sp, value;

	if (row->bp_reg == BASE_NONE) {
		if (reg_value(s, w->machine->fp, &value))
			reg_set(caller, w->machine->fp, value);
		return;
	}
	if (row->bp_reg == BASE_BP && !reg_value(s, w->machine->fp, &at))
		return;
	if (row->bp_reg != BASE_BP && row->bp_reg != BASE_PREV_SP)
		return;
	if (walk_word(w, at + offset, &value))
		reg_set(caller, w->machine->fp, value);
}

static enum step step_to_caller(const struct walk *w, struct state *s, const struct orc_row *row,
				uint64_t sp)
{
	struct state caller = { .cfa = sp };

	if (!walk_word(w, sp - 8, &caller.pc))
		return STEP_LOST;
	reg_set(&caller, w->machine->sp, sp);
	restore_bp(w, s, row, sp, &caller);
	*s = caller;
	return STEP_CALLER;
}

/* Reads what the processor pushed: rip, cs, rflags, rsp, ss. */
static enum step step_out_of_trap(const struct walk *w, struct state *s, const struct orc_row *row,
				  uint64_t frame)
{
	struct state before = { .cfa = frame, .exact = true };
	uint64_t cs, sp;

	if (!walk_word(w, frame, &before.pc) || !walk_word(w, frame + 8, &cs))
		return STEP_LOST;
	if (cs & 3) {
		*s = before;
		return STEP_USER;
	}
	if (!walk_word(w, frame + 24, &sp))
		return STEP_LOST;
	reg_set(&before, w->machine->sp, sp);
	if (row->type == ORC_REGS_PARTIAL)
		restore_bp(w, s, row, frame, &before);
	*s = before;
	return STEP_TRAP;
}

/* struct pt_regs: DWARF's register numbers in stack order. */
static void restore_registers(const struct walk *w, uint64_t regs, struct state *s)
{
	static const uint8_t order[] = { 15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5 };

	for (unsigned i = 0; i < sizeof(order); i++) {
		uint64_t value;

		if (walk_word(w, regs + 8 * i, &value))
			reg_set(s, order[i], value);
	}
}

#define IRET_FRAME 128 /* offset in struct pt_regs */

/* Takes the word on top of the stack for a return address, if a call precedes it. */
static bool step_by_top(const struct walk *w, struct state *s)
{
	uint64_t sp, pc;

	if (!reg_value(s, w->machine->sp, &sp) || !walk_word(w, sp, &pc) || !walk_is_return(w, pc))
		return false;
	s->pc = pc;
	s->cfa = sp + 8;
	s->exact = false;
	s->known &= w->machine->kept;
	reg_set(s, w->machine->sp, sp + 8);
	return true;
}

/*
 * The table has an end here, which is right at the root of a thread. But a thunk for indirect calls
 * has no frame either, and its return address is on top of the stack. And right after a system
 * call, or just before its return, the user's pc is still in a register.
 */
static enum step step_at_end(const struct walk *w, struct state *s)
{
	enum step step = trap_syscall(w, s);

	if (step != STEP_NONE)
		return step;
	return step_by_top(w, s) ? STEP_CALLER : STEP_END;
}

/*
 * A trap's registers. Linux's entry code has wrong rows in two places: in the function that saves the
 * registers, whose return address is on top of them, and right after it returns, where the rows still
 * describe what the processor pushed.
 */
static enum step step_by_registers(const struct walk *w, struct state *s, const struct orc_row *row,
				   uint64_t at)
{
	bool all = row->type == ORC_REGS;
	uint64_t sp;
	enum step step;

	if (reg_value(s, w->machine->sp, &sp) && w->context == IP_KERNEL) {
		if (all && at == sp + 8 && s->exact && step_by_top(w, s))
			return STEP_CALLER;
		if (!all && !trap_is_pushed(w, at) && trap_is_pushed(w, sp + IRET_FRAME)) {
			all = true;
			at = sp;
		}
	}
	step = step_out_of_trap(w, s, row, all ? at + IRET_FRAME : at);
	if (step == STEP_TRAP && all)
		restore_registers(w, at, s);
	return step;
}

enum step orc_step(const struct walk *w, struct state *s)
{
	struct spot *spot = walk_spot_of(w, s);
	const struct orc_row *row;
	uint64_t sp;

	if (w->machine->kind != X86_64 || !spot)
		return STEP_NONE;
	if (!spot->has_orc)
		spot->orc = find_row(table_of(w->unwind, spot->image), spot->vaddr);
	spot->has_orc = true;
	row = &spot->orc;
	if (row->type == ORC_NONE || row->type > ORC_REGS_PARTIAL)
		return STEP_NONE;
	if (row->type == ORC_END)
		return step_at_end(w, s);
	if (!previous_sp(w, s, row, &sp))
		return STEP_LOST;
	if (row->type == ORC_CALL)
		return step_to_caller(w, s, row, sp);
	return step_by_registers(w, s, row, sp);
}

void orc_release(struct unwind *u)
{
	for (size_t i = 0; i < u->nr_orcs; i++)
		free(u->orcs[i].order);
	free(u->orcs);
}
