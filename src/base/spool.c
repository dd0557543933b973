// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

const char *spool_folder(void)
{
	const char *set = getenv("TMPDIR");

	return set && *set ? set : "/tmp";
}

bool spool_is_bomb(uint64_t packed, uint64_t plain)
{
	return plain > SPOOL_BOMB_SIZE && plain / SPOOL_BOMB_RATIO > packed;
}

int spool_file(void)
{
	const char *dir = spool_folder();
	char *name;
	int fd;

	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	name = xasprintf("%s/kscope-XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	free(name);
	return fd;
}
