/* SPDX-License-Identifier: GPL-2.0-or-later */
/* callgrind_costs: sums up stacks by line of source and by call, so that each function's inclusive cost is its total. */
#ifndef KSCOPE_WRITE_CALLGRIND_COSTS_H
#define KSCOPE_WRITE_CALLGRIND_COSTS_H

#include "base/hash.h"
#include "model/world.h"
#include "pass/tally.h"

struct callgrind_function {
	uint32_t name,
		binary; /* handles; a task, too, is a function, which calls the outermost ones */
	uint32_t file;	/* where its first line was seen; 0: unknown */
	uint64_t seen;	/* in the stack of this number */
};

struct callgrind_cost {
	uint32_t function, file, line;
	uint32_t callee; /* 0: the function's own cost */
	uint64_t calls;	 /* samples with this call in their stacks */
	uint64_t seen;
	size_t values; /* index of the first */
};

/* A function at a frame. There are several if calls are inlined there. */
struct callgrind_part {
	uint32_t function, file, line;
	uint32_t call; /* the cost of the call to the part before it; 0: not known yet */
};

struct callgrind_costs {
	struct world *world;
	bool no_inline;
	size_t nr_values; /* of each cost: a weight for each event, then samples */
	struct callgrind_function *functions; /* [0] is none */
	size_t nr_functions, cap_functions;
	struct hash function_index; /* (name, binary) */
	struct callgrind_cost *all; /* [0] is none */
	size_t nr, cap;
	uint64_t *values;
	size_t used_values, cap_values;
	struct hash index; /* (function, callee, file, line) */

	struct callgrind_part *parts; /* [0] is none */
	size_t nr_parts, cap_parts;
	struct callgrind_frame {
		uint32_t first; /* of its parts, innermost first; 0: not looked up yet */
		uint32_t nr;
	} * frames;	 /* by frame */
	uint32_t *calls; /* by stack: the cost of the call of its frame; 0: not known yet */
	uint32_t *path;	 /* the stacks from the leaf to the root */
	size_t cap_path;
	uint64_t nr_stacks; /* that were added */
};

void callgrind_costs_init(struct callgrind_costs *costs, struct world *world, size_t nr_values,
			  bool no_inline);
void callgrind_costs_release(struct callgrind_costs *costs);
/* The function with this name. Adds it if it is new. */
uint32_t callgrind_function(struct callgrind_costs *costs, uint32_t name, uint32_t binary,
			    uint32_t file);
/* Adds a stack below `task`, which is a function. `column`: the value that gets the weight. */
void callgrind_costs_add(struct callgrind_costs *costs, const struct tally_entry *entry,
			 uint32_t task, size_t column);
/* In the order of the output: by function, its own file first, and own costs before calls. */
void callgrind_costs_sort(struct callgrind_costs *costs);

#endif
