// SPDX-License-Identifier: GPL-2.0-or-later
/* The headers and symbol table of one ELF file, read with libelf. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/slide.h"
#include "base/store.h"
#include "sym/internal.h"

int open_regular(const char *path, const struct store *store, struct err *err)
{
	struct stat st;
	int fd = store_open(store, path);

	if (fd < 0)
		return err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(err, ERR_INPUT, "%s: not a regular file", path);
	}
	return fd;
}

#ifdef HAVE_LIBDW

#include <elfutils/libdwelf.h>
#include <gelf.h>

/* A hostile header may claim 2^32 sections; libelf returns only those that fit into the file. */
#define SECTIONS_MAX ((size_t)1 << 20)
#define NAME_LEN_MAX ((size_t)64 << 10)

static void add_load(struct object *obj, const GElf_Phdr *ph, size_t *cap)
{
	GROW(obj->loads, obj->nr_loads + 1, *cap);
	obj->loads[obj->nr_loads++] = (struct sym_segment){
		.vaddr = ph->p_vaddr,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.memsz = ph->p_memsz,
	};
}

static void read_segments(struct object *obj)
{
	size_t nr = 0, cap = 0, load_cap = 0;

	if (elf_getphdrnum(obj->elf, &nr) < 0)
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(obj->elf, (int)i, &ph))
			return;
		if (ph.p_type != PT_LOAD)
			continue;
		add_load(obj, &ph, &load_cap);
		if (!(ph.p_flags & PF_X))
			continue;
		GROW(obj->segments, obj->nr_segments + 1, cap);
		obj->segments[obj->nr_segments++] = obj->loads[obj->nr_loads - 1];
	}
}

/* An object file has no addresses yet; file offsets tell its sections apart. */
static uint64_t section_address(const struct object *obj, const GElf_Shdr *sh)
{
	return obj->type == ET_REL ? sh->sh_offset : sh->sh_addr;
}

static uint64_t section_end(const struct object *obj, const GElf_Shdr *sh)
{
	uint64_t start = section_address(obj, sh);

	return start + sh->sh_size < start ? UINT64_MAX : start + sh->sh_size;
}

static void add_code_section(struct object *obj, const GElf_Shdr *sh, size_t *cap)
{
	if (obj->type != ET_REL || !(sh->sh_flags & SHF_EXECINSTR) || sh->sh_type == SHT_NOBITS)
		return;
	GROW(obj->segments, obj->nr_segments + 1, *cap);
	obj->segments[obj->nr_segments++] = (struct sym_segment){
		.vaddr = sh->sh_offset,
		.offset = sh->sh_offset,
		.filesz = sh->sh_size,
		.memsz = sh->sh_size,
	};
}

/* Strings of one section. elf_strptr() would search for the last NUL in every call. */
struct strings {
	const char *at;
	size_t len; /* up to the last NUL */
};

static struct strings find_strings(const struct object *obj, size_t index)
{
	Elf_Scn *scn = index ? elf_getscn(obj->elf, index) : NULL;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	const char *last;

	if (!data || !data->d_buf)
		return (struct strings){ 0 };
	last = memrchr(data->d_buf, '\0', data->d_size);
	return (struct strings){ data->d_buf, last ? (size_t)(last - (char *)data->d_buf) : 0 };
}

static const char *string_at(const struct strings *strings, size_t offset)
{
	return offset < strings->len ? strings->at + offset : NULL;
}

static bool is_named(const char *name, const char *plain, const char *compressed)
{
	return !strcmp(name, plain) || !strcmp(name, compressed);
}

static void note_section(struct object *obj, const GElf_Shdr *sh, const char *name, size_t index)
{
	obj->nr_sections++;
	if (sh->sh_type == SHT_SYMTAB)
		obj->has_symtab = true;
	if (sh->sh_type == SHT_NOBITS || !name)
		return;
	if (is_named(name, ".debug_info", ".zdebug_info"))
		obj->info_section = index;
	if (is_named(name, ".debug_line", ".zdebug_line"))
		obj->line_section = index;
	obj->has_dwarf = obj->info_section != 0;
}

