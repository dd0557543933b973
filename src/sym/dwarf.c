// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions, inlined calls and lines from DWARF. libdw parses; the tables are ours, because libdw's
 * own lookups take up to a millisecond per address. Reads only units that contain an address that
 * was looked up, each once:
 *
 *	units	all of them, from their headers: which addresses each has
 *	unit	functions and inlined calls as a tree, and which of them owns an address
 *	lines	its line table
 *
 * A function's name is read when a lookup first returns it. Split DWARF (.dwo) is not followed,
 * because the path in the file could name anything; only the skeleton is used.
 */
#include "sym/internal.h"

#ifdef HAVE_LIBDW

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"

/* Far above what compilers emit; anything over a limit is dropped. */
#define DEPTH_MAX 1024
#define INTERVALS_MAX ((size_t)8 << 20)
#define FUNCS_MAX ((size_t)64 << 20)
#define UNITS_MAX ((size_t)4 << 20)
#define SECTIONS_MAX 10000 /* libdw may read all section names for each section */
/* If the first unit that claims an address has nothing for it, others may. */
#define OTHER_UNITS_MAX 8
#define OTHER_CLAIMS_MAX 4096
#define ZLIB_RATIO 1032 /* no data compresses better */

struct func {
	uint64_t die;	     /* offset of the DIE with its name */
	uint64_t lo, hi;     /* the first of its ranges */
	const char *linkage; /* NULL: unknown, or not read yet (see named) */
	const char *name;
	uint32_t parent; /* the function it is inlined into; 0: not inlined */
	uint32_t call_line, call_file;
	bool named;
};

struct unit {
	Dwarf_Die die;
	uint64_t end; /* offset in .debug_info */
	bool walked, lined, filed;
	bool vague;   /* may have more addresses than it claims */
	bool mangles; /* its language has linkage names */
	struct func *funcs;
	size_t nr_funcs, cap_funcs;
	struct spans owners; /* ids are indices of funcs + 1 */
	struct lines lines;
	Dwarf_Files *files; /* read on first use */
	size_t nr_files;
};

struct dwarf {
	Dwarf *alt; /* see find_alt(); NULL: none, or libdw has it */
	int alt_fd;
	Dwarf *dw;
	const struct object *obj;
	struct line_section line_section;
	const uint8_t *info, *info_end; /* .debug_info */
	struct unit *units;
	size_t nr_units, cap_units;
	struct interval *claims; /* of units, by start */
	size_t nr_claims;
	struct spans claimed;	/* the most likely unit of each address */
	struct spans unclaimed; /* addresses of functions in vague units */
	bool vague_walked;
};

/* DWARF still describes code that the linker dropped, at address 0, 1 or -1. */
static bool is_loaded(const struct dwarf *d, uint64_t addr)
{
	return spans_find(&d->obj->loaded, addr) != 0;
}

/* ---- ranges of one DIE ---- */

struct interval_list {
	struct interval *at;
	size_t nr, cap;
	size_t seen; /* ranges read, including dead ones */
};

static void add_interval(struct interval_list *list, const struct interval *new)
{
	GROW(list->at, list->nr + 1, list->cap);
	list->at[list->nr++] = *new;
}

/*
 * libdw 0.188 does not check offsets of 8 bytes in the index of range lists, and crashes. Only 64-bit DWARF has them;
 * its index is left out. So a unit counts as vague, and only inlined calls in several pieces are lost.
 */
static bool has_unsafe_ranges(Dwarf_Die *die)
{
	uint8_t offset_size;
	Dwarf_Attribute ranges;

	return dwarf_cu_info(die->cu, NULL, NULL, NULL, NULL, NULL, NULL, &offset_size) == 0 &&
	       offset_size == 8 && dwarf_attr(die, DW_AT_ranges, &ranges) &&
	       dwarf_whatform(&ranges) == DW_FORM_rnglistx;
}

