/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * look: the few registers of a vCPU that the trace needs, as cheaply as they can be had, at the start
 * of a block; and where an exception that just came will return to. For whole register sets there is
 * regs.h.
 */
#ifndef KSCOPE_PLUGIN_LOOK_H
#define KSCOPE_PLUGIN_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct look {
	uint64_t sp, space;
	unsigned level; /* enum wire_level */
};

void look_open(void);
void look_cpu_init(unsigned cpu);
/* Only in a callback of this vCPU at the start of a block. `pc` is where it is. */
void look_at(unsigned cpu, uint64_t pc, struct look *look);
/*
 * Where a block really is that was translated at `start`: newer QEMUs run one translation at all the
 * addresses that its page is mapped to. Their pc is right then, in older ones it may be stale.
 */
uint64_t look_pc(unsigned cpu, uint64_t start);
bool look_moves(void); /* whether it may be elsewhere at all */
/*
 * An exception or interrupt seems to have led to `pc`: finds the address that it returns to, and the
 * level if it is known, else that stays. False if there is no sign of one. sp is where the stack is
 * now.
 */
bool look_for_trap(unsigned cpu, uint64_t pc, uint64_t sp, uint64_t *resume, unsigned *level);
/* Whether a sign of a trap is there only after one, and not for good once there was one. */
bool look_is_sure(void);
/* After a return or a call through a register: whether memory says that it was one. */
bool look_returned(unsigned cpu, uint64_t sp, uint64_t pc);
bool look_called(unsigned cpu, uint64_t sp, uint64_t next);

#endif
