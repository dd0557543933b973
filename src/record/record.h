/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record: the options of `kscope record`. Strings point into the command line. */
#ifndef KSCOPE_RECORD_RECORD_H
#define KSCOPE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option.h"
#include "record/pt.h"

/* Functions of the guest that the plugin watches. */
enum hook_kind { HOOK_START, HOOK_STOP, HOOK_ALLOC, HOOK_FREE, HOOK_REALLOC, HOOK_KINDS };

enum record_clock { CLOCK_HOST, CLOCK_GUEST, CLOCK_INSTRUCTIONS };

struct record_options {
	enum record_clock clock;
	uint64_t freq, period; /* 0: not given */
	bool trace;
	uint64_t check; /* ns between check points of a trace; 0: none */
	/* Each a SYMBOL or ADDRESS; for allocators also where their arguments are. */
	struct option_list hooks[HOOK_KINDS];
	bool stack_given;
	uint64_t stack;
	const char *vcpus, *level; /* NULL: all */

	uint64_t duration; /* ns; 0: as long as the guest runs */
	const char *until; /* stop when the guest prints this */

	bool paused, print;
	const char *control, *attach; /* sockets */
	/* Of links: */
	const char *start_with, *stop_with; /* NULL: what the format needs */
	uint64_t retry;			    /* ns; 0: not given */
	bool no_retry;

	const char *qemu; /* for `record emulate`; NULL: qemu-x86_64 in $PATH */
	struct pt_options pt;
	const char *keep;	   /* keep the raw stream in this file */
	const char *buildid_cache; /* folder; "": perf's own; NULL: not given */
	bool no_buildid_cache;
};

#endif
