/* SPDX-License-Identifier: MIT */
/*
 * ring: records of one cpu. Its interrupts write, one task reads, and neither waits for the other. An interrupt may
 * interrupt another one that is writing (an NMI): their records are reserved one after the other, and become readable
 * when the outermost is complete.
 *
 * A record is a number of words; the low 16 bits of its first word are that number, and the four bits above them are
 * its kind: 0 for a record without meaning. Positions count words and wrap around at 2^32.
 */
#ifndef KSCOPE_RING_H
#define KSCOPE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_SIZE_MASK 0xffffu
#define RING_KIND_SHIFT 16
#define RING_KIND_MASK 0xfu

struct kscope_ring {
	uintptr_t *words;
	uint32_t capacity; /* a power of two */
	uint32_t reserved; /* where the next record begins */
	uint32_t readable; /* records up to here are complete */
	uint32_t oldest;   /* the next to read; a writer that drops the oldest moves it, too */
	uint32_t writers;  /* interrupts that are writing */
	uint32_t dropped;  /* records, for lack of room */
};

/*
 * Gives memory to a ring that is empty: at first, zeroed. `bytes` may be any size; the ring uses the largest power of
 * two in it. Interrupts may call begin and end meanwhile, but nothing between the two.
 */
void kscope_ring_init(struct kscope_ring *ring, void *memory, size_t bytes);

/* The writers. All they do is between begin and end. */
void kscope_ring_begin(struct kscope_ring *ring);
/* Finds room for at most `words`, or drops records: the oldest ones, or, if it returns false, this one. */
bool kscope_ring_room(struct kscope_ring *ring, uint32_t words, bool drop_newest, uint32_t *at);
/*
 * Reserves the room that was found. False: an interrupt has written a record since then, and this one has to look for
 * room again. So what is read between the two calls, such as a clock, is read in the order of the records.
 */
bool kscope_ring_reserve(struct kscope_ring *ring, uint32_t words, uint32_t at);
static inline void kscope_ring_put(struct kscope_ring *ring, uint32_t at, uintptr_t word)
{
	__atomic_store_n(&ring->words[at & (ring->capacity - 1)], word, __ATOMIC_RELAXED);
}
/* The record is complete. `used`: its words; the rest of what was reserved is free again. */
void kscope_ring_commit(struct kscope_ring *ring, uint32_t at, uint32_t reserved, uint32_t used);
void kscope_ring_end(struct kscope_ring *ring);

/* The reader: copies the oldest record, and removes it. Returns its words; 0: there is none. */
uint32_t kscope_ring_take(struct kscope_ring *ring, uintptr_t *to, uint32_t max);
/* How many words wait. */
uint32_t kscope_ring_used(const struct kscope_ring *ring);
/* No record is being written, and none waits. */
bool kscope_ring_is_quiet(const struct kscope_ring *ring);

#endif
