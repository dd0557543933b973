// SPDX-License-Identifier: GPL-2.0-or-later
/* A second binary beside shapes.c: threads that run the same code. */
#include <pthread.h>

#include "shared.h"

#define THREADS 3

int library(int n);

static __attribute__((always_inline)) inline int inlined(int n)
{
	int sum = 0;

	while (n > 0)
		sum += n--;
	return sum;
}

static void *thread(void *arg)
{
	int *n = arg;

	*n = inlined(*n) + pick(*n);
	return NULL;
}

int library(int n)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], sum = 0;

	for (int i = 0; i < THREADS; i++) {
		numbers[i] = n + i;
		pthread_create(&threads[i], NULL, thread, &numbers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += numbers[i];
	}
	return sum;
}
