// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads: some end, one after the other with the same number perhaps; others run when the program exits. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long sink;
static _Atomic int started;

__attribute__((noinline)) static int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

/*
 * An atomic instruction that QEMU runs alone once there are threads, because its operand is not aligned; then an
 * indirect jump.
 */
__attribute__((noinline)) static void split_lock(void)
{
	static _Alignas(64) char room[192];

	__asm__ volatile("lea 1f(%%rip), %%rax\n"
			 "lock incl 62(%0)\n"
			 "jmp *%%rax\n"
			 "nop\n"
			 "1:"
			 :
			 : "r"(room)
			 : "rax", "memory");
}

static void *work(void *nr)
{
	pthread_setname_np(pthread_self(), "worker");
	for (int i = 0; i < 3; i++)
		split_lock();
	for (int i = 0; i < 100; i++)
		sink += (unsigned long)deep(i % 20 + (int)(long)nr);
	return NULL;
}

static void *run_forever(void *nr)
{
	for (started++;; sink++)
		deep((int)(long)nr);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (int round = 0; round < 3; round++) {
		for (long i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, work, (void *)i);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run_forever, (void *)(70 * i));
	while (started < 2)
		usleep(100);
	exit(0);
}
