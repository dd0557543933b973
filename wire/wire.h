/* SPDX-License-Identifier: MIT */
/*
 * wire: the numbers of kscope.proto, and an encoder that writes its messages into memory of the
 * caller. Freestanding: no allocation, and no library function but the memcpy that compilers emit
 * anyway. The encoder never writes beyond the end of the buffer. If a message does not fit, it sets
 * `full`, and the caller has to discard the message; or the caller checks the size first.
 *
 * The length of a nested message is unknown when the message is opened, so it always takes four
 * bytes: a varint may have leading zeros.
 */
#ifndef KSCOPE_WIRE_H
#define KSCOPE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION 5 /* of streams that describe events, tasks and maps; always with checksums */
#define WIRE_VERSION_CHECKED 4 /* of others whose chunks have a checksum */
#define WIRE_VERSION_PLAIN 3   /* of those whose chunks have none */
#define WIRE_SYNC 0x5043534bu  /* "KSCP" */

/* Limits. Readers treat larger chunks as damage, and ignore cpus, registers and frames beyond these. */
#define WIRE_CHUNK_MAX (16u << 20) /* bytes */
#define WIRE_CPUS_MAX 4096
#define WIRE_REGISTERS_MAX 64
#define WIRE_CHAIN_MAX 4096
#define WIRE_INTERRUPTED_MAX 16	  /* frames of a sample */
#define WIRE_EVENT_IDS 4096	  /* all ids of events are below this */
#define WIRE_TASKS_MAX (1u << 20) /* described in a stream */
#define WIRE_MAPS_MAX (1u << 20)
/*
 * x86: in an address space, the number of a guest (SVM) is in the bits above the page table's
 * address.
 */
#define WIRE_X86_GUEST_SHIFT 52
#define WIRE_X86_GUESTS 4096 /* including 0: none */
#define WIRE_CODE_SIZE 64    /* bytes of a page in Code */

/* Encodings of a field's value, by protobuf. */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
#define WIRE_TAG(field, type) ((uint32_t)(field) << 3 | (uint32_t)(type))

/* Field numbers. A name is WIRE_, the message and the field of kscope.proto. */
enum wire_stream_field { WIRE_STREAM_CHUNK = 1 };

enum wire_chunk_field {
	WIRE_CHUNK_SYNC = 1,
	WIRE_CHUNK_CPU = 2,
	WIRE_CHUNK_SEQUENCE = 3,
	WIRE_CHUNK_DROPPED = 4,
	WIRE_CHUNK_INFO = 5,
	WIRE_CHUNK_SAMPLE = 6,
	WIRE_CHUNK_ALLOC = 7,
	WIRE_CHUNK_CODE = 8,
	WIRE_CHUNK_TRACE = 9,
	WIRE_CHUNK_ROUND = 10,
	WIRE_CHUNK_END = 11,
	WIRE_CHUNK_TRACE_TIME = 12,
	WIRE_CHUNK_CHECK = 13,
	WIRE_CHUNK_EVENT = 14,
	WIRE_CHUNK_TASK = 15,
	WIRE_CHUNK_MAP = 16,
	WIRE_CHUNK_COUNTER = 17,
	WIRE_CHUNK_ANSWER = 18,
};

enum wire_info_field {
	WIRE_INFO_VERSION = 1,
	WIRE_INFO_ARCH = 2,
	WIRE_INFO_PRODUCER = 3,
	WIRE_INFO_CPUS = 4,
	WIRE_INFO_CLOCK = 5,
	WIRE_INFO_PERIOD = 6,
	WIRE_INFO_USER_MODE = 7,
	WIRE_INFO_START = 8,
	WIRE_INFO_COMMAND = 9,
	WIRE_INFO_KERNEL = 10,
	WIRE_INFO_ELF = 11,
	WIRE_INFO_TRACE = 12,
	WIRE_INFO_EVENT = 13,
};

