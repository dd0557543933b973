// SPDX-License-Identifier: GPL-2.0-or-later
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spool.h"
#include "record/source.h"
#include "write/flame_text.h"

#define LOOK_EVERY (SECOND / 4)
#define LEAST_PAUSE SECOND
#define QUIET (5 * SECOND) /* an input that did not change for so long does not grow */
#define LITTLE 4096	   /* bytes: an input may be too short to be understood */

/* ---- the inputs ---- */

static void look_at(struct watch_look *look, const struct stat *st)
{
	const uint64_t facts[] = { look->digest, (uint64_t)st->st_size, (uint64_t)st->st_ino,
				   (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec };

	look->digest = hash_words(facts, sizeof(facts) / sizeof(facts[0]), 0).a;
	look->bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

/* The folder of a recording of several files, such as uftrace's. The sum does not depend on the order of entries. */
static void look_into(struct watch_look *look, const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *entry;
	uint64_t sum = 0;

	while (folder && (entry = readdir(folder))) {
		struct watch_look one = { 0 };
		struct stat st;

		if (fstatat(dirfd(folder), entry->d_name, &st, 0) || !S_ISREG(st.st_mode))
			continue;
		look_at(&one, &st);
		sum += one.digest;
		look->bytes += one.bytes;
	}
	if (folder)
		closedir(folder);
	look->digest += sum;
}

static void look_around(const struct watch *w, struct watch_look *look)
{
	*look = (struct watch_look){ 0 };
	for (size_t i = 0; i < w->args->nr_inputs; i++) {
		const char *path = w->args->inputs[i];
		uint64_t before = look->bytes;
		struct stat st = { 0 };
		bool there = !stat(path, &st);

		if (there)
			look_at(look, &st);
		if (there && S_ISDIR(st.st_mode))
			look_into(look, path);
		if (look->bytes == before && !look->missing)
			look->missing = path;
	}
}

/* ---- what the server says ---- */

static bool grows(const struct watch *w)
{
	return w->changed && source_now() - w->changed < QUIET;
}

static void tell(struct watch *w)
{
	struct buf text = { 0 };
	struct json_out json = { .to = &text };

	json_out_object(&json, NULL);
	json_out_u64(&json, "version", w->version);
	json_out_u64(&json, "bytes", w->now.bytes);
	json_out_bool(&json, "growing", grows(w));
	if (w->problem)
		json_out_text(&json, "error", w->problem);
	else
		json_out_null(&json, "error");
	json_out_end(&json);
	serve_put_state(w->serve, text.data);
	buf_release(&text);
}

/* The page as long as there is none: it loads itself again. */
static void put_waiting_page(struct watch *w)
{
	struct buf html = { 0 };
	int fd = spool_file();

	buf_adds(&html,
		 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		 "style-src 'unsafe-inline'\">\n"
		 "<meta http-equiv=\"refresh\" content=\"1\">\n"
		 "<style>:root { color-scheme: light dark; font: 15px system-ui, sans-serif; "
		 "padding: 2em }</style>\n<title>kscope: waiting</title></head>\n<body><p>Waiting "
		 "for ");
	svg_escape_z(&html, w->now.missing ? w->now.missing : w->args->inputs[0]);
	buf_adds(&html, "</p>\n");
	if (w->problem) {
		buf_adds(&html, "<p>");
		svg_escape_z(&html, w->problem);
		buf_adds(&html, "</p>\n");
	}
	buf_adds(&html, "</body></html>\n");
	if (fd >= 0 && fd_write(fd, html.data, html.len) == 0)
		serve_put_page(w->serve, fd);
	else if (fd >= 0)
		close(fd);
	buf_release(&html);
}

/* ---- pages ---- */

static void set_problem(struct watch *w, char *problem)
{
	free(w->problem);
	w->problem = problem;
	if (!w->version)
		put_waiting_page(w);
}

/* The last error in what a conversion said, without the name of the program. */
static char *find_error(const struct view_page *page)
{
	static const char start[] = "kscope: error: ";
	const char *text = page->said.data ? page->said.data : "", *at = NULL;

	for (const char *next = text; (next = strstr(next, start)); next++)
		at = next + strlen(start);
	if (at)
		return xstrndup(at, strcspn(at, "\n"));
	if (page->code < 0)
		return xasprintf("the conversion was ended by signal %d", -page->code);
	return xstrdup("the conversion failed");
}

static void wait_for_input(struct watch *w, const char *path)
{
	if (!w->waits && !w->version)
		log_say("waiting for %s", path);
	w->waits = true;
}

/* The user sees each problem once. Takes it over. */
static void show_problem(struct watch *w, char *problem)
{
	if (!w->said || strcmp(w->said, problem) != 0) {
		log_error("%s", problem);
		free(w->said);
		w->said = xstrdup(problem);
	}
	w->failed = true;
	set_problem(w, problem);
}

/* An input that has only just begun may be too short to be understood: give it some time. */
static void take_failure(struct watch *w)
{
	char *problem = find_error(&w->page);
	bool waits = w->code == ERR_INPUT || w->version;

	free(w->doubt);
	w->doubt = NULL;
	if (waits && !w->version && w->made.bytes < LITTLE)
		w->doubt = problem;
	else
		show_problem(w, problem);
	w->ended = !waits;
	if (waits)
		wait_for_input(w, w->args->inputs[0]);
}

static void end_doubt(struct watch *w)
{
	if (!w->doubt || source_now() < w->next + QUIET)
		return;
	show_problem(w, w->doubt);
	w->doubt = NULL;
}

static void take_page(struct watch *w)
{
	if (!w->version++)
		fd_write(STDERR_FILENO, w->page.said.data, w->page.said.len);
	serve_put_page(w->serve, w->page.fd);
	w->page.fd = -1;
	w->failed = false;
	free(w->doubt);
	w->doubt = NULL;
	set_problem(w, NULL);
}

static void collect(struct watch *w)
{
	uint64_t now = source_now(), pause = 2 * (now - w->started);

	view_page_listen(&w->page);
	if (!w->page.child || !view_page_ended(&w->page, WNOHANG))
		return;
	now = source_now();
	w->next = now + (pause > LEAST_PAUSE ? pause : LEAST_PAUSE);
	w->code = w->page.code < 0 ? ERR_OUTPUT : w->page.code;
	if (w->page.fd >= 0)
		take_page(w);
	else
		take_failure(w);
	view_page_release(&w->page);
}

static bool is_due(const struct watch *w)
{
	return !w->page.child && !w->ended && !w->now.missing && w->now.digest != w->made.digest &&
	       source_now() >= w->next;
}

static void begin(struct watch *w)
{
	struct err err = { 0 };

	w->made = w->now;
	w->started = source_now();
	if (view_page_start(&w->page, w->args, w->serve,
			    w->version ? VIEW_PAGE_KEEPS_ERRORS : VIEW_PAGE_KEEPS, w->mask,
			    &err) == 0)
		return;
	view_page_release(&w->page);
	w->code = err.code;
	w->next = w->started + LEAST_PAUSE;
	buf_addf(&w->page.said, "kscope: error: %s\n", err.msg);
	take_failure(w);
	buf_release(&w->page.said);
}

static void look(struct watch *w)
{
	struct watch_look before = w->now;

	look_around(w, &w->now);
	w->look_at = source_now() + LOOK_EVERY;
	if (w->now.digest != before.digest)
		w->changed = source_now();
	if (w->now.missing)
		wait_for_input(w, w->now.missing);
}

void watch_start(struct watch *w)
{
	w->page = (struct view_page){ .messages = -1, .fd = -1 };
	look(w);
	w->changed = 0;
	put_waiting_page(w);
	tell(w);
}

void watch_wait(struct watch *w, struct pollfd *fd, uint64_t *until)
{
	*fd = (struct pollfd){ .fd = w->page.messages, .events = POLLIN };
	source_earlier(until, w->look_at);
}

void watch_step(struct watch *w)
{
	collect(w);
	if (source_now() >= w->look_at)
		look(w);
	end_doubt(w);
	if (is_due(w))
		begin(w);
	tell(w);
}

void watch_release(struct watch *w)
{
	view_page_release(&w->page);
	free(w->doubt);
	free(w->problem);
	free(w->said);
}
