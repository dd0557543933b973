/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record: the options of `kscope record qemu`. Strings point into the command line. */
#ifndef KSCOPE_RECORD_RECORD_H
#define KSCOPE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions of the guest that the plugin watches. */
enum hook_kind { HOOK_FROM, HOOK_TO, HOOK_ALLOC, HOOK_FREE, HOOK_REALLOC, HOOK_KINDS };

struct hook_option {
	enum hook_kind kind;
	const char *text; /* SYMBOL or ADDRESS; for allocators also where their arguments are */
};

enum record_clock { CLOCK_HOST, CLOCK_GUEST, CLOCK_INSTRUCTIONS };

struct record_options {
	const char *source; /* what to record: "qemu" */

	enum record_clock clock;
	uint64_t freq, period; /* 0: not given */
	bool trace;
	struct hook_option *hooks;
	size_t nr_hooks, cap_hooks;
	bool stack_given;
	uint64_t stack;
	const char *vcpus, *level; /* NULL: all */

	uint64_t duration; /* ns; 0: as long as the guest runs */
	const char *until; /* stop when the guest prints this */

	bool paused, print;
	const char *control, *attach; /* sockets */
	const char *keep;	      /* keep the raw stream in this file */
};

#endif
