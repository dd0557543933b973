/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regs: the state of a vCPU: registers in DWARF's numbering, address space, privilege, memory. By
 * QEMU's plugin interface where it can, else by functions that QEMU exports, never by the layout of
 * its structures. A target that is not known here has only a pc.
 */
#ifndef KSCOPE_PLUGIN_REGS_H
#define KSCOPE_PLUGIN_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CPUState;
struct qemu_plugin_tb;

#define REGS_MAX 34
#define REGS_PAGE 4096

/* Who looks: it decides which functions of QEMU may be used. */
struct regs_view {
	unsigned cpu;
	struct CPUState *state; /* NULL: a callback of this vCPU that asked for registers */
};

struct regs {
	uint64_t pc, sp, fp, lr; /* lr: 0 where the architecture has none */
	uint64_t space;
	unsigned level;
	bool has_space;
	bool known; /* more than pc is known */
	unsigned n;
	uint64_t dwarf[REGS_MAX];
};

/* The architecture is api.arch. */
void regs_open(void);
/* At vcpu_init: finds the handles of QEMU's registers. */
void regs_cpu_init(unsigned cpu);
/*
 * At translation: hooks instructions that write the register of the address space, on a QEMU that
 * cannot be asked for it.
 */
void regs_translate(struct qemu_plugin_tb *tb);
/* Where registers can be read at all: in a callback with API_R_REGS; in a work item. */
bool regs_in_callback(void);
bool regs_in_work(void);

/* pc: what the caller knows of it, used if QEMU cannot say better. */
void regs_read(const struct regs_view *view, uint64_t pc, struct regs *regs);
/* Argument N of a function at its entry, and its result at its return; false: not known. */
bool regs_argument(const struct regs_view *view, const struct regs *regs, unsigned n,
		   uint64_t *value);
uint64_t regs_result(const struct regs *regs);
/* Where a function that was just entered returns to. */
bool regs_return_address(const struct regs_view *view, const struct regs *regs, uint64_t *address);
/* Guest memory; how many bytes could be read, page by page from the front. */
size_t regs_memory(const struct regs_view *view, uint64_t address, void *bytes, size_t size);
unsigned regs_word(void); /* bytes of a pointer */

#endif
