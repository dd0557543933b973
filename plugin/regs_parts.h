/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regs_parts: what the files of regs share. regs.c reads registers, regs_space.c finds address
 * spaces, regs_guest.c the guests of an x86 hypervisor.
 */
#ifndef KSCOPE_PLUGIN_REGS_PARTS_H
#define KSCOPE_PLUGIN_REGS_PARTS_H

#include <stdatomic.h>

#include "machine.h"
#include "regs.h"

#define REGS_X86_TABLE \
	0x000ffffffffff000 /* the address of a page table, in its register or an entry */

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
	/* SVM. Only the thread of the vCPU uses these. */
	unsigned guest; /* see regs_guest() */
	unsigned last_guest;
	uint64_t after_guest;	 /* where its hypervisor goes on */
	struct regs_saved start; /* its state before it ran */
	uint64_t vmcb;		 /* the state of the last guest that ran; 0: none did */
	uint64_t nested;	 /* its nested page table; 0: it has none */
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

/* SVM: at translation, hooks the blocks where hypervisors go on. */
void regs_translate_return(struct qemu_plugin_tb *tb);
/* Before the first block after a guest, a work item may run. pc: where it does. */
void regs_find_guest(struct regs_cpu *cpu, uint64_t pc);
/* Whether a guest runs whose memory only regs_read_guest() can read, up to the end of a page. */
bool regs_is_nested(const struct regs_cpu *cpu);
bool regs_read_guest(const struct regs_view *view, struct regs_cpu *cpu, uint64_t address,
		     void *bytes, size_t size);

#endif
