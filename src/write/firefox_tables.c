// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/firefox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/role.h"

enum key_kind { KEY_FRAME = 1, KEY_FUNC, KEY_RESOURCE, KEY_LIB, KEY_SYMBOL, KEY_SUBCATEGORY };

/* The surroundings of a frame, which determine its category. */
struct around {
	bool interrupt, idle;
};

static const struct {
	const char *name, *color;
} categories[CATEGORIES] = {
	[CATEGORY_OTHER] = { "Other", "grey" },	     [CATEGORY_USER] = { "User", "yellow" },
	[CATEGORY_KERNEL] = { "Kernel", "orange" },  [CATEGORY_INTERRUPT] = { "Interrupt", "red" },
	[CATEGORY_IDLE] = { "Idle", "transparent" }, [CATEGORY_CPU] = { "CPU", "lightblue" },
	[CATEGORY_LOST] = { "Lost", "magenta" },
};

void firefox_use(struct firefox_tables *t, uint32_t stack, bool idle)
{
	size_t at = (size_t)stack * 2 + idle, had = t->cap_places;

	if (!stack)
		return;
	GROW(t->places, at + 1, t->cap_places);
	if (t->cap_places > had)
		memset(t->places + had, 0, (t->cap_places - had) * sizeof(*t->places));
	if (at >= t->nr_places)
		t->nr_places = at + 1;
	t->places[at].used = true;
}

uint32_t firefox_stack(const struct firefox_tables *t, uint32_t stack, bool idle)
{
	return stack ? t->places[(size_t)stack * 2 + idle].row : 0;
}

uint32_t firefox_string(struct firefox_tables *t, uint32_t name)
{
	uint32_t *number = timeline_number(&t->string_of, name);

	if (!*number) {
		GROW(t->strings, t->nr_strings + 1, t->cap_strings);
		t->strings[t->nr_strings++] = name;
		*number = (uint32_t)t->nr_strings;
	}
	return *number - 1;
}

static uint32_t *entry(struct firefox_tables *t, enum key_kind kind, uint64_t a, uint64_t b)
{
	uint64_t words[] = { kind, a, b };

	return hash_at(&t->index, hash_words(words, 3, 0));
}

/* ---- binaries ---- */

/* From 1 on; 0: not a binary. */
static uint32_t lib_of(struct firefox_tables *t, uint32_t image)
{
	uint32_t *number = entry(t, KEY_LIB, image, 0);

	if (!*number) {
		GROW(t->libs, t->nr_libs + 1, t->cap_libs);
		t->libs[t->nr_libs++] = image;
		*number = (uint32_t)t->nr_libs;
	}
	return *number;
}

static bool has_image(const struct frame *frame)
{
	return !(frame->flags & (FRAME_NAMED | FRAME_UNMAPPED)) && frame->image;
}

/* The front end shows it beside each function, so the file name is enough. */
static uint32_t short_name(struct firefox_tables *t, uint32_t binary)
{
	const char *path = str_text(t->world->strings, binary);
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? str_intern_z(t->world->strings, slash + 1) : binary;
}

static uint32_t resource_of(struct firefox_tables *t, uint32_t handle)
{
	const struct frame *frame = &t->world->frames.all[handle];
	uint32_t name = frame_binary(t->world, handle);
	uint32_t lib = name && has_image(frame) ? lib_of(t, frame->image) : 0;
	uint32_t *number;

	if (!name)
		return 0;
	number = entry(t, KEY_RESOURCE, name, lib);
	if (!*number) {
		GROW(t->resources, t->nr_resources + 1, t->cap_resources);
		t->resources[t->nr_resources++] =
			(struct firefox_resource){ firefox_string(t, short_name(t, name)), lib };
		*number = (uint32_t)t->nr_resources;
	}
	return *number;
}

/* Addresses in the output are relative to this. */
static uint64_t base_of(struct firefox_tables *t, uint32_t image)
{
	struct symfile *file = image_symfile(&t->world->images, image);
	const struct sym_segment *segments;
	uint64_t base = UINT64_MAX;
	size_t nr = 0;

	segments = file ? symfile_segments(file, &nr) : NULL;
	for (size_t i = 0; i < nr; i++) {
		uint64_t start = segments[i].vaddr - segments[i].offset;

		if (segments[i].offset <= segments[i].vaddr && start < base)
			base = start;
	}
	return nr && base != UINT64_MAX ? base : 0;
}

/* Firefox has 31 bits for it; -1: unknown. */
static int64_t relative(struct firefox_tables *t, uint32_t image, uint64_t addr)
{
	uint64_t base = base_of(t, image);

	return addr >= base && addr - base <= INT32_MAX ? (int64_t)(addr - base) : -1;
}

