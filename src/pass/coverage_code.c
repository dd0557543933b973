// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/coverage_code.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_addr(const void *va, const void *vb)
{
	const struct coverage_step *a = va, *b = vb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int by_value(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

static int by_target(const void *va, const void *vb)
{
	const struct coverage_count *a = va, *b = vb;

	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	return a->a < b->a ? -1 : a->a > b->a;
}

/* Turns counts of begins and ends into the count of each address. */
static void make_steps(struct coverage_code *code)
{
	uint64_t count = 0;
	size_t nr = 0;

	if (code->nr_steps)
		qsort(code->steps, code->nr_steps, sizeof(*code->steps), by_addr);
	for (size_t i = 0; i < code->nr_steps; i++) {
		count += code->steps[i].count;
		if (nr && code->steps[nr - 1].addr == code->steps[i].addr)
			code->steps[nr - 1].count = count;
		else
			code->steps[nr++] = (struct coverage_step){ code->steps[i].addr, count };
	}
	code->nr_steps = nr;
}

static void add_steps(struct coverage_code *code, uint64_t addr, uint64_t end, uint64_t count)
{
	code->steps[code->nr_steps++] = (struct coverage_step){ addr, count };
	code->steps[code->nr_steps++] = (struct coverage_step){ end, 0 - count };
}

/* QEMU jumps back to a string instruction with a rep prefix; it ran once. */
static void join_repeated(struct coverage_code *code, struct symfile *symfile,
			  const struct coverage_count *jump)
{
	struct insn_code insn;

	if (jump->a != jump->b || jump->kind == COVERAGE_LEFT)
		return;
	symfile_insns(symfile, jump->a, &insn);
	if (insn.bytes && insn_is_string(&insn))
		add_steps(code, jump->a, jump->a + insn_size(&insn), 0 - jump->count);
}

/* Code may also continue without a branch, where an emulator split it. */
static bool goes_on(struct symfile *symfile, const struct coverage_count *jump)
{
	struct insn_code insn;

	if (jump->b < jump->a || jump->b - jump->a > INSN_MAX)
		return false;
	symfile_insns(symfile, jump->a, &insn);
	return insn.bytes && (jump->b - jump->a == insn_size(&insn) ||
			      (jump->a == jump->b && insn_is_string(&insn)));
}

static void find_targets(struct coverage_code *code, struct symfile *symfile)
{
	code->to = xrealloc(code->to, code->nr_jumps + 1, sizeof(*code->to));
	code->nr_to = 0;
	for (size_t i = 0; i < code->nr_jumps; i++) {
		if (code->from[i].kind != COVERAGE_LEFT && !goes_on(symfile, &code->from[i]))
			code->to[code->nr_to++] = code->from[i];
	}
	if (code->nr_to)
		qsort(code->to, code->nr_to, sizeof(*code->to), by_target);
}

/* ---- jumps that are missing in the trace ---- */

/* How many runs begin at an address. `counts` are those of one kind. */
static uint64_t begun_at(const struct coverage_count *counts, size_t nr, uint64_t addr)
{
	size_t lo = 0, hi = nr;
	uint64_t count = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (counts[mid].a < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < nr && counts[lo].a == addr; lo++)
		count += counts[lo].count;
	return count;
}

/* The jump at the end of a run, if the last instruction is one. */
static bool last_jump(struct symfile *symfile, const struct coverage_count *run,
		      struct coverage_count *jump)
{
	struct insn_code insn;
	uint64_t addr = run->a;

	symfile_insns(symfile, addr, &insn);
	while (insn.bytes) {
		size_t size = insn_size(&insn);

		if (!size || size > run->b - addr)
			return false;
		if (addr + size == run->b) {
			*jump = (struct coverage_count){ .a = addr, .kind = COVERAGE_JUMPED };
			return insn_jump(&insn, addr, &jump->b) != INSN_JUMP_NONE;
		}
		addr += size;
		insn.bytes += size;
		insn.len -= size;
	}
	return false;
}

/*
 * If an interrupt follows a jump immediately, a trace may contain only the interrupt. When the interrupt returns, the
 * code at the jump's target then begins without a jump to it.
 */
static void add_interrupted(struct coverage_code *code, struct symfile *symfile,
			    const struct coverage_count *counts, size_t interrupted, size_t runs)
{
	struct hash used = { 0 }; /* by target: how many of them */

	for (size_t i = 0; i < interrupted; i++) {
		struct coverage_count jump;
		uint64_t begun, came;
		uint32_t *taken;

		if (!last_jump(symfile, &counts[i], &jump))
			continue;
		begun = begun_at(counts, interrupted, jump.b) +
			begun_at(counts + interrupted, runs - interrupted, jump.b);
		came = coverage_code_back(code, jump.b, 0, UINT64_MAX);
		taken = hash_at(&used, (struct hash_key){ jump.b, 0 });
		if (begun <= came + *taken)
			continue;
		jump.count = begun - came - *taken;
		if (jump.count > counts[i].count)
			jump.count = counts[i].count;
		*taken += (uint32_t)jump.count;
		code->from[code->nr_jumps++] = jump;
	}
	hash_release(&used);
}

static int by_source(const void *va, const void *vb)
{
	const struct coverage_count *a = va, *b = vb;

	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return a->b < b->b ? -1 : a->b > b->b;
}

static void find_jumps(struct coverage_code *code, struct symfile *symfile,
		       const struct coverage_count *counts, size_t runs, size_t nr)
{
	size_t interrupted = 0;

	while (interrupted < runs && counts[interrupted].kind == COVERAGE_RAN)
		interrupted++;
	code->nr_jumps = nr - runs;
	code->from = xcalloc(code->nr_jumps + interrupted, sizeof(*code->from));
	for (size_t i = 0; i < code->nr_jumps; i++)
		code->from[i] = counts[runs + i];
	find_targets(code, symfile);
	add_interrupted(code, symfile, counts, interrupted, runs);
	if (code->nr_jumps)
		qsort(code->from, code->nr_jumps, sizeof(*code->from), by_source);
	find_targets(code, symfile);
}

void coverage_code_init(struct coverage_code *code, struct symfile *symfile,
			const struct coverage_count *counts, size_t nr)
{
	size_t runs = 0;

	while (runs < nr && counts[runs].kind < COVERAGE_JUMPED)
		runs++;
	*code = (struct coverage_code){ 0 };
	code->steps = xcalloc(2 * nr, sizeof(*code->steps));
	for (size_t i = 0; i < runs; i++) {
		add_steps(code, counts[i].a, counts[i].b, counts[i].count);
		if (counts[i].kind == COVERAGE_RAN_OUT)
			coverage_code_cut(code, counts[i].b);
	}
	for (size_t i = runs; i < nr; i++)
		join_repeated(code, symfile, &counts[i]);
	make_steps(code);
	find_jumps(code, symfile, counts, runs, nr);
	for (size_t i = 0; i < code->nr_to; i++)
		coverage_code_cut(code, code->to[i].b);
}

void coverage_code_release(struct coverage_code *code)
{
	free(code->steps);
	free(code->cuts);
	free(code->from);
	free(code->to);
	memset(code, 0, sizeof(*code));
}

void coverage_code_cut(struct coverage_code *code, uint64_t addr)
{
	GROW(code->cuts, code->nr_cuts + 1, code->cap_cuts);
	code->cuts[code->nr_cuts++] = addr;
}

void coverage_code_sort(struct coverage_code *code)
{
	size_t nr = 0;

	if (code->nr_cuts)
		qsort(code->cuts, code->nr_cuts, sizeof(*code->cuts), by_value);
	for (size_t i = 0; i < code->nr_cuts; i++) {
		if (!nr || code->cuts[nr - 1] != code->cuts[i])
			code->cuts[nr++] = code->cuts[i];
	}
	code->nr_cuts = nr;
}

/* The index of the first element whose number, at this offset in it, is `least` or more. They are in its order. */
static size_t first_from(const void *all, size_t nr, size_t size, size_t offset, uint64_t least)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const char *at = (const char *)all + mid * size + offset;

		if (*(const uint64_t *)at < least)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#define FIRST_FROM(all, nr, member, least) \
	first_from(all, nr, sizeof(*(all)), offsetof(__typeof__(*(all)), member), least)

/* The number of steps up to an address, including it. */
static size_t steps_upto(const struct coverage_code *code, uint64_t addr)
{
	return addr == UINT64_MAX ? code->nr_steps
				  : FIRST_FROM(code->steps, code->nr_steps, addr, addr + 1);
}

uint64_t coverage_code_at(const struct coverage_code *code, uint64_t addr)
{
	size_t nr = steps_upto(code, addr);

	return nr ? code->steps[nr - 1].count : 0;
}

bool coverage_code_any(const struct coverage_code *code, uint64_t addr, uint64_t end)
{
	size_t i = steps_upto(code, addr);

	if (i && code->steps[i - 1].count)
		return true;
	for (; i < code->nr_steps && code->steps[i].addr < end; i++) {
		if (code->steps[i].count)
			return true;
	}
	return false;
}

uint64_t coverage_code_jumped(const struct coverage_code *code, uint64_t addr)
{
	size_t i = FIRST_FROM(code->from, code->nr_jumps, a, addr);
	uint64_t count = 0;

	for (; i < code->nr_jumps && code->from[i].a == addr; i++)
		count += code->from[i].kind == COVERAGE_CAME ? 0 : code->from[i].count;
	return count;
}

bool coverage_code_came(const struct coverage_code *code, uint64_t addr, uint64_t end)
{
	size_t i = FIRST_FROM(code->from, code->nr_jumps, a, addr);

	for (; i < code->nr_jumps && code->from[i].a < end; i++) {
		if (code->from[i].kind == COVERAGE_CAME)
			return true;
	}
	return false;
}

uint64_t coverage_code_back(const struct coverage_code *code, uint64_t addr, uint64_t from,
			    uint64_t end)
{
	size_t i = FIRST_FROM(code->to, code->nr_to, b, addr);
	uint64_t count = 0;

	for (; i < code->nr_to && code->to[i].b == addr; i++) {
		if (code->to[i].a >= from && code->to[i].a < end)
			count += code->to[i].count;
	}
	return count;
}

size_t coverage_code_next_cut(const struct coverage_code *code, uint64_t addr)
{
	return first_from(code->cuts, code->nr_cuts, sizeof(*code->cuts), 0, addr);
}
