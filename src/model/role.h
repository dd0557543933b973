/* SPDX-License-Identifier: GPL-2.0-or-later */
/* role: what code is for, by the names that kernels give it. */
#ifndef KSCOPE_MODEL_ROLE_H
#define KSCOPE_MODEL_ROLE_H

#include <stdbool.h>

bool role_idle_task(const char *comm);
/* A function that waits for an interrupt. */
bool role_idle(const char *function);
/* A function of a kernel with which the handling of an interrupt begins. */
bool role_interrupt(const char *function);

#endif