static uint32_t subcategory_of(struct firefox_tables *t, enum firefox_category category,
			       uint32_t binary)
{
	uint32_t *number;

	if (!binary)
		return 0;
	number = entry(t, KEY_SUBCATEGORY, binary, category);
	if (!*number) {
		*number = ++t->nr_subcategories[category];
		GROW(t->subcategories, t->nr_subs + 1, t->cap_subs);
		t->subcategories[t->nr_subs++] =
			(struct firefox_subcategory){ category, *number, binary };
	}
	return *number;
}

/* ---- functions and frames ---- */

static uint32_t source_of(struct firefox_tables *t, uint32_t file)
{
	uint32_t *number = timeline_number(&t->source_of, file);

	if (!file)
		return 0;
	if (!*number) {
		GROW(t->sources, t->nr_sources + 1, t->cap_sources);
		t->sources[t->nr_sources++] = firefox_string(t, file);
		*number = (uint32_t)t->nr_sources;
	}
	return *number;
}

static uint32_t func_of(struct firefox_tables *t, uint32_t frame, const struct symbol *symbol)
{
	uint32_t resource = resource_of(t, frame);
	uint32_t *number = entry(t, KEY_FUNC, symbol->name, resource);

	if (!*number) {
		GROW(t->funcs, t->nr_funcs + 1, t->cap_funcs);
		t->funcs[t->nr_funcs++] =
			(struct firefox_func){ firefox_string(t, symbol->name), resource,
					       source_of(t, symbol->file) };
		*number = (uint32_t)t->nr_funcs;
	} else if (!t->funcs[*number - 1].source) {
		t->funcs[*number - 1].source = source_of(t, symbol->file);
	}
	return *number - 1;
}

static uint32_t symbol_of(struct firefox_tables *t, uint32_t handle, const struct symbol *outer)
{
	const struct frame *frame = &t->world->frames.all[handle];
	int64_t address;
	uint32_t *number, lib;

	if (!has_image(frame) || outer->unknown)
		return 0;
	address = relative(t, frame->image, outer->start);
	if (address < 0)
		return 0;
	lib = lib_of(t, frame->image);
	number = entry(t, KEY_SYMBOL, (uint64_t)address, (uint64_t)outer->name << 32 | lib);
	if (!*number) {
		GROW(t->symbols, t->nr_symbols + 1, t->cap_symbols);
		t->symbols[t->nr_symbols++] =
			(struct firefox_symbol){ firefox_string(t, outer->name), lib - 1,
						 (uint64_t)address };
		*number = (uint32_t)t->nr_symbols;
	}
	return *number;
}

static int64_t address_of(struct firefox_tables *t, uint32_t handle)
{
	const struct frame frame = t->world->frames.all[handle];
	int64_t address;

	if (!has_image(&frame))
		return -1;
	address = relative(t, frame.image, image_vaddr(&t->world->images, frame.image, frame.addr));
	return address > 0 && frame.flags & FRAME_RETURN ? address - 1 : address;
}

/* ---- categories ---- */

enum firefox_category firefox_category_of(struct world *world, uint32_t frame)
{
	return world->frames.all[frame].flags & FRAME_KERNEL ? CATEGORY_KERNEL : CATEGORY_USER;
}

static enum firefox_category category_of(struct firefox_tables *t, uint32_t frame,
					 const struct symbol *symbol, struct around around)
{
	enum firefox_category category = firefox_category_of(t->world, frame);
	const char *name = str_text(t->world->strings, symbol->name);

	if (category == CATEGORY_KERNEL && (around.interrupt || role_interrupt(name)))
		return CATEGORY_INTERRUPT;
	return around.idle || role_idle(name) ? CATEGORY_IDLE : category;
}

/* The rows of a frame, the outermost first, are together. Returns the first one; *nr: their number. */
static uint32_t frame_of(struct firefox_tables *t, uint32_t frame, struct around around, size_t *nr)
{
	const struct symbol *symbols = frame_symbols(t->world, frame, nr);
	uint32_t *number = entry(t, KEY_FRAME, frame, around.idle * 2U + around.interrupt);
	struct firefox_frame row = { 0 };

	if (*number)
		return *number - 1;
	*number = (uint32_t)t->nr_frames + 1;
	GROW(t->frames, t->nr_frames + *nr, t->cap_frames);
	t->nr_frames += *nr;
	row.address = address_of(t, frame);
	row.symbol = symbol_of(t, frame, &symbols[*nr - 1]);
	for (size_t i = *nr; i--; row.depth++) {
		enum firefox_category category = category_of(t, frame, &symbols[i], around);

		around.interrupt = category == CATEGORY_INTERRUPT;
		row.category = (uint8_t)category;
		row.subcategory = subcategory_of(t, category, frame_binary(t->world, frame));
		row.func = func_of(t, frame, &symbols[i]);
		row.line = t->funcs[row.func].source == source_of(t, symbols[i].file)
				   ? symbols[i].line
				   : 0; /* of another file */
		t->frames[t->nr_frames - 1 - i] = row;
	}
	return (uint32_t)(t->nr_frames - *nr);
}

