// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The symbols in a Linux kernel's read-only data (CONFIG_KALLSYMS), the only ones a distribution
 * kernel has. Nothing points to the tables, so we recognize them by their contents and by their
 * position relative to each other:
 *
 *	token_table	256 strings, most of them parts of names
 *	token_index	the offset of each: 256 u16, right after the table. Searched for first.
 *	num_syms	the number of symbols, somewhere before the tokens
 *	names		right after num_syms: length, then one token per byte. The first letter is
 *			the type, as in nm.
 *	markers		the offset of every 256th name, right after the names. A match confirms
 *			num_syms and names.
 *	offsets		addresses, in order, in one of these forms:
 *
 *	  Linux     position               contents
 *	  2.6..     before num_syms        full addresses
 *	  4.6..     before num_syms        u32, then a base; x86-64 until 6.14: negative ones count
 *	                                   down from the base, others are per-cpu addresses
 *	  6.4..     after token_index      the same
 *	  7.0..     after token_index      i32, each relative to its own address; no base
 *
 * The base is 0 in an image that its loader relocates: addresses are then relative to its start.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sym/internal.h"

#define TOKENS 256
#define TOKEN_LEN_MAX 512
#define NAME_LEN_MAX 2048
#define SYMBOLS_MIN 32
#define SYMBOLS_MAX (4 << 20)
#define NAMES_MAX ((size_t)256 << 20)  /* bytes of all expanded names */
#define WALK_MAX ((uint64_t)256 << 20) /* steps; a hostile image has many false starts */

struct tables {
	const struct ksyms_in *in;
	size_t tokens, token_index; /* offsets in the file */
	size_t num_syms, names, names_end;
	size_t nr;
	uint64_t steps;
};

/* ---- bytes ---- */

static uint16_t get16(const struct ksyms_in *in, size_t at)
{
	const uint8_t *p = in->data + at;

	return in->big_endian ? (uint16_t)(p[0] << 8 | p[1]) : (uint16_t)(p[1] << 8 | p[0]);
}

static uint32_t get32(const struct ksyms_in *in, size_t at)
{
	uint32_t one = get16(in, at), two = get16(in, at + 2);

	return in->big_endian ? one << 16 | two : two << 16 | one;
}

static uint64_t get64(const struct ksyms_in *in, size_t at)
{
	uint64_t one = get32(in, at), two = get32(in, at + 4);

	return in->big_endian ? one << 32 | two : two << 32 | one;
}

static uint64_t get_pointer(const struct ksyms_in *in, size_t at)
{
	return in->is_64bit ? get64(in, at) : get32(in, at);
}

static size_t pointer_size(const struct ksyms_in *in)
{
	return in->is_64bit ? 8 : 4;
}

static bool fits(const struct ksyms_in *in, size_t at, size_t nr, size_t size)
{
	return at <= in->len && nr <= (in->len - at) / size;
}

static size_t align_up(size_t at, size_t to)
{
	return (at + to - 1) / to * to;
}

static uint64_t place_of(const struct ksyms_in *in, size_t at)
{
	for (size_t i = 0; i < in->nr_loads; i++) {
		const struct sym_segment *load = &in->loads[i];

		if (at >= load->offset && at - load->offset < load->filesz)
			return load->vaddr + (at - load->offset);
	}
	return at;
}

/* ---- tokens ---- */

static bool is_index(const struct ksyms_in *in, size_t at)
{
	uint16_t before = get16(in, at);

	if (before)
		return false;
	for (size_t i = 1; i < TOKENS; i++) {
		uint16_t next = get16(in, at + 2 * i);

		if (next <= before || next - before > TOKEN_LEN_MAX)
			return false;
		before = next;
	}
	return true;
}

/* Every token is as long as the index says. */
static bool is_token_table(const struct ksyms_in *in, size_t tokens, size_t index)
{
	const uint8_t *table = in->data + tokens;

	for (size_t i = 0; i < TOKENS; i++) {
		size_t start = get16(in, index + 2 * i), room = index - tokens - start;
		size_t want = i + 1 < TOKENS ? get16(in, index + 2 * i + 2) - start : 0;
		size_t len = strnlen((const char *)table + start, room);

		if (len == room || (want && len + 1 != want))
			return false;
		/* After the last one there is only alignment for the index. */
		if (!want && align_up(tokens + start + len + 1, 8) < index)
			return false;
	}
	return true;
}

static bool find_token_table(struct tables *t, size_t index)
{
	size_t last = get16(t->in, index + 2 * (TOKENS - 1));

	for (size_t gap = 1; gap <= TOKEN_LEN_MAX + 8 && last + gap <= index; gap++) {
		size_t tokens = index - last - gap;

		if (tokens % 4 || !is_token_table(t->in, tokens, index))
			continue;
		t->tokens = tokens;
		t->token_index = index;
		return true;
	}
	return false;
}

static const char *token(const struct tables *t, uint8_t code)
{
	return (const char *)t->in->data + t->tokens +
	       get16(t->in, t->token_index + 2 * (size_t)code);
}

/* ---- names ---- */