enum wire_sample_field {
	WIRE_SAMPLE_TIME = 1,
	WIRE_SAMPLE_PC = 2,
	WIRE_SAMPLE_SPACE = 3,
	WIRE_SAMPLE_LEVEL = 4,
	WIRE_SAMPLE_WEIGHT = 5,
	WIRE_SAMPLE_IDLE = 6,
	WIRE_SAMPLE_REGISTERS = 7,
	WIRE_SAMPLE_STACK = 8,
	WIRE_SAMPLE_CHAIN = 9,
	WIRE_SAMPLE_TASK = 10,
	WIRE_SAMPLE_NO_SPACE = 11,
	WIRE_SAMPLE_OUTER_ADDRESS = 12,
	WIRE_SAMPLE_OUTER = 13,
	WIRE_SAMPLE_PLACE = 14,
	WIRE_SAMPLE_EVENT = 15,
	WIRE_SAMPLE_FRAMES = 16,
	WIRE_SAMPLE_USER_FRAMES = 17,
	WIRE_SAMPLE_LINK = 18,
	WIRE_SAMPLE_INTERRUPTED = 19,
};

enum wire_interrupted_field {
	WIRE_INTERRUPTED_FRAME = 1,
	WIRE_INTERRUPTED_LINK = 2,
};

enum wire_alloc_field {
	WIRE_ALLOC_OP = 1,
	WIRE_ALLOC_ALLOCATOR = 2,
	WIRE_ALLOC_POINTER = 3,
	WIRE_ALLOC_SIZE = 4,
	WIRE_ALLOC_AT = 5,
};

enum wire_code_field {
	WIRE_CODE_TIME = 1,
	WIRE_CODE_SPACE = 2,
	WIRE_CODE_LEVEL = 3,
	WIRE_CODE_ADDRESS = 4,
	WIRE_CODE_BYTES = 5,
};

enum wire_end_field {
	WIRE_END_REASON = 1,
	WIRE_END_COUNT = 2,
};

enum wire_count_field {
	WIRE_COUNT_CPU = 1,
	WIRE_COUNT_SAMPLES = 2,
	WIRE_COUNT_DROPPED = 3,
	WIRE_COUNT_INSTRUCTIONS = 4,
	WIRE_COUNT_CHUNKS = 5,
	WIRE_COUNT_ALLOCS = 6,
};

enum wire_event_field {
	WIRE_EVENT_ID = 1,
	WIRE_EVENT_NAME = 2,
	WIRE_EVENT_TYPE = 3,
	WIRE_EVENT_CONFIG = 4,
	WIRE_EVENT_PERIOD = 5,
	WIRE_EVENT_UNIT = 6,
	WIRE_EVENT_FREQUENCY = 7,
};

enum wire_task_field {
	WIRE_TASK_ID = 1,
	WIRE_TASK_PROCESS = 2,
	WIRE_TASK_NAME = 3,
	WIRE_TASK_TIME = 4,
};

enum wire_map_field {
	WIRE_MAP_TIME = 1,
	WIRE_MAP_PROCESS = 2,
	WIRE_MAP_ADDRESS = 3,
	WIRE_MAP_SIZE = 4,
	WIRE_MAP_OFFSET = 5,
	WIRE_MAP_PATH = 6,
	WIRE_MAP_BUILD_ID = 7,
};

enum wire_counter_field {
	WIRE_COUNTER_TIME = 1,
	WIRE_COUNTER_EVENT = 2,
	WIRE_COUNTER_VALUE = 3,
};

enum wire_clock { WIRE_CLOCK_HOST = 0, WIRE_CLOCK_GUEST = 1, WIRE_CLOCK_INSTRUCTIONS = 2 };
enum wire_op { WIRE_OP_NEW = 0, WIRE_OP_RESIZE = 1, WIRE_OP_FREE = 2 };
enum wire_level {
	WIRE_LEVEL_USER = 0,
	WIRE_LEVEL_KERNEL = 1,
	WIRE_LEVEL_HYPERVISOR = 2,
	WIRE_LEVEL_FIRMWARE = 3,
};

struct wire {
	uint8_t *at, *end;
	bool full;
};

