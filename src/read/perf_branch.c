// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perf_branch.h"

#define SYSCALL_SIZE 2 /* bytes of the instruction, which is x86's */

/* The flags that tell what kind of branch it is. */
#define KIND                                                                                     \
	(PERF_IS_CALL | PERF_IS_RETURN | PERF_IS_CONDITIONAL | PERF_IS_SYSCALL | PERF_IS_ASYNC | \
	 PERF_IS_INTERRUPT | PERF_IS_ABORT | PERF_IS_VMENTRY | PERF_IS_VMEXIT)

static bool is_plain_end(const struct perf_branch *branch)
{
	return branch->flags & PERF_IS_END && !(branch->flags & KIND);
}

static enum branch_kind kind_of(const struct perf_branch *branch)
{
	uint32_t flags = branch->flags;

	if (flags & PERF_IS_BEGIN)
		return BRANCH_BEGIN;
	/* In a program, that is an interrupt, if the kernel is not traced. */
	if (is_plain_end(branch))
		return branch->from_kernel ? BRANCH_END : BRANCH_ENTER;
	if (flags & (PERF_IS_VMENTRY | PERF_IS_VMEXIT | PERF_IS_ABORT))
		return BRANCH_JUMP;
	if (flags & (PERF_IS_INTERRUPT | PERF_IS_SYSCALL | PERF_IS_ASYNC))
		return flags & PERF_IS_RETURN ? BRANCH_LEAVE : BRANCH_ENTER;
	if (flags & PERF_IS_CALL)
		return BRANCH_CALL;
	return flags & PERF_IS_RETURN ? BRANCH_RETURN : BRANCH_JUMP;
}

static uint64_t next_of(const struct perf_branch *branch, enum branch_kind kind)
{
	if (kind != BRANCH_CALL && kind != BRANCH_ENTER)
		return 0;
	if (kind == BRANCH_ENTER && (branch->flags & PERF_IS_ASYNC || is_plain_end(branch)))
		return branch->from;
	if (branch->size)
		return branch->from + branch->size;
	return branch->flags & PERF_IS_SYSCALL ? branch->from + SYSCALL_SIZE : 0;
}

static bool to_kernel(const struct perf_branch *branch, enum branch_kind kind, uint64_t to)
{
	if (to)
		return branch->to_kernel;
	return kind == BRANCH_ENTER || (kind != BRANCH_LEAVE && branch->from_kernel);
}

struct event_branch perf_branch(const struct perf_branch *branch)
{
	enum branch_kind kind = kind_of(branch);
	uint64_t to = branch->flags & PERF_IS_END ? 0 : branch->to;

	return (struct event_branch){
		.kind = kind,
		.by_thread = true,
		.direct = branch->flags & PERF_IS_CONDITIONAL,
		.context = to_kernel(branch, kind, to) ? IP_KERNEL : IP_USER,
		.from = kind == BRANCH_BEGIN ? 0 : branch->from,
		.to = to,
		.instructions = branch->instructions,
		.cycles = branch->cycles,
		.next = next_of(branch, kind),
	};
}

void perf_branch_back(struct perf_away *away, struct event_branch *branch)
{
	bool kernel = branch->context == IP_KERNEL;

	if (branch->kind == BRANCH_ENTER && kernel && branch->to) {
		*away = (struct perf_away){ branch->to, branch->next };
	} else if (branch->kind == BRANCH_BEGIN && away->back && kernel) {
		branch->kind = BRANCH_JUMP;
		branch->from = away->at;
		away->at = branch->to;
	} else {
		if (branch->kind == BRANCH_BEGIN && away->back && branch->to == away->back)
			branch->kind = BRANCH_LEAVE;
		away->back = 0;
	}
}
