/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of sym/.
 *
 *	spans	which of many overlapping ranges owns an address
 *	lines	the line table of a DWARF unit
 *	symtab	functions by address and by name, from any source
 *	object	one open ELF file (elf.c)
 *	ksyms	the symbols in a Linux kernel's read-only data
 *	flat	a kernel image that is not an ELF
 *	wrap	the contents of a compressed file or a self-extracting kernel
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
	uint64_t rank;	 /* where intervals overlap the highest wins; at a tie the higher id */
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
/* Like spans_find(); [*lo, *hi) is the contiguous piece around addr with this owner. */
uint32_t spans_piece(const struct spans *spans, uint64_t addr, uint64_t *lo, uint64_t *hi);
/* The address of the next span; UINT64_MAX: none. */
uint64_t spans_next(const struct spans *spans, uint64_t addr);
void spans_release(struct spans *spans);

/* ---- line tables ---- */

#define ROW_FILE_MAX 0x7fffffffu

struct row {
	uint64_t addr;
	uint32_t line;
	uint32_t file : 31; /* index in the unit's file table */
	uint32_t stmt : 1;  /* a statement begins here */
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

/* Reads the table at `offset`, except for sequences that do not start in a loaded section. */
void lines_read(struct lines *lines, const struct line_section *from, uint64_t offset,
		const struct spans *loaded);
/*
 * The same with all rows, even several for one address, and a row of line 0 at the end of each sequence. Not for
 * lines_find().
 */
void lines_read_all(struct lines *lines, const struct line_section *from, uint64_t offset,
		    const struct spans *loaded);
const struct row *lines_find(const struct lines *lines, uint64_t addr);
void lines_release(struct lines *lines);

/* ---- symtab ---- */

struct symbol {
	uint64_t addr, size; /* size 0 while reading: not known */
	uint64_t limit;	     /* a symbol of unknown size ends here at the latest */
	const char *name;    /* borrowed */
	const char *module;  /* likewise; NULL: not in a kernel module */
	bool label;	     /* had no size, in a table where others have one */
	bool thumb;	     /* Arm: the code is Thumb */
	uint8_t rank;	     /* of several names for one address, the highest is shown */
};

struct symtab {
	struct symbol *at;
	size_t nr, cap;
	struct spans spans;
	uint32_t *by_name; /* built on first use */
};

void symtab_add(struct symtab *tab, struct symbol sym);
void symtab_finish(struct symtab *tab); /* after the last symtab_add(); fills in missing sizes */
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
	bool cut;		      /* the end, or a part of the DWARF, is missing */
	struct sym_segment *segments; /* executable ones */
	size_t nr_segments;
	struct sym_segment *loads; /* all that are loaded */
	size_t nr_loads;
	const uint8_t *file; /* the whole file, while the object is open; NULL: not available */
	size_t file_len;
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len;
	const char *debuglink; /* NULL if none */
	uint32_t debuglink_crc;
	bool has_symtab, has_dwarf;
	size_t nr_sections, info_section, line_section; /* of DWARF; 0: none */
	struct spans loaded;				/* the sections loaded at run time */
	struct spans code;				/* the executable ones of them */
};

/* Opens only a regular file, and never blocks. Returns -1 and sets err on error. */
int open_regular(const char *path, const struct store *store, struct err *err);
/* Takes ownership of the fd, also on failure. */
struct object *object_open(const char *path, int fd, struct err *err);
void object_close(struct object *obj);
/* Bytes of the file, valid as long as the object; NULL: beyond the end of the file. */
const uint8_t *object_bytes(const struct object *obj, uint64_t offset, size_t len);
bool object_section(const struct object *obj, const char *name, struct sym_section *out);
/* See symfile_patches(). */
uint64_t *object_patches(const struct object *obj, size_t *nr);
/* Adds names for the PLT stubs. */
void object_read_plt(const struct object *obj, struct arena *arena, struct symtab *tab);
const char *stub_name(struct arena *arena, const char *symbol);
bool is_stub(const char *name);
/* Reads .symtab, or .dynsym if there is no .symtab; tab is finished. */
void object_read_symbols(const struct object *obj, struct symtab *tab);
struct ksyms;
/* Reads the built-in symbols of a kernel without .symtab; see ksyms_read(). */
int object_read_ksyms(const struct object *obj, struct ksyms *ksyms, struct err *err);

/* ---- DWARF ---- */

struct dwarf;