/* Reads the length of a name and moves *at to its first byte; returns 0 if it cannot be one. */
static size_t name_length(const struct tables *t, size_t *at, size_t end)
{
	const uint8_t *data = t->in->data;
	size_t len;

	if (*at >= end)
		return 0;
	len = data[(*at)++];
	if (len & 0x80) { /* since 6.1; names were shorter before that */
		if (*at >= end)
			return 0;
		len = (len & 0x7f) | (size_t)data[(*at)++] << 7;
	}
	return len <= end - *at ? len : 0;
}

static bool is_type(char c)
{
	return c && strchr("aAbBcCdDgGiInNpPrRsStTuUvVwW?-", c);
}

/* Returns where the nr names at `at` end; 0: these are not names. */
static size_t walk_names(struct tables *t, size_t at, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		size_t len = name_length(t, &at, t->tokens);

		if (!len || ++t->steps > WALK_MAX || !is_type(*token(t, t->in->data[at])))
			return 0;
		at += len;
	}
	return at;
}

/* Checks markers of `size` bytes against the offset of every 256th name. */
static bool markers_agree(const struct tables *t, size_t names, size_t nr, size_t markers,
			  size_t size)
{
	size_t at = names;

	if (!fits(t->in, markers, (nr + 255) / 256, size))
		return false;
	for (size_t i = 0; i < nr; i++) {
		size_t marker = markers + i / 256 * size;
		uint64_t want = size == 8 ? get64(t->in, marker) : get32(t->in, marker);
		size_t len;

		if (i % 256 == 0 && want != at - names)
			return false;
		len = name_length(t, &at, t->tokens);
		at += len;
	}
	return true;
}

static bool try_names(struct tables *t, size_t num_syms, size_t names, size_t nr)
{
	size_t end = walk_names(t, names, nr);

	if (!end)
		return false;
	for (size_t size = 4; size <= 8; size += 4) {
		if (!markers_agree(t, names, nr, align_up(end, 4), size) &&
		    !markers_agree(t, names, nr, align_up(end, 8), size))
			continue;
		t->num_syms = num_syms;
		t->names = names;
		t->names_end = end;
		t->nr = nr;
		return true;
	}
	return false;
}

static bool find_names(struct tables *t)
{
	for (size_t at = t->tokens; at >= 4 && t->steps <= WALK_MAX;) {
		uint32_t nr;

		at -= 4;
		t->steps++;
		nr = get32(t->in, at);
		if (nr < SYMBOLS_MIN || nr > SYMBOLS_MAX || nr > (t->tokens - at) / 2)
			continue;
		if (try_names(t, at, at + 4, nr) || try_names(t, at, at + 8, nr))
			return true;
	}
	return false;
}

/* ---- addresses ---- */

enum form { FORM_OFFSET, FORM_PERCPU, FORM_WHOLE, FORM_PLACE, FORM_32BIT };

struct addresses {
	enum form form;
	size_t at;
	uint64_t base;
};

static uint64_t address(const struct tables *t, const struct addresses *from, size_t i)
{
	size_t at = from->at + 4 * i;
	int32_t value;
	uint64_t addr;

	if (from->form == FORM_WHOLE)
		return get_pointer(t->in, from->at + i * pointer_size(t->in));
	value = (int32_t)get32(t->in, at);
	switch (from->form) {
	case FORM_OFFSET: addr = from->base + (uint32_t)value; break;
	case FORM_PERCPU:
		addr = value >= 0 ? (uint64_t)value : from->base - 1 - (uint64_t)(int64_t)value;
		break;
	case FORM_PLACE: addr = place_of(t->in, at) + (uint64_t)(int64_t)value; break;
	default: addr = (uint32_t)value; break;
	}
	return t->in->is_64bit ? addr : addr & UINT32_MAX;
}

/* Addresses ascend. Tolerates rare exceptions: a wrong guess has hundreds. */
static bool in_order(const struct tables *t, const struct addresses *from)
{
	uint64_t first = address(t, from, 0), last = first;
	size_t wrong = 0;

	for (size_t i = 1; i < t->nr; i++) {
		uint64_t next = address(t, from, i);

		wrong += next < last;
		last = next;
	}
	return wrong * 1000 <= t->nr && last > first && last - first >= t->nr;
}

/* A kernel is linked high in the address space; the base is 0 before relocation. */
static bool is_base(const struct ksyms_in *in, uint64_t base)
{
	return !base || (in->is_64bit ? base >> 63 : base >> 28);
}

static bool try_form(const struct tables *t, struct addresses *out, enum form form, size_t at,
		     size_t base)
{
	size_t size = form == FORM_WHOLE ? pointer_size(t->in) : 4;

	*out = (struct addresses){ .form = form, .at = at };
	if (!fits(t->in, at, t->nr, size))
		return false;
	if (form == FORM_OFFSET || form == FORM_PERCPU) {
		if (!fits(t->in, base, 1, pointer_size(t->in)))
			return false;
		out->base = get_pointer(t->in, base);
		if (!is_base(t->in, out->base))
			return false;
	}
	return in_order(t, out);
}

