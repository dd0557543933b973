// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * archive: packs recordings, and the files that reading them needs, into one file. It reads the
 * recordings as `info` does, with a list of the files that are used (base/store.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/spool.h"
#include "base/store.h"
#include "base/tar.h"
#include "base/text.h"
#include "cmd.h"

#define NAME_KEPT 60 /* bytes of a file's name that its member keeps */
#define BLOCK ((size_t)128 << 10)

struct archive_options {
	const char *output;
};

static const struct option_table archive_table = {
	"Output",
	(const struct option_row[]){
		{ "output", 'o', "FILE",
		  "write this file (default: INPUT.tar.zst); .tar: uncompressed, .gz: with gzip",
		  OPTION_TEXT(struct archive_options, output), .completion = COMPLETE_FILE },
		{ 0 },
	},
};

/* ---- which files ---- */

/* Names and stacks need all maps, and some binaries are only opened for samples. */
static int ignore(struct writer *w, const struct event *ev)
{
	(void)w, (void)ev;
	return 0;
}

static const struct writer_ops nowhere = {
	.name = "archive",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.put = ignore,
};

static bool is_elf(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[4] = "";
	bool elf = fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) &&
		   !memcmp(head, "\177ELF", sizeof(head));

	if (fd >= 0)
		close(fd);
	return elf;
}

/*
 * Maps of files that are there but are no binaries, such as /etc/ld.so.cache, are not missed. An ELF that was not used
 * is another one than that which ran.
 */
static bool is_missing(const struct images *images, uint32_t nth, const char *path)
{
	const struct image *image = &images->all[nth];

	/* It may be there twice: as a file and as an address range. */
	for (uint32_t i = 1; i < nth; i++) {
		if (images->all[i].path == image->path && !images->all[i].file)
			return false;
	}
	if (image_is_pseudo(path))
		return image->kernel && !image->one_symbol;
	return image->foreign || access(path, F_OK) < 0 || is_elf(path);
}

/*
 * Code that is neither an ELF nor a list of symbols, such as a copy of generated code. kscope has no names for it, but
 * who decodes a trace needs it. The caller frees the result. NULL: there is none.
 */
static char *plain_code(const struct image *image, const char *path)
{
	struct stat st;

	if (!image->code || image->foreign || image_is_pseudo(path) || stat(path, &st) < 0 ||
	    !S_ISREG(st.st_mode) || is_elf(path))
		return NULL;
	return realpath(path, NULL);
}

/* The binary of each image, and its debug file. Returns how many binaries are missing. */
static size_t use_images(struct images *images, struct store *list)
{
	char hex[BUILD_ID_TEXT];
	size_t missing = 0;
	int level = log_level;

	if (level == 1) /* no warnings of binaries that no sample needed */
		log_level = 0;
	for (uint32_t i = 1; i < images->nr; i++) {
		struct symfile *symfile = image_symfile(images, i);
		const struct image *image = &images->all[i];
		const char *path = str_text(images->strings, image->path);
		char *real =
			symfile ? realpath(symfile_path(symfile), NULL) : plain_code(image, path);

		if (!real) {
			missing += is_missing(images, i, path);
			continue;
		}
		store_use(list, real, STORE_NAME, image->file ? image->file : path);
		store_use(list, real, STORE_NAME, path);
		image_build_id(image, hex);
		if (*hex && symfile)
			store_use(list, real, STORE_BUILD_ID, hex);
		if (symfile)
			symfile_same_until(symfile, 0); /* finds the debug files */
		free(real);
	}
	log_level = level;
	return missing;
}

static void use_options(const struct args *args, struct store *list)
{
	for (size_t i = 0; i < args->given.nr; i++) {
		const struct option_given *given = &args->given.all[i];

		if (!archived_row(given->row->name) || !given->arg)
			continue;
		GROW(list->options, list->nr_options + 1, list->cap_options);
		list->options[list->nr_options++] =
			(struct store_option){ given->row->name, given->arg };
	}
}

