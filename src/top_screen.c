// SPDX-License-Identifier: GPL-2.0-or-later
#include "top_screen.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"

bool screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void screen_modes_keep(struct screen_modes *modes)
{
	modes->known = tcgetattr(STDOUT_FILENO, &modes->modes) == 0;
}

#ifdef HAVE_NCURSES

#include <ncurses.h>

struct screen {
	SCREEN *curses;
	FILE *in;
	bool utf8;
	chtype styles[STYLES];
};

/* If there are colours: foreground, background; -1: as it is. */
static const struct look {
	short front, back;
	attr_t more, alone; /* alone: without colours */
} looks[STYLES] = {
	[STYLE_PLAIN] = { -1, -1, 0, 0 },
	[STYLE_TITLE] = { -1, -1, A_REVERSE, A_REVERSE },
	[STYLE_BOLD] = { -1, -1, A_BOLD, A_BOLD },
	[STYLE_HEAD] = { COLOR_BLACK, COLOR_CYAN, 0, A_REVERSE },
	[STYLE_CURSOR] = { -1, -1, A_REVERSE, A_REVERSE },
	[STYLE_HOT] = { COLOR_RED, -1, A_BOLD, A_BOLD },
	[STYLE_WARM] = { COLOR_GREEN, -1, 0, 0 },
	[STYLE_ALARM] = { COLOR_WHITE, COLOR_RED, A_BOLD, A_REVERSE | A_BOLD },
	[STYLE_BAR] = { COLOR_GREEN, -1, A_BOLD, A_BOLD },
	[STYLE_TASK] = { COLOR_BLACK, COLOR_WHITE, 0, A_REVERSE },
	[STYLE_TASK_2] = { COLOR_WHITE, COLOR_BLUE, 0, 0 },
	[STYLE_USER] = { COLOR_BLACK, COLOR_GREEN, 0, A_REVERSE },
	[STYLE_USER_2] = { COLOR_BLACK, COLOR_CYAN, 0, 0 },
	[STYLE_KERNEL] = { COLOR_BLACK, COLOR_YELLOW, 0, A_REVERSE },
	[STYLE_KERNEL_2] = { COLOR_WHITE, COLOR_RED, 0, 0 },
};

static bool wants_colors(void)
{
	const char *set = getenv("NO_COLOR"); /* as no-color.org defines it */

	return has_colors() && !(set && *set);
}

static void set_styles(struct screen *screen)
{
	bool colors = wants_colors() && start_color() == OK && COLOR_PAIRS > STYLES;

	if (colors)
		use_default_colors();
	for (int i = 0; i < STYLES; i++) {
		const struct look *look = &looks[i];

		screen->styles[i] = colors ? look->more : look->alone;
		if (!colors || (look->front < 0 && look->back < 0))
			continue;
		init_pair((short)(i + 1), look->front, look->back);
		screen->styles[i] |= (chtype)COLOR_PAIR(i + 1);
	}
}

/* Standard input may be the recording: keys come from the terminal itself. */
static FILE *open_keys(void)
{
	int fd = isatty(STDIN_FILENO) ? dup(STDIN_FILENO) : open("/dev/tty", O_RDWR | O_CLOEXEC);

	return fd < 0 ? NULL : fdopen(fd, "r");
}

struct screen *screen_open(struct err *err)
{
	struct screen *screen = xcalloc(1, sizeof(*screen));

	setlocale(LC_CTYPE, "");
	screen->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	screen->in = open_keys();
	if (screen->in)
		screen->curses = newterm(NULL, stdout, screen->in);
	if (!screen->curses) {
		err_set(err, ERR_USAGE,
			screen->in ? "unknown terminal '%s'" : "no terminal for keys (TERM is %s)",
			getenv("TERM"));
		if (screen->in)
			fclose(screen->in);
		free(screen);
		return NULL;
	}
	set_term(screen->curses);
	set_styles(screen);
	cbreak(); /* signals of keys stay: Ctrl-C ends the recording, and thus the view */
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	return screen;
}

void screen_close(struct screen *screen)
{
	curs_set(1);
	endwin();
	delscreen(screen->curses);
	fclose(screen->in);
	free(screen);
}

void screen_modes_restore(const struct screen_modes *modes)
{
	SCREEN *screen = modes->known && screen_possible() ? newterm(NULL, stdout, stdin) : NULL;

	if (screen) {
		curs_set(1);
		endwin();
		delscreen(screen);
	}
	if (modes->known)
		tcsetattr(STDOUT_FILENO, TCSADRAIN, &modes->modes);
}

