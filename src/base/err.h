/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err: why something failed. The first error wins; later ones, mostly its consequences, are
 * dropped. The code is also the exit code of the program (see kscope(1)).
 */
#ifndef KSCOPE_BASE_ERR_H
#define KSCOPE_BASE_ERR_H

#include <stdint.h>

enum err_code {
	ERR_NONE = 0,
	ERR_PARTIAL = 1, /* the result is valid, but some input was damaged or missing */
	ERR_USAGE = 2,	 /* the command line is wrong */
	ERR_INPUT = 3,	 /* an input cannot be opened or parsed */
	ERR_OUTPUT = 4,	 /* the output cannot be written, or no memory; no partial file remains */
	ERR_SLOWER = 5,	 /* of kscope diff: the output is complete, and something got slower */
};

struct err {
	enum err_code code;
	char msg[1000];
};

/* Both return -1, so that a caller can fail with `return err_set(...)`. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Prefixes the message with its location: "FILE: byte OFFSET: ...". */
int err_at(struct err *err, enum err_code code, const char *file, uint64_t offset, const char *fmt,
	   ...) __attribute__((format(printf, 5, 6)));

#endif