/* ---- stacks ---- */

static void build_stack(struct firefox_tables *t, size_t at)
{
	const struct stack *stack = &t->world->stacks.all[at / 2];
	const struct firefox_place *caller = &t->places[(size_t)stack->parent * 2 + at % 2];
	struct firefox_place *place = &t->places[at];
	uint32_t first, prefix = caller->row;
	size_t nr;

	first = frame_of(t, stack->frame, (struct around){ caller->interrupt, at % 2 }, &nr);
	place->interrupt = t->frames[first + nr - 1].category == CATEGORY_INTERRUPT;
	GROW(t->stacks, t->nr_stacks + nr, t->cap_stacks);
	for (size_t i = 0; i < nr; i++) {
		t->stacks[t->nr_stacks++] = (struct firefox_stack){ first + (uint32_t)i, prefix };
		prefix = (uint32_t)t->nr_stacks;
	}
	place->row = prefix;
}

/* Callers have smaller handles. */
void firefox_build(struct firefox_tables *t)
{
	for (size_t at = t->nr_places; at-- > 2;) {
		uint32_t parent = t->world->stacks.all[at / 2].parent;

		if (t->places[at].used && parent)
			t->places[(size_t)parent * 2 + at % 2].used = true;
	}
	for (size_t at = 2; at < t->nr_places; at++) {
		if (t->places[at].used)
			build_stack(t, at);
	}
}

/* ---- output ---- */

void firefox_put_categories(const struct firefox_tables *t, struct json_out *json)
{
	json_out_array(json, "categories");
	for (unsigned i = 0; i < CATEGORIES; i++) {
		json_out_object(json, NULL);
		json_out_text(json, "name", categories[i].name);
		json_out_text(json, "color", categories[i].color);
		json_out_array(json, "subcategories");
		json_out_text(json, NULL, "Other");
		for (size_t s = 0; s < t->nr_subs; s++) { /* in the order of their numbers */
			if (t->subcategories[s].category == i)
				json_out_text(json, NULL,
					      str_text(t->world->strings,
						       t->subcategories[s].name));
		}
		json_out_end(json);
		json_out_end(json);
	}
	json_out_end(json);
}

/* As Breakpad does it: the first 16 bytes as a GUID, and an age of 0. */
static void put_breakpad_id(struct json_out *json, const struct image *image)
{
	static const uint8_t order[] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	uint8_t id[BUILD_ID_MAX] = { 0 };
	char text[2 * sizeof(order) + 2];

	memcpy(id, image->build_id, image->build_id_len);
	for (size_t i = 0; i < sizeof(order); i++)
		snprintf(text + 2 * i, 3, "%02X", id[order[i]]);
	strcpy(text + 2 * sizeof(order), "0");
	json_out_text(json, "breakpadId", image->build_id_len ? text : "");
}

void firefox_put_libs(const struct firefox_tables *t, struct firefox_out *out)
{
	struct json_out *json = &out->json;

	json_out_array(json, "libs");
	for (size_t i = 0; i < t->nr_libs; i++) {
		const struct image *image = &t->world->images.all[t->libs[i]];
		const char *name = str_text(t->world->strings, image->name);
		const char *path = str_text(t->world->strings, image->path);
		char id[BUILD_ID_TEXT];

		image_build_id(image, id);
		json_out_object(json, NULL);
		json_out_text(json, "arch", world_arch(t->world));
		json_out_text(json, "name", name);
		json_out_text(json, "path", path);
		json_out_text(json, "debugName", name);
		json_out_text(json, "debugPath", path);
		put_breakpad_id(json, image);
		if (*id)
			json_out_text(json, "codeId", id);
		else
			json_out_null(json, "codeId");
		json_out_end(json);
		firefox_flush(out, FIREFOX_FULL);
	}
	json_out_end(json);
}

/* A column of a table: `value` is an expression of the number i of its row. */
#define COLUMN(key, nr, value)                            \
	do {                                              \
		json_out_array(json, key);                \
		for (size_t i = 0; i < (nr); i++) {       \
			value;                            \
			firefox_flush(out, FIREFOX_FULL); \
		}                                         \
		json_out_end(json);                       \
	} while (0)