static void read_sections(struct object *obj)
{
	struct interval *loaded = NULL, *code = NULL;
	size_t nr = 0, cap = 0, nr_code = 0, code_cap = 0, segment_cap = 0, index = 0;
	struct strings names;
	Elf_Scn *scn = NULL;

	if (elf_getshdrstrndx(obj->elf, &index) < 0)
		index = 0;
	names = find_strings(obj, index);
	for (size_t i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(obj->elf, scn)); i++) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			continue;
		note_section(obj, &sh, string_at(&names, sh.sh_name), elf_ndxscn(scn));
		if (!(sh.sh_flags & SHF_ALLOC) || (sh.sh_flags & SHF_TLS))
			continue;
		add_code_section(obj, &sh, &segment_cap);
		GROW(loaded, nr + 1, cap);
		loaded[nr++] = (struct interval){
			.lo = section_address(obj, &sh),
			.hi = section_end(obj, &sh),
			.id = (uint32_t)i + 1,
		};
		if (!(sh.sh_flags & SHF_EXECINSTR))
			continue;
		GROW(code, nr_code + 1, code_cap);
		code[nr_code++] = loaded[nr - 1];
	}
	spans_build(&obj->loaded, loaded, nr);
	spans_build(&obj->code, code, nr_code);
	free(loaded);
	free(code);
}

static void read_ids(struct object *obj)
{
	const void *id = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(obj->elf, &id);
	GElf_Word crc = 0;

	if (len > 0 && len <= BUILD_ID_MAX) {
		memcpy(obj->build_id, id, (size_t)len);
		obj->build_id_len = (size_t)len;
	}
	obj->debuglink = dwelf_elf_gnu_debuglink(obj->elf, &crc);
	obj->debuglink_crc = crc;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

static int read_header(struct object *obj, struct err *err)
{
	GElf_Ehdr eh;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return err_set(err, ERR_INPUT, "%s: %s", obj->path, elf_errmsg(-1));
	obj->elf = elf_begin(obj->fd, ELF_C_READ_MMAP, NULL);
	if (!obj->elf)
		mem_check(size_of(obj->fd));
	if (!obj->elf || elf_kind(obj->elf) != ELF_K_ELF)
		return err_set(err, ERR_INPUT, "%s: not an ELF file", obj->path);
	if (!gelf_getehdr(obj->elf, &eh))
		return err_set(err, ERR_INPUT, "%s: broken ELF header: %s", obj->path,
			       elf_errmsg(-1));
	obj->file = (const uint8_t *)elf_rawfile(obj->elf, &obj->file_len);
	if (!obj->file)
		mem_check(size_of(obj->fd));
	mapped_watch(obj->file, obj->file_len, obj->path);
	obj->cut = eh.e_shoff > obj->file_len ||
		   obj->file_len - eh.e_shoff < (uint64_t)eh.e_shnum * eh.e_shentsize;
	if (obj->cut)
		log_warn("%s: the file is cut short: its section headers are missing", obj->path);
	obj->machine = eh.e_machine;
	obj->type = eh.e_type;
	obj->is_64bit = eh.e_ident[EI_CLASS] == ELFCLASS64;
	obj->big_endian = eh.e_ident[EI_DATA] == ELFDATA2MSB;
	return 0;
}

struct object *object_open(const char *path, int fd, struct err *err)
{
	struct object *obj = xcalloc(1, sizeof(*obj));
	struct stat st;

	obj->path = xstrdup(path);
	obj->fd = fd;
	if (fstat(fd, &st) == 0) {
		obj->dev = st.st_dev;
		obj->ino = st.st_ino;
	}
	if (read_header(obj, err) < 0) {
		object_close(obj);
		return NULL;
	}
	read_segments(obj);
	read_sections(obj);
	read_ids(obj);
	return obj;
}

void object_close(struct object *obj)
{
	if (!obj)
		return;
	mapped_forget(obj->file);
	if (obj->elf)
		elf_end(obj->elf);
	close(obj->fd);
	spans_release(&obj->loaded);
	spans_release(&obj->code);
	free(obj->segments);
	free(obj->loads);
	free(obj->path);
	free(obj);
}

const uint8_t *object_bytes(const struct object *obj, uint64_t offset, size_t len)
{
	if (!obj->file || offset > obj->file_len || len > obj->file_len - offset)
		return NULL;
	return obj->file + offset;
}

bool object_section(const struct object *obj, const char *name, struct sym_section *out)
{
	struct strings names;
	Elf_Scn *scn = NULL;
	size_t index = 0;

	if (elf_getshdrstrndx(obj->elf, &index) < 0)
		return false;
	names = find_strings(obj, index);
	for (size_t i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(obj->elf, scn)); i++) {
		const char *its_name;
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
			continue;
		its_name = string_at(&names, sh.sh_name);
		if (!its_name || strcmp(its_name, name) != 0)
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			return false;
		*out = (struct sym_section){ section_address(obj, &sh), data->d_buf, data->d_size };
		return true;
	}
	return false;
}

