// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A symfile is the requested file, possibly a separate debug file, and the tables built from both.
 *
 * DWARF's names win, as in addr2line, for inlined frames and for the function around them:
 * foo.isra.0 and foo.cold are shown as foo, so that a flame graph has one box for one function of
 * the source. The symbol table provides the extent of the function, names for code that DWARF does
 * not cover, and the linkage name where DWARF has only a plain one.
 */
#include "sym/sym.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "sym/insn.h"
#include "base/store.h"
#include "base/text.h"
#include "sym/internal.h"

#define TEXT_MAX ((size_t)1 << 30)
#define HEAD_LEN 512
#define PAGE 4096

#define ELF_TYPE_REL 1
#define ELF_TYPE_DYN 3

struct symfile {
	char *path;
	struct sym_search where;
	char how[WRAP_TEXT];  /* the layers that were extracted, see wrap_open(); "" */
	struct object *obj;   /* NULL: the file is text, or flat */
	struct flat *flat;    /* NULL: it is text, or an ELF */
	struct ksyms ksyms;   /* owns names in symbols */
	struct object *debug; /* NULL: none found, or not looked for yet */
	struct dwarf *dwarf;
	struct buf text;
	bool cut; /* the text */
	bool read, opened_dwarf;
	struct symtab symbols;
	struct arena arena;
	struct hash shown; /* by the address of a linkage name: its index in names, + 1 */
	const char **names;
	size_t nr_names, cap_names;
	uint64_t *starts; /* built on first use */
	size_t nr_starts;
	struct sym_module *modules; /* likewise */
	size_t nr_modules;
	bool modules_found;
};

/* ---- open ---- */

static int read_text(struct symfile *sf, int fd, struct err *err)
{
	ssize_t len;

	do {
		len = read(fd, buf_reserve(&sf->text, 1 << 16), 1 << 16);
		if (len < 0)
			return err_set(err, ERR_INPUT, "%s: %s", sf->path, strerror(errno));
		sf->text.len += (size_t)len;
		if (sf->text.len > TEXT_MAX)
			return err_set(err, ERR_INPUT, "%s: too large for a symbol list", sf->path);
	} while (len);
	sf->text.data[sf->text.len] = '\0';
	if (perfmap_probe(sf->path))
		return perfmap_read(sf->text.data, sf->text.len, sf->path, &sf->symbols, err);
	if (uftrace_sym_probe(sf->path))
		return uftrace_sym_read(sf->text.data, sf->text.len, sf->path, &sf->symbols, err);
	sf->cut = sf->text.len && sf->text.data[sf->text.len - 1] != '\n';
	if (sf->cut)
		log_warn("%s: " TEXT_CUT, sf->path);
	return kallsyms_read(sf->text.data, sf->text.len, sf->path, &sf->symbols, err);
}

/* "Linux kernel 6.1.0, bzImage, xz, 98765 built-in symbols" */
static void say_kernel(const struct symfile *sf, const uint8_t *data, size_t len)
{
	char release[100];

	log_note("%s: Linux kernel %s%s%s, %zu built-in symbols", sf->path,
		 kernel_release(data, len, release, sizeof(release)), *sf->how ? ", " : "", sf->how,
		 sf->ksyms.nr);
}

static void take_ksyms(struct symfile *sf)
{
	for (size_t i = 0; i < sf->ksyms.nr; i++)
		kallsyms_add(&sf->symbols, sf->ksyms.at[i].addr, sf->ksyms.at[i].type,
			     sf->ksyms.at[i].name, NULL);
	kallsyms_finish(&sf->symbols);
}

static int read_flat(struct symfile *sf, int fd, uint16_t machine, struct err *err)
{
	sf->flat = flat_open(sf->path, fd, machine, &sf->ksyms, err);
	if (!sf->flat)
		return -1;
	take_ksyms(sf);
	say_kernel(sf, sf->flat->data, sf->flat->len);
	return 0;
}

