/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve: a server for one page, on loopback, for one user: http.h has its rules. The caller polls. Nothing blocks, and
 * memory does not depend on the size of the page: the kernel sends it from its file. A connection that has begun to
 * send a page keeps it, even if there is a new one.
 */
#ifndef KSCOPE_SERVE_H
#define KSCOPE_SERVE_H

#include <poll.h>
#include <stdint.h>

#include "base/err.h"
#include "http.h"

#define SERVE_CONNECTIONS 64
#define SERVE_FDS (SERVE_CONNECTIONS + 1)

struct serve;

/* port 0: any that is free. live: see struct http_site. NULL: see err. */
struct serve *serve_open(uint16_t port, bool live, struct err *err);
void serve_close(struct serve *s);
/* Closes the sockets in a forked child: as long as they are open there, no connection ends. */
void serve_leave(struct serve *s);

/* Where the page is: http://127.0.0.1:PORT/TOKEN/ or with `live` at the end. Belongs to the server. */
const char *serve_url(const struct serve *s);
/* Takes over the descriptor of the page. */
void serve_put_page(struct serve *s, int fd);
/* What HTTP_STATE answers. */
void serve_put_state(struct serve *s, const char *json);
/* How many times somebody asked for the page. */
uint64_t serve_asked(const struct serve *s);

/* What to wait for, SERVE_FDS at most; lowers *until (ns, source_now()). */
size_t serve_wait(struct serve *s, struct pollfd *fds, uint64_t *until);
/* Call it afterwards, also if nothing is ready. */
void serve_step(struct serve *s);

#endif
