// SPDX-License-Identifier: MIT
/*
 * sample: takes samples and allocations, in interrupts: copies what is there into the ring of the cpu. All else, such
 * as the encoding, is left to the task that serves.
 */
#include "kscope.h"

/*
 * The words of a record: the head, with kind, size and the flags below; task; time; value; link; of an allocation, its
 * size and the allocator; frames.
 */
#define USER_SHIFT 20  /* 1 bit */
#define EVENT_SHIFT 21 /* 4 bits */

struct fixed {
	enum kscope_kind kind;
	unsigned event;
	uint64_t value, size;
	uintptr_t allocator;
};

static uint32_t put64(struct kscope_ring *ring, uint32_t at, uint64_t value)
{
	kscope_ring_put(ring, at++, (uintptr_t)value);
	if (KSCOPE_WORDS_64 == 2)
		kscope_ring_put(ring, at++, (uintptr_t)(value >> 16 >> 16));
	return at;
}

static uint64_t get64(const uintptr_t **at)
{
	uint64_t value = *(*at)++;

	if (KSCOPE_WORDS_64 == 2)
		value |= (uint64_t) * (*at)++ << 16 << 16;
	return value;
}

struct place {
	uint32_t at, words;
	unsigned depth;
	uint64_t time;
};

static void write_record(const struct kscope *k, struct kscope_ring *ring, const struct place *to,
			 const struct fixed *fixed, const struct kscope_at *at)
{
	uint32_t next = to->at + 1, size;

	kscope_ring_put(ring, next++, at->task);
	next = put64(ring, next, to->time);
	next = put64(ring, next, fixed->value);
	kscope_ring_put(ring, next++, kscope_plain(k, at->link));
	if (fixed->kind == KSCOPE_ALLOC) {
		next = put64(ring, next, fixed->size);
		kscope_ring_put(ring, next++, fixed->allocator);
	}
	next += kscope_walk(k, at, ring, next, to->depth);
	size = next - to->at;
	kscope_ring_put(ring, to->at,
			size | (uint32_t)fixed->kind << RING_KIND_SHIFT |
				(uint32_t)at->user << USER_SHIFT | fixed->event << EVENT_SHIFT);
	kscope_ring_commit(ring, to->at, to->words, size);
}

/* Records of a cpu are in the order of their times: one that was interrupted by another reads the clock again. */
static bool reserve(const struct kscope *k, struct kscope_ring *ring, struct place *to)
{
	to->depth = k->depth;
	to->words = KSCOPE_HEAD_WORDS + KSCOPE_STACK_WORDS(to->depth);
	do {
		if (!kscope_ring_room(ring, to->words, k->drop_newest, &to->at))
			return false;
		to->time = k->port->time(k->port->data);
	} while (!kscope_ring_reserve(ring, to->words, to->at));
	return true;
}

/* Kernels call this before kscope_init(), too: allocators come first. Acquire: `start` has set all else before. */
static bool is_running(const struct kscope *k)
{
	return __atomic_load_n(&k->running, __ATOMIC_ACQUIRE);
}

static void take(struct kscope *k, unsigned cpu, const struct fixed *fixed,
		 const struct kscope_at *at)
{
	struct kscope_cpu *c = &k->cpu[cpu];
	struct place to;

	kscope_ring_begin(&c->ring);
	/* After `begin`: if `stop` finds no writer, none comes any more. */
	if (is_running(k)) {
		__atomic_fetch_add(&c->taken, 1, __ATOMIC_RELAXED);
		if (fixed->kind == KSCOPE_SAMPLE)
			c->pace[fixed->event].sum += fixed->value;
		if (reserve(k, &c->ring, &to))
			write_record(k, &c->ring, &to, fixed, at);
	}
	kscope_ring_end(&c->ring);
}

void kscope_sample(struct kscope *k, unsigned cpu, unsigned event, uint64_t weight,
		   const struct kscope_at *at)
{
	struct fixed fixed = { .kind = KSCOPE_SAMPLE, .event = event, .value = weight };

	if (is_running(k) && cpu < k->port->cpus && event < KSCOPE_EVENTS)
		take(k, cpu, &fixed, at);
}

void kscope_alloc(struct kscope *k, unsigned cpu, enum kscope_op op, const char *allocator,
		  uint64_t pointer, uint64_t size, const struct kscope_at *at)
{
	struct fixed fixed = { .kind = KSCOPE_ALLOC,
			       .event = op,
			       .value = pointer,
			       .size = size,
			       .allocator = (uintptr_t)allocator };

	if (is_running(k) && cpu < k->port->cpus && k->format->allocs)
		take(k, cpu, &fixed, at);
}

/* Removes the marks from the frames. */
static void take_frames(struct kscope_record *record, uintptr_t *words, unsigned nr)
{
	record->frames = words;
	for (unsigned i = 0; i < nr; i++) {
		uintptr_t word = words[i];

		if (i && (word == KSCOPE_MARK_KERNEL || word == KSCOPE_MARK_USER) && i + 2 < nr &&
		    record->nr_traps < KSCOPE_TRAPS) {
			record->traps[record->nr_traps].frame = record->nr;
			record->traps[record->nr_traps++].link = words[i + 1];
			if (word == KSCOPE_MARK_USER)
				record->user_frames = 1; /* the first; counted below */
			i += 2;
		} else if (record->user_frames) {
			record->user_frames++;
		}
		words[record->nr++] = words[i];
	}
}

bool kscope_take(struct kscope_ring *ring, uintptr_t *words, struct kscope_record *record)
{
	uint32_t size = kscope_ring_take(ring, words, KSCOPE_RECORD_WORDS);
	const uintptr_t *at = words + 1;
	uint32_t head = (uint32_t)words[0];

	if (!size)
		return false;
	*record = (struct kscope_record){
		.kind = (enum kscope_kind)(head >> RING_KIND_SHIFT & RING_KIND_MASK),
		.user = head >> USER_SHIFT & 1,
		.event = head >> EVENT_SHIFT & 15,
		.task = (uint32_t)*at++,
	};
	record->time = get64(&at);
	record->value = get64(&at);
	record->link = *at++;
	if (record->kind == KSCOPE_ALLOC) {
		record->size = get64(&at);
		record->allocator = (const char *)*at++;
	}
	take_frames(record, words + (at - words), size - (uint32_t)(at - words));
	return true;
}
