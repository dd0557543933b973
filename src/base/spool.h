/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spool: an unlinked temporary file, for bytes that have to be read or written twice. */
#ifndef KSCOPE_BASE_SPOOL_H
#define KSCOPE_BASE_SPOOL_H

/* $TMPDIR, or /tmp. */
const char *spool_folder(void);
/* A file in spool_folder() that disappears when closed. On error returns -1 and sets errno. */
int spool_file(void);

#endif
