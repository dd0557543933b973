// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfdata_code.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/store.h"

/* A part of a file that is mapped. */
struct code_file {
	struct ipt_code code;
	struct perfdata_code *owner;
	/* NULL: a file that has only code, as `record emulate` writes. */
	struct symfile *symfile;
	uint64_t start; /* its address in the ELF, or its offset in the file */
	int fd;
	bool owns_fd; /* else another part of the same file does */
};

void perfdata_code_open(struct perfdata_code *code, const struct reader *r, const char *kcore)
{
	const struct options *options = r->options;

	code->where = (struct image_search){
		.build_dir = options->build_dir,
		.symfs = options->symfs,
		.kernel = options->kernel,
		.debug = { .symfs = options->symfs,
			   .folder = options->build_dir,
			   .store = r->store },
	};
	strtab_init(&code->strings);
	pthread_mutex_init(&code->lock, NULL);
	images_init(&code->images, &code->strings, &code->where);
	if (kcore && store_has(r->store, kcore))
		code->kcore = library_open(&code->images.library, kcore);
}

/* Near the end of a segment, there are fewer bytes than asked for. */
static size_t read_segment(const struct code_file *file, uint64_t offset, uint8_t *bytes,
			   size_t size)
{
	for (size_t n = size; n; n = n > 16 ? n / 2 : n - 1) {
		const uint8_t *at = symfile_code(file->symfile, file->start + offset, n);

		if (!at)
			continue;
		memcpy(bytes, at, n);
		return n;
	}
	return 0;
}

static size_t read_elf(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	size_t done = 0, part;

	do {
		part = read_segment(data, offset + done, bytes + done, size - done);
		done += part;
	} while (part && done < size);
	return done;
}

/* The functions that pass/calls distinguishes; in assembly, it may know more. */
static bool same_function(const void *data, uint64_t a, uint64_t b)
{
	const struct code_file *file = data;
	uint64_t starts[2] = { 0 };
	bool label[2] = { 0 }, known;

	pthread_mutex_lock(&file->owner->lock);
	known = symfile_function(file->symfile, file->start + a, &starts[0], &label[0]) &&
		symfile_function(file->symfile, file->start + b, &starts[1], &label[1]);
	pthread_mutex_unlock(&file->owner->lock);
	return known && starts[0] == starts[1] && !label[0] && !label[1];
}

static size_t read_raw(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	const struct code_file *file = data;
	ssize_t got = pread(file->fd, bytes, size, (off_t)(file->start + offset));

	return got > 0 ? (size_t)got : 0;
}

/* Opens a file that is no ELF. -1: there is none. */
static int open_raw(struct store *store, const char *path)
{
	char *real = store_real(store, path);
	int fd = real ? store_open(store, real) : -1;
	char magic[4] = { 0 };
	struct stat st;

	if (fd >= 0)
		store_use(store, real, STORE_NAME, path);
	free(real);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
			read(fd, magic, sizeof(magic)) < 0 || !memcmp(magic, "\177ELF", 4))) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct code_file *new_file(struct perfdata_code *code, const struct ipt_bytes *bytes,
				  uint64_t len)
{
	struct code_file *file = xcalloc(1, sizeof(*file));

	file->fd = -1;
	file->owner = code;
	ipt_code_init(&file->code, (struct ipt_bytes){ bytes->read, bytes->same, file }, len, 0);
	GROW(code->files, code->nr + 1, code->cap);
	code->files[code->nr++] = file;
	return file;
}

static struct code_file *elf_file(struct perfdata_code *code, struct symfile *symfile,
				  uint64_t vaddr, uint64_t len)
{
	static const struct ipt_bytes bytes = { .read = read_elf, .same = same_function };
	struct code_file *file = new_file(code, &bytes, len);

	file->symfile = symfile;
	file->start = vaddr;
	return file;
}

static struct code_file *raw_file(struct perfdata_code *code, int fd, const struct event_map *map)
{
	static const struct ipt_bytes bytes = { .read = read_raw };
	struct code_file *file = new_file(code, &bytes, map->len);

	file->fd = fd;
	file->start = map->offset;
	return file;
}

/*
 * The ELF's address for the start of a map. The map may begin in a part that is not code, if both have the
 * same distance from their addresses.
 */
static uint64_t address_in_elf(struct perfdata_code *code, const struct event_map *map,
			       uint32_t image, const struct symfile *symfile)
{
	const struct sym_segment *segments;
	size_t nr;

	if (map->as_linked)
		return image_vaddr(&code->images, image, map->addr);
	segments = symfile_segments(symfile, &nr);
	for (size_t i = 0; i < nr; i++) {
		const struct sym_segment *s = &segments[i];

		if (s->offset + s->filesz > map->offset && s->offset < map->offset + map->len)
			return s->vaddr - s->offset + map->offset;
	}
	return map->offset;
}

/* Programs map many parts of a file: they share a descriptor. NULL: it is an ELF, or there is none. */
static struct code_file *find_raw(struct perfdata_code *code, const struct event_map *map,
				  uint32_t image)
{
	uint32_t *first = hash_at(&code->raw, (struct hash_key){ image, 0 });
	struct code_file *file;
	int fd;

	if (*first)
		return *first == UINT32_MAX ? NULL
					    : raw_file(code, code->files[*first - 1]->fd, map);
	fd = open_raw(code->where.debug.store, map->path);
	*first = UINT32_MAX;
	if (fd < 0)
		return NULL;
	file = raw_file(code, fd, map);
	file->owns_fd = true;
	*first = (uint32_t)code->nr;
	return file;
}

static struct code_file *find_file(struct perfdata_code *code, const struct event_map *map,
				   uint32_t image)
{
	struct code_file *raw;
	struct symfile *symfile;

	if (map->kernel && code->kcore)
		return elf_file(code, code->kcore, map->addr, map->len);
	raw = map->kernel || image_is_pseudo(map->path) ? NULL : find_raw(code, map, image);
	if (raw)
		return raw;
	symfile = image_symfile(&code->images, image);
	if (!symfile)
		return NULL;
	return elf_file(code, symfile, address_in_elf(code, map, image, symfile), map->len);
}

struct ipt_code *perfdata_code_of(struct perfdata_code *code, const struct event_map *map)
{
	uint32_t image = image_intern(&code->images, map->path, map->build_id, map->build_id_len,
				      map->as_linked, map->kernel);
	struct hash_key key = { (uint64_t)image << 32 ^ map->len,
				map->as_linked ? map->addr : map->offset };
	uint32_t *place = hash_at(&code->index, key);
	struct code_file *file;

	if (*place)
		return *place == UINT32_MAX ? NULL : &code->files[*place - 1]->code;
	if (map->anchor)
		image_moved(&code->images, image, map->anchor, map->offset);
	file = find_file(code, map, image);
	*place = file ? (uint32_t)code->nr : UINT32_MAX;
	return file ? &file->code : NULL;
}

void perfdata_code_release(struct perfdata_code *code)
{
	if (!code->strings.nr && !code->images.all)
		return;
	for (size_t i = 0; i < code->nr; i++) {
		ipt_code_release(&code->files[i]->code);
		if (code->files[i]->owns_fd)
			close(code->files[i]->fd);
		free(code->files[i]);
	}
	free(code->files);
	hash_release(&code->index);
	hash_release(&code->raw);
	pthread_mutex_destroy(&code->lock);
	images_release(&code->images);
	strtab_release(&code->strings);
}
