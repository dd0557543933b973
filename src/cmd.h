/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd: the verbs, one per file. */
#ifndef KSCOPE_CMD_H
#define KSCOPE_CMD_H

#include "args.h"

extern const struct command cmd_convert, cmd_report, cmd_flame, cmd_info, cmd_formats;
extern const struct command cmd_alloc, cmd_archive, cmd_calls, cmd_diff, cmd_insn, cmd_record,
	cmd_sql, cmd_top, cmd_trace, cmd_view, cmd_completion;

extern const struct command *const commands[]; /* in the order of help; ends with NULL */

/* Drop-ins for older tools, with the command lines of those tools. argv[0] is the tool's name. */
int cmd_toperf(int argc, char **argv);
int cmd_netconn(int argc, char **argv);
int cmd_kernprofile(int argc, char **argv);
int cmd_kprof2perf(int argc, char **argv);

#endif
