// SPDX-License-Identifier: GPL-2.0-or-later
/* top: a recording, and its live view (top.h) in the terminal. */
#include "cmd.h"
#include "cmd_record.h"

static const struct command *const sources[] = {
	&record_qemu, &record_tcp, &record_listen, &record_serial, &record_file, &record_gdb, NULL
};

const struct command cmd_top = {
	.name = "top",
	.usage = "top SOURCE [OPTIONS]",
	.about = "Show a guest or a board while it runs.\n"
		 "The sources and their options are those of kscope record. kscope writes files "
		 "only "
		 "if you ask for\n"
		 "them with -o or --keep. Press h for the keys.",
	.examples =
		"  kscope top tcp board:1236 --build-dir build\n"
		"  kscope top qemu -- qemu-system-aarch64 -M virt -kernel Image -serial file:log\n"
		"  ssh board cat /dev/kprof | kscope top file -\n",
	.subs = sources,
	.heading = "Sources",
};
