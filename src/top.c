// SPDX-License-Identifier: GPL-2.0-or-later
#include "top.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "top_parts.h"

#define MS 1000000ULL
#define PERIOD (500 * MS) /* of the screen */
#define PLAIN_PERIOD (2000 * MS)
#define WIDEST 1000 /* columns of a flame graph that are worth a frame */

void top_say(struct top *top, const char *fmt, ...)
{
	char text[1200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_clear(&top->message);
	buf_adds(&top->message, text);
}

/* ---- views ---- */

static void take_view(struct top *top)
{
	struct glance_sums sums;

	live_look(top->live, &top->view, top->by, top->screen && !top->no_flame ? WIDEST : 0);
	top_arrange(top);
	if (!top->setup->glance)
		return;
	glance_fill(top->live, &top->view, &sums);
	glance_put_sums(top->setup->glance, &sums);
}

static void hear_source(struct top *top)
{
	if (top->setup->glance)
		glance_get_source(top->setup->glance, &top->source);
}

/* ---- keys ---- */

static void move_by(struct top *top, long rows)
{
	if (rows < 0 && (size_t)-rows > top->at)
		top->at = 0;
	else
		top->at += (size_t)rows; /* drawing keeps it on the table */
}

static bool move_key(struct top *top, int key)
{
	switch (key) {
	case SCREEN_UP: move_by(top, -1); return true;
	case SCREEN_DOWN: move_by(top, 1); return true;
	case SCREEN_PAGE_UP: move_by(top, -top->visible); return true;
	case SCREEN_PAGE_DOWN: move_by(top, top->visible); return true;
	case SCREEN_HOME: top->at = 0; return true;
	case SCREEN_END: top->at = top->nr_rows; return true;
	default: return false;
	}
}

static void set_filter(struct top *top, const char *text)
{
	buf_clear(&top->filter);
	buf_adds(&top->filter, text);
	top->at = top->first = 0;
	top_arrange(top);
}

static void show(struct top *top, enum flat_by by)
{
	top->by = by;
	top->at = top->first = 0;
	take_view(top);
}

static void next_by(struct top *top)
{
	show(top, top->by == FLAT_FUNCTION ? FLAT_TASK
		  : top->by == FLAT_TASK   ? FLAT_CPU
					   : FLAT_FUNCTION);
}

static void ask(struct top *top, enum top_prompt prompt, const char *text)
{
	top->prompt = prompt;
	buf_clear(&top->input);
	buf_adds(&top->input, text);
}

static void ask_for_file(struct top *top)
{
	if (top->setup->raw_path)
		ask(top, PROMPT_SAVE, "flame.svg");
	else
		top_say(top, "cannot write: no file contains the recording so far");
}

static void command_key(struct top *top, int key)
{
	switch (key) {
	case 'q': top->quit = true; break;
	case 'p':
	case ' ':
		top->paused = !top->paused;
		if (!top->paused)
			take_view(top);
		break;
	case 's':
		top->sort = (top->sort + 1) % TOP_SORTS;
		top_arrange(top);
		break;
	case '/': ask(top, PROMPT_FILTER, top->filter.len ? top->filter.data : ""); break;
	case SCREEN_ESCAPE:
		top->help = false;
		set_filter(top, "");
		break;
	case 't': next_by(top); break;
	case 'e':
		live_next_source(top->live);
		show(top, top->by);
		break;
	case 'f':
		top->no_flame = !top->no_flame;
		take_view(top);
		break;
	case 'r':
		live_reset(top->live);
		take_view(top);
		break;
	case 'w': ask_for_file(top); break;
	case 'h':
	case '?': top->help = !top->help; break;
	default: move_key(top, key);
	}
}

static void erase_last(struct buf *input)
{
	while (input->len && (input->data[input->len - 1] & 0xc0) == 0x80)
		input->len--;
	if (input->len)
		input->len--;
	if (input->data)
		input->data[input->len] = '\0';
}

static void prompt_key(struct top *top, int key)
{
	enum top_prompt prompt = top->prompt;

	if (key == SCREEN_BACKSPACE) {
		erase_last(&top->input);
	} else if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
		top->prompt = PROMPT_NONE;
		if (prompt == PROMPT_FILTER && key == SCREEN_ESCAPE)
			set_filter(top, "");
		else if (prompt == PROMPT_SAVE && key == SCREEN_ENTER && top->input.len)
			top_save_begin(top, top->input.data);
		return;
	} else if (key == 21) { /* Ctrl-U, as in a shell */
		buf_clear(&top->input);
		buf_adds(&top->input, "");
	} else if (key >= ' ' && key < 256 && top->input.len < 1000) {
		buf_addc(&top->input, (char)key);
	}
	if (prompt == PROMPT_FILTER)
		set_filter(top, top->input.len ? top->input.data : "");
}

