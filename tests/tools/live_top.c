// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * live_top: what watches a stream, without a recorder. FILE is a FIFO or a file.
 * live_top FILE [RAW]       the screen of kscope top; RAW is what it saves from
 * live_top --sums FILE      the final sums, as kscope report --json has them
 * live_top --glance FILE    those of the status line
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_out.h"
#include "base/log.h"
#include "glance.h"
#include "live.h"
#include "top.h"
#include "top_screen.h"

static void print_rows(struct json_out *to, struct live *live, enum flat_by by, const char *key)
{
	struct live_view view = { 0 };

	live_look(live, &view, by, 80);
	json_out_array(to, key);
	for (size_t i = 0; i < view.nr_rows; i++) {
		const struct flat_row *row = &view.rows[i].sum;

		json_out_object(to, NULL);
		json_out_text(to, "name", str_text(live_names(live), row->name));
		json_out_text(to, "binary", str_text(live_names(live), row->binary));
		json_out_u64(to, "self", row->self);
		json_out_u64(to, "total", row->total);
		json_out_u64(to, "samples", row->samples);
		json_out_end(to);
	}
	json_out_end(to);
	live_view_release(&view);
}

static void print_counts(struct json_out *to, struct live *live)
{
	struct live_view view = { 0 };

	live_look(live, &view, FLAT_FUNCTION, 0);
	json_out_u64(to, "samples", view.counts.samples);
	json_out_u64(to, "weight", view.counts.weight);
	json_out_u64(to, "lost", view.counts.lost);
	json_out_u64(to, "damaged", view.counts.damaged);
	json_out_u64(to, "bytes", view.counts.bytes);
	json_out_array(to, "by_cpu");
	for (size_t i = 0; i < view.nr_cpus; i++) {
		json_out_object(to, NULL);
		json_out_u64(to, "samples", view.cpus[i].samples);
		json_out_u64(to, "lost", view.cpus[i].lost);
		json_out_end(to);
	}
	json_out_end(to);
	live_view_release(&view);
}

static int sums(int fd, const struct job *like)
{
	struct err err = { 0 };
	struct live *live = live_open(like, fd, "stream", &err);
	struct buf text = { 0 };
	struct json_out json = { .to = &text };

	if (!live) {
		log_error("%s", err.msg);
		return err.code;
	}
	for (int ret = 0; ret >= 0; ret = live_step(live)) {
		struct pollfd wait = { .fd = live_fd(live), .events = POLLIN };

		poll(&wait, 1, ret ? 0 : 20);
	}
	json_out_object(&json, NULL);
	json_out_u64(&json, "state", live_state(live));
	json_out_text(&json, "error", live_error(live));
	print_counts(&json, live);
	print_rows(&json, live, FLAT_FUNCTION, "functions");
	print_rows(&json, live, FLAT_TASK, "tasks");
	print_rows(&json, live, FLAT_CPU, "cpus");
	json_out_end(&json);
	fwrite(text.data, 1, text.len, stdout);
	buf_release(&text);
	live_close(live);
	return 0;
}

static struct glance *shared_glance(void)
{
	return mmap(NULL, sizeof(struct glance), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
}

/* The status line of a recorder. */
static int glance(int fd, const struct job *like)
{
	struct glance *g = shared_glance();
	int ret = live_glance(fd, like, g);
	struct glance_sums seen;

	glance_get_sums(g, &seen);
	printf("%" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64 " damaged, %.2f %% %s%s\n",
	       seen.samples, seen.lost, seen.damaged, seen.share, seen.hottest, seen.problem);
	return ret;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* Copies the stream into the pipe until it ends, the user interrupts it, or the viewer leaves. */
static void pump(int from, int to)
{
	char data[4096];
	ssize_t got = 1;

	while (got > 0) {
		struct pollfd fds[] = { { .fd = from, .events = POLLIN }, { .fd = to } };

		if (poll(fds, 2, -1) < 0 || fds[1].revents || interrupted)
			return;
		got = read(from, data, sizeof(data));
		if (got > 0 && write(to, data, (size_t)got) < got)
			return;
	}
}

/* Does what the recorder does. */
static int watch(int fd, struct top_setup *setup)
{
	struct sigaction action = { .sa_handler = interrupt };
	struct screen_modes modes;
	int ends[2], status = 0;
	pid_t child;

	screen_modes_keep(&modes);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return 3;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		setup->fd = ends[0];
		_exit(top_main(setup));
	}
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGINT, &action, NULL);
	pump(fd, ends[1]);
	glance_put_source(setup->glance, &(struct glance_source){ .leave = interrupted });
	close(ends[1]);
	waitpid(child, &status, 0);
	if (!WIFEXITED(status))
		screen_modes_restore(&modes);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct options options = { .slide_given = true }; /* kernels are where they were linked */
	struct job like = { .options = &options };
	const char *mode = argc > 1 && !strncmp(argv[1], "--", 2) ? argv[1] : NULL;
	char **words = argv + (mode ? 2 : 1);
	struct top_setup setup = { .like = &like };
	int fd;

	if (!words[0])
		return 2;
	fd = !strcmp(words[0], "-") ? dup(0) : open(words[0], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(words[0]);
		return 3;
	}
	log_level = 0;
	if (mode)
		return !strcmp(mode, "--glance") ? glance(fd, &like) : sums(fd, &like);
	setup.glance = shared_glance();
	setup.title = words[0];
	setup.raw_path = words[1];
	return watch(fd, &setup);
}
