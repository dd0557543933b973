/* SPDX-License-Identifier: GPL-2.0-or-later */
/* coverage_code: how often the code of one binary ran, by address. */
#ifndef KSCOPE_PASS_COVERAGE_CODE_H
#define KSCOPE_PASS_COVERAGE_CODE_H

#include "pass/coverage.h"

struct coverage_step {
	uint64_t addr, count; /* of each instruction from there to the next step */
};

struct coverage_code {
	struct coverage_step *steps;
	size_t nr_steps;
	uint64_t *cuts; /* where basic blocks begin, as far as the trace tells: sorted, unique */
	size_t nr_cuts, cap_cuts;
	struct coverage_count *from; /* jumps, by where they are */
	size_t nr_jumps;
	struct coverage_count *to; /* by their targets, without those that only go on */
	size_t nr_to;
};

/* All counts of one image, in the order of coverage_end(). */
void coverage_code_init(struct coverage_code *code, struct symfile *symfile,
			const struct coverage_count *counts, size_t nr);
void coverage_code_release(struct coverage_code *code);
/* Adds a place where a block begins. Call coverage_code_sort() before using them. */
void coverage_code_cut(struct coverage_code *code, uint64_t addr);
void coverage_code_sort(struct coverage_code *code);
/* How often the instruction at an address ran. */
uint64_t coverage_code_at(const struct coverage_code *code, uint64_t addr);
/* Whether any code from an address to another ran. */
bool coverage_code_any(const struct coverage_code *code, uint64_t addr, uint64_t end);
/* How often the instruction at an address jumped. */
uint64_t coverage_code_jumped(const struct coverage_code *code, uint64_t addr);
/* Whether code from an address to another jumped to the selection from outside. */
bool coverage_code_came(const struct coverage_code *code, uint64_t addr, uint64_t end);
/* How often code from `lo` to `hi` jumped to an address. */
uint64_t coverage_code_back(const struct coverage_code *code, uint64_t addr, uint64_t lo,
			    uint64_t hi);
/* The first cut at an address or behind it: its index, or nr_cuts. */
size_t coverage_code_next_cut(const struct coverage_code *code, uint64_t addr);

#endif
