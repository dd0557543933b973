// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a program on the real processor, one instruction at a time, and prints their addresses. A string instruction
 * with a rep prefix is one.
 *
 *	step PROGRAM...
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int become(char **words)
{
	personality(ADDR_NO_RANDOMIZE);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execv(words[0], words);
	perror(words[0]);
	_exit(127);
}

/* Whether the code there begins with a rep prefix. */
static int repeats(pid_t child, unsigned long long address)
{
	long code = ptrace(PTRACE_PEEKTEXT, child, (void *)address, NULL);

	return (code & 0xff) == 0xf2 || (code & 0xff) == 0xf3;
}

int main(int argc, char **argv)
{
	unsigned long long last = 0;
	pid_t child;
	int status;

	if (argc < 2)
		return 2;
	child = fork();
	if (child == 0)
		return become(argv + 1);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		struct user_regs_struct regs;

		if (WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, child, NULL, &regs) < 0)
			return 3;
		if (regs.rip != last || !repeats(child, last))
			printf("%llx\n", regs.rip);
		last = regs.rip;
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0)
			return 3;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
