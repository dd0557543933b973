// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kern-profile: drop-in for Maestro's aggregator: PROFILE and the kernel's ELF in, cpu.svg or a
 * mem-ALLOCATOR.svg for each allocator out, into the current directory.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd.h"
#include "model/source.h"
#include "pass/tally.h"
#include "write/flame_svg.h"

#define MAX_PICTURES 64 /* names come from the data: if it is damaged, there may be any number */
#define MAX_NAME 200

static const char usage[] =
	"Usage: kern-profile [--alloc] PROFILE ELF\n"
	"\n"
	"Draw flame graphs of a Maestro kernel into the current directory: cpu.svg, or with "
	"--alloc one\n"
	"mem-ALLOCATOR.svg for each allocator, with the bytes that were never freed.\n"
	"\n"
	"  PROFILE    output of the QEMU plugin; with --alloc, data that the kernel's memtrace "
	"sent\n"
	"  ELF        the kernel with its symbols\n"
	"\n"
	"Options:\n"
	"      --alloc      read PROFILE as a memtrace\n"
	"  -h, --help       Print help\n"
	"  -V, --version    Print version\n"
	"\n"
	"Example:\n"
	"  kern-profile raw-data target/x86/debug/maestro && firefox cpu.svg\n"
	"\n"
	"kern-profile is kscope under another name; see kscope flame --help and kscope alloc "
	"--help for\n"
	"more options.\n";

/* As in the original tool. */
static const struct tally_options original = { .no_inline = true };

struct pictures {
	struct tally *tallies; /* by source */
	size_t nr, cap;
};

static int pictures_put(struct writer *w, const struct event *ev)
{
	struct pictures *p = w->priv;

	if (ev->kind == EVENT_SOURCE && ev->source.id >= p->nr) {
		GROW(p->tallies, ev->source.id + 1, p->cap);
		while (p->nr <= ev->source.id)
			tally_init(&p->tallies[p->nr++], w->world, tally_by_options(&original));
	}
	if (ev->kind == EVENT_SAMPLE && ev->sample.source < p->nr)
		tally_add(&p->tallies[ev->sample.source], ev);
	return 0;
}

static const struct writer_ops pictures_ops = {
	.name = "pictures",
	.takes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE),
	.put = pictures_put,
};

/* The name comes from the data: it must not lead out of the current folder. */
static char *mem_name(const char *allocator)
{
	char *name = xasprintf("mem-%.*s.svg", MAX_NAME, allocator);

	for (char *c = name; *c; c++) {
		if (*c == '/' || (unsigned char)*c < ' ')
			*c = '_';
	}
	return name;
}

static int draw(struct tally *tally, const char *name, bool alloc, struct err *err)
{
	struct out out = { .fd = -1 };
	struct flame_style style = {
		.title = alloc ? "Memory flame graph" : "CPU flame graph",
		.unit = tally_unit(tally, alloc),
		.palette = alloc ? FLAME_MEM : FLAME_HOT,
	};
	struct tally_view view = { .options = &original, .weight = alloc };
	struct tree tree;

	if (out_open(&out, name, false, err) < 0)
		return -1;
	tree_init(&tree, tally->world->strings);
	tally_tree(tally, &tree, &view);
	tree_finish(&tree);
	flame_svg(&out, &tree, &style);
	tree_release(&tree);
	return out_commit(&out, err);
}

static int draw_all(struct pictures *p, bool alloc, struct err *err)
{
	for (uint32_t source = 1; source < p->nr; source++) {
		struct world *world = p->tallies[source].world;
		char *name;
		int ret;

		if (source > MAX_PICTURES) {
			log_warn("drew only the first %d of %zu allocators", MAX_PICTURES,
				 p->nr - 1);
			break;
		}
		name = alloc ? mem_name(str_text(world->strings, source_name(world, source)))
			     : xstrdup("cpu.svg");
		ret = draw(&p->tallies[source], name, alloc, err);
		free(name);
		if (ret < 0)
			return -1;
	}
	return 0;
}

static int run(const char *profile, const char *elf, bool alloc)
{
	struct args args = {
		.inputs = &profile,
		.nr_inputs = 1,
		.reader = alloc ? "memtrace" : "maestro",
		.options = { .kernel = elf },
	};
	struct pictures pictures = { 0 };
	struct writer writer = { .ops = &pictures_ops, .priv = &pictures };
	struct strtab strings;
	struct job job;
	int ret;

	args_job(&args, &job);
	writer.world = &job.world;
	strtab_init(&strings);
	ret = job_open(&job, &strings);
	if (ret == 0)
		ret = job_run(&job, (struct writer *[]){ &writer }, 1);
	if (ret == 0)
		ret = draw_all(&pictures, alloc, &job.err);
	ret = job_result(&job, ret);
	for (size_t i = 0; i < pictures.nr; i++)
		tally_release(&pictures.tallies[i]);
	free(pictures.tallies);
	job_release(&job);
	strtab_release(&strings);
	return ret;
}

/* Without the kernel's symbols there is nothing to draw, so that is an error, not a warning. */
static bool kernel_usable(const char *elf)
{
	struct err err = { 0 };
	struct symfile *symfile = symfile_open(elf, NULL, &err);

	if (!symfile)
		log_error("%s", err.msg);
	symfile_close(symfile);
	return symfile;
}

int cmd_kernprofile(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "alloc", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	bool alloc = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "hV", longs, NULL)) != -1) {
		switch (opt) {
		case 'a': alloc = true; break;
		case 'h': fputs(usage, stdout); return 0;
		case 'V': printf("kern-profile (kscope %s)\n", KSCOPE_VERSION); return 0;
		default: fputs(usage, stderr); return ERR_USAGE;
		}
	}
	if (argc - optind != 2) {
		log_error("kern-profile expects PROFILE and ELF, and no other arguments");
		fputs(usage, stderr);
		return ERR_USAGE;
	}
	if (!kernel_usable(argv[optind + 1]))
		return ERR_INPUT;
	return run(argv[optind], argv[optind + 1], alloc);
}
