// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The line table of one unit: .debug_line of DWARF 2 to 5. Not read with libdw, which sorts the
 * rows of all sequences into one list: functions that the linker dropped stay at address 0 and then
 * mix with live code at low addresses. Here a sequence stays together, and dead ones are dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sym/internal.h"

/* ---- bytes ---- */

struct reader {
	const uint8_t *at, *end;
	bool big_endian;
	bool bad; /* read past the end: all further reads return 0 */
};

static uint64_t get_uint(struct reader *r, size_t len)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < len) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	for (size_t i = 0; i < len && i < 8; i++)
		value |= (uint64_t)r->at[r->big_endian ? len - 1 - i : i] << 8 * i;
	r->at += len;
	return value;
}

static uint64_t get_leb(struct reader *r, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)get_uint(r, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !r->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t get_uleb(struct reader *r)
{
	return get_leb(r, false);
}

/* ---- header ---- */

struct program {
	struct reader code;
	uint8_t min_length, opcode_base, line_range;
	bool stmt; /* the first rows begin statements */
	int8_t line_base;
	uint8_t operands[256]; /* of the standard opcodes */
};

/* Narrows r to `len` bytes from here. */
static bool narrow(struct reader *r, uint64_t len)
{
	if (r->bad || (uint64_t)(r->end - r->at) < len)
		return false;
	r->end = r->at + len;
	return true;
}

static bool read_opcodes(struct program *p, struct reader *r, unsigned int version)
{
	p->min_length = (uint8_t)get_uint(r, 1);
	if (version >= 4)
		get_uint(r, 1); /* operations per instruction: more than one only on VLIW */
	p->stmt = get_uint(r, 1) != 0;
	p->line_base = (int8_t)get_uint(r, 1);
	p->line_range = (uint8_t)get_uint(r, 1);
	p->opcode_base = (uint8_t)get_uint(r, 1);
	for (unsigned int i = 1; i < p->opcode_base; i++)
		p->operands[i] = (uint8_t)get_uint(r, 1);
	return !r->bad && p->line_range && p->opcode_base;
}

static bool read_header(struct program *p, struct reader r)
{
	size_t offset_size = 4;
	uint64_t length = get_uint(&r, 4), header;
	unsigned int version;

	if (length == UINT32_MAX) {
		offset_size = 8;
		length = get_uint(&r, 8);
	}
	if (!narrow(&r, length))
		return false;
	version = (unsigned int)get_uint(&r, 2);
	if (version < 2 || version > 5)
		return false;
	if (version == 5)
		get_uint(&r, 2); /* sizes of an address and of a segment selector */
	header = get_uint(&r, offset_size);
	if (r.bad || (uint64_t)(r.end - r.at) < header)
		return false;
	p->code = r;
	p->code.at += header;
	return read_opcodes(p, &r, version);
}

/* ---- program ---- */

struct machine {
	uint64_t addr;
	uint32_t line, file;
	bool stmt;
};

struct run {
	struct program p;
	struct machine now;
	struct lines *lines;
	const struct spans *loaded;
	struct interval *found;
	size_t first, cap_rows, cap_starts, cap_found;
	bool all; /* see lines_read_all() */
};

static void start_sequence(struct run *run)
{
	run->now = (struct machine){ .line = 1, .file = 1, .stmt = run->p.stmt };
	run->first = run->lines->nr;
}

static void add_row(struct run *run)
{
	struct lines *l = run->lines;
	struct row row = { .addr = run->now.addr,
			   .line = run->now.line,
			   .file = run->now.file & ROW_FILE_MAX,
			   .stmt = run->now.stmt };
	struct row *last = l->nr > run->first ? &l->rows[l->nr - 1] : NULL;

	/* Ignore rows that go back. */
	if (last && last->addr > row.addr)
		return;
	/* Of several rows for one address the last wins. */
	if (last && last->addr == row.addr && !run->all) {
		*last = row;
		return;
	}
	GROW(l->rows, l->nr + 1, run->cap_rows);
	l->rows[l->nr++] = row;
}

static void end_sequence(struct run *run)
{
	struct lines *l = run->lines;
	uint64_t end = run->now.addr;

	if (l->nr == run->first || l->rows[run->first].addr >= end ||
	    !spans_find(run->loaded, l->rows[run->first].addr)) {
		l->nr = run->first;
	} else {
		if (run->all) {
			GROW(l->rows, l->nr + 1, run->cap_rows);
			l->rows[l->nr++] = (struct row){ .addr = end };
		}
		GROW(l->starts, l->nr_sequences + 2, run->cap_starts);
		GROW(run->found, l->nr_sequences + 1, run->cap_found);
		l->starts[l->nr_sequences] = run->first;
		l->starts[l->nr_sequences + 1] = l->nr;
		/* If live sequences overlap, the first one wins. */
		run->found[l->nr_sequences] = (struct interval){
			.lo = l->rows[run->first].addr,
			.hi = end,
			.rank = UINT64_MAX - l->nr_sequences,
			.id = (uint32_t)l->nr_sequences + 1,
		};
		l->nr_sequences++;
	}
	start_sequence(run);
}

enum standard {
	COPY = 1,
	ADVANCE_PC,
	ADVANCE_LINE,
	SET_FILE,
	SET_COLUMN,
	NEGATE_STMT,
	SET_BASIC_BLOCK,
	CONST_ADD_PC,
	FIXED_ADVANCE_PC,
};

enum extended { END_SEQUENCE = 1, SET_ADDRESS = 2 };

static void run_special(struct run *run, uint8_t opcode)
{
	unsigned int step = opcode - run->p.opcode_base;

	run->now.addr += (uint64_t)(step / run->p.line_range) * run->p.min_length;
	run->now.line += (uint32_t)(run->p.line_base + (int)(step % run->p.line_range));
	add_row(run);
}

static void run_extended(struct run *run)
{
	uint64_t len = get_uleb(&run->p.code);
	struct reader r = run->p.code;

	if (!len || !narrow(&r, len)) {
		run->p.code.bad = true;
		return;
	}
	run->p.code.at = r.end;
	switch (get_uint(&r, 1)) {
	case END_SEQUENCE: end_sequence(run); break;
	case SET_ADDRESS: run->now.addr = get_uint(&r, len <= 9 ? len - 1 : 8); break;
	}
}

static void run_standard(struct run *run, uint8_t opcode)
{
	struct reader *code = &run->p.code;

	switch (opcode) {
	case COPY: add_row(run); break;
	case ADVANCE_PC: run->now.addr += get_uleb(code) * run->p.min_length; break;
	case ADVANCE_LINE: run->now.line += (uint32_t)get_leb(code, true); break;
	case SET_FILE: run->now.file = (uint32_t)get_uleb(code); break;
	case NEGATE_STMT: run->now.stmt = !run->now.stmt; break;
	case CONST_ADD_PC:
		run->now.addr += (uint64_t)((255 - run->p.opcode_base) / run->p.line_range) *
				 run->p.min_length;
		break;
	case FIXED_ADVANCE_PC: run->now.addr += get_uint(code, 2); break;
	default:
		for (unsigned int i = 0; i < run->p.operands[opcode] && !code->bad; i++)
			get_uleb(code);
	}
}

static void read_table(struct lines *lines, const struct line_section *from, uint64_t offset,
		       const struct spans *loaded, bool all)
{
	struct run run = { .lines = lines, .loaded = loaded, .all = all };
	struct reader r = { .big_endian = from->big_endian };

	memset(lines, 0, sizeof(*lines));
	if (offset >= from->len)
		return;
	r.at = from->data + offset;
	r.end = from->data + from->len;
	if (!read_header(&run.p, r))
		return;
	start_sequence(&run);
	while (run.p.code.at < run.p.code.end && !run.p.code.bad) {
		uint8_t opcode = (uint8_t)get_uint(&run.p.code, 1);

		if (opcode >= run.p.opcode_base)
			run_special(&run, opcode);
		else if (opcode)
			run_standard(&run, opcode);
		else
			run_extended(&run);
	}
	lines->nr = run.first; /* drop the rows of an unterminated sequence */
	spans_build(&lines->sequences, run.found, lines->nr_sequences);
	free(run.found);
	lines->rows = xrealloc(lines->rows, lines->nr, sizeof(*lines->rows));
}

void lines_read(struct lines *lines, const struct line_section *from, uint64_t offset,
		const struct spans *loaded)
{
	read_table(lines, from, offset, loaded, false);
}

void lines_read_all(struct lines *lines, const struct line_section *from, uint64_t offset,
		    const struct spans *loaded)
{
	read_table(lines, from, offset, loaded, true);
}

const struct row *lines_find(const struct lines *lines, uint64_t addr)
{
	uint32_t id = spans_find(&lines->sequences, addr);
	size_t lo, hi;

	if (!id)
		return NULL;
	/* The first row is where the sequence begins, so there is one at or before addr. */
	for (lo = lines->starts[id - 1], hi = lines->starts[id]; hi - lo > 1;) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->rows[mid].addr <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return &lines->rows[lo];
}

void lines_release(struct lines *lines)
{
	free(lines->rows);
	free(lines->starts);
	spans_release(&lines->sequences);
	memset(lines, 0, sizeof(*lines));
}
