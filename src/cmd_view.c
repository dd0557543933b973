// SPDX-License-Identifier: GPL-2.0-or-later
/* view: shows recordings in the browser, from a server on loopback that ends with the program. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pack.h"
#include "browser.h"
#include "cmd.h"
#include "record/session.h"
#include "record/source.h"
#include "watch.h"

struct view_options {
	uint64_t port; /* 0: any */
	bool no_browser;
	bool watch;
};

/* clang-format off: tables are read by the row. */
static const struct option_table view_table = {
	"Server",
	(const struct option_row[]){
		{ "port", 0, "PORT", "serve on this port of 127.0.0.1 (default: any free one)",
		  OPTION_NUMBER(struct view_options, port, 1, 65535) },
		{ "no-browser", 0, NULL, "only print the address",
		  OPTION_FLAG(struct view_options, no_browser) },
		{ "watch", 0, NULL, "follow files that are still growing",
		  OPTION_FLAG(struct view_options, watch) },
		{ 0 },
	},
};
/* clang-format on */

struct view {
	const struct args *args;
	const struct view_options *asked;
	struct serve *serve;
	struct watch watch;
	struct browser browser;
	int signals;
	sigset_t before; /* the mask of signals, for child processes */
	bool ended;
};

/* ---- signals ---- */

/* Fails rather than block a signal that nobody reads. */
static int take_signals(struct view *v)
{
	static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (!session_ignores(ending[i]))
			sigaddset(&mine, ending[i]);
	}
	v->signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->signals < 0) {
		log_error("cannot wait for signals: %s", strerror(errno));
		return ERR_OUTPUT;
	}
	sigaddset(&mine, SIGPIPE); /* sendfile() reports EPIPE */
	sigprocmask(SIG_BLOCK, &mine, &v->before);
	return ERR_NONE;
}

static void read_signals(struct view *v)
{
	struct signalfd_siginfo info;

	while (read(v->signals, &info, sizeof(info)) == sizeof(info))
		v->ended |= info.ssi_signo != SIGCHLD;
}

/* ---- the page of recordings that are complete ---- */

static int make_page(struct view *v)
{
	struct view_page page;
	struct err err = { 0 };
	sigset_t mask;
	int code;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	if (view_page_start(&page, v->args, v->serve, VIEW_PAGE_PRINTS, &mask, &err) < 0) {
		log_error("%s", err.msg);
		view_page_release(&page);
		return err.code;
	}
	view_page_ended(&page, 0);
	code = page.code;
	if (code < 0)
		log_error("the conversion was ended by signal %d (%s)", -code, strsignal(-code));
	if (page.fd >= 0)
		serve_put_page(v->serve, page.fd);
	page.fd = -1;
	view_page_release(&page);
	return code < 0 ? ERR_OUTPUT : code;
}

/* ---- serving ---- */

static void wait_and_step(struct view *v)
{
	struct pollfd fds[SERVE_FDS + 2];
	uint64_t until = UINT64_MAX, now;
	size_t nr = serve_wait(v->serve, fds, &until);
	long ms = -1;

	fds[nr++] = (struct pollfd){ .fd = v->signals, .events = POLLIN };
	if (v->asked->watch)
		watch_wait(&v->watch, &fds[nr++], &until);
	now = source_now();
	if (until != UINT64_MAX)
		ms = until > now ? (long)((until - now) / 1000000 + 1) : 0;
	poll(fds, nr, (int)ms);
	read_signals(v);
	if (v->ended)
		return;
	if (v->asked->watch)
		watch_step(&v->watch);
	browser_check(&v->browser, serve_asked(v->serve) > 0);
	serve_step(v->serve);
}

/* Returns the exit code, as those below. */
static int announce(struct view *v)
{
	printf("%s\n", serve_url(v->serve));
	if (fflush(stdout)) {
		log_error("cannot write to stdout: %s", strerror(errno));
		return ERR_OUTPUT;
	}
	log_say("press Ctrl+C to end");
	if (!v->asked->no_browser)
		browser_open(&v->browser, serve_url(v->serve), &v->before);
	return ERR_NONE;
}

static int watch_and_serve(struct view *v)
{
	int code = take_signals(v);

	if (!code)
		code = announce(v);
	if (code)
		return code;
	v->watch = (struct watch){ .args = v->args, .serve = v->serve, .mask = &v->before };
	watch_start(&v->watch);
	while (!v->ended && !v->watch.ended)
		wait_and_step(v);
	/* While a recording grows, its end is always cut: that is no damage. */
	code = v->watch.failed ? v->watch.code : ERR_NONE;
	watch_release(&v->watch);
	return code;
}

static int convert_and_serve(struct view *v)
{
	int code = make_page(v), failed;

	if (code > ERR_PARTIAL)
		return code;
	failed = take_signals(v);
	if (!failed)
		failed = announce(v);
	while (!failed && !v->ended)
		wait_and_step(v);
	return failed ? failed : code;
}

/* ---- the verb ---- */

static bool is_html(const char *path)
{
	size_t len = pack_stem(path);

	return (len > 5 && !strncasecmp(path + len - 5, ".html", 5)) ||
	       (len > 4 && !strncasecmp(path + len - 4, ".htm", 4));
}

static int check(const struct args *args, struct err *err)
{
	const struct view_options *asked = args->state;

	if (args->options.timeline.split)
		return err_set(err, ERR_USAGE,
			       "--split writes several files, and view shows one page: use kscope "
			       "convert");
	for (size_t i = 0; i < args->nr_inputs; i++) {
		const char *path = args->inputs[i];
		struct stat st;

		if (is_html(path))
			return err_set(err, ERR_USAGE,
				       "%s is a page, not a recording: open it in a browser", path);
		if (asked->watch &&
		    (!strcmp(path, "-") ||
		     (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))))
			return err_set(err, ERR_USAGE,
				       "--watch reads its input again and again: %s is not a file",
				       path);
	}
	return 0;
}

static int run(struct args *args)
{
	struct view v = { .args = args, .asked = args->state, .signals = -1 };
	struct err err = { 0 };
	int code;

	signal(SIGCHLD, SIG_DFL); /* or nobody could wait for children */
	v.serve = serve_open((uint16_t)v.asked->port, v.asked->watch, &err);
	if (!v.serve) {
		log_error("%s", err.msg);
		return err.code;
	}
	code = v.asked->watch ? watch_and_serve(&v) : convert_and_serve(&v);
	serve_close(v.serve);
	if (v.signals >= 0)
		close(v.signals);
	return code;
}

const struct command cmd_view = {
	.name = "view",
	.usage = "view INPUT... [OPTIONS]",
	.about = "Show recordings in the browser. kscope serves the page to this machine only, "
		 "until "
		 "you press\nCtrl+C. To keep the page: kscope convert INPUT -o FILE.html.",
	.examples = "  kscope view perf.data\n"
		    "  kscope view samples.json --build-dir build --no-browser\n"
		    "  kscope view boot.kscope --watch\n",
	.options = OPTION_USES({ &view_table, 0 }),
	.state_size = sizeof(struct view_options),
	.reads = true,
	.writers = view_page_writers,
	.check = check,
	.run = run,
};
