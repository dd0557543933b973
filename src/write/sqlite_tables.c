// SPDX-License-Identifier: GPL-2.0-or-later
/* The things that rows refer to. They get an id at their first use, and are written at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/source.h"
#include "write/sqlite.h"

enum key_kind { KEY_TASK, KEY_FUNCTION, KEY_IMAGE, KEY_NAME };

static uint32_t *entry(struct sqlite *s, enum key_kind kind, uint64_t a, uint64_t b)
{
	uint64_t words[] = { kind, a, b };

	return hash_at(&s->index, hash_words(words, 3, 0));
}

/* ---- ids ---- */

uint32_t sqlite_task(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	uint32_t comm = world_comm(w->world, ev->pid, ev->tid), *number;

	if (s->last_task.number && s->last_task.pid == ev->pid && s->last_task.tid == ev->tid &&
	    s->last_task.comm == comm)
		return s->last_task.number;
	number = entry(s, KEY_TASK, (uint64_t)ev->pid << 32 | ev->tid, comm);
	if (!*number) {
		GROW(s->tasks, s->nr_tasks + 1, s->cap_tasks);
		s->tasks[s->nr_tasks++] = (struct sqlite_task){ ev->pid, ev->tid, comm };
		*number = (uint32_t)s->nr_tasks;
	}
	s->last_task.pid = ev->pid;
	s->last_task.tid = ev->tid;
	s->last_task.comm = comm;
	s->last_task.number = *number;
	return *number;
}

uint32_t sqlite_event(struct sqlite *s, uint32_t source)
{
	uint32_t *number = timeline_number(&s->event_of, source);

	if (!*number) {
		GROW(s->events, s->nr_events + 1, s->cap_events);
		s->events[s->nr_events++] = source;
		*number = (uint32_t)s->nr_events;
	}
	return *number;
}

static uint32_t function_of(struct sqlite *s, uint32_t name, uint32_t binary, bool known)
{
	uint32_t *number = entry(s, KEY_FUNCTION, name, binary);

	if (!*number) {
		GROW(s->functions, s->nr_functions + 1, s->cap_functions);
		s->functions[s->nr_functions++] = (struct sqlite_function){ name, binary, known };
		*number = (uint32_t)s->nr_functions;
	}
	return *number;
}

uint32_t sqlite_function(struct writer *w, uint32_t frame)
{
	struct sqlite *s = w->priv;
	uint32_t *number = timeline_number(&s->function_of, frame);
	size_t nr;

	if (!*number && frame) {
		const struct symbol *symbols = frame_symbols(w->world, frame, &nr);

		*number = function_of(s, symbols[nr - 1].name, frame_binary(w->world, frame),
				      !symbols[nr - 1].unknown);
	}
	return *number;
}

static uint32_t binary_of(struct sqlite *s, const struct frame *frame)
{
	bool named = frame->flags & FRAME_NAMED;
	uint32_t *number;

	if (frame->flags & FRAME_UNMAPPED || !frame->image)
		return 0;
	number = entry(s, named ? KEY_NAME : KEY_IMAGE, frame->image, 0);
	if (!*number) {
		GROW(s->binaries, s->nr_binaries + 1, s->cap_binaries);
		s->binaries[s->nr_binaries++] = named ? (struct sqlite_binary){ 0, frame->image }
						      : (struct sqlite_binary){ frame->image, 0 };
		*number = (uint32_t)s->nr_binaries;
	}
	return *number;
}

static uint32_t number_stack(struct sqlite *s, uint32_t stack)
{
	GROW(s->stacks, s->nr_stacks + 1, s->cap_stacks);
	s->stacks[s->nr_stacks++] = stack;
	return *timeline_number(&s->stack_of, stack) = (uint32_t)s->nr_stacks;
}

/* A stack comes after that of its caller. */
uint32_t sqlite_stack(struct writer *w, uint32_t stack)
{
	struct sqlite *s = w->priv;
	const struct stack *all = w->world->stacks.all;
	uint32_t number = *timeline_number(&s->stack_of, stack);
	size_t nr = 0;

	if (number)
		return number;
	for (uint32_t at = all[stack].parent; at && !*timeline_number(&s->stack_of, at);
	     at = all[at].parent) {
		GROW(s->path, nr + 1, s->cap_path);
		s->path[nr++] = at;
	}
	while (nr--)
		number_stack(s, s->path[nr]);
	return number_stack(s, stack);
}

/* ---- rows ---- */

/* nth: the buffer that holds it. */
static struct database_value name_value(struct writer *w, unsigned nth, uint32_t name)
{
	struct sqlite *s = w->priv;

	return sqlite_text(text_valid(&s->scratch[nth], str_text(w->world->strings, name)));
}

static struct database_value some_name(struct writer *w, unsigned nth, uint32_t name)
{
	return name ? name_value(w, nth, name) : NOTHING;
}

static void add(struct sqlite *s, enum sqlite_table table, const struct database_value *row)
{
	database_add(s->db, s->tables[table], row);
}

static struct database_value address_of(struct world *world, const struct frame *frame)
{
	uint64_t address = frame->addr;

	if (frame->flags & FRAME_NAMED || (!frame->image && !(frame->flags & FRAME_UNMAPPED)))
		return NOTHING;
	if (!(frame->flags & FRAME_UNMAPPED))
		address = image_vaddr(&world->images, frame->image, address);
	return sqlite_bits(address && frame->flags & FRAME_RETURN ? address - 1 : address);
}

