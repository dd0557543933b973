// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/emulate.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/leftover.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/emulate_file.h"
#include "record/files.h"
#include "record/guest.h"
#include "record/session.h"
#include "record/line.h"
#include "record/refusal.h"
#include "wire/emulate.h"

#define QEMU "qemu-x86_64"
#define INTERPRETERS_MAX 4 /* of a script whose interpreter is a script, as in Linux */
#define FIRST_LINE 256	   /* bytes of a script that Linux looks at */

struct run {
	const struct emulation *asked;
	char *qemu, *plugin;
	char *program; /* the ELF, or the script's interpreter */
	char *parts;   /* the folder for the plugin */
	char *code;    /* and the folder for copies of code, beside the output */
	struct buf plugin_text;
	const char **words; /* QEMU's command line */
	size_t nr, cap;
	char *owned[2 * INTERPRETERS_MAX]; /* words of first lines */
	size_t nr_owned;
	struct out out;
	struct guest guest;
	struct emulate_sums sums;
};

/* ---- programs ---- */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As a shell finds it; NULL: not there. The caller frees it. */
static char *find_in_path(const char *name)
{
	const char *at = getenv("PATH");

	if (strchr(name, '/'))
		return is_program(name) ? xstrdup(name) : NULL;
	for (at = at ? at : "/usr/bin:/bin"; *at; at += strcspn(at, ":"), at += *at == ':') {
		int length = (int)strcspn(at, ":");
		char *path =
			length ? xasprintf("%.*s/%s", length, at, name) : xasprintf("./%s", name);

		if (is_program(path))
			return path;
		free(path);
	}
	return NULL;
}

static int cannot_find(const char *name, struct err *err)
{
	if (!strchr(name, '/'))
		return err_set(err, ERR_INPUT, "%s: not found in $PATH", name);
	if (access(name, F_OK) < 0)
		return err_set(err, ERR_INPUT, "%s: %s", name, strerror(errno));
	return err_set(err, ERR_INPUT, "%s: not an executable file", name);
}

static void add_word(struct run *r, const char *word)
{
	GROW(r->words, r->nr + 2, r->cap);
	r->words[r->nr++] = word;
	r->words[r->nr] = NULL;
}

static char *own(struct run *r, char *word)
{
	r->owned[r->nr_owned++] = word;
	return word;
}

/* Reads the first bytes of a file. Returns how many, or -1. */
static ssize_t read_start(const char *path, char *bytes, size_t size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t have = fd < 0 ? -1 : read(fd, bytes, size);

	if (have < 0)
		err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return have;
}

