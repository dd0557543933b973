/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place: where the binaries that the user named were in a machine that tells nothing of itself.
 * A kernel that chose its own place (KASLR) is found by the addresses that ran: the slide under
 * which most of them are the first byte of a function. Programs are found by the code that ran:
 * the first bytes of a page, looked up among the pages of the binaries.
 */
#ifndef KSCOPE_PLACE_PLACE_H
#define KSCOPE_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"

struct place;

/* Strings are borrowed. kernel may be NULL; a file that cannot be read is warned of and left out. */
struct place *place_new(const char *kernel, const char *const *elfs, size_t nr_elfs);
void place_free(struct place *place);

/* An address that a cpu was at in kernel mode: a vote. Distinct ones only, at most a few 10,000. */
void place_vote(struct place *place, uint64_t pc);
/*
 * The kernel's slide by the votes so far: true and *slide (0: it is where it was linked) if they
 * agree. *hits of *votes (they may be NULL) were the first byte of a function.
 */
bool place_slide(struct place *place, uint64_t *slide, uint64_t *hits, uint64_t *votes);

/* Whether there is a kernel and its file can be read. */
bool place_has_kernel(struct place *place);
/* Whether all files that were named can be read. To be asked after the kernel's slide. */
bool place_read(struct place *place);
/* A function of the kernel, and where it was linked; false: it has none. */
bool place_anchor(struct place *place, const char **name, uint64_t *vaddr);

/*
 * The kernel's modules, if the file is a list of symbols that has them: the map of the nth, whose
 * path, such as "[ext4]", lives as long as the place. False: there are no more.
 */
bool place_module(struct place *place, size_t n, struct event_map *map);

/*
 * Bytes of code that ran at `address` (a page's first). True: they are of one of the binaries;
 * *map is then filled: all of the segment that the page is in, where this page says that it is.
 * The same answer is given again for the same segment at the same place; callers remember.
 *
 * Of the kernel only what ran elsewhere than place_slide() said is an answer, and only that page:
 * code before memory was mapped, and trampolines that user page tables have.
 */
bool place_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len,
		struct event_map *map);

#endif
