// SPDX-License-Identifier: GPL-2.0-or-later
#include "http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct text {
	const char *at;
	size_t len;
};

/* The headers that matter. Each may be there only once. */
enum header { HOST, ORIGIN, FETCH_SITE, FETCH_MODE, FETCH_DEST, NR_HEADERS };

static const char *const header_names[NR_HEADERS] = {
	"Host", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest",
};

struct head {
	struct text method, target;
	struct text headers[NR_HEADERS]; /* at NULL: not there */
};

/* ---- the syntax ---- */

static bool is(struct text text, const char *word)
{
	return text.at && text.len == strlen(word) && !memcmp(text.at, word, text.len);
}

static bool is_name_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_name(struct text text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!is_name_char(text.at[i]))
			return false;
	}
	return text.len;
}

/* Neither spaces nor control characters. */
static bool is_target(struct text text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] <= ' ' || text.at[i] > '~')
			return false;
	}
	return text.len;
}

static bool is_value(struct text text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct text trim(struct text text)
{
	while (text.len && is_blank(text.at[0])) {
		text.at++;
		text.len--;
	}
	while (text.len && is_blank(text.at[text.len - 1]))
		text.len--;
	return text;
}

/* Takes the part before the separator off the rest. False: there is no separator. */
static bool cut(struct text *rest, char separator, struct text *part)
{
	const char *end = memchr(rest->at, separator, rest->len);

	if (!end)
		return false;
	*part = (struct text){ rest->at, (size_t)(end - rest->at) };
	rest->len -= part->len + 1;
	rest->at = end + 1;
	return true;
}

/* A line ends with CR LF, and contains neither. */
static bool cut_line(struct text *rest, struct text *line)
{
	if (!cut(rest, '\n', line) || !line->len || line->at[line->len - 1] != '\r')
		return false;
	line->len--;
	return true;
}

/* METHOD SP TARGET SP HTTP/1.x */
static bool parse_first(struct text line, struct head *head)
{
	return cut(&line, ' ', &head->method) && is_name(head->method) &&
	       cut(&line, ' ', &head->target) && is_target(head->target) &&
	       (is(line, "HTTP/1.1") || is(line, "HTTP/1.0"));
}

static bool parse_header(struct text line, struct head *head)
{
	struct text name;

	if (!cut(&line, ':', &name) || !is_name(name) || !is_value(line))
		return false;
	for (size_t i = 0; i < NR_HEADERS; i++) {
		if (name.len != strlen(header_names[i]) ||
		    strncasecmp(name.at, header_names[i], name.len) != 0)
			continue;
		if (head->headers[i].at)
			return false;
		head->headers[i] = trim(line);
	}
	return true;
}

static bool parse(struct text rest, struct head *head)
{
	struct text line;

	if (!cut_line(&rest, &line) || !parse_first(line, head))
		return false;
	while (cut_line(&rest, &line)) {
		if (!line.len)
			return !rest.len;
		if (!parse_header(line, head))
			return false;
	}
	return false;
}

/* An end of bare newlines counts, too: the request is wrong, but complete. */
size_t http_head_len(const char *data, size_t len)
{
	const char *at = data, *end = data + len;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
			return (size_t)(at + 2 - data);
		if (end - at >= 1 && at[0] == '\n')
			return (size_t)(at + 1 - data);
	}
	return 0;
}

/* ---- the rules ---- */

/* The name of this machine with the server's port, which a browser leaves out if it is that of HTTP. */
static bool is_here(struct text text, uint16_t port, const char *before)
{
	static const char *const names[] = { "127.0.0.1", "localhost" };
	char want[60];

	for (size_t i = 0; i < 2; i++) {
		snprintf(want, sizeof(want), "%s%s:%u", before, names[i], port);
		if (text.len == strlen(want) && !strncasecmp(text.at, want, text.len))
			return true;
		want[strlen(before) + strlen(names[i])] = '\0';
		if (port == 80 && text.len == strlen(want) && !strncasecmp(text.at, want, text.len))
			return true;
	}
	return false;
}

/* A page of another site may only lead the user here, as a link does. */
static bool is_foreign(const struct head *head)
{
	struct text site = head->headers[FETCH_SITE], dest = head->headers[FETCH_DEST];

	if (!site.at || is(site, "same-origin") || is(site, "none"))
		return false;
	return !is(head->headers[FETCH_MODE], "navigate") || (dest.at && !is(dest, "document"));
}

/* A name that leads to this machine, but is not its own, belongs to an attacker (DNS rebinding). */
static bool is_allowed(const struct http_site *site, const struct head *head)
{
	struct text host = head->headers[HOST], origin = head->headers[ORIGIN];

	return host.at && is_here(host, site->port, "") &&
	       (!origin.at || is_here(origin, site->port, "http://")) && !is_foreign(head);
}

/* In a time that does not depend on where they differ. */
static bool same_token(const char *a, const char *b)
{
	volatile unsigned char differ = 0;

	for (size_t i = 0; i < HTTP_TOKEN; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

/* Compares the target as it is: no path is decoded, so none can be a trick. */
static bool find(const struct http_site *site, struct text target, enum http_what *what)
{
	struct text name;

	if (target.len < HTTP_TOKEN + 2 || target.at[0] != '/' ||
	    target.at[HTTP_TOKEN + 1] != '/' || !same_token(target.at + 1, site->token))
		return false;
	name = (struct text){ target.at + HTTP_TOKEN + 2, target.len - HTTP_TOKEN - 2 };
	*what = site->live && is(name, "state") ? HTTP_STATE : HTTP_PAGE;
	return !name.len || (site->live && (is(name, "state") || is(name, "live")));
}

void http_judge(const struct http_site *site, const char *data, size_t len,
		struct http_request *request)
{
	struct head head = { 0 };

	*request = (struct http_request){ .status = 200 };
	if (!parse((struct text){ data, len }, &head)) {
		request->status = 400;
		return;
	}
	request->head_only = is(head.method, "HEAD");
	if (!request->head_only && !is(head.method, "GET"))
		request->status = 405;
	else if (!is_allowed(site, &head))
		request->status = 403;
	else if (!find(site, head.target, &request->what))
		request->status = 404;
}

const char *http_reason(unsigned status)
{
	switch (status) {
	case 200: return "OK";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 503: return "Service Unavailable";
	case 431: return "Request Header Fields Too Large";
	default: return "Bad Request";
	}
}
