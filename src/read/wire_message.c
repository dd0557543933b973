// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_message: decodes the messages of wire/kscope.proto, and ignores unknown fields. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "read/bare.h"
#include "read/wire_parts.h"

#define MAX_ELFS 4096

/* Those beyond the limit are ignored. */
static void add_interrupted(struct sample_message *sample, struct pb message)
{
	struct interrupted_message *interrupted;
	struct pb_field field;

	if (sample->nr_interrupted == WIRE_INTERRUPTED_MAX)
		return;
	interrupted = &sample->interrupted[sample->nr_interrupted++];
	*interrupted = (struct interrupted_message){ 0 };
	while (pb_next(&message, &field) > 0) {
		switch (field.number) {
		case WIRE_INTERRUPTED_FRAME: interrupted->frame = field.value; break;
		case WIRE_INTERRUPTED_LINK: interrupted->link = field.value; break;
		}
	}
}

bool wire_get_sample(struct pb message, struct sample_message *sample)
{
	struct pb_field field;
	int ret;

	*sample = (struct sample_message){ 0 };
	while ((ret = pb_next(&message, &field)) > 0) {
		if (field.number == WIRE_SAMPLE_INTERRUPTED && field.wire == PB_BYTES)
			add_interrupted(sample, field.bytes);
		switch (field.number) {
		case WIRE_SAMPLE_TIME: sample->time = field.value; break;
		case WIRE_SAMPLE_PC: sample->pc = field.value; break;
		case WIRE_SAMPLE_SPACE: sample->space = field.value; break;
		case WIRE_SAMPLE_LEVEL: sample->level = field.value; break;
		case WIRE_SAMPLE_WEIGHT: sample->weight = field.value; break;
		case WIRE_SAMPLE_IDLE: sample->idle = field.value; break;
		case WIRE_SAMPLE_REGISTERS: sample->registers = field.bytes; break;
		case WIRE_SAMPLE_STACK: sample->stack = field.bytes; break;
		case WIRE_SAMPLE_CHAIN: sample->chain = field.bytes; break;
		case WIRE_SAMPLE_TASK: sample->task = field.value; break;
		case WIRE_SAMPLE_NO_SPACE: sample->no_space = field.value; break;
		case WIRE_SAMPLE_OUTER_ADDRESS: sample->outer_address = field.value; break;
		case WIRE_SAMPLE_OUTER: sample->outer = field.bytes; break;
		case WIRE_SAMPLE_PLACE: sample->place = field.value; break;
		case WIRE_SAMPLE_EVENT: sample->event = field.value; break;
		case WIRE_SAMPLE_FRAMES: sample->frames = field.bytes; break;
		case WIRE_SAMPLE_USER_FRAMES: sample->user_frames = field.value; break;
		case WIRE_SAMPLE_LINK: sample->link = field.value; break;
		}
	}
	return ret == 0;
}

bool wire_get_alloc(struct pb message, struct alloc_message *alloc)
{
	struct pb_field field;
	int ret;

	*alloc = (struct alloc_message){ .allocator = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_ALLOC_OP: alloc->op = field.value; break;
		case WIRE_ALLOC_ALLOCATOR: alloc->allocator = field.bytes; break;
		case WIRE_ALLOC_POINTER: alloc->pointer = field.value; break;
		case WIRE_ALLOC_SIZE: alloc->size = field.value; break;
		case WIRE_ALLOC_AT: alloc->at = field.bytes; break;
		}
	}
	return ret == 0 && alloc->op <= WIRE_OP_FREE;
}

bool wire_get_code(struct pb message, struct code_message *code)
{
	struct pb_field field;
	int ret;

	*code = (struct code_message){ .bytes = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_CODE_TIME: code->time = field.value; break;
		case WIRE_CODE_SPACE: code->space = field.value; break;
		case WIRE_CODE_LEVEL: code->level = field.value; break;
		case WIRE_CODE_ADDRESS: code->address = field.value; break;
		case WIRE_CODE_BYTES: code->bytes = field.bytes; break;
		}
	}
	return ret == 0;
}

bool wire_get_event(struct pb message, struct event_message *event)
{
	struct pb_field field;
	int ret;

	*event = (struct event_message){ .name = { message.at, message.at },
					 .unit = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_EVENT_ID: event->id = field.value; break;
		case WIRE_EVENT_NAME: event->name = field.bytes; break;
		case WIRE_EVENT_TYPE: event->type = field.value; break;
		case WIRE_EVENT_CONFIG: event->config = field.value; break;
		case WIRE_EVENT_PERIOD: event->period = field.value; break;
		case WIRE_EVENT_UNIT: event->unit = field.bytes; break;
		case WIRE_EVENT_FREQUENCY: event->frequency = field.value; break;
		}
	}
	return ret == 0 && event->id < WIRE_EVENT_IDS && event->type <= UINT32_MAX;
}

