// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/netconn.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "record/link.h"
#include "record/session.h"
#include "record/source.h"

#define GREETING "100 SEL4 PROFILING CLIENT"
#define MAX_LINE 4096

#define CONNECT_BY (10 * SECOND)
#define GREET_BY (5 * SECOND)
#define ANSWER_BY (SECOND / 2)	   /* some commands have no answer */
#define SILENCE SECOND		   /* after STOP: the rest has arrived */
#define DRAIN_BY (10 * SECOND)	   /* of a board that does not stop */
#define REFRESH_AFTER (2 * SECOND) /* of silence: makes the board send what it still has */
#define SHOW_EVERY (SECOND / 5)

struct shell {
	struct netconn *to;
	struct link link;
	bool greeted;	      /* the board has said who it is */
	bool running;	      /* between START and STOP */
	bool leaving;	      /* the board may close the link now */
	uint64_t sent, heard; /* when the last command was sent, and when bytes arrived */
	uint64_t bytes;	      /* of this connection */
	struct buf answer;    /* what arrives while `listens` is set */
	bool listens;

	struct raw raw;	  /* fd -1: not created yet */
	struct buf rest;  /* bytes at the end of the raw stream that may be part of a sample */
	uint64_t samples; /* before them */

	struct buf typed;
	bool typed_all; /* the end of standard input */
	bool exits;	/* EXIT */
	bool terminal;	/* show the prompt and the number of samples */
	bool prompt_due;
	uint64_t shown, show_at; /* bytes, and when to show them again */
	int signals;
	unsigned interrupts, patience; /* how many there were, and how many it takes to hurry */
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* An answer to the user, on stdout as the original prints it. */
static void say(const char *fmt, ...)
{
	struct buf plain = { 0 };
	char line[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	printf("%s\n", text_plain(&plain, line));
	fflush(stdout);
	buf_release(&plain);
}

/* ---- what arrives ---- */

static void store(struct shell *s, const void *data, size_t len)
{
	size_t done;

	raw_write(&s->raw, data, len);
	buf_add(&s->rest, data, len);
	done = s->to->count((uint8_t *)s->rest.data, s->rest.len, false, &s->samples);
	s->rest.len -= done;
	memmove(s->rest.data, s->rest.data + done, s->rest.len);
}

static uint64_t nr_samples(const struct shell *s)
{
	uint64_t nr = s->samples;

	s->to->count((uint8_t *)s->rest.data, s->rest.len, true, &nr);
	return nr;
}

/* The link has ended. Before the greeting, the caller reports it. */
static void lost_link(struct shell *s)
{
	if (s->greeted && !s->leaving) {
		if (s->terminal)
			say("%s", "");
		log_warn("%s: the link broke after %" PRIu64
			 " bytes (%s); netconn keeps their samples: enter CONNECT or EXIT",
			 s->to->address, s->bytes, s->link.why);
		s->to->breaks++;
		s->prompt_due = true;
	}
	s->running = false;
	link_close(&s->link);
}

static void receive(struct shell *s)
{
	char data[65536];
	ssize_t got = link_read(&s->link, data, sizeof(data));

	if (got < 0) {
		lost_link(s);
	} else if (got > 0) {
		s->heard = source_now();
		s->bytes += (uint64_t)got;
		if (s->listens && s->answer.len < MAX_LINE)
			buf_add(&s->answer, data, (size_t)got);
		if (s->greeted)
			store(s, data, (size_t)got);
	}
}

static void read_typed(struct shell *s)
{
	char data[MAX_LINE];
	ssize_t got = read(STDIN_FILENO, data, sizeof(data));

	if (got > 0)
		buf_add(&s->typed, data, (size_t)got);
	else
		s->typed_all = true;
}

static void read_signal(struct shell *s)
{
	struct signalfd_siginfo info;

	if (read(s->signals, &info, sizeof(info)) == sizeof(info))
		s->interrupts++;
}

static bool hurries(const struct shell *s)
{
	return s->interrupts >= s->patience || s->raw.err.code;
}

/* Waits for one thing to happen, and deals with it. */
static void wait_until(struct shell *s, bool typing, uint64_t until)
{
	struct pollfd fds[3] = {
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = typing ? STDIN_FILENO : -1, .events = POLLIN },
	};
	uint64_t now = source_now();

	link_wait(&s->link, &fds[2]);
	if (poll(fds, 3, until > now ? (int)((until - now) / 1000000 + 1) : 0) <= 0)
		return;
	if (fds[0].revents)
		read_signal(s);
	if (fds[1].revents)
		read_typed(s);
	if (fds[2].revents && s->link.is_open)
		receive(s);
}

/* Receives until the board is silent for this long. False: it is not, and the time is up. */
static bool settle(struct shell *s, uint64_t silence, uint64_t time)
{
	uint64_t now = source_now(), end = now + time;

	s->heard = now;
	while (s->link.fd >= 0 && !hurries(s) && now < s->heard + silence) {
		if (now >= end)
			return false;
		wait_until(s, false, s->heard + silence < end ? s->heard + silence : end);
		now = source_now();
	}
	return true;
}

/* ---- commands ---- */

/* The board reads one command from each packet: leave a pause between two, unless it answers. */
static bool command(struct shell *s, const char *text)
{
	uint64_t by = s->sent + ANSWER_BY;

	while (s->link.fd >= 0 && !hurries(s) && s->heard <= s->sent && source_now() < by)
		wait_until(s, false, by);
	if (s->link.fd < 0)
		return false;
	if (!link_write(&s->link, text, strlen(text))) {
		lost_link(s);
		return false;
	}
	s->sent = source_now();
	return true;
}

static int open_raw(struct shell *s, struct err *err)
{
	if (s->raw.fd >= 0)
		return 0;
	if (files_prepare(&s->to->files, NULL, s->to->output, err) < 0)
		return -1;
	s->raw.path = s->to->files.raw;
	s->raw.fd = files_create_raw(&s->to->files, err);
	return s->raw.fd < 0 ? -1 : 0;
}

static int open_link(struct shell *s, struct err *err)
{
	uint64_t end = source_now() + CONNECT_BY;
	int ret = link_open(&s->link, err);

	while (ret == 0 && (ret = link_progress(&s->link, err)) == 0) {
		if (hurries(s))
			return err_set(err, ERR_INPUT, "%s: interrupted", s->to->address);
		if (source_now() >= end)
			return err_set(err, ERR_INPUT, "%s: cannot connect: no answer (%s)",
				       s->to->address, s->link.ops->advice);
		wait_until(s, false, end);
	}
	return ret < 0 ? -1 : 0;
}

/* What arrives before the greeting goes to the raw stream only if there is one. */
static int await_greeting(struct shell *s, struct err *err)
{
	uint64_t end = source_now() + GREET_BY;
	struct buf *answer = &s->answer;

	while (s->link.fd >= 0 && !hurries(s) && source_now() < end && answer->len < MAX_LINE &&
	       !memchr(answer->data ? answer->data : "", '\n', answer->len))
		wait_until(s, false, end);
	if (hurries(s))
		return err_set(err, ERR_INPUT, "%s: interrupted", s->to->address);
	if (s->link.fd >= 0 && answer->len >= strlen(GREETING) &&
	    !memcmp(answer->data, GREETING, strlen(GREETING)))
		return 0;
	if (answer->len)
		return err_set(err, ERR_INPUT,
			       "%s: not the seL4 profiler (it sent '%.60s'); check the port",
			       s->to->address, answer->data);
	if (s->link.fd < 0)
		return err_set(err, ERR_INPUT,
			       "%s: the board sent no greeting (%s); try restarting it",
			       s->to->address, s->link.why);
	return err_set(
		err, ERR_INPUT,
		"%s: connected, but the board sent no greeting; check the port, or restart the "
		"board",
		s->to->address);
}

/* The first generation names its binaries; the second one does not know the command. */
static void ask_mappings(struct shell *s)
{
	char *rest = NULL;

	buf_clear(&s->answer);
	s->listens = true;
	if (command(s, "MAPPINGS\n"))
		settle(s, ANSWER_BY, 2 * SECOND);
	s->listens = false;
	buf_addc(&s->answer, '\0');
	for (char *line = strtok_r(s->answer.data, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (strstr(line, ": ") && isalpha((unsigned char)*line))
			say("%s", line);
	}
}

static void connect_board(struct shell *s)
{
	struct err err = { 0 };

	if (s->link.fd >= 0) {
		say("already connected to %s", s->to->address);
		return;
	}
	s->greeted = false;
	s->bytes = s->sent = 0;
	buf_clear(&s->answer);
	s->listens = true;
	if (open_raw(s, &err) < 0 || open_link(s, &err) < 0 || await_greeting(s, &err) < 0) {
		link_close(&s->link);
		s->to->failed = true;
		log_error("%s", err.msg);
		return;
	}
	s->listens = false;
	s->greeted = true;
	store(s, s->answer.data, s->answer.len);
	say("connected to %s", s->to->address);
	ask_mappings(s);
}

static bool is_connected(struct shell *s)
{
	if (s->link.fd >= 0)
		return true;
	log_error("not connected: use CONNECT first");
	s->to->failed = true;
	return false;
}

static void start(struct shell *s)
{
	if (!is_connected(s))
		return;
	if (s->running) {
		say("already started");
	} else if (command(s, "START\n")) {
		s->running = true;
		s->heard = s->sent;
		say("started");
	}
}

static void stop_board(struct shell *s)
{
	bool silent = false;

	if (command(s, "STOP\n"))
		settle(s, ANSWER_BY, DRAIN_BY);
	if (command(s, "REFRESH\n"))
		silent = settle(s, SILENCE, DRAIN_BY);
	s->running = false;
	if (s->link.fd >= 0 && !silent)
		log_warn("%s: the board is still sending samples after STOP", s->to->address);
}

static void stop(struct shell *s)
{
	if (!is_connected(s))
		return;
	stop_board(s);
	say("stopped: %" PRIu64 " samples so far", nr_samples(s));
}

static void leave(struct shell *s)
{
	s->exits = true;
}

static const struct {
	const char *name, *about;
	void (*run)(struct shell *s);
} verbs[] = {
	{ "CONNECT", "connect to the board; you may need to restart it first", connect_board },
	{ "START", "start the profiler, or continue", start },
	{ "STOP", "stop it", stop },
	{ "EXIT", "stop it, write the output file, and exit", leave },
	{ "Q", "the same", leave },
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void obey(struct shell *s, const char *line)
{
	for (size_t i = 0; i < VERBS; i++) {
		if (!strcasecmp(verbs[i].name, line)) {
			verbs[i].run(s);
			return;
		}
	}
	if (strcasecmp(line, "HELP") != 0)
		log_error("unknown command: %s", line);
	for (size_t i = 0; i < VERBS; i++)
		say("  %-8s %s", verbs[i].name, verbs[i].about);
}

/* ---- the session ---- */

/* Takes the next line, without blanks around it. The last one may lack its newline. */
static bool take_line(struct shell *s, char line[MAX_LINE])
{
	struct buf *typed = &s->typed;
	char *end = typed->len ? memchr(typed->data, '\n', typed->len) : NULL;
	size_t len = end ? (size_t)(end - typed->data) + 1 : typed->len, from = 0, to;

	if (!len || (!end && !s->typed_all && len < MAX_LINE))
		return false;
	to = len < MAX_LINE ? len : MAX_LINE - 1;
	while (to && isspace((unsigned char)typed->data[to - 1]))
		to--;
	while (from < to && isspace((unsigned char)typed->data[from]))
		from++;
	memcpy(line, typed->data + from, to - from);
	line[to - from] = '\0';
	typed->len -= len;
	memmove(typed->data, typed->data + len, typed->len);
	return true;
}

/* While the profiler runs, the line above the prompt has the number of samples. */
static void show_prompt(struct shell *s)
{
	s->prompt_due = false;
	if (!s->terminal)
		return;
	if (s->running)
		printf("%" PRIu64 " samples\n", nr_samples(s));
	printf("> ");
	fflush(stdout);
}

static void show_samples(struct shell *s)
{
	uint64_t now = source_now();

	if (!s->terminal || !s->running || s->shown == s->bytes || now < s->show_at)
		return;
	s->shown = s->bytes;
	s->show_at = now + SHOW_EVERY;
	/* Saves the place where the user types, and goes back to it. */
	printf("\0337\033[A\r\033[K%" PRIu64 " samples, %.1f kB\0338", nr_samples(s),
	       (double)s->raw.bytes / 1e3);
	fflush(stdout);
}

static uint64_t wake_at(const struct shell *s)
{
	uint64_t at = source_now() + 60 * SECOND;

	if (s->running)
		source_earlier(&at, s->heard + REFRESH_AFTER);
	if (s->running && s->terminal && s->shown != s->bytes)
		source_earlier(&at, s->show_at);
	return at;
}

static void converse(struct shell *s)
{
	char line[MAX_LINE];

	if (s->terminal)
		say("netconn: CONNECT, START, STOP or EXIT");
	show_prompt(s);
	while (!s->exits && !hurries(s)) {
		if (take_line(s, line)) {
			if (*line)
				obey(s, line);
			s->prompt_due = !s->exits;
		} else if (s->typed_all) {
			break;
		} else {
			wait_until(s, true, wake_at(s));
			if (s->running && source_now() >= s->heard + REFRESH_AFTER) {
				command(s, "REFRESH\n");
				s->heard = s->sent;
			}
			show_samples(s);
		}
		if (s->prompt_due)
			show_prompt(s);
	}
}

/* Stops the board, and receives the rest. */
static void hang_up(struct shell *s)
{
	s->patience = s->interrupts + 1;
	if (s->running)
		stop_board(s);
	if (s->link.fd >= 0) {
		s->leaving = true;
		shutdown(s->link.fd, SHUT_WR);
		settle(s, SILENCE, DRAIN_BY);
	}
	link_close(&s->link);
}

static void run(struct shell *s)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!session_ignores(SIGHUP))
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &before);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	converse(s);
	if (s->terminal && !s->exits)
		say("%s", "");
	hang_up(s);
	close(s->signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int netconn_run(struct netconn *netconn, struct err *err)
{
	struct shell s = { .to = netconn, .raw.fd = -1, .patience = 1 };
	int ret = link_init(&s.link, &link_tcp, netconn->address, err);

	s.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (ret == 0)
		run(&s);
	if (s.raw.fd >= 0)
		close(s.raw.fd);
	netconn->bytes = s.raw.bytes;
	if (s.raw.err.code) {
		*err = s.raw.err;
		ret = -1;
	}
	link_release(&s.link);
	buf_release(&s.answer);
	buf_release(&s.rest);
	buf_release(&s.typed);
	return ret;
}
