/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sym: names for the addresses of one binary. Addresses are the ELF's own virtual addresses.
 * Headers are read when the file is opened; symbols and DWARF only when a lookup asks.
 *
 * A file may be an ELF (32 or 64 bits, either byte order), the text of /proc/kallsyms,
 * System.map or perf-PID.map, which has no segments, or a Linux kernel as it is shipped (vmlinuz, bzImage, Image,
 * zImage), whose symbols are those that it has of itself. Any of them may be packed. A broken one
 * gives what could be read and a warning.
 *
 * An object file (ET_REL, such as a kernel module) has no addresses: the place in the file stands
 * for them, and its code sections are its segments. Its DWARF is not used.
 */
#ifndef KSCOPE_SYM_SYM_H
#define KSCOPE_SYM_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct symfile;
struct Elf;

/* Where separate debug files may be; the strings must live as long as the symfile. */
struct sym_search {
	const char *symfs;  /* prefix tried before every absolute path; may be NULL */
	const char *folder; /* one more folder with .build-id/ or *.debug; may be NULL */
};

struct sym_segment { /* an executable PT_LOAD */
	uint64_t vaddr, offset, filesz, memsz;
};

struct sym_section { /* of an ELF, as it is in memory at run time */
	uint64_t addr;
	const uint8_t *data; /* lives as long as the symfile */
	size_t len;
};

struct sym_frame {
	const char *name;     /* demangled; never NULL */
	const char *linkage;  /* as in the symbol table or DW_AT_linkage_name, else same as name */
	const char *file;     /* source file, NULL if unknown */
	uint32_t line;	      /* of the pc in the innermost frame, of the call site in outer ones */
	bool inlined;	      /* into the next frame */
	bool label;	      /* the symbol has no size, in a table where others have: assembly */
	uint64_t start, size; /* of the enclosing function that has a symbol of its own */
};

#define SYM_MAX_INLINE 64

/* NULL on failure: not readable, or none of these. */
struct symfile *symfile_open(const char *path, const struct sym_search *where, struct err *err);
void symfile_close(struct symfile *sf);

const struct sym_segment *symfile_segments(const struct symfile *sf, size_t *nr);
const uint8_t *symfile_build_id(const struct symfile *sf, size_t *len); /* NULL if none */
uint16_t symfile_machine(const struct symfile *sf);			/* e_machine, 0 for text */
bool symfile_is_64bit(const struct symfile *sf);
bool symfile_is_packed(const struct symfile *sf);      /* the file itself is not what was read */
bool symfile_is_relocatable(const struct symfile *sf); /* ET_DYN or ET_REL: has no fixed address */
bool symfile_is_object(const struct symfile *sf);      /* ET_REL */

/*
 * The functions at an address, innermost inlined one first, at most `max`; of more than that the
 * outermost is kept. 0: unknown. For a return address ask for address - 1. Strings live as long
 * as the symfile. Not cached: callers keep what they asked (model/frame does).
 */
size_t symfile_lookup(struct symfile *sf, uint64_t vaddr, struct sym_frame *out, size_t max);

/* The address of a function by its linkage name. */
bool symfile_find(struct symfile *sf, const char *linkage, uint64_t *vaddr);
/* Where the function begins that an address is in, by the symbols alone. label: see sym_frame. */
bool symfile_function(struct symfile *sf, uint64_t vaddr, uint64_t *start, bool *label);
/*
 * The bytes of code at an address, or before it in its page, lent as a section is. NULL: they are
 * not in the file.
 */
const uint8_t *symfile_code(const struct symfile *sf, uint64_t vaddr, size_t len);

/* A section with contents, of the file or else of its separate debug file. */
bool symfile_section(struct symfile *sf, const char *name, struct sym_section *out);
/*
 * The file as libelf has it, and its separate debug file: for who reads more of them than sym does.
 * Lent, for as long as the symfile lives. NULL: there is none.
 */
struct Elf *symfile_elf(struct symfile *sf);
struct Elf *symfile_debug_elf(struct symfile *sf);

/*
 * Of an object file: where in its code the loader fills something in. In order; the caller frees
 * it. NULL: nowhere.
 */
uint64_t *symfile_patches(const struct symfile *sf, size_t *nr);

struct sym_module { /* code of a kernel's module, without that of others between */
	const char *name;
	uint64_t start, end;
};

/* Of a list of symbols that has them, in the order of addresses; false: there is no nth. */
bool symfile_module(struct symfile *sf, size_t n, struct sym_module *out);

/* Where functions start: in order, without repeats, for as long as the symfile lives. */
const uint64_t *symfile_starts(struct symfile *sf, size_t *nr);

#endif
