// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring on one cpu: exact fits, wraps, pads, what is dropped. Then with a writer that signals interrupt, as NMIs do,
 * and a reader on another cpu.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "target/ring.h"
#include "test.h"

#define KIND 2
#define WORDS_MAX 16

static uintptr_t memory[1024];

static struct kscope_ring new_ring(uint32_t words, uint32_t start)
{
	struct kscope_ring ring = { .reserved = start, .readable = start, .oldest = start };

	kscope_ring_init(&ring, memory, words * sizeof(memory[0]));
	return ring;
}

/* A record of a number: all words are made of it. */
static void fill(struct kscope_ring *ring, uint32_t at, uint32_t words, uint32_t number)
{
	for (uint32_t i = 1; i < words; i++)
		kscope_ring_put(ring, at + i, (uintptr_t)number * 0x9e3779b1u + i);
	kscope_ring_put(ring, at, KIND << RING_KIND_SHIFT | words);
}

static bool is_record(const uintptr_t *words, uint32_t size, uint32_t number)
{
	for (uint32_t i = 1; i < size; i++) {
		if (words[i] != (uintptr_t)number * 0x9e3779b1u + i)
			return false;
	}
	return words[0] == (KIND << RING_KIND_SHIFT | size);
}

static bool reserve(struct kscope_ring *ring, uint32_t room, bool drop_newest, uint32_t *at)
{
	return kscope_ring_room(ring, room, drop_newest, at) &&
	       kscope_ring_reserve(ring, room, *at);
}

static bool put(struct kscope_ring *ring, uint32_t room, uint32_t used, bool drop_newest,
		uint32_t number)
{
	uint32_t at;
	bool good;

	kscope_ring_begin(ring);
	good = reserve(ring, room, drop_newest, &at);
	if (good) {
		fill(ring, at, used, number);
		kscope_ring_commit(ring, at, room, used);
	}
	kscope_ring_end(ring);
	return good;
}

static bool reads(struct kscope_ring *ring, uint32_t size, uint32_t number)
{
	uintptr_t words[WORDS_MAX];

	return kscope_ring_take(ring, words, WORDS_MAX) == size && is_record(words, size, number);
}

static bool is_empty(struct kscope_ring *ring)
{
	uintptr_t words[WORDS_MAX];

	return kscope_ring_is_quiet(ring) && !kscope_ring_used(ring) &&
	       !kscope_ring_take(ring, words, WORDS_MAX);
}

static void test_sizes(void)
{
	struct kscope_ring ring = new_ring(64, 0);

	check("the largest power of two: exact", ring.capacity == 64);
	ring = new_ring(127, 0);
	check("the largest power of two: less", ring.capacity == 64);
	kscope_ring_init(&ring, memory, 0);
	check("no memory: no record fits", !put(&ring, 4, 4, false, 1) && ring.dropped == 1);
}

static void test_fit(uint32_t start)
{
	struct kscope_ring ring = new_ring(16, start);
	bool good = true;

	for (uint32_t i = 0; i < 4; i++)
		good &= put(&ring, 4, 4, true, i);
	check("records that fit exactly", good && kscope_ring_used(&ring) == 16);
	check("one more is dropped", !put(&ring, 4, 4, true, 9) && ring.dropped == 1);
	good = reads(&ring, 4, 0) && put(&ring, 4, 4, true, 4);
	for (uint32_t i = 1; i < 5; i++)
		good &= reads(&ring, 4, i);
	check("they come out in order", good && is_empty(&ring));
	check("one as large as the ring",
	      put(&ring, 16, 16, true, 7) && reads(&ring, 16, 7) && is_empty(&ring));
	check("one that is larger",
	      !put(&ring, 17, 16, true, 7) && !put(&ring, 17, 16, false, 7) && is_empty(&ring));
}