/* The order matters: offsets from a base also ascend if taken as relative to their own address. */
static bool find_addresses(const struct tables *t, struct addresses *out)
{
	size_t pointer = pointer_size(t->in), after = t->token_index + 2 * TOKENS;
	size_t end = t->num_syms / pointer * pointer; /* of the table before num_syms */
	size_t offsets = align_up(4 * t->nr, pointer), whole = t->nr * pointer;

	if (try_form(t, out, FORM_OFFSET, after, after + offsets) ||
	    try_form(t, out, FORM_PERCPU, after, after + offsets))
		return true;
	if (end >= offsets + pointer &&
	    (try_form(t, out, FORM_OFFSET, end - pointer - offsets, end - pointer) ||
	     try_form(t, out, FORM_PERCPU, end - pointer - offsets, end - pointer)))
		return true;
	if (try_form(t, out, FORM_WHOLE, after, 0) ||
	    (end >= whole && try_form(t, out, FORM_WHOLE, end - whole, 0)))
		return true;
	return (!t->in->is_64bit && try_form(t, out, FORM_32BIT, after, 0)) ||
	       try_form(t, out, FORM_PLACE, after, 0);
}

/* The start of the image: the base of an ELF that is not relocated yet. */
static uint64_t lowest_load(const struct ksyms_in *in)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < in->nr_loads; i++)
		lowest = in->loads[i].vaddr < lowest ? in->loads[i].vaddr : lowest;
	return lowest;
}

/* ---- all together ---- */

/* Appends the name without its type and returns the type; 0: the name is too long. */
static char expand(const struct tables *t, size_t at, size_t len, char *to, size_t *used)
{
	size_t start = *used;
	char type = 0;

	for (size_t i = 0; i < len; i++) {
		const char *piece = token(t, t->in->data[at + i]);
		size_t n;

		if (!type && *piece)
			type = *piece++;
		n = strlen(piece);
		if (*used - start + n >= NAME_LEN_MAX)
			return 0;
		memcpy(to + *used, piece, n);
		*used += n;
	}
	to[(*used)++] = '\0';
	return type;
}

static int read_all(const struct tables *t, const struct addresses *from, struct ksyms *ksyms,
		    const char *path, struct err *err)
{
	size_t at = t->names, used = 0, room = 0;
	size_t *starts = xmalloc(t->nr * sizeof(*starts));

	ksyms->at = xmalloc(t->nr * sizeof(*ksyms->at));
	for (size_t i = 0; i < t->nr; i++) {
		size_t len = name_length(t, &at, t->tokens);
		char type;

		GROW(ksyms->names, used + NAME_LEN_MAX + 1, room);
		starts[i] = used;
		type = expand(t, at, len, ksyms->names, &used);
		if (!type || used > NAMES_MAX) {
			free(starts);
			return err_at(err, ERR_INPUT, path, at,
				      "a name in the kernel's symbol table is too long");
		}
		ksyms->at[i] = (struct ksym){ .addr = address(t, from, i), .type = type };
		at += len;
	}
	for (size_t i = 0; i < t->nr; i++)
		ksyms->at[i].name = ksyms->names + starts[i];
	free(starts);
	ksyms->nr = t->nr;
	return 0;
}

static bool find_tables(struct tables *t, const struct ksyms_in *in)
{
	*t = (struct tables){ .in = in };
	for (size_t at = 0; fits(in, at, TOKENS, 2); at += 4) {
		if (is_index(in, at) && find_token_table(t, at) && find_names(t))
			return true;
	}
	return false;
}

int ksyms_read(struct ksyms *ksyms, const struct ksyms_in *in, const char *path, struct err *err)
{
	struct addresses from;
	struct tables t;

	memset(ksyms, 0, sizeof(*ksyms));
	if (!find_tables(&t, in))
		return err_set(err, ERR_INPUT,
			       t.tokens ? "%s: the symbol table in this kernel is damaged"
					: "%s: no symbol table in this kernel "
					  "(built without CONFIG_KALLSYMS?)",
			       path);
	if (!find_addresses(&t, &from))
		return err_at(err, ERR_INPUT, path, t.names,
			      "found the names of %zu symbols in this kernel, but no addresses "
			      "in a known format",
			      t.nr);
	ksyms->unplaced = !in->nr_loads &&
			  (from.form == FORM_PLACE || (from.form == FORM_OFFSET && !from.base));
	if (from.form == FORM_OFFSET && !from.base && in->nr_loads)
		from.base = lowest_load(in);
	return read_all(&t, &from, ksyms, path, err);
}

void ksyms_release(struct ksyms *ksyms)
{
	free(ksyms->at);
	free(ksyms->names);
	memset(ksyms, 0, sizeof(*ksyms));
}

const char *kernel_release(const uint8_t *data, size_t len, char *scratch, size_t room)
{
	static const char words[] = "Linux version ";
	const uint8_t *end = data + len, *at = memmem(data, len, words, sizeof(words) - 1);
	size_t used = 0;

	if (at) {
		for (at += sizeof(words) - 1; at<end && * at> ' ' && *at <= '~'; at++) {
			if (used + 1 < room)
				scratch[used++] = (char)*at;
		}
	}
	scratch[used] = '\0';
	return scratch;
}
