// SPDX-License-Identifier: GPL-2.0-or-later
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "record/source.h"

#define HEAD_BY (10 * SECOND)  /* the whole head must be there */
#define STALLED (60 * SECOND)  /* the client takes nothing of the answer; a browser may be busy */
#define DRAIN_BY (10 * SECOND) /* after the answer */
#define RETRY SECOND	       /* if there are no descriptors for connections */
#define PIECE ((size_t)256 << 10)

enum phase {
	FREE,
	READS, /* the head */
	SENDS, /* the answer */
	DRAINS, /* waits for the client to close: if unread bytes are left, the kernel discards the answer */
};

struct connection {
	enum phase phase;
	int fd;
	uint64_t active, until; /* the last progress, and when the server gives up */
	size_t len;
	char head[HTTP_MAX_HEAD];
	struct buf answer; /* its head, and a small body */
	size_t sent;	   /* of the answer */
	int page;	   /* -1: no page follows */
	off_t at, end;	   /* in the page */
};

struct serve {
	struct http_site site;
	char *url;
	int listening, page;
	uint64_t asked;
	uint64_t accept_at; /* not before */
	char *state;
	struct connection connections[SERVE_CONNECTIONS];
};

/* ---- its life ---- */

static int make_token(char *token, struct err *err)
{
	uint8_t secret[HTTP_TOKEN / 2];
	static const char digits[] = "0123456789abcdef";

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return err_set(err, ERR_OUTPUT, "cannot get random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(secret); i++) {
		token[2 * i] = digits[secret[i] >> 4];
		token[2 * i + 1] = digits[secret[i] & 15];
	}
	token[HTTP_TOKEN] = '\0';
	return 0;
}

/* Only on loopback: other machines must not even reach the port. Returns 0 or an errno. */
static int listen_here(struct serve *s, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	socklen_t len = sizeof(at);
	int yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listening < 0)
		return errno;
	setsockopt(s->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(s->listening, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(s->listening, SERVE_CONNECTIONS) ||
	    getsockname(s->listening, (struct sockaddr *)&at, &len))
		return errno;
	s->site.port = ntohs(at.sin_port);
	return 0;
}

static const char *hint(int error)
{
	switch (error) {
	case EADDRINUSE:
		return " (another program uses it: without --port, kscope takes a free one)";
	case EACCES: return " (ports below 1024 are for root: use a larger one)";
	default: return "";
	}
}

struct serve *serve_open(uint16_t port, bool live, struct err *err)
{
	struct serve *s = xcalloc(1, sizeof(*s));
	int error;

	s->page = s->listening = -1;
	s->site.live = live;
	error = listen_here(s, port);
	if (error)
		err_set(err, port ? ERR_USAGE : ERR_OUTPUT,
			"cannot listen on port %u of 127.0.0.1: %s%s", port, strerror(error),
			hint(error));
	if (error || make_token(s->site.token, err) < 0) {
		serve_close(s);
		return NULL;
	}
	s->url = xasprintf("http://127.0.0.1:%u/%s/%s", s->site.port, s->site.token,
			   live ? "live" : "");
	return s;
}

static void hang_up(struct connection *c)
{
	close(c->fd);
	if (c->page >= 0)
		close(c->page);
	buf_release(&c->answer);
	c->phase = FREE;
}

void serve_leave(struct serve *s)
{
	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		if (s->connections[i].phase != FREE)
			hang_up(&s->connections[i]);
	}
	if (s->listening >= 0)
		close(s->listening);
	s->listening = -1;
}

void serve_close(struct serve *s)
{
	if (!s)
		return;
	serve_leave(s);
	if (s->page >= 0)
		close(s->page);
	free(s->url);
	free(s->state);
	free(s);
}

const char *serve_url(const struct serve *s)
{
	return s->url;
}

uint64_t serve_asked(const struct serve *s)
{
	return s->asked;
}

void serve_put_page(struct serve *s, int fd)
{
	if (s->page >= 0)
		close(s->page);
	s->page = fd;
}

void serve_put_state(struct serve *s, const char *json)
{
	free(s->state);
	s->state = xstrdup(json);
}

/* ---- answers ---- */

static void add_head(struct buf *answer, unsigned status, const char *type, uint64_t len)
{
	buf_addf(answer, "HTTP/1.1 %u %s\r\n", status, http_reason(status));
	if (type)
		buf_addf(answer, "Content-Type: %s\r\n", type);
	buf_adds(answer, "Content-Length: ");
	buf_addu(answer, len);
	buf_adds(answer, "\r\n"
			 "Cache-Control: no-store\r\n"
			 "X-Content-Type-Options: nosniff\r\n"
			 "Referrer-Policy: no-referrer\r\n"
			 "Cross-Origin-Resource-Policy: same-origin\r\n"
			 "X-Frame-Options: DENY\r\n"
			 "Connection: close\r\n");
	if (status == 405)
		buf_adds(answer, "Allow: GET, HEAD\r\n");
	buf_adds(answer, "\r\n");
}

static void refuse(struct connection *c, unsigned status)
{
	add_head(&c->answer, status, NULL, 0);
}

static void answer_state(struct serve *s, struct connection *c, bool head_only)
{
	const char *state = s->state ? s->state : "";

	add_head(&c->answer, 200, "application/json", strlen(state));
	if (!head_only)
		buf_adds(&c->answer, state);
}