/* Takes ownership of the fd. */
static int read_head(struct symfile *sf, int fd, struct err *err)
{
	char head[HEAD_LEN];
	uint16_t machine;
	ssize_t len;
	int rc = -1;

	fd = wrap_open(sf->path, fd, sf->how, &machine, err);
	if (fd < 0)
		return -1;
	len = pread(fd, head, sizeof(head), 0);
	if (len >= 4 && !memcmp(head, "\177ELF", 4)) {
		sf->obj = object_open(sf->path, fd, err);
		return sf->obj ? 0 : -1;
	}
	if (len > 0 && !machine)
		machine = flat_machine((const uint8_t *)head, (size_t)len);
	if (len < 0)
		err_set(err, ERR_INPUT, "%s: %s", sf->path, strerror(errno));
	else if (machine)
		rc = read_flat(sf, fd, machine, err);
	else if (perfmap_probe(sf->path) || uftrace_sym_probe(sf->path) ||
		 kallsyms_probe(head, (size_t)len))
		rc = read_text(sf, fd, err);
	else
		err_set(err, ERR_INPUT,
			"%s: neither an ELF file, nor a Linux kernel, nor a symbol list like "
			"/proc/kallsyms or System.map",
			sf->path);
	close(fd);
	return rc;
}

/* The path below symfs if that file exists, else the path itself. The caller frees it. */
static char *real_place(const char *path, const struct sym_search *where)
{
	char *below;

	if (path[0] != '/' || !where || !where->symfs || store_find(where->store, STORE_NAME, path))
		return xstrdup(path);
	below = xasprintf("%s%s", where->symfs, path);
	if (access(below, F_OK) == 0)
		return below;
	free(below);
	return xstrdup(path);
}

struct symfile *symfile_open(const char *path, const struct sym_search *where, struct err *err)
{
	struct symfile *sf = xcalloc(1, sizeof(*sf));
	int fd;

	if (where)
		sf->where = *where;
	sf->path = real_place(path, where);
	fd = open_regular(sf->path, sf->where.store, err);
	if (fd >= 0 && read_head(sf, fd, err) == 0)
		return sf;
	symfile_close(sf);
	return NULL;
}

void symfile_close(struct symfile *sf)
{
	if (!sf)
		return;
	dwarf_close(sf->dwarf);
	symtab_release(&sf->symbols);
	object_close(sf->debug);
	object_close(sf->obj);
	flat_close(sf->flat);
	ksyms_release(&sf->ksyms);
	free(sf->starts);
	free(sf->modules);
	hash_release(&sf->shown);
	arena_release(&sf->arena);
	buf_release(&sf->text);
	free(sf->names);
	free(sf->path);
	free(sf);
}

const char *symfile_path(const struct symfile *sf)
{
	return sf->path;
}

/* ---- headers ---- */

const struct sym_segment *symfile_segments(const struct symfile *sf, size_t *nr)
{
	if (sf->flat) {
		*nr = sf->flat->nr_segments;
		return sf->flat->segments;
	}
	*nr = sf->obj ? sf->obj->nr_segments : 0;
	return sf->obj ? sf->obj->segments : NULL;
}

const uint8_t *symfile_build_id(const struct symfile *sf, size_t *len)
{
	*len = sf->flat ? sf->flat->build_id_len : sf->obj ? sf->obj->build_id_len : 0;
	if (!*len)
		return NULL;
	return sf->flat ? sf->flat->build_id : sf->obj->build_id;
}

uint16_t symfile_machine(const struct symfile *sf)
{
	if (sf->flat)
		return sf->flat->machine;
	return sf->obj ? sf->obj->machine : 0;
}

bool symfile_is_64bit(const struct symfile *sf)
{
	if (sf->flat)
		return sf->flat->is_64bit;
	/* A symbol list does not say; addresses above 4 GB imply it. */
	if (!sf->obj)
		return sf->symbols.nr && sf->symbols.at[sf->symbols.nr - 1].addr > UINT32_MAX;
	return sf->obj->is_64bit;
}

bool symfile_is_cut(const struct symfile *sf)
{
	return sf->obj ? sf->obj->cut || (sf->debug && sf->debug->cut) : sf->cut;
}

bool symfile_is_packed(const struct symfile *sf)
{
	return *sf->how || !sf->obj;
}

bool symfile_is_relocatable(const struct symfile *sf)
{
	return sf->obj && (sf->obj->type == ELF_TYPE_DYN || sf->obj->type == ELF_TYPE_REL);
}

bool symfile_is_object(const struct symfile *sf)
{
	return sf->obj && sf->obj->type == ELF_TYPE_REL;
}

/* ---- lookup ---- */