static void put_frame(struct writer *w, uint32_t handle, const struct symbol *symbol)
{
	struct sqlite *s = w->priv;
	const struct frame frame = w->world->frames.all[handle];
	uint32_t binary = frame_binary(w->world, handle);
	uint32_t function = function_of(s, symbol->name, binary, !symbol->unknown);
	struct database_value row[] = {
		NUMBER(++s->nr_frames),		 NUMBER(function),
		some_name(w, 0, symbol->file),	 sqlite_id(symbol->line),
		NUMBER(symbol->inlined),	 NUMBER(!!(frame.flags & FRAME_KERNEL)),
		sqlite_id(binary_of(s, &frame)), address_of(w->world, &frame),
	};

	add(s, TABLE_FRAMES, row);
	GROW(s->frames, (size_t)s->nr_frames + 1, s->cap_frames);
	s->frames[s->nr_frames] = function;
}

uint32_t sqlite_frame(struct writer *w, uint32_t place, size_t *nr)
{
	struct sqlite *s = w->priv;
	uint32_t *known = timeline_number(&s->frame_of, place);
	struct symbol no_stack = { .name = str_intern_z(w->world->strings, "[no stack]"),
				   .unknown = true };
	const struct symbol *symbols = &no_stack;

	*nr = 1;
	if (place)
		symbols = frame_symbols(w->world, place, nr);
	if (!*known) {
		*known = s->nr_frames + 1;
		for (size_t i = 0; i < *nr; i++)
			put_frame(w, place, &symbols[i]);
	}
	return *known;
}

static void put_functions(struct writer *w)
{
	struct sqlite *s = w->priv;

	for (size_t i = 0; i < s->nr_functions; i++) {
		const struct sqlite_function *function = &s->functions[i];
		struct database_value row[] = {
			NUMBER((int64_t)i + 1),
			name_value(w, 0, function->name),
			some_name(w, 1, function->binary),
			NUMBER(function->known),
		};

		add(s, TABLE_FUNCTIONS, row);
	}
}

static void put_binaries(struct writer *w)
{
	struct sqlite *s = w->priv;

	for (size_t i = 0; i < s->nr_binaries; i++) {
		const struct sqlite_binary *binary = &s->binaries[i];
		const struct image *image = &w->world->images.all[binary->image];
		char id[BUILD_ID_TEXT] = "";
		struct database_value row[5];

		if (binary->image)
			image_build_id(image, id);
		row[0] = NUMBER((int64_t)i + 1);
		row[1] = name_value(w, 0, binary->image ? image->name : binary->name);
		row[2] = name_value(w, 1, binary->image ? image->path : binary->name);
		row[3] = *id ? sqlite_text(id) : NOTHING;
		row[4] = NUMBER(binary->image && image->kernel);
		add(s, TABLE_BINARIES, row);
	}
}

/* As kscope report names them. */
static uint32_t task_name(struct world *world, const struct sqlite_task *task)
{
	uint32_t late = task->comm ? task->comm : world_comm(world, task->pid, task->pid);

	return late ? late : str_intern_z(world->strings, "[no name]");
}

static void put_tasks(struct writer *w)
{
	struct sqlite *s = w->priv;

	for (size_t i = 0; i < s->nr_tasks; i++) {
		const struct sqlite_task *task = &s->tasks[i];
		struct database_value row[] = {
			NUMBER((int64_t)i + 1),
			sqlite_some(s, task->pid != NO_TASK, task->pid),
			sqlite_some(s, task->tid != NO_TASK, task->tid),
			name_value(w, 0, task_name(w->world, task)),
		};

		add(s, TABLE_TASKS, row);
	}
}

static void put_events(struct writer *w)
{
	struct sqlite *s = w->priv;

	for (size_t i = 0; i < s->nr_events; i++) {
		const struct source source = w->world->sources[s->events[i]];
		struct database_value row[] = {
			NUMBER((int64_t)i + 1),
			name_value(w, 0, source_name(w->world, s->events[i])),
			some_name(w, 1, source.unit),
			sqlite_some(s, source.period && !source.freq, source.period),
			sqlite_some(s, source.period && source.freq, source.period),
		};

		add(s, TABLE_EVENTS, row);
	}
}

static void put_facts(struct writer *w)
{
	struct sqlite *s = w->priv;

	for (size_t i = 0; i < w->world->nr_facts; i++) {
		struct database_value row[] = {
			NUMBER((int64_t)i + 1),
			name_value(w, 0, w->world->facts[i].key),
			name_value(w, 1, w->world->facts[i].value),
		};

		add(s, TABLE_FACTS, row);
	}
}

void sqlite_put_tables(struct writer *w)
{
	put_facts(w);
	put_events(w);
	put_tasks(w);
	sqlite_put_stacks(w);
	put_functions(w);
	put_binaries(w);
}

void sqlite_tables_release(struct sqlite *s)
{
	hash_release(&s->index);
	free(s->tasks);
	free(s->events);
	free(s->functions);
	free(s->binaries);
	free(s->stacks);
	free(s->frames);
	free(s->path);
	timeline_numbers_release(&s->event_of);
	timeline_numbers_release(&s->stack_of);
	timeline_numbers_release(&s->frame_of);
	timeline_numbers_release(&s->function_of);
}
