// SPDX-License-Identifier: MIT
#include "ring.h"

static uint32_t load(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void store(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static bool swap(uint32_t *at, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static uintptr_t word_at(const struct kscope_ring *ring, uint32_t at)
{
	return __atomic_load_n(&ring->words[at & (ring->capacity - 1)], __ATOMIC_RELAXED);
}

static bool is_pad(uintptr_t head)
{
	return (head >> RING_KIND_SHIFT & RING_KIND_MASK) == 0;
}

void kscope_ring_init(struct kscope_ring *ring, void *memory, size_t bytes)
{
	uint32_t capacity = 1;

	while (capacity < (uint32_t)1 << 30 && 2 * (size_t)capacity <= bytes / sizeof(uintptr_t))
		capacity *= 2;
	ring->words = memory;
	ring->capacity = capacity;
}

/* ---- the writers ---- */

/* The fence is for kscope_ring_is_quiet(): a reader that sees no writer sees what the writer read afterwards. */
void kscope_ring_begin(struct kscope_ring *ring)
{
	store(&ring->writers, load(&ring->writers) + 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* False: there is no complete record to drop. */
static bool drop_oldest(struct kscope_ring *ring, uint32_t oldest)
{
	uintptr_t head = word_at(ring, oldest);

	if (oldest == load(&ring->readable))
		return false;
	/* If the head was read while another writer replaced it, the oldest has moved, too. */
	if (swap(&ring->oldest, oldest, oldest + (head & RING_SIZE_MASK)) && !is_pad(head))
		__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
	return true;
}

bool kscope_ring_room(struct kscope_ring *ring, uint32_t words, bool drop_newest, uint32_t *at)
{
	for (;;) {
		/* In this order: an old `oldest` only seems to leave less room. */
		uint32_t oldest = load(&ring->oldest);

		*at = load(&ring->reserved);
		if (*at - oldest + words <= ring->capacity)
			return true;
		if (drop_newest || !drop_oldest(ring, oldest))
			break;
	}
	__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
	return false;
}

/*
 * The fence is between the position of the oldest record and the new words. Release: a reader that copies a new word
 * over an old record sees that the oldest has moved. Acquire: a reader that has moved it has copied before.
 */
bool kscope_ring_reserve(struct kscope_ring *ring, uint32_t words, uint32_t at)
{
	if (!swap(&ring->reserved, at, at + words))
		return false;
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
	return true;
}

void kscope_ring_commit(struct kscope_ring *ring, uint32_t at, uint32_t reserved, uint32_t used)
{
	/* A writer that interrupted this one has its record behind the reserved room. */
	if (used < reserved && !swap(&ring->reserved, at + reserved, at + used))
		kscope_ring_put(ring, at + used, reserved - used);
}

/* Writers that interrupt others leave it to the outermost one to make their records readable. */
void kscope_ring_end(struct kscope_ring *ring)
{
	uint32_t to;

	if (load(&ring->writers) > 1) {
		store(&ring->writers, load(&ring->writers) - 1);
		return;
	}
	do {
		store(&ring->writers, 1);
		to = load(&ring->reserved);
		__atomic_store_n(&ring->readable, to, __ATOMIC_RELEASE);
		__atomic_store_n(&ring->writers, 0, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (load(&ring->reserved) != to); /* one came after `to` was read */
}

/* ---- the reader ---- */

uint32_t kscope_ring_used(const struct kscope_ring *ring)
{
	uint32_t oldest = load(&ring->oldest);

	return __atomic_load_n(&ring->readable, __ATOMIC_ACQUIRE) - oldest;
}

/*
 * `reserved` and not `readable`: at the end of a writer, there is a moment at which nobody writes, but the record of one
 * that interrupted it is not readable yet. Acquire: what the last writer did is seen, if its end is.
 */
bool kscope_ring_is_quiet(const struct kscope_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !__atomic_load_n(&ring->writers, __ATOMIC_ACQUIRE) &&
	       load(&ring->oldest) == load(&ring->reserved);
}

/* Copies the record at `from`. Returns its size; a record that is being replaced may have any size. */
static uint32_t copy(const struct kscope_ring *ring, uint32_t from, uintptr_t *to, uint32_t max)
{
	uint32_t size = (uint32_t)(word_at(ring, from) & RING_SIZE_MASK);

	for (uint32_t i = 0; i < size && i < max; i++)
		to[i] = word_at(ring, from + i);
	return size;
}

/* Release: the copy is complete before a writer uses its room. */
static bool remove_oldest(struct kscope_ring *ring, uint32_t oldest, uint32_t size)
{
	return __atomic_compare_exchange_n(&ring->oldest, &oldest, oldest + size, false,
					   __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

uint32_t kscope_ring_take(struct kscope_ring *ring, uintptr_t *to, uint32_t max)
{
	for (;;) {
		uint32_t oldest = load(&ring->oldest), size;

		if (__atomic_load_n(&ring->readable, __ATOMIC_ACQUIRE) == oldest)
			return 0;
		size = copy(ring, oldest, to, max);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		/* If a writer has dropped this record meanwhile, the copy may be of another one. */
		if (!remove_oldest(ring, oldest, size) || is_pad(to[0]))
			continue;
		if (size <= max)
			return size;
		__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
	}
}
