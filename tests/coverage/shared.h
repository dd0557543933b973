/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two units have this function, and each its own copy. */
static inline int pick(int x)
{
	return x > 3 ? x * 2 : x + 1;
}
