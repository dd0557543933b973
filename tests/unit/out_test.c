// SPDX-License-Identifier: GPL-2.0-or-later
/* out_test: files appear whole or not at all, and every kind of target is written rightly. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "base/out.h"

static int failures;

#define CHECK(cond)                                                                        \
	do {                                                                               \
		if (!(cond)) {                                                             \
			printf("not ok out.%s: line %d: %s\n", __func__, __LINE__, #cond); \
			failures++;                                                        \
			return;                                                            \
		}                                                                          \
	} while (0)

#define PASSED() printf("ok out.%s\n", __func__)

static int nr_files(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return nr;
}

static bool file_is(const char *path, const char *wanted)
{
	char got[4096] = "";
	int fd = open(path, O_RDONLY);
	ssize_t len = fd < 0 ? -1 : read(fd, got, sizeof(got) - 1);

	if (fd >= 0)
		close(fd);
	return len == (ssize_t)strlen(wanted) && !memcmp(got, wanted, (size_t)len);
}

static int put(const char *path, const char *text, struct err *err)
{
	struct out out;

	if (out_open(&out, path, false, err))
		return -1;
	out_puts(&out, text);
	return out_commit(&out, err);
}

static void new_and_replaced(void)
{
	struct err err = { 0 };
	struct stat st;
	mode_t mask = umask(022);

	CHECK(!put("new", "one", &err));
	CHECK(file_is("new", "one"));
	CHECK(!stat("new", &st) && (st.st_mode & 0777) == 0644);
	CHECK(!put("new", "two", &err));
	CHECK(file_is("new", "two"));
	CHECK(nr_files() == 1);
	unlink("new");
	umask(mask);
	PASSED();
}

static bool has_mode(const char *path, unsigned mode)
{
	struct stat st;

	return !stat(path, &st) && (st.st_mode & 07777) == mode;
}

static void permissions_are_kept(void)
{
	struct folder_mark mark = { "info", "magic" };
	struct folder folder;
	struct err err = { 0 };
	struct stat st;
	mode_t mask = umask(022);

	for (unsigned mode = 0600; mode <= 0666; mode += 2) {
		CHECK(!put("kept", "one", &err) && !chmod("kept", mode));
		CHECK(!put("kept", "two", &err));
		CHECK(file_is("kept", "two") && has_mode("kept", mode));
	}
	/* root keeps the owner, too; for another user, chown() to himself is all there is. */
	CHECK(!chown("kept", geteuid() ? geteuid() : 4321, geteuid() ? getegid() : 1234));
	CHECK(!put("kept", "three", &err) && !stat("kept", &st));
	CHECK(st.st_uid == (geteuid() ? geteuid() : 4321));
	CHECK(st.st_gid == (geteuid() ? getegid() : 1234));
	CHECK(!mkdir("folder", 0700) && !folder_open(&folder, "folder", &mark, &err));
	folder_append(&folder, "info", "magic", 5);
	CHECK(!folder_commit(&folder, &err) && has_mode("folder", 0700));
	CHECK(!unlink("folder/info") && !rmdir("folder") && !unlink("kept"));
	umask(mask);
	PASSED();
}

