/* SPDX-License-Identifier: GPL-2.0-or-later */
/* worker: threads that work for the caller, which gets all signals. */
#ifndef KSCOPE_BASE_WORKER_H
#define KSCOPE_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The cpus that this process may use. */
size_t worker_cpus(void);
/* False: there is no thread; the caller has to do the work. */
bool worker_start(pthread_t *thread, void *(*work)(void *arg), void *arg);

#endif
