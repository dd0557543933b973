// SPDX-License-Identifier: GPL-2.0-or-later
#include "irqs_off.h"

#include <inttypes.h>

#include "base/text.h"

#define SECOND 1000000000
#define NAME_COLUMN 24

/* The function of a frame, into which others may be inlined. */
static const char *function_of(struct world *world, uint32_t frame)
{
	const struct symbol *symbols;
	size_t nr;

	if (!frame)
		return "?";
	symbols = frame_symbols(world, frame, &nr);
	return str_text(world->strings, symbols[nr - 1].name);
}

static const char *task_of(struct world *world, const struct masked_stretch *stretch)
{
	uint32_t name = stretch->pid == NO_TASK ? 0 : world_comm(world, stretch->pid, stretch->tid);

	return name ? str_text(world->strings, name) : "?";
}

static const char *end_of(struct world *world, const struct masked_stretch *stretch)
{
	return stretch->goes_on ? "(goes on)" : function_of(world, stretch->to);
}

void irqs_off_summary(struct look *look, struct world *world, const struct masked *masked)
{
	struct buf *text = look->text;
	const struct masked_stretch *first = masked->all;

	if (!masked->nr)
		return;
	buf_addf(text, "interrupts off: %" PRIu64 " time%s, ", masked->count,
		 masked->count == 1 ? "" : "s");
	text_duration(text, masked->time);
	buf_adds(text, "; longest: ");
	look_time(text, 0, first->time);
	buf_addf(text, ", %" PRIu64 " instructions, cpu %" PRIu32 ", from ", first->instructions,
		 first->cpu);
	text_add_plain(text, function_of(world, first->from));
	buf_adds(text, " to ");
	text_add_plain(text, end_of(world, first));
	buf_addc(text, '\n');
}

/* From the root on. */
static void print_stack(struct buf *text, struct world *world, uint32_t stack)
{
	const struct stack *at = &world->stacks.all[stack];

	if (at->parent) {
		print_stack(text, world, at->parent);
		buf_addc(text, ';');
	}
	text_add_plain(text, function_of(world, at->frame));
}

static void print_name(struct buf *text, const char *name)
{
	size_t start = text->len;

	text_add_plain(text, name);
	for (size_t len = text->len - start; len < NAME_COLUMN; len++)
		buf_addc(text, ' ');
	buf_addc(text, ' ');
}

static void print_row(struct buf *text, struct world *world, const struct masked_stretch *stretch)
{
	look_time(text, 10, stretch->time);
	buf_addf(text, " %12" PRIu64 " %c%9" PRIu64 ".%09" PRIu64 " %4" PRIu32 "  ",
		 stretch->instructions, stretch->began_before ? '<' : ' ', stretch->begin / SECOND,
		 stretch->begin % SECOND, stretch->cpu);
	print_name(text, task_of(world, stretch));
	print_name(text, function_of(world, stretch->from));
	text_add_plain(text, end_of(world, stretch));
	buf_addc(text, '\n');
	if (!stretch->stack)
		return;
	buf_adds(text, "            ");
	print_stack(text, world, stretch->stack);
	buf_addc(text, '\n');
}

void irqs_off_table(struct look *look, struct world *world, const struct masked *masked)
{
	buf_addf(look->text, "\n%10s %12s %20s %4s  %-*s %-*s %s\n", "time", "instructions",
		 "begin (<: earlier)", "cpu", NAME_COLUMN, "task", NAME_COLUMN, "off in", "on in");
	for (size_t i = 0; i < masked->nr; i++)
		print_row(look->text, world, &masked->all[i]);
}

static void json_stack(struct json_out *to, struct world *world, uint32_t stack)
{
	const struct stack *at = &world->stacks.all[stack];

	if (!stack)
		return;
	json_stack(to, world, at->parent);
	json_out_text(to, NULL, function_of(world, at->frame));
}

static void json_stretch(struct json_out *to, struct world *world,
			 const struct masked_stretch *stretch)
{
	json_out_object(to, NULL);
	json_out_u64(to, "begin", stretch->begin);
	json_out_u64(to, "time", stretch->time);
	json_out_u64(to, "instructions", stretch->instructions);
	json_out_u64(to, "cpu", stretch->cpu);
	json_out_text(to, "task", task_of(world, stretch));
	json_out_text(to, "off_in", function_of(world, stretch->from));
	if (stretch->goes_on)
		json_out_null(to, "on_in");
	else
		json_out_text(to, "on_in", function_of(world, stretch->to));
	json_out_bool(to, "began_before", stretch->began_before);
	json_out_bool(to, "goes_on", stretch->goes_on);
	json_out_array(to, "stack");
	json_stack(to, world, stretch->stack);
	json_out_end(to);
	json_out_end(to);
}

void irqs_off_json(struct json_out *to, struct world *world, const struct masked *masked)
{
	json_out_u64(to, "count", masked->count);
	json_out_u64(to, "time", masked->time);
	json_out_array(to, "longest");
	for (size_t i = 0; i < masked->nr; i++)
		json_stretch(to, world, &masked->all[i]);
	json_out_end(to);
}
