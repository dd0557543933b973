/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_regs: the registers of a target: which ones it has (target.xml, or gdb's default for an architecture), and what
 * they say about a thread.
 */
#ifndef KSCOPE_RECORD_GDB_REGS_H
#define KSCOPE_RECORD_GDB_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define GDB_REGISTERS_MAX 8192
#define GDB_NAME_MAX 24
#define GDB_DWARF_MAX 33

struct gdb_register {
	char name[GDB_NAME_MAX];
	uint32_t number;
	uint32_t size; /* bytes */
};

struct gdb_registers {
	struct gdb_register *at;
	size_t nr, cap;
	uint32_t next; /* number of the next one without a number */
	char arch[32]; /* what target.xml calls it */
};

/* Gets the text of a file that target.xml includes. False: there is none. */
struct gdb_includer {
	bool (*get)(void *data, const char *name, struct buf *text);
	void *data;
};

/* gdb_xml.c: adds the registers in target.xml and in what it includes. The text may be anything. */
void gdb_xml_scan(const char *text, size_t len, const struct gdb_includer *includer,
		  struct gdb_registers *registers);
void gdb_registers_add(struct gdb_registers *registers, const char *name, size_t len,
		       uint64_t number, uint64_t bits);
void gdb_registers_release(struct gdb_registers *registers);

enum gdb_special {
	GDB_PC,
	GDB_LEVEL, /* cs, cpsr, xpsr, priv */
	GDB_FLAGS, /* eflags */
	GDB_SPACE, /* cr3, TTBR0_EL1, satp */
	GDB_CR0,
	GDB_EFER,
	GDB_CONTROL,  /* Cortex-M */
	GDB_PSP,      /* Cortex-M: the stack pointer of threads */
	GDB_VECTOR,   /* where traps lead to */
	GDB_CAUSE,    /* of the last trap */
	GDB_FROM,     /* the pc that it interrupted */
	GDB_SAVED,    /* the mode that it interrupted: SPSR_EL1, sstatus */
	GDB_USER_SP,  /* SP_EL0 */
	GDB_VECTOR_3, /* and those of RISC-V's firmware */
	GDB_CAUSE_3,
	GDB_FROM_3,
	GDB_SAVED_3,
	GDB_SPECIALS
};

#define GDB_SLOTS (GDB_DWARF_MAX + GDB_SPECIALS)

struct gdb_machine;

/* Where to find the registers that kscope needs. */
struct gdb_layout {
	const struct gdb_machine *machine;
	const char *arch;      /* as uname -m */
	bool user_mode;	       /* the target is a program */
	bool interrupts_first; /* QEMU delivers pending interrupts before it stops */
	struct gdb_slot {
		bool known, asked; /* asked: not in the answer to `g`, but in that to `p` */
		uint32_t number, size;
		size_t at; /* byte in the answer to `g` */
	} slots[GDB_SLOTS];
};

/*
 * Recognises the machine by the names of its registers. g: how many bytes the answer to `g` has. user_mode: the
 * target is a program. False: the machine is unknown.
 */
bool gdb_layout_init(struct gdb_layout *layout, const struct gdb_registers *registers, size_t g,
		     bool user_mode);
/* gdb's default registers of a machine, by the machine and class in an ELF header. False: unknown. */
bool gdb_default_registers(struct gdb_registers *registers, unsigned elf_machine, bool wide);

/* The state of a thread. */
struct gdb_state {
	uint64_t pc, sp, fp, space;
	unsigned level; /* enum wire_level */
	unsigned word;	/* bytes of a pointer */
	bool has_space;
	uint64_t outer; /* Cortex-M, in a handler: the stack of threads; 0: none */
	unsigned nr;	/* 0: unknown */
	uint64_t dwarf[GDB_DWARF_MAX];
};

struct gdb_values {
	uint64_t at[GDB_SLOTS];
	bool has[GDB_SLOTS];
};

/* The registers in an answer to `g`, and a single one in an answer to `p`. */
void gdb_values_all(const struct gdb_layout *layout, const struct buf *reply,
		    struct gdb_values *values);
void gdb_values_one(const struct gdb_layout *layout, unsigned slot, const struct buf *reply,
		    struct gdb_values *values);
/* before: the values at the stop before. */
void gdb_state_read(const struct gdb_layout *layout, const struct gdb_values *values,
		    const struct gdb_values *before, struct gdb_state *state);
/* By frame pointers (AArch64, RISC-V), or by the topmost word of the stack (x86-64)? */
bool gdb_is_riscv(const struct gdb_layout *layout);

#endif
