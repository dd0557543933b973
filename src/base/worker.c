// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/worker.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

size_t worker_cpus(void)
{
	cpu_set_t set;
	long cpus;

	if (!sched_getaffinity(0, sizeof(set), &set))
		return (size_t)CPU_COUNT(&set);
	cpus = sysconf(_SC_NPROCESSORS_ONLN); /* there are more than a set has room for */
	return cpus > 1 ? (size_t)cpus : 1;
}

bool worker_start(pthread_t *thread, void *(*work)(void *arg), void *arg)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(thread, NULL, work, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}
