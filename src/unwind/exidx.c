// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rules of 32-bit Arm's exception handling ABI. .ARM.exidx has two words for each range of
 * code, sorted: its start, and its rules or their address in .ARM.extab. Addresses have 31 bits and
 * are relative to the word that contains them. Rules are bytes that undo a prologue, last
 * instruction first. Linux names the sections .ARM.unwind_idx and .ARM.unwind_tab.
 *
 * The rules hold where the function calls another. Elsewhere, for instance at its entry, its frame
 * may be missing; link.c reads the code to find out.
 */
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"
#include "unwind/walk.h"

#define ENTRY_BYTES 8
#define CANT_UNWIND 1
#define MAX_RULES (4 * 256) /* bytes: the longest that an entry can have, with room */
#define ARM_SP 13
#define ARM_LR 14
#define ARM_PC 15

struct exidx_table {
	bool opened;
	/* Most code has rules. If so, code without them has no caller. */
	bool full;
	struct sym_section index, rules;
};

struct bytes {
	uint8_t at[MAX_RULES];
	size_t nr, next;
};

/* ---- the tables ---- */

static uint32_t word_of(const struct sym_section *section, size_t offset)
{
	return le32_at(section->data + offset);
}

/* The address in the word at an address. */
static uint64_t relative(uint64_t at, uint32_t word)
{
	uint32_t distance = word << 1;

	return (uint32_t)(at + (uint32_t)((int32_t)distance >> 1));
}

static size_t nr_entries(const struct exidx_table *t)
{
	return t->index.len / ENTRY_BYTES;
}

static uint64_t entry_start(const struct exidx_table *t, size_t i)
{
	return relative(t->index.addr + ENTRY_BYTES * i, word_of(&t->index, ENTRY_BYTES * i)) &
	       ~UINT64_C(1);
}

static uint32_t entry_rules(const struct exidx_table *t, size_t i)
{
	return word_of(&t->index, ENTRY_BYTES * i + 4);
}

static bool is_full(const struct exidx_table *t)
{
	uint64_t with = 0, without = 0;

	for (size_t i = 0; i + 1 < nr_entries(t); i++) {
		uint64_t len = entry_start(t, i + 1) - entry_start(t, i);

		*(entry_rules(t, i) == CANT_UNWIND ? &without : &with) += len;
	}
	return with > without;
}

static void open_table(struct exidx_table *t, struct symfile *symfile)
{
	t->opened = true;
	if (!symfile || symfile_is_object(symfile))
		return;
	if (!symfile_section(symfile, ".ARM.exidx", &t->index) &&
	    !symfile_section(symfile, ".ARM.unwind_idx", &t->index))
		return;
	if (!symfile_section(symfile, ".ARM.extab", &t->rules))
		symfile_section(symfile, ".ARM.unwind_tab", &t->rules);
	t->full = is_full(t);
}

static const struct exidx_table *table_of(struct unwind *u, uint32_t image)
{
	struct images *images = &u->world->images;

	if (image >= u->nr_exidxs) {
		u->exidxs = xrealloc(u->exidxs, images->nr, sizeof(*u->exidxs));
		memset(u->exidxs + u->nr_exidxs, 0,
		       (images->nr - u->nr_exidxs) * sizeof(*u->exidxs));
		u->nr_exidxs = images->nr;
	}
	if (!u->exidxs[image].opened)
		open_table(&u->exidxs[image], image_symfile(images, image));
	return &u->exidxs[image];
}

