// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/image.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"

#define PAGE 4096

void images_init(struct images *images, struct strtab *strings, const struct image_search *where)
{
	memset(images, 0, sizeof(*images));
	images->strings = strings;
	images->where = where;
	images->arch = "";
	images->library.where = where ? &where->debug : NULL;
	GROW(images->all, 1, images->cap);
	memset(&images->all[0], 0, sizeof(images->all[0]));
	images->nr = 1;
}

void images_release(struct images *images)
{
	for (size_t i = 1; i < images->nr; i++) {
		free(images->all[i].file);
		mapped_close(images->all[i].raw, images->all[i].raw_len);
	}
	library_release(&images->library);
	free(images->all);
	hash_release(&images->index);
	memset(images, 0, sizeof(*images));
}

static bool build_id_differs(const struct image *image, const uint8_t *id, size_t len)
{
	return image->build_id_len && len &&
	       (len != image->build_id_len || memcmp(id, image->build_id, len) != 0);
}

static void set_build_id(struct image *image, const uint8_t *id, size_t len)
{
	if (image->build_id_len || !len)
		return;
	image->build_id_len = (uint8_t)len;
	memcpy(image->build_id, id, len);
}

uint32_t image_intern(struct images *images, const char *path, const uint8_t *build_id,
		      size_t build_id_len, bool as_linked, bool kernel)
{
	uint32_t name = str_intern_z(images->strings, path);
	struct hash_key key = { name, (uint64_t)as_linked | (uint64_t)kernel << 1 };
	uint32_t *handle = hash_at(&images->index, key);

	if (build_id_len > BUILD_ID_MAX)
		build_id_len = BUILD_ID_MAX;
	/* A file that changed under the same path is another image. */
	if (*handle && build_id_differs(&images->all[*handle], build_id, build_id_len)) {
		key.a |= hash_bytes(build_id, build_id_len) << 32;
		handle = hash_at(&images->index, key);
	}
	if (!*handle) {
		*handle = (uint32_t)images->nr;
		GROW(images->all, images->nr + 1, images->cap);
		images->all[images->nr++] = (struct image){
			.path = name,
			.name = str_intern_z(images->strings, text_last_part(path)),
			.as_linked = as_linked,
			.kernel = kernel,
		};
	}
	set_build_id(&images->all[*handle], build_id, build_id_len);
	return *handle;
}

uint32_t image_of_memory(struct images *images, const char *path, uint32_t pid)
{
	char *names = xasprintf("/tmp/perf-%" PRIu32 ".map", pid);
	uint32_t handle = image_intern(images, names, NULL, 0, true, false);

	images->all[handle].name = str_intern_z(images->strings, text_last_part(path));
	free(names);
	return handle;
}

uint32_t image_of_symbol(struct images *images, const char *name, const char *binary, bool kernel)
{
	char *path = binary ? xasprintf("%s (%s)", name, binary) : NULL;
	uint32_t handle = image_intern(images, path ? path : name, NULL, 0, false, kernel);

	free(path);
	images->all[handle].symbol = str_intern_z(images->strings, name);
	if (binary)
		images->all[handle].name = str_intern_z(images->strings, binary);
	images->all[handle].one_symbol = true;
	images->all[handle].opened = true;
	return handle;
}

void image_moved(struct images *images, uint32_t handle, const char *anchor, uint64_t anchor_addr)
{
	struct image *image = &images->all[handle];

	if (!anchor)
		return;
	image->moved = true;
	image->anchor = *anchor ? str_intern_z(images->strings, anchor) : 0;
	image->anchor_addr = anchor_addr;
}

void image_names(struct images *images, uint32_t handle, const char *file)
{
	images->all[handle].names = str_intern_z(images->strings, file);
}

void image_build_id(const struct image *image, char text[BUILD_ID_TEXT])
{
	text[0] = '\0';
	for (unsigned i = 0; i < image->build_id_len; i++)
		snprintf(text + 2 * i, 3, "%02x", image->build_id[i]);
}

/* /dev/shm is a file system for everybody, and programs run from it. */
static bool is_device(const char *path)
{
	return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0;
}

bool image_is_pseudo(const char *path)
{
	return path[0] == '\0' || path[0] == '[' || !strncmp(path, "//", 2) ||
	       !strncmp(path, "anon_inode:", 11) || is_device(path) ||
	       !strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5);
}