struct wire_info {
	const char *arch, *producer, *command, *kernel, *event; /* may be NULL */
	const char *const *elf;
	size_t n_elf;
	uint32_t cpus;
	enum wire_clock clock;
	uint64_t period, start;
	bool user_mode, trace;
	bool checked;	/* wire_close_checked() closes every chunk of the stream */
	bool described; /* checked, and chunks have events, tasks and maps */
};

struct wire_interrupted {
	uint32_t frame;
	uint64_t link; /* 0: unknown */
};

struct wire_sample {
	uint64_t time, pc, space, weight;
	uint64_t place; /* of the trace's code `sample`; 0: not taken inside a trace */
	uint32_t level, task;
	bool idle, no_space;
	const uint64_t *registers, *chain;
	size_t n_registers, n_chain;
	const void *stack, *outer; /* outer: the interrupted stack */
	size_t stack_size, outer_size;
	uint64_t outer_address;
	uint32_t event;
	const uintptr_t *frames; /* the first one is the pc; not with a chain */
	size_t n_frames;
	uint32_t user_frames;
	uint64_t link;
	const struct wire_interrupted *interrupted;
	size_t n_interrupted;
};

struct wire_alloc {
	enum wire_op op;
	const char *allocator;
	uint64_t pointer, size;
	struct wire_sample *at; /* may be NULL */
};

struct wire_code {
	uint64_t time, space, address;
	uint32_t level;
	const void *bytes;
	size_t size;
};

struct wire_event {
	uint32_t id, type;
	const char *name, *unit; /* unit may be NULL */
	uint64_t config, period, frequency;
};

struct wire_task {
	uint32_t id, process;
	const char *name;
	uint64_t time;
};

struct wire_map {
	uint64_t time, address, size, offset;
	uint32_t process;
	const char *path;
	const void *build_id; /* may be NULL */
	size_t build_id_size;
};

struct wire_count {
	uint32_t cpu;
	uint64_t samples, dropped, instructions, chunks, allocs;
};

/* What the rest is made of. Code that is to be small defines this with noinline. */
#ifndef WIRE_PRIMITIVE
#define WIRE_PRIMITIVE static inline
#endif

/* The maximum size of a sample without its registers, chain and stacks. */
#define WIRE_SAMPLE_HEAD 128

static inline struct wire wire_into(void *memory, size_t size)
{
	return (struct wire){ (uint8_t *)memory, (uint8_t *)memory + size, false };
}

WIRE_PRIMITIVE bool wire_room(struct wire *w, size_t size)
{
	if ((size_t)(w->end - w->at) < size)
		w->full = true;
	return !w->full;
}