/* Appends the live ranges of the DIE; true if the DIE has any, dead ones included. */
static bool add_ranges(const struct dwarf *d, Dwarf_Die *die, struct interval model,
		       struct interval_list *list)
{
	Dwarf_Addr base = 0, lo = 0, hi = 0;
	ptrdiff_t at = 0;
	bool any = false;

	if (has_unsafe_ranges(die))
		return false;
	while (list->seen++ < INTERVALS_MAX && (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		any = true;
		if (lo >= hi || !is_loaded(d, lo))
			continue;
		model.lo = lo;
		model.hi = hi;
		add_interval(list, &model);
	}
	return any;
}

/* ---- units ---- */

static bool language_mangles(int language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler: return false;
	default: return true;
	}
}

static void add_unit(struct dwarf *d, const struct unit *new, struct interval_list *claims)
{
	struct interval model = { .id = (uint32_t)d->nr_units + 1 };
	struct unit unit = *new;
	Dwarf_Die *die = &unit.die;
	size_t first = claims->nr;

	unit.mangles = language_mangles(dwarf_srclang(die));
	GROW(d->units, d->nr_units + 1, d->cap_units);
	unit.vague |= !add_ranges(d, die, model, claims);
	/* The smallest claim is the most likely one. */
	for (size_t i = first; i < claims->nr; i++)
		claims->at[i].rank = UINT64_MAX - (claims->at[i].hi - claims->at[i].lo);
	d->units[d->nr_units++] = unit;
}

static bool is_code_unit(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit;
}

static void read_units(struct dwarf *d)
{
	struct interval_list claims = { 0 };
	Dwarf_Off at = 0, next = 0;
	Dwarf_Half version = 0;
	size_t header = 0;
	int rc = 0;

	while (d->nr_units < UNITS_MAX &&
	       (rc = dwarf_next_unit(d->dw, at, &next, &header, &version, NULL, NULL, NULL, NULL,
				     NULL)) == 0) {
		/* DWARF 2 has one range per unit; templates and the like are elsewhere. */
		struct unit unit = { .end = next, .vague = version < 3 };

		if (next <= at)
			break;
		if (dwarf_offdie(d->dw, at + header, &unit.die) && is_code_unit(&unit.die))
			add_unit(d, &unit, &claims);
		at = next;
	}
	if (rc < 0)
		log_warn("%s: DWARF is broken at .debug_info+%#llx: %s", d->obj->path,
			 (unsigned long long)at, dwarf_errmsg(-1));
	spans_build(&d->claimed, claims.at, claims.nr);
	d->claims = claims.at;
	d->nr_claims = claims.nr;
}

/* ---- functions of a unit ---- */

struct walk {
	struct dwarf *d;
	struct unit *unit;
	struct interval_list found;
	Dwarf_Die die;
	const uint8_t *end;
	uint32_t scope[DEPTH_MAX]; /* the function around the DIEs of each level */
	size_t depth;
};

static const uint8_t *unit_end(const struct unit *unit)
{
	Dwarf_Die die = unit->die;
	uint64_t offset = dwarf_dieoffset(&die);

	return (const uint8_t *)die.addr + (unit->end - offset);
}

/*
 * Moves to the next DIE after a list of children, whose terminating zero is at `at`. Continuing
 * from there instead of from the parent avoids reading everything once per level. That
 * dwarf_siblingof() returns this position is undocumented.
 */
static bool climb(struct walk *w, const uint8_t *at)
{
	while (at && at < w->end && !*at) {
		if (!--w->depth)
			return false;
		at++;
	}
	if (!at || at >= w->end)
		return false;
	w->die = (Dwarf_Die){ .addr = (void *)at, .cu = w->unit->die.cu };
	return true;
}

/* These contain no code. */
static bool is_skipped(int tag)
{
	return tag == DW_TAG_subroutine_type || tag == DW_TAG_call_site ||
	       tag == DW_TAG_GNU_call_site || tag == DW_TAG_array_type;
}