int screen_fd(const struct screen *screen)
{
	return fileno(screen->in);
}

static int translate(int key)
{
	switch (key) {
	case ERR: return SCREEN_NOTHING;
	case KEY_UP: return SCREEN_UP;
	case KEY_DOWN: return SCREEN_DOWN;
	case KEY_PPAGE: return SCREEN_PAGE_UP;
	case KEY_NPAGE: return SCREEN_PAGE_DOWN;
	case KEY_HOME: return SCREEN_HOME;
	case KEY_END: return SCREEN_END;
	case KEY_BACKSPACE:
	case 8:
	case 127: return SCREEN_BACKSPACE;
	case KEY_ENTER:
	case '\n':
	case '\r': return SCREEN_ENTER;
	case KEY_RESIZE: return SCREEN_REDRAW;
	case 12: /* Ctrl-L */ clearok(curscr, TRUE); return SCREEN_REDRAW;
	default: return key > 255 ? SCREEN_OTHER : key;
	}
}

int screen_key(struct screen *screen)
{
	int key = getch();

	if (key == ERR && (feof(screen->in) || ferror(screen->in)))
		return SCREEN_GONE;
	return translate(key);
}

void screen_size(const struct screen *screen, int *rows, int *columns)
{
	(void)screen;
	getmaxyx(stdscr, *rows, *columns);
}

void screen_clear(struct screen *screen)
{
	(void)screen;
	erase();
}

/* How many columns a character takes; its bytes in *len. 0: leave it out; -1: print '?'. */
static int columns_of(const struct screen *screen, const char *text, size_t *len)
{
	wchar_t wide;
	int columns;

	*len = text_utf8_len(text);
	if (!*len)
		*len = 1;
	if (text_is_unsafe(text_code(text, *len)) || (*text & 0x80 && !screen->utf8))
		return -1;
	if (!(*text & 0x80))
		return 1;
	if (mbtowc(&wide, text, *len) <= 0)
		return -1;
	columns = wcwidth(wide);
	return columns;
}

int screen_put(struct screen *screen, int y, int x, int width, enum style style, const char *text)
{
	int used = 0;
	size_t len;

	if (width <= 0 || move(y, x) == ERR)
		return 0;
	attrset(screen->styles[style]);
	for (; *text && used < width; text += len) {
		int columns = columns_of(screen, text, &len);

		if (columns > width - used)
			break;
		if (columns < 0)
			addch('?');
		else if (columns > 0)
			addnstr(text, (int)len);
		used += columns < 0 ? 1 : columns;
	}
	attrset(0);
	return used;
}

void screen_fill(struct screen *screen, int y, int x, int width, enum style style, const char *text)
{
	int used = screen_put(screen, y, x, width, style, text);

	for (; used < width; used++)
		screen_put(screen, y, x + used, 1, style, " ");
}

void screen_show(struct screen *screen, int cursor_x)
{
	(void)screen;
	curs_set(cursor_x >= 0);
	if (cursor_x >= 0)
		move(getmaxy(stdscr) - 1, cursor_x);
	refresh();
}

#else

struct screen {
	int nothing;
};

struct screen *screen_open(struct err *err)
{
	err_set(err, ERR_USAGE,
		"kscope was built without ncurses: to see a screen instead of plain text, install "
		"libncurses-dev and build it again");
	return NULL;
}

void screen_close(struct screen *screen)
{
	(void)screen;
}

void screen_modes_restore(const struct screen_modes *modes)
{
	(void)modes;
}

int screen_fd(const struct screen *screen)
{
	(void)screen;
	return -1;
}

int screen_key(struct screen *screen)
{
	(void)screen;
	return SCREEN_GONE;
}

void screen_size(const struct screen *screen, int *rows, int *columns)
{
	(void)screen;
	*rows = *columns = 0;
}

void screen_clear(struct screen *screen)
{
	(void)screen;
}

int screen_put(struct screen *screen, int y, int x, int width, enum style style, const char *text)
{
	(void)screen, (void)y, (void)x, (void)width, (void)style, (void)text;
	return 0;
}

void screen_fill(struct screen *screen, int y, int x, int width, enum style style, const char *text)
{
	(void)screen, (void)y, (void)x, (void)width, (void)style, (void)text;
}

void screen_show(struct screen *screen, int cursor_x)
{
	(void)screen, (void)cursor_x;
}

#endif
