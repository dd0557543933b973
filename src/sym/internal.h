/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of sym/ share.
 *
 *	spans	which of many overlapping ranges owns an address
 *	lines	the line table of a unit of DWARF
 *	symtab	functions by address and by name, whatever they were read from
 *	object	one open ELF file (elf.c)
 *	ksyms	the symbols that a Linux kernel has in its read-only data
 *	flat	a kernel image that is no ELF
 *	wrap	what is inside a packed file or a kernel that unpacks itself
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
	const char *module;  /* likewise; NULL: the kernel itself, or whatever the file is */
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
	struct sym_segment *loads; /* all that are loaded */
	size_t nr_loads;
	const uint8_t *file; /* all of it, as long as the object is open; NULL: not to be had */
	size_t file_len;
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
/* See symfile_patches(). */
uint64_t *object_patches(const struct object *obj, size_t *nr);
/* Adds names for the stubs of calls into libraries. */
void object_read_plt(const struct object *obj, struct arena *arena, struct symtab *tab);
/* Reads .symtab, or .dynsym if there is no .symtab; tab is finished. */
void object_read_symbols(const struct object *obj, struct symtab *tab);
struct ksyms;
/* Reads what a kernel without .symtab still has; see ksyms_read(). */
int object_read_ksyms(const struct object *obj, struct ksyms *ksyms, struct err *err);

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

/* By its name: /tmp/perf-PID.map. As kallsyms_read(). */
bool perfmap_probe(const char *path);
int perfmap_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/* True if the text could be /proc/kallsyms or System.map. */
bool kallsyms_probe(const char *text, size_t len);
/* Cuts the text into names, which tab borrows; tab is finished. -1 if it has no functions. */
int kallsyms_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/*
 * For the same table from elsewhere: one symbol with nm's type, whatever it is, which tab borrows
 * the names of; then the end, after which only functions are left.
 */
void kallsyms_add(struct symtab *tab, uint64_t addr, char type, const char *name,
		  const char *module);
void kallsyms_finish(struct symtab *tab);

/* ---- the table of symbols inside a Linux kernel (ksyms.c) ---- */

struct ksyms_in {
	const uint8_t *data; /* of the file, all of it */
	size_t len;
	const struct sym_segment *loads; /* what of it is loaded where; none: at 0 */
	size_t nr_loads;
	bool is_64bit, big_endian;
};

struct ksym {
	uint64_t addr;
	const char *name;
	char type; /* as nm has it */
};

struct ksyms {
	struct ksym *at;
	size_t nr;
	char *names;
	bool unplaced; /* addresses are relative to the image's start: the loader fills them in */
};

/* 0; -1: there is none that could be understood, and err says what was found. */
int ksyms_read(struct ksyms *ksyms, const struct ksyms_in *in, const char *path, struct err *err);
void ksyms_release(struct ksyms *ksyms);
/* "6.1.0-54-cloud-amd64", in scratch, which the kernel says of itself; "" if it does not. */
const char *kernel_release(const uint8_t *data, size_t len, char *scratch, size_t room);

/* ---- a kernel without an ELF header (flat.c) ---- */

struct flat {
	uint8_t *data; /* mapped */
	size_t len;
	uint64_t vaddr; /* of its first byte */
	uint16_t machine;
	bool is_64bit;
	struct sym_segment segments[2]; /* code: what stays, and what is dropped after the start */
	size_t nr_segments;
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len;
};

/* The machine of a kernel that begins with these bytes; 0: it is none of those known. */
uint16_t flat_machine(const uint8_t *head, size_t len);
/* The fd stays the caller's. Symbols go to tab, which is finished. */
struct flat *flat_open(const char *path, int fd, uint16_t machine, struct ksyms *ksyms,
		       struct err *err);
void flat_close(struct flat *flat);

/* ---- files inside files (wrap.c) ---- */

#define WRAP_TEXT 64

/*
 * What is inside a kernel image that unpacks itself, or any packed file, as a file without a name.
 * Takes over the fd and gives back the same one if there was nothing to unpack. -1: err is set.
 * `how` says what was unpacked, such as "bzImage, xz"; or "".
 */
int wrap_open(const char *path, int fd, char how[WRAP_TEXT], uint16_t *machine, struct err *err);

/* The separate file with the DWARF of obj, or NULL. */
struct object *debug_file_find(const struct object *obj, const struct sym_search *where);

#endif
