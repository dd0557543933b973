// SPDX-License-Identifier: GPL-2.0-or-later
/* The shared library of libraries.c. */
int library_calls_back(int (*call)(int), int n);

__attribute__((visibility("hidden"), noinline)) int library_inside(int n)
{
	return n * 3;
}

int library_calls_back(int (*call)(int), int n)
{
	return call(library_inside(n)) + 1;
}
