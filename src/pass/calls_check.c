// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples inside a trace: src/unwind and the tracker must find the same stack. */
#include <inttypes.h>

#include "base/buf.h"
#include "base/log.h"
#include "pass/calls.h"

#define MAX_CALLERS 512
#define MAX_NOTES 20 /* differences to describe */

struct chain {
	uint64_t leaf;
	struct calls_caller callers[MAX_CALLERS];
	size_t nr;
	bool whole; /* the last one is the first function of the task */
	bool first; /* the task ran when the trace or the kernel began */
};

static void sampled_chain(const struct event_sample *sample, struct chain *chain)
{
	bool marked = false;

	chain->nr = 0;
	chain->leaf = 0;
	for (uint32_t i = 0; i < sample->nr; i++) {
		uint64_t ip = sample->ips[i];

		if (ip_is_marker(ip))
			marked = ip == sample->context;
		else if (!chain->leaf)
			chain->leaf = ip;
		else if (chain->nr < MAX_CALLERS)
			chain->callers[chain->nr++] = (struct calls_caller){
				.address = ip, .context = sample->context, .exact = marked
			};
		marked &= ip_is_marker(ip);
	}
	chain->whole = sample->ended;
}

static bool ends_in_program(const struct event_sample *sample)
{
	return sample->context != IP_USER && sample->nr > 1 &&
	       sample->ips[sample->nr - 2] == IP_USER;
}

/*
 * The unwinder follows a kernel stack up to the address in the program for which the kernel runs, or only
 * to the kernel's entry if the program's registers are not on the stack. Drops the callers after that.
 */
static void cut_program(const struct event_sample *sample, struct chain *traced)
{
	size_t kernel = 0;

	if (sample->context == IP_USER)
		return;
	while (kernel < traced->nr && traced->callers[kernel].context != IP_USER)
		kernel++;
	if (kernel == traced->nr)
		return;
	traced->nr = kernel + ends_in_program(sample);
	traced->first = false; /* it does not begin in the kernel */
}

static void add_chain(struct buf *to, const char *what, const struct chain *chain)
{
	buf_addf(to, " %s %" PRIx64, what, chain->leaf);
	for (size_t i = 0; i < chain->nr; i++)
		buf_addf(to, " %" PRIx64, chain->callers[i].address);
	if (!chain->whole)
		buf_adds(to, " ...");
}

/*
 * A kernel may jump to its first C function, which then saves the return address of an earlier call, as on
 * RISC-V: the unwinder takes that for a caller. If the tracker lost the first caller of the task that booted
 * the kernel, and of no other, it would look the same.
 */
static bool is_stale_root(const struct chain *sampled, size_t i, const struct chain *traced,
			  size_t j)
{
	return traced->whole && traced->first && i + 1 == sampled->nr && j == traced->nr;
}

static void describe(const struct event *ev, const struct chain *sampled,
		     const struct chain *traced)
{
	struct buf text = { 0 };

	add_chain(&text, "sampled", sampled);
	add_chain(&text, "; traced", traced);
	log_note("cpu %" PRIu32 ", %" PRIu64 " ns:%s", ev->cpu, ev->time, text.data);
	buf_release(&text);
}

/* The kernel may let a program skip the instruction that trapped, or repeat it. */
#define ONE_INSN 4

static bool same_function(const struct calls *calls, const struct calls_caller *traced,
			  uint64_t address, uint32_t pid)
{
	return calls_function(calls, address, traced->context, pid) ==
	       calls_function(calls, traced->address, traced->context, pid);
}

static bool same_caller(const struct calls *calls, const struct calls_caller *traced,
			uint64_t address, uint32_t pid)
{
	return traced->address == address ||
	       (traced->trap && traced->context == IP_USER &&
		address - traced->address + ONE_INSN <= 2 * ONE_INSN) ||
	       (traced->guessed && same_function(calls, traced, address, pid));
}

/* How many callers are the same, from the i-th sampled and the j-th traced one on. */
static size_t nr_same(const struct calls *calls, const struct chain *sampled, size_t i,
		      const struct chain *traced, size_t j, uint32_t pid)
{
	size_t nr = 0;

	while (i + nr < sampled->nr && j + nr < traced->nr &&
	       same_caller(calls, &traced->callers[j + nr], sampled->callers[i + nr].address, pid))
		nr++;
	return nr;
}