/* What a record does not use is free again, so more of them fit. */
static void test_shrink(void)
{
	struct kscope_ring ring = new_ring(16, UINT32_MAX - 9);
	uint32_t nr = 0;
	bool good = true;

	while (put(&ring, 8, 3, true, nr))
		nr++;
	check("a record gives back what it does not use",
	      nr == 3 && ring.reserved == UINT32_C(0) - 1);
	for (uint32_t i = 0; i < nr; i++)
		good &= reads(&ring, 3, i);
	check("and they come out", good && is_empty(&ring));
}

static void test_drop_oldest(void)
{
	struct kscope_ring ring = new_ring(16, UINT32_MAX - 30);
	bool good = true;

	for (uint32_t i = 0; i < 100; i++)
		good &= put(&ring, 8, 5, false, i);
	/* Two wait; the third needs 8 words at first. */
	check("the oldest are dropped", good && ring.dropped == 98);
	check("the newest are there",
	      reads(&ring, 5, 98) && reads(&ring, 5, 99) && is_empty(&ring));
}

/* A record of another writer comes right behind the reserved room, which then has a pad at its end. */
static void test_pad(void)
{
	struct kscope_ring ring = new_ring(32, UINT32_MAX - 5);
	uint32_t outer, nested;
	bool good;

	kscope_ring_begin(&ring);
	good = reserve(&ring, 8, false, &outer);
	kscope_ring_begin(&ring);
	good &= reserve(&ring, 8, false, &nested);
	fill(&ring, nested, 4, 2);
	kscope_ring_commit(&ring, nested, 8, 4);
	kscope_ring_end(&ring);
	check("the record of an interrupt waits for the one that it interrupted",
	      good && !kscope_ring_used(&ring) && !kscope_ring_is_quiet(&ring));
	fill(&ring, outer, 3, 1);
	kscope_ring_commit(&ring, outer, 8, 3);
	kscope_ring_end(&ring);
	check("between them is a pad", ring.reserved == outer + 12);
	check("which is skipped", reads(&ring, 3, 1) && reads(&ring, 4, 2) && is_empty(&ring));
}

/* Pads that are dropped are not counted as records. */
static void test_drop_pad(void)
{
	struct kscope_ring ring = new_ring(32, 0);
	uint32_t outer, nested;

	kscope_ring_begin(&ring);
	reserve(&ring, 8, false, &outer);
	kscope_ring_begin(&ring);
	reserve(&ring, 8, false, &nested);
	fill(&ring, nested, 4, 2);
	kscope_ring_commit(&ring, nested, 8, 4);
	kscope_ring_end(&ring);
	fill(&ring, outer, 3, 1);
	kscope_ring_commit(&ring, outer, 8, 3);
	kscope_ring_end(&ring);
	for (uint32_t i = 3; i < 7; i++)
		put(&ring, 8, 8, false, i);
	check("pads that are dropped do not count", ring.dropped == 2 && reads(&ring, 8, 3));
}

static void test_refused(void)
{
	struct kscope_ring ring = new_ring(16, 0);
	uint32_t at, other;

	kscope_ring_begin(&ring);
	kscope_ring_room(&ring, 4, false, &at);
	put(&ring, 4, 4, false, 1);
	check("room that an interrupt has used meanwhile",
	      !kscope_ring_reserve(&ring, 4, at) && kscope_ring_room(&ring, 4, false, &other) &&
		      other == at + 4);
	kscope_ring_end(&ring);
}

static void test_too_large_to_read(void)
{
	struct kscope_ring ring = new_ring(64, 0);

	put(&ring, 32, 32, false, 1);
	put(&ring, 4, 4, false, 2);
	check("a record that is too large for the reader is counted",
	      reads(&ring, 4, 2) && ring.dropped == 1 && is_empty(&ring));
}

/* New memory, in the middle of an interrupt that writes nothing. */
static void test_new_memory(void)
{
	struct kscope_ring ring = new_ring(64, 77);

	kscope_ring_begin(&ring);
	kscope_ring_init(&ring, memory, 32 * sizeof(memory[0]));
	check("the interrupt is still there", !kscope_ring_is_quiet(&ring));
	kscope_ring_end(&ring);
	check("the ring is empty, and works",
	      is_empty(&ring) && put(&ring, 8, 5, false, 3) && reads(&ring, 5, 3));
}

