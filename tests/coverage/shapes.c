// SPDX-License-Identifier: GPL-2.0-or-later
/* Loops and conditions in all shapes, as gcov counts them: also those on one line. */
/* clang-format off */
#include <stdio.h>

#include "shared.h"

int library(int n);

static int gcd(int a, int b)
{
	while (b) {
		int t = a % b;
		a = b;
		b = t;
	}
	return a;
}
static int one_line(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
static int rec(int n)
{
	if (n <= 1)
		return 1;
	return n * rec(n - 1);
}
static int sw(int x)
{
	switch (x) {
	case 0:
		return 5;
	case 1:
	case 2:
		x += 3;
		break;
	case 3:
		x--;
		/* fall through */
	case 7: x *= 2; break;
	default:
		x = 0;
	}
	return x;
}
static int never(int x)
{
	return x + 1;
}
static int cond(int a, int b, int c)
{
	if ((a && b) ||
	    c)
		return 1;
	else if (a)
		return 2;
	return pick(a) +
	       pick(b);
}
static void do_while(int n)
{
	do {
		n--;
	} while (n > 0);
}
static int gotos(int n)
{
	int k = 0;
again:
	if (k++ < n)
		goto again;
	for (;;) {
		if (k-- <= 0)
			break;
		if (k & 1)
			continue;
		n++;
	}
	return n;
}
static int many(int *a, int n)
{
	int s = 0, i, j;
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++) {
			if (i == j) continue;
			s += a[i] * a[j];
		}
	while (n--) s += a[n];
	return s;
}
int main(int argc, char **argv)
{
	int a[10] = { 1, 2, 3 }, sum = 0;
	(void)argv;
	for (int i = 0; i < 8; i++) {
		sum += gcd(i * 12, 18);
		sum += one_line(i);
		sum += sw(i);
		sum += rec(i);
		sum += cond(i & 1, i & 2, i & 4);
	}
	do_while(5);
	sum += gotos(6);
	sum += many(a, 10);
	if (argc > 5)
		sum += never(sum);
	sum += library(argc + 4);
	printf("%d\n", sum);
	return 0;
}
