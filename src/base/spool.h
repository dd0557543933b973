/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spool: a file without a name, for bytes that have to be read or written twice. */
#ifndef KSCOPE_BASE_SPOOL_H
#define KSCOPE_BASE_SPOOL_H

/* $TMPDIR, or /tmp. */
const char *spool_folder(void);
/* There; -1 and errno if there is none to be had. It goes when it is closed. */
int spool_file(void);

#endif
