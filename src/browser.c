// SPDX-License-Identifier: GPL-2.0-or-later
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define NOT_FOUND 127 /* as shells say it */

static const char *setting(const char *name)
{
	const char *set = getenv(name);

	return set && *set ? set : NULL;
}

/* $BROWSER may have options. The shell splits it into words, and does nothing else with it. */
static void run(const char *url)
{
	if (setting("BROWSER"))
		execl("/bin/sh", "sh", "-c", "set -f; exec $BROWSER \"$1\"", "sh", url,
		      (char *)NULL);
	else
		execlp("xdg-open", "xdg-open", url, (char *)NULL);
	_exit(NOT_FOUND);
}

/* Ctrl+C in the terminal is for kscope, and what browsers print is for nobody. */
static void become_browser(const char *url, const sigset_t *mask)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nothing, fd);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	run(url);
}

static void excuse(const char *why)
{
	log_warn("cannot start a browser: %s; open the address above in one", why);
}

void browser_open(struct browser *browser, const char *url, const sigset_t *mask)
{
	if (!setting("BROWSER") && !setting("DISPLAY") && !setting("WAYLAND_DISPLAY")) {
		excuse("there is no display (neither $DISPLAY nor $WAYLAND_DISPLAY is set)");
		return;
	}
	browser->child = fork();
	if (browser->child == 0)
		become_browser(url, mask);
	if (browser->child > 0)
		return;
	browser->child = 0;
	excuse(strerror(errno));
}

void browser_check(struct browser *browser, bool loaded)
{
	int status;

	if (browser->child <= 0 || waitpid(browser->child, &status, WNOHANG) != browser->child)
		return;
	browser->child = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		excuse(setting("BROWSER") ? "there is no such program as $BROWSER says"
					  : "xdg-open is not installed");
	else if (!loaded && (!WIFEXITED(status) || WEXITSTATUS(status)))
		excuse(setting("BROWSER") ? "$BROWSER failed" : "xdg-open failed");
}
