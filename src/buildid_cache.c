// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The layout of perf 6.1 for a binary /bin/app with build ID abcdef...:
 *
 *	DIR/bin/app/abcdef.../elf		a hard link to the binary, or a copy
 *	DIR/.build-id/ab/cdef...		a symbolic link to ../../bin/app/abcdef...
 *
 * perf reads a kernel's symbols from "elf", too, unless the kernel is compressed. For a compressed
 * kernel we add a list of its symbols, where perf keeps those of the running kernel:
 *
 *	DIR/[kernel.kallsyms]/abcdef.../kallsyms
 */
#include "buildid_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/in.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/store.h"

static int failed(struct err *err, const char *path)
{
	return err_set(err, ERR_OUTPUT, "%s: cannot add to the build-id cache: %s", path,
		       strerror(errno));
}

/* Creates the folders before the last slash of path. */
static int make_folders(char *path, struct err *err)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int ret;

		*slash = '\0';
		ret = mkdir(path, 0755);
		if (ret < 0 && errno != EEXIST)
			failed(err, path);
		*slash = '/';
		if (err->code)
			return -1;
	}
	return 0;
}

static int copy_file(const struct store *store, const char *from, const char *to, struct err *err)
{
	int fd = store_open(store, from);
	struct out out;
	struct in in;
	size_t have;

	if (fd < 0)
		return failed(err, from);
	if (in_open_fd(&in, fd, from, err) < 0)
		return -1;
	if (out_open(&out, to, false, err) < 0) {
		in_close(&in);
		return -1;
	}
	for (const uint8_t *data; data = in_peek(&in, 1, &have), have;) {
		out_write(&out, data, have);
		in_skip(&in, have);
	}
	if (in.err.code)
		*err = in.err;
	in_close(&in);
	if (!err->code)
		return out_commit(&out, err);
	out_abandon(&out);
	return -1;
}

static int add_file(const struct store *store, const char *file, char *path, struct err *err)
{
	bool archived = store_find(store, STORE_NAME, file);

	if (make_folders(path, err) < 0)
		return -1;
	if (archived ? access(path, F_OK) == 0 : link(file, path) == 0 || errno == EEXIST)
		return 0;
	return copy_file(store, file, path, err);
}

/* Replaces an old link: the same binary may have been added before, from another path. */
static int add_link(const char *target, char *path, struct err *err)
{
	if (make_folders(path, err) < 0)
		return -1;
	if (symlink(target, path) == 0)
		return 0;
	if (errno != EEXIST || unlink(path) < 0 || symlink(target, path) < 0)
		return failed(err, path);
	return 0;
}

static int add_kallsyms(struct symfile *symfile, char *path, struct err *err)
{
	const uint64_t *starts;
	struct buf line = { 0 };
	struct out out;
	size_t nr;

	if (make_folders(path, err) < 0 || out_open(&out, path, false, err) < 0)
		return -1;
	starts = symfile_starts(symfile, &nr);
	for (size_t i = 0; i < nr; i++) {
		struct sym_frame frame;

		if (!symfile_lookup(symfile, starts[i], &frame, 1))
			continue;
		buf_clear(&line);
		buf_addf(&line, "%016" PRIx64 " T %s\n", starts[i], frame.linkage);
		out_write(&out, line.data, line.len);
	}
	buf_release(&line);
	return out_commit(&out, err);
}

static int add_image(const struct image *image, const struct store *store, const char *dir,
		     struct err *err)
{
	bool packed = image->kernel && symfile_is_packed(image->symfile);
	const char *where = packed ? "/[kernel.kallsyms]" : image->file;
	char hex[BUILD_ID_TEXT], *path, *place, *target;
	int ret;

	image_build_id(image, hex);
	path = xasprintf("%s%s/%s/%s", dir, where, hex, packed ? "kallsyms" : "elf");
	place = xasprintf("%s/.build-id/%.2s/%s", dir, hex, hex + 2);
	target = xasprintf("../..%s/%s", where, hex);
	ret = packed ? add_kallsyms(image->symfile, path, err)
		     : add_file(store, image->file, path, err);
	if (ret == 0)
		ret = add_link(target, place, err);
	free(path);
	free(place);
	free(target);
	return ret;
}

static char *cache_place(const char *dir)
{
	const char *home = getenv("HOME");

	if (*dir)
		return xstrdup(dir);
	return home ? xasprintf("%s/.debug", home) : NULL;
}

static bool is_below(const char *file, const char *folder)
{
	size_t len = strlen(folder);

	return !strncmp(file, folder, len) && (file[len] == '/' || (len && folder[len - 1] == '/'));
}

bool buildid_cache_has(const char *file)
{
	char *place = cache_place("");
	bool has = place && is_below(file, place);

	free(place);
	return has;
}

int buildid_cache_fill(struct images *images, const char *dir, struct err *err)
{
	const struct store *store = images->where->debug.store;
	char *place = cache_place(dir);
	int nr = 0;

	if (!place)
		return err_set(err, ERR_USAGE, "HOME is not set: use --buildid-cache=DIR");
	for (uint32_t i = 1; i < images->nr && !err->code; i++) {
		const struct image *image = &images->all[i];

		if (!image_unused(images, i) || image->build_id_len < 2)
			continue;
		if (is_below(image->file, place) &&
		    !store_find(store, STORE_NAME, image->file)) /* it came from this cache */
			continue;
		if (add_image(image, store, place, err) == 0)
			nr++;
	}
	free(place);
	return err->code ? -1 : nr;
}
