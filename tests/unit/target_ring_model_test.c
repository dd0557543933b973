// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ring, in every order of its steps: a writer, writers that interrupt it as NMIs do, and a reader on another cpu. A
 * step is an atomic operation. The test counts through the choices at each step: go on, let the other cpu run, or an
 * interrupt comes. The number of switches between the cpus is limited; faults need few.
 */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "test.h"

static void point(void);

static bool swap_plain(uint32_t *at, uint32_t *expected, uint32_t value)
{
	bool same = *at == *expected;

	if (same)
		*at = value;
	else
		*expected = *at;
	return same;
}

static uint32_t add_plain(uint32_t *at, uint32_t value)
{
	*at += value;
	return *at - value;
}

#define __atomic_load_n(at, order) (point(), *(at))
#define __atomic_store_n(at, value, order) (point(), (void)(*(at) = (value)))
#define __atomic_compare_exchange_n(at, expected, value, weak, order, other) \
	(point(), swap_plain(at, expected, value))
#define __atomic_fetch_add(at, value, order) (point(), add_plain(at, value))
#define __atomic_thread_fence(order) ((void)0)
#define __atomic_signal_fence(order) ((void)0)
#include "target/ring.c"

/* ---- the choices ---- */

#define CHOICES_MAX 4096

static struct {
	uint8_t taken[CHOICES_MAX], options[CHOICES_MAX];
	unsigned nr, at;
} choices;

static unsigned choose(unsigned options)
{
	unsigned at = choices.at++;

	if (options == 1 || at >= CHOICES_MAX)
		abort();
	if (at >= choices.nr) {
		choices.taken[at] = 0;
		choices.options[at] = (uint8_t)options;
		choices.nr = at + 1;
	}
	return choices.taken[at];
}

/* False: there are no more. */
static bool next_choices(void)
{
	unsigned nr = choices.at;

	while (nr && choices.taken[nr - 1] + 1 == choices.options[nr - 1])
		nr--;
	if (!nr)
		return false;
	choices.taken[nr - 1]++;
	choices.nr = nr;
	choices.at = 0;
	return true;
}

/* ---- two cpus ---- */

#define CAPACITY_MAX 16 /* words */
#define WORDS 3		/* of a record */
#define ROOM 4		/* reserved for it */
#define KIND 1

static struct scene {
	const char *name;
	unsigned capacity;
	unsigned switches, nmis; /* at most */
	unsigned before, records;
	uint32_t start;
	bool drop_newest, stops;
} scene;

static struct {
	struct kscope_ring ring;
	uintptr_t words[CAPACITY_MAX];
	bool running, off; /* off: no choices, the model is being set up or looked at */
	unsigned switches, nmis;
	bool reads, writer_done, reader_done;
	uint32_t clock, taken, read, last;
	bool good;
} now;

static ucontext_t writer_context, reader_context;
static char reader_stack[256 << 10];

static void let_other_run(void)
{
	now.reads = !now.reads;
	if (now.reads)
		swapcontext(&writer_context, &reader_context);
	else
		swapcontext(&reader_context, &writer_context);
}

static void write_one(void);

static void point(void)
{
	bool can_switch = now.switches && !(now.reads ? now.writer_done : now.reader_done);
	bool can_interrupt = now.nmis && !now.reads;
	unsigned choice;

	if (now.off || (!can_switch && !can_interrupt))
		return;
	choice = choose(1 + can_switch + can_interrupt);
	if (choice && choice == can_switch) {
		now.switches--;
		let_other_run();
	} else if (choice) {
		now.nmis--;
		write_one();
	}
}

/* ---- what they do ---- */

static bool reserve(uint32_t *at, uint32_t *time)
{
	do {
		if (!kscope_ring_room(&now.ring, ROOM, scene.drop_newest, at))
			return false;
		point();
		*time = ++now.clock;
		point();
	} while (!kscope_ring_reserve(&now.ring, ROOM, *at));
	return true;
}

