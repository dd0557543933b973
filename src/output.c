// SPDX-License-Identifier: GPL-2.0-or-later
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/text.h"
#include "buildid_cache.h"

static int fill_cache(struct job *job, const char *place)
{
	const struct images *images = &job->world.images;
	int nr = buildid_cache_fill(&job->world.images, place, &job->err);

	if (nr < 0)
		return -1;
	for (size_t i = 1; i < images->nr; i++)
		job->kernel_cached |= images->all[i].kernel && images->all[i].symfile &&
				      images->all[i].build_id_len;
	if (!nr && job->buildid_cache)
		log_warn("nothing to add to the build-id cache: found no binary with a build ID");
	return 0;
}

/* The cache is not what the user asked for, so the output is complete without it. */
static void fill_cache_unasked(struct job *job)
{
	if (!getenv("HOME") || fill_cache(job, "") == 0)
		return;
	log_warn("%s", job->err.msg);
	job->err = (struct err){ 0 };
}

/*
 * The kernel whose symbols perf finds only in its cache; NULL: none. The writer opens a kernel only if perf
 * would not find it.
 */
static const struct image *kernel_for_cache(const struct images *images)
{
	for (size_t i = 1; i < images->nr; i++) {
		const struct image *image = &images->all[i];

		if (image->kernel && image->symfile && image->file &&
		    strcmp(image->file, "/proc/kallsyms") != 0 && !buildid_cache_has(image->file))
			return image;
	}
	return NULL;
}

static void say_kernel(const struct job *job, const struct output *output)
{
	const struct image *kernel = kernel_for_cache(&job->world.images);

	if (!kernel || job->kernel_cached)
		return;
	if (symfile_is_packed(kernel->symfile))
		log_say("perf finds the kernel's symbols only with --buildid-cache: %s is not an "
			"ELF file",
			kernel->file);
	else
		log_say("for the kernel's symbols: perf report -i %s -k %s", output->path,
			kernel->file);
}

/* Makes perf find the symbols of a perf.data, in the cache or by what the user does next. */
static void help_perf(struct job *job, const struct output *output)
{
	if (job->cache_rule == CACHE_ALL ||
	    (job->cache_rule == CACHE_KERNEL && kernel_for_cache(&job->world.images)))
		fill_cache_unasked(job);
	if (job->cache_rule == CACHE_HINT || job->cache_rule == CACHE_KERNEL)
		say_kernel(job, output);
}

struct file { /* an output while it is being written */
	struct writer writer;
	struct job *job;
	struct output *output;
	char *part; /* its name, if it is one of several */
	struct out out;
	struct folder folder;
	bool opened;
};

char *output_part(const char *path, unsigned part)
{
	const char *name = text_last_part(path), *dot;
	size_t len = pack_stem(name);

	dot = memrchr(name, '.', len);
	if (!dot || dot == name)
		dot = name + len;
	return xasprintf("%.*s.%04u%s", (int)(dot - path), path, part, dot);
}

/* Devices and pipes may well be both input and output. */
static bool same_file(const char *a, const char *b)
{
	struct stat at_a, at_b;

	return !stat(a, &at_a) && !stat(b, &at_b) &&
	       (S_ISREG(at_a.st_mode) || S_ISDIR(at_a.st_mode)) && at_a.st_dev == at_b.st_dev &&
	       at_a.st_ino == at_b.st_ino;
}

/* The output would take the place of the input, or of the folder that it is in. */
static bool replaces(const char *path, bool is_folder, const char *input)
{
	char *folder;
	bool same;

	if (!strcmp(input, "-") || !strcmp(path, "-"))
		return false;
	folder = text_folder(input);
	same = same_file(input, path) || (is_folder && same_file(*folder ? folder : ".", path));
	free(folder);
	return same;
}

int output_check_inputs(const struct job *job, const char *path, bool is_folder, struct err *err)
{
	for (size_t i = 0; i < job->nr_inputs; i++) {
		if (replaces(path, is_folder, job->inputs[i]))
			return err_set(err, ERR_USAGE,
				       "%s is an input, too: use another name for the output",
				       path);
	}
	return 0;
}

static bool is_split(const struct job *job, const struct writer_ops *ops)
{
	return job->options->timeline.split && option_in(ops->options, "split");
}

static int check_outputs(const struct job *job, const struct output *outputs, size_t nr,
			 struct err *err)
{
	unsigned nr_stdout = 0;

