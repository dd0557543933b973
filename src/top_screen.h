/* SPDX-License-Identifier: GPL-2.0-or-later */
/* top_screen: the terminal, by ncurses. Text may be anything: what a terminal might obey becomes '?'. */
#ifndef KSCOPE_TOP_SCREEN_H
#define KSCOPE_TOP_SCREEN_H

#include <stdbool.h>
#include <termios.h>

#include "base/err.h"

enum style {
	STYLE_PLAIN,
	STYLE_TITLE,
	STYLE_BOLD,
	STYLE_HEAD, /* of the table */
	STYLE_CURSOR,
	STYLE_HOT,
	STYLE_WARM,
	STYLE_ALARM,
	STYLE_BAR,
	/* Of frames: two of each kind, for neighbours. */
	STYLE_TASK,
	STYLE_TASK_2,
	STYLE_USER,
	STYLE_USER_2,
	STYLE_KERNEL,
	STYLE_KERNEL_2,
	STYLES
};

enum screen_key { /* others are bytes of text */
		  SCREEN_NOTHING = -1,
		  SCREEN_ESCAPE = 27,
		  SCREEN_UP = 256,
		  SCREEN_DOWN,
		  SCREEN_PAGE_UP,
		  SCREEN_PAGE_DOWN,
		  SCREEN_HOME,
		  SCREEN_END,
		  SCREEN_BACKSPACE,
		  SCREEN_ENTER,
		  SCREEN_REDRAW, /* another size, or the user asks for it */
		  SCREEN_GONE,	 /* the terminal was closed */
		  SCREEN_OTHER,
};

struct screen;

/* A terminal as it was, for the recorder: to restore it if its viewer was killed. */
struct screen_modes {
	bool known;
	struct termios modes;
};

/* Whether the output is a terminal that can show a screen. */
bool screen_possible(void);
void screen_modes_keep(struct screen_modes *modes);
void screen_modes_restore(const struct screen_modes *modes);
/* NULL: see err. */
struct screen *screen_open(struct err *err);
void screen_close(struct screen *screen);
int screen_fd(const struct screen *screen); /* to poll for keys */
int screen_key(struct screen *screen);
void screen_size(const struct screen *screen, int *rows, int *columns);
void screen_clear(struct screen *screen);
/* Prints at most `width` columns of text. Returns how many. */
int screen_put(struct screen *screen, int y, int x, int width, enum style style, const char *text);
/* The same, filled up with blanks. */
void screen_fill(struct screen *screen, int y, int x, int width, enum style style,
		 const char *text);
/* cursor_x: in the last line, where the user types; -1: nowhere. */
void screen_show(struct screen *screen, int cursor_x);

#endif
