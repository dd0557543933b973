/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of sym/ share.
 *
 *	spans	which of many overlapping ranges owns an address
 *	lines	the line table of a unit of DWARF
 *	symtab	functions by address and by name, whatever they were read from
 *	object	one open ELF file (elf.c)
 *	dwarf	functions, inlined calls and lines of one object (dwarf.c)
 */
#ifndef KSCOPE_SYM_INTERNAL_H
#define KSCOPE_SYM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "sym/sym.h"

/* ---- spans ---- */

struct interval {
	uint64_t lo, hi; /* hi is not part of it */
	uint64_t rank;	 /* where intervals overlap the highest wins; of equals the later id */
	uint32_t id;	 /* not 0 */
};

struct span {
	uint64_t lo; /* up to the next span's */
	uint32_t id; /* 0: a hole */
};

struct spans {
	struct span *at;
	size_t nr;
};

/* Reorders `intervals`; they may be freed afterwards. */
void spans_build(struct spans *spans, struct interval *intervals, size_t nr);
uint32_t spans_find(const struct spans *spans, uint64_t addr);
/* As spans_find(); also the piece of address space, without holes, that has this owner. */
uint32_t spans_piece(const struct spans *spans, uint64_t addr, uint64_t *lo, uint64_t *hi);
void spans_release(struct spans *spans);

/* ---- line tables ---- */

struct row {
	uint64_t addr;
	uint32_t line, file; /* file: as the unit numbers its files */
};

struct lines {
	struct row *rows;
	size_t nr;
	size_t *starts; /* the first row of each sequence, and the end of the last one */
	size_t nr_sequences;
	struct spans sequences;
};

struct line_section { /* .debug_line */
	const uint8_t *data;
	size_t len;
	bool big_endian;
};

/* Reads the table at `offset`, but for sequences that do not begin in a loaded section. */
void lines_read(struct lines *lines, const struct line_section *from, uint64_t offset,
		const struct spans *loaded);
const struct row *lines_find(const struct lines *lines, uint64_t addr);
void lines_release(struct lines *lines);

/* ---- symtab ---- */

struct symbol {
	uint64_t addr, size; /* size 0 while reading: not known */
	uint64_t limit;	     /* a symbol of unknown size ends here at the latest */
	const char *name;    /* borrowed */
	bool label;	     /* had no size, where others have one */
	uint8_t rank;	     /* which of several names for one address is shown: the highest */
};

struct symtab {
	struct symbol *at;
	size_t nr, cap;
	struct spans spans;
	uint32_t *by_name; /* made when first asked */
};

void symtab_add(struct symtab *tab, struct symbol sym);
void symtab_finish(struct symtab *tab); /* after the last symtab_add(); makes the sizes known */
const struct symbol *symtab_find(const struct symtab *tab, uint64_t addr);
const struct symbol *symtab_by_name(struct symtab *tab, const char *name);
void symtab_release(struct symtab *tab);

/* ---- one ELF file ---- */

#define BUILD_ID_MAX 64

struct object {
	char *path;
	int fd;
	struct Elf *elf;
	uint64_t dev, ino;
	uint16_t machine, type;
	bool is_64bit, big_endian;
	struct sym_segment *segments; /* executable ones */
	size_t nr_segments;
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len;
	const char *debuglink; /* NULL if none */
	uint32_t debuglink_crc;
	bool has_symtab, has_dwarf;
	size_t nr_sections, info_section, line_section; /* of DWARF; 0: none */
	struct spans loaded; /* the sections that are in memory at run time */
};

/* Opens only a regular file, and never blocks. -1 with err set. */
int open_regular(const char *path, struct err *err);
/* Takes over the fd, also on failure. */
struct object *object_open(const char *path, int fd, struct err *err);
void object_close(struct object *obj);
/* Bytes of the file; NULL: it ends before. They live as long as the object. */
const uint8_t *object_bytes(const struct object *obj, uint64_t offset, size_t len);
bool object_section(const struct object *obj, const char *name, struct sym_section *out);
/* Reads .symtab, or .dynsym if there is no .symtab; tab is finished. */
void object_read_symbols(const struct object *obj, struct symtab *tab);

/* ---- DWARF ---- */

struct dwarf;

/* NULL if the object has none that can be read. The object must outlive it. */
struct dwarf *dwarf_open(const struct object *obj);
void dwarf_close(struct dwarf *dw);
/*
 * Like symfile_lookup(), but `linkage` is NULL where DWARF knows only the plain name, in a
 * language that mangles, and `name` too where it knows only the line. start and size are set in
 * the last frame only: the function's own range that holds the address. `entry` is where that
 * function begins, which may be elsewhere if it was split.
 */
size_t dwarf_lookup(struct dwarf *dw, uint64_t addr, struct sym_frame *out, size_t max,
		    uint64_t *entry);

/* ---- the rest ---- */

/* The readable form of a C++ or Rust name in the arena, or NULL if it is none. */
const char *demangle(struct arena *arena, const char *name);

/* True if the text could be /proc/kallsyms or System.map. */
bool kallsyms_probe(const char *text, size_t len);
/* Cuts the text into names, which tab borrows; tab is finished. -1 if it has no functions. */
int kallsyms_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/* The separate file with the DWARF of obj, or NULL. */
struct object *debug_file_find(const struct object *obj, const struct sym_search *where);

#endif