/* Only ever moves forward in the file, so a bogus DW_AT_sibling cannot make a loop. */
static bool step(struct walk *w, int tag, uint32_t scope)
{
	const void *from = w->die.addr;
	Dwarf_Die next = { 0 };
	int rc = 1;

	if (!is_skipped(tag) && w->depth + 1 < DEPTH_MAX)
		rc = dwarf_child(&w->die, &next);
	if (rc == 0) {
		w->scope[++w->depth] = scope;
		w->die = next;
	} else {
		rc = dwarf_siblingof(&w->die, &next);
		if (rc < 0 || (rc > 0 && !climb(w, next.addr)))
			return false;
		if (rc == 0)
			w->die = next;
	}
	return (const uint8_t *)w->die.addr > (const uint8_t *)from;
}

struct func_attrs {
	Dwarf_Attribute low, high;
	bool has_low, has_high, has_ranges;
	uint32_t call_line, call_file;
};

static uint32_t small_number(Dwarf_Attribute *attr)
{
	Dwarf_Word value = 0;

	return dwarf_formudata(attr, &value) == 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static int take_attr(Dwarf_Attribute *attr, void *arg)
{
	struct func_attrs *a = arg;

	switch (attr->code) {
	case DW_AT_low_pc:
		a->low = *attr;
		a->has_low = true;
		break;
	case DW_AT_high_pc:
		a->high = *attr;
		a->has_high = true;
		break;
	case DW_AT_ranges: a->has_ranges = true; break;
	case DW_AT_call_line: a->call_line = small_number(attr); break;
	case DW_AT_call_file: a->call_file = small_number(attr); break;
	}
	return DWARF_CB_OK;
}

static bool simple_range(struct func_attrs *a, struct interval *out)
{
	Dwarf_Word length;
	Dwarf_Addr lo, hi;

	if (!a->has_low || !a->has_high || dwarf_formaddr(&a->low, &lo) != 0)
		return false;
	if (a->high.form == DW_FORM_addr) {
		if (dwarf_formaddr(&a->high, &hi) != 0)
			return false;
	} else {
		if (dwarf_formudata(&a->high, &length) != 0)
			return false;
		hi = lo + length;
	}
	out->lo = lo;
	out->hi = hi;
	return true;
}

static void add_live(struct walk *w, struct func_attrs *a, struct interval model)
{
	if (a->has_ranges)
		add_ranges(w->d, &w->die, model, &w->found);
	else if (simple_range(a, &model) && model.lo < model.hi && is_loaded(w->d, model.lo))
		add_interval(&w->found, &model);
}

/*
 * Returns the new function's id, or 0 if it has no code here. An inlined call in several pieces has
 * no range in DWARF 2. It is kept as the parent of calls inlined into it, which may have one.
 */
static uint32_t add_func(struct walk *w, bool inlined)
{
	struct unit *unit = w->unit;
	struct func_attrs a = { 0 };
	struct interval model = { .rank = w->depth, .id = (uint32_t)unit->nr_funcs + 1 };
	uint32_t parent = inlined ? w->scope[w->depth] : 0;
	size_t first = w->found.nr;
	bool live;

	if (first >= INTERVALS_MAX || unit->nr_funcs >= FUNCS_MAX ||
	    dwarf_getattrs(&w->die, take_attr, &a, 0) < 0)
		return 0;
	add_live(w, &a, model);
	live = w->found.nr > first;
	if (!live && !parent)
		return 0;
	GROW(unit->funcs, unit->nr_funcs + 1, unit->cap_funcs);
	unit->funcs[unit->nr_funcs++] = (struct func){
		.die = dwarf_dieoffset(&w->die),
		.lo = live ? w->found.at[first].lo : 0,
		.hi = live ? w->found.at[first].hi : 0,
		.parent = parent,
		.call_line = a.call_line,
		.call_file = a.call_file,
	};
	return model.id;
}

static uint32_t visit(struct walk *w, int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_entry_point: return add_func(w, false);
	case DW_TAG_inlined_subroutine: return add_func(w, true);
	default: return w->scope[w->depth];
	}
}

