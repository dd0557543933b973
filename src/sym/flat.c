// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A raw memory image of a kernel, without ELF headers: Image of arm64 and RISC-V, and the contents
 * of a zImage. The link address comes from the kernel's own symbol table or, if the loader has yet
 * to fill that in, from pointers to its functions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/le.h"
#include "base/mapped.h"
#include "base/slide.h"
#include "sym/internal.h"

#define FLAT_MAX ((off_t)1 << 30)
#define PAGE 4096
#define VOTES_MAX 20000
#define LAST_GB ((uint64_t)-1 << 30) /* small negative numbers, not pointers */
#define STEP_64K 65536
#define BUILD_ID_LEN 20

enum { MACHINE_ARM = 40, MACHINE_AARCH64 = 183, MACHINE_RISCV = 243 };

uint16_t flat_machine(const uint8_t *head, size_t len)
{
	if (len < 64)
		return 0;
	if (!memcmp(head + 56, "ARM\x64", 4))
		return MACHINE_AARCH64;
	if (!memcmp(head + 56, "RSC\x05", 4) || !memcmp(head + 48, "RISCV\0\0\0", 8))
		return MACHINE_RISCV;
	return 0;
}

static const struct ksym *find(const struct ksyms *ksyms, const char *name)
{
	for (size_t i = 0; i < ksyms->nr; i++) {
		if (!strcmp(ksyms->at[i].name, name))
			return &ksyms->at[i];
	}
	return NULL;
}

static uint64_t *functions(const struct ksyms *ksyms, size_t *nr)
{
	uint64_t *starts = xmalloc(ksyms->nr * sizeof(*starts));

	*nr = 0;
	for (size_t i = 0; i < ksyms->nr; i++) {
		if (ksyms->at[i].type == 't' || ksyms->at[i].type == 'T')
			starts[(*nr)++] = ksyms->at[i].addr;
	}
	*nr = sort_unique(starts, *nr);
	return starts;
}

/* Sorts, and keeps as many as a vote needs. */
static size_t thin_out(uint64_t *values, size_t nr)
{
	size_t stride, kept = 0;

	nr = sort_unique(values, nr);
	stride = nr / VOTES_MAX + 1;
	for (size_t i = 0; i < nr; i += stride)
		values[kept++] = values[i];
	return kept;
}

/* Finds the distance between likely pointers anywhere in the image and the known functions. */
static bool find_place(const struct flat *flat, const struct ksyms *ksyms, uint64_t *place)
{
	uint64_t *seen = xmalloc((flat->len / 8 + 1) * sizeof(*seen));
	size_t nr = 0, nr_starts;
	uint64_t *starts = functions(ksyms, &nr_starts);
	struct slide slide;
	bool good;

	for (size_t at = 0; at + 8 <= flat->len; at += 8) {
		seen[nr] = le64_at(flat->data + at);
		nr += seen[nr] >> 48 == 0xffff && seen[nr] < LAST_GB;
	}
	nr = thin_out(seen, nr);
	good = slide_find(starts, nr_starts, seen, nr, STEP_64K, &slide);
	*place = slide.by;
	free(starts);
	free(seen);
	return good;
}

static void move(struct ksyms *ksyms, uint64_t by)
{
	for (size_t i = 0; i < ksyms->nr; i++)
		ksyms->at[i].addr += by;
}

static void add_segment(struct flat *flat, const struct ksyms *ksyms, const char *from,
			const char *to)
{
	const struct ksym *start = find(ksyms, from), *end = find(ksyms, to);

	if (!start || !end || start->addr < flat->vaddr || end->addr <= start->addr ||
	    end->addr - flat->vaddr > flat->len)
		return;
	flat->segments[flat->nr_segments++] = (struct sym_segment){
		.vaddr = start->addr,
		.offset = start->addr - flat->vaddr,
		.filesz = end->addr - start->addr,
		.memsz = end->addr - start->addr,
	};
}

/* The offset in the image that a call jumps to; false: not a call. */
static bool call_target(const struct flat *flat, size_t at, uint64_t *target)
{
	uint32_t word = le32_at(flat->data + at);
	int32_t words;

	if (flat->machine == MACHINE_AARCH64 && word >> 26 == 0x25) /* bl */
		words = (int32_t)(word << 6) >> 6;
	else if (flat->machine == MACHINE_ARM && word >> 24 == 0xeb) /* bl; the pc is two ahead */
		words = ((int32_t)(word << 8) >> 8) + 2;
	else
		return false;
	*target = at + 4 * (uint64_t)(int64_t)words;
	return *target < flat->len;
}

