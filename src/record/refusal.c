// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/refusal.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define MOST_HELP ((size_t)1 << 20)

static void become_help(const char *emulator, int out)
{
	int null = open("/dev/null", O_RDWR);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp(emulator, emulator, "-help", NULL);
	_exit(127);
}

/* Whether its -help mentions -plugin. Assumes so if there is no help. */
static bool knows_plugins(const char *emulator)
{
	struct buf help = { 0 };
	int ends[2];
	ssize_t got = 0;
	pid_t child;
	bool knows;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return true;
	child = fork();
	if (child == 0)
		become_help(emulator, ends[1]);
	close(ends[1]);
	do {
		help.len += (size_t)got;
		got = read(ends[0], buf_reserve(&help, 4096), 4096);
	} while (got > 0 && help.len < MOST_HELP);
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	knows = help.len < 1000 || memmem(help.data, help.len, "-plugin", 7);
	buf_release(&help);
	return knows;
}

static void say_how_it_ended(const struct guest *guest)
{
	if (WIFSIGNALED(guest->status))
		log_error("%s was killed by signal %d (%s) before anything was recorded",
			  guest->words[0], WTERMSIG(guest->status),
			  strsignal(WTERMSIG(guest->status)));
	else
		log_error("%s ended with status %d before anything was recorded", guest->words[0],
			  WEXITSTATUS(guest->status));
}

void refusal_explain(const struct guest *guest, const struct qemu_line *line, const char *plugin)
{
	say_how_it_ended(guest);
	if (guest->end_by && !line->script)
		log_say("kscope stopped it; was that too early?");
	else if (line->script)
		log_say("is it a script? It must pass its last arguments, -plugin and its value, "
			"on to QEMU: see kscope record qemu --print");
	else if (!knows_plugins(line->words[0]))
		log_say("this QEMU was built without TCG plugins: use one that has them, or build "
			"it with --enable-plugins%s",
			line->user ? " and without --static (Debian's qemu-user is static since "
				     "Debian 13)"
				   : "; Debian's has them");
	else
		log_say("see its messages above. If it rejects an option, try the command without "
			"kscope first. If it could not load the plugin (%s), the plugin belongs to "
			"another version of kscope or to another architecture: rebuild both",
			plugin);
}
