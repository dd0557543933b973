// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guard calls only functions that are safe after fork(). It must not send an interrupt to a target that is
 * stopped: gdbserver would pass it on as SIGINT, which ends the program.
 */
#include "record/gdb_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "record/gdb_packet.h"

#define RELEASED 'r'
#define DETACH_MAX 64
#define QUIET 100    /* ms without an answer: there is none under way */
#define SHORT 500    /* ms */
#define PATIENT 3000 /* ms, for a target to stop, and for an answer */

struct gdb_shared {
	_Atomic uint8_t moment;	 /* enum gdb_moment */
	char detach[DETACH_MAX]; /* a packet */
};

static ssize_t receive(int fd, int patience, char *bytes, size_t size)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int ret;

	do {
		ret = poll(&wait, 1, patience);
	} while (ret < 0 && errno == EINTR);
	return ret > 0 ? read(fd, bytes, size) : 0;
}

/* Whether bytes came. Discards them. */
static bool came(int fd, int patience)
{
	char bytes[4096];

	return receive(fd, patience, bytes, sizeof(bytes)) > 0;
}

/* Whether the stub answers with OK. */
static bool agrees(int fd)
{
	int patience = PATIENT;
	char bytes[4096];
	ssize_t got;

	for (int i = 0; i < 10000; i++, patience = QUIET) {
		got = receive(fd, patience, bytes, sizeof(bytes));
		if (got <= 0 || memmem(bytes, (size_t)got, "$OK#", 4))
			return got > 0;
	}
	return false;
}

static bool tell(int fd, const char *text)
{
	return write(fd, text, strlen(text)) > 0;
}

static void drain(int fd)
{
	for (int i = 0; i < 10000 && came(fd, QUIET); i++)
		;
}

/* Makes sure that the target is stopped. */
static void stop_target(int fd, enum gdb_moment moment)
{
	if (moment == GDB_CHANGING && (came(fd, SHORT) || (tell(fd, "$?#3f") && came(fd, SHORT))))
		moment = GDB_STOPPED;
	if (moment != GDB_STOPPED && tell(fd, "\x03"))
		came(fd, PATIENT);
	drain(fd);
}

static void release_target(int fd, const struct gdb_shared *shared)
{
	stop_target(fd, atomic_load(&shared->moment));
	/* Ends a packet that kscope may have sent in part, and acknowledges the last answer. */
	tell(fd, "#00+");
	tell(fd, shared->detach);
	if (!agrees(fd)) /* it cannot detach */
		tell(fd, "+$c#63");
	drain(fd); /* a reset would be an error for the stub */
}

static void close_others(int fd, int pipe)
{
	int low = fd < pipe ? fd : pipe, high = fd < pipe ? pipe : fd;

	for (int i = 0; i < high; i++) {
		if (i != low)
			close(i);
	}
#ifdef SYS_close_range
	if (syscall(SYS_close_range, (unsigned)high + 1, ~0u, 0) == 0)
		return;
#endif
	for (int i = high + 1; i < 4096; i++)
		close(i);
}

static void guard_main(int fd, int pipe, const struct gdb_shared *shared)
{
	char byte;
	ssize_t got;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	close_others(fd, pipe); /* also standard output: somebody may wait for its end */
	do {
		got = read(pipe, &byte, 1);
	} while (got < 0 && errno == EINTR);
	if (got != 1 || byte != RELEASED)
		release_target(fd, shared);
	_exit(0);
}

void gdb_guard_set_detach(struct gdb_guard *guard, const char *text)
{
	struct buf packet = { 0 };

	if (!guard->shared)
		return;
	gdb_encode(&packet, text, strlen(text));
	if (packet.len < DETACH_MAX)
		memcpy(guard->shared->detach, packet.data, packet.len + 1);
	buf_release(&packet);
}

int gdb_guard_start(struct gdb_guard *guard, int fd)
{
	int ends[2];

	guard->shared = mmap(NULL, sizeof(*guard->shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->shared == MAP_FAILED || pipe2(ends, O_CLOEXEC) < 0) {
		guard->shared = NULL;
		return -1;
	}
	gdb_guard_set(guard, GDB_STOPPED);
	gdb_guard_set_detach(guard, "D");
	guard->pid = fork();
	if (guard->pid == 0) {
		close(ends[1]);
		guard_main(fd, ends[0], guard->shared);
	}
	close(ends[0]);
	guard->pipe = ends[1];
	return guard->pid < 0 ? -1 : 0;
}

void gdb_guard_set(struct gdb_guard *guard, enum gdb_moment moment)
{
	if (guard->shared)
		atomic_store(&guard->shared->moment, (uint8_t)moment);
}

void gdb_guard_end(struct gdb_guard *guard, bool released)
{
	static const char byte = RELEASED;

	if (!guard->shared)
		return;
	if (released && guard->pid > 0 && write(guard->pipe, &byte, 1) != 1)
		released = false;
	close(guard->pipe);
	if (released && guard->pid > 0)
		waitpid(guard->pid, NULL, 0);
	munmap(guard->shared, sizeof(*guard->shared));
	guard->shared = NULL;
}
