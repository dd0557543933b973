/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * http: the requests that `kscope view` answers. A server on loopback can be reached by every program of the machine and
 * by every web page in its browser, so a request must know a secret (the token) and must not come from another site.
 */
#ifndef KSCOPE_HTTP_H
#define KSCOPE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_MAX_HEAD 8192
#define HTTP_TOKEN 32 /* hexadecimal digits */

struct http_site {
	uint16_t port;
	char token[HTTP_TOKEN + 1];
	bool live; /* the page may change: there are also HTTP_STATE and /TOKEN/live */
};

enum http_what { HTTP_PAGE, HTTP_STATE };

struct http_request {
	unsigned status; /* 200; else what is wrong with it */
	bool head_only;
	enum http_what what; /* of status 200 */
};

/* The length of the head with its empty line; 0: it is not complete. */
size_t http_head_len(const char *data, size_t len);
/* Judges a complete head. */
void http_judge(const struct http_site *site, const char *head, size_t len,
		struct http_request *request);
const char *http_reason(unsigned status);

#endif