/* $a, $t, $d, $x, also as "$d.42" or "$xrv64gc": marks a switch between code and data. */
static bool is_mapping_symbol(uint16_t machine, const char *name)
{
	if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV)
		return false;
	return name[0] == '$' && name[1] && strchr("atdx", name[1]) &&
	       (!name[2] || name[2] == '.' || machine == EM_RISCV);
}

#define RANK_TYPED 8

/* Prefers the name that a linker would pick. */
static uint8_t symbol_rank(const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info), bind = GELF_ST_BIND(sym->st_info);
	uint8_t rank = 1;

	if (type != STT_NOTYPE)
		rank += RANK_TYPED;
	if (sym->st_size)
		rank += 4;
	if (bind != STB_LOCAL)
		rank += bind == STB_WEAK ? 1 : 2;
	return rank;
}

static bool is_function(const struct object *obj, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (!name || !name[0] || !strncmp(name, ".L", 2))
		return false;
	return !is_mapping_symbol(obj->machine, name);
}

/* Returns -1 unless the symbol's section is loaded and, for an untyped symbol, executable. */
static int home_section(const struct object *obj, const GElf_Sym *sym, size_t index, GElf_Shdr *sh)
{
	Elf_Scn *scn;

	if (!index)
		return -1;
	scn = elf_getscn(obj->elf, index);
	if (!scn || !gelf_getshdr(scn, sh) || !(sh->sh_flags & SHF_ALLOC))
		return -1;
	if (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE && !(sh->sh_flags & SHF_EXECINSTR))
		return -1;
	return 0;
}

static bool convert(const struct object *obj, const GElf_Sym *sym, size_t index, struct symbol *out)
{
	GElf_Shdr sh;

	if (home_section(obj, sym, index, &sh) < 0)
		return false;
	out->addr = sym->st_value;
	if (obj->machine == EM_ARM && GELF_ST_TYPE(sym->st_info) != STT_NOTYPE) {
		out->thumb = out->addr & 1;
		out->addr &= ~UINT64_C(1);
	}
	if (obj->type == ET_REL)
		out->addr += section_address(obj, &sh);
	out->size = sym->st_size;
	out->limit = section_end(obj, &sh);
	out->rank = symbol_rank(sym);
	/* A linker script's symbol for the end of a section is not a function in it. */
	return out->addr >= section_address(obj, &sh) && out->addr < out->limit;
}

struct symbol_section {
	Elf_Data *data, *more; /* more: section numbers that do not fit into 16 bits */
	struct strings strings;
};

static const char *symbol_name(const struct symbol_section *from, const GElf_Sym *sym)
{
	const char *name = string_at(&from->strings, sym->st_name);

	return name && strnlen(name, NAME_LEN_MAX) < NAME_LEN_MAX ? name : NULL;
}

static bool find_symbols(const struct object *obj, GElf_Word type, struct symbol_section *out)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(obj->elf, scn)); i++) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		if (sh.sh_type == type && !out->data) {
			out->data = elf_getdata(scn, NULL);
			out->strings = find_strings(obj, sh.sh_link);
		} else if (sh.sh_type == SHT_SYMTAB_SHNDX && type == SHT_SYMTAB) {
			out->more = elf_getdata(scn, NULL);
		}
	}
	return out->data && out->data->d_buf && out->strings.len;
}

static void read_symbol(const struct object *obj, const struct symbol_section *from, int i,
			struct symtab *tab)
{
	Elf32_Word wide = 0;
	struct symbol out = { 0 };
	GElf_Sym sym;

	if (!gelf_getsymshndx(from->data, from->more, i, &sym, &wide))
		return;
	out.name = symbol_name(from, &sym);
	if (!is_function(obj, &sym, out.name))
		return;
	if (sym.st_shndx == SHN_XINDEX ? !wide : sym.st_shndx >= SHN_LORESERVE)
		return;
	if (convert(obj, &sym, sym.st_shndx == SHN_XINDEX ? wide : sym.st_shndx, &out))
		symtab_add(tab, out);
}