	for (size_t i = 0; i < nr; i++) {
		if (output_check_inputs(job, outputs[i].path, outputs[i].ops->folder, err) < 0)
			return -1;
		if (strcmp(outputs[i].path, "-") != 0)
			continue;
		if (is_split(job, outputs[i].ops))
			return err_set(err, ERR_USAGE,
				       "--split cannot write to stdout: use -o FILE");
		if (outputs[i].ops->folder)
			return err_set(err, ERR_USAGE,
				       "%s is a folder, which cannot go to stdout: use -o DIR",
				       outputs[i].ops->name);
		if (!(outputs[i].ops->needs & WRITER_TEXT) && isatty(STDOUT_FILENO))
			return err_set(err, ERR_USAGE,
				       "cannot write %s to a terminal: use -o FILE or a pipe",
				       outputs[i].ops->name);
		if (nr_stdout++)
			return err_set(err, ERR_USAGE, "only one output can be stdout");
	}
	return 0;
}

static int open_output(const char *path, const struct output *output, struct file *file,
		       struct err *err)
{
	const struct writer_ops *ops = output->ops;
	bool need_seek = ops->needs & WRITER_SEEK;
	/* As perf does it: perf.data says what ran in the target, call by call. */
	bool is_private = ops->needs & WRITER_SYMBOLS;

	if (ops->folder)
		return folder_open(&file->folder, path, ops->folder, err);
	if ((is_private ? out_open_private(&file->out, path, need_seek, err)
			: out_open(&file->out, path, need_seek, err)) < 0)
		return -1;
	file->out.plain = !(ops->needs & WRITER_PLAIN) && isatty(file->out.fd);
	return 0;
}

static int commit_output(struct file *file, struct err *err)
{
	if (file->writer.folder)
		return folder_commit(&file->folder, err);
	return out_commit(&file->out, err);
}

static void abandon_output(struct file *file)
{
	out_abandon(&file->out);
	folder_abandon(&file->folder);
}

int output_try(const struct output *output, struct err *err)
{
	struct file file = { 0 };
	int ret = open_output(output->path, output, &file, err);

	abandon_output(&file);
	return ret;
}

static int next_part(struct writer *w);

static int open_writer(struct file *file, const char *path)
{
	const struct writer_ops *ops = file->output->ops;
	struct job *job = file->job;

	file->out.fd = -1;
	file->writer = (struct writer){
		.ops = ops,
		.input = job_name(job),
		.world = &job->world,
		.out = ops->folder ? NULL : &file->out,
		.folder = ops->folder ? &file->folder : NULL,
		.next_part = file->part ? next_part : NULL,
		.priv = xcalloc(1, ops->priv_size),
	};
	if (option_apply(ops->options, file->writer.priv, job->options->given, &job->err) < 0 ||
	    open_output(path, file->output, file, &job->err) < 0)
		return -1;
	file->opened = true;
	if (ops->open && ops->open(&file->writer) < 0) {
		job->err = file->writer.err;
		return -1;
	}
	return 0;
}

static int open_part(struct file *file)
{
	struct output *output = file->output;

	file->part = output_part(output->path, ++output->parts);
	if (output_check_inputs(file->job, file->part, output->ops->folder, &file->job->err) < 0)
		return -1;
	return open_writer(file, file->part);
}

static int open_file(struct job *job, struct output *output, struct file *file)
{
	file->job = job;
	file->output = output;
	if (is_split(job, output->ops))
		return open_part(file);
	return open_writer(file, output->path);
}

static void close_file(struct file *file)
{
	const struct writer_ops *ops = file->writer.ops;

	abandon_output(file);
	if (file->opened && ops->close)
		ops->close(&file->writer);
	free(file->writer.priv);
	free(file->part);
}

static int next_part(struct writer *w)
{
	struct file *file = (struct file *)((char *)w - offsetof(struct file, writer));
	struct job *job = file->job;
	struct output *output = file->output;
	struct written written;
	int ret;

	if (w->ops->finish && w->ops->finish(w) < 0)
		return -1;
	if (commit_output(file, &w->err) < 0)
		return -1;
	written = w->written;
	close_file(file);
	*file = (struct file){ .job = job, .output = output };
	ret = open_part(file);
	w->written = written;
	w->err = job->err;
	return ret;
}

