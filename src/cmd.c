// SPDX-License-Identifier: GPL-2.0-or-later
#include "cmd.h"

const struct command *const commands[] = { &cmd_record, &cmd_top,     &cmd_view,    &cmd_convert,
					   &cmd_report, &cmd_trace,   &cmd_calls,   &cmd_sql,
					   &cmd_insn,	&cmd_flame,   &cmd_diff,    &cmd_alloc,
					   &cmd_info,	&cmd_archive, &cmd_formats, &cmd_completion,
					   NULL };