WIRE_PRIMITIVE void wire_varint(struct wire *w, uint64_t value)
{
	do {
		if (!wire_room(w, 1))
			return;
		*w->at++ = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static inline void wire_tag(struct wire *w, uint32_t field, uint32_t type)
{
	wire_varint(w, WIRE_TAG(field, type));
}

WIRE_PRIMITIVE void wire_raw(struct wire *w, const void *bytes, size_t size)
{
	if (!wire_room(w, size))
		return;
	__builtin_memcpy(w->at, bytes, size);
	w->at += size;
}

WIRE_PRIMITIVE void wire_little(struct wire *w, uint64_t value, size_t size)
{
	if (!wire_room(w, size))
		return;
	for (size_t i = 0; i < size; i++)
		*w->at++ = (uint8_t)(value >> 8 * i);
}

/* A number that is written even if it is 0. */
WIRE_PRIMITIVE void wire_number(struct wire *w, uint32_t field, uint64_t value)
{
	wire_tag(w, field, WIRE_VARINT);
	wire_varint(w, value);
}

/* A number. Readers take a missing one as 0. */
static inline void wire_uint(struct wire *w, uint32_t field, uint64_t value)
{
	if (value)
		wire_number(w, field, value);
}

static inline void wire_fixed32(struct wire *w, uint32_t field, uint32_t value)
{
	wire_tag(w, field, WIRE_FIXED32);
	wire_little(w, value, 4);
}

WIRE_PRIMITIVE void wire_fixed64(struct wire *w, uint32_t field, uint64_t value)
{
	wire_tag(w, field, WIRE_FIXED64);
	wire_little(w, value, 8);
}

/* The caller has to write `size` bytes next. */
static inline void wire_bytes_head(struct wire *w, uint32_t field, size_t size)
{
	wire_tag(w, field, WIRE_BYTES);
	wire_varint(w, size);
}

WIRE_PRIMITIVE void wire_bytes(struct wire *w, uint32_t field, const void *bytes, size_t size)
{
	if (!size)
		return;
	wire_bytes_head(w, field, size);
	wire_raw(w, bytes, size);
}

WIRE_PRIMITIVE void wire_string(struct wire *w, uint32_t field, const char *text)
{
	size_t size = 0;

	if (!text)
		return;
	while (text[size])
		size++;
	wire_bytes(w, field, text, size);
}

WIRE_PRIMITIVE void wire_packed64(struct wire *w, uint32_t field, const uint64_t *values, size_t n)
{
	if (!n)
		return;
	wire_bytes_head(w, field, n * 8);
	for (size_t i = 0; i < n; i++)
		wire_little(w, values[i], 8);
}

/* A length in the four bytes that wire_open() left for it. */
static inline void wire_length4(uint8_t *at, size_t size)
{
	at[0] = (uint8_t)(0x80 | (size & 0x7f));
	at[1] = (uint8_t)(0x80 | (size >> 7 & 0x7f));
	at[2] = (uint8_t)(0x80 | (size >> 14 & 0x7f));
	at[3] = (uint8_t)(size >> 21 & 0x7f);
}

/* Opens a nested message. Returns the argument for wire_close(). */
static inline uint8_t *wire_open(struct wire *w, uint32_t field)
{
	wire_tag(w, field, WIRE_BYTES);
	if (!wire_room(w, 4))
		return NULL;
	w->at += 4;
	return w->at;
}

static inline void wire_close(struct wire *w, uint8_t *opened)
{
	if (opened && !w->full)
		wire_length4(opened - 4, (size_t)(w->at - opened));
}

static inline void wire_info(struct wire *w, uint32_t field, const struct wire_info *info)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, WIRE_INFO_VERSION,
		  info->described ? WIRE_VERSION
		  : info->checked ? WIRE_VERSION_CHECKED
				  : WIRE_VERSION_PLAIN);
	wire_string(w, WIRE_INFO_ARCH, info->arch);
	wire_string(w, WIRE_INFO_PRODUCER, info->producer);
	wire_uint(w, WIRE_INFO_CPUS, info->cpus);
	wire_uint(w, WIRE_INFO_CLOCK, info->clock);
	wire_uint(w, WIRE_INFO_PERIOD, info->period);
	wire_uint(w, WIRE_INFO_USER_MODE, info->user_mode);
	wire_uint(w, WIRE_INFO_START, info->start);
	wire_string(w, WIRE_INFO_COMMAND, info->command);
	wire_string(w, WIRE_INFO_KERNEL, info->kernel);
	for (size_t i = 0; i < info->n_elf; i++)
		wire_string(w, WIRE_INFO_ELF, info->elf[i]);
	wire_uint(w, WIRE_INFO_TRACE, info->trace);
	wire_string(w, WIRE_INFO_EVENT, info->event);
	wire_close(w, opened);
}

/* Calls are near each other, so a difference takes about three bytes, and an address eight. */
static inline void wire_frames(struct wire *w, uint32_t field, const uintptr_t *frames, size_t n)
{
	uint8_t *opened;
	uint64_t last = n ? frames[0] : 0;

	if (!n)
		return;
	opened = wire_open(w, field);
	for (size_t i = 0; i < n; i++) {
		int64_t ahead = (int64_t)(frames[i] - last);

		wire_varint(w, (uint64_t)ahead << 1 ^ (uint64_t)(ahead >> 63));
		last = frames[i];
	}
	wire_close(w, opened);
}