/* ---- recordings that are folders ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* All its regular files belong to the recording, also those that kscope does not read. */
static int use_folder(struct store *list, const char *path, struct err *err)
{
	char *const paths[] = { (char *)path, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	FTSENT *entry;

	if (!walk)
		return err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
	while ((entry = fts_read(walk))) {
		char *real = entry->fts_info == FTS_F ? realpath(entry->fts_path, NULL) : NULL;

		if (real)
			store_use(list, real, STORE_NAME, entry->fts_path);
		free(real);
	}
	fts_close(walk);
	return 0;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int use_inputs(const struct job *job, struct store *list, struct err *err)
{
	for (size_t i = 0; i < job->merge.nr; i++) {
		const struct merge_input *input = &job->merge.inputs[i];

		GROW(list->inputs, list->nr_inputs + 1, list->cap_inputs);
		list->inputs[list->nr_inputs++] =
			(struct store_input){ input->in.path, input->reader.ops->name };
		if (is_folder(job->inputs[i]) && use_folder(list, job->inputs[i], err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the names of the members ---- */

/* Other characters would only be trouble in a shell; the manifest has the true path. */
static void add_clean(struct buf *to, const char *name, size_t most)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				   "/._+-";

	for (size_t i = 0; name[i] && i < most; i++)
		buf_addc(to, strchr(good, name[i]) ? name[i] : '_');
}

static const char *key_of(const struct store_file *file, enum store_key_kind kind)
{
	for (size_t i = 0; i < file->nr; i++) {
		if (file->keys[i].kind == kind)
			return file->keys[i].text;
	}
	return NULL;
}

/* recording/0/perf.data, or recording/0/perf.data/FILE if that is a folder. */
static void name_recording(const struct job *job, const struct store_file *file, struct buf *name)
{
	for (size_t i = 0; i < job->nr_inputs && !name->len; i++) {
		char *real = realpath(job->inputs[i], NULL);
		size_t len = real ? strlen(real) : 0;

		if (real && !strncmp(file->path, real, len) &&
		    (!file->path[len] || file->path[len] == '/')) {
			buf_addf(name, "recording/%zu/", i);
			add_clean(name, text_last_part(real), NAME_KEPT);
			add_clean(name, file->path + len, SIZE_MAX);
		}
		free(real);
	}
}

/* As in perf's cache of binaries, so that an archive can be extracted there. */
static void name_binary(const struct store *list, const struct store_file *file, struct buf *name)
{
	const char *id = key_of(file, STORE_BUILD_ID), *of = key_of(file, STORE_DEBUG);
	const char *last = text_last_part(file->path);

	if (id && !strcmp(last, "kallsyms"))
		buf_addf(name, "[kernel.kallsyms]/%s/kallsyms", id);
	else if (id && !strcmp(last, "vdso"))
		buf_addf(name, "[vdso]/%s/vdso", id);
	else if (id)
		buf_addf(name, ".build-id/%.2s/%s/elf", id, id + 2);
	for (size_t i = 0; !id && of && i < list->nr; i++) {
		if (strcmp(list->files[i].path, of) != 0)
			continue;
		id = key_of(&list->files[i], STORE_BUILD_ID);
		if (id)
			buf_addf(name, ".build-id/%.2s/%s/debug", id, id + 2);
	}
}

static void name_members(const struct job *job, struct store *list)
{
	struct buf name = { 0 };

	for (size_t i = 0; i < list->nr; i++) {
		buf_clear(&name);
		name_recording(job, &list->files[i], &name);
		if (!name.len)
			name_binary(list, &list->files[i], &name);
		if (name.len && store_set_member(list, i, name.data))
			continue;
		buf_clear(&name);
		buf_addf(&name, "file/%zu/", i);
		add_clean(&name, text_last_part(list->files[i].path), NAME_KEPT);
		store_set_member(list, i, name.data);
	}
	buf_release(&name);
}

/* ---- writing ---- */

/* Some files, such as /proc/kallsyms, do not tell their size. */
static int copy_to_spool(int from, uint64_t *size)
{
	uint8_t *block = xmalloc(BLOCK);
	int to = spool_file(), error = to < 0 ? errno : 0;
	ssize_t got = 0;

	while (!error && (got = read(from, block, BLOCK)) > 0) {
		error = fd_write(to, block, (size_t)got);
		*size += (uint64_t)got;
	}
	error = got < 0 ? errno : error;
	free(block);
	close(from);
	if (error && to >= 0)
		close(to);
	errno = error;
	return error ? -1 : to;
}

static int open_file(const char *path, uint64_t *size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*size = 0;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		*size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
		if (!*size)
			fd = copy_to_spool(fd, size);
	}
	return fd >= 0 ? fd : err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
}

static int copy_bytes(struct out *out, int fd, uint64_t size, const char *path, struct err *err)
{
	uint8_t *block = xmalloc(BLOCK);

	for (uint64_t at = 0; at < size && !err->code && !out_failed(out);) {
		size_t want = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
		ssize_t got = pread(fd, block, want, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			err_set(err, ERR_INPUT, "%s: %s", path,
				got < 0 ? strerror(errno) : "the file has become shorter");
		out_write(out, block, got > 0 ? (size_t)got : 0);
		at += got > 0 ? (uint64_t)got : 0;
	}
	free(block);
	return err->code ? -1 : 0;
}

static int write_file(struct out *out, const struct store_file *file, uint64_t *total,
		      struct err *err)
{
	uint64_t size;
	int fd = open_file(file->path, &size, err), ret;

	if (fd < 0)
		return -1;
	tar_put_header(out, file->member, size);
	ret = copy_bytes(out, fd, size, file->path, err);
	tar_put_padding(out, size);
	*total += size;
	close(fd);
	return ret;
}

static int write_archive(struct out *out, const struct store *list, uint64_t *total,
			 struct err *err)
{
	struct buf manifest = { 0 };
	int ret = 0;

	store_write_manifest(list, &manifest);
	tar_put_header(out, STORE_MANIFEST, manifest.len);
	out_write(out, manifest.data, manifest.len);
	tar_put_padding(out, manifest.len);
	buf_release(&manifest);
	for (size_t i = 0; i < list->nr && ret == 0; i++)
		ret = write_file(out, &list->files[i], total, err);
	tar_put_end(out);
	return ret;
}

/* ---- the verb ---- */

static int list_files(struct args *args, struct job *job, struct store *list, size_t *missing)
{
	struct writer writer = { .ops = &nowhere, .world = &job->world };

	if (job->merge.archives)
		return err_set(&job->err, ERR_USAGE, "%s is an archive already",
			       job->merge.archives->archive);
	if (job_run(job, (struct writer *[]){ &writer }, 1) < 0)
		return -1;
	use_options(args, list);
	if (use_inputs(job, list, &job->err) < 0)
		return -1;
	*missing = use_images(&job->world.images, list);
	name_members(job, list);
	return 0;
}

/* A pipe can be read only once. */
static int check(const struct args *args, struct err *err)
{
	const struct archive_options *asked = args->state;

	for (size_t i = 0; i < args->nr_inputs; i++) {
		struct stat st;

		if (!strcmp(args->inputs[i], "-") || (stat(args->inputs[i], &st) == 0 &&
						      !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
			return err_set(err, ERR_USAGE, "%s is not a file: save the recording first",
				       strcmp(args->inputs[i], "-") ? args->inputs[i] : "stdin");
	}
	if (!asked->output && args->nr_inputs > 1)
		return err_set(err, ERR_USAGE, "several inputs need a name: use -o FILE");
	if (asked->output && !strcmp(asked->output, "-") && isatty(STDOUT_FILENO))
		return err_set(err, ERR_USAGE,
			       "cannot write an archive to a terminal: use -o FILE or a pipe");
	return 0;
}

static bool ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), more = strlen(end);

	return len > more && !strcmp(path + len - more, end);
}

/* zstd, unless the name says something else. */
static const struct pack_ops *packing(const char *path)
{
	const struct pack_ops *ops = pack_by_name(path);

	if (ops || ends_in(path, ".tar"))
		return ops;
	return pack_zstd.open ? &pack_zstd : NULL;
}

static char *default_name(const char *input)
{
	size_t len = strlen(input);

	while (len > 1 && input[len - 1] == '/')
		len--;
	return xasprintf("%.*s.tar%s", (int)len, input, pack_zstd.open ? pack_zstd.extension : "");
}

static void say_done(const char *path, const struct store *list, uint64_t total, size_t missing)
{
	log_say("wrote %s: %zu file%s, %.1f MB before compression; next: kscope report %s", path,
		list->nr, list->nr == 1 ? "" : "s", (double)total / 1e6, path);
	if (missing)
		log_say("%zu binar%s not found and left out of the archive; kscope info lists them",
			missing, missing == 1 ? "y was" : "ies were");
}

static int run(struct args *args)
{
	const struct archive_options *asked = args->state;
	char *path = asked->output ? xstrdup(asked->output) : default_name(args->inputs[0]);
	struct store *list = store_new();
	struct out out = { .fd = -1 };
	struct strtab strings;
	uint64_t total = 0;
	size_t missing = 0;
	struct job job;
	int ret;

	strtab_init(&strings);
	args_job(args, &job);
	job.list = list;
	ret = output_check_inputs(&job, path, false, &job.err);
	if (ret == 0)
		ret = out_open_packed(&out, path, packing(path), false, &job.err);
	if (ret == 0)
		ret = job_open(&job, &strings);
	if (ret == 0)
		ret = list_files(args, &job, list, &missing);
	if (ret == 0)
		ret = write_archive(&out, list, &total, &job.err);
	if (ret == 0)
		ret = out_commit(&out, &job.err);
	out_abandon(&out);
	if (ret == 0)
		say_done(path, list, total, missing);
	ret = job_result(&job, ret);
	job_release(&job);
	store_free(list);
	strtab_release(&strings);
	free(path);
	return ret;
}

const struct command cmd_archive = {
	.name = "archive",
	.usage = "archive INPUT... [-o FILE] [OPTIONS]",
	.about = "Pack a recording and the binaries it needs into one file, to read it on another "
		 "machine. The\narchive is a tar file; every command of kscope reads it like the "
		 "recording.",
	.examples = "  kscope archive perf.data && kscope report perf.data.tar.zst\n"
		    "  kscope archive boot.kscope --kernel vmlinux -o boot.tar.zst\n"
		    "  kscope archive samples.json --build-dir build -o run.tar\n"
		    "  tar -tf perf.data.tar.zst\n",
	.options = OPTION_USES({ &archive_table, 0 }),
	.state_size = sizeof(struct archive_options),
	.reads = true,
	.check = check,
	.run = run,
};
