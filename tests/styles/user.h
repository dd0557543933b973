/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls of onestack's user programs. */
#pragma once

#define USER_YIELD 1
#define USER_END 2
#define USER_FAIL 3