static inline void wire_sample(struct wire *w, uint32_t field, const struct wire_sample *sample)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, WIRE_SAMPLE_TIME, sample->time);
	if (!sample->idle)
		wire_fixed64(w, WIRE_SAMPLE_PC, sample->pc);
	wire_uint(w, WIRE_SAMPLE_SPACE, sample->space);
	wire_uint(w, WIRE_SAMPLE_LEVEL, sample->level);
	wire_uint(w, WIRE_SAMPLE_WEIGHT, sample->weight);
	wire_uint(w, WIRE_SAMPLE_IDLE, sample->idle);
	wire_packed64(w, WIRE_SAMPLE_REGISTERS, sample->registers, sample->n_registers);
	wire_bytes(w, WIRE_SAMPLE_STACK, sample->stack, sample->stack_size);
	wire_packed64(w, WIRE_SAMPLE_CHAIN, sample->chain, sample->n_chain);
	wire_uint(w, WIRE_SAMPLE_TASK, sample->task);
	wire_uint(w, WIRE_SAMPLE_NO_SPACE, sample->no_space);
	if (sample->outer_size) {
		wire_fixed64(w, WIRE_SAMPLE_OUTER_ADDRESS, sample->outer_address);
		wire_bytes(w, WIRE_SAMPLE_OUTER, sample->outer, sample->outer_size);
	}
	wire_uint(w, WIRE_SAMPLE_PLACE, sample->place);
	wire_uint(w, WIRE_SAMPLE_EVENT, sample->event);
	wire_frames(w, WIRE_SAMPLE_FRAMES, sample->frames, sample->n_frames);
	wire_uint(w, WIRE_SAMPLE_USER_FRAMES, sample->user_frames);
	if (sample->link)
		wire_fixed64(w, WIRE_SAMPLE_LINK, sample->link);
	for (size_t i = 0; i < sample->n_interrupted; i++) {
		uint8_t *inner = wire_open(w, WIRE_SAMPLE_INTERRUPTED);

		wire_uint(w, WIRE_INTERRUPTED_FRAME, sample->interrupted[i].frame);
		if (sample->interrupted[i].link)
			wire_fixed64(w, WIRE_INTERRUPTED_LINK, sample->interrupted[i].link);
		wire_close(w, inner);
	}
	wire_close(w, opened);
}

static inline void wire_alloc(struct wire *w, uint32_t field, const struct wire_alloc *alloc)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, WIRE_ALLOC_OP, alloc->op);
	wire_string(w, WIRE_ALLOC_ALLOCATOR, alloc->allocator);
	wire_uint(w, WIRE_ALLOC_POINTER, alloc->pointer);
	wire_uint(w, WIRE_ALLOC_SIZE, alloc->size);
	if (alloc->at)
		wire_sample(w, WIRE_ALLOC_AT, alloc->at);
	wire_close(w, opened);
}

static inline void wire_code(struct wire *w, uint32_t field, const struct wire_code *code)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, WIRE_CODE_TIME, code->time);
	wire_uint(w, WIRE_CODE_SPACE, code->space);
	wire_uint(w, WIRE_CODE_LEVEL, code->level);
	wire_uint(w, WIRE_CODE_ADDRESS, code->address);
	wire_bytes(w, WIRE_CODE_BYTES, code->bytes, code->size);
	wire_close(w, opened);
}

static inline void wire_event(struct wire *w, const struct wire_event *event)
{
	uint8_t *opened = wire_open(w, WIRE_CHUNK_EVENT);

	wire_uint(w, WIRE_EVENT_ID, event->id);
	wire_string(w, WIRE_EVENT_NAME, event->name);
	wire_uint(w, WIRE_EVENT_TYPE, event->type);
	wire_uint(w, WIRE_EVENT_CONFIG, event->config);
	wire_uint(w, WIRE_EVENT_PERIOD, event->period);
	wire_string(w, WIRE_EVENT_UNIT, event->unit);
	wire_uint(w, WIRE_EVENT_FREQUENCY, event->frequency);
	wire_close(w, opened);
}

