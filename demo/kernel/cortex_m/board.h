/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the board, board.c, and the core, cpu.c. */
#pragma once

#include "kernel.h"

#define DEVICE(address) ((volatile uint32_t *)(address))
#define CYCLE_NS 40 /* of all timers: 25 MHz */
#define SAMPLE 8    /* the interrupt of the sampler's timer */

#define READ_SPECIAL(name)                                                      \
	({                                                                      \
		uint32_t value_;                                                \
		__asm__ volatile("mrs %0, " #name : "=r"(value_) : : "memory"); \
		value_;                                                         \
	})
#define WRITE_SPECIAL(name, value) \
	__asm__ volatile("msr " #name ", %0\n isb" : : "r"(value) : "memory")

void board_init(void);
void sample_interrupt(const struct interrupted *at);
