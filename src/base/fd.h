/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fd: writing to a descriptor, all of it. */
#ifndef KSCOPE_BASE_FD_H
#define KSCOPE_BASE_FD_H

#include <stddef.h>

/* Waits where the other side is slow, also if the descriptor does not. 0, or an errno. */
int fd_write(int fd, const void *data, size_t len);

#endif