/* The last entry that begins at or before the address. */
static bool find_entry(const struct exidx_table *t, uint64_t vaddr, size_t *found)
{
	size_t lo = 0, hi = nr_entries(t);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (entry_start(t, mid) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*found = lo - 1;
	return lo;
}

static void add_bytes(struct bytes *to, uint32_t word, unsigned nr)
{
	while (nr--)
		to->at[to->nr++] = (uint8_t)(word >> 8 * nr);
}

/* Models 1 and 2, and most languages' own, have the number of words that follow. */
static bool add_words(const struct exidx_table *t, size_t offset, size_t nr, struct bytes *to)
{
	if (nr > (t->rules.len - offset) / 4)
		return false;
	for (size_t i = 0; i < nr; i++)
		add_bytes(to, word_of(&t->rules, offset + 4 * i), 4);
	return true;
}

static bool read_table_rules(const struct exidx_table *t, uint64_t address, struct bytes *to)
{
	uint64_t at = address - t->rules.addr;
	uint32_t word;

	if (at > t->rules.len || t->rules.len - at < 4)
		return false;
	word = word_of(&t->rules, at);
	if (!(word >> 31)) { /* a routine of the language comes first */
		if (t->rules.len - at < 8)
			return false;
		word = word_of(&t->rules, at + 4);
		add_bytes(to, word, 3);
		return add_words(t, at + 8, word >> 24, to);
	}
	if (word >> 24 == 0x80) {
		add_bytes(to, word, 3);
		return true;
	}
	if (word >> 24 != 0x81 && word >> 24 != 0x82)
		return false;
	add_bytes(to, word, 2);
	return add_words(t, at + 4, word >> 16 & 0xff, to);
}

static bool read_rules(const struct exidx_table *t, size_t entry, struct bytes *to)
{
	uint32_t word = entry_rules(t, entry);

	to->nr = to->next = 0;
	if (!(word >> 31))
		return read_table_rules(t, relative(t->index.addr + ENTRY_BYTES * entry + 4, word),
					to);
	add_bytes(to, word, 3);
	return word >> 24 == 0x80;
}

/* ---- the rules ---- */

struct undone {
	const struct walk *walk;
	struct state state;
	uint64_t vsp;
	uint32_t popped; /* registers */
};

/* After the end, every byte is "finish". */
static uint8_t next_byte(struct bytes *from)
{
	return from->next < from->nr ? from->at[from->next++] : 0xb0;
}

static bool pop(struct undone *f, uint32_t mask)
{
	uint64_t at = f->vsp, value;

	for (unsigned nr = 0; nr < 16; nr++) {
		if (!(mask >> nr & 1))
			continue;
		if (!walk_word(f->walk, at, &value))
			return false;
		reg_set(&f->state, nr, value);
		at += 4;
	}
	f->popped |= mask;
	f->vsp = mask >> ARM_SP & 1 ? f->state.reg[ARM_SP] : at;
	return true;
}

static uint64_t next_uleb(struct bytes *from)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = next_byte(from);
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 35 && from->next < from->nr);
	return value;
}

/* The low 4 bits of the next byte: how many double registers, minus 1. */
static uint64_t next_doubles(struct bytes *from)
{
	return 8 * ((next_byte(from) & 15) + UINT64_C(1));
}

/* 0xb1 to 0xbf */
static bool apply_b(struct undone *f, uint8_t op, struct bytes *from)
{
	uint8_t mask;

	switch (op) {
	case 0xb1: mask = next_byte(from); return mask && mask < 16 && pop(f, mask);
	case 0xb2: f->vsp += 0x204 + (next_uleb(from) << 2); return true;
	case 0xb3: f->vsp += next_doubles(from) + 4; return true;
	case 0xb4: f->vsp += 4; return true; /* the code that authenticates the return address */
	case 0xb5: return true;		     /* vsp is used in that code */
	case 0xb6:
	case 0xb7: return false;
	}
	f->vsp += 8 * ((op & 7) + UINT64_C(1)) + 4;
	return true;
}

/* 0xc0 to 0xff: registers of coprocessors, only their size matters */
static bool apply_c(struct undone *f, uint8_t op, struct bytes *from)
{
	uint8_t mask;

	if (op == 0xc6 || op == 0xc8 || op == 0xc9) {
		f->vsp += next_doubles(from);
		return true;
	}
	if (op == 0xc7) {
		mask = next_byte(from);
		f->vsp += 4 * (uint64_t)__builtin_popcount(mask);
		return mask && mask < 16;
	}
	f->vsp += 8 * ((op & 7) + UINT64_C(1));
	return op < 0xc6 || (op & 0xf8) == 0xd0;
}