static void walk_unit(struct dwarf *d, struct unit *unit)
{
	struct walk *w;

	if (unit->walked)
		return;
	unit->walked = true;
	w = xmalloc(sizeof(*w));
	memset(&w->found, 0, sizeof(w->found));
	w->d = d;
	w->unit = unit;
	w->end = unit_end(unit);
	w->depth = 1;
	w->scope[0] = w->scope[1] = 0;
	if (dwarf_child(&unit->die, &w->die) == 0) {
		for (bool more = true; more;) {
			int tag = dwarf_tag(&w->die);

			more = tag != DW_TAG_invalid && step(w, tag, visit(w, tag));
		}
	}
	spans_build(&unit->owners, w->found.at, w->found.nr);
	unit->funcs = xrealloc(unit->funcs, unit->nr_funcs, sizeof(*unit->funcs));
	free(w->found.at);
	free(w);
}

/* ---- lines of a unit ---- */

static void read_lines(const struct dwarf *d, struct unit *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;

	if (unit->lined)
		return;
	unit->lined = true;
	if (dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &attr), &offset) == 0)
		lines_read(&unit->lines, &d->line_section, offset, &d->obj->loaded);
}

static const char *file_name(struct unit *unit, uint32_t file)
{
	if (!unit->filed) {
		unit->filed = true;
		if (dwarf_getsrcfiles(&unit->die, &unit->files, &unit->nr_files) != 0)
			unit->nr_files = 0;
	}
	return file < unit->nr_files ? dwarf_filesrc(unit->files, file, NULL, NULL) : NULL;
}

/* ---- names ---- */

/* libdw does not check that a string stored in .debug_info itself is terminated. */
static bool has_end(const struct dwarf *d, const Dwarf_Attribute *attr)
{
	if (attr->form != DW_FORM_string || attr->valp < d->info || attr->valp >= d->info_end)
		return true;
	return memchr(attr->valp, '\0', (size_t)(d->info_end - attr->valp)) != NULL;
}

static const char *string_of(const struct dwarf *d, Dwarf_Die *die, unsigned int code)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr_integrate(die, code, &attr) || !has_end(d, &attr))
		return NULL;
	return dwarf_formstring(&attr);
}

static void name_func(const struct dwarf *d, const struct unit *unit, struct func *f)
{
	Dwarf_Die die;

	if (f->named)
		return;
	f->named = true;
	if (!dwarf_offdie(d->dw, f->die, &die))
		return;
	f->linkage = string_of(d, &die, DW_AT_linkage_name);
	if (!f->linkage)
		f->linkage = string_of(d, &die, DW_AT_MIPS_linkage_name);
	f->name = string_of(d, &die, DW_AT_name);
	if (!f->linkage && !unit->mangles)
		f->linkage = f->name;
}

/* ---- lookup ---- */

struct place {
	struct unit *unit;
	uint32_t func; /* id, 0 if none */
	const struct row *row;
};

static bool find_in_unit(struct dwarf *d, struct unit *unit, uint64_t addr, struct place *place)
{
	walk_unit(d, unit);
	read_lines(d, unit);
	place->unit = unit;
	place->func = spans_find(&unit->owners, addr);
	place->row = lines_find(&unit->lines, addr);
	return place->func || place->row;
}

