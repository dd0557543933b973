// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/role.h"

#define USED 0x80000000U

const char *const html_categories[HTML_CATEGORIES] = {
	[HTML_OTHER] = "other",		[HTML_USER] = "user", [HTML_KERNEL] = "kernel",
	[HTML_INTERRUPT] = "interrupt", [HTML_IDLE] = "idle",
};

void html_tables_init(struct html_tables *t, struct world *world, bool no_inline)
{
	*t = (struct html_tables){ .world = world, .no_inline = no_inline };
	t->nr_places = t->nr_stacks = 1;
	t->places = xcalloc(1, sizeof(*t->places));
	t->stacks = xcalloc(1, sizeof(*t->stacks));
	t->cap_places = t->cap_stacks = 1;
	GROW(t->strings, 1, t->cap_strings);
	t->strings[t->nr_strings++] = 0;
}

void html_tables_release(struct html_tables *t)
{
	free(t->functions);
	free(t->stacks);
	free(t->places);
	free(t->stack_of);
	free(t->strings);
	hash_release(&t->function_index);
	hash_release(&t->stack_index);
	hash_release(&t->place_index);
	timeline_numbers_release(&t->string_of);
}

uint32_t html_string(struct html_tables *t, uint32_t handle)
{
	uint32_t *number;

	if (!handle)
		return 0;
	number = timeline_number(&t->string_of, handle);
	if (!*number) {
		GROW(t->strings, t->nr_strings + 1, t->cap_strings);
		t->strings[t->nr_strings++] = handle;
		*number = (uint32_t)t->nr_strings;
	}
	return *number - 1;
}

/* ---- functions ---- */

/* As in `kscope report`: by name and binary. */
static uint32_t function_of(struct html_tables *t, const struct html_function *like)
{
	struct hash_key key = { like->name, like->binary };
	uint32_t *number = hash_at(&t->function_index, key);
	struct html_function *known;

	if (!*number) {
		GROW(t->functions, t->nr_functions + 1, t->cap_functions);
		t->functions[t->nr_functions++] = *like;
		*number = (uint32_t)t->nr_functions;
	}
	known = &t->functions[*number - 1];
	if (!known->frame)
		known->frame = like->frame;
	if (!known->file) {
		known->file = like->file;
		known->line = like->line;
	}
	return *number - 1;
}

/* The line where a function begins is unknown if it is inlined. */
static uint32_t function_at(struct html_tables *t, uint32_t frame, const struct symbol *symbol)
{
	struct html_function function = { .name = symbol->name,
					  .binary = frame_binary(t->world, frame),
					  .file = symbol->file };
	const struct symbol *begin;
	size_t nr;

	if (!symbol->inlined) {
		begin = frame_symbols(t->world, frame_function(t->world, frame), &nr);
		function.file = begin[nr - 1].file;
		function.line = begin[nr - 1].line;
		function.frame = frame;
	}
	return function_of(t, &function);
}

uint32_t html_function(struct html_tables *t, uint32_t frame)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(t->world, frame, &nr);
	struct symbol symbol = symbols[nr - 1];

	return function_at(t, frame, &symbol);
}

/* ---- stacks ---- */

void html_tables_mark(struct html_tables *t, uint32_t stack)
{
	size_t had = t->cap_stack_of;

	if (!stack) {
		t->has_no_stack = true;
		return;
	}
	GROW(t->stack_of, (size_t)stack + 1, t->cap_stack_of);
	memset(t->stack_of + had, 0, (t->cap_stack_of - had) * sizeof(*t->stack_of));
	t->stack_of[stack] = USED;
}

static enum html_category category_of(const struct html_tables *t, uint32_t frame,
				      const struct symbol *symbol, uint32_t parent)
{
	bool kernel = t->world->frames.all[frame].flags & FRAME_KERNEL;
	const char *name = str_text(t->world->strings, symbol->name);

	if (kernel && (t->stacks[parent].category == HTML_INTERRUPT || role_interrupt(name)))
		return HTML_INTERRUPT;
	if (role_idle(name))
		return HTML_IDLE;
	return kernel ? HTML_KERNEL : HTML_USER;
}

/* A caller has each function once, so that a stack is a frame of the flame graph. */
static uint32_t push_stack(struct html_tables *t, const struct html_stack *stack)
{
	struct hash_key key = { stack->parent, stack->function };
	uint32_t *number = hash_at(&t->stack_index, key);

	if (!*number) {
		GROW(t->stacks, t->nr_stacks + 1, t->cap_stacks);
		*number = (uint32_t)t->nr_stacks;
		t->stacks[t->nr_stacks++] = *stack;
	}
	return *number;
}