static bool is_linux(const struct object *obj)
{
	char release[2];

	return obj->file && obj->nr_loads &&
	       *kernel_release(obj->file, obj->file_len, release, sizeof(release));
}

static void read_own_symbols(struct symfile *sf)
{
	struct err err = { 0 };

	if (object_read_ksyms(sf->obj, &sf->ksyms, &err) < 0) {
		log_warn("%s", err.msg);
		return;
	}
	symtab_release(&sf->symbols);
	take_ksyms(sf);
	say_kernel(sf, sf->obj->file, sf->obj->file_len);
}

static void read_tables(struct symfile *sf)
{
	const struct object *named = sf->obj;

	if (sf->read || !sf->obj)
		return;
	sf->read = true;
	if (!sf->obj->has_dwarf)
		sf->debug = debug_file_find(sf->obj, &sf->where);
	if (!sf->obj->has_symtab && sf->debug && sf->debug->has_symtab)
		named = sf->debug;
	object_read_plt(sf->obj, &sf->arena, &sf->symbols);
	object_read_symbols(named, &sf->symbols);
	if (!sf->symbols.nr && !named->has_symtab && is_linux(sf->obj))
		read_own_symbols(sf);
}

/* The DWARF; NULL: it has none. It may have to be decompressed, so those who need only symbols do not open it. */
static struct dwarf *dwarf_of(struct symfile *sf)
{
	read_tables(sf);
	if (!sf->opened_dwarf && sf->obj)
		sf->dwarf = dwarf_open(sf->debug ? sf->debug : sf->obj, sf->where.store);
	sf->opened_dwarf = true;
	return sf->dwarf;
}

/* memcpy@@GLIBC_2.14 -> memcpy: the version does not matter in a profile. */
static const char *without_version(struct symfile *sf, const char *linkage)
{
	const char *at = sf->obj ? strchr(linkage, '@') : NULL;

	return at && at > linkage ? arena_strndup(&sf->arena, linkage, (size_t)(at - linkage))
				  : linkage;
}

/* Linkage names live as long as the symfile and are shared, so the pointer is the key. */
static const char *shown_name(struct symfile *sf, const char *linkage)
{
	uint32_t *at = hash_at(&sf->shown, (struct hash_key){ (uintptr_t)linkage, 0 });

	if (!*at) {
		const char *bare = without_version(sf, linkage);
		const char *plain = demangle(&sf->arena, bare);

		if (!plain)
			plain = bare;
		if (is_stub(linkage))
			plain = stub_name(&sf->arena, plain);
		GROW(sf->names, sf->nr_names + 1, sf->cap_names);
		sf->names[sf->nr_names++] = plain;
		*at = (uint32_t)sf->nr_names;
	}
	return sf->names[*at - 1];
}

static void finish_frame(struct symfile *sf, struct sym_frame *frame)
{
	if (frame->linkage)
		frame->name = shown_name(sf, frame->linkage);
	else if (!frame->name)
		frame->name = "??"; /* DWARF has the frame but no name; the same as in addr2line */
	if (!frame->linkage)
		frame->linkage = frame->name;
}

/* "foo" and "foo.cold" */
static bool is_clone(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(symbol, name, len) && symbol[len] == '.';
}

/* The linkage name of a function for which DWARF has only a plain name. */
static const char *name_at_entry(const struct symfile *sf, const char *plain, uint64_t entry)
{
	const struct symbol *sym = symtab_find(&sf->symbols, entry);

	return sym && sym->addr == entry && !is_clone(sym->name, plain) ? sym->name : NULL;
}

/* Fills in the outermost frame: its extent, and names that DWARF does not have. */
static void consult_symbols(const struct symfile *sf, const struct symbol *sym, uint64_t entry,
			    struct sym_frame *outer)
{
	if (!outer->linkage && outer->name)
		outer->linkage = name_at_entry(sf, outer->name, entry);
	if (!sym)
		return;
	if (!outer->linkage && !outer->name)
		outer->linkage = sym->name;
	outer->start = sym->addr;
	outer->size = sym->size;
	outer->label = sym->label;
}