/* The number of claims that start at or before addr. */
static size_t claims_upto(const struct dwarf *d, uint64_t addr)
{
	size_t lo = 0, hi = d->nr_claims;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->claims[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool find_in_others(struct dwarf *d, uint64_t addr, struct place *place)
{
	size_t upto = claims_upto(d, addr), units = 0;
	size_t first = upto > OTHER_CLAIMS_MAX ? upto - OTHER_CLAIMS_MAX : 0;

	for (size_t i = upto; i-- > first && units < OTHER_UNITS_MAX;) {
		const struct interval *claim = &d->claims[i];

		if (addr >= claim->hi)
			continue;
		units++;
		if (find_in_unit(d, &d->units[claim->id - 1], addr, place))
			return true;
	}
	return false;
}

static void claim_owned(const struct unit *unit, uint32_t id, struct interval_list *claims)
{
	const struct spans *own = &unit->owners;

	for (size_t i = 0; i + 1 < own->nr; i++) {
		if (own->at[i].id)
			add_interval(claims, &(struct interval){ .lo = own->at[i].lo,
								 .hi = own->at[i + 1].lo,
								 .id = id });
	}
}

/* Old compilers do not list all addresses of a unit: collect those of its functions. */
static void walk_vague(struct dwarf *d)
{
	struct interval_list claims = { 0 };

	if (d->vague_walked)
		return;
	d->vague_walked = true;
	for (size_t i = 0; i < d->nr_units; i++) {
		if (!d->units[i].vague)
			continue;
		walk_unit(d, &d->units[i]);
		claim_owned(&d->units[i], (uint32_t)i + 1, &claims);
	}
	spans_build(&d->unclaimed, claims.at, claims.nr);
	free(claims.at);
}

static bool find_place(struct dwarf *d, uint64_t addr, struct place *place)
{
	uint32_t id = spans_find(&d->claimed, addr);

	if (id)
		return find_in_unit(d, &d->units[id - 1], addr, place) ||
		       find_in_others(d, addr, place);
	walk_vague(d);
	id = spans_find(&d->unclaimed, addr);
	return id && find_in_unit(d, &d->units[id - 1], addr, place);
}

static void set_extent(const struct place *place, const struct func *f, uint64_t addr,
		       struct sym_frame *out)
{
	uint64_t lo = f->lo, hi = f->hi;

	/* A part that was split off (.cold) is outside the first range: use the piece at addr. */
	if (addr < lo || addr >= hi)
		spans_piece(&place->unit->owners, addr, &lo, &hi);
	out->start = lo;
	out->size = hi - lo;
}

size_t dwarf_lookup(struct dwarf *d, uint64_t addr, struct sym_frame *out, size_t max,
		    uint64_t *entry)
{
	struct sym_frame where = { 0 };
	struct place place;
	size_t nr = 0;

	if (!max || !is_loaded(d, addr) || !find_place(d, addr, &place))
		return 0;
	if (place.row) {
		where.file = file_name(place.unit, place.row->file);
		where.line = place.row->line;
	}
	if (!place.func) {
		out[0] = where;
		return 1;
	}
	for (uint32_t id = place.func; id;) {
		struct func *f = &place.unit->funcs[id - 1];

		name_func(d, place.unit, f);
		where.linkage = f->linkage;
		where.name = f->name;
		where.inlined = f->parent != 0;
		where.id = f->die;
		where.first = f->lo;
		*entry = f->lo;
		if (!f->parent)
			set_extent(&place, f, addr, &where);
		/* If the chain is too long, keep the outermost function. */
		out[nr < max ? nr : max - 1] = where;
		nr++;
		where.file = file_name(place.unit, f->call_file);
		where.line = f->call_line;
		id = f->parent;
	}
	return nr < max ? nr : max;
}

uint64_t dwarf_same_until(struct dwarf *d, uint64_t addr)
{
	struct place place;

	if (is_loaded(d, addr) && find_place(d, addr, &place))
		return spans_next(&place.unit->owners, addr);
	return spans_next(&d->claimed, addr);
}

/* ---- all lines and functions ---- */

struct each_line {
	sym_take_line *take;
	void *arg;
	struct unit *unit;
	const char *dir;
	uint64_t scopes; /* the id of the unit, for those of its functions */
};

/* A row may contain the code of several functions. */
static void take_row(const struct each_line *each, const struct row *row, uint64_t end)
{
	const struct spans *owners = &each->unit->owners;
	struct sym_line line = {
		.addr = row->addr, .dir = each->dir, .line = row->line, .stmt = row->stmt
	};

	line.file = line.line ? file_name(each->unit, row->file) : NULL;
	/* A sequence may end before its last row. */
	if (!line.file || end < row->addr)
		return;
	do {
		uint64_t hi = spans_next(owners, line.addr);
		uint32_t id = spans_find(owners, line.addr);

		line.end = hi < end ? hi : end;
		line.scope = id ? each->scopes | id : 0;
		each->take(each->arg, &line);
		line.addr = line.end;
		line.stmt = false;
	} while (line.addr < end);
}

static void take_rows(const struct each_line *each, const struct lines *lines)
{
	for (size_t i = 0; i < lines->nr_sequences; i++) {
		for (size_t at = lines->starts[i]; at + 1 < lines->starts[i + 1]; at++)
			take_row(each, &lines->rows[at], lines->rows[at + 1].addr);
	}
}

void dwarf_each_line(struct dwarf *d, sym_take_line *take, void *arg)
{
	struct each_line each = { .take = take, .arg = arg };
	size_t left = d->line_section.len; /* each row takes a byte, and tables do not overlap */
	struct hash known = { 0 };	   /* units may share a table */

	for (size_t i = 0; i < d->nr_units && left; i++) {
		struct lines lines;
		Dwarf_Attribute attr;
		Dwarf_Word offset;
		uint32_t *seen;

		each.unit = &d->units[i];
		each.scopes = (uint64_t)(i + 1) << 32;
		if (dwarf_formudata(dwarf_attr(&each.unit->die, DW_AT_stmt_list, &attr), &offset))
			continue;
		seen = hash_at(&known, (struct hash_key){ offset, 0 });
		if (*seen)
			continue;
		*seen = 1;
		each.dir = string_of(d, &each.unit->die, DW_AT_comp_dir);
		walk_unit(d, each.unit);
		lines_read_all(&lines, &d->line_section, offset, &d->obj->loaded);
		take_rows(&each, &lines);
		left -= lines.nr < left ? lines.nr : left;
		lines_release(&lines);
	}
	hash_release(&known);
}

/* The file for a number in an attribute of a DIE, or of the DIE with its name, which may be in another unit. */
static const char *declared_in(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word file;
	Dwarf_Die other;
	Dwarf_Files *files;
	size_t nr;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) || dwarf_formudata(&attr, &file))
		return NULL;
	if (attr.cu == unit->die.cu)
		return file <= UINT32_MAX ? file_name(unit, (uint32_t)file) : NULL;
	if (!dwarf_cu_die(attr.cu, &other, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&other, &files, &nr) || file >= nr)
		return NULL;
	return dwarf_filesrc(files, file, NULL, NULL);
}