/* A group that the old file was not for gets no permissions by the new one. */
static void group_that_cannot_be_kept(void)
{
	struct out_replaced replaced = { .there = true };
	struct err err = { 0 };
	int fd, status;
	pid_t child;

	CHECK(!put("group", "", &err) && !stat("group", &replaced.st));
	fd = open("group", O_WRONLY);
	child = fork();
	if (!child) {
		/* A group that this user is not in, even if he was root. */
		if (!geteuid() && (chown("group", 4321, 4321) || setgroups(0, NULL) ||
				   setgid(4321) || setuid(4321)))
			_exit(2);
		replaced.st.st_gid = 54321;
		replaced.st.st_mode = S_IFREG | 0664;
		_exit(out_take_place(fd, &replaced));
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(has_mode("group", 0644));
	close(fd);
	unlink("group");
	PASSED();
}

static void private_if_new(void)
{
	struct err err = { 0 };
	struct out out;
	mode_t mask = umask(0);

	CHECK(!out_open_private(&out, "private", false, &err) && !out_commit(&out, &err));
	CHECK(has_mode("private", 0600) && !chmod("private", 0640));
	CHECK(!out_open_private(&out, "private", false, &err) && !out_commit(&out, &err));
	CHECK(has_mode("private", 0640));
	unlink("private");
	umask(mask);
	PASSED();
}

static void abandoned(void)
{
	struct err err = { 0 };
	struct out out, zero = { 0 };

	CHECK(!put("kept", "old", &err));
	CHECK(!out_open(&out, "kept", false, &err));
	out_puts(&out, "new");
	out_abandon(&out);
	out_abandon(&out);
	out_abandon(&zero);
	CHECK(file_is("kept", "old"));
	CHECK(nr_files() == 1);
	unlink("kept");
	PASSED();
}

static void links_are_followed(void)
{
	struct err err = { 0 };
	struct stat st;

	CHECK(!mkdir("sub", 0755));
	CHECK(!symlink("sub/target", "link") && !symlink("link", "link2"));
	CHECK(!put("link2", "dangling", &err));
	CHECK(file_is("sub/target", "dangling"));
	CHECK(!put("link2", "again", &err));
	CHECK(file_is("sub/target", "again"));
	CHECK(!lstat("link2", &st) && S_ISLNK(st.st_mode));
	CHECK(!lstat("link", &st) && S_ISLNK(st.st_mode));
	CHECK(!symlink("loop", "loop"));
	CHECK(put("loop", "x", &err) && strstr(err.msg, "loop: cannot write"));
	unlink("sub/target");
	rmdir("sub");
	unlink("link");
	unlink("link2");
	unlink("loop");
	CHECK(nr_files() == 0);
	PASSED();
}

static void traps(void)
{
	struct stat folder = { .st_mode = S_IFDIR | 01777, .st_uid = 0 };
	struct stat file = { .st_mode = S_IFLNK | 0777, .st_uid = 66 };

	CHECK(out_is_trap(&folder, &file, 77) && out_is_trap(&folder, &file, 0));
	CHECK(!out_is_trap(&folder, &file, 66));
	file.st_mode = S_IFREG | 0666;
	CHECK(out_is_trap(&folder, &file, 77));
	file.st_mode = S_IFDIR | 0777;
	CHECK(out_is_trap(&folder, &file, 77) && !out_is_trap(&folder, &file, 66));
	file.st_mode = S_IFCHR | 0666;
	CHECK(!out_is_trap(&folder, &file, 77));
	file = (struct stat){ .st_mode = S_IFLNK | 0777, .st_uid = 0 };
	CHECK(!out_is_trap(&folder, &file, 77)); /* the folder's owner could do worse */
	file.st_uid = 66;
	folder.st_mode = S_IFDIR | 0777;
	CHECK(!out_is_trap(&folder, &file, 77));
	folder.st_mode = S_IFDIR | 01755;
	CHECK(!out_is_trap(&folder, &file, 77));
	PASSED();
}

/* Without root, all links here are the user's own, and are followed. */
static void links_of_others(void)
{
	struct folder_mark mark = { "info", "magic" };
	bool root = !geteuid();
	struct err err = { 0 };
	struct folder folder;
	struct stat st;

	CHECK(!mkdir("tmp", 0755) && !chmod("tmp", 01777) && !mkdir("home", 0755));
	CHECK(!put("home/secret", "secret", &err));
	CHECK(!symlink("../home/secret", "tmp/link") && !symlink("../home/new", "tmp/dangling"));
	CHECK(!symlink("tmp/link", "mine"));
	CHECK(!root || (!lchown("tmp/link", 4321, 4321) && !lchown("tmp/dangling", 4321, 4321)));
	CHECK((put("tmp/link", "x", &err) != 0) == root);
	CHECK(!root ||
	      (err.code == ERR_OUTPUT && strstr(err.msg, "tmp/link: cannot write: another user")));
	CHECK((put("mine", "x", &err) != 0) == root);
	CHECK((put("tmp/dangling", "x", &err) != 0) == root);
	CHECK(file_is("home/secret", root ? "secret" : "x") && !lstat("tmp/link", &st) &&
	      S_ISLNK(st.st_mode) && (access("home/new", F_OK) != 0) == root);
	unlink("home/new");
	CHECK(!symlink("../home", "tmp/home") && (!root || !lchown("tmp/home", 4321, 4321)));
	CHECK((put("tmp/home/new", "x", &err) != 0) == root);
	CHECK((access("home/new", F_OK) != 0) == root);
	unlink("home/new");
	unlink("tmp/home");
	CHECK((folder_open(&folder, "tmp/dangling", &mark, &err) != 0) == root);
	folder_abandon(&folder);
	unlink("home/secret");
	unlink("tmp/link");
	unlink("tmp/dangling");
	unlink("mine");
	rmdir("home");
	rmdir("tmp");
	CHECK(nr_files() == 0);
	PASSED();
}

static void patched_before_and_after_a_flush(void)
{
	struct err err = { 0 };
	struct out out;
	char *big = xmalloc(1000000);
	struct stat st;
	char head[8] = "", middle[4] = "";
	int fd;

	memset(big, '.', 999999);
	big[999999] = '\0';
	CHECK(!out_open(&out, "patched", true, &err));
	out_puts(&out, "????");
	out_patch(&out, 1, "AB", 2);
	for (int i = 0; i < 100; i++)
		out_write(&out, big, 9999);
	CHECK(out_offset(&out) == 4 + 999900);
	out_patch(&out, 0, "Z", 1);
	out_patch(&out, 600000, "mid", 3);
	out_write(&out, big, 1000000);
	out_puts(&out, big + 999000);
	CHECK(!out_commit(&out, &err));
	fd = open("patched", O_RDONLY);
	CHECK(fd >= 0 && !fstat(fd, &st) && st.st_size > 4 + 1999900);
	CHECK(pread(fd, head, 5, 0) == 5 && !strcmp(head, "ZAB?."));
	CHECK(pread(fd, middle, 3, 600000) == 3 && !strcmp(middle, "mid"));
	close(fd);
	unlink("patched");
	free(big);
	PASSED();
}

static void room_across_flushes(void)
{
	struct err err = { 0 };
	struct out out;
	uint8_t *data;
	bool good = true;
	int fd;

	CHECK(!out_open(&out, "room", true, &err));
	for (uint32_t i = 0; i < 30; i++) { /* 30 x 65528 bytes do not divide the buffer evenly */
		memset(out_room(&out, 65528), (int)i, 65528);
		out_write(&out, "+", 1);
	}
	memset(out_room(&out, OUT_ROOM), 'z', OUT_ROOM);
	CHECK(out_offset(&out) == 30 * 65529 + OUT_ROOM);
	CHECK(!out_commit(&out, &err));
	fd = open("room", O_RDONLY);
	data = xmalloc(30 * 65529 + OUT_ROOM);
	CHECK(read(fd, data, 30 * 65529 + OUT_ROOM) == 30 * 65529 + (ssize_t)OUT_ROOM);
	for (size_t i = 0; i < 30 * 65529; i++)
		good &= data[i] == (i % 65529 == 65528 ? '+' : i / 65529);
	for (size_t i = 0; i < OUT_ROOM; i++)
		good &= data[30 * 65529 + i] == 'z';
	CHECK(good);
	free(data);
	close(fd);
	unlink("room");
	PASSED();
}

static void fifo(void)
{
	struct err err = { 0 };
	struct out out;
	char got[8] = "";
	int fd;

	CHECK(!mkfifo("fifo", 0600));
	fd = open("fifo", O_RDWR); /* so that nobody waits */
	CHECK(!put("fifo", "abc", &err));
	CHECK(read(fd, got, 3) == 3 && !strcmp(got, "abc"));
	CHECK(!out_open(&out, "fifo", true, &err));
	out_puts(&out, "xyz");
	out_patch(&out, 0, "X", 1);
	CHECK(!out_commit(&out, &err));
	CHECK(read(fd, got, 3) == 3 && !strcmp(got, "Xyz"));
	close(fd);
	unlink("fifo");
	CHECK(nr_files() == 0);
	PASSED();
}

static void devices(void)
{
	struct err err = { 0 };
	struct stat st;

	CHECK(!put("/dev/null", "x", &err));
	CHECK(!stat("/dev/null", &st) && S_ISCHR(st.st_mode));
	CHECK(put("/dev/full", "x", &err) && err.code == ERR_OUTPUT);
	CHECK(strstr(err.msg, "/dev/full: cannot write: No space left"));
	PASSED();
}

static void bad_places(void)
{
	struct err missing = { 0 }, folder = { 0 };

	CHECK(put("no/such/folder/x", "x", &missing) && missing.code == ERR_OUTPUT);
	CHECK(strstr(missing.msg, "the directory must exist"));
	CHECK(put(".", "x", &folder) && strstr(folder.msg, "name a file inside it"));
	CHECK(nr_files() == 0);
	PASSED();
}

static void limit_reached(void)
{
	struct rlimit old, small = { 4096, 4096 };
	struct err err = { 0 };
	struct out out;
	char page[1000] = { 0 };
	bool failed;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	CHECK(!out_open(&out, "limited", false, &err));
	for (int i = 0; i < 1000; i++)
		out_write(&out, page, sizeof(page));
	failed = out_failed(&out);
	CHECK(out_commit(&out, &err) && failed && strstr(err.msg, "ulimit -f"));
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK(nr_files() == 0);
	PASSED();
}

/* AddressSanitizer ends programs that want too much memory; here, malloc() must return NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* As on NFS or old kernels: files have names while they are written. */
static bool forbid_nameless_files(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

enum how { SIGNAL, IGNORED_SIGNAL, NO_MEMORY };

/* The output is written, and the program ends in this way. */
static void write_and_end(const struct folder_mark *mark, int ready, enum how how)
{
	struct folder folder;
	struct err err = { 0 };
	struct out out;

	if (how == IGNORED_SIGNAL)
		signal(SIGTERM, SIG_IGN);
	if (!forbid_nameless_files() || out_open(&out, "file", false, &err) || !out.temp ||
	    folder_open(&folder, "folder", mark, &err))
		_exit(1);
	out_puts(&out, "text");
	out_flush(&out);
	folder_append(&folder, "a", "text", 4);
	folder_append(&folder, "b", "text", 4);
	if (fork() == 0) { /* a child with a copy of everything removes nothing */
		raise(SIGTERM);
		_exit(0);
	}
	wait(NULL);
	if (nr_files() != 2 || write(ready, "", 1) != 1)
		_exit(1);
	if (how == NO_MEMORY)
		free(xmalloc(SIZE_MAX / 2));
	while (how == SIGNAL)
		pause();
	sleep(1);
	_exit(out_commit(&out, &err) || folder_commit(&folder, &err) ? 1 : 0);
}

/* Returns the status of the program; -1: it could not be made. */
static int end_while_writing(enum how how, int number)
{
	const struct folder_mark mark = { "mark", "magic" };
	int ready[2], status = -1;
	pid_t child;
	char byte;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child)
		write_and_end(&mark, ready[1], how);
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1 && how != NO_MEMORY)
		kill(child, number);
	waitpid(child, &status, 0);
	close(ready[0]);
	return status;
}

