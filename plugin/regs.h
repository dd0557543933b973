/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * regs: reads the state of a vCPU: registers by DWARF number, address space, privilege level, memory.
 * It uses QEMU's plugin interface where possible, else functions that QEMU exports, but never the
 * layout of QEMU's structures. Of an unknown target it reads only the pc.
 */
#ifndef KSCOPE_PLUGIN_REGS_H
#define KSCOPE_PLUGIN_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine.h"

struct CPUState;
struct qemu_plugin_tb;

#define REGS_MAX 33
#define REGS_PAGE 4096

/* M-profile Arm: the number of the exception in xPSR, and the value in lr that ends an exception. */
#define REGS_EXCEPTION 0x1ffu
#define REGS_EXCEPTIONS 512
#define REGS_ON_PROCESS_STACK 4u

/* The caller, which decides what functions of QEMU are allowed. */
struct regs_view {
	unsigned cpu;
	struct CPUState *state; /* in a work item; NULL: in a callback of this vCPU */
	bool left_guest; /* SVM: read the memory of the guest that has just left; not its registers */
};

struct regs {
	uint64_t pc, sp, fp;
	/* The address of the page table; on RISC-V with its mode; of a guest with its number. */
	uint64_t space;
	uint64_t outer; /* M-profile, in a handler: the stack of the threads; 0 unknown */
	unsigned level; /* enum wire_level */
	bool has_space;
	bool masked;   /* interrupts are masked (Arm and RISC-V only) */
	bool at_trap;  /* at the first instruction of an interrupt handler, probably */
	unsigned word; /* bytes of a pointer in the current mode */
	unsigned n;    /* 0: only the pc is known */
	uint64_t dwarf[REGS_MAX];
};

/* The architecture is api.arch. */
void regs_open(void);
/* When a vCPU starts: finds QEMU's handles of its registers. */
void regs_cpu_init(unsigned cpu);
/*
 * At translation: hooks the instructions that write the register of the address space, on a QEMU that
 * cannot always read it.
 */
void regs_translate(struct qemu_plugin_tb *tb);
/* SVM: after all other hooks, which run before it, hooks an instruction that starts a guest. */
void regs_translate_run(struct qemu_plugin_tb *tb);
bool regs_wants_blocks(void);

/* Whether registers can be read: in a callback with API_R_REGS; in a work item. */
bool regs_in_callback(void);
bool regs_in_work(void);
/*
 * Whether registers can be read in a callback at the start of a block. There, all registers are valid
 * even in a QEMU without a public interface for them.
 */
bool regs_at_block(void);

/* pc: used if QEMU does not have a better value. */
void regs_read(const struct regs_view *view, uint64_t pc, struct regs *regs);
/*
 * In a callback with API_R_REGS, or at the start of a block, of this vCPU: single registers, faster than
 * regs_read(). False: QEMU does not show it, or the machine does not have it.
 */
bool regs_number(unsigned cpu, unsigned dwarf_number, uint64_t *value);
bool regs_sp(unsigned cpu, uint64_t *sp);
bool regs_special(unsigned cpu, enum reg which, uint64_t *value);
/* The last value that code wrote to a register that this QEMU does not show. */
bool regs_written(unsigned cpu, enum reg which, uint64_t *value);
/* mode: the register with the privilege level. */
bool regs_mode(unsigned cpu, uint64_t *mode);
unsigned regs_level(unsigned cpu, uint64_t mode); /* enum wire_level */
/* The address space, as regs_read() finds it. */
bool regs_space(unsigned cpu, uint64_t mode, uint64_t *space);
/*
 * AMD SVM: the number of the guest that runs on a vCPU; 0: none does. Known only while blocks are
 * translated for this plugin.
 */
unsigned regs_guest(unsigned cpu);
struct regs_saved {
	uint64_t pc, sp, exit; /* exit: why the guest left */
	unsigned level;
};
/* After a guest left: its state. */
bool regs_guest_left(unsigned cpu, struct regs_saved *saved);
/* The guest left before it ran an instruction. */
void regs_guest_bounced(unsigned cpu);
/* The guest left at the first instruction of a handler, before it ran. at: what it interrupted. */
void regs_guest_in_trap(unsigned cpu, uint64_t handler, const struct regs_saved *at);
/*
 * At the first instruction of a guest, at pc: whether an interrupt led there, and what it
 * interrupted.
 */
bool regs_guest_interrupted(unsigned cpu, uint64_t pc, struct regs_saved *at);
/* Whether QEMU lists the register. */
bool regs_lists(unsigned cpu, enum reg which);
/* Whether the vCPUs are Cortex-M. Known after regs_cpu_init(). */
bool regs_is_m_profile(void);

static inline bool regs_is_exception_return(uint64_t lr)
{
	return (lr & 0xff000000) == 0xff000000;
}

/* At the entry of a function: its argument n and its return address. At its return: the result. */
bool regs_argument(const struct regs_view *view, const struct regs *regs, unsigned n,
		   uint64_t *value);
bool regs_return_address(const struct regs_view *view, const struct regs *regs, uint64_t *address);
uint64_t regs_result(const struct regs *regs);

/* Reads guest memory, up to the first page that cannot be read. Returns the number of bytes. */
size_t regs_memory(const struct regs_view *view, uint64_t address, void *bytes, size_t size);
/* Reads a pointer from guest memory. */
bool regs_pointer(const struct regs_view *view, const struct regs *regs, uint64_t address,
		  uint64_t *value);

#endif
