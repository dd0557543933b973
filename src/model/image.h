/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image: a binary whose code ran. Its file is searched for, and its headers read, on first use: by
 * path, then by name, under the folders that the user gave.
 */
#ifndef KSCOPE_MODEL_IMAGE_H
#define KSCOPE_MODEL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/strtab.h"
#include "sym/library.h"
#include "sym/sym.h"

#define BUILD_ID_MAX 20
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1)

struct image {
	uint32_t path;		 /* handle: the path in the data */
	uint32_t name;		 /* handle: its last part, for display */
	char *file;		 /* absolute path on this machine; NULL if not found */
	struct symfile *symfile; /* the library's */
	uint8_t build_id[BUILD_ID_MAX];
	uint8_t build_id_len;
	bool as_linked; /* frames hold the ELF's own addresses, not offsets in the file */
	bool kernel;
	bool given;	 /* the user named this file */
	bool foreign;	 /* search only under the folders that the user gave */
	bool code;	 /* it is mapped as code */
	bool opened;	 /* image_symfile() was called, with or without success */
	bool unused;	 /* image_unused() was called */
	bool one_symbol; /* the whole image is one function; there is no file */
	uint32_t symbol; /* handle: the name of that function */
	/* With as_linked, if it was relocated as a whole: this symbol was at anchor_addr. */
	bool moved;
	uint32_t anchor; /* handle; 0: the start */
	uint64_t anchor_addr;
	uint32_t names; /* handle: a file with symbols that came with the data, or 0 */
	/* The bytes of a file that has only code, as `record emulate` writes it; NULL: none, or not asked for. */
	uint8_t *raw;
	size_t raw_len;
	bool raw_tried;
};

struct images {
	struct strtab *strings; /* borrowed */
	const struct image_search *where;
	struct library library; /* of all files that are opened, also by readers */
	struct image *all;	/* [0] is none */
	size_t nr, cap;
	struct hash index;
	uint16_t machine;  /* e_machine of the first binary that was opened; 0 unknown */
	bool is_64bit;	   /* class of that binary */
	const char *arch;  /* of the recorded machine, as printed by uname -m; "" unknown */
	bool this_machine; /* recorded on this machine, with the running kernel */
};

struct image_search {
	const char *build_dir, *symfs, *kernel;
	struct sym_search debug;
};

void images_init(struct images *images, struct strtab *strings, const struct image_search *where);
void images_release(struct images *images);
uint32_t image_intern(struct images *images, const char *path, const uint8_t *build_id,
		      size_t build_id_len, bool as_linked, bool kernel);
/* Code that a process generated: /tmp/perf-PID.map may have its symbols. */
uint32_t image_of_memory(struct images *images, const char *path, uint32_t pid);
/* One function, of a binary if that is not NULL. */
uint32_t image_of_symbol(struct images *images, const char *name, const char *binary, bool kernel);
/* The image was relocated: its symbol `anchor` is at anchor_addr. anchor NULL: it was not. */
void image_moved(struct images *images, uint32_t image, const char *anchor, uint64_t anchor_addr);
void image_names(struct images *images, uint32_t image, const char *file);
/* Opens the file on first use. NULL: not found or not usable. Warns once. */
struct symfile *image_symfile(struct images *images, uint32_t image);
/* The same for an image that no sample needed, which need not be a binary: warns only with -v. */
struct symfile *image_unused(struct images *images, uint32_t image);
/* The bytes of a file that is not a binary but only code; NULL: it is none. */
const uint8_t *image_raw(struct images *images, uint32_t image, size_t *len);
/* Converts a frame's addr to a virtual address of the ELF. */
uint64_t image_vaddr(struct images *images, uint32_t image, uint64_t addr);
/*
 * For binaries that run at their link address: the extent of the code from the program headers, and
 * a function with its address. On false the outputs are unchanged.
 */
bool image_extent(struct images *images, uint32_t image, uint64_t *vaddr, uint64_t *len);
bool image_landmark(struct images *images, uint32_t image, const char **name, uint64_t *vaddr);
/* In hexadecimal, as in paths of debug files; "" if unknown. */
void image_build_id(const struct image *image, char text[BUILD_ID_TEXT]);
/* True for names such as [vdso], //anon or /dev/zero, which are not files. */
bool image_is_pseudo(const char *path);

#endif