/* ---- two cpus, and signals ---- */

#define RECORDS 100000
#define SIGNALS 20000

static struct {
	struct kscope_ring ring;
	bool drop_newest;
	uint32_t
		number; /* of the writers: they interrupt each other, so it needs to be atomic on one cpu only */
	uint32_t taken;
	bool done;
} shared;

static void write_shared(uint32_t size)
{
	uint32_t at, number;

	kscope_ring_begin(&shared.ring);
	__atomic_fetch_add(&shared.taken, 1, __ATOMIC_RELAXED);
	do {
		if (!kscope_ring_room(&shared.ring, WORDS_MAX, shared.drop_newest, &at))
			break;
		number = __atomic_add_fetch(&shared.number, 1, __ATOMIC_RELAXED);
		if (kscope_ring_reserve(&shared.ring, WORDS_MAX, at)) {
			kscope_ring_put(&shared.ring, at + 1, number);
			for (uint32_t i = 2; i < size; i++)
				kscope_ring_put(&shared.ring, at + i, number * 0x9e3779b1u + i);
			kscope_ring_put(&shared.ring, at, KIND << RING_KIND_SHIFT | size);
			kscope_ring_commit(&shared.ring, at, WORDS_MAX, size);
			break;
		}
	} while (true);
	kscope_ring_end(&shared.ring);
}

static void interrupt(int number)
{
	(void)number;
	write_shared(3 + shared.taken % 13);
}

static void *writer(void *data)
{
	uint64_t seed = 1;

	for (unsigned i = 0; i < RECORDS; i++)
		write_shared(3 + next_random(&seed) % 14);
	__atomic_store_n(&shared.done, true, __ATOMIC_RELEASE);
	return data;
}

struct seen {
	uint32_t read, last;
	bool good;
};

static bool take_shared(struct seen *seen)
{
	uintptr_t words[WORDS_MAX];
	uint32_t size = kscope_ring_take(&shared.ring, words, WORDS_MAX);

	if (!size)
		return false;
	for (uint32_t i = 2; i < size; i++)
		seen->good &= words[i] == (uint32_t)words[1] * 0x9e3779b1u + i;
	seen->good &= words[1] > seen->last && words[0] == (KIND << RING_KIND_SHIFT | size);
	seen->last = (uint32_t)words[1];
	seen->read++;
	return true;
}

static void test_threads(bool drop_newest)
{
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
	struct seen seen = { .good = true };
	pthread_t thread;

	memset(&shared, 0, sizeof(shared));
	shared.ring.reserved = shared.ring.readable = shared.ring.oldest = UINT32_MAX - 5000;
	shared.drop_newest = drop_newest;
	kscope_ring_init(&shared.ring, memory, 64 * sizeof(memory[0]));
	sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, writer, NULL))
		abort();
	for (unsigned i = 0; !__atomic_load_n(&shared.done, __ATOMIC_ACQUIRE); i++) {
		if (i < SIGNALS)
			pthread_kill(thread, SIGUSR1);
		while (take_shared(&seen))
			;
	}
	pthread_join(thread, NULL);
	while (take_shared(&seen))
		;
	check(drop_newest ? "threads: newest: whole and in order"
			  : "threads: oldest: whole and in order",
	      seen.good && seen.read);
	check(drop_newest ? "threads: newest: taken = read + dropped"
			  : "threads: oldest: taken = read + dropped",
	      shared.taken >= RECORDS && shared.taken == seen.read + shared.ring.dropped);
	check("threads: the ring is quiet", kscope_ring_is_quiet(&shared.ring));
}

int main(void)
{
	test_sizes();
	test_fit(0);
	test_fit(UINT32_MAX - 6);
	test_shrink();
	test_drop_oldest();
	test_pad();
	test_drop_pad();
	test_refused();
	test_too_large_to_read();
	test_new_memory();
	test_threads(false);
	test_threads(true);
	return test_result();
}