#define NUMBER(value) json_out_u64(json, NULL, value)

/* An index from 1 on; 0: none. */
static void put_index(struct json_out *json, uint32_t index)
{
	if (index)
		json_out_u64(json, NULL, index - 1);
	else
		json_out_null(json, NULL);
}

static void put_frames(const struct firefox_tables *t, struct firefox_out *out)
{
	struct json_out *json = &out->json;
	const struct firefox_frame *frames = t->frames;
	size_t nr = t->nr_frames;

	json_out_object(json, "frameTable");
	COLUMN("address", nr, json_out_i64(json, NULL, frames[i].address));
	COLUMN("inlineDepth", nr, NUMBER(frames[i].depth));
	COLUMN("category", nr, NUMBER(frames[i].category));
	COLUMN("subcategory", nr, NUMBER(frames[i].subcategory));
	COLUMN("func", nr, NUMBER(frames[i].func));
	COLUMN("nativeSymbol", nr, put_index(json, frames[i].symbol));
	COLUMN("innerWindowID", nr, NUMBER(0));
	COLUMN("line", nr, frames[i].line ? NUMBER(frames[i].line) : json_out_null(json, NULL));
	COLUMN("column", nr, json_out_null(json, NULL));
	json_out_u64(json, "length", nr);
	json_out_end(json);
}

static void put_funcs(const struct firefox_tables *t, struct firefox_out *out)
{
	struct json_out *json = &out->json;
	const struct firefox_func *funcs = t->funcs;
	size_t nr = t->nr_funcs;

	json_out_object(json, "funcTable");
	COLUMN("name", nr, NUMBER(funcs[i].name));
	COLUMN("isJS", nr, json_out_bool(json, NULL, false));
	COLUMN("relevantForJS", nr, json_out_bool(json, NULL, false));
	COLUMN("resource", nr, json_out_i64(json, NULL, (int64_t)funcs[i].resource - 1));
	COLUMN("source", nr, put_index(json, funcs[i].source));
	COLUMN("lineNumber", nr, json_out_null(json, NULL));
	COLUMN("columnNumber", nr, json_out_null(json, NULL));
	json_out_u64(json, "length", nr);
	json_out_end(json);
}

static void put_binaries(const struct firefox_tables *t, struct firefox_out *out)
{
	struct json_out *json = &out->json;

	json_out_object(json, "resourceTable");
	COLUMN("lib", t->nr_resources, put_index(json, t->resources[i].lib));
	COLUMN("name", t->nr_resources, NUMBER(t->resources[i].name));
	COLUMN("host", t->nr_resources, json_out_null(json, NULL));
	COLUMN("type", t->nr_resources, NUMBER(1)); /* a library */
	json_out_u64(json, "length", t->nr_resources);
	json_out_end(json);
	json_out_object(json, "nativeSymbols");
	COLUMN("libIndex", t->nr_symbols, NUMBER(t->symbols[i].lib));
	COLUMN("address", t->nr_symbols, NUMBER(t->symbols[i].address));
	COLUMN("name", t->nr_symbols, NUMBER(t->symbols[i].name));
	COLUMN("functionSize", t->nr_symbols, json_out_null(json, NULL));
	json_out_u64(json, "length", t->nr_symbols);
	json_out_end(json);
}

void firefox_put_tables(const struct firefox_tables *t, struct firefox_out *out)
{
	struct json_out *json = &out->json;

	json_out_object(json, "shared");
	json_out_object(json, "stackTable");
	COLUMN("frame", t->nr_stacks, NUMBER(t->stacks[i].frame));
	COLUMN("prefix", t->nr_stacks, put_index(json, t->stacks[i].prefix));
	json_out_u64(json, "length", t->nr_stacks);
	json_out_end(json);
	put_frames(t, out);
	put_funcs(t, out);
	put_binaries(t, out);
	json_out_object(json, "sources");
	COLUMN("uuid", t->nr_sources, json_out_null(json, NULL));
	COLUMN("filename", t->nr_sources, NUMBER(t->sources[i]));
	json_out_u64(json, "length", t->nr_sources);
	json_out_end(json);
	COLUMN("stringArray", t->nr_strings,
	       json_out_text(json, NULL, str_text(t->world->strings, t->strings[i])));
	json_out_end(json);
}

void firefox_tables_release(struct firefox_tables *t)
{
	free(t->places);
	free(t->stacks);
	free(t->frames);
	free(t->funcs);
	free(t->resources);
	free(t->symbols);
	free(t->libs);
	free(t->sources);
	free(t->strings);
	free(t->subcategories);
	hash_release(&t->index);
	timeline_numbers_release(&t->string_of);
	timeline_numbers_release(&t->source_of);
}