/* GCC also has the flag on the body of a lambda, which people write. */
static bool is_artificial(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_diename(die);
	bool flag = false;

	return dwarf_attr_integrate(die, DW_AT_artificial, &attr) &&
	       !dwarf_formflag(&attr, &flag) && flag && !(name && !strcmp(name, "operator()"));
}

/* Functions that the compiler generated, such as those of lambdas, have no declaration. */
static void describe_by_code(const struct dwarf *d, struct unit *unit, const struct func *f,
			     struct sym_function *out)
{
	const struct row *row;

	read_lines(d, unit);
	row = lines_find(&unit->lines, f->lo);
	out->line = row ? row->line : 0;
	out->file = out->line ? file_name(unit, row->file) : NULL;
}

static void describe(struct dwarf *d, struct unit *unit, struct func *f, struct sym_function *out)
{
	Dwarf_Die die;
	Dwarf_Addr entry;
	int line;

	name_func(d, unit, f);
	*out = (struct sym_function){
		.name = f->name, .linkage = f->linkage, .start = f->lo, .size = f->hi - f->lo
	};
	if (!dwarf_offdie(d->dw, f->die, &die))
		return;
	if (dwarf_decl_line(&die, &line) == 0 && line > 0)
		out->line = (uint32_t)line;
	out->file = out->line ? declared_in(unit, &die) : NULL;
	out->artificial = is_artificial(&die);
	if (!f->parent) {
		if (!out->file)
			describe_by_code(d, unit, f, out);
		return;
	}
	out->call_file = f->call_line ? file_name(unit, f->call_file) : NULL;
	out->call_line = f->call_line;
	/* Only one part of it contains its entry, which need not be at its first address. */
	if (dwarf_entrypc(&die, &entry) == 0 && is_loaded(d, entry))
		out->start = entry;
}