/* Whether they are the same. A chain that is not whole may end early, and there may be a stale root. */
static bool agree(const struct calls *calls, const struct chain *sampled, size_t i,
		  const struct chain *traced, size_t j, uint32_t pid)
{
	size_t nr = nr_same(calls, sampled, i, traced, j, pid);

	if (is_stale_root(sampled, i + nr, traced, j + nr))
		return true;
	return (i + nr == sampled->nr || !traced->whole) &&
	       (j + nr == traced->nr || !sampled->whole) &&
	       (i + nr == sampled->nr || j + nr == traced->nr);
}

/*
 * The entry code of an exception has not yet saved the interrupted registers for the unwinder, or has
 * restored them. The unwinder then finds only a stale address, or, in the kernel's own code, has the link
 * register: a return address in the interrupted function, or in its caller. A wrong interrupted address in
 * the right function would look the same.
 */
static bool in_entry(const struct calls *calls, const struct chain *sampled,
		     const struct chain *traced, uint32_t pid)
{
	const struct calls_caller *place = traced->callers;

	if (!sampled->nr || !traced->nr || !place->trap)
		return false;
	if (sampled->nr == 1 && !sampled->whole)
		return true;
	return place->context != IP_USER &&
	       (agree(calls, sampled, 0, traced, 1, pid) ||
		(same_function(calls, place, sampled->callers[0].address, pid) &&
		 agree(calls, sampled, 1, traced, 1, pid)));
}

/*
 * The exception came at a call or a return, and the trace does not tell whether it was before or after it.
 * The callers behind it must match.
 */
static bool is_one_step_off(const struct calls *calls, const struct chain *sampled,
			    const struct chain *traced, size_t same, uint32_t pid)
{
	const struct calls_caller *place = traced->callers + same;

	if (same + 1 >= sampled->nr || same >= traced->nr || !place->guessed)
		return false;
	return (same_function(calls, place, sampled->callers[same + 1].address, pid) &&
		agree(calls, sampled, same + 2, traced, same + 1, pid)) ||
	       (same + 1 < traced->nr &&
		same_function(calls, place + 1, sampled->callers[same].address, pid) &&
		agree(calls, sampled, same + 1, traced, same + 2, pid));
}

/* A retpoline jumps to a function by a return: it has just put the function's address on the stack. */
static bool is_jumping(const struct calls *calls, const struct chain *sampled, uint32_t pid)
{
	const struct calls_caller *top = sampled->callers;

	return sampled->nr && top->exact &&
	       calls_function(calls, top->address, top->context, pid) == top->address;
}

void calls_check(struct calls *calls, const struct event *ev)
{
	struct chain sampled, traced = { 0 };
	uint32_t mark = track_running(&calls->track, track_strand(&calls->track, ev), &traced.whole,
				      &traced.first);
	size_t same;

	sampled_chain(&ev->sample, &sampled);
	/* The unwinder needs a known binary in its place; firmware has none. */
	if (!mark || !calls_function(calls, sampled.leaf, ev->sample.context, ev->pid) ||
	    (calls->kernel && ev->sample.context == IP_KERNEL &&
	     !calls->kernel(calls->data, sampled.leaf)))
		return;
	traced.nr = calls_callers(calls, mark, &traced.leaf, traced.callers, MAX_CALLERS);
	if (sampled.whole)
		cut_program(&ev->sample, &traced);
	same = is_jumping(calls, &sampled, ev->pid) && traced.nr;
	same += nr_same(calls, &sampled, same, &traced, same, ev->pid);
	/* A new process: its registers are those of its program, which has not run yet. */
	if (traced.whole && traced.nr + 1 == sampled.nr && ends_in_program(&ev->sample))
		sampled.nr--;
	/* If no call precedes the return address at the root, the kernel put it there. */
	if (traced.whole && traced.nr + 1 == sampled.nr && sampled.callers[traced.nr].exact)
		sampled.nr--;
	if (same == sampled.nr && same == traced.nr) {
		calls->checks.equal++;
	} else if ((same == sampled.nr && !sampled.whole) || (same == traced.nr && !traced.whole) ||
		   (!same && in_entry(calls, &sampled, &traced, ev->pid)) ||
		   is_one_step_off(calls, &sampled, &traced, same, ev->pid) ||
		   is_stale_root(&sampled, same, &traced, same)) {
		calls->checks.partial++;
	} else {
		if (calls->checks.different++ < MAX_NOTES)
			describe(ev, &sampled, &traced);
	}
}
