/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * place: finds where the binaries that the user named were loaded in a machine that does not report
 * it. A kernel with KASLR is found by its code, as programs are, or by the addresses that ran: at the
 * right slide, most of them are the first byte of a function. Programs are found by the code that ran: the first bytes of a page
 * are looked up among the pages of the binaries.
 */
#ifndef KSCOPE_PLACE_PLACE_H
#define KSCOPE_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"

struct library;
struct place;

/* The library and the strings are borrowed. kernel may be NULL. Unreadable files get a warning and are skipped. */
struct place *place_new(struct library *library, const char *kernel, const char *const *elfs,
			size_t nr_elfs);
void place_free(struct place *place);

/* Adds an address that ran in kernel mode. Pass each one once; only the first 65,536 count. */
void place_vote(struct place *place, uint64_t pc);
/* Adds the first bytes of a page of code that ran in kernel mode. Only the first 1024 pages count. */
void place_vote_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len);
/*
 * Finds the kernel's slide from the votes so far (0: it is at its link address). False: no clear
 * result. *hits of *votes (which may be NULL) were the first byte of a function.
 */
bool place_slide(struct place *place, uint64_t *slide, uint64_t *hits, uint64_t *votes);

/* Whether there is a kernel and its file is readable. */
bool place_has_kernel(struct place *place);
/* Reads all files; false: one is unreadable. Call it after place_slide(). */
bool place_read(struct place *place);
/* A function of the kernel and its link address; false: none. */
bool place_anchor(struct place *place, const char **name, uint64_t *vaddr);

/*
 * The map of the kernel's nth module, if the kernel's file is a symbol list with modules. The path,
 * such as "[ext4]", lives as long as the place. False: there are no more.
 */
bool place_module(struct place *place, size_t n, struct event_map *map);

/*
 * Looks up the first bytes of a page of code that ran at `address`. True: they are in one of the
 * binaries, and *map is the map of the whole segment, at the address that this page implies. Every
 * page of a segment yields the same map; callers remember it.
 *
 * For the kernel this finds only code at other addresses than place_slide() found, and maps only
 * that page: code that ran before paging was on, and trampolines in user page tables.
 */
bool place_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len,
		struct event_map *map);

#endif
