// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_http: any bytes as a request for the page of `kscope view`. Whatever gets the page has the secret and is
 * well-formed. The bytes are in a buffer of their size, so that a sanitizer sees a read beyond them.
 */
#include <stdlib.h>
#include <string.h>

#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in the seeds of fuzz/run. */
static const struct http_site sites[] = {
	{ .port = 8000, .token = "0123456789abcdef0123456789abcdef" },
	{ .port = 80, .token = "0123456789abcdef0123456789abcdef", .live = true },
};

static void need(bool good)
{
	if (!good)
		abort();
}

static bool has(const char *head, size_t len, const char *text)
{
	return memmem(head, len, text, strlen(text)) != NULL;
}

static void judge(const struct http_site *site, const char *head, size_t len)
{
	struct http_request request;

	http_judge(site, head, len, &request);
	need(*http_reason(request.status));
	if (request.status != 200)
		return;
	need(has(head, len, site->token) && has(head, len, " HTTP/1.") && len >= 4);
	need(!memcmp(head + len - 4, "\r\n\r\n", 4) && !memchr(head, '\0', len));
	need(request.what == HTTP_PAGE || site->live);
	need(!memcmp(head, request.head_only ? "HEAD /" : "GET /", request.head_only ? 6 : 5));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + !size);
	size_t len;

	need(copy);
	if (size)
		memcpy(copy, data, size);
	len = http_head_len(copy, size);
	need(len <= size);
	if (len) {
		char *head = malloc(len);

		need(head);
		memcpy(head, copy, len);
		/* What follows a head does not change where it ends. */
		need(http_head_len(head, len) == len && !http_head_len(head, len - 1));
		for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
			judge(&sites[i], head, len);
		free(head);
	}
	free(copy);
	return 0;
}