static int check_elf(const char *path, const char *bytes, size_t size, struct err *err)
{
	const unsigned char *ident = (const unsigned char *)bytes;
	uint16_t machine;

	if (size < sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return err_set(err, ERR_INPUT,
			       "%s: neither an x86-64 program (ELF) nor a script that begins "
			       "with #!",
			       path);
	memcpy(&machine, bytes + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	if (machine == EM_386)
		return err_set(err, ERR_INPUT,
			       "%s: a 32-bit program; kscope record emulate runs x86-64 programs",
			       path);
	if (machine != EM_X86_64 || ident[EI_CLASS] != ELFCLASS64)
		return err_set(err, ERR_INPUT,
			       "%s: a program for another machine (ELF machine %u); kscope record "
			       "emulate runs x86-64 programs",
			       path, machine);
	return 0;
}

/* Splits "#! NAME ARGUMENT". Linux takes all of the rest for one argument. */
static char *split_first_line(char *line, char **argument)
{
	char *name = line + 2 + strspn(line + 2, " \t"), *end;

	line[strcspn(line, "\n")] = '\0';
	*argument = name + strcspn(name, " \t");
	if (**argument)
		*(*argument)++ = '\0';
	*argument += strspn(*argument, " \t");
	for (end = *argument + strlen(*argument); end > *argument && strchr(" \t", end[-1]); end--)
		end[-1] = '\0';
	return name;
}

/*
 * QEMU runs only ELFs: of a script, the interpreter, whose arguments are that of the first line and the script.
 * The words of inner interpreters come first.
 */
static int add_program(struct run *r, const char *path, int depth, struct err *err)
{
	char bytes[FIRST_LINE + 1] = "", *interpreter, *argument;
	ssize_t have = read_start(path, bytes, FIRST_LINE, err);

	if (have < 0)
		return -1;
	if (strncmp(bytes, "#!", 2) != 0) {
		if (check_elf(path, bytes, (size_t)have, err) < 0)
			return -1;
		r->program = xstrdup(path);
		add_word(r, r->program);
		return 0;
	}
	interpreter = split_first_line(bytes, &argument);
	if (depth == INTERPRETERS_MAX)
		return err_set(err, ERR_INPUT, "%s: too many interpreters", path);
	if (!is_program(interpreter))
		return err_set(err, ERR_INPUT, "%s: its interpreter '%s' is not an executable file",
			       path, interpreter);
	if (add_program(r, interpreter, depth + 1, err) < 0)
		return -1;
	if (*argument)
		add_word(r, own(r, xstrdup(argument)));
	add_word(r, own(r, xstrdup(path)));
	return 0;
}

/* An ELF keeps the name by which it was called. */
static int add_words(struct run *r, struct err *err)
{
	const char *const *asked = r->asked->words;
	char *path = find_in_path(asked[0]);
	size_t before = r->nr;
	int ret;

	if (!path)
		return cannot_find(asked[0], err);
	add_word(r, "-0");
	add_word(r, asked[0]);
	ret = add_program(r, path, 0, err);
	if (ret == 0 && r->nr > before + 3) /* a script: the interpreter has its own name */
		r->words[before + 1] = r->program;
	free(path);
	for (size_t i = 1; asked[i]; i++)
		add_word(r, asked[i]);
	return ret;
}

/* ---- files ---- */

static int find_qemu(struct run *r, struct err *err)
{
	const char *name = r->asked->qemu ? r->asked->qemu : QEMU;

	r->qemu = find_in_path(name);
	if (r->qemu)
		return 0;
	if (r->asked->qemu)
		return cannot_find(name, err);
	return err_set(err, ERR_INPUT,
		       QEMU " is not installed: install your distribution's package qemu-user, "
			    "or give its path with --qemu");
}

/* The files of an earlier recording will be removed from there: not through a link of another user. */
static int check_code(const struct run *r, struct err *err)
{
	char *target = out_follow(r->code);
	int ret = target ? 0 : out_error(r->code, errno, err);

	free(target);
	return ret;
}

/* The plugin's folder is beside the output, where there is room for large files. */
static int make_parts(struct run *r, struct err *err)
{
	char *whole = files_absolute(r->asked->out), *folder = text_folder(whole);

	r->parts = xasprintf("%s.%.200s-XXXXXX", folder, text_last_part(whole));
	r->code = xasprintf("%s.code", whole);
	free(folder);
	free(whole);
	if (check_code(r, err) == 0) {
		if (mkdtemp(r->parts)) {
			leftover_add(r->parts);
			return 0;
		}
		err_set(err, ERR_OUTPUT, "%s: cannot create a folder beside it: %s", r->asked->out,
			strerror(errno));
	}
	free(r->parts);
	r->parts = NULL;
	return -1;
}

typedef void each_file(struct run *r, const char *folder, const char *name);

static void for_each_file(struct run *r, const char *folder, each_file *call)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			call(r, folder, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static void remove_file(struct run *r, const char *folder, const char *name)
{
	char *path = xasprintf("%s/%s", folder, name);

	(void)r;
	unlink(path);
	free(path);
}

/* Copies are named by numbers of processes. */
static void remove_copy(struct run *r, const char *folder, const char *name)
{
	if (!name[strspn(name, "0123456789")])
		remove_file(r, folder, name);
}

static void move_copy(struct run *r, const char *folder, const char *name)
{
	char *from, *to;

	if (strncmp(name, EMULATE_CODE, strlen(EMULATE_CODE)) != 0)
		return;
	from = xasprintf("%s/%s", folder, name);
	to = xasprintf("%s/%s", r->code, name + strlen(EMULATE_CODE));
	if ((mkdir(r->code, 0777) < 0 && errno != EEXIST) || rename(from, to) < 0)
		log_warn("%s: %s: the trace of generated code cannot be decoded", to,
			 strerror(errno));
	free(from);
	free(to);
}

/* Those of an earlier recording with this name are no longer needed. */
static void move_copies(struct run *r)
{
	for_each_file(r, r->code, remove_copy);
	rmdir(r->code);
	for_each_file(r, r->parts, move_copy);
}

static void release(struct run *r)
{
	out_abandon(&r->out);
	if (r->parts) {
		for_each_file(r, r->parts, remove_file);
		rmdir(r->parts);
		leftover_forget(r->parts);
	}
	for (size_t i = 0; i < r->nr_owned; i++)
		free(r->owned[i]);
	buf_release(&r->plugin_text);
	free(r->words);
	free(r->program);
	free(r->qemu);
	free(r->plugin);
	free(r->parts);
	free(r->code);
}

/* ---- the run ---- */

static int prepare(struct run *r, struct err *err)
{
	struct stat st;

	r->plugin = files_plugin(err);
	if (!r->plugin || find_qemu(r, err) < 0)
		return -1;
	add_word(r, r->qemu);
	add_word(r, "-plugin");
	add_word(r, NULL); /* the plugin, see below */
	if (add_words(r, err) < 0)
		return -1;
	if (!strcmp(r->asked->out, "-") || (stat(r->asked->out, &st) == 0 && !S_ISREG(st.st_mode)))
		return err_set(err, ERR_USAGE, "%s: a trace needs a regular file: use -o FILE",
			       r->asked->out);
	if (out_open_private(&r->out, r->asked->out, true, err) < 0 || make_parts(r, err) < 0)
		return -1;
	line_emulate(&r->plugin_text, r->plugin, r->parts, r->code);
	r->words[2] = r->plugin_text.data;
	return 0;
}

static void say_end(const struct run *r)
{
	int status = r->guest.status;

	if (WIFSIGNALED(status))
		log_say("%s was killed by signal %d (%s)", r->asked->words[0], WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	if (r->sums.running)
		log_warn("%zu thread%s of other processes still run%s: the end of %s trace is "
			 "missing",
			 r->sums.running, r->sums.running == 1 ? "" : "s",
			 r->sums.running == 1 ? "s" : "", r->sums.running == 1 ? "its" : "their");
	if (r->sums.damaged)
		log_warn("%zu of %zu threads' traces are incomplete", r->sums.damaged,
			 r->sums.threads);
	log_say("wrote %s: the trace of %zu thread%s, %.1f MB of Intel PT", r->asked->out,
		r->sums.threads, r->sums.threads == 1 ? "" : "s", (double)r->sums.packets / 1e6);
	if (access(r->code, F_OK) == 0)
		log_say("%s contains generated code that is needed to decode the trace: keep it",
			r->code);
	log_say("next: kscope report %s, or perf script -i %s --itrace=i0ns", r->asked->out,
		r->asked->out);
}

static void explain_refusal(const struct run *r)
{
	struct qemu_line line;

	line_read(&line, r->words, r->nr);
	line.script = false; /* --qemu may name a script, which gets all options */
	refusal_explain(&r->guest, &line, r->plugin);
	line_release(&line);
}

static int record(struct run *r, struct err *err)
{
	struct record_source source = { .ops = &source_guest, .priv = &r->guest };
	struct session session = { .source = &source };
	int status;

	r->guest = (struct guest){ .passes_signals = true };
	if (prepare(r, err) < 0)
		return -1;
	r->guest.words = r->words;
	if (session_run(&session, err) < 0)
		return -1;
	status = r->guest.status;
	emulate_file_write(&r->out, r->parts, r->asked->words, &r->sums);
	if (!r->sums.threads) {
		explain_refusal(r);
		return ERR_INPUT;
	}
	move_copies(r);
	if (out_commit(&r->out, err) < 0)
		return -1;
	say_end(r);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int emulate(const struct emulation *emulation, struct err *err)
{
	struct run r = { .asked = emulation };
	int code = record(&r, err);

	release(&r);
	return code;
}
