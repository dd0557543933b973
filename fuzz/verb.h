/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verb: runs a verb of kscope on files in a folder in memory, as main() does, with --verify. Its messages and its
 * standard output are dropped, unless KSCOPE_FUZZ_LOUD is set. An exit code of ERR_OUTPUT is a finding: --verify has
 * found a bug.
 */
#ifndef KSCOPE_FUZZ_VERB_H
#define KSCOPE_FUZZ_VERB_H

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd.h"
#include "tests/unit/unwind_scene.h"

#define VERB_WORDS 20
#define VERB_KERNEL 0xffffffff81000000 /* where the binaries are linked */
#define VERB_USER 0x400000

static char verb_folder[64];
static int verb_out = -1; /* where its standard output goes */

/* At the end of the process. */
static void remove_verb_folder(void)
{
	char *command = xasprintf("rm -rf %s", verb_folder);

	if (system(command) != 0)
		fprintf(stderr, "cannot remove %s\n", verb_folder);
	free(command);
}

static void enter_verb_folder(void)
{
	bool loud = getenv("KSCOPE_FUZZ_LOUD");

	if (*verb_folder)
		return;
	snprintf(verb_folder, sizeof(verb_folder), "/dev/shm/kscope-fuzz-%ld", (long)getpid());
	if (mkdir(verb_folder, 0700) < 0)
		abort();
	atexit(remove_verb_folder);
	verb_out = loud ? dup(STDOUT_FILENO) : open("/dev/null", O_WRONLY | O_CLOEXEC);
	setenv("KSCOPE_VERIFY", "1", true);
}

/* The path of a file in the folder, valid until the end. */
static const char *verb_path(const char *name)
{
	static char paths[8][100];
	static unsigned nr;
	char *path = paths[nr++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", verb_folder, name);
	return path;
}

static void verb_write(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
}

/* Moves a file of another file system into the folder. */
static inline void verb_move(const char *from, const char *to)
{
	char *command = xasprintf("mv %s %s", from, to);

	if (system(command) != 0)
		abort();
	free(command);
}

/* The kernel and the program of unwind_scene.h. */
static void write_binaries(void)
{
	static bool done;
	char *kernel, *program;

	if (done)
		return;
	done = true;
	enter_verb_folder();
	kernel = write_kernel(EM_X86_64, VERB_KERNEL, NULL, 0);
	program = write_kernel(EM_X86_64, VERB_USER, NULL, 0);
	verb_move(kernel, verb_path("kernel"));
	verb_move(program, verb_path("program"));
	free(kernel);
	free(program);
}

static int verb_try(const struct command *verb, const char *const *words, int nr)
{
	char *argv[VERB_WORDS + 1] = { 0 };
	int code = ERR_USAGE;
	struct args args;

	argv[0] = (char *)verb->name;
	for (int i = 0; i < nr; i++)
		argv[1 + i] = (char *)words[i];
	optind = 0;
	if (args_parse(&args, verb, nr + 1, argv, &code) == 0) {
		if (!getenv("KSCOPE_FUZZ_LOUD"))
			log_level = -1;
		code = args.command->run(&args);
	}
	args_release(&args);
	return code;
}

/* Splits options at spaces, and adds them. */
static int add_words(const char **words, int nr, char *options)
{
	char *rest = options, *word;

	while (nr < VERB_WORDS && (word = strtok_r(rest, " ", &rest)))
		words[nr++] = word;
	return nr;
}

/* Runs it with the words, which say what it reads and writes, and with the options, or without these if it refuses them. */
static void run_verb(const struct command *verb, const char *words, const char *options)
{
	const char *all[VERB_WORDS];
	char *first = xstrdup(words), *second = xstrdup(options);
	int nr_words = add_words(all, 0, first), nr = add_words(all, nr_words, second), code;
	int out = dup(STDOUT_FILENO);

	enter_verb_folder();
	fflush(stdout);
	dup2(verb_out, STDOUT_FILENO);
	log_level = getenv("KSCOPE_FUZZ_LOUD") ? 2 : -1;
	code = verb_try(verb, all, nr);
	if (code == ERR_USAGE && nr > nr_words)
		code = verb_try(verb, all, nr_words);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	free(first);
	free(second);
	if (code == ERR_OUTPUT)
		abort();
}

#endif