/*
 * perf symbolizes a kernel without a build ID with the kernel that is running. So give a kernel
 * whose file is a symbol list, which has no build ID, one that is derived from the symbols.
 */
static void make_build_id(struct image *image, struct symfile *symfile)
{
	uint8_t id[20] = { 0 };
	uint64_t hash;
	size_t nr;
	const uint64_t *starts = symfile_starts(symfile, &nr);

	for (size_t at = 0; at + sizeof(hash) <= sizeof(id); at += sizeof(hash)) {
		hash = hash_bytes(starts, nr * sizeof(*starts)) + at;
		memcpy(id + at, &hash, sizeof(hash));
	}
	set_build_id(image, id, sizeof(id));
}

/* Uses the file if it is the one that was recorded. */
static bool adopt(struct image *image, struct symfile *symfile, const char *path, bool this_machine)
{
	size_t len;
	const uint8_t *id = symfile_build_id(symfile, &len);

	if (!id || len > BUILD_ID_MAX)
		len = id ? BUILD_ID_MAX : 0;
	if (build_id_differs(image, id, len)) {
		log_warn("%s: not the binary that was recorded: its build ID differs", path);
		return false;
	}
	set_build_id(image, id, len);
	if (!image->build_id_len && image->kernel && symfile_is_packed(symfile) && !this_machine)
		make_build_id(image, symfile);
	image->symfile = symfile;
	return true;
}

static char *try_file(struct images *images, struct image *image, char *path)
{
	char *real = path ? store_real(images->where->debug.store, path) : NULL;
	struct symfile *symfile;

	free(path);
	if (!real)
		return NULL;
	symfile = library_try(&images->library, real);
	if (symfile && adopt(image, symfile, real, images->this_machine))
		return real;
	free(real);
	return NULL;
}

/* perf's build ID cache: ~/.debug/.build-id/xx/yyyy/elf, or .../kallsyms, or .../vdso */
static char *cached_path(const struct image *image, const char *file)
{
	const char *home = getenv("HOME");
	char hex[BUILD_ID_TEXT];

	if (!home || image->build_id_len < 2)
		return NULL;
	image_build_id(image, hex);
	return xasprintf("%s/.debug/.build-id/%.2s/%s/%s", home, hex, hex + 2, file);
}

/* The kernel exports its ELF notes, build ID included, in /sys. */
static bool is_running_kernel(const struct images *images, const struct image *image)
{
	uint8_t notes[1024];
	ssize_t len;
	int fd;

	if (!image->build_id_len)
		return images->this_machine;
	fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, notes, sizeof(notes));
	close(fd);
	return len > 0 && memmem(notes, (size_t)len, image->build_id, image->build_id_len);
}

/* A part of the kernel that is a binary at a known place. */
static bool has_own_file(const struct image *image, const char *path)
{
	return !image_is_pseudo(path) && !image->as_linked && !image->moved;
}

/*
 * The kernel and its modules. A symbol list has all of them, at their run-time addresses; an ELF
 * has only one.
 */
static char *find_kernel(struct images *images, struct image *image, const char *path)
{
	const struct image_search *where = images->where;
	bool module = image->moved && !image->anchor;
	char *file = NULL;

	if (image->names)
		file = try_file(images, image, xstrdup(str_text(images->strings, image->names)));
	if (!file && where->kernel && !has_own_file(image, path))
		file = try_file(images, image, xstrdup(where->kernel));
	if (file && module && symfile_machine(image->symfile)) {
		image->symfile = NULL;
		free(file);
		file = NULL;
	}
	if (!file && !image_is_pseudo(path))
		return NULL; /* find_file() searches for a module's own file like any other */
	if (!file)
		file = try_file(images, image, cached_path(image, "elf"));
	if (!file)
		file = try_file(images, image, cached_path(image, "kallsyms"));
	if (!file && image->moved && is_running_kernel(images, image))
		file = try_file(images, image, xstrdup("/proc/kallsyms"));
	return file;
}

/* In an archive: by build ID, then by the path. */
static char *find_archived(struct images *images, struct image *image, const char *path)
{
	const struct store *store = images->where->debug.store;
	const char *found = NULL;
	char hex[BUILD_ID_TEXT], *file = NULL;

	image_build_id(image, hex);
	if (*hex)
		found = store_find(store, STORE_BUILD_ID, hex);
	if (found)
		file = try_file(images, image, xstrdup(found));
	found = file ? NULL : store_find(store, STORE_NAME, path);
	return found ? try_file(images, image, xstrdup(found)) : file;
}

