/* SPDX-License-Identifier: GPL-2.0-or-later */
/* args: the arguments of the plugin. Strings live as long as the process. */
#ifndef KSCOPE_PLUGIN_ARGS_H
#define KSCOPE_PLUGIN_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define ARGS_LIST_MAX 64
#define ARGS_STACK_MAX 65536

/* A place in the guest's code: an address, or a symbol of a binary that QEMU loaded. */
struct args_place {
	uint64_t address;
	const char *symbol; /* NULL: `address` is set */
};

enum args_hook_kind { HOOK_ALLOC, HOOK_REALLOC, HOOK_FREE };

/*
 * alloc=FUNC:argN:ret, realloc=FUNC:argP:argS:ret, free=FUNC:argN. FUNC is a symbol, an address, or
 * both: NAME@ADDRESS.
 */
struct args_hook {
	enum args_hook_kind kind;
	struct args_place place;
	unsigned pointer, size; /* argument numbers */
	char name[64];		/* NAME, or FUNC */
};

struct args {
	const char *out, *control, *kernel;
	const char *elf[ARGS_LIST_MAX];
	size_t n_elf;
	const char *parts; /* mode=pt: a folder, see wire/emulate.h; out: where it will be */
	bool maestro, trace, pt, paused, jitter;
	bool all_states; /* for tests: a trace has the registers at each step that is not a bit */
	enum wire_clock clock;
	uint64_t period;
	size_t stack;
	uint64_t check;		 /* ns between samples inside a trace; 0: none */
	bool user, kernel_level; /* levels to record */
	uint8_t cpus[WIRE_CPUS_MAX / 8];
	bool all_cpus;
	struct args_place from[ARGS_LIST_MAX], to[ARGS_LIST_MAX];
	size_t n_from, n_to;
	struct args_hook hooks[ARGS_LIST_MAX];
	size_t n_hooks;
};

extern struct args args;

/* 0, or -1 after a message. */
int args_parse(int argc, char **argv);
bool args_wants_cpu(unsigned cpu);
bool args_wants_level(unsigned level);

#endif