bool wire_get_task(struct pb message, struct task_message *task)
{
	struct pb_field field;
	int ret;

	*task = (struct task_message){ .name = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_TASK_ID: task->id = field.value; break;
		case WIRE_TASK_PROCESS: task->process = field.value; break;
		case WIRE_TASK_NAME: task->name = field.bytes; break;
		case WIRE_TASK_TIME: task->time = field.value; break;
		}
	}
	return ret == 0 && task->id && task->id < NO_TASK && task->process < NO_TASK;
}

bool wire_get_map(struct pb message, struct map_message *map)
{
	struct pb_field field;
	int ret;

	*map = (struct map_message){ .path = { message.at, message.at },
				     .build_id = { message.at, message.at } };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_MAP_TIME: map->time = field.value; break;
		case WIRE_MAP_PROCESS: map->process = field.value; break;
		case WIRE_MAP_ADDRESS: map->address = field.value; break;
		case WIRE_MAP_SIZE: map->size = field.value; break;
		case WIRE_MAP_OFFSET: map->offset = field.value; break;
		case WIRE_MAP_PATH: map->path = field.bytes; break;
		case WIRE_MAP_BUILD_ID: map->build_id = field.bytes; break;
		}
	}
	return ret == 0 && map->process < NO_TASK && map->path.at < map->path.end;
}

bool wire_get_counter(struct pb message, struct counter_message *counter)
{
	struct pb_field field;
	int ret;

	*counter = (struct counter_message){ 0 };
	while ((ret = pb_next(&message, &field)) > 0) {
		switch (field.number) {
		case WIRE_COUNTER_TIME: counter->time = field.value; break;
		case WIRE_COUNTER_EVENT: counter->event = field.value; break;
		case WIRE_COUNTER_VALUE: counter->value = field.value; break;
		}
	}
	return ret == 0 && counter->event < WIRE_EVENT_IDS;
}

static void take_text(char **to, struct pb bytes)
{
	free(*to);
	*to = xstrndup((const char *)bytes.at, (size_t)(bytes.end - bytes.at));
}

static void add_elf(struct info_message *info, struct pb bytes)
{
	if (info->nr_elfs == MAX_ELFS)
		return;
	GROW(info->elfs, info->nr_elfs + 1, info->cap_elfs);
	info->elfs[info->nr_elfs] = NULL;
	take_text(&info->elfs[info->nr_elfs++], bytes);
}

bool wire_get_info(struct pb message, struct info_message *info)
{
	struct pb_field field;
	int ret;

	while ((ret = pb_next(&message, &field)) > 0) {
		bool is_text = field.wire == PB_BYTES;

		switch (field.number) {
		case WIRE_INFO_VERSION: info->version = field.value; break;
		case WIRE_INFO_CPUS: info->cpus = field.value; break;
		case WIRE_INFO_CLOCK: info->clock = field.value; break;
		case WIRE_INFO_PERIOD: info->period = field.value; break;
		case WIRE_INFO_USER_MODE: info->user_mode = field.value; break;
		case WIRE_INFO_START: info->start = field.value; break;
		case WIRE_INFO_TRACE: info->trace = field.value; break;
		}
		if (!is_text)
			continue;
		switch (field.number) {
		case WIRE_INFO_ARCH: take_text(&info->arch, field.bytes); break;
		case WIRE_INFO_PRODUCER: take_text(&info->producer, field.bytes); break;
		case WIRE_INFO_COMMAND: take_text(&info->command, field.bytes); break;
		case WIRE_INFO_KERNEL: take_text(&info->kernel, field.bytes); break;
		case WIRE_INFO_ELF: add_elf(info, field.bytes); break;
		case WIRE_INFO_EVENT: take_text(&info->event, field.bytes); break;
		}
	}
	info->found = true;
	return ret == 0;
}

void wire_chunk_info(const struct wire_chunk *chunk, struct info_message *info)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field;

	while (pb_next(&message, &field) > 0) {
		if (field.number == WIRE_CHUNK_INFO && field.wire == PB_BYTES)
			info->bad = !wire_get_info(field.bytes, info);
	}
}

void wire_info_release(struct info_message *info)
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

bool wire_get_frames(struct pb bytes, uint64_t pc, uint64_t *words, size_t max, size_t *nr)
{
	uint64_t zigzag;

	for (*nr = 0; bytes.at < bytes.end; ++*nr) {
		if (!pb_varint(&bytes, &zigzag))
			return false;
		pc += zigzag >> 1 ^ -(zigzag & 1);
		if (*nr < max)
			words[*nr] = pc;
	}
	return true;
}
