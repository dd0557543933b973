// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_message: the records of wire/kscope.proto. Unknown fields are left alone. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/bare.h"
#include "read/wire.h"

#define MAX_ELFS 4096

bool wire_sample(struct pb message, struct wire_sample *sample)
{
	struct pb_field field;
	int ret;

	*sample = (struct wire_sample){ 0 };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case 1: sample->time = field.value; break;
		case 2: sample->pc = field.value; break;
		case 3: sample->space = field.value; break;
		case 4: sample->level = field.value; break;
		case 5: sample->weight = field.value; break;
		case 6: sample->idle = field.value; break;
		case 7: sample->registers = field.bytes; break;
		case 8: sample->stack = field.bytes; break;
		case 9: sample->chain = field.bytes; break;
		case 10: sample->task = field.value; break;
		case 11: sample->no_space = field.value; break;
		case 12: sample->outer_address = field.value; break;
		case 13: sample->outer = field.bytes; break;
		}
	}
	return ret == 0;
}

bool wire_alloc(struct pb message, struct wire_alloc *alloc)
{
	struct pb_field field;
	int ret;

	*alloc = (struct wire_alloc){ .allocator = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case 1: alloc->op = field.value; break;
		case 2: alloc->allocator = field.bytes; break;
		case 3: alloc->pointer = field.value; break;
		case 4: alloc->size = field.value; break;
		case 5: alloc->at = field.bytes; break;
		}
	}
	return ret == 0 && alloc->op <= ALLOC_FREE;
}

bool wire_code(struct pb message, struct wire_code *code)
{
	struct pb_field field;
	int ret;

	*code = (struct wire_code){ .bytes = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case 1: code->time = field.value; break;
		case 2: code->space = field.value; break;
		case 3: code->level = field.value; break;
		case 4: code->address = field.value; break;
		case 5: code->bytes = field.bytes; break;
		}
	}
	return ret == 0;
}

static void take_text(char **to, struct pb bytes)
{
	free(*to);
	*to = xstrndup((const char *)bytes.at, (size_t)(bytes.end - bytes.at));
}

static void add_elf(struct wire_info *info, struct pb bytes)
{
	if (info->nr_elfs == MAX_ELFS)
		return;
	GROW(info->elfs, info->nr_elfs + 1, info->cap_elfs);
	info->elfs[info->nr_elfs] = NULL;
	take_text(&info->elfs[info->nr_elfs++], bytes);
}

bool wire_info(struct pb message, struct wire_info *info)
{
	struct pb_field field;
	int ret;

	while ((ret = pb_next(&message, &field)) > 0) {
		bool is_text = field.wire == PB_BYTES;

		switch (field.number) {
		case 1: info->version = field.value; break;
		case 4: info->cpus = field.value; break;
		case 5: info->clock = field.value; break;
		case 6: info->period = field.value; break;
		case 7: info->user_mode = field.value; break;
		case 8: info->start = field.value; break;
		case 12: info->trace = field.value; break;
		}
		if (!is_text)
			continue;
		switch (field.number) {
		case 2: take_text(&info->arch, field.bytes); break;
		case 3: take_text(&info->producer, field.bytes); break;
		case 9: take_text(&info->command, field.bytes); break;
		case 10: take_text(&info->kernel, field.bytes); break;
		case 11: add_elf(info, field.bytes); break;
		case 13: take_text(&info->event, field.bytes); break;
		}
	}
	info->told = true;
	return ret == 0;
}

void wire_info_release(struct wire_info *info)
{
	for (size_t i = 0; i < info->nr_elfs; i++)
		free(info->elfs[i]);
	free(info->elfs);
	free(info->arch);
	free(info->producer);
	free(info->command);
	free(info->kernel);
	free(info->event);
}

size_t wire_words(struct pb bytes, uint64_t *words, size_t max)
{
	size_t nr = 0;

	for (; nr < max && bytes.end - bytes.at >= 8; bytes.at += 8)
		words[nr++] = bare_le64(bytes.at);
	return nr;
}
