// SPDX-License-Identifier: GPL-2.0-or-later
/* odd: functions that tests/kit/profiles.py renames in the object file: no compiler accepts these names. */
int odd_quotes(int n)
{
	volatile int m = n * 3;

	return m + 1;
}

int odd_emoji(int n)
{
	volatile int m = n * 5;

	return m + 2;
}

int odd_separators(int n)
{
	volatile int m = n * 7;

	return m + 3;
}
