// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QEMU lets the host execute the programs that a program starts with execve(). To trace them as well, the plugin calls
 * execve() itself: QEMU, with the options that this QEMU has, and then the other program.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "pt_parts.h"

#define WORDS_MAX 131072 /* arguments, or variables of the environment */
#define PATH_SIZE 4096
#define SYS_EXECVEAT 322
#define CWD ((uint64_t)(int64_t)AT_FDCWD)

static char emulator[PATH_SIZE];
static char *command; /* QEMU's own command line, words that end with 0 */
static size_t nr_own; /* words up to the plugin's options, which are for every program */

const char *pt_comm = "program";

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static char *after(char *word)
{
	return word + strlen(word) + 1;
}

/* The program follows the plugins and their options, and perhaps -0 and its name. */
static void find_program(const char *end)
{
	char *word = command;
	size_t nr = 0;

	for (; word < end; word = after(word), nr++) {
		if (!strcmp(word, "-plugin"))
			nr_own = nr + 2;
		else if (nr_own && nr == nr_own)
			break;
	}
	if (!strcmp(word, "-0"))
		word = after(after(word));
	if (word < end)
		pt_comm = base_name(word);
}

int pt_exec_open(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t size = 4 << 20;
	ssize_t have, length = readlink("/proc/self/exe", emulator, sizeof(emulator) - 1);

	command = malloc(size);
	have = fd >= 0 && command ? read(fd, command, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (have <= 0) {
		api_say("/proc/self/cmdline: %m");
		return -1;
	}
	command[have] = 0;
	emulator[length > 0 ? length : 0] = 0;
	find_program(command + have);
	return 0;
}

/* Whether QEMU can run it. Fills in the first line of a script; it is empty for an ELF. */
static bool can_run(const char *path, char *first, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	ssize_t have = -1;
	Elf64_Ehdr elf;

	first[0] = 0;
	if (fd >= 0 && access(path, X_OK) == 0 && fstat(fd, &stat) == 0 &&
	    !(stat.st_mode & (S_ISUID | S_ISGID)))
		have = read(fd, first, size - 1);
	if (fd >= 0)
		close(fd);
	if (have < 0)
		return false;
	first[have] = 0;
	if (have >= 2 && !memcmp(first, "#!", 2)) {
		first[strcspn(first, "\n")] = 0;
		return true;
	}
	memcpy(&elf, first, sizeof(elf));
	first[0] = 0;
	return (size_t)have >= sizeof(elf) && !memcmp(elf.e_ident, ELFMAG, SELFMAG) &&
	       elf.e_ident[EI_CLASS] == ELFCLASS64 && elf.e_machine == EM_X86_64;
}

struct words {
	char **all;
	size_t nr;
};

static void add(struct words *words, const void *word)
{
	words->all[words->nr++] = (char *)word;
	words->all[words->nr] = NULL;
}

/* Adds the strings of an array of the program. */
static bool add_guest(struct words *words, uint64_t array, size_t skip)
{
	for (size_t i = 0; array && i < WORDS_MAX; i++) {
		uint64_t word;

		if (!pt_guest_read(array + i * sizeof(word), &word, sizeof(word)))
			return false;
		if (!word)
			return true;
		if (i >= skip)
			add(words, pt_guest(word));
	}
	return !array;
}

static void add_own(struct words *words)
{
	const char *word = command;

	for (size_t i = 0; i < nr_own; i++, word += strlen(word) + 1)
		add(words, word);
}

/* The interpreter of a script, and its argument, if it has one. */
static void add_interpreter(struct words *words, char *line)
{
	char *name = line + 2 + strspn(line + 2, " \t");
	char *argument = name + strcspn(name, " \t");

	if (*argument)
		*argument++ = 0;
	argument += strspn(argument, " \t");
	add(words, name);
	if (*argument)
		add(words, argument);
}

static bool read_path(const struct api_syscall *call, char path[PATH_SIZE], uint64_t *argv,
		      uint64_t *envp)
{
	bool at = call->number == SYS_EXECVEAT;
	const uint64_t *from = call->args + at;
	char name[PATH_SIZE - 64];

	*argv = from[1];
	*envp = from[2];
	if (!pt_guest_text(from[0], name, sizeof(name)))
		return false;
	if (!at || name[0] == '/' || call->args[0] == CWD)
		snprintf(path, PATH_SIZE, "%s", name);
	else
		snprintf(path, PATH_SIZE, "/proc/self/fd/%d%s%s", (int)call->args[0],
			 name[0] ? "/" : "", name);
	return true;
}

/* QEMU takes the words after its own options for the program, or the name that it gets, and its arguments. */
static bool add_program(struct words *argv, char *path, char *script, uint64_t guest_argv)
{
	uint64_t name = 0;

	if (script[0]) {
		add_interpreter(argv, script);
	} else if (guest_argv && pt_guest_read(guest_argv, &name, sizeof(name)) && name) {
		add(argv, "-0");
		add(argv, pt_guest(name));
	}
	add(argv, path);
	return add_guest(argv, guest_argv, 1);
}

void pt_exec(const struct api_syscall *call)
{
	char path[PATH_SIZE], script[PATH_SIZE], other[PATH_SIZE];
	struct words argv = { calloc(WORDS_MAX + 64, sizeof(char *)), 0 };
	struct words envp = { calloc(WORDS_MAX + 64, sizeof(char *)), 0 };
	uint64_t guest_argv, guest_envp;

	if (nr_own && argv.all && envp.all && read_path(call, path, &guest_argv, &guest_envp) &&
	    can_run(path, script, sizeof(script))) {
		add_own(&argv);
		if (add_program(&argv, path, script, guest_argv) &&
		    add_guest(&envp, guest_envp, 0) &&
		    (!script[0] || can_run(argv.all[nr_own], other, sizeof(other)))) {
			pt_pause();
			execve(emulator, argv.all, envp.all);
		}
	}
	free(argv.all);
	free(envp.all);
}