size_t symfile_lookup(struct symfile *sf, uint64_t vaddr, struct sym_frame *out, size_t max)
{
	const struct symbol *sym;
	uint64_t entry = 0;
	size_t nr = 0;

	if (!max)
		return 0;
	if (dwarf_of(sf))
		nr = dwarf_lookup(sf->dwarf, vaddr, out, max, &entry);
	sym = symtab_find(&sf->symbols, vaddr);
	/* A line without a function is useless in a profile. */
	if (!sym && (!nr || (nr == 1 && !out[0].name && !out[0].linkage)))
		return 0;
	if (!nr)
		out[nr++] = (struct sym_frame){ 0 };
	consult_symbols(sf, sym, entry, &out[nr - 1]);
	for (size_t i = 0; i < nr; i++) {
		out[i].start = out[nr - 1].start;
		out[i].size = out[nr - 1].size;
		finish_frame(sf, &out[i]);
	}
	return nr;
}

uint64_t symfile_same_until(struct symfile *sf, uint64_t vaddr)
{
	return dwarf_of(sf) ? dwarf_same_until(sf->dwarf, vaddr) : UINT64_MAX;
}

bool symfile_each_line(struct symfile *sf, sym_take_line *take, void *arg)
{
	if (!dwarf_of(sf))
		return false;
	dwarf_each_line(sf->dwarf, take, arg);
	return true;
}

struct each_function {
	struct symfile *sf;
	sym_take_function *take;
	void *arg;
};

static void take_function(void *arg, const struct sym_function *function)
{
	const struct each_function *each = arg;
	struct sym_frame frame = { .name = function->name, .linkage = function->linkage };
	struct sym_function whole = *function;

	if (!frame.linkage && frame.name)
		frame.linkage = name_at_entry(each->sf, frame.name, function->start);
	finish_frame(each->sf, &frame);
	whole.name = frame.name;
	whole.linkage = frame.linkage;
	each->take(each->arg, &whole);
}

bool symfile_each_function(struct symfile *sf, sym_take_function *take, void *arg)
{
	struct each_function each = { sf, take, arg };

	if (!dwarf_of(sf))
		return false;
	dwarf_each_function(sf->dwarf, take_function, &each);
	return true;
}

bool symfile_find(struct symfile *sf, const char *linkage, uint64_t *vaddr)
{
	const struct symbol *sym;

	read_tables(sf);
	sym = symtab_by_name(&sf->symbols, linkage);
	if (sym)
		*vaddr = sym->addr;
	return sym != NULL;
}

const uint64_t *symfile_starts(struct symfile *sf, size_t *nr)
{
	read_tables(sf);
	if (!sf->starts) {
		sf->starts = xmalloc((sf->symbols.nr + 1) * sizeof(*sf->starts));
		for (size_t i = 0; i < sf->symbols.nr; i++) {
			uint64_t addr = sf->symbols.at[i].addr; /* sorted */

			if (!sf->nr_starts || sf->starts[sf->nr_starts - 1] != addr)
				sf->starts[sf->nr_starts++] = addr;
		}
	}
	*nr = sf->nr_starts;
	return sf->starts;
}

bool symfile_function(struct symfile *sf, uint64_t vaddr, uint64_t *start, bool *label)
{
	const struct symbol *sym;

	read_tables(sf);
	sym = symtab_find(&sf->symbols, vaddr);
	if (!sym)
		return false;
	*start = sym->addr;
	*label = sym->label;
	return true;
}

bool symfile_is_thumb(struct symfile *sf, uint64_t vaddr)
{
	const struct symbol *sym;

	read_tables(sf);
	sym = symtab_find(&sf->symbols, vaddr);
	return sym && sym->thumb;
}

static bool in_segments(const struct sym_segment *segments, size_t nr, uint64_t vaddr)
{
	for (size_t i = 0; i < nr; i++) {
		if (vaddr - segments[i].vaddr < segments[i].memsz)
			return true;
	}
	return false;
}

bool symfile_is_code(struct symfile *sf, uint64_t vaddr)
{
	const struct sym_segment *segments;
	size_t nr;

	if (sf->obj && sf->obj->code.nr)
		return spans_find(&sf->obj->code, vaddr);
	segments = symfile_segments(sf, &nr);
	if (nr)
		return in_segments(segments, nr, vaddr);
	read_tables(sf);
	return symtab_find(&sf->symbols, vaddr);
}

bool symfile_is_loaded(const struct symfile *sf, uint64_t vaddr)
{
	return sf->obj && in_segments(sf->obj->loads, sf->obj->nr_loads, vaddr);
}