/* Whether the file may have run on the recorded machine, as far as that is known. */
static bool fits_machine(const struct images *images, const struct symfile *symfile)
{
	static const struct {
		const char *arch; /* the start of it */
		uint16_t machines[2];
	} known[] = {
		{ "x86_64", { EM_X86_64, EM_386 } },   { "i", { EM_386, EM_386 } },
		{ "aarch64", { EM_AARCH64, EM_ARM } }, { "arm", { EM_ARM, EM_ARM } },
		{ "riscv", { EM_RISCV, EM_RISCV } },
	};
	uint16_t machine = symfile_machine(symfile);

	for (size_t i = 0; machine && i < sizeof(known) / sizeof(*known); i++) {
		if (!strncmp(images->arch, known[i].arch, strlen(known[i].arch)))
			return machine == known[i].machines[0] || machine == known[i].machines[1];
	}
	return true;
}

/* The file with the recorded path, which may have been on another machine. */
static char *try_path(struct images *images, struct image *image, const char *path)
{
	bool identified = image->build_id_len;
	char *file = try_file(images, image, xstrdup(path));

	if (!file || identified || fits_machine(images, image->symfile))
		return file;
	image->symfile = NULL;
	image->build_id_len = 0;
	free(file);
	return NULL;
}

static char *find_file(struct images *images, struct image *image)
{
	const struct image_search *where = images->where;
	const char *path = str_text(images->strings, image->path);
	const char *name = text_last_part(path);
	const char *folders[] = { where->symfs, where->build_dir };
	bool archived = where->debug.store && where->debug.store->archive;
	char *file = archived ? find_archived(images, image, path) : NULL;

	if (file)
		return file;
	if (image->kernel)
		file = find_kernel(images, image, path);
	else if (image->names)
		file = try_file(images, image, xstrdup(str_text(images->strings, image->names)));
	/* The kernel maps it into every process; perf caches a copy. */
	if (!strcmp(path, "[vdso]"))
		file = try_file(images, image, cached_path(image, "vdso"));
	if (image_is_pseudo(path))
		return file;
	if (image->given && !file)
		file = try_file(images, image, xstrdup(path));
	for (size_t i = 0; !file && i < sizeof(folders) / sizeof(*folders); i++) {
		if (!folders[i])
			continue;
		file = try_file(images, image, xasprintf("%s/%s", folders[i], path));
		if (!file && strcmp(path, name) != 0)
			file = try_file(images, image, xasprintf("%s/%s", folders[i], name));
	}
	if (!file && !image->foreign && !image->given && !archived)
		file = try_path(images, image, path);
	if (!file)
		file = try_file(images, image, cached_path(image, "elf"));
	return file;
}

struct symfile *image_symfile(struct images *images, uint32_t handle)
{
	struct image *image = &images->all[handle];

	if (image->opened || !handle)
		return image->symfile;
	image->opened = true;
	image->file = find_file(images, image);
	if (image->symfile && !images->machine) {
		images->machine = symfile_machine(image->symfile);
		images->is_64bit = symfile_is_64bit(image->symfile);
	}
	return image->symfile;
}

struct symfile *image_unused(struct images *images, uint32_t handle)
{
	struct image *image = &images->all[handle];
	int level = log_level;

	image->unused |= !image->opened;
	if (level == 1 && !image->kernel && !image->given)
		log_level = 0;
	image_symfile(images, handle);
	log_level = level;
	return images->all[handle].symfile;
}

static uint64_t image_shift(const struct image *image, const struct strtab *strings)
{
	uint64_t linked = 0;

	if (!image->moved)
		return 0;
	/* A symbol list of the running kernel has modules at their run-time addresses. */
	if (!image->anchor)
		return symfile_machine(image->symfile) ? image->anchor_addr : 0;
	if (!symfile_find(image->symfile, str_text(strings, image->anchor), &linked))
		return 0;
	return image->anchor_addr - linked;
}

/* Maps a file, unless it is empty, or an ELF that could not be used. */
static void map_raw(struct image *image, int fd, const char *path)
{
	struct stat st;
	size_t len;
	void *data = !fstat(fd, &st) && S_ISREG(st.st_mode) ? mapped_file(fd, path, &len) : NULL;

	if (!data)
		return;
	if (len >= 4 && !memcmp(data, "\177ELF", 4)) {
		mapped_close(data, len);
		return;
	}
	image->raw = data;
	image->raw_len = len;
}