static void ended_by_a_signal(void)
{
	static const int numbers[] = { SIGHUP,	SIGINT,	 SIGTERM, SIGXCPU, SIGALRM,
				       SIGUSR1, SIGPROF, SIGIO,	  SIGABRT };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int status;

		signal(numbers[i], SIG_DFL); /* nohup, for one, ignores some */
		status = end_while_writing(SIGNAL, numbers[i]);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
		CHECK(nr_files() == 0);
	}
	PASSED();
}

static void signal_ignored(void)
{
	CHECK(end_while_writing(IGNORED_SIGNAL, SIGTERM) == 0);
	CHECK(nr_files() == 2);
	CHECK(!unlink("file") && !unlink("folder/a") && !unlink("folder/b") && !rmdir("folder"));
	PASSED();
}

static void out_of_memory(void)
{
	int status = end_while_writing(NO_MEMORY, 0);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ERR_OUTPUT);
	CHECK(nr_files() == 0);
	PASSED();
}

/* SIGKILL in the middle of writing: no cleanup of ours can run. */
static void killed(void)
{
	int ready[2], status;
	pid_t child;
	char byte;

	CHECK(!pipe(ready));
	child = fork();
	if (!child) {
		struct err err = { 0 };
		struct out out;
		char page[1000] = { 0 };

		if (out_open(&out, "killed", false, &err))
			_exit(1);
		for (int i = 0; i < 1000; i++)
			out_write(&out, page, sizeof(page));
		if (write(ready[1], out.temp ? "t" : "n", 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(child > 0 && read(ready[0], &byte, 1) == 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(ready[0]);
	close(ready[1]);
	if (byte == 't') {
		printf("skip out.killed: this file system has no O_TMPFILE\n");
		return;
	}
	CHECK(nr_files() == 0);
	PASSED();
}

int main(void)
{
	char folder[] = "/tmp/kscope-out-XXXXXX";

	if (!mkdtemp(folder) || chdir(folder)) {
		printf("skip out: no temporary folder: %s\n", strerror(errno));
		return 0;
	}
	new_and_replaced();
	permissions_are_kept();
	group_that_cannot_be_kept();
	private_if_new();
	abandoned();
	links_are_followed();
	traps();
	links_of_others();
	patched_before_and_after_a_flush();
	room_across_flushes();
	fifo();
	devices();
	bad_places();
	limit_reached();
	ended_by_a_signal();
	signal_ignored();
	out_of_memory();
	killed();
	if (!chdir("/"))
		rmdir(folder);
	return failures != 0;
}