/* The address of an untyped symbol does not say whether it is Thumb: do as most functions. */
static void guess_modes(struct symtab *tab)
{
	size_t typed = 0, thumb = 0;

	for (size_t i = 0; i < tab->nr; i++) {
		typed += tab->at[i].rank > RANK_TYPED;
		thumb += tab->at[i].thumb;
	}
	for (size_t i = 0; i < tab->nr; i++) {
		if (tab->at[i].rank <= RANK_TYPED)
			tab->at[i].thumb = thumb > typed / 2;
	}
}

void object_read_symbols(const struct object *obj, struct symtab *tab)
{
	struct symbol_section from;
	size_t size = gelf_fsize(obj->elf, ELF_T_SYM, 1, EV_CURRENT);

	if (find_symbols(obj, SHT_SYMTAB, &from) || find_symbols(obj, SHT_DYNSYM, &from)) {
		size_t nr = size ? from.data->d_size / size : 0;

		for (size_t i = 0; i < nr && i < INT32_MAX; i++)
			read_symbol(obj, &from, (int)i, tab);
	} else if (obj->has_symtab) {
		log_warn("%s: broken symbol table: %s", obj->path, elf_errmsg(-1));
	}
	if (obj->machine == EM_ARM)
		guess_modes(tab);
	symtab_finish(tab);
}

struct patches {
	uint64_t *at;
	size_t nr, cap;
};

/* True if these relocations apply to a code section. */
static bool patched_section(const struct object *obj, const GElf_Shdr *sh, GElf_Shdr *code)
{
	Elf_Scn *scn;

	if (sh->sh_type != SHT_REL && sh->sh_type != SHT_RELA)
		return false;
	scn = elf_getscn(obj->elf, sh->sh_info);
	return scn && gelf_getshdr(scn, code) && (code->sh_flags & SHF_EXECINSTR);
}

static void add_patches(Elf_Data *data, const GElf_Shdr *sh, const GElf_Shdr *code,
			struct patches *out)
{
	size_t nr = sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;

	for (size_t i = 0; i < nr && i < INT32_MAX; i++) {
		GElf_Rela rela;
		GElf_Rel rel;
		bool good = sh->sh_type == SHT_RELA ? gelf_getrela(data, (int)i, &rela) != NULL
						    : gelf_getrel(data, (int)i, &rel) != NULL;
		uint64_t offset;

		if (!good)
			return;
		offset = sh->sh_type == SHT_RELA ? rela.r_offset : rel.r_offset;
		if (offset >= code->sh_size)
			continue;
		GROW(out->at, out->nr + 1, out->cap);
		out->at[out->nr++] = code->sh_offset + offset;
	}
}

uint64_t *object_patches(const struct object *obj, size_t *nr)
{
	struct patches all = { 0 };
	Elf_Scn *scn = NULL;

	for (size_t i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(obj->elf, scn)); i++) {
		GElf_Shdr sh, code;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || !patched_section(obj, &sh, &code))
			continue;
		data = elf_getdata(scn, NULL);
		if (data)
			add_patches(data, &sh, &code, &all);
	}
	*nr = sort_unique(all.at, all.nr);
	return all.at;
}

int object_read_ksyms(const struct object *obj, struct ksyms *ksyms, struct err *err)
{
	struct ksyms_in in = {
		.data = obj->file,
		.len = obj->file ? obj->file_len : 0,
		.loads = obj->loads,
		.nr_loads = obj->nr_loads,
		.is_64bit = obj->is_64bit,
		.big_endian = obj->big_endian,
	};

	return ksyms_read(ksyms, &in, obj->path, err);
}

#else

struct object *object_open(const char *path, int fd, struct err *err)
{
	close(fd);
	err_set(err, ERR_INPUT, "%s: cannot read ELF files: built without libelf/libdw", path);
	return NULL;
}

void object_close(struct object *obj)
{
	(void)obj;
}

const uint8_t *object_bytes(const struct object *obj, uint64_t offset, size_t len)
{
	(void)obj, (void)offset, (void)len;
	return NULL;
}

bool object_section(const struct object *obj, const char *name, struct sym_section *out)
{
	(void)obj, (void)name, (void)out;
	return false;
}

void object_read_symbols(const struct object *obj, struct symtab *tab)
{
	(void)obj;
	symtab_finish(tab);
}

uint64_t *object_patches(const struct object *obj, size_t *nr)
{
	(void)obj;
	*nr = 0;
	return NULL;
}

int object_read_ksyms(const struct object *obj, struct ksyms *ksyms, struct err *err)
{
	(void)obj;
	(void)ksyms;
	(void)err;
	return -1;
}

#endif
