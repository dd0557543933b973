/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * split: takes apart a chain that was walked by frame pointers through an interrupt: the handler's
 * stack, and the stack of what it interrupted. Needs the binary's symbols; without them the chain
 * stays as it is.
 *
 * This follows Maestro's aggregator: frames in no function separate stacks and are dropped, and
 * each stack counts as one sample, so that the total may exceed the number of records. On purpose
 * it differs in these:
 *  - A record without a single function, one in user mode mostly, counts as one sample outside the
 *    kernel. There it vanished.
 *  - A return address in an assembler label, a symbol without a size, ends a stack as it did there,
 *    but is kept as the root: isr_14 says more than nothing. A pc in one (memcpy in assembly) is an
 *    ordinary leaf; there it was dropped.
 *  - Return addresses are looked up one byte before, where the call is.
 */
#ifndef KSCOPE_PASS_SPLIT_H
#define KSCOPE_PASS_SPLIT_H

#include "model/world.h"

/*
 * The next stack of a sample with split_unknown; *at is 0 at first. False: there are no more. The
 * part borrows from the whole.
 */
bool split_next(struct world *world, const struct event *whole, uint32_t *at, struct event *part);

#endif
