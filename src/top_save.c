// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "output.h"
#include "top_parts.h"

/* In a process of its own: the view goes on, and messages do not spoil it. */
static void convert(const struct top *top, const struct output *to, int messages)
{
	struct job job = *top->setup->like;
	const char *inputs[] = { top->setup->raw_path };
	struct output output = *to;
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(messages, STDERR_FILENO);
	log_level = 1;
	job.inputs = inputs;
	job.nr_inputs = 1;
	_exit(convert_files(&job, &output, 1));
}

void top_save_begin(struct top *top, const char *path)
{
	struct top_save *save = &top->save;
	struct err err = { 0 };
	struct output output = { .path = path, .ops = writer_choose(NULL, path, &err) };
	int ends[2];

	if (save->pid) {
		top_say(top, "still writing %s", save->path);
		return;
	}
	if (!output.ops || !strcmp(path, "-")) {
		top_say(top, "%s", output.ops ? "enter the name of a file" : err.msg);
		return;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		top_say(top, "cannot save: %s", strerror(errno));
		return;
	}
	save->pid = fork();
	if (save->pid == 0)
		convert(top, &output, ends[1]);
	close(ends[1]);
	if (save->pid < 0) {
		save->pid = 0;
		close(ends[0]);
		top_say(top, "cannot save: %s", strerror(errno));
		return;
	}
	save->fd = ends[0];
	free(save->path);
	save->path = xstrdup(path);
	buf_clear(&save->said);
	top_say(top, "writing %s...", path);
}

/* The last line that it printed. */
static const char *last_line(struct buf *said)
{
	char *line;

	while (said->len && said->data[said->len - 1] == '\n')
		said->data[--said->len] = '\0';
	line = said->len ? strrchr(said->data, '\n') : NULL;
	return line ? line + 1 : said->len ? said->data : "no reason given";
}

static void tell_result(struct top *top, int status)
{
	struct top_save *save = &top->save;

	/* A recording that goes on is never complete. */
	if (WIFEXITED(status) && WEXITSTATUS(status) <= ERR_PARTIAL)
		top_say(top, "wrote %s", save->path);
	else
		top_say(top, "cannot write %s: %s", save->path,
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : last_line(&save->said));
}

bool top_save_step(struct top *top)
{
	struct top_save *save = &top->save;
	char data[4096];
	ssize_t got;
	int status;
	bool done;

	if (!save->pid)
		return false;
	done = waitpid(save->pid, &status, WNOHANG) == save->pid;
	while ((got = read(save->fd, data, sizeof(data))) > 0) {
		if (save->said.len > sizeof(data)) /* only the end matters */
			buf_clear(&save->said);
		buf_add(&save->said, data, (size_t)got);
	}
	if (!done)
		return false;
	save->pid = 0;
	close(save->fd);
	tell_result(top, status);
	return true;
}

void top_save_end(struct top *top)
{
	struct top_save *save = &top->save;
	int status;

	if (save->pid) { /* what the user asked for gets done */
		close(save->fd);
		waitpid(save->pid, &status, 0);
	}
	free(save->path);
	buf_release(&save->said);
}
