// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftover.h"
#include "base/log.h"
#include "base/mem.h"

/* Entries are used again, and never freed: a handler may be reading the list. */
struct mapping {
	struct mapping *next;
	_Atomic uintptr_t start; /* 0: free */
	_Atomic uintptr_t end;
	_Atomic bool cut;
	bool warned;
	char *path;
};

static struct mapping *_Atomic all;
static bool any_cut;
static uintptr_t page;

static struct mapping *find(uintptr_t addr)
{
	struct mapping *m = all;

	while (m && !(m->start && addr >= m->start && addr < m->end))
		m = m->next;
	return m;
}

/* Zeros in the place of what is gone; the access then happens again. */
static void fill_in(int number, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr & ~(page - 1);
	struct mapping *m = info->si_code == BUS_ADRERR ? find((uintptr_t)info->si_addr) : NULL;
	int error = errno;

	(void)context;
	if (!m || mmap((void *)addr, m->end - addr, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
		leftover_remove_all();
		signal(number, SIG_DFL);
		raise(number); /* a SIGBUS that another process sent would not come again */
	} else {
		m->cut = true;
	}
	errno = error;
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_sigaction = fill_in, .sa_flags = SA_SIGINFO };

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigaction(SIGBUS, &action, NULL);
}

static struct mapping *find_free(void)
{
	struct mapping *m = all;

	while (m && m->start)
		m = m->next;
	if (m)
		return m;
	m = xcalloc(1, sizeof(*m));
	m->next = all;
	all = m;
	return m;
}

void mapped_watch(const void *data, size_t len, const char *path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct mapping *m;

	if (!data || !len)
		return;
	pthread_once(&once, catch_faults);
	m = find_free();
	m->path = xstrdup(path);
	m->cut = m->warned = false;
	m->end = (uintptr_t)data + len;
	m->start = (uintptr_t)data;
}

static void warn(struct mapping *m)
{
	if (m->start && m->cut && !m->warned)
		log_warn("%s: the file became shorter while kscope was reading it: names "
			 "may be missing",
			 m->path);
	m->warned = m->cut;
	any_cut |= m->cut;
}

bool mapped_warn(void)
{
	for (struct mapping *m = all; m; m = m->next)
		warn(m);
	return any_cut;
}

void mapped_forget(const void *data)
{
	struct mapping *m = data ? find((uintptr_t)data) : NULL;

	if (!m)
		return;
	warn(m);
	m->start = 0;
	free(m->path);
	m->path = NULL;
}

void *mapped_file(int fd, const char *path, size_t *len)
{
	struct stat st;
	void *data;

	if (fstat(fd, &st))
		return NULL;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return NULL;
	*len = (size_t)st.st_size;
	mapped_watch(data, *len, path);
	return data;
}

void mapped_close(void *data, size_t len)
{
	if (!data)
		return;
	mapped_forget(data);
	munmap(data, len);
}
