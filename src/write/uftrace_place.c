// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where functions are, for uftrace. Its records have 48 bits of an address, and a map says which binary that
 * is in. Slices have no run-time addresses, but they belong to binaries; so all processes share one address
 * space, in which each binary has a window. A window is at the binary's link address, without the upper 16
 * bits, if that is free: addresses of a kernel are those in its disassembly. Otherwise it is moved.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/uftrace_file.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/world.h"
#include "write/uftrace.h"

#define PAGE ((uint64_t)4096)
#define MOVED ((uint64_t)1 << 44)   /* windows are moved to here and above */
#define UNKNOWN ((uint64_t)1 << 32) /* the size of a window, if its binary is not at hand */
#define LARGEST ((uint64_t)1 << 40) /* a larger one is an error in the binary */
#define STEP 16			    /* between addresses that are made up */

void uftrace_add_word(struct buf *buf, const char *s)
{
	size_t start = buf->len;

	text_add_plain(buf, s);
	for (size_t i = start; i < buf->len; i++) {
		if (strchr(" /\"\\", buf->data[i]))
			buf->data[i] = '_';
	}
	if (buf->len == start)
		buf_adds(buf, "?");
}

/* Windows */

static bool is_free(const struct places *p, uint64_t start, uint64_t size, uint64_t *next)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct place_window *w = &p->windows[i];

		if (start < w->start + w->size && w->start < start + size) {
			*next = w->start + w->size;
			return false;
		}
	}
	return true;
}

/* False: the address space is full. */
static bool choose_start(struct places *p, struct place_window *w)
{
	uint64_t own = w->low & UFTRACE_ADDRESS_MASK, end = UFTRACE_ADDRESS_MASK + 1, next;

	if (own >= PAGE && own + w->size <= end && is_free(p, own, w->size, &next)) {
		w->start = own;
		return true;
	}
	if (p->free < MOVED)
		p->free = MOVED;
	while (p->free + w->size <= end && !is_free(p, p->free, w->size, &next))
		p->free = next;
	if (p->free + w->size > end)
		return false;
	w->start = p->free;
	p->free += w->size;
	return true;
}

/* A kernel's image has no name of its own, but its file has. */
static const char *binary_name(const struct world *world, uint32_t frame)
{
	const struct frame *at = &world->frames.all[frame];
	uint32_t binary = frame_binary(world, frame);
	const char *name = binary ? str_text(world->strings, binary) : "unknown";

	if (name[0] == '[' && !(at->flags & FRAME_NAMED) && world->images.all[at->image].file)
		return text_last_part(world->images.all[at->image].file);
	return name;
}

/* The name of its symbol file: that of the binary, or with a number, if that is taken. */
static char *window_name(struct places *p, uint32_t frame, const char *suffix)
{
	struct strtab *strings = p->world->strings;
	struct buf name = { 0 };
	uint32_t *taken;
	size_t len;

	uftrace_add_word(&name, binary_name(p->world, frame));
	/* uftrace skips maps that begin with a bracket. */
	if (name.data[0] == '[')
		memmove(name.data, name.data + 1, name.len--);
	if (name.len && name.data[name.len - 1] == ']')
		name.len--;
	buf_adds(&name, suffix);
	len = name.len;
	for (unsigned nr = 2;; nr++) {
		taken = hash_at(&p->by_name,
				(struct hash_key){ str_intern(strings, name.data, name.len), 0 });
		if (!*taken)
			break;
		name.len = len;
		buf_addf(&name, ".%u", nr);
	}
	*taken = 1;
	return name.data;
}

static struct place_window *add_window(struct places *p, struct place_window w, uint32_t frame,
				       uint64_t vaddr)
{
	uint64_t low, len;
	bool known =
		!w.named && image_extent(&p->world->images, w.image, &low, &len) && len <= LARGEST;
	bool inside = known && vaddr >= low && vaddr - low < len;

	if (inside) {
		w.low = low;
		w.size = (len + PAGE - 1) & ~(PAGE - 1);
	} else {
		w.low = vaddr & ~(UNKNOWN - 1);
		w.size = UNKNOWN;
	}
	if (!choose_start(p, &w))
		return NULL;
	w.name = window_name(p, frame, known && !inside ? ".outside" : "");
	GROW(p->windows, p->nr + 1, p->cap);
	p->windows[p->nr] = w;
	return &p->windows[p->nr++];
}

