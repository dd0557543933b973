// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signals: by instructions that fail (each has a label fault_*, whose instruction does not end), by a timer at any
 * place, several at once, on another stack, and with a longjmp() out of the handler.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile int ticks, faults;
static sigjmp_buf back;

__attribute__((noinline)) static int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

void on_tick(int signal)
{
	ticks++;
	sink += (unsigned long)signal;
}

void on_user(int signal)
{
	sink += (unsigned long)deep(signal % 7);
}

void on_segv(int signal)
{
	faults++;
	siglongjmp(back, signal);
}

/* Both instructions that fail have two bytes. */
void on_skip(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)signal, (void)info;
	at->uc_mcontext.gregs[REG_RIP] += 2;
	faults++;
}

void on_trap(int signal)
{
	(void)signal;
	faults++;
}

static void fail(void)
{
	if (!sigsetjmp(back, 1))
		__asm__ volatile(".globl fault_segv\nfault_segv: movl $1, (%0)"
				 :
				 : "r"(8L)
				 : "memory");
	__asm__ volatile("xor %%edx, %%edx\nmov $1, %%eax\nxor %%ecx, %%ecx\n"
			 ".globl fault_fpe\nfault_fpe: idiv %%ecx" ::
				 : "rax", "rcx", "rdx");
	__asm__ volatile(".globl fault_ill\nfault_ill: ud2");
	__asm__ volatile("int3");
}

/* Signals that wait come at once, when a system call unblocks them, and when an instruction runs. */
static void several(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(SIGUSR1);
}

static void handle(int signal, void *handler, int flags)
{
	struct sigaction action = { .sa_flags = flags };

	action.sa_sigaction = handler;
	sigaction(signal, &action, NULL);
}

static void set_timers(long us)
{
	struct itimerval every = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}

int main(void)
{
	static char room[65536];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	sigaltstack(&stack, NULL);
	handle(SIGSEGV, on_segv, SA_ONSTACK);
	handle(SIGFPE, on_skip, SA_SIGINFO);
	handle(SIGILL, on_skip, SA_SIGINFO);
	handle(SIGTRAP, on_trap, 0);
	handle(SIGALRM, on_tick, SA_RESTART);
	handle(SIGPROF, on_tick, SA_RESTART | SA_ONSTACK);
	handle(SIGUSR1, on_user, 0);
	handle(SIGUSR2, on_user, SA_ONSTACK);
	fail();
	fail();
	several();
	set_timers(500);
	while (ticks < 20) {
		for (int i = 0; i < 50; i++)
			sink += (unsigned long)deep(i);
	}
	set_timers(0);
	return faults == 8 ? 0 : 1;
}