/* Returns whether there was a key. */
static bool take_keys(struct top *top)
{
	bool any = false;
	int key;

	while (!top->quit && (key = screen_key(top->screen)) != SCREEN_NOTHING) {
		any = true;
		if (key == SCREEN_GONE) {
			top->quit = true;
			break;
		}
		if (key == SCREEN_REDRAW)
			continue;
		buf_clear(&top->message);
		if (top->prompt)
			prompt_key(top, key);
		else
			command_key(top, key);
	}
	return any;
}

/* ---- loops ---- */

/* Nobody is there to look at the end of the recording: it was interrupted, or the recorder has died. */
static bool is_over(const struct top *top)
{
	return live_state(top->live) >= LIVE_ENDED &&
	       (top->source.leave || getppid() != top->parent);
}

/* Waits for data or a key. */
static void wait_for_more(struct top *top, int step, uint64_t next)
{
	struct pollfd fds[] = { { .fd = live_fd(top->live), .events = POLLIN },
				{ .fd = top->screen ? screen_fd(top->screen) : -1,
				  .events = POLLIN } };
	uint64_t now = live_clock();
	uint64_t wait = next <= now ? 0 : (next - now) / MS + 1;

	poll(fds, 2, step > 0 ? 0 : wait < 200 ? (int)wait : 200);
	if (fds[1].revents & (POLLHUP | POLLERR | POLLNVAL))
		top->quit = true;
}

/* Takes a view and draws it. Returns when to do so again. */
static uint64_t refresh(struct top *top)
{
	uint64_t began = live_clock(), now;

	if (!top->paused)
		take_view(top);
	top_draw(top);
	if (live_state(top->live) >= LIVE_ENDED)
		return UINT64_MAX;
	/* Drawing takes longer the more code ran: never more than a fifth of the time. */
	now = live_clock();
	return now + PERIOD + 4 * (now - began);
}

static void run_screen(struct top *top)
{
	uint64_t next = 0;
	int step = 0;

	while (!top->quit && !is_over(top)) {
		enum live_state before = live_state(top->live);
		bool changed;

		wait_for_more(top, step, next);
		step = live_step(top->live);
		changed = top_save_step(top);
		changed |= take_keys(top);
		hear_source(top);
		/* The end comes at once, even if the view is due later. */
		if (live_clock() >= next || live_state(top->live) != before)
			next = refresh(top);
		else if (changed)
			top_draw(top);
	}
}

static void run_plain(struct top *top)
{
	uint64_t next = live_clock() + PLAIN_PERIOD;
	int step = 0;

	while (!top->quit && step >= 0) {
		wait_for_more(top, step, next);
		step = live_step(top->live);
		if (step >= 0 && live_clock() < next)
			continue;
		hear_source(top);
		take_view(top);
		top->quit = !top_print(top);
		next = live_clock() + PLAIN_PERIOD;
	}
}

static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static void release(struct top *top)
{
	live_view_release(&top->view);
	live_close(top->live);
	top_save_end(top);
	free(top->rows);
	buf_release(&top->input);
	buf_release(&top->filter);
	buf_release(&top->message);
	buf_release(&top->scratch[0]);
	buf_release(&top->scratch[1]);
}

int top_main(const struct top_setup *setup)
{
	struct err err = { 0 };
	struct top top = { .setup = setup, .began = live_clock(), .parent = getppid() };

	ignore_signals();
	top.live = live_open(setup->like, setup->fd, setup->title, &err);
	if (!top.live) {
		log_error("%s", err.msg);
		return err.code;
	}
	if (screen_possible())
		top.screen = screen_open(&err);
	if (err.code)
		log_error("%s", err.msg);
	log_level = -1; /* the view says what matters, and messages would spoil it */
	if (top.screen) {
		run_screen(&top);
		screen_close(top.screen);
	} else {
		run_plain(&top);
	}
	release(&top);
	return ERR_NONE;
}
