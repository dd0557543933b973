// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for QEMU's user mode that writes the address of every instruction before it runs, without anything of
 * kscope: DIR/TID.N has those of a thread, 8 bytes each; N counts the programs that it runs by execve(). A string
 * instruction with a rep prefix is one, and so is an atomic one, which QEMU may begin twice.
 *
 *	qemu-x86_64 -plugin truth.so,out=DIR PROGRAM...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOW (1 << 20) /* bytes of the file that are in memory */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void on_exec(unsigned cpu, void *data);

/* QEMU's functions, which have been the same since 7.2. */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, on_exec *call, int flags,
					    void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*call)(uint64_t, struct qemu_plugin_tb *));

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);
extern int qemu_plugin_version;
int qemu_plugin_version = 1;

/* QEMU reads the version after this. Since 9.0 it wants a newer one, with the same functions. */
__attribute__((constructor)) static void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_scoreboard_new"))
		qemu_plugin_version = 2;
}

/* Of a thread. What is in the mapped file is not lost, however the thread ends. */
static __thread struct {
	uint64_t *at, *end;
	off_t next;
	uint64_t last;
} self;
static char folder[4096];

static void stop(const char *what)
{
	perror(what);
	abort();
}

static void open_window(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);

	if (fd < 0 || ftruncate(fd, self.next + WINDOW) < 0)
		stop(path);
	self.at = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, self.next);
	if (self.at == MAP_FAILED)
		stop(path);
	close(fd);
	self.end = self.at + WINDOW / sizeof(uint64_t);
	self.next += WINDOW;
}

static void next_window(void)
{
	static __thread char path[5000];

	if (self.at) {
		munmap(self.end - WINDOW / sizeof(uint64_t), WINDOW);
		open_window(path, 0);
		return;
	}
	for (int i = 0;; i++) {
		snprintf(path, sizeof(path), "%s/%ld.%d", folder, (long)syscall(SYS_gettid), i);
		if (access(path, F_OK) < 0)
			break;
	}
	open_window(path, O_CREAT | O_EXCL);
}

static void put(uint64_t address)
{
	if (self.at == self.end)
		next_window();
	*self.at++ = address;
	self.last = address;
}

static void on_insn(unsigned cpu, void *data)
{
	(void)cpu;
	put((uint64_t)data);
}

static void on_repeated(unsigned cpu, void *data)
{
	(void)cpu;
	if (self.last != (uint64_t)data)
		put((uint64_t)data);
}

static bool may_repeat(const struct qemu_plugin_insn *insn)
{
	const uint8_t *byte = qemu_plugin_insn_haddr(insn);

	for (size_t i = 0; i < qemu_plugin_insn_size(insn); i++) {
		if (byte[i] == 0xf0)
			return true;
		if (byte[i] == 0xf2 || byte[i] == 0xf3) {
			i += (byte[i + 1] & 0xf0) == 0x40; /* REX */
			return byte[i + 1] >= 0xa4 && byte[i + 1] <= 0xaf;
		}
		if (byte[i] != 0x66 && byte[i] != 0x67)
			return false;
	}
	return false;
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_insn_exec_cb(insn,
						       may_repeat(insn) ? on_repeated : on_insn, 0,
						       (void *)qemu_plugin_insn_vaddr(insn));
	}
}

/* The window is the parent's. */
static void after_fork(void)
{
	memset(&self, 0, sizeof(self));
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) != 0)
		return -1;
	snprintf(folder, sizeof(folder), "%s", argv[0] + 4);
	pthread_atfork(NULL, NULL, after_fork);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