void dwarf_each_function(struct dwarf *d, sym_take_function *take, void *arg)
{
	for (size_t i = 0; i < d->nr_units; i++) {
		struct unit *unit = &d->units[i];
		const char *dir = string_of(d, &unit->die, DW_AT_comp_dir);

		walk_unit(d, unit);
		for (size_t at = 0; at < unit->nr_funcs; at++) {
			struct func *f = &unit->funcs[at];
			struct sym_function function;

			if (f->lo >= f->hi)
				continue;
			describe(d, unit, f, &function);
			function.dir = dir;
			function.scope = (uint64_t)(i + 1) << 32 | (at + 1);
			if (f->parent)
				function.parent = (uint64_t)(i + 1) << 32 | f->parent;
			take(arg, &function);
		}
	}
}

/* libdw has already decompressed the section in place if needed, but has no accessor for it. */
static Elf_Data *section_data(const struct dwarf *d, size_t index)
{
	Elf_Scn *scn = index ? elf_getscn(d->obj->elf, index) : NULL;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_flags & SHF_COMPRESSED)
		return NULL;
	return elf_rawdata(scn, NULL);
}

static void find_sections(struct dwarf *d)
{
	Elf_Data *info = section_data(d, d->obj->info_section);
	Elf_Data *line = section_data(d, d->obj->line_section);

	if (info && info->d_buf) {
		d->info = info->d_buf;
		d->info_end = d->info + info->d_size;
	}
	if (line && line->d_buf)
		d->line_section =
			(struct line_section){ line->d_buf, line->d_size, d->obj->big_endian };
}

/* ---- DWARF that dwz moved to a file that several binaries share ---- */

/* The path of that file, as libdw searches for it; NULL: none. The caller frees it. */
static char *alt_path(const struct dwarf *d)
{
	const char *name = NULL;
	const void *id = NULL;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(d->dw, &name, &id);
	char hex[2 * BUILD_ID_MAX + 1] = "", *path, *real, *folder;

	if (len < 2 || len > BUILD_ID_MAX)
		return NULL;
	for (ssize_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((const uint8_t *)id)[i]);
	path = xasprintf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	real = realpath(path, NULL);
	free(path);
	if (real)
		return real;
	folder = text_folder(d->obj->path);
	path = xasprintf("%s%s", name[0] == '/' ? "" : folder, name);
	real = realpath(path, NULL);
	free(path);
	free(folder);
	return real;
}

/* libdw finds the file itself, but not in an archive. */
static void find_alt(struct dwarf *d, struct store *store)
{
	const char *archived = store_find(store, STORE_DEBUG, d->obj->path);
	char *path;

	if (archived) {
		d->alt_fd = store_open(store, archived);
		d->alt = d->alt_fd < 0 ? NULL : dwarf_begin(d->alt_fd, DWARF_C_READ);
		if (d->alt)
			dwarf_setalt(d->dw, d->alt);
		return;
	}
	path = store ? alt_path(d) : NULL;
	if (path)
		store_use(store, path, STORE_DEBUG, d->obj->path);
	free(path);
}

