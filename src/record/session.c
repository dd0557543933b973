// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"

#define STATUS_EVERY (SECOND / 2)

struct loop {
	struct session *session;
	struct record_source *source;
	int signals; /* a signalfd */
	bool stopping;
	uint64_t start, next_status;
};

static void end(struct loop *l, enum session_reason why)
{
	if (l->stopping)
		return;
	l->stopping = true;
	l->session->why = why;
	l->source->ops->stop(l->source, false);
}

/* The first signal ends the recording; the next one does not wait for the rest. */
static void interrupt(struct loop *l)
{
	struct session *session = l->session;

	if (l->stopping && session->why == SESSION_INTERRUPTED)
		l->source->ops->stop(l->source, true);
	else if (l->stopping)
		session->why = SESSION_INTERRUPTED;
	else
		end(l, SESSION_INTERRUPTED);
}

static void take_signal(struct loop *l)
{
	struct record_source *source = l->source;
	struct signalfd_siginfo info;

	if (read(l->signals, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
	    info.ssi_signo == SIGCHLD)
		return; /* step() looks after children */
	if (!source->ops->signal || !source->ops->signal(source, &info))
		interrupt(l);
}

/* ---- the status line ---- */

/* What fits in the terminal's line: a longer text would scroll. */
static int line_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return 79;
	return size.ws_col > 20 ? size.ws_col - 1 : 19;
}

static void add_part(struct buf *text, struct buf *part)
{
	if (part->len)
		buf_addf(text, "%s%s", text->len ? ", " : "", part->data);
	buf_clear(part);
}

static void make_status(struct loop *l, struct buf *text)
{
	struct record_source *source = l->source;
	struct watcher *watcher = l->session->watcher;
	struct buf part = { 0 };

	if (source->ops->state)
		source->ops->state(source, &part);
	add_part(text, &part);
	if (watcher && watcher->state)
		watcher->state(watcher, &part);
	add_part(text, &part);
	buf_addf(&part, "%.0f s", (double)(source_now() - l->start) / 1e9);
	add_part(text, &part);
	buf_release(&part);
}

static void show_status(struct loop *l)
{
	struct watcher *watcher = l->session->watcher;
	struct buf text = { 0 }, plain = { 0 };

	make_status(l, &text);
	if (watcher && watcher->tell)
		watcher->tell(watcher, text.data, l->source->trouble);
	if (l->session->live) {
		const char *what = l->stopping ? "stopping" : "recording";

		fprintf(stderr, "\r%s: %.*s\033[K", what, line_width() - (int)strlen(what) - 2,
			text_plain(&plain, text.data));
		l->source->shown = true;
	}
	buf_release(&plain);
	buf_release(&text);
}

static void hide_status(struct loop *l)
{
	if (l->source->shown)
		fputs("\r\033[K", stderr);
	l->source->shown = false;
}

/* ---- the loop ---- */

/* The duration counts from when the source delivers. */
static uint64_t deadline(const struct loop *l)
{
	uint64_t from = l->source->began, duration = l->session->duration;

	if (!from || !duration || l->stopping)
		return UINT64_MAX;
	return duration < UINT64_MAX - from ? from + duration : UINT64_MAX;
}

static void wait_for_something(struct loop *l)
{
	struct record_source *source = l->source;
	struct watcher *watcher = l->session->watcher;
	struct pollfd fds[2 + SOURCE_FDS] = {
		{ .fd = l->signals, .events = POLLIN },
		{ .fd = -1 },
	};
	uint64_t now = source_now(), until = now + 60 * SECOND;
	size_t nr = source->ops->wait(source, fds + 2, &until);

	source_earlier(&until, deadline(l));
	if (watcher)
		watcher->wait(watcher, &fds[1], &until);
	if (l->session->live || (watcher && watcher->tell))
		source_earlier(&until, l->next_status);
	/* Rounded up, so that the time has come when poll() returns. */
	if (poll(fds, 2 + nr, until <= now ? 0 : (int)((until - now) / 1000000 + 1)) > 0 &&
	    fds[0].revents)
		take_signal(l);
}

static void look_around(struct loop *l)
{
	struct record_source *source = l->source;
	struct watcher *watcher = l->session->watcher;
	uint64_t now = source_now();

	if (watcher)
		watcher->step(watcher);
	if (watcher && watcher->closed)
		end(l, SESSION_INTERRUPTED);
	if (source->found)
		end(l, SESSION_FOUND);
	if (source->raw && source->raw->err.code)
		end(l, SESSION_NO_ROOM);
	if (now >= deadline(l))
		end(l, SESSION_TIME_IS_UP);
	if (now < l->next_status)
		return;
	l->next_status = now + STATUS_EVERY;
	show_status(l);
}

static int run(struct loop *l, struct err *err)
{
	struct record_source *source = l->source;
	enum source_state state = SOURCE_GOES_ON;

	if (source->ops->open(source) < 0)
		state = SOURCE_FAILED;
	while (state == SOURCE_GOES_ON) {
		wait_for_something(l);
		state = source->ops->step(source);
		if (state == SOURCE_GOES_ON)
			look_around(l);
	}
	hide_status(l);
	if (source->raw && source->raw->err.code)
		l->session->why = SESSION_NO_ROOM;
	if (state == SOURCE_FAILED)
		*err = source->err;
	return state == SOURCE_FAILED ? -1 : 0;
}

/* Discards signals that arrived after the end: they were meant for the recording. */
static void forget_pending(const sigset_t *signals)
{
	struct timespec at_once = { 0 };

	while (sigtimedwait(signals, NULL, &at_once) > 0)
		;
}

bool session_ignores(int number)
{
	struct sigaction now;

	return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

int session_run(struct session *session, struct err *err)
{
	struct loop l = { .session = session, .source = session->source, .start = source_now() };
	sigset_t mine, before;
	int ret;

	sigemptyset(&mine);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGTERM);
	if (!session_ignores(SIGHUP))
		sigaddset(&mine, SIGHUP);
	sigaddset(&mine, SIGCHLD);
	l.signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	sigaddset(&mine, SIGPIPE); /* write() reports EPIPE */
	sigprocmask(SIG_BLOCK, &mine, &before);
	l.source->mask = before;
	l.next_status = l.start + STATUS_EVERY;
	ret = run(&l, err);
	l.source->ops->close(l.source);
	session->took = source_now() - l.start;
	close(l.signals);
	forget_pending(&mine);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ret;
}
