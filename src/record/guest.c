// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "record/control.h"

#define SECOND 1000000000ULL
#define TICK (SECOND / 10)	   /* to poll for things that send no event */
#define STATUS_EVERY (SECOND / 2)  /* to update the status line */
#define TIME_TO_END (10 * SECOND)  /* from SIGTERM to SIGKILL */
#define TIME_TO_LOAD (20 * SECOND) /* the plugin; a duration starts after this at the latest */
#define PATIENCE 2		   /* seconds, for an answer of the plugin */
#define TIME_TO_READ 500 /* ms, for a reader of the guest's output; the rest follows the result */

struct watch {
	struct guest *guest;
	pid_t child;
	int signals; /* a signalfd */
	struct control control;
	bool asked;		/* we sent the guest SIGTERM */
	bool over;		/* the guest has ended */
	bool shown;		/* the status line is visible */
	uint64_t start, loaded; /* loaded: when the plugin was first seen; 0: not yet */
	uint64_t end_by;	/* if asked: when to send SIGKILL */
	uint64_t next_status;
	unsigned silent; /* commands without an answer in a row */
};

/* Terminal settings that QEMU changes, and does not restore if it is killed. */
struct terminal {
	bool is_one;
	struct termios modes;
	int flags[3];
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void keep_terminal(struct terminal *terminal)
{
	terminal->is_one = tcgetattr(STDIN_FILENO, &terminal->modes) == 0;
	for (int fd = 0; fd < 3; fd++)
		terminal->flags[fd] = fcntl(fd, F_GETFL);
}

static void restore_terminal(const struct terminal *terminal)
{
	if (terminal->is_one && tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->modes);
	for (int fd = 0; fd < 3; fd++) {
		if (terminal->flags[fd] >= 0)
			fcntl(fd, F_SETFL, terminal->flags[fd]);
	}
}

static void become_guest(const struct guest *guest, const sigset_t *mask, int tell)
{
	int error;

	if (guest->relay_stdout)
		dup2(guest->relay->into, STDOUT_FILENO);
	else if (guest->relay && guest->relay->into >= 0)
		fcntl(guest->relay->into, F_SETFD, 0); /* QEMU opens it as /dev/fd/N */
	sigprocmask(SIG_SETMASK, mask, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* end the guest if kscope is killed */
	execvp(guest->words[0], (char *const *)guest->words);
	error = errno;
	if (write(tell, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* The child sends errno through the pipe if exec fails; a successful exec closes the pipe. */
static int start(struct watch *s, const sigset_t *mask, struct err *err)
{
	int tell[2], error = 0;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return err_set(err, ERR_INPUT, "cannot create a pipe: %s", strerror(errno));
	s->child = fork();
	if (s->child == 0)
		become_guest(s->guest, mask, tell[1]);
	close(tell[1]);
	if (s->child < 0 || read(tell[0], &error, sizeof(error)) == (ssize_t)sizeof(error)) {
		error = s->child < 0 ? errno : error;
		close(tell[0]);
		if (s->child > 0)
			waitpid(s->child, NULL, 0);
		return err_set(err, ERR_INPUT, "cannot run %s: %s%s", s->guest->words[0],
			       strerror(error),
			       error == ENOENT ? " (is it installed, and in $PATH?)" : "");
	}
	close(tell[0]);
	return 0;
}

static bool connected(struct watch *s)
{
	struct err unused = { 0 };

	return s->control.fd >= 0 ||
	       control_connect(&s->control, s->guest->control, PATIENCE, &unused) == 0;
}

static bool ask(struct watch *s, const char *command, char *reply)
{
	struct err unused = { 0 };

	if (!connected(s))
		return false;
	if (control_ask(&s->control, command, reply, &unused) == 0)
		return true;
	control_close(&s->control);
	return false;
}

/* If a script started QEMU, signals QEMU itself; SIGKILL goes to both. */
static void signal_guest(const struct watch *s, int signal)
{
	if (s->control.peer > 1 && s->control.peer != s->child)
		kill(s->control.peer, signal);
	if (s->control.peer <= 1 || s->control.peer == s->child || signal == SIGKILL)
		kill(s->child, signal);
}

static void kill_guest(struct watch *s)
{
	s->guest->killed = true;
	s->end_by = UINT64_MAX;
	signal_guest(s, SIGKILL);
}

/*
 * Flushes the recording before the signal: a system-mode QEMU writes the rest when it exits, but a
 * user-mode QEMU just dies.
 */
static void end_guest(struct watch *s, enum guest_reason why)
{
	char reply[CONTROL_LINE];

	if (s->asked)
		return;
	s->asked = true;
	s->guest->why = why;
	if (s->guest->relay)
		s->guest->relay->ends = true;
	if (ask(s, "stop", reply))
		ask(s, "flush", reply);
	signal_guest(s, SIGTERM);
	s->end_by = now() + TIME_TO_END;
}

static void reap(struct watch *s)
{
	if (waitpid(s->child, &s->guest->status, WNOHANG) == s->child)
		s->over = true;
}

/* What comes from the terminal comes to every process in the foreground. */
static void pass_signal(struct watch *s, const struct signalfd_siginfo *info)
{
	if (info->ssi_code != SI_KERNEL)
		kill(s->child, (int)info->ssi_signo);
}

static void take_signal(struct watch *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		reap(s);
	else if (s->guest->passes_signals)
		pass_signal(s, &info);
	else if (s->asked && s->guest->why == GUEST_WAS_INTERRUPTED)
		kill_guest(s);
	else if (s->asked)
		s->guest->why = GUEST_WAS_INTERRUPTED;
	else
		end_guest(s, GUEST_WAS_INTERRUPTED);
}

static void show_status(struct watch *s, uint64_t time)
{
	struct control_status status;
	char reply[CONTROL_LINE];
	bool trace = s->guest->trace;

	s->next_status = time + STATUS_EVERY;
	if (s->silent > 3 || !connected(s))
		return;
	if (!ask(s, "status", reply)) {
		s->silent++;
		return;
	}
	s->silent = 0;
	control_parse(reply, &status);
	fprintf(stderr,
		"\r%s: %" PRIu64 " %s of %" PRIu64 " vCPU%s, %" PRIu64
		" dropped, %.1f MB, %.0f s\033[K",
		status.running ? "recording" : "paused", trace ? status.branches : status.samples,
		trace ? "jumps" : "samples", status.cpus, status.cpus == 1 ? "" : "s",
		status.dropped, (double)status.bytes / 1e6, (double)(time - s->start) / 1e9);
	s->shown = true;
}

static void earlier(uint64_t *time, uint64_t other)
{
	if (other < *time)
		*time = other;
}

/* The duration counts from when the plugin is loaded. */
static uint64_t deadline(const struct watch *s)
{
	uint64_t from = s->loaded ? s->loaded : s->start + TIME_TO_LOAD;

	return s->guest->duration < UINT64_MAX - from ? from + s->guest->duration : UINT64_MAX;
}

static int wait_ms(const struct watch *s, uint64_t time)
{
	const struct guest *guest = s->guest;
	uint64_t until = time + 60 * SECOND;

	if (guest->duration && !s->asked)
		earlier(&until, s->loaded ? deadline(s) : time + TICK);
	if (s->asked)
		earlier(&until, s->end_by);
	if (guest->live)
		earlier(&until, s->next_status);
	if (guest->relay && guest->relay->file)
		earlier(&until, time + TICK);
	return until <= time ? 0 : (int)((until - time) / 1000000 + 1);
}

static void wait_for_something(struct watch *s)
{
	struct relay *relay = s->guest->relay;
	struct pollfd fds[3] = { { .fd = s->signals, .events = POLLIN } };

	if (relay)
		relay_poll(relay, fds + 1);
	if (poll(fds, relay ? 3 : 1, wait_ms(s, now())) < 0)
		return;
	if (fds[0].revents)
		take_signal(s);
	if (relay)
		relay_move(relay);
}

static void stay(struct watch *s)
{
	struct guest *guest = s->guest;

	while (!s->over) {
		uint64_t time;

		wait_for_something(s);
		time = now();
		if (guest->relay && guest->relay->found && !s->over)
			end_guest(s, GUEST_SAID_IT);
		if (guest->duration && !s->loaded && access(guest->control, F_OK) == 0)
			s->loaded = time;
		if (guest->duration && time >= deadline(s) && !s->over)
			end_guest(s, GUEST_TIME_IS_UP);
		if (s->asked && !s->over && time >= s->end_by) {
			log_warn("%s did not end on SIGTERM; killing it", guest->words[0]);
			kill_guest(s);
		}
		if (guest->live && !s->over && time >= s->next_status)
			show_status(s, time);
	}
	guest->took = now() - s->start;
	if (s->shown)
		fputs("\r\033[K", stderr);
}

/* Discards signals that arrived after the guest ended: they were meant for it. */
static void forget_pending(const sigset_t *signals)
{
	struct timespec at_once = { 0 };

	while (sigtimedwait(signals, NULL, &at_once) > 0)
		;
}

int guest_run(struct guest *guest, struct err *err)
{
	struct watch s = { .guest = guest, .control.fd = -1, .start = now() };
	struct terminal terminal;
	sigset_t mine, before;
	int ret;

	sigemptyset(&mine);
	sigaddset(&mine, SIGINT);
	sigaddset(&mine, SIGTERM);
	sigaddset(&mine, SIGHUP);
	sigaddset(&mine, SIGCHLD);
	s.signals = signalfd(-1, &mine, SFD_CLOEXEC);
	sigaddset(&mine, SIGPIPE); /* write() reports EPIPE */
	sigprocmask(SIG_BLOCK, &mine, &before);
	s.next_status = s.start + STATUS_EVERY;
	keep_terminal(&terminal);
	ret = start(&s, &before, err);
	if (guest->relay)
		relay_close_into(guest->relay);
	if (ret == 0) {
		stay(&s);
		if (guest->relay)
			relay_finish(guest->relay, TIME_TO_READ);
		restore_terminal(&terminal);
	}
	control_close(&s.control);
	close(s.signals);
	forget_pending(&mine);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ret;
}