/* libdw has mapped it, or does so now. */
static const char *alt_file(struct dwarf *d, size_t *len)
{
	Dwarf *alt = dwarf_getalt(d->dw);

	return alt ? elf_rawfile(dwarf_getelf(alt), len) : NULL;
}

static void watch_alt(struct dwarf *d)
{
	size_t len;
	const char *data = alt_file(d, &len);

	mapped_watch(data, data ? len : 0, d->obj->path);
}

static void release_alt(struct dwarf *d)
{
	if (d->alt)
		dwarf_end(d->alt);
	if (d->alt_fd >= 0)
		close(d->alt_fd);
}

/* libdw silently ignores a section that it could not decompress, and then lacks what is in it. */
static void check_decompressed(struct object *obj)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(obj->elf, &names))
		return;
	while ((scn = elf_nextscn(obj->elf, scn))) {
		GElf_Shdr sh;
		GElf_Chdr ch;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(obj->elf, names, sh.sh_name) : NULL;

		if (!name || strncmp(name, ".debug_", 7) || !(sh.sh_flags & SHF_COMPRESSED))
			continue;
		if (gelf_getchdr(scn, &ch) && ch.ch_size / ZLIB_RATIO <= sh.sh_size)
			mem_check(ch.ch_size);
		log_warn("%s: cannot decompress %s: names may be missing", obj->path, name);
		obj->cut = true;
	}
}

struct dwarf *dwarf_open(struct object *obj, struct store *store)
{
	struct dwarf *d;
	Dwarf *dw;

	/* DWARF of an object file is useless without relocation, which kscope does not do. */
	if (!obj->has_dwarf || obj->type == ET_REL)
		return NULL;
	if (obj->nr_sections > SECTIONS_MAX) {
		log_warn("%s: too many sections; not using its DWARF", obj->path);
		return NULL;
	}
	dw = dwarf_begin_elf(obj->elf, DWARF_C_READ, NULL);
	if (!dw) {
		mem_check(obj->file_len);
		log_warn("%s: cannot read DWARF: %s", obj->path, dwarf_errmsg(-1));
		return NULL;
	}
	dwarf_new_oom_handler(dw, mem_ran_out);
	check_decompressed(obj);
	d = xcalloc(1, sizeof(*d));
	d->dw = dw;
	d->obj = obj;
	d->alt_fd = -1;
	find_alt(d, store);
	watch_alt(d);
	find_sections(d);
	read_units(d);
	return d;
}

void dwarf_close(struct dwarf *d)
{
	size_t len;

	if (!d)
		return;
	for (size_t i = 0; i < d->nr_units; i++) {
		free(d->units[i].funcs);
		lines_release(&d->units[i].lines);
		spans_release(&d->units[i].owners);
	}
	free(d->units);
	free(d->claims);
	spans_release(&d->claimed);
	spans_release(&d->unclaimed);
	mapped_forget(alt_file(d, &len));
	dwarf_end(d->dw);
	release_alt(d);
	free(d);
}

#else

struct dwarf *dwarf_open(struct object *obj, struct store *store)
{
	(void)store;
	(void)obj;
	return NULL;
}

void dwarf_close(struct dwarf *d)
{
	(void)d;
}

size_t dwarf_lookup(struct dwarf *d, uint64_t addr, struct sym_frame *out, size_t max,
		    uint64_t *entry)
{
	(void)d;
	(void)addr;
	(void)out;
	(void)max;
	(void)entry;
	return 0;
}

uint64_t dwarf_same_until(struct dwarf *d, uint64_t addr)
{
	(void)d;
	(void)addr;
	return UINT64_MAX;
}

void dwarf_each_line(struct dwarf *d, sym_take_line *take, void *arg)
{
	(void)d;
	(void)take;
	(void)arg;
}

void dwarf_each_function(struct dwarf *d, sym_take_function *take, void *arg)
{
	(void)d;
	(void)take;
	(void)arg;
}

#endif