/* An earlier run may have written more parts than this one, which then look like parts of this one. */
static void warn_of_old_parts(const struct output *output)
{
	char *next = output_part(output->path, output->parts + 1);

	if (access(next, F_OK) == 0)
		log_warn("%s is left over from an earlier run, not part of this timeline", next);
	free(next);
}

struct conversion {
	struct job *job;
	struct output *outputs;
	struct file *files;
	struct writer **to;
	size_t nr;
	struct strtab strings;
};

static int open_files(struct conversion *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		if (open_file(c->job, &c->outputs[i], &c->files[i]) < 0)
			return -1;
		c->to[i] = &c->files[i].writer;
	}
	return 0;
}

static int commit_files(struct conversion *c)
{
	struct job *job = c->job;

	for (size_t i = 0; i < c->nr; i++) {
		if (commit_output(&c->files[i], &job->err) < 0)
			return -1;
	}
	for (size_t i = 0; i < c->nr; i++) {
		if (c->files[i].part)
			warn_of_old_parts(&c->outputs[i]);
	}
	if (job->buildid_cache)
		return fill_cache(job, job->buildid_cache);
	for (size_t i = 0; i < c->nr; i++) {
		if (c->outputs[i].ops->needs & WRITER_SYMBOLS)
			help_perf(job, &c->outputs[i]);
	}
	return 0;
}

/* *ret: 0, or -1 with job->err set. */
static struct conversion *open_conversion(struct job *job, struct output *outputs, size_t nr,
					  int *ret)
{
	struct conversion *c = xcalloc(1, sizeof(*c));

	*c = (struct conversion){ .job = job,
				  .outputs = outputs,
				  .files = xcalloc(nr, sizeof(*c->files)),
				  .to = xcalloc(nr, sizeof(struct writer *)),
				  .nr = nr };
	strtab_init(&c->strings);
	*ret = check_outputs(job, outputs, nr, &job->err);
	if (*ret == 0)
		*ret = job_open(job, &c->strings);
	if (*ret == 0)
		*ret = open_files(c);
	return c;
}

/* Commits the outputs if all went well. Returns the exit code. */
static int close_conversion(struct conversion *c, int ret)
{
	if (ret == 0)
		ret = commit_files(c);
	ret = job_result(c->job, ret);
	for (size_t i = 0; i < c->nr && c->files[i].job; i++)
		close_file(&c->files[i]);
	free(c->files);
	free(c->to);
	job_release(c->job);
	strtab_release(&c->strings);
	free(c);
	return ret;
}

int convert_files(struct job *job, struct output *outputs, size_t nr)
{
	int ret;
	struct conversion *c = open_conversion(job, outputs, nr, &ret);

	if (ret == 0)
		ret = job_run(job, c->to, nr);
	return close_conversion(c, ret);
}

struct conversion *convert_begin(struct job *job, struct output *outputs, size_t nr, int *ret)
{
	struct conversion *c = open_conversion(job, outputs, nr, ret);

	if (*ret == 0)
		job_begin(job, c->to, nr);
	return c;
}

int convert_end(struct conversion *c, int ret)
{
	if (c->job->nr_to)
		ret = job_end(c->job, ret);
	return close_conversion(c, ret);
}

int convert_file(struct job *job, const struct writer_ops *ops, const char *path)
{
	return convert_files(job, &(struct output){ .path = path, .ops = ops }, 1);
}

int convert_into(struct job *job, const struct writer_ops *ops, struct out *out)
{
	struct writer writer = {
		.ops = ops, .input = job_name(job), .world = &job->world, .out = out
	};
	struct strtab strings;
	bool opened;
	int ret;

	strtab_init(&strings);
	writer.priv = xcalloc(1, ops->priv_size);
	ret = job_open(job, &strings);
	if (ret == 0)
		ret = option_apply(ops->options, writer.priv, job->options->given, &job->err);
	opened = ret == 0;
	if (opened && ops->open && ops->open(&writer) < 0) {
		job->err = writer.err;
		ret = -1;
	}
	if (ret == 0)
		ret = job_run(job, (struct writer *[]){ &writer }, 1);
	if (ret == 0)
		out_flush(out);
	if (ret == 0 && out_failed(out))
		ret = out_error(out->path, out->failed, &job->err);
	ret = job_result(job, ret);
	if (opened && ops->close)
		ops->close(&writer);
	free(writer.priv);
	job_release(job);
	strtab_release(&strings);
	return ret;
}
