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

#define REGS_MAX 33
#define REGS_PAGE 4096

/* Who looks: it decides which functions of QEMU may be used. */
struct regs_view {
	unsigned cpu;
	struct CPUState *state; /* of a work item; NULL: in a callback of this vCPU */
};

struct regs {
	uint64_t pc, sp, fp;
	uint64_t space; /* the address of the page table, and on RISC-V its mode */
	unsigned level; /* enum wire_level */
	bool has_space;
	bool masked;  /* interrupts, on Arm */
	bool at_trap; /* an interrupt may have just been taken, and nothing of its handler has run */
	unsigned word; /* bytes of a pointer, as the vCPU runs now */
	unsigned n;    /* 0: only the pc is known */
	uint64_t dwarf[REGS_MAX];
};

/* The architecture is api.arch. */
void regs_open(void);
/* At vcpu_init: finds the handles of QEMU's registers. */
void regs_cpu_init(unsigned cpu);
/*
 * At translation: hooks instructions that write the register of the address space, on a QEMU that
 * cannot be asked for it at any time.
 */
void regs_translate(struct qemu_plugin_tb *tb);
bool regs_wants_blocks(void);

/* Where registers can be read: in a callback that asked for API_R_REGS; in a work item. */
bool regs_in_callback(void);
bool regs_in_work(void);
/*
 * The same for a callback at the start of a block, where also a QEMU without a public interface for
 * it has all registers in their place.
 */
bool regs_at_block(void);

/* pc: what the caller knows of it, used if QEMU cannot say better. */
void regs_read(const struct regs_view *view, uint64_t pc, struct regs *regs);

/* For hooks at a function's entry: argument N, where it returns to; and its result there. */
bool regs_argument(const struct regs_view *view, const struct regs *regs, unsigned n,
		   uint64_t *value);
bool regs_return_address(const struct regs_view *view, const struct regs *regs, uint64_t *address);
uint64_t regs_result(const struct regs *regs);

/* Guest memory; how many bytes could be read, page by page from the front. */
size_t regs_memory(const struct regs_view *view, uint64_t address, void *bytes, size_t size);
/* A pointer in guest memory. */
bool regs_pointer(const struct regs_view *view, const struct regs *regs, uint64_t address,
		  uint64_t *value);

#endif
