// SPDX-License-Identifier: GPL-2.0-or-later
#include "view_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define MOST_SAID ((size_t)64 << 10)

extern const struct writer_ops write_html;
const struct writer_ops *const view_page_writers[] = { &write_html, NULL };

/* ---- the child ---- */

static int make(struct view_page *page, const struct args *args)
{
	struct job job;

	args_job(args, &job);
	return convert_into(&job, view_page_writers[0], &page->out);
}

static void become_child(struct serve *serve, pid_t parent, const sigset_t *mask, int messages)
{
	serve_leave(serve);
	sigprocmask(SIG_SETMASK, mask, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(ERR_OUTPUT);
	if (messages < 0)
		return;
	dup2(messages, STDERR_FILENO);
	if (nice(10) < 0)
		errno = 0; /* it is only a courtesy to what is being recorded */
}

/* ---- the parent ---- */

int view_page_start(struct view_page *page, const struct args *args, struct serve *serve,
		    enum view_page_messages messages, const sigset_t *mask, struct err *err)
{
	int ends[2] = { -1, -1 };
	pid_t parent = getpid();

	*page = (struct view_page){ .messages = -1, .fd = -1 };
	if (out_open_temporary(&page->out, err) < 0)
		return -1;
	if (messages != VIEW_PAGE_PRINTS && pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_OUTPUT, "cannot create a pipe: %s", strerror(errno));
	page->messages = ends[0];
	if (ends[0] >= 0)
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fflush(NULL); /* or both processes write what is in the buffers */
	page->child = fork();
	if (page->child == 0) {
		if (messages == VIEW_PAGE_KEEPS_ERRORS)
			log_level = 0;
		become_child(serve, parent, mask, ends[1]);
		exit(make(page, args));
	}
	if (ends[1] >= 0)
		close(ends[1]);
	if (page->child > 0)
		return 0;
	page->child = 0;
	return err_set(err, ERR_OUTPUT, "cannot create a process: %s", strerror(errno));
}

void view_page_listen(struct view_page *page)
{
	char text[4096];
	ssize_t got;

	while (page->messages >= 0 && (got = read(page->messages, text, sizeof(text))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return;
		if (page->said.len + (size_t)got <= MOST_SAID)
			buf_add(&page->said, text, (size_t)got);
	}
	if (page->messages >= 0)
		close(page->messages);
	page->messages = -1;
}

bool view_page_ended(struct view_page *page, int options)
{
	int status;
	pid_t ended;

	do
		ended = waitpid(page->child, &status, options);
	while (ended < 0 && errno == EINTR);
	if (ended != page->child)
		return false;
	page->child = 0;
	view_page_listen(page);
	page->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	if (page->code == ERR_NONE || page->code == ERR_PARTIAL)
		page->fd = fcntl(page->out.fd, F_DUPFD_CLOEXEC, 0);
	out_abandon(&page->out);
	return true;
}

void view_page_release(struct view_page *page)
{
	if (page->child > 0) {
		kill(page->child, SIGTERM);
		view_page_ended(page, 0);
	}
	out_abandon(&page->out);
	if (page->messages >= 0)
		close(page->messages);
	if (page->fd >= 0)
		close(page->fd);
	buf_release(&page->said);
	*page = (struct view_page){ .messages = -1, .fd = -1 };
}
