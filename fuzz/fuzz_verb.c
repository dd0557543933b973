// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_verb: a verb with options on one or two files of any format. The first byte of the input selects the verb, the
 * second one the output, and each of the next four an option; the rest is the file. If the first byte is in the upper
 * half, the file is cut in two, and both parts are inputs; otherwise, kscope diff compares the file with itself. Bits 4
 * to 6 select the names of the files: with most names, the file is also cut in two, and kscope finds the second part by
 * itself. fuzz/verb_seeds.py makes such inputs from the golden ones.
 */
#include <errno.h>

#include "base/buf.h"
#include "fuzz/verb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 6

static const struct command *const verbs[] = { &cmd_report,  &cmd_calls, &cmd_alloc,   &cmd_info,
					       &cmd_insn,    &cmd_flame, &cmd_convert, &cmd_trace,
					       &cmd_archive, &cmd_diff,	 &cmd_sql };

/* Of each verb, some are wrong: then it runs without any. */
static const char *const options[] = {
	"",
	"--json",
	"--by=binary",
	"--by=task --sort=total",
	"--by=cpu --sort=name",
	"--limit=0",
	"--tree",
	"--no-tree --min-percent=5",
	"--inverted",
	"--lines",
	"--no-inline",
	"--root=pid",
	"--root=none --weight",
	"--root=tid --samples",
	"--time=0.000001,+1",
	"--time=0,0.001",
	"--rel=0,0.0001",
	"--rel=0.00001,1",
	"--cpu=0,2-3",
	"--pid=1,100",
	"--tid=1,101",
	"--level=user",
	"--level=kernel",
	"--comm=a --comm=main",
	"--event=cycles",
	"--unwind=fp",
	"--unwind=cfi",
	"--no-split",
	"--value=total",
	"--value=count",
	"--value=peak",
	"--live-over-time=7",
	"--function=main",
	"--between main other",
	"--syscalls --histogram",
	"--traps --sort=calls",
	"--irqs-off",
	"--histogram --sort=max",
	"--instructions --sort=name",
	"--axis=insns",
	"--axis=cycles --inlines",
	"--inlines",
	"--split=0.0001",
	"--start=main --end=other",
	"--addresses",
	"--syntax=intel",
	"--icicle --palette=by-binary --width=400",
	"--palette=kernel-user --title=T --subtitle=S --notes=N",
	"--palette=mem --min-width=1",
	"--event-name=mine --tick-hz=1000",
	"--slide=0x200000",
	"--absolute --sort=ratio",
	"--total --threshold=0",
	"--before=@/input",
	"--before=@/second --before=@/second",
	"--build-dir=@ --symfs=@",
	"--kernel=@/kernel",
	"--kernel=@/kernel --elf=@/program",
	"--elf=1=@/program",
	"--csv",
	"--tsv",
};

static const char *const outputs[] = { "perf.data", "folded",	"svg",	"pftrace",  "fxt.gz",
				       "uftrace",   "json.zst", "dump", "svg.gz",   "folded.zst",
				       "tar",	    "tar.gz",	"db",	"sqlite.gz" };

/* Of sql. Words end at spaces. */
static const char *const statements[] = {
	"SELECT/**/*/**/FROM/**/function_totals",  "SELECT/**/*/**/FROM/**/call_durations",
	"SELECT/**/*/**/FROM/**/allocations_live", "SELECT/**/*/**/FROM/**/folded",
	"SELECT/**/*/**/FROM/**/samples_named",	   "PRAGMA/**/integrity_check",
	"SELECT/**/*/**/FROM/**/slices_named",	   "PRAGMA/**/foreign_key_check",
};

/* The input, and what kscope looks for beside it or in --build-dir. */
static const struct {
	const char *input, *second;
} files[] = {
	{ "input", "second" },
	{ "input.bin", "input.summary.txt" },
	{ "folder/data", "folder/data.0" },
	{ "folder/data", "folder/kcore_dir/kallsyms" },
	{ "folder/data", "folder/kcore_dir/kcore" },
	{ "input", "sample_header.json" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* In an option, '@' is the folder. */
static void add_option(struct buf *to, const char *option)
{
	buf_addc(to, ' ');
	for (; *option; option++)
		if (*option == '@')
			buf_adds(to, verb_folder);
		else
			buf_addc(to, *option);
}

static bool writes(const struct command *verb)
{
	return verb != &cmd_report && verb != &cmd_calls && verb != &cmd_alloc &&
	       verb != &cmd_info && verb != &cmd_diff && verb != &cmd_sql;
}

static void make_folders(void)
{
	if ((mkdir(verb_path("folder"), 0700) < 0 ||
	     mkdir(verb_path("folder/kcore_dir"), 0700) < 0) &&
	    errno != EEXIST)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct command *verb;
	const char *first, *second;
	struct buf words = { 0 }, chosen = { 0 };
	size_t cut, layout;
	bool both;

	if (size < HEAD)
		return 0;
	write_binaries();
	make_folders();
	verb = verbs[data[0] % 16 % COUNT(verbs)];
	layout = data[0] / 16 % 8 % COUNT(files);
	first = verb_path(files[layout].input);
	second = verb_path(files[layout].second);
	both = data[0] & 128;
	cut = both || layout ? HEAD + (size - HEAD) / 2 : size;
	verb_write(first, data + HEAD, cut - HEAD);
	verb_write(second, data + cut, size - cut);
	buf_addf(&words, "%s %s", first, both ? second : verb == &cmd_diff ? first : "");
	if (writes(verb))
		buf_addf(&words, " -o %s.%s", verb_path("out"), outputs[data[1] % COUNT(outputs)]);
	else if (verb == &cmd_sql)
		buf_addf(&words, " %s", statements[data[1] % COUNT(statements)]);
	for (unsigned i = 2; i < HEAD; i++)
		add_option(&chosen, options[data[i] % COUNT(options)]);
	run_verb(verb, words.data, chosen.data);
	unlink(second);
	buf_release(&words);
	buf_release(&chosen);
	return 0;
}
