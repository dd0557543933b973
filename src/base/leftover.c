// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* Entries are used again, and never freed: a handler may be reading the list. */
struct leftover {
	struct leftover *next;
	char *path;  /* NULL: free */
	pid_t owner; /* the process that added it, not a forked child */
};

static struct leftover *_Atomic all;

/* As the kernel fills them in; readdir() would allocate memory. */
struct entry {
	uint64_t ino;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

static bool remove_some(int fd)
{
	_Alignas(struct entry) char room[4096];
	long len, at = 0;
	bool did = false;

	lseek(fd, 0, SEEK_SET);
	while ((len = syscall(SYS_getdents64, fd, room, sizeof(room))) > 0) {
		for (at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)(room + at);

			did |= !unlinkat(fd, entry->name, 0);
			at += entry->size;
		}
	}
	return did;
}

void leftover_remove_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	/* File systems may skip entries when others go away. */
	while (remove_some(fd))
		;
	close(fd);
	rmdir(path);
}

void leftover_remove_all(void)
{
	pid_t self = getpid();

	for (struct leftover *l = all; l; l = l->next) {
		if (l->path && l->owner == self && unlink(l->path))
			leftover_remove_folder(l->path);
	}
}

static void end(int number)
{
	int error = errno;

	leftover_remove_all();
	raise(number); /* with its default action, when this handler returns */
	errno = error;
}

/* Signals that the program handles or ignores do not end it. */
static void catch_signals(void)
{
	static const int ending[] = { SIGHUP,  SIGINT,	SIGQUIT, SIGPIPE,   SIGTERM, SIGXCPU,
				      SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGIO,
				      SIGPWR,  SIGSYS,	SIGABRT, SIGBUS,    SIGFPE,  SIGILL };
	struct sigaction catch = { .sa_handler = end, .sa_flags = SA_RESETHAND }, now;

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (!sigaction(ending[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(ending[i], &catch, NULL);
	}
}

void leftover_add(const char *path)
{
	struct leftover *l = all;

	catch_signals();
	while (l && l->path)
		l = l->next;
	if (!l) {
		l = xcalloc(1, sizeof(*l));
		l->next = all;
		all = l;
	}
	l->owner = getpid();
	l->path = xstrdup(path);
}

void leftover_forget(const char *path)
{
	for (struct leftover *l = all; l; l = l->next) {
		char *mine = l->path;

		if (!mine || strcmp(mine, path) != 0)
			continue;
		l->path = NULL;
		free(mine);
	}
}