static uint32_t push_frame(struct html_tables *t, uint32_t parent, uint32_t frame)
{
	size_t nr = 1;

	for (size_t i = 0; i < nr; i++) {
		/* Valid until the next call. */
		const struct symbol *symbols = frame_symbols(t->world, frame, &nr);
		struct symbol symbol = symbols[nr - 1 - i];
		struct html_stack stack = {
			.parent = parent,
			.function = function_at(t, frame, &symbol),
			.category = (uint8_t)category_of(t, frame, &symbol, parent),
			.inlined = symbol.inlined,
		};

		parent = push_stack(t, &stack);
		if (t->no_inline)
			break;
	}
	return parent;
}

void html_tables_build(struct html_tables *t)
{
	const struct stacks *stacks = &t->world->stacks;

	for (size_t i = t->cap_stack_of; i-- > 1;) {
		if (t->stack_of[i])
			t->stack_of[stacks->all[i].parent] |= stacks->all[i].parent ? USED : 0;
	}
	for (uint32_t i = 1; i < t->cap_stack_of; i++) {
		if (t->stack_of[i]) /* its parent has a number */
			t->stack_of[i] = push_frame(t, t->stack_of[stacks->all[i].parent],
						    stacks->all[i].frame);
	}
	if (t->has_no_stack) {
		struct html_function none = { .name = str_intern_z(t->world->strings,
								   "[no stack]") };

		t->no_stack =
			push_stack(t, &(struct html_stack){ .function = function_of(t, &none) });
	}
}

uint32_t html_stack(const struct html_tables *t, uint32_t stack)
{
	return stack ? t->stack_of[stack] : t->no_stack;
}

/* ---- places ---- */

static struct html_place place_at(struct html_tables *t, uint32_t frame)
{
	const struct frame at = t->world->frames.all[frame];
	struct html_place place = { 0 };
	const struct symbol *symbols;
	size_t nr;

	symbols = frame_symbols(t->world, frame, &nr);
	place.file = symbols[0].file;
	place.line = symbols[0].line;
	if (!(at.flags & (FRAME_NAMED | FRAME_UNMAPPED))) {
		uint64_t start = symbols[nr - 1].start;
		uint64_t vaddr = image_vaddr(&t->world->images, at.image, at.addr);

		place.offset = vaddr >= start ? vaddr - start : 0;
	}
	place.function = html_function(t, frame);
	return place;
}

uint32_t html_place(struct html_tables *t, uint32_t stack)
{
	uint32_t frame = stack ? t->world->stacks.all[stack].frame : 0;
	uint32_t *number;
	struct html_place place;

	/* A whole function is no place in it. */
	if (!frame || t->world->frames.all[frame].flags & (FRAME_FUNCTION | FRAME_NAMED))
		return 0;
	number = hash_at(&t->place_index, (struct hash_key){ frame, 0 });
	if (*number)
		return *number;
	*number = (uint32_t)t->nr_places;
	place = place_at(t, frame);
	GROW(t->places, t->nr_places + 1, t->cap_places);
	t->places[t->nr_places++] = place;
	return (uint32_t)t->nr_places - 1;
}

/* ---- output ---- */

void html_put_places(struct html_tables *t, struct html_block *block)
{
	const struct html_place *places = t->places;
	size_t nr = t->nr_places;

	HTML_COLUMN(block, "places.function", true, nr, places[i].function);
	HTML_COLUMN(block, "places.offset", true, nr, places[i].offset);
	HTML_COLUMN(block, "places.file", false, nr, html_string(t, places[i].file));
	HTML_COLUMN(block, "places.line", true, nr, places[i].line);
}

void html_put_tables(struct html_tables *t, struct html_block *core)
{
	const struct html_function *functions = t->functions;
	const struct html_stack *stacks = t->stacks;
	size_t nr = t->nr_functions;

	HTML_COLUMN(core, "functions.name", true, nr, html_string(t, functions[i].name));
	HTML_COLUMN(core, "functions.binary", false, nr, html_string(t, functions[i].binary));
	HTML_COLUMN(core, "functions.file", false, nr, html_string(t, functions[i].file));
	HTML_COLUMN(core, "functions.line", false, nr, functions[i].line);
	nr = t->nr_stacks;
	HTML_COLUMN(core, "stacks.parent", true, nr, stacks[i].parent);
	HTML_COLUMN(core, "stacks.function", false, nr, stacks[i].function);
	HTML_COLUMN(core, "stacks.category", false, nr, stacks[i].category);
	HTML_COLUMN(core, "stacks.inlined", false, nr, stacks[i].inlined);
}
