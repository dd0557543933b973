// SPDX-License-Identifier: GPL-2.0-or-later
#include "viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "glance.h"
#include "top.h"

#define CHUNK 65536
#define LOOK_AGAIN (SECOND / 10) /* whether the raw stream has grown */
#define RATE_OVER SECOND
#define WATCH_EVERY 100 /* ms */

/* ---- the viewer's process ---- */

/* Ctrl-C and the like are for the recorder, which then closes the pipe. */
static int view(const struct viewer *viewer, const struct job *like, int from, const char *title)
{
	struct top_setup setup = { .fd = from,
				   .like = like,
				   .glance = viewer->glance,
				   .raw_path = viewer->raw,
				   .title = title };

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (viewer->top)
		return top_main(&setup);
	log_level = -1; /* the conversion prints the same messages later */
	if (nice(10) < 0)
		errno = 0; /* it is only a courtesy to the target */
	return live_glance(from, like, viewer->glance);
}

/* ---- the raw stream ---- */

/* Whether it is still there. A viewer that was killed could not restore the terminal. */
static bool is_alive(struct viewer *viewer, int options)
{
	int status = 0;

	if (viewer->child > 0 && waitpid(viewer->child, &status, options) != 0)
		viewer->child = 0;
	if (WIFSIGNALED(status) && viewer->top)
		screen_modes_restore(&viewer->modes);
	return viewer->child > 0;
}

