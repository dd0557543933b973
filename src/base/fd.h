/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fd: write all of a buffer to a file descriptor. */
#ifndef KSCOPE_BASE_FD_H
#define KSCOPE_BASE_FD_H

#include <stddef.h>

/* Blocks until all is written, even if the descriptor is non-blocking. Returns 0 or an errno. */
int fd_write(int fd, const void *data, size_t len);

#endif