/* If only functions have symbols, the start has none: derive it from calls. */
static bool find_by_calls(const struct flat *flat, const struct ksyms *ksyms, uint64_t *vaddr)
{
	uint64_t *seen = xmalloc((flat->len / 4 + 1) * sizeof(*seen));
	size_t nr = 0, nr_starts;
	uint64_t *starts = functions(ksyms, &nr_starts);
	struct slide slide;
	bool good;

	for (size_t at = 0; at + 4 <= flat->len; at += 4)
		nr += call_target(flat, at, &seen[nr]);
	nr = thin_out(seen, nr);
	good = slide_find(starts, nr_starts, seen, nr, PAGE, &slide);
	*vaddr = -slide.by;
	free(starts);
	free(seen);
	return good;
}

static bool find_first(const struct flat *flat, const struct ksyms *ksyms, uint64_t *vaddr)
{
	const struct ksym *found = NULL;

	/* On RISC-V the first code comes before _text. */
	if (flat->machine == MACHINE_RISCV)
		found = find(ksyms, "_start");
	if (!found)
		found = find(ksyms, "_text");
	if (found)
		*vaddr = found->addr;
	return found || find_by_calls(flat, ksyms, vaddr);
}

/*
 * The image also contains small ELF files for programs to map (the vDSO), with their own build IDs:
 * skip those, whose ELF header starts the page. Any other build ID must be the only one.
 */
static void find_build_id(struct flat *flat)
{
	static const uint8_t note[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU";
	const uint8_t *at = flat->data, *end = at + flat->len, *found = NULL;

	while ((at = memmem(at, (size_t)(end - at), note, sizeof(note)))) {
		const uint8_t *page = at - (size_t)(at - flat->data) % PAGE;

		at += sizeof(note);
		if (end - at < BUILD_ID_LEN || !memcmp(page, "\177ELF", 4))
			continue;
		if (found)
			return;
		found = at;
	}
	if (!found)
		return;
	memcpy(flat->build_id, found, BUILD_ID_LEN);
	flat->build_id_len = BUILD_ID_LEN;
}

static int place(struct flat *flat, struct ksyms *ksyms, const char *path, struct err *err)
{
	if (ksyms->unplaced && flat->is_64bit) {
		if (!find_place(flat, ksyms, &flat->vaddr))
			return err_set(err, ERR_INPUT,
				       "%s: cannot determine where this kernel was linked", path);
		move(ksyms, flat->vaddr);
	}
	if (!find_first(flat, ksyms, &flat->vaddr))
		return err_set(err, ERR_INPUT, "%s: cannot determine where this kernel starts",
			       path);
	add_segment(flat, ksyms, "_stext", "_etext");
	add_segment(flat, ksyms, "_sinittext", "_einittext");
	find_build_id(flat);
	return 0;
}

static uint8_t *map_file(const char *path, int fd, size_t *len, struct err *err)
{
	struct stat st;
	void *data;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > FLAT_MAX) {
		err_set(err, ERR_INPUT, "%s: too large for a kernel", path);
		return NULL;
	}
	data = mapped_file(fd, path, len);
	if (!data)
		err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
	return data;
}

struct flat *flat_open(const char *path, int fd, uint16_t machine, struct ksyms *ksyms,
		       struct err *err)
{
	struct flat *flat = xcalloc(1, sizeof(*flat));
	struct ksyms_in in;

	memset(ksyms, 0, sizeof(*ksyms));
	flat->machine = machine;
	flat->is_64bit = machine != MACHINE_ARM;
	flat->data = map_file(path, fd, &flat->len, err);
	in = (struct ksyms_in){ .data = flat->data, .len = flat->len, .is_64bit = flat->is_64bit };
	if (flat->data && ksyms_read(ksyms, &in, path, err) == 0 &&
	    place(flat, ksyms, path, err) == 0)
		return flat;
	flat_close(flat);
	ksyms_release(ksyms);
	return NULL;
}

void flat_close(struct flat *flat)
{
	if (!flat)
		return;
	mapped_close(flat->data, flat->len);
	free(flat);
}
