/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log: messages on stderr. The level is the program's only mutable global: 0 errors, 1 warnings
 * and results (the default), 2 notes (-v).
 */
#ifndef KSCOPE_BASE_LOG_H
#define KSCOPE_BASE_LOG_H

extern int log_level;

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
