/* SPDX-License-Identifier: MIT */
/*
 * wire: writes the messages of kscope.proto into memory of the caller. Freestanding: no library but
 * the memcpy that compilers ask for anyway, no allocation, nothing beyond the end of the buffer.
 * What does not fit sets `full`, and what was written since is worthless; the caller measures
 * before, or takes the record back.
 *
 * The length of a nested message is not known when it is opened, so it gets four bytes: a varint may
 * have leading zeros.
 */
#ifndef KSCOPE_WIRE_H
#define KSCOPE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_SYNC 0x5043534bu
#define WIRE_VERSION 1
#define WIRE_STREAM_CHUNK 1 /* the field of Stream that a chunk is */
#define WIRE_CHUNK_MAX (16u << 20)

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
};

enum wire_clock { WIRE_HOST = 0, WIRE_GUEST = 1, WIRE_INSTRUCTIONS = 2 };
enum wire_alloc_op { WIRE_NEW = 0, WIRE_RESIZE = 1, WIRE_FREE = 2 };
enum wire_level { WIRE_USER = 0, WIRE_KERNEL = 1, WIRE_HYPERVISOR = 2, WIRE_FIRMWARE = 3 };

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
};

struct wire_sample {
	uint64_t time, pc, space, weight;
	uint32_t level, task;
	bool idle, no_space;
	const uint64_t *registers, *chain;
	size_t n_registers, n_chain;
	const void *stack, *outer; /* outer: of the stack that this one was entered from */
	size_t stack_size, outer_size;
	uint64_t outer_address;
};

struct wire_alloc {
	enum wire_alloc_op op;
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

struct wire_count {
	uint32_t cpu;
	uint64_t samples, dropped, instructions, chunks, allocs;
};

/* No sample takes more than this, besides its registers, chain and stacks. */
#define WIRE_SAMPLE_HEAD 112

static inline struct wire wire_into(void *memory, size_t size)
{
	return (struct wire){ (uint8_t *)memory, (uint8_t *)memory + size, false };
}

static inline bool wire_room(struct wire *w, size_t size)
{
	if ((size_t)(w->end - w->at) < size)
		w->full = true;
	return !w->full;
}

static inline void wire_varint(struct wire *w, uint64_t value)
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
	wire_varint(w, field << 3 | type);
}

static inline void wire_raw(struct wire *w, const void *bytes, size_t size)
{
	if (!wire_room(w, size))
		return;
	__builtin_memcpy(w->at, bytes, size);
	w->at += size;
}

static inline void wire_little(struct wire *w, uint64_t value, size_t size)
{
	if (!wire_room(w, size))
		return;
	for (size_t i = 0; i < size; i++)
		*w->at++ = (uint8_t)(value >> 8 * i);
}

/* A number that is there even if it is 0. */
static inline void wire_number(struct wire *w, uint32_t field, uint64_t value)
{
	wire_tag(w, field, 0);
	wire_varint(w, value);
}

/* A number; 0 is what a reader takes for one that is not there. */
static inline void wire_uint(struct wire *w, uint32_t field, uint64_t value)
{
	if (value)
		wire_number(w, field, value);
}

static inline void wire_fixed32(struct wire *w, uint32_t field, uint32_t value)
{
	wire_tag(w, field, 5);
	wire_little(w, value, 4);
}

static inline void wire_fixed64(struct wire *w, uint32_t field, uint64_t value)
{
	wire_tag(w, field, 1);
	wire_little(w, value, 8);
}

static inline void wire_bytes(struct wire *w, uint32_t field, const void *bytes, size_t size)
{
	if (!size)
		return;
	wire_tag(w, field, 2);
	wire_varint(w, size);
	wire_raw(w, bytes, size);
}

static inline void wire_string(struct wire *w, uint32_t field, const char *text)
{
	size_t size = 0;

	if (!text)
		return;
	while (text[size])
		size++;
	wire_bytes(w, field, text, size);
}

