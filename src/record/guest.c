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
#include <sys/wait.h>
#include <unistd.h>

#define TICK (SECOND / 10)	   /* to poll for things that send no event */
#define TIME_TO_END (10 * SECOND)  /* from SIGTERM to SIGKILL */
#define TIME_TO_LOAD (20 * SECOND) /* the plugin; a duration starts after this at the latest */
#define PATIENCE 2		   /* seconds, for an answer of the plugin */
#define TIME_TO_READ 500 /* ms, for a reader of the guest's output; the rest follows the result */

static void keep_terminal(struct guest_terminal *terminal)
{
	terminal->is_one = tcgetattr(STDIN_FILENO, &terminal->modes) == 0;
	for (int fd = 0; fd < 3; fd++)
		terminal->flags[fd] = fcntl(fd, F_GETFL);
}

static void restore_terminal(const struct guest_terminal *terminal)
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
static int start(struct guest *guest, const sigset_t *mask, struct err *err)
{
	int tell[2], error = 0;

	if (pipe2(tell, O_CLOEXEC) < 0)
		return err_set(err, ERR_INPUT, "cannot create a pipe: %s", strerror(errno));
	guest->child = fork();
	if (guest->child == 0)
		become_guest(guest, mask, tell[1]);
	close(tell[1]);
	if (guest->child < 0 || read(tell[0], &error, sizeof(error)) == (ssize_t)sizeof(error)) {
		error = guest->child < 0 ? errno : error;
		close(tell[0]);
		if (guest->child > 0)
			waitpid(guest->child, NULL, 0);
		return err_set(err, ERR_INPUT, "cannot run %s: %s%s", guest->words[0],
			       strerror(error),
			       error == ENOENT ? " (is it installed, and in $PATH?)" : "");
	}
	close(tell[0]);
	return 0;
}

static int guest_open(struct record_source *s)
{
	struct guest *guest = s->priv;
	int ret;

	guest->to_plugin.fd = -1;
	guest->start = source_now();
	keep_terminal(&guest->terminal);
	ret = start(guest, &s->mask, &s->err);
	if (guest->relay)
		relay_close_into(guest->relay);
	return ret;
}

/* ---- the plugin ---- */

static bool connected(struct guest *guest)
{
	struct err unused = { 0 };

	return guest->to_plugin.fd >= 0 ||
	       (guest->control &&
		control_connect(&guest->to_plugin, guest->control, PATIENCE, &unused) == 0);
}

static bool ask(struct guest *guest, const char *command, char *reply)
{
	struct err unused = { 0 };

	if (!connected(guest))
		return false;
	if (control_ask(&guest->to_plugin, command, reply, &unused) == 0)
		return true;
	control_close(&guest->to_plugin);
	return false;
}

static void guest_state(struct record_source *s, struct buf *text)
{
	struct guest *guest = s->priv;
	struct control_status status;
	char reply[CONTROL_LINE];
	bool trace = guest->trace;

	if (guest->silent > 3 || !connected(guest))
		return;
	if (!ask(guest, "status", reply)) {
		guest->silent++;
		return;
	}
	guest->silent = 0;
	control_parse(reply, &status);
	buf_addf(text, "%s%" PRIu64 " %s of %" PRIu64 " vCPU%s, %" PRIu64 " dropped, %.1f MB",
		 status.running ? "" : "paused, ", trace ? status.branches : status.samples,
		 trace ? "jumps" : "samples", status.cpus, status.cpus == 1 ? "" : "s",
		 status.dropped, (double)status.bytes / 1e6);
}

/* ---- the end ---- */

/* If a script started QEMU, signals QEMU itself; SIGKILL goes to both. */
static void signal_guest(const struct guest *guest, int signal)
{
	pid_t peer = guest->to_plugin.peer;

	if (peer > 1 && peer != guest->child)
		kill(peer, signal);
	if (peer <= 1 || peer == guest->child || signal == SIGKILL)
		kill(guest->child, signal);
}

static void kill_guest(struct guest *guest)
{
	guest->killed = true;
	guest->end_by = UINT64_MAX;
	signal_guest(guest, SIGKILL);
}

/*
 * Flushes the recording before the signal: a system-mode QEMU writes the rest when it exits, but a
 * user-mode QEMU just dies.
 */
static void guest_stop(struct record_source *s, bool hurry)
{
	struct guest *guest = s->priv;
	char reply[CONTROL_LINE];

	if (hurry) {
		kill_guest(guest);
		return;
	}
	if (guest->relay)
		guest->relay->ends = true;
	if (ask(guest, "stop", reply))
		ask(guest, "flush", reply);
	signal_guest(guest, SIGTERM);
	guest->end_by = source_now() + TIME_TO_END;
}

/* What comes from the terminal comes to every process in the foreground. */
static bool guest_signal(struct record_source *s, const struct signalfd_siginfo *info)
{
	struct guest *guest = s->priv;

	if (guest->passes_signals && info->ssi_code != SI_KERNEL)
		kill(guest->child, (int)info->ssi_signo);
	return guest->passes_signals;
}

/* ---- the loop ---- */

static size_t guest_wait(struct record_source *s, struct pollfd *fds, uint64_t *until)
{
	struct guest *guest = s->priv;

	if (guest->end_by)
		source_earlier(until, guest->end_by);
	/* Neither the plugin nor a file tells when it is there, or has more. */
	if ((!s->began && guest->control) || (guest->relay && guest->relay->file))
		source_earlier(until, source_now() + TICK);
	if (!guest->relay)
		return 0;
	relay_poll(guest->relay, fds);
	return 2;
}

static enum source_state guest_step(struct record_source *s)
{
	struct guest *guest = s->priv;
	uint64_t now = source_now();

	if (guest->relay) {
		relay_move(guest->relay);
		s->found |= guest->relay->needle.found;
	}
	if (waitpid(guest->child, &guest->status, WNOHANG) == guest->child)
		return SOURCE_ENDED;
	if (!s->began && guest->control &&
	    (access(guest->control, F_OK) == 0 || now >= guest->start + TIME_TO_LOAD))
		s->began = now;
	if (guest->end_by && now >= guest->end_by) {
		source_warn(s, "%s did not end on SIGTERM; killing it", guest->words[0]);
		kill_guest(guest);
	}
	return SOURCE_GOES_ON;
}

static void guest_close(struct record_source *s)
{
	struct guest *guest = s->priv;

	if (guest->relay && !s->err.code)
		relay_finish(guest->relay, TIME_TO_READ);
	if (!s->err.code)
		restore_terminal(&guest->terminal);
	control_close(&guest->to_plugin);
}

const struct source_ops source_guest = {
	.open = guest_open,
	.wait = guest_wait,
	.step = guest_step,
	.stop = guest_stop,
	.signal = guest_signal,
	.state = guest_state,
	.close = guest_close,
};
