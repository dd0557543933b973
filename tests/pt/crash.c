// SPDX-License-Identifier: GPL-2.0-or-later
/* Ends by a signal: its own fault, or one that it gets while it loops. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int deep(int n, volatile int *end)
{
	if (!n)
		return *end = 1;
	return deep(n - 1, end) + 1;
}

int main(int argc, char **argv)
{
	int end;

	(void)argv;
	if (argc == 1)
		return deep(100, (int *)8);
	write(1, "ready\n", 6);
	for (;;) /* not an empty loop: no packet tells how often that runs */
		deep(10, &end);
}
