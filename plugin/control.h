/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control: the unix socket of control=PATH, text lines: start, stop, flush, status. */
#ifndef KSCOPE_PLUGIN_CONTROL_H
#define KSCOPE_PLUGIN_CONTROL_H

int control_open(void); /* 0, also without control=; -1 after a message */
void control_close(void);

#endif
