// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files inside files. A kernel image is a small program that decompresses the kernel that follows
 * it. Its header says where that is, except on 32-bit Arm, where we search for it. Modules and
 * symbol lists may be compressed too. The result goes to an unlinked temporary file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/spool.h"
#include "base/unpack.h"
#include "sym/internal.h"

#define HEAD_LEN 1024
#define CHUNK ((size_t)128 << 10)
#define UNPACKED_MAX ((uint64_t)512 << 20)
#define LAYERS_MAX 4
#define SEARCH_MAX ((size_t)256 << 10)

#define MACHINE_ARM 40

struct layer {
	const char *name; /* "" for a file that is just compressed */
	uint64_t offset, len;
	uint64_t size_mark; /* trailing bytes that hold the decompressed size */
	uint16_t machine;   /* of the contents, if they do not identify it; else 0 */
};

struct file {
	const char *path;
	int fd;
	uint64_t size;
	uint8_t head[HEAD_LEN];
	size_t head_len;
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static int look(struct file *file, struct err *err)
{
	struct stat st;
	ssize_t len = pread(file->fd, file->head, HEAD_LEN, 0);

	if (len < 0 || fstat(file->fd, &st) < 0)
		return err_set(err, ERR_INPUT, "%s: %s", file->path, strerror(errno));
	file->head_len = (size_t)len;
	file->size = (uint64_t)st.st_size;
	return 0;
}

/* ---- known images ---- */

/* Like the find_ functions: 1: *layer is valid, 0: something else, -1: broken, and err is set. */
static int inside(const struct file *file, struct layer *layer, struct err *err)
{
	if (layer->offset <= file->size && layer->len <= file->size - layer->offset)
		return 1;
	return err_set(err, ERR_INPUT,
		       "%s: %s is cut short: its kernel is %" PRIu64 " bytes at offset %" PRIu64
		       ", but the file has only %" PRIu64 " bytes",
		       file->path, layer->name, layer->len, layer->offset, file->size);
}

#define X86_PAYLOAD_SINCE 0x208

static int find_bzimage(const struct file *file, struct layer *layer, struct err *err)
{
	const uint8_t *head = file->head;
	unsigned version, sectors;

	if (file->head_len < 0x250 || memcmp(head + 0x202, "HdrS", 4) != 0)
		return 0;
	version = get16(head + 0x206);
	sectors = head[0x1f1] ? head[0x1f1] : 4;
	if (version < X86_PAYLOAD_SINCE)
		return err_set(err, ERR_INPUT,
			       "%s: boot protocol %u.%02u is too old: expected 2.08 (Linux 2.6.24) "
			       "or later",
			       file->path, version >> 8, version & 0xff);
	*layer = (struct layer){
		.name = "bzImage",
		.offset = (sectors + 1) * UINT64_C(512) + get32(head + 0x248),
		.len = get32(head + 0x24c),
		.size_mark = 4, /* in gzip it is part of the stream */
	};
	return inside(file, layer, err);
}

static int find_zboot(const struct file *file, struct layer *layer, struct err *err)
{
	const uint8_t *head = file->head;

	if (file->head_len < 0x40 || memcmp(head, "MZ\0\0zimg", 8) != 0)
		return 0;
	*layer = (struct layer){
		.name = "EFI zboot",
		.offset = get32(head + 8),
		.len = get32(head + 12),
	};
	return inside(file, layer, err);
}

/* Not lzma: its header is too weak to search for. */
static bool starts_packed(const uint8_t *at, size_t len)
{
	const struct unpack_ops *ops = unpack_probe(at, len);

	return ops && ops != &unpack_lzma;
}

static int find_zimage(const struct file *file, struct layer *layer, struct err *err)
{
	uint8_t *bytes;
	ssize_t len;

	if (file->head_len < 0x30 || get32(file->head + 0x24) != 0x016f2818)
		return 0;
	*layer = (struct layer){ .name = "zImage", .machine = MACHINE_ARM };
	bytes = xmalloc(SEARCH_MAX);
	len = pread(file->fd, bytes, SEARCH_MAX, 0);
	for (size_t at = 0x30; len > 0 && at < (size_t)len && !layer->offset; at++) {
		if (starts_packed(bytes + at, (size_t)len - at))
			layer->offset = at;
	}
	free(bytes);
	if (!layer->offset)
		return err_set(err, ERR_INPUT, "%s: no compressed kernel found in this zImage",
			       file->path);
	layer->len = file->size - layer->offset;
	return 1;
}

static int find_packed(const struct file *file, struct layer *layer, struct err *err)
{
	(void)err;
	if (!unpack_probe(file->head, file->head_len))
		return 0;
	*layer = (struct layer){ .name = "", .len = file->size };
	return 1;
}

static int find_layer(const struct file *file, struct layer *layer, struct err *err)
{
	static int (*const find[])(const struct file *, struct layer *, struct err *) = {
		find_bzimage,
		find_zboot,
		find_zimage,
		find_packed,
	};

	for (size_t i = 0; i < sizeof(find) / sizeof(*find); i++) {
		int ret = find[i](file, layer, err);

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- decompression ---- */

struct job {
	const char *path;
	int from, to;
	uint64_t at, end; /* offsets of the compressed bytes */
	uint64_t done;
	struct unpack *unpack;
};

static int put(struct job *job, const uint8_t *data, size_t len, struct err *err)
{
	int error;

	job->done += len;
	if (job->done > UNPACKED_MAX)
		return err_set(err, ERR_INPUT, "%s: decompresses to over %u MB: not a kernel",
			       job->path, (unsigned)(UNPACKED_MAX >> 20));
	error = fd_write(job->to, data, len);
	return error ? err_set(err, ERR_INPUT,
			       "%s: cannot decompress to a temporary file: %s (set TMPDIR?)",
			       job->path, strerror(error))
		     : 0;
}

/* Decompresses all of src, or up to the end of the stream. 1: it ended, or may end here. */
static int feed(struct job *job, const uint8_t *src, size_t len, uint8_t *dst, struct err *err)
{
	const struct unpack_ops *ops = job->unpack->ops;
	size_t used = 0, made;
	int ret;

	do {
		size_t left = len - used;

		made = CHUNK;
		ret = ops->step(job->unpack, src + used, &left, dst, &made);
		if (ret < 0)
			return err_at(err, ERR_INPUT, job->path, job->at + used,
				      "the %s stream is damaged", ops->name);
		used += left;
		if (put(job, dst, made, err) < 0)
			return -1;
	} while ((!ret || ops->endless) && (used < len || made == CHUNK));
	return ret;
}

static int unpack_all(struct job *job, struct err *err)
{
	uint8_t *src = xmalloc(2 * CHUNK), *dst = src + CHUNK;
	bool endless = job->unpack->ops->endless;
	int ret = 0;

	while (ret == 0 || (ret > 0 && endless && job->at < job->end)) {
		size_t want = job->end - job->at < CHUNK ? (size_t)(job->end - job->at) : CHUNK;
		ssize_t len = pread(job->from, src, want, (off_t)job->at);

		if (len <= 0) {
			ret = err_at(err, ERR_INPUT, job->path, job->at,
				     "the %s stream is cut short", job->unpack->ops->name);
			break;
		}
		ret = feed(job, src, (size_t)len, dst, err);
		job->at += (uint64_t)len;
	}
	free(src);
	return ret < 0 ? -1 : 0;
}

/* Kernel compression formats that are not supported. */
static const char *foreign_packing(const uint8_t *head, size_t len)
{
	static const struct {
		const char *magic, *name;
	} known[] = { { "\x89LZO", "lzo" }, { "BZh", "bzip2" } };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t want = strlen(known[i].magic);

		if (len >= want && !memcmp(head, known[i].magic, want))
			return known[i].name;
	}
	return NULL;
}

static int start(const struct file *file, const struct layer *layer, struct job *job,
		 struct err *err)
{
	uint8_t head[UNPACK_HEAD];
	ssize_t len = pread(file->fd, head, sizeof(head), (off_t)layer->offset);
	const struct unpack_ops *ops;
	const char *foreign;

	if (len < 0)
		return err_set(err, ERR_INPUT, "%s: %s", file->path, strerror(errno));
	ops = unpack_probe(head, (size_t)len);
	foreign = foreign_packing(head, (size_t)len);
	if (!ops && foreign)
		return err_set(err, ERR_INPUT,
			       "%s: compressed with %s, which kscope does not support; use the "
			       "kernel's vmlinux instead",
			       file->path, foreign);
	if (!ops)
		return err_at(err, ERR_INPUT, file->path, layer->offset,
			      "the kernel in this %s is compressed in an unknown format",
			      layer->name);
	job->unpack = ops->open();
	if (!job->unpack)
		return err_set(err, ERR_INPUT,
			       "%s: compressed with %s, but kscope was built without it",
			       file->path, ops->name);
	if (ops->endless && layer->size_mark < layer->len)
		job->end -= layer->size_mark;
	job->to = spool_file();
	if (job->to < 0)
		return err_set(err, ERR_INPUT,
			       "%s: cannot create a temporary file: %s (set TMPDIR?)", file->path,
			       strerror(errno));
	return 0;
}

static void note(char *how, const struct layer *layer, const char *packing)
{
	size_t used = strlen(how);

	snprintf(how + used, WRAP_TEXT - used, "%s%s%s%s", used ? ", " : "", layer->name,
		 *layer->name ? ", " : "", packing);
}

static int open_layer(const struct file *file, const struct layer *layer, char *how,
		      struct err *err)
{
	struct job job = {
		.path = file->path,
		.from = file->fd,
		.to = -1,
		.at = layer->offset,
		.end = layer->offset + layer->len,
	};
	int ret = start(file, layer, &job, err);

	if (ret == 0)
		ret = unpack_all(&job, err);
	if (ret == 0)
		note(how, layer, job.unpack->ops->name);
	if (job.unpack)
		job.unpack->ops->close(job.unpack);
	if (ret == 0 && lseek(job.to, 0, SEEK_SET) == 0)
		return job.to;
	if (job.to >= 0)
		close(job.to);
	return -1;
}

int wrap_open(const char *path, int fd, char how[WRAP_TEXT], uint16_t *machine, struct err *err)
{
	struct file file = { .path = path, .fd = fd };
	int ret;

	how[0] = '\0';
	*machine = 0;
	for (unsigned i = 0; i < LAYERS_MAX; i++) {
		struct layer layer;

		ret = look(&file, err);
		if (ret == 0)
			ret = find_layer(&file, &layer, err);
		if (ret == 0)
			return file.fd;
		if (ret > 0)
			ret = open_layer(&file, &layer, how, err);
		close(file.fd);
		if (ret < 0)
			return -1;
		file.fd = ret;
		*machine = layer.machine;
	}
	close(file.fd);
	return err_set(err, ERR_INPUT, "%s: more than %u layers of compression", path, LAYERS_MAX);
}
