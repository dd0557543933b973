// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/callgrind_costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void callgrind_costs_init(struct callgrind_costs *costs, struct world *world, size_t nr_values,
			  bool no_inline)
{
	*costs = (struct callgrind_costs){
		.world = world,
		.no_inline = no_inline,
		.nr_values = nr_values,
		.nr_functions = 1,
		.nr = 1,
		.nr_parts = 1,
		.frames = xcalloc(world->frames.nr, sizeof(*costs->frames)),
		.calls = xcalloc(world->stacks.nr, sizeof(*costs->calls)),
	};
	GROW(costs->functions, 1, costs->cap_functions);
	costs->functions[0] = (struct callgrind_function){ 0 };
	GROW(costs->all, 1, costs->cap);
	costs->all[0] = (struct callgrind_cost){ 0 };
}

void callgrind_costs_release(struct callgrind_costs *costs)
{
	free(costs->functions);
	free(costs->all);
	free(costs->values);
	free(costs->parts);
	free(costs->frames);
	free(costs->calls);
	free(costs->path);
	hash_release(&costs->function_index);
	hash_release(&costs->index);
	memset(costs, 0, sizeof(*costs));
}

uint32_t callgrind_function(struct callgrind_costs *costs, uint32_t name, uint32_t binary,
			    uint32_t file)
{
	uint32_t *at = hash_at(&costs->function_index, (struct hash_key){ name, binary });

	if (!*at) {
		*at = (uint32_t)costs->nr_functions;
		GROW(costs->functions, costs->nr_functions + 1, costs->cap_functions);
		costs->functions[costs->nr_functions++] =
			(struct callgrind_function){ .name = name, .binary = binary };
	}
	if (!costs->functions[*at].file)
		costs->functions[*at].file = file;
	return *at;
}

/* The cost of a line of a function, or of its call of `callee` there. */
static uint32_t cost_of(struct callgrind_costs *costs, const struct callgrind_part *at,
			uint32_t callee)
{
	struct hash_key key = { (uint64_t)at->function << 32 | callee,
				(uint64_t)at->file << 32 | at->line };
	uint32_t *cost = hash_at(&costs->index, key);

	if (*cost)
		return *cost;
	*cost = (uint32_t)costs->nr;
	GROW(costs->all, costs->nr + 1, costs->cap);
	costs->all[costs->nr++] = (struct callgrind_cost){ .function = at->function,
							   .file = at->file,
							   .line = at->line,
							   .callee = callee,
							   .values = costs->used_values };
	GROW(costs->values, costs->used_values + costs->nr_values, costs->cap_values);
	memset(costs->values + costs->used_values, 0, costs->nr_values * sizeof(*costs->values));
	costs->used_values += costs->nr_values;
	return *cost;
}

static const struct callgrind_frame *frame_of(struct callgrind_costs *costs, uint32_t handle)
{
	struct callgrind_frame *frame = &costs->frames[handle];
	const struct symbol *symbols;
	size_t nr;

	if (frame->first)
		return frame;
	symbols = frame_symbols(costs->world, handle, &nr);
	frame->first = (uint32_t)costs->nr_parts;
	/* Without inlined functions, their lines belong to the function around them. */
	frame->nr = costs->no_inline ? 1 : (uint32_t)nr;
	GROW(costs->parts, costs->nr_parts + frame->nr, costs->cap_parts);
	for (size_t i = 0; i < frame->nr; i++) {
		const struct symbol *function = &symbols[costs->no_inline ? nr - 1 : i];

		costs->parts[costs->nr_parts++] = (struct callgrind_part){
			.function = callgrind_function(costs, function->name,
						       frame_binary(costs->world, handle),
						       function->file),
			.file = symbols[i].file,
			.line = symbols[i].line,
		};
	}
	return frame;
}

struct adding { /* a stack */
	struct callgrind_costs *costs;
	const struct tally_entry *entry;
	size_t column;
	uint64_t number;
};