static void open_raw(struct images *images, struct image *image, const char *path)
{
	struct store *store = images->where->debug.store;
	char *real = store_real(store, path);
	int fd = real ? store_open(store, real) : -1;

	if (fd >= 0) {
		map_raw(image, fd, real);
		close(fd);
	}
	if (image->raw)
		store_use(store, real, STORE_NAME, path);
	free(real);
}

const uint8_t *image_raw(struct images *images, uint32_t handle, size_t *len)
{
	struct image *image = &images->all[handle];
	const char *path = str_text(images->strings, image->path);

	if (!image->raw_tried && !image->kernel && !image->foreign && !image->as_linked &&
	    !image_is_pseudo(path))
		open_raw(images, image, path);
	image->raw_tried = true;
	*len = image->raw_len;
	return image->raw;
}

uint64_t image_vaddr(struct images *images, uint32_t handle, uint64_t addr)
{
	struct symfile *symfile = image_symfile(images, handle);
	const struct sym_segment *segments;
	size_t nr;

	if (!symfile)
		return addr;
	if (images->all[handle].as_linked)
		return addr - image_shift(&images->all[handle], images->strings);
	segments = symfile_segments(symfile, &nr);
	for (size_t i = 0; i < nr; i++) {
		/* A map starts at a page, which may be a little before the segment. */
		uint64_t first = segments[i].offset & ~(uint64_t)(PAGE - 1);

		if (addr >= first && addr - first < segments[i].offset - first + segments[i].filesz)
			return addr - segments[i].offset + segments[i].vaddr;
	}
	return addr;
}

#define LANDMARK_STEP 16		    /* the usual alignment of functions */
#define LANDMARK_SEARCH ((uint64_t)1 << 20) /* symbols are sparse only in assembly at the start */

bool image_extent(struct images *images, uint32_t handle, uint64_t *vaddr, uint64_t *len)
{
	struct symfile *symfile = image_symfile(images, handle);
	const struct sym_segment *segments;
	uint64_t first = UINT64_MAX, last = 0;
	size_t nr = 0;

	segments = symfile ? symfile_segments(symfile, &nr) : NULL;
	for (size_t i = 0; i < nr; i++) {
		uint64_t start = segments[i].vaddr, room = UINT64_MAX - start;
		uint64_t size = segments[i].memsz < room ? segments[i].memsz : room;

		first = start < first ? start : first;
		last = start + size > last ? start + size : last;
	}
	if (first >= last)
		return false;
	*vaddr = first & ~(uint64_t)(PAGE - 1);
	*len = last - *vaddr;
	return true;
}

/* Symbols that most kernels have. */
static bool usual_landmark(struct symfile *symfile, const char **name, uint64_t *vaddr)
{
	static const char *const usual[] = { "_text", "_stext", "_start", "kernel_init" };

	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
		uint64_t found;

		if (!symfile_find(symfile, usual[i], &found) || !found)
			continue;
		*name = usual[i];
		*vaddr = found;
		return true;
	}
	return false;
}

static bool landmark_at(struct symfile *symfile, uint64_t at, const char **name, uint64_t *vaddr)
{
	struct sym_frame frames[SYM_MAX_INLINE];
	size_t nr = symfile_lookup(symfile, at, frames, SYM_MAX_INLINE);
	uint64_t found;

	if (!nr || !symfile_find(symfile, frames[nr - 1].linkage, &found) || !found)
		return false;
	*name = frames[nr - 1].linkage;
	*vaddr = found;
	return true;
}

bool image_landmark(struct images *images, uint32_t handle, const char **name, uint64_t *vaddr)
{
	struct symfile *symfile = image_symfile(images, handle);
	const struct sym_segment *segments;
	size_t nr;

	if (!symfile)
		return false;
	/* perf's cache lists a packed kernel's functions by one name each, which may not be the usual one. */
	if (!symfile_is_packed(symfile) && usual_landmark(symfile, name, vaddr))
		return true;
	segments = symfile_segments(symfile, &nr);
	for (size_t i = 0; i < nr; i++) {
		uint64_t len = segments[i].memsz;

		if (len > LANDMARK_SEARCH)
			len = LANDMARK_SEARCH;
		for (uint64_t at = 0; at < len; at += LANDMARK_STEP) {
			if (landmark_at(symfile, segments[i].vaddr + at, name, vaddr))
				return true;
		}
	}
	return false;
}
