// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/speedscope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/mem.h"
#include "base/text.h"
#include "write/timeline.h"

void speedscope_frames_release(struct speedscope_frames *frames)
{
	free(frames->all);
	hash_release(&frames->index);
}

/* As in a report, functions of the same name in the same binary are one frame; with --lines, each line is one. */
static uint32_t number_of(struct speedscope_frames *frames, struct speedscope_frame frame)
{
	bool lines = frames->options->lines;
	struct hash_key key = { (uint64_t)frame.name << 32 | frame.binary,
				lines ? (uint64_t)frame.file << 32 | frame.line : 0 };
	uint32_t *known = hash_at(&frames->index, key);

	if (!*known) {
		GROW(frames->all, frames->nr + 1, frames->cap);
		frames->all[frames->nr++] = frame;
		*known = (uint32_t)frames->nr;
	}
	return *known - 1;
}

uint32_t speedscope_name(struct speedscope_frames *frames, const char *name)
{
	uint32_t handle = str_intern_z(frames->world->strings, name);

	return number_of(frames, (struct speedscope_frame){ .name = handle });
}

/*
 * The frame of a symbol at a place. Without --lines, its line is where the function begins. For an inlined function,
 * that is unknown.
 */
static uint32_t number_of_symbol(struct speedscope_frames *frames, uint32_t place,
				 const struct symbol *symbol)
{
	struct world *world = frames->world;
	struct speedscope_frame frame = { .name = symbol->name,
					  .binary = frame_binary(world, place),
					  .file = symbol->file,
					  .line = symbol->line };
	size_t nr;

	if (frames->options->lines)
		return number_of(frames, frame);
	if (symbol->inlined) {
		frame.line = 0;
	} else {
		symbol = frame_symbols(world, frame_function(world, place), &nr) + nr - 1;
		frame.file = symbol->file;
		frame.line = symbol->line;
	}
	return number_of(frames, frame);
}

uint32_t speedscope_function(struct speedscope_frames *frames, uint32_t place)
{
	size_t nr;
	struct symbol symbol = (frame_symbols(frames->world, place, &nr) + nr - 1)[0];

	return number_of_symbol(frames, place, &symbol);
}

void speedscope_functions(struct speedscope_frames *frames, uint32_t place, struct buf *to)
{
	size_t nr = 1;

	for (size_t i = 0; i < nr; i++) {
		/* Valid until the next call. */
		const struct symbol *symbols = frame_symbols(frames->world, place, &nr);
		struct symbol symbol = symbols[nr - 1 - i];

		if (i)
			buf_addc(to, ',');
		buf_addu(to, number_of_symbol(frames, place, &symbol));
		if (frames->options->no_inline)
			return;
	}
}

/* ---- the table ---- */

static void find_names_elsewhere(struct speedscope_frames *frames)
{
	struct timeline_numbers first = { 0 };

	for (size_t i = 0; i < frames->nr; i++) {
		struct speedscope_frame *frame = &frames->all[i], *other;
		uint32_t *number = timeline_number(&first, frame->name);

		if (!*number)
			*number = (uint32_t)i + 1;
		other = &frames->all[*number - 1];
		if (other->binary != frame->binary)
			other->elsewhere = frame->elsewhere = true;
	}
	/* The first one may have learned it after others of its binary. */
	for (size_t i = 0; i < frames->nr; i++) {
		struct speedscope_frame *frame = &frames->all[i];

		frame->elsewhere = frames->all[*timeline_number(&first, frame->name) - 1].elsewhere;
	}
	timeline_numbers_release(&first);
}

static const char *last_part(const struct speedscope_frames *frames, uint32_t path)
{
	return path ? text_last_part(str_text(frames->world->strings, path)) : "unknown";
}

static void put_frame(struct speedscope_frames *frames, const struct speedscope_frame *frame,
		      struct json_out *json, struct buf *name)
{
	const struct strtab *strings = frames->world->strings;
	const char *binary = last_part(frames, frame->binary);

	buf_clear(name);
	buf_adds(name, str_len(strings, frame->name) ? str_text(strings, frame->name) : "?");
	if (frame->elsewhere)
		buf_addf(name, *binary == '[' ? " %s" : " [%s]", binary);
	if (frames->options->lines && frame->file)
		buf_addf(name, " %s:%" PRIu32, last_part(frames, frame->file), frame->line);
	json_out_object(json, NULL);
	json_out_text(json, "name", name->data);
	if (frame->file)
		json_out_text(json, "file", str_text(strings, frame->file));
	if (frame->line)
		json_out_u64(json, "line", frame->line);
	json_out_end(json);
}

void speedscope_frames_json(struct speedscope_frames *frames, struct buf *to)
{
	struct json_out json = { .to = to };
	struct buf name = { 0 };

	find_names_elsewhere(frames);
	json_out_array(&json, NULL);
	for (size_t i = 0; i < frames->nr; i++)
		put_frame(frames, &frames->all[i], &json, &name);
	json_out_end(&json);
	buf_release(&name);
}
