/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_record: what `kscope record` and `kscope top` can record, a command each. */
#ifndef KSCOPE_CMD_RECORD_H
#define KSCOPE_CMD_RECORD_H

#include "args.h"

extern const struct command record_qemu, record_tcp, record_listen, record_serial, record_file,
	record_gdb, record_emulate, record_pt;

/*
 * Setters of options: a list of CPUs, and a level, which only check the text, and the size of stacks, into struct
 * record_options.
 */
int record_set_vcpus(const struct option_row *row, void *field, const char *arg, struct err *err);
int record_set_stack(const struct option_row *row, void *field, const char *arg, struct err *err);
int record_set_level(const struct option_row *row, void *field, const char *arg, struct err *err);

#endif
