// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"

/* Tools that kscope replaces: it acts as one of them if called by its name, or with it as verb. */
static const struct drop_in {
	const char *name, *about;
	int (*run)(int argc, char **argv);
} drop_ins[] = {
	{ "toperf", "Convert the seL4 profiler's samples.json to perf.data", cmd_toperf },
	{ "netconn", "Receive samples of the seL4 profiler over the network, into samples.json",
	  cmd_netconn },
	{ "kern-profile", "Draw Maestro's raw data as cpu.svg, memtrace as mem-ALLOCATOR.svg",
	  cmd_kernprofile },
	{ "kprof2perf", "Convert the Akaros profiler's kpdata to perf.data", cmd_kprof2perf },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void help(FILE *to)
{
	fprintf(to,
		"kscope %s: profile kernels that perf cannot reach\n"
		"\n"
		"Usage: kscope COMMAND [OPTIONS]\n"
		"\n",
		KSCOPE_VERSION);
	for (size_t i = 0; commands[i]; i++)
		fprintf(to, "  %-10s %.*s\n", commands[i]->name,
			(int)strcspn(commands[i]->about, ".\n"), commands[i]->about);
	fprintf(to, "\n"
		    "Drop-ins for older tools, also installed under their own names:\n");
	for (size_t i = 0; i < COUNT(drop_ins); i++)
		fprintf(to, "  %-12s %s\n", drop_ins[i].name, drop_ins[i].about);
	fprintf(to, "\n"
		    "Examples:\n"
		    "  kscope report samples.json --build-dir build\n"
		    "  kscope flame samples.json --build-dir build -o flame.svg\n"
		    "  kscope convert samples.json --build-dir build -o perf.data && perf report\n"
		    "\n"
		    "For more, see kscope COMMAND --help. Exit codes: 0 success; 1 success, but "
		    "part of the\n"
		    "input was damaged or missing; 2 wrong command line; 3 unusable input; 4 "
		    "output failed;\n5 kscope diff found something slower.\n");
}

static const struct drop_in *find_drop_in(const char *name)
{
	for (size_t i = 0; i < COUNT(drop_ins); i++) {
		if (!strcmp(drop_ins[i].name, name))
			return &drop_ins[i];
	}
	return NULL;
}

static int run_verb(const char *name, int argc, char **argv)
{
	const struct drop_in *drop_in = find_drop_in(name);

	if (drop_in)
		return drop_in->run(argc, argv);
	for (size_t i = 0; commands[i]; i++) {
		struct args args;
		int code;

		if (strcmp(commands[i]->name, name) != 0)
			continue;
		if (args_parse(&args, commands[i], argc, argv, &code) == 0)
			code = args.command->run(&args);
		args_release(&args);
		return code;
	}
	log_error("unknown command: %s", name);
	help(stderr);
	return ERR_USAGE;
}

/*
 * A file that kscope opens must not get the number of a closed standard descriptor: messages would go into it.
 * These take the numbers, and fail as the closed ones would: stdin cannot be read, the others not be written.
 */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 ||
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd)
			continue;
		dprintf(STDERR_FILENO, "kscope: /dev/null: %s\n", strerror(errno));
		_exit(ERR_OUTPUT);
	}
}

/* A failed write to stdout is an error, too: kscope info > /dev/full */
static int flush_stdout(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	log_error("cannot write to stdout");
	return ERR_OUTPUT;
}

int main(int argc, char **argv)
{
	const char *self = text_last_part(argv[0]);

	occupy_standard_descriptors();
	mem_watch_libraries();
	signal(SIGXFSZ, SIG_IGN); /* write(2) then returns an error at the file size limit */
	if (find_drop_in(self))
		return flush_stdout(run_verb(self, argc, argv));
	if (argc < 2) {
		help(stderr);
		return ERR_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("kscope %s\n", KSCOPE_VERSION);
		return flush_stdout(0);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		if (argc > 2) {
			char *again[] = { argv[2], (char[]){ "--help" }, NULL };

			return flush_stdout(run_verb(argv[2], 2, again));
		}
		help(stdout);
		return flush_stdout(0);
	}
	return flush_stdout(run_verb(argv[1], argc - 1, argv + 1));
}