static void add_values(const struct adding *a, uint32_t cost)
{
	uint64_t *values = a->costs->values + a->costs->all[cost].values;

	if (a->column + 1 < a->costs->nr_values)
		values[a->column] += a->entry->weight;
	values[a->costs->nr_values - 1] += a->entry->samples;
}

/*
 * The cost of a call counts only where its callee is outermost in the stack: readers add up the calls of a function,
 * and so get its total.
 */
static void add_call(const struct adding *a, uint32_t handle)
{
	struct callgrind_cost *cost = &a->costs->all[handle];
	struct callgrind_function *callee = &a->costs->functions[cost->callee];

	if (cost->seen != a->number) {
		cost->seen = a->number;
		cost->calls += a->entry->samples;
	}
	if (callee->seen == a->number)
		return;
	callee->seen = a->number;
	add_values(a, handle);
}

/* The calls inside a frame. Returns the innermost part. */
static struct callgrind_part add_inlined(const struct adding *a,
					 const struct callgrind_frame *frame)
{
	for (uint32_t i = frame->first + frame->nr - 1; i > frame->first; i--) {
		struct callgrind_part *part = &a->costs->parts[i];

		if (!part->call)
			part->call = cost_of(a->costs, part, a->costs->parts[i - 1].function);
		add_call(a, part->call);
	}
	return a->costs->parts[frame->first];
}

/* The call by a task depends on the task, others only on the stack. */
static uint32_t call_of(struct callgrind_costs *costs, const struct callgrind_part *caller,
			uint32_t stack, uint32_t callee)
{
	if (!costs->world->stacks.all[stack].parent)
		return cost_of(costs, caller, callee);
	if (!costs->calls[stack])
		costs->calls[stack] = cost_of(costs, caller, callee);
	return costs->calls[stack];
}

/* Samples without a stack, of which only the task is known, as in a report. */
static struct callgrind_part add_nowhere(const struct adding *a, const struct callgrind_part *task)
{
	uint32_t name = str_intern_z(a->costs->world->strings, "[no stack]");
	struct callgrind_part nowhere = { .function = callgrind_function(a->costs, name, 0, 0) };

	add_call(a, cost_of(a->costs, task, nowhere.function));
	return nowhere;
}

void callgrind_costs_add(struct callgrind_costs *costs, const struct tally_entry *entry,
			 uint32_t task, size_t column)
{
	const struct stack *stacks = costs->world->stacks.all;
	struct adding a = { costs, entry, column, ++costs->nr_stacks };
	struct callgrind_part at = { .function = task };
	size_t depth = 0;

	costs->functions[task].seen = a.number;
	for (uint32_t s = entry->stack; s; s = stacks[s].parent) {
		GROW(costs->path, depth + 1, costs->cap_path);
		costs->path[depth++] = s;
	}
	if (!depth)
		at = add_nowhere(&a, &at);
	while (depth) {
		uint32_t stack = costs->path[--depth];
		const struct callgrind_frame *frame = frame_of(costs, stacks[stack].frame);
		uint32_t outermost = costs->parts[frame->first + frame->nr - 1].function;

		add_call(&a, call_of(costs, &at, stack, outermost));
		at = add_inlined(&a, frame);
	}
	add_values(&a, cost_of(costs, &at, 0));
}

static int by_place(const void *va, const void *vb, void *arg)
{
	const struct callgrind_cost *a = va, *b = vb;
	const struct callgrind_function *functions = arg;
	uint32_t own = functions[a->function].file;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->file != b->file && (a->file == own || b->file == own))
		return a->file == own ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->callee < b->callee ? -1 : a->callee > b->callee;
}

void callgrind_costs_sort(struct callgrind_costs *costs)
{
	if (costs->nr > 2)
		qsort_r(costs->all + 1, costs->nr - 1, sizeof(*costs->all), by_place,
			costs->functions);
}
