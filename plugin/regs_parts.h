/* SPDX-License-Identifier: GPL-2.0-or-later */
/* regs_parts: what the files of regs share. regs.c reads registers, regs_space.c finds address spaces. */
#ifndef KSCOPE_PLUGIN_REGS_PARTS_H
#define KSCOPE_PLUGIN_REGS_PARTS_H

#include <stdatomic.h>

#include "machine.h"
#include "regs.h"

/* QEMU's handle of a register, which may be NULL. */
struct handle {
	void *value;
	bool known;
};

/* Of one vCPU. */
struct regs_cpu {
	struct CPUState *state; /* the argument for exported functions; NULL: not known yet */
	struct handle dwarf[REGS_MAX], reg[REG_KINDS];
	_Atomic uint64_t noted[REG_KINDS]; /* the last values that instructions wrote */
	_Atomic unsigned has_noted;	   /* a bit for each */
};

_Static_assert(REG_KINDS <= 32, "has_noted has a bit for each");

extern const struct machine *regs_machine; /* NULL: unknown */

struct regs_cpu *regs_cpu(unsigned index); /* NULL without memory */
bool regs_dwarf(const struct regs_view *view, struct regs_cpu *cpu, unsigned number,
		uint64_t *value);
/* Reads a register. If QEMU does not show it: the last value that code wrote. */
bool regs_extra(const struct regs_view *view, struct regs_cpu *cpu, enum reg which,
		uint64_t *value);
/* mode: the register with the privilege level. word: bytes of a pointer in the current mode. */
bool regs_read_space(const struct regs_view *view, struct regs_cpu *cpu, uint64_t mode,
		     unsigned word, uint64_t *space);

#endif
