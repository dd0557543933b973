// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_run: a whole run, from a reader through all stages to one writer or to all, with --verify: it must not find a
 * mistake. The first byte of the input selects the reader, the second one the writer, and the third one the
 * options; the rest is the file. fuzz/run_seeds.py makes such inputs of the golden ones.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 3
#define MAX_WRITERS 24

struct output {
	struct writer writer;
	struct out out;
	bool opened;
};

static size_t count_readers(void)
{
	size_t nr = 0;

	while (readers[nr])
		nr++;
	return nr;
}

/* Those of files; the writer of folders has tests of its own. */
static size_t list_writers(const struct writer_ops **all)
{
	size_t nr = 0;

	for (size_t i = 0; writers[i] && nr < MAX_WRITERS; i++) {
		if (!writers[i]->folder)
			all[nr++] = writers[i];
	}
	return nr;
}

static void open_output(struct output *o, const struct writer_ops *ops, struct world *world)
{
	struct err err = { 0 };

	o->writer = (struct writer){
		.ops = ops, .world = world, .out = &o->out, .priv = xcalloc(1, ops->priv_size)
	};
	if (out_open(&o->out, "/dev/shm/kscope-fuzz", ops->needs & WRITER_SEEK, &err) < 0)
		abort();
	o->opened = !ops->open || ops->open(&o->writer) == 0;
}

static void close_output(struct output *o)
{
	out_abandon(&o->out);
	if (o->opened && o->writer.ops->close)
		o->writer.ops->close(&o->writer);
	free(o->writer.priv);
}

static void choose(struct options *options, struct selection *selection, uint8_t choice)
{
	options->verify = true;
	options->timeline.axis = choice & 1 ? AXIS_INSTRUCTIONS : AXIS_TIME;
	options->timeline.split = choice & 2 ? 1000 : 0;
	options->timeline.inlines = choice & 4;
	if (choice & 8) {
		selection->timed = true;
		selection->relative = choice & 16;
		selection->from = 100;
		selection->until = 1000000;
	}
	selection->level = choice & 32 ? LEVEL_USER : choice & 64 ? LEVEL_KERNEL : LEVEL_ALL;
}

static void run(struct job *job, const struct writer_ops *const *ops, size_t nr)
{
	struct output outputs[MAX_WRITERS] = { 0 };
	struct writer *to[MAX_WRITERS];
	bool opened = true;

	for (size_t i = 0; i < nr; i++) {
		open_output(&outputs[i], ops[i], &job->world);
		to[i] = &outputs[i].writer;
		opened &= outputs[i].opened;
	}
	if (opened && job_run(job, to, nr) < 0 && !strncmp(job->err.msg, "--verify", 8))
		abort();
	for (size_t i = 0; i < nr; i++)
		close_output(&outputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct writer_ops *all[MAX_WRITERS];
	size_t nr = list_writers(all), only;
	struct options options = { 0 };
	struct strtab strings;
	struct job job = { .options = &options };
	struct in in;

	if (size < HEAD)
		return 0;
	log_level = -1;
	job.reader = readers[data[0] % count_readers()]->name;
	only = data[1] % (nr + 1);
	choose(&options, &job.selection, data[2]);
	strtab_init(&strings);
	in_open_memory(&in, "fuzz", data + HEAD, size - HEAD);
	if (job_open_in(&job, &strings, &in) == 0)
		run(&job, only < nr ? &all[only] : all, only < nr ? 1 : nr);
	job_release(&job);
	strtab_release(&strings);
	return 0;
}