/* A kernel may be mapped twice, as two images. */
static bool is_same_binary(const struct place_window *a, const struct place_window *b)
{
	return a->named == b->named &&
	       (a->symfile ? a->symfile == b->symfile : a->image == b->image);
}

static struct place_window *window_at(struct places *p, struct place_window w, uint32_t frame,
				      uint64_t vaddr)
{
	for (size_t i = 0; i < p->nr; i++) {
		struct place_window *at = &p->windows[i];

		if (is_same_binary(at, &w) && vaddr >= at->low && vaddr - at->low < at->size)
			return at;
	}
	return add_window(p, w, frame, vaddr);
}

/* Functions */

/* The function's address in its binary, made up if it has none. */
static uint64_t own_address(struct places *p, const struct frame *frame,
			    const struct symbol *symbol)
{
	if (frame->flags & FRAME_NAMED)
		return frame->addr * STEP;
	if (frame->flags & FRAME_UNMAPPED)
		return frame->addr;
	return symbol->start ? symbol->start
			     : image_vaddr(&p->world->images, frame->image, frame->addr);
}

static uint64_t add_function(struct places *p, uint32_t handle)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(p->world, handle, &nr);
	const struct frame *frame = &p->world->frames.all[handle];
	uint64_t vaddr = own_address(p, frame, &symbols[nr - 1]);
	struct place_window key = { .image = frame->image,
				    .named = frame->flags & (FRAME_NAMED | FRAME_UNMAPPED) };
	struct place_window *w;
	uint32_t *known;

	key.symfile = key.named ? NULL : image_symfile(&p->world->images, frame->image);
	w = window_at(p, key, handle, vaddr);

	if (!w)
		return UINT64_MAX;
	vaddr += w->start - w->low;
	known = hash_at(&p->by_address, (struct hash_key){ vaddr, 0 });
	if (!*known) {
		*known = 1;
		GROW(w->symbols, w->nr + 1, w->cap);
		w->symbols[w->nr++] =
			(struct place_symbol){ vaddr - w->start, symbols[nr - 1].name };
	}
	return vaddr;
}

uint64_t place_frame(struct places *p, uint32_t frame)
{
	uint32_t *at = hash_at(&p->by_frame, (struct hash_key){ frame, 0 });

	if (!*at) {
		GROW(p->addresses, p->nr_addresses + 2, p->cap_addresses);
		*at = (uint32_t)++p->nr_addresses;
		p->addresses[p->nr_addresses] = add_function(p, frame);
	}
	return p->addresses[*at];
}

/* Files */

static int by_offset(const void *a, const void *b)
{
	const struct place_symbol *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* uftrace takes the distance to the next symbol for the size. Only functions that ran are listed. */
static void add_symbols(const struct places *p, struct place_window *w, struct buf *buf)
{
	qsort(w->symbols, w->nr, sizeof(*w->symbols), by_offset);
	buf_addf(buf, "# symbols: %zu\n# path name: %s\n", w->nr + 1, w->name);
	for (size_t i = 0; i < w->nr; i++) {
		buf_addf(buf, "%016" PRIx64 " T ", w->symbols[i].offset);
		text_add_plain(buf, str_text(p->world->strings, w->symbols[i].name));
		buf_addc(buf, '\n');
	}
	buf_addf(buf, "%016" PRIx64 " ? __sym_end\n", w->symbols[w->nr - 1].offset + STEP);
}

void places_write(struct places *p, struct folder *folder, const char *map)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < p->nr; i++) {
		char *name = xasprintf("%s.sym", p->windows[i].name);

		buf_clear(&text);
		add_symbols(p, &p->windows[i], &text);
		folder_append(folder, name, text.data, text.len);
		free(name);
	}
	buf_clear(&text);
	for (size_t i = 0; i < p->nr; i++) {
		const struct place_window *w = &p->windows[i];

		buf_addf(&text, "%012" PRIx64 "-%012" PRIx64 " r-xp 00000000 00:00 0 %s\n",
			 w->start, w->start + w->size, w->name);
	}
	/* uftrace takes what is above the stack for Linux's own kernel data: nothing is above this. */
	buf_addf(&text, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 [stack]\n",
		 UFTRACE_ADDRESS_MASK, UFTRACE_ADDRESS_MASK);
	folder_append(folder, map, text.data, text.len);
	buf_release(&text);
}

void places_release(struct places *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		free(p->windows[i].name);
		free(p->windows[i].symbols);
	}
	free(p->windows);
	free(p->addresses);
	hash_release(&p->by_frame);
	hash_release(&p->by_address);
	hash_release(&p->by_name);
}
