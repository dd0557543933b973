/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sym: names for the addresses of one binary. Addresses are the ELF's own virtual addresses.
 * Opening a file reads its headers; symbols and DWARF are read on the first lookup.
 *
 * A file may be an ELF (32 or 64 bits, either byte order); the text of /proc/kallsyms, System.map
 * or perf-PID.map, which has no segments; or a kernel image (vmlinuz, bzImage, Image, zImage) with
 * its built-in symbols. Any of them may be compressed. A damaged file yields what could be read,
 * and a warning.
 *
 * An object file (ET_REL, such as a kernel module) has no addresses: file offsets replace them, and
 * its code sections are its segments. Its DWARF is not used.
 */
#ifndef KSCOPE_SYM_SYM_H
#define KSCOPE_SYM_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sym/insn.h"

struct symfile;
struct store;
struct Elf;

/* Where to look for separate debug files; the strings must live as long as the symfile. */
struct sym_search {
	const char *symfs;   /* prefix tried before every absolute path; may be NULL */
	const char *folder;  /* one more folder with .build-id/ or *.debug; may be NULL */
	struct store *store; /* where the files are, see base/store.h; may be NULL */
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
	bool label;	      /* the symbol has no size, in a table where others do: assembly */
	uint64_t start, size; /* of the enclosing function that is not inlined */
	/* With DWARF; else 0: */
	uint64_t id;	/* no other function or inlined call of the file has it */
	uint64_t first; /* the start of its code, or of a part of it */
};

#define SYM_MAX_INLINE 64

/* Returns NULL and sets err if the file is unreadable or none of the above. */
struct symfile *symfile_open(const char *path, const struct sym_search *where, struct err *err);
void symfile_close(struct symfile *sf);
/* The file that was opened: with symfs, another path than that of symfile_open(). */
const char *symfile_path(const struct symfile *sf);

const struct sym_segment *symfile_segments(const struct symfile *sf, size_t *nr);
const uint8_t *symfile_build_id(const struct symfile *sf, size_t *len); /* NULL if none */
uint16_t symfile_machine(const struct symfile *sf);			/* e_machine, 0 for text */
bool symfile_is_64bit(const struct symfile *sf);
/* The end of the file is missing, or a part of its DWARF is not readable. There was a warning. */
bool symfile_is_cut(const struct symfile *sf);
bool symfile_is_packed(const struct symfile *sf);      /* not an ELF, or extracted from the file */
bool symfile_is_relocatable(const struct symfile *sf); /* ET_DYN or ET_REL: no fixed address */
bool symfile_is_object(const struct symfile *sf);      /* ET_REL */

/*
 * The functions at an address, innermost inlined one first. At most `max`: if there are more, the
 * last is the outermost one. 0: unknown. For a return address look up address - 1. Strings live as
 * long as the symfile. Not cached: callers keep the result (as model/frame does).
 */
size_t symfile_lookup(struct symfile *sf, uint64_t vaddr, struct sym_frame *out, size_t max);

/* The functions that symfile_lookup() finds are the same up to this address. UINT64_MAX: no end is known. */
uint64_t symfile_same_until(struct symfile *sf, uint64_t vaddr);
/* How many instructions begin in the code between two addresses, the first of which is one's; 0: unknown. */
uint64_t symfile_instructions(struct symfile *sf, uint64_t vaddr, uint64_t end);

struct sym_line { /* code of one line of source, in one function or inlined call */
	uint64_t addr,
		end; /* the same: nothing is left of the statement, which ends where it begins */
	const char *file; /* never NULL; lives as long as the symfile, as does `dir` */
	const char *dir;  /* where the compiler ran, for a relative `file`; NULL: unknown */
	uint32_t line;	  /* not 0 */
	bool stmt;	  /* a statement begins at addr; else the rest of one that was moved */
	uint64_t scope;	  /* the id of the function or inlined call; 0: unknown */
};

struct sym_function { /* or an inlined call of it */
	const char *name, *linkage;
	const char *file; /* where it is declared; NULL and 0: unknown */
	const char *dir;  /* where the compiler ran, for relative files; NULL: unknown */
	uint32_t line;
	bool artificial; /* the compiler made it, such as the constructor of a class without one */
	uint64_t scope, start, size; /* of the first part of its code; start: where it is entered */
	/* Of an inlined call: the scope and the line that it is in; the file is NULL if that is unknown. */
	uint64_t parent;
	const char *call_file;
	uint32_t call_line;
};

typedef void sym_take_line(void *arg, const struct sym_line *line);
typedef void sym_take_function(void *arg, const struct sym_function *function);

/*
 * All lines of source with code, by unit; in a part of a unit, by address. False: the file has no DWARF. For one pass
 * over a whole file: it keeps nothing but what symfile_lookup() keeps of a unit.
 */
bool symfile_each_line(struct symfile *sf, sym_take_line *take, void *arg);
/* All functions and inlined calls with code, by unit. */
bool symfile_each_function(struct symfile *sf, sym_take_function *take, void *arg);

/* The address of a function by its linkage name. */
bool symfile_find(struct symfile *sf, const char *linkage, uint64_t *vaddr);
/* The start of the function around an address, by symbols alone. label: see sym_frame. */
bool symfile_function(struct symfile *sf, uint64_t vaddr, uint64_t *start, bool *label);
/* Arm: whether the code around an address is Thumb, as far as symbols tell. */
bool symfile_is_thumb(struct symfile *sf, uint64_t vaddr);
/*
 * Whether an address is in an executable section or, in a file without sections, in an executable
 * segment or, in a symbol list, in a function.
 */
bool symfile_is_code(struct symfile *sf, uint64_t vaddr);
/* Whether an address is in any part of an ELF that is loaded: code or data. */
bool symfile_is_loaded(const struct symfile *sf, uint64_t vaddr);
/*
 * `len` bytes of code at an address, which may be before a segment in its first page. They live as
 * long as the symfile. NULL: not in the file.
 */
const uint8_t *symfile_code(const struct symfile *sf, uint64_t vaddr, size_t len);
/* The same up to the end of the segment, of *len bytes. */
const uint8_t *symfile_code_from(const struct symfile *sf, uint64_t vaddr, size_t *len);
/* The code from an address up to the end of its segment, for sym/insn.h; bytes is NULL if there is none. */
void symfile_insns(struct symfile *sf, uint64_t vaddr, struct insn_code *code);

/* A section with contents, of the file or else of its separate debug file. */
bool symfile_section(struct symfile *sf, const char *name, struct sym_section *out);
/*
 * The libelf handles of the file and of its separate debug file, for code that reads more than sym
 * does. Borrowed: they live as long as the symfile. NULL: none.
 */
struct Elf *symfile_elf(struct symfile *sf);
struct Elf *symfile_debug_elf(struct symfile *sf);

/*
 * The sorted file offsets where the loader relocates the code of an object file. The caller frees
 * the array. NULL: none.
 */
uint64_t *symfile_patches(const struct symfile *sf, size_t *nr);

struct sym_module { /* one contiguous range of a kernel module's code */
	const char *name;
	uint64_t start, end;
};

/* The nth module range of a symbol list, by address; false: there is no nth. */
bool symfile_module(struct symfile *sf, size_t n, struct sym_module *out);

/* The start addresses of functions, sorted and unique. They live as long as the symfile. */
const uint64_t *symfile_starts(struct symfile *sf, size_t *nr);

#endif