static inline void wire_packed64(struct wire *w, uint32_t field, const uint64_t *values, size_t n)
{
	if (!n)
		return;
	wire_tag(w, field, 2);
	wire_varint(w, n * 8);
	for (size_t i = 0; i < n; i++)
		wire_little(w, values[i], 8);
}

/* Four bytes for a length that is filled in later. */
static inline void wire_length4(uint8_t *at, size_t size)
{
	at[0] = (uint8_t)(0x80 | (size & 0x7f));
	at[1] = (uint8_t)(0x80 | (size >> 7 & 0x7f));
	at[2] = (uint8_t)(0x80 | (size >> 14 & 0x7f));
	at[3] = (uint8_t)(size >> 21 & 0x7f);
}

/* Opens a nested message and returns what wire_close() needs. */
static inline uint8_t *wire_open(struct wire *w, uint32_t field)
{
	wire_tag(w, field, 2);
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

	wire_uint(w, 1, WIRE_VERSION);
	wire_string(w, 2, info->arch);
	wire_string(w, 3, info->producer);
	wire_uint(w, 4, info->cpus);
	wire_uint(w, 5, info->clock);
	wire_uint(w, 6, info->period);
	wire_uint(w, 7, info->user_mode);
	wire_uint(w, 8, info->start);
	wire_string(w, 9, info->command);
	wire_string(w, 10, info->kernel);
	for (size_t i = 0; i < info->n_elf; i++)
		wire_string(w, 11, info->elf[i]);
	wire_uint(w, 12, info->trace);
	wire_string(w, 13, info->event);
	wire_close(w, opened);
}

static inline void wire_sample(struct wire *w, uint32_t field, const struct wire_sample *sample)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, 1, sample->time);
	if (!sample->idle)
		wire_fixed64(w, 2, sample->pc);
	wire_uint(w, 3, sample->space);
	wire_uint(w, 4, sample->level);
	wire_uint(w, 5, sample->weight);
	wire_uint(w, 6, sample->idle);
	wire_packed64(w, 7, sample->registers, sample->n_registers);
	wire_bytes(w, 8, sample->stack, sample->stack_size);
	wire_packed64(w, 9, sample->chain, sample->n_chain);
	wire_uint(w, 10, sample->task);
	wire_uint(w, 11, sample->no_space);
	if (sample->outer_size) {
		wire_fixed64(w, 12, sample->outer_address);
		wire_bytes(w, 13, sample->outer, sample->outer_size);
	}
	wire_close(w, opened);
}

static inline void wire_alloc(struct wire *w, uint32_t field, const struct wire_alloc *alloc)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, 1, alloc->op);
	wire_string(w, 2, alloc->allocator);
	wire_uint(w, 3, alloc->pointer);
	wire_uint(w, 4, alloc->size);
	if (alloc->at)
		wire_sample(w, 5, alloc->at);
	wire_close(w, opened);
}

static inline void wire_code(struct wire *w, uint32_t field, const struct wire_code *code)
{
	uint8_t *opened = wire_open(w, field);

	wire_uint(w, 1, code->time);
	wire_uint(w, 2, code->space);
	wire_uint(w, 3, code->level);
	wire_uint(w, 4, code->address);
	wire_bytes(w, 5, code->bytes, code->size);
	wire_close(w, opened);
}

static inline void wire_end(struct wire *w, uint32_t field, const char *reason,
			    const struct wire_count *counts, size_t n)
{
	uint8_t *opened = wire_open(w, field);

	wire_string(w, 1, reason);
	for (size_t i = 0; i < n; i++) {
		uint8_t *count = wire_open(w, 2);

		wire_number(w, 1, counts[i].cpu);
		wire_uint(w, 2, counts[i].samples);
		wire_uint(w, 3, counts[i].dropped);
		wire_uint(w, 4, counts[i].instructions);
		wire_uint(w, 5, counts[i].chunks);
		wire_uint(w, 6, counts[i].allocs);
		wire_close(w, count);
	}
	wire_close(w, opened);
}

/* A chunk of a cpu; of none, if it is negative. Records follow, then wire_close(). */
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