/* How much of the raw stream the viewer does not have yet. */
static uint64_t behind(struct viewer *viewer)
{
	struct stat st;

	if (viewer->raw_fd < 0)
		viewer->raw_fd = open(viewer->raw, O_RDONLY | O_CLOEXEC);
	if (viewer->raw_fd < 0 || fstat(viewer->raw_fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_size > viewer->sent ? (uint64_t)st.st_size - viewer->sent : 0;
}

/* Copies as much as the pipe takes. False: the viewer is gone, or there is nothing to copy. */
static bool pump(struct viewer *viewer)
{
	char data[CHUNK];
	ssize_t got, did;

	if (viewer->pipe < 0 || !behind(viewer))
		return false;
	got = pread(viewer->raw_fd, data, sizeof(data), (off_t)viewer->sent);
	did = got > 0 ? write(viewer->pipe, data, (size_t)got) : -1;
	if (did > 0)
		viewer->sent += (uint64_t)did;
	return did == (ssize_t)sizeof(data);
}

/* ---- the watcher ---- */

static struct viewer *viewer_of(struct watcher *watcher)
{
	return (struct viewer *)((char *)watcher - offsetof(struct viewer, watcher));
}

static void viewer_wait(struct watcher *watcher, struct pollfd *fd, uint64_t *until)
{
	struct viewer *viewer = viewer_of(watcher);

	if (viewer->child <= 0)
		return;
	if (behind(viewer))
		*fd = (struct pollfd){ .fd = viewer->pipe, .events = POLLOUT };
	else
		source_earlier(until, source_now() + LOOK_AGAIN);
}

static void viewer_step(struct watcher *watcher)
{
	struct viewer *viewer = viewer_of(watcher);

	if (!is_alive(viewer, WNOHANG)) {
		watcher->closed = viewer->top;
		return;
	}
	while (pump(viewer))
		;
}

static void measure_rate(struct viewer *viewer, uint64_t samples)
{
	uint64_t now = source_now();

	if (now - viewer->seen_at < RATE_OVER)
		return;
	if (viewer->seen_at)
		viewer->rate = (double)(samples - viewer->seen_samples) * 1e9 /
			       (double)(now - viewer->seen_at);
	viewer->seen_samples = samples;
	viewer->seen_at = now;
}

static void viewer_state(struct watcher *watcher, struct buf *text)
{
	struct viewer *viewer = viewer_of(watcher);
	struct glance_sums sums;

	glance_get_sums(viewer->glance, &sums);
	measure_rate(viewer, sums.samples);
	if (*sums.problem) {
		buf_adds(text, sums.problem);
		return;
	}
	if (!viewer->counted)
		buf_addf(text, "%" PRIu64 " samples, ", sums.samples);
	buf_addf(text, "%.0f/s, %" PRIu64 " lost", viewer->rate, sums.lost);
	if (sums.damaged)
		buf_addf(text, ", %" PRIu64 " damaged", sums.damaged);
	if (*sums.hottest)
		buf_addf(text, ", %.0f%% %s", sums.share, sums.hottest);
}

static void viewer_tell(struct watcher *watcher, const char *state, bool trouble)
{
	struct viewer *viewer = viewer_of(watcher);
	struct glance_source source = { .trouble = trouble };

	snprintf(source.text, sizeof(source.text), "%s", state);
	glance_put_source(viewer->glance, &source);
}

/* ---- its life ---- */

static int cannot(const char *what, struct err *err)
{
	return err_set(err, ERR_INPUT, "cannot create %s for the live view: %s", what,
		       strerror(errno));
}

int viewer_start(struct viewer *viewer, const struct job *like, const char *raw, const char *title,
		 struct err *err)
{
	int ends[2];

	*viewer = (struct viewer){
		.watcher = { viewer_wait, viewer_step, title ? NULL : viewer_state,
			     title ? viewer_tell : NULL, false },
		.raw = raw,
		.top = title,
		.raw_fd = -1,
		.pipe = -1,
	};
	viewer->glance = mmap(NULL, sizeof(struct glance), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (viewer->glance == MAP_FAILED || pipe2(ends, O_CLOEXEC) < 0)
		return cannot("a pipe", err);
	screen_modes_keep(&viewer->modes);
	fflush(NULL); /* or both processes write what is in the buffers */
	viewer->child = fork();
	if (viewer->child == 0) {
		close(ends[1]);
		exit(view(viewer, like, ends[0], title));
	}
	close(ends[0]);
	viewer->pipe = ends[1];
	fcntl(viewer->pipe, F_SETFL, O_NONBLOCK);
	return viewer->child < 0 ? cannot("a process", err) : 0;
}

static void close_pipe(struct viewer *viewer)
{
	if (viewer->pipe >= 0)
		close(viewer->pipe);
	viewer->pipe = -1;
}

/* Whether a signal such as Ctrl-C came; waits for it at most this long, or until the viewer ends. */
static bool interrupted(const sigset_t *signals, long ms)
{
	struct timespec wait = { .tv_nsec = ms * 1000000 };
	int signal = sigtimedwait(signals, NULL, &wait);

	return signal > 0 && signal != SIGCHLD;
}

static void tell_to_leave(struct viewer *viewer)
{
	struct glance_source source;

	glance_get_source(viewer->glance, &source);
	source.leave = true;
	glance_put_source(viewer->glance, &source);
}

/* Returns whether the user lost patience. */
static bool send_rest(struct viewer *viewer, const sigset_t *signals)
{
	struct pollfd fd = { .fd = viewer->pipe, .events = POLLOUT };

	while (is_alive(viewer, WNOHANG) && behind(viewer)) {
		if (interrupted(signals, 0))
			return true;
		poll(&fd, 1, WATCH_EVERY);
		if (fd.revents & (POLLERR | POLLHUP))
			break;
		pump(viewer);
	}
	return false;
}

/* Signals close the view, and only that: the outputs are still to be written. A second one does not wait for it. */
static void wait_for_user(struct viewer *viewer, bool leave)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (!leave)
		leave = send_rest(viewer, &signals);
	if (leave)
		tell_to_leave(viewer);
	close_pipe(viewer);
	while (is_alive(viewer, WNOHANG)) {
		if (!interrupted(&signals, WATCH_EVERY))
			continue;
		if (leave)
			kill(viewer->child, SIGKILL);
		leave = true;
		tell_to_leave(viewer);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void viewer_end(struct viewer *viewer, bool leave)
{
	if (!viewer->glance)
		return;
	if (viewer->top)
		wait_for_user(viewer, leave);
	close_pipe(viewer);
	/* A viewer that only makes the status line has nothing more to do. */
	if (viewer->child > 0)
		kill(viewer->child, SIGKILL);
	is_alive(viewer, 0);
	if (viewer->raw_fd >= 0)
		close(viewer->raw_fd);
	munmap(viewer->glance, sizeof(*viewer->glance));
	viewer->glance = NULL;
}