static void write_one(void)
{
	uint32_t at, time;

	kscope_ring_begin(&now.ring);
	if (__atomic_load_n(&now.running, __ATOMIC_RELAXED)) {
		now.taken++;
		if (reserve(&at, &time)) {
			kscope_ring_put(&now.ring, at + 1, time);
			kscope_ring_put(&now.ring, at + 2, ~(uintptr_t)time);
			kscope_ring_put(&now.ring, at, KIND << RING_KIND_SHIFT | WORDS);
			kscope_ring_commit(&now.ring, at, ROOM, WORDS);
		}
	}
	kscope_ring_end(&now.ring);
}

static bool read_one(void)
{
	uintptr_t words[ROOM] = { 0 };
	uint32_t size = kscope_ring_take(&now.ring, words, ROOM);

	if (!size)
		return false;
	now.good &= size == WORDS && words[0] == (KIND << RING_KIND_SHIFT | WORDS);
	now.good &= words[2] == ~words[1] && words[1] > now.last;
	now.last = (uint32_t)words[1];
	now.read++;
	return true;
}

/* As at the end of a recording: when the ring is quiet, everything has been read. */
static void stop_and_drain(void)
{
	__atomic_store_n(&now.running, false, __ATOMIC_RELAXED);
	for (;;) {
		while (read_one())
			;
		if (kscope_ring_is_quiet(&now.ring))
			break;
		if (!now.writer_done)
			let_other_run();
	}
	now.good &= now.taken == now.read + now.ring.dropped;
}

static void reader(void)
{
	if (scene.stops) {
		stop_and_drain();
	} else {
		for (unsigned i = 0; i < scene.before + 1; i++)
			read_one();
	}
	now.reader_done = true;
	now.reads = false;
	setcontext(&writer_context);
}

static void set_up(void)
{
	memset(&now, 0, sizeof(now));
	now.ring.reserved = now.ring.readable = now.ring.oldest = scene.start;
	kscope_ring_init(&now.ring, now.words, scene.capacity * sizeof(now.words[0]));
	now.running = now.good = now.off = true;
	for (unsigned i = 0; i < scene.before; i++)
		write_one();
	now.switches = scene.switches;
	now.nmis = scene.nmis;
	getcontext(&reader_context);
	reader_context.uc_stack.ss_sp = reader_stack;
	reader_context.uc_stack.ss_size = sizeof(reader_stack);
	reader_context.uc_link = NULL;
	makecontext(&reader_context, reader, 0);
	now.off = false;
}

static bool run(void)
{
	set_up();
	for (unsigned i = 0; i < scene.records; i++)
		write_one();
	now.writer_done = true;
	while (!now.reader_done)
		let_other_run();
	now.off = true;
	while (read_one())
		;
	return now.good && now.taken == now.read + now.ring.dropped && now.ring.writers == 0 &&
	       kscope_ring_is_quiet(&now.ring);
}

static void test(const struct scene *what)
{
	unsigned long runs = 0;
	bool good = true;

	scene = *what;
	memset(&choices, 0, sizeof(choices));
	do {
		good &= run();
		runs++;
	} while (good && next_choices());
	if (!good)
		printf("after %lu orders: taken %u, read %u, dropped %u\n", runs, now.taken,
		       now.read, now.ring.dropped);
	check(what->name, good && runs > 1000);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ "a full ring, the oldest are dropped", 16, 4, 0, 5, 2, 0, false, false },
		{ "the newest are dropped", 16, 4, 0, 5, 2, 0, true, false },
		{ "positions wrap", 16, 3, 0, 3, 3, UINT32_MAX - 11, false, false },
		{ "a writer interrupts another", 16, 3, 1, 4, 1, UINT32_MAX - 20, false, false },
		{ "two writers interrupt others", 16, 1, 2, 4, 1, 0, false, false },
		{ "three writers interrupt others, and each other", 16, 0, 3, 4, 1, 0, false,
		  false },
		{ "there is no room for all writers", 8, 0, 3, 2, 1, 0, false, false },
		{ "stop", 16, 4, 0, 1, 2, 0, false, true },
		{ "stop, with a writer that interrupts another", 16, 3, 1, 1, 1, 0, false, true },
		{ "stop, with two", 16, 2, 2, 0, 1, 0, false, true },
		{ "stop, and the ring is full", 16, 2, 1, 4, 1, 0, false, true },
	};

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		test(&scenes[i]);
	return test_result();
}