static void answer_page(struct serve *s, struct connection *c, bool head_only)
{
	struct stat st;

	if (s->page < 0 || fstat(s->page, &st)) {
		refuse(c, 404);
		return;
	}
	s->asked++;
	add_head(&c->answer, 200, "text/html; charset=utf-8", (uint64_t)st.st_size);
	if (head_only)
		return;
	c->page = fcntl(s->page, F_DUPFD_CLOEXEC, 0);
	c->at = 0;
	c->end = st.st_size;
	if (c->page < 0) { /* no descriptors: the client may try again */
		buf_clear(&c->answer);
		refuse(c, 503);
	}
}

static void answer(struct serve *s, struct connection *c, size_t len)
{
	struct http_request request;

	http_judge(&s->site, c->head, len, &request);
	if (request.status != 200)
		refuse(c, request.status);
	else if (request.what == HTTP_STATE)
		answer_state(s, c, request.head_only);
	else
		answer_page(s, c, request.head_only);
}

/* ---- connections ---- */

static void enter(struct connection *c, enum phase phase, uint64_t now, uint64_t time)
{
	c->phase = phase;
	c->active = now;
	c->until = now + time;
}

/* After a call that did nothing: whether the connection is over, and has not only to wait. */
static bool has_ended(struct connection *c, ssize_t did)
{
	if (did < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	hang_up(c);
	return true;
}

static void read_head(struct serve *s, struct connection *c, uint64_t now)
{
	ssize_t got = recv(c->fd, c->head + c->len, sizeof(c->head) - c->len, 0);
	size_t len;

	if (got <= 0) {
		if (has_ended(c, got) || now < c->until)
			return;
		if (!c->len) { /* browsers connect early, and may find nothing to ask for */
			hang_up(c);
			return;
		}
		refuse(c, 408);
		enter(c, SENDS, now, STALLED);
		return;
	}
	c->len += (size_t)got;
	c->active = now; /* but it does not get more time for the head */
	len = http_head_len(c->head, c->len);
	if (len)
		answer(s, c, len);
	else if (c->len == sizeof(c->head))
		refuse(c, 431);
	else
		return;
	enter(c, SENDS, now, STALLED);
}

/* The next piece of the answer; another connection may be next after it. */
static ssize_t send_piece(struct connection *c)
{
	ssize_t did;

	if (c->sent < c->answer.len) {
		did = send(c->fd, c->answer.data + c->sent, c->answer.len - c->sent,
			   MSG_NOSIGNAL | (c->page >= 0 ? MSG_MORE : 0));
		c->sent += did > 0 ? (size_t)did : 0;
		return did;
	}
	return sendfile(c->fd, c->page, &c->at,
			(uint64_t)(c->end - c->at) < PIECE ? (size_t)(c->end - c->at) : PIECE);
}

static void send_answer(struct connection *c, uint64_t now)
{
	ssize_t did = send_piece(c);

	if (did > 0)
		enter(c, SENDS, now, STALLED);
	else if (has_ended(c, did))
		return;
	if (c->sent == c->answer.len && (c->page < 0 || c->at == c->end)) {
		shutdown(c->fd, SHUT_WR);
		enter(c, DRAINS, now, DRAIN_BY);
	} else if (now >= c->until) {
		hang_up(c);
	}
}

static void drain(struct connection *c, uint64_t now)
{
	char waste[4096];
	ssize_t got = recv(c->fd, waste, sizeof(waste), 0);

	if (got <= 0 && has_ended(c, got))
		return;
	if (now >= c->until)
		hang_up(c);
}

static void step(struct serve *s, struct connection *c, uint64_t now)
{
	switch (c->phase) {
	case FREE: break;
	case READS: read_head(s, c, now); break;
	case SENDS: send_answer(c, now); break;
	case DRAINS: drain(c, now); break;
	}
}

/* ---- new ones ---- */

static struct connection *find_free(struct serve *s)
{
	struct connection *oldest = &s->connections[0];

	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		struct connection *c = &s->connections[i];

		if (c->phase == FREE)
			return c;
		if (c->active < oldest->active)
			oldest = c;
	}
	hang_up(oldest);
	return oldest;
}

static void accept_all(struct serve *s, uint64_t now)
{
	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct connection *c;

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				s->accept_at = now + RETRY;
			return;
		}
		c = find_free(s);
		c->fd = fd;
		c->page = -1;
		c->len = c->sent = 0;
		enter(c, READS, now, HEAD_BY);
	}
}

size_t serve_wait(struct serve *s, struct pollfd *fds, uint64_t *until)
{
	size_t nr = 0;

	if (source_now() >= s->accept_at)
		fds[nr++] = (struct pollfd){ .fd = s->listening, .events = POLLIN };
	else
		source_earlier(until, s->accept_at);
	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		const struct connection *c = &s->connections[i];

		if (c->phase == FREE)
			continue;
		fds[nr++] = (struct pollfd){ .fd = c->fd,
					     .events = c->phase == SENDS ? POLLOUT : POLLIN };
		source_earlier(until, c->until);
	}
	return nr;
}

/* All connections try: a system call that says "nothing yet" is cheap. */
void serve_step(struct serve *s)
{
	uint64_t now = source_now();

	for (size_t i = 0; i < SERVE_CONNECTIONS; i++)
		step(s, &s->connections[i], now);
	if (now >= s->accept_at)
		accept_all(s, now);
}
