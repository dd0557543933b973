// SPDX-License-Identifier: MIT
/*
 * stack: walks frame pointers. On all machines here, a frame has two words: the caller's frame pointer, and the return
 * address. On RISC-V they are below the address in the frame pointer, elsewhere at it.
 *
 * Nothing of a stack can be trusted: the port checks each read, and the walk has an end.
 */
#include "kscope.h"

#ifndef BELOW /* a test defines it */
#if defined(__riscv)
#define BELOW (2 * sizeof(uintptr_t))
#else
#define BELOW 0
#endif
#endif

/*
 * Callers are further up, except that interrupts may have a stack of their own, and so may the code that they
 * interrupt.
 */
#define JUMPS 2

struct walk {
	const struct kscope *k;
	uintptr_t *ring;
	uint32_t at, mask; /* in the ring */
	unsigned frames, max, traps;
};

static void put(struct walk *w, uintptr_t word)
{
	__atomic_store_n(&w->ring[w->at++ & w->mask], word, __ATOMIC_RELAXED);
}

uintptr_t kscope_plain(const struct kscope *k, uintptr_t address)
{
#if defined(__arm__)
	(void)k;
	return address & ~(uintptr_t)1; /* the Thumb bit */
#else
	uint64_t upper;

	if (__builtin_expect(!k->port->address_bits, 1))
		return address;
	upper = ~(uint64_t)0 << k->port->address_bits;
	return (uintptr_t)((uint64_t)address >> 55 & 1 ? address | upper : address & ~upper);
#endif
}

/* Not 0, and a port need not expect that `from + size` is less than `from`. */
static bool is_frame(uintptr_t fp)
{
	return fp - BELOW - 1 < UINTPTR_MAX - BELOW - 2 * sizeof(fp) && !(fp % sizeof(fp));
}

/* An address that is plain. */
static void put_frame(struct walk *w, uintptr_t address)
{
	put(w, address);
	w->frames++;
}

/* Code that was interrupted, in the middle of a stack. False: there is no room for it. */
static bool put_trap(struct walk *w, const struct kscope_at *before)
{
	if (w->traps == KSCOPE_TRAPS || w->frames == w->max)
		return false;
	w->traps++;
	put(w, before->user ? KSCOPE_MARK_USER : KSCOPE_MARK_KERNEL);
	put(w, kscope_plain(w->k, before->link));
	put_frame(w, kscope_plain(w->k, before->pc));
	return true;
}

/* Whether the frame at `fp`, to which `back` returns, is that of an exception. Changes `at` to what it interrupted. */
static bool is_trap(struct walk *w, struct kscope_at *at, uintptr_t back, uintptr_t fp)
{
	const struct kscope_port *port = w->k->port;
	struct kscope_at before = *at;

	if (!port->trap(port->data, at, back, fp, &before))
		return false;
	if (!put_trap(w, &before))
		before.fp = 0; /* the end */
	*at = before;
	return true;
}

/*
 * From a frame on. Changes `at` to code that was interrupted, if the stack leads there. This is where most of a
 * sample's time goes.
 */
static void walk(struct walk *w, struct kscope_at *at)
{
	const struct kscope_port *port = w->k->port;
	uintptr_t fp = at->fp, frame[2], back;
	uintptr_t entry_size = !port->trap ? 0 : port->entry_size ? port->entry_size : UINTPTR_MAX;
	unsigned jumps = 0;

	while (w->frames < w->max && is_frame(fp)) {
		if (!port->read(port->data, at, frame, fp - BELOW, sizeof(frame)))
			return;
		back = kscope_plain(w->k, frame[1]);
		if (back <= KSCOPE_MARK_USER) /* no address, and it would look like a mark */
			return;
		put_frame(w, back);
		/* A user stack may contain anything, also addresses of the kernel. */
		if (!at->user && back - port->entry < entry_size &&
		    is_trap(w, at, back, frame[0])) {
			fp = at->fp;
			jumps = 0;
			continue;
		}
		if (frame[0] <= fp && (frame[0] == fp || jumps++ == JUMPS))
			return;
		fp = frame[0];
	}
}

unsigned kscope_walk(const struct kscope *k, const struct kscope_at *at, struct kscope_ring *ring,
		     uint32_t to, unsigned max)
{
	struct walk w = {
		.k = k, .ring = ring->words, .at = to, .mask = ring->capacity - 1, .max = max
	};
	struct kscope_at here = *at, user = *at;

	put_frame(&w, kscope_plain(k, at->pc));
	if (!k->port->read)
		return 1;
	walk(&w, &here);
	user.user = true;
	if (!here.user && k->port->user && k->port->user(k->port->data, &here, &user) &&
	    put_trap(&w, &user))
		walk(&w, &user);
	return w.at - to;
}
