// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes by fork(), vfork() and posix_spawn(), and other programs by execve(), also from a thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char **words;

__attribute__((noinline)) static int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

static void wait_for(pid_t child, int code)
{
	int status;

	if (child <= 0 || waitpid(child, &status, 0) != child || status >> 8 != code)
		exit(1);
}

static void *exec_in_thread(void *arg)
{
	execl(words[0], words[0], "child", (char *)NULL);
	return arg;
}

static void exec_from_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_in_thread, NULL);
	for (;;)
		deep(10);
}

/* A script, by its interpreter, and a program that does not exist. */
static void exec_script(const char *script)
{
	execl("/does/not/exist", "nothing", (char *)NULL);
	execl(script, "script", "argument", (char *)NULL);
	_exit(9);
}

int main(int argc, char **argv)
{
	char *spawned[] = { argv[0], (char *)"child", NULL };
	pid_t child;

	words = argv;
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "child"))
		return deep(7);
	child = fork();
	if (!child)
		_exit(deep(5));
	wait_for(child, 5);
	child = fork();
	if (!child)
		exec_script(argv[1]);
	wait_for(child, 3);
	child = fork();
	if (!child)
		exec_from_thread();
	wait_for(child, 7);
	child = vfork();
	if (!child)
		_exit(4);
	wait_for(child, 4);
	if (posix_spawn(&child, argv[0], NULL, NULL, spawned, environ))
		return 1;
	wait_for(child, 7);
	return 0;
}
