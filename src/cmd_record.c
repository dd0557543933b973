// SPDX-License-Identifier: GPL-2.0-or-later
/* record: the table of what kscope can record; each source is a command of its own. */
#include "cmd.h"
#include "cmd_record.h"

/* The order is that of the help. */
static const struct command *const sources[] = { &record_qemu,	  &record_tcp,	&record_listen,
						 &record_serial,  &record_file, &record_gdb,
						 &record_emulate, &record_pt,	NULL };

const struct command cmd_record = {
	.name = "record",
	.usage = "record SOURCE [OPTIONS]",
	.about = "Record a guest of QEMU, a board, or a program.\n"
		 "The recording ends when the source ends, after --duration, or on Ctrl-C. kscope "
		 "then "
		 "writes the output.",
	.examples = "  kscope record qemu -- qemu-system-x86_64 -kernel vmlinuz -nographic\n"
		    "  kscope record tcp board:1236 --build-dir build -o flame.svg\n"
		    "  kscope record serial /dev/ttyUSB0,115200 -f sel4-serial --duration 10\n"
		    "  kscope record emulate -o ls.data -- ls -l /tmp\n",
	.subs = sources,
	.heading = "Sources",
};
