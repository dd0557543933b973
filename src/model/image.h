/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image: a binary that code ran from. Its file is looked for, and its headers read, when somebody
 * first asks; the search goes by path, then by name, under the folders the user gave.
 */
#ifndef KSCOPE_MODEL_IMAGE_H
#define KSCOPE_MODEL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/strtab.h"
#include "sym/sym.h"

#define BUILD_ID_MAX 20

struct image {
	uint32_t path; /* handle: as the data names it */
	uint32_t name; /* handle: its last part, for people */
	char *file;    /* where it is on this machine, absolute; NULL if not found */
	struct symfile *symfile;
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_len;
	bool as_linked; /* frames hold the ELF's own addresses, not offsets in the file */
	bool kernel;
	bool given;	 /* the user named this very file */
	bool foreign;	 /* only looked for under the folders that the user gave */
	bool opened;	 /* tried, with or without success */
	bool one_symbol; /* all of it is the function that path names; there is no file */
	/* With as_linked, if it was moved as a whole: this symbol was at anchor_addr. */
	bool moved;
	uint32_t anchor; /* handle; 0: the start */
	uint64_t anchor_addr;
	uint32_t names; /* handle: a file that came with the data and names its code; or 0 */
};

struct images {
	struct strtab *strings; /* borrowed */
	const struct image_search *where;
	struct image *all; /* [0] is none */
	size_t nr, cap;
	struct hash index;
	uint16_t machine;  /* e_machine of the first binary that was opened; 0 unknown */
	bool is_64bit;	   /* that binary */
	bool this_machine; /* the data tells that it was recorded here, on the kernel that runs */
};

struct image_search {
	const char *build_dir, *symfs, *kernel;
	struct sym_search debug;
};

void images_init(struct images *images, struct strtab *strings, const struct image_search *where);
void images_release(struct images *images);
uint32_t image_intern(struct images *images, const char *path, const uint8_t *build_id,
		      size_t build_id_len, bool as_linked, bool kernel);
/* Code that a process made at run time: a file that perf knows, too, may name it. */
uint32_t image_of_memory(struct images *images, const char *path, uint32_t pid);
uint32_t image_of_symbol(struct images *images, const char *name);
/* Addresses are those of the ELF but for a shift. anchor NULL: there is none. */
void image_moved(struct images *images, uint32_t image, const char *anchor, uint64_t anchor_addr);
void image_names(struct images *images, uint32_t image, const char *file);
/* Opens the file if that was not tried yet. NULL: not to be had, which was then said once. */
struct symfile *image_symfile(struct images *images, uint32_t image);
/* The address in the ELF of a frame's addr. */
uint64_t image_vaddr(struct images *images, uint32_t image, uint64_t addr);
/*
 * For binaries that run where they were linked: where its code is, by the program headers, and a
 * function with its address. If there is no such thing what the pointers lead to is left alone.
 */
bool image_extent(struct images *images, uint32_t image, uint64_t *vaddr, uint64_t *len);
bool image_landmark(struct images *images, uint32_t image, const char **name, uint64_t *vaddr);
/* Names such as [vdso], //anon or [heap] that stand for no file. */
bool image_is_pseudo(const char *path);

#endif