static bool apply(struct undone *f, uint8_t op, struct bytes *from)
{
	uint32_t mask;

	switch (op >> 4) {
	case 0x0 ... 0x3: f->vsp += (op & 63) * 4 + 4; return true;
	case 0x4 ... 0x7: f->vsp -= (op & 63) * 4 + 4; return true;
	case 0x8:
		mask = (uint32_t)((op & 15) << 8 | next_byte(from)) << 4;
		return mask && pop(f, mask); /* no register: refuse to unwind */
	case 0x9:
		return (op & 15) != ARM_SP && (op & 15) != ARM_PC &&
		       reg_value(&f->state, op & 15, &f->vsp);
	case 0xa:
		mask = ((UINT32_C(2) << (op & 7)) - 1) << 4;
		return pop(f, mask | (op & 8 ? 1 << ARM_LR : 0));
	case 0xb: return apply_b(f, op, from);
	default: return apply_c(f, op, from);
	}
}

static bool apply_all(struct undone *f, struct bytes *from)
{
	uint8_t op;

	while ((op = next_byte(from)) != 0xb0) {
		if (!apply(f, op, from))
			return false;
		f->vsp = (uint32_t)f->vsp;
	}
	return true;
}

/* ---- a step ---- */

static enum step finish(const struct walk *w, struct undone *f, struct state *s)
{
	struct state caller = f->state;

	if (!reg_value(&caller, f->popped >> ARM_PC & 1 ? ARM_PC : ARM_LR, &caller.pc))
		return STEP_LOST;
	caller.known &= w->machine->kept | f->popped;
	caller.known &= (1ULL << w->machine->nr) - 1;
	caller.exact = caller.first = false;
	caller.by_record |= f->popped >> w->machine->fp & 1;
	caller.cfa = f->vsp;
	reg_set(&caller, ARM_SP, f->vsp);
	*s = caller;
	return caller.pc ? STEP_CALLER : STEP_END;
}

static bool at_entry(const struct walk *w, const struct state *s)
{
	const struct spot *spot = s->exact ? walk_spot_named(w, s->pc) : NULL;

	return spot && spot->function == spot->vaddr;
}

/* Is nothing saved yet, or no longer? */
static bool has_no_frame(const struct walk *w, const struct state *s, const struct undone *f)
{
	if (at_entry(w, s))
		return true;
	return s->exact && f->popped >> ARM_LR & 3 && link_at(w, s->pc) == LINK_LIVE;
}

/* Code that cannot be unwound has no caller, or is assembly that calls nothing. */
static bool is_root(const struct walk *w, const struct state *s, const struct exidx_table *t)
{
	return t->full && !at_entry(w, s) && (!s->exact || link_at(w, s->pc) != LINK_LIVE);
}

enum step exidx_step(const struct walk *w, struct state *s)
{
	struct undone f = { .walk = w, .state = *s };
	struct spot *spot = w->machine->kind == ARM ? walk_spot_of(w, s) : NULL;
	const struct exidx_table *t;
	struct bytes rules;
	bool complete;
	size_t entry;

	if (!spot)
		return STEP_NONE;
	t = table_of(w->unwind, spot->image);
	if (!find_entry(t, spot->vaddr, &entry))
		return STEP_NONE;
	if (entry_rules(t, entry) == CANT_UNWIND)
		return is_root(w, s, t) ? STEP_END : STEP_NONE;
	if (!read_rules(t, entry, &rules) || !reg_value(s, ARM_SP, &f.vsp))
		return STEP_NONE;
	complete = apply_all(&f, &rules);
	if (has_no_frame(w, s, &f))
		f = (struct undone){ .walk = w, .state = *s, .vsp = s->reg[ARM_SP] };
	else if (!complete || (!(f.popped >> ARM_LR & 3) && !link_may_return(w, s)))
		return STEP_NONE;
	return finish(w, &f, s);
}

void exidx_release(struct unwind *u)
{
	free(u->exidxs);
}