static inline void wire_task(struct wire *w, const struct wire_task *task)
{
	uint8_t *opened = wire_open(w, WIRE_CHUNK_TASK);

	wire_uint(w, WIRE_TASK_ID, task->id);
	wire_uint(w, WIRE_TASK_PROCESS, task->process);
	wire_string(w, WIRE_TASK_NAME, task->name);
	wire_uint(w, WIRE_TASK_TIME, task->time);
	wire_close(w, opened);
}

static inline void wire_map(struct wire *w, const struct wire_map *map)
{
	uint8_t *opened = wire_open(w, WIRE_CHUNK_MAP);

	wire_uint(w, WIRE_MAP_TIME, map->time);
	wire_uint(w, WIRE_MAP_PROCESS, map->process);
	wire_uint(w, WIRE_MAP_ADDRESS, map->address);
	wire_uint(w, WIRE_MAP_SIZE, map->size);
	wire_uint(w, WIRE_MAP_OFFSET, map->offset);
	wire_string(w, WIRE_MAP_PATH, map->path);
	wire_bytes(w, WIRE_MAP_BUILD_ID, map->build_id, map->build_id_size);
	wire_close(w, opened);
}

static inline void wire_counter(struct wire *w, uint64_t time, uint32_t event, uint64_t value)
{
	uint8_t *opened = wire_open(w, WIRE_CHUNK_COUNTER);

	wire_uint(w, WIRE_COUNTER_TIME, time);
	wire_uint(w, WIRE_COUNTER_EVENT, event);
	wire_uint(w, WIRE_COUNTER_VALUE, value);
	wire_close(w, opened);
}

static inline void wire_count(struct wire *w, const struct wire_count *count)
{
	uint8_t *opened = wire_open(w, WIRE_END_COUNT);

	wire_number(w, WIRE_COUNT_CPU, count->cpu);
	wire_uint(w, WIRE_COUNT_SAMPLES, count->samples);
	wire_uint(w, WIRE_COUNT_DROPPED, count->dropped);
	wire_uint(w, WIRE_COUNT_INSTRUCTIONS, count->instructions);
	wire_uint(w, WIRE_COUNT_CHUNKS, count->chunks);
	wire_uint(w, WIRE_COUNT_ALLOCS, count->allocs);
	wire_close(w, opened);
}

static inline void wire_end(struct wire *w, uint32_t field, const char *reason,
			    const struct wire_count *counts, size_t n)
{
	uint8_t *opened = wire_open(w, field);

	wire_string(w, WIRE_END_REASON, reason);
	for (size_t i = 0; i < n; i++)
		wire_count(w, &counts[i]);
	wire_close(w, opened);
}

/*
 * Continues a CRC-32C; the first `crc` is 0. Four bits at a time, so that the table is small: a kernel's cache
 * has other uses.
 */
static inline uint32_t wire_crc(uint32_t crc, const void *bytes, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const uint8_t *at = (const uint8_t *)bytes, *end = at + size;

	for (crc = ~crc; at < end; at++) {
		crc ^= *at;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

/* The size of the field `check`, which is the last one of a chunk. */
#define WIRE_CHECK_SIZE 5

/* Closes a chunk, with a checksum. Set `checked` in the stream's wire_info. */
static inline void wire_close_checked(struct wire *w, uint8_t *opened)
{
	if (opened && !w->full)
		wire_fixed32(w, WIRE_CHUNK_CHECK, wire_crc(0, opened, (size_t)(w->at - opened)));
	wire_close(w, opened);
}

/*
 * Opens a chunk of a cpu, or without a cpu if it is negative. wire_close() or wire_close_checked() closes
 * it.
 */
static inline uint8_t *wire_chunk(struct wire *w, int64_t cpu, uint32_t sequence, uint64_t dropped)
{
	uint8_t *opened = wire_open(w, WIRE_STREAM_CHUNK);

	wire_fixed32(w, WIRE_CHUNK_SYNC, WIRE_SYNC);
	if (cpu >= 0)
		wire_number(w, WIRE_CHUNK_CPU, (uint64_t)cpu);
	wire_uint(w, WIRE_CHUNK_SEQUENCE, sequence);
	wire_uint(w, WIRE_CHUNK_DROPPED, dropped);
	return opened;
}

#endif