/* NULL if the object has no readable DWARF. The object must outlive it. */
/* store: where the file is that dwz moved shared DWARF to; may be NULL. */
struct dwarf *dwarf_open(struct object *obj, struct store *store);
void dwarf_close(struct dwarf *dw);
/*
 * Like symfile_lookup(), but `linkage` is NULL if the language mangles names and DWARF has only the
 * plain one, and `name` too if DWARF has only the line. start and size are set in the last frame
 * only: the function's range that contains the address. *entry is where that function begins, which
 * is outside this range if the function was split.
 */
size_t dwarf_lookup(struct dwarf *dw, uint64_t addr, struct sym_frame *out, size_t max,
		    uint64_t *entry);
/* See symfile_same_until(). */
uint64_t dwarf_same_until(struct dwarf *dw, uint64_t addr);

/* See symfile_each_line() and symfile_each_function(). The functions have names as those of dwarf_lookup(). */
void dwarf_each_line(struct dwarf *dw, sym_take_line *take, void *arg);
void dwarf_each_function(struct dwarf *dw, sym_take_function *take, void *arg);

/* ---- the rest ---- */

/* The readable form of a C++ or Rust name, in the arena; NULL if the name is not mangled. */
const char *demangle(struct arena *arena, const char *name);

/* Detects /tmp/perf-PID.map by its name. perfmap_read() works like kallsyms_read(). */
bool perfmap_probe(const char *path);
int perfmap_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/* Detects uftrace's NAME.sym by its name. uftrace_sym_read() works like kallsyms_read(). */
bool uftrace_sym_probe(const char *path);
int uftrace_sym_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/* True if the text could be /proc/kallsyms or System.map. */
bool kallsyms_probe(const char *text, size_t len);
/* Splits the text into names, which tab borrows; finishes tab. -1 if there are no functions. */
int kallsyms_read(char *text, size_t len, const char *path, struct symtab *tab, struct err *err);

/*
 * The same for a table from elsewhere: add every symbol, with nm's type for it, then finish, which
 * keeps only the functions. tab borrows the strings.
 */
void kallsyms_add(struct symtab *tab, uint64_t addr, char type, const char *name,
		  const char *module);
void kallsyms_finish(struct symtab *tab);

/* ---- the symbol table inside a Linux kernel (ksyms.c) ---- */

struct ksyms_in {
	const uint8_t *data; /* the whole file */
	size_t len;
	const struct sym_segment *loads; /* its loaded parts; none: all of it at 0 */
	size_t nr_loads;
	bool is_64bit, big_endian;
};

struct ksym {
	uint64_t addr;
	const char *name;
	char type; /* as in nm */
};

struct ksyms {
	struct ksym *at;
	size_t nr;
	char *names;
	bool unplaced; /* addresses are relative to the image's start until the loader relocates */
};

/* Returns 0, or -1 and sets err if there is no usable table. */
int ksyms_read(struct ksyms *ksyms, const struct ksyms_in *in, const char *path, struct err *err);
void ksyms_release(struct ksyms *ksyms);
/* The release in the kernel's banner, such as "6.1.0-54-cloud-amd64", in scratch; "" if none. */
const char *kernel_release(const uint8_t *data, size_t len, char *scratch, size_t room);

/* ---- a kernel without an ELF header (flat.c) ---- */

struct flat {
	uint8_t *data; /* mapped */
	size_t len;
	uint64_t vaddr; /* of its first byte */
	uint16_t machine;
	bool is_64bit;
	struct sym_segment segments[2]; /* code: .text, and .init.text, which is freed after boot */
	size_t nr_segments;
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len;
};

/* The machine of a kernel that begins with these bytes; 0: not a known kernel image. */
uint16_t flat_machine(const uint8_t *head, size_t len);
/* The caller keeps the fd, and releases *ksyms on success. */
struct flat *flat_open(const char *path, int fd, uint16_t machine, struct ksyms *ksyms,
		       struct err *err);
void flat_close(struct flat *flat);

/* ---- files inside files (wrap.c) ---- */

#define WRAP_TEXT 64

/*
 * Extracts a self-extracting kernel image, or any compressed file, to an unlinked temporary file.
 * Takes ownership of the fd and returns the same one if there is nothing to extract. Returns -1 and
 * sets err on error. `how` lists the layers, such as "bzImage, xz", or is "".
 */
int wrap_open(const char *path, int fd, char how[WRAP_TEXT], uint16_t *machine, struct err *err);

/* The separate file with the DWARF of obj, or NULL. */
struct object *debug_file_find(const struct object *obj, const struct sym_search *where);

#endif
