/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code: which binary or function an address of a sample is in, from what perf says about it. Makes maps and
 * symbols, as the perf.data file itself would have.
 */
#ifndef KSCOPE_DLFILTER_CODE_H
#define KSCOPE_DLFILTER_CODE_H

#include <stdbool.h>

#include "abi.h"
#include "base/hash.h"
#include "model/event.h"

struct code {
	struct code_page *pages;
	size_t nr, cap;
	struct hash page_at;
	struct hash generations; /* of maps, by process: each system call may change them */
	struct hash files;	 /* by path: 2 if it is a file */
	struct hash sizes;	 /* of call instructions, by address */
};

void code_release(struct code *code);
/* The thread was in the kernel, so the maps of its process may be others. */
void code_changed(struct code *code, uint32_t pid);
/* Whether perf has to be asked where an address is. */
bool code_asks(struct code *code, uint32_t pid, uint64_t address);
/* Takes the answer. Returns true if it is news, and fills in an event of that process. */
bool code_learn(struct code *code, uint32_t pid, uint64_t address,
		const struct perf_dlfilter_al *al, struct event *ev);
/* The size of the instruction at an address; 0: unknown. A cached answer of `ask`. */
uint32_t code_size(struct code *code, uint32_t pid, uint64_t address, uint32_t (*ask)(void *ctx),
		   void *ctx);

#endif