/* The bytes from an address up to the end of a segment, or of the file if that is cut; NULL: it is not there. */
static const uint8_t *segment_code(const struct symfile *sf, const struct sym_segment *segment,
				   uint64_t vaddr, size_t *len)
{
	/* The bytes before the segment in its first page are mapped with it. */
	bool as_mapped = segment->vaddr % PAGE == segment->offset % PAGE;
	uint64_t before = as_mapped ? segment->vaddr % PAGE : 0;
	uint64_t at = vaddr - (segment->vaddr - before), room = segment->filesz + before;
	uint64_t offset = segment->offset - before + at;
	size_t all = sf->flat ? sf->flat->len : sf->obj->file_len;

	if (at >= room || offset >= all)
		return NULL;
	*len = room - at < all - offset ? room - at : all - offset;
	return sf->flat ? sf->flat->data + offset : object_bytes(sf->obj, offset, *len);
}

const uint8_t *symfile_code_from(const struct symfile *sf, uint64_t vaddr, size_t *len)
{
	const struct sym_segment *segments;
	const uint8_t *code = NULL;
	size_t nr, room;

	*len = 0;
	segments = symfile_segments(sf, &nr);
	for (size_t i = 0; i < nr; i++) {
		const uint8_t *found = segment_code(sf, &segments[i], vaddr, &room);

		if (!found || room <= *len)
			continue;
		code = found;
		*len = room;
	}
	return code;
}

const uint8_t *symfile_code(const struct symfile *sf, uint64_t vaddr, size_t len)
{
	size_t room;
	const uint8_t *code = symfile_code_from(sf, vaddr, &room);

	return len <= room ? code : NULL;
}

void symfile_insns(struct symfile *sf, uint64_t vaddr, struct insn_code *code)
{
	*code = (struct insn_code){ .machine = symfile_machine(sf), .wide = symfile_is_64bit(sf) };
	code->bytes = symfile_code_from(sf, vaddr, &code->len);
	code->thumb = code->machine == EM_ARM && symfile_is_thumb(sf, vaddr);
}

uint64_t symfile_instructions(struct symfile *sf, uint64_t vaddr, uint64_t end)
{
	struct insn_code code;
	uint64_t nr = 0;

	symfile_insns(sf, vaddr, &code);
	if (end <= vaddr || code.len < end - vaddr)
		return 0;
	for (code.len = (size_t)(end - vaddr); code.len; nr++) {
		size_t size = insn_size(&code);

		if (!size)
			return 0;
		code.bytes += size;
		code.len -= size;
	}
	return nr;
}

bool symfile_section(struct symfile *sf, const char *name, struct sym_section *out)
{
	read_tables(sf);
	return (sf->obj && object_section(sf->obj, name, out)) ||
	       (sf->debug && object_section(sf->debug, name, out));
}

struct Elf *symfile_elf(struct symfile *sf)
{
	return sf->obj ? sf->obj->elf : NULL;
}

struct Elf *symfile_debug_elf(struct symfile *sf)
{
	read_tables(sf);
	return sf->debug ? sf->debug->elf : NULL;
}

static bool same_module(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void find_modules(struct symfile *sf)
{
	struct sym_module *last = NULL;
	size_t cap = 0;

	sf->modules_found = true;
	for (size_t i = 0; i < sf->symbols.nr; i++) {
		const struct symbol *sym = &sf->symbols.at[i];

		if (last && !same_module(last->name, sym->module)) {
			last->end = last->end < sym->addr ? last->end : sym->addr;
			last = NULL;
		}
		if (!sym->module)
			continue;
		if (!last) {
			GROW(sf->modules, sf->nr_modules + 1, cap);
			last = &sf->modules[sf->nr_modules++];
			*last = (struct sym_module){ sym->module, sym->addr, sym->addr };
		}
		last->end = sym->addr + sym->size > last->end ? sym->addr + sym->size : last->end;
	}
}

bool symfile_module(struct symfile *sf, size_t n, struct sym_module *out)
{
	if (!sf->modules_found)
		find_modules(sf);
	if (n < sf->nr_modules)
		*out = sf->modules[n];
	return n < sf->nr_modules;
}

uint64_t *symfile_patches(const struct symfile *sf, size_t *nr)
{
	*nr = 0;
	return symfile_is_object(sf) ? object_patches(sf->obj, nr) : NULL;
}
