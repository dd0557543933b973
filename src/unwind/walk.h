/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the unwinder share.
 *
 *	unwind		the walk from frame to frame; which method takes which step
 *	machine		the registers of the machines
 *	cfi		a step by the rules of .eh_frame and .debug_frame (libdw reads them)
 *	orc		a step by the rules of Linux on x86-64, .orc_unwind
 *	fp		a step along the frame pointers, and what a leaf needs besides
 *	trap		a step out of an interrupt, an exception or a system call, without rules
 */
#ifndef KSCOPE_UNWIND_WALK_H
#define KSCOPE_UNWIND_WALK_H

#include "unwind/unwind.h"

#define MAX_REGS 33
#define NO_REG 255

enum machine_kind { X86_64, I386, AARCH64, ARM, RISCV64, RISCV32 };

/* Registers are numbered as DWARF does. */
struct machine {
	enum machine_kind kind;
	uint8_t word; /* bytes */
	uint8_t nr;   /* registers from 0 on that are looked at */
	uint8_t sp, fp;
	uint8_t lr;    /* holds the return address at a function's entry; NO_REG: the stack does */
	uint8_t pc;    /* its number in rules; NO_REG: it has none */
	uint32_t kept; /* bits: registers that a function leaves as they were */
	const uint8_t *perf; /* perf's numbers by DWARF's, in data of perf; NULL: not known */
	uint8_t perf_pc;
};

/* The registers in one frame. */
struct state {
	uint64_t reg[MAX_REGS];
	uint64_t known; /* bits */
	uint64_t pc;
	uint64_t cfa;
	bool exact;	/* execution was at pc itself; otherwise pc is a return address */
	bool by_record; /* the frame pointer was stored by a function that had a frame */
};

/* What is known about one address of code; asked for once. */
struct spot {
	uint32_t image;
	bool has_function, has_cfi, has_orc; /* it was looked for */
	bool label;			     /* the function has no size: it is assembly */
	uint64_t vaddr;
	uint64_t function; /* where the function begins; 0: no symbol */
	struct cfi_row *cfi;
	struct orc_row {
		int16_t sp_offset, bp_offset;
		uint8_t sp_reg, bp_reg, type; /* type 0: no rule */
	} orc;
};

/* A piece of the stack of a sample. */
struct walk {
	struct unwind *unwind;
	const struct machine *machine;
	const struct cpu_state *cpu;
	uint64_t stack;	  /* where the copy begins */
	uint64_t context; /* IP_KERNEL or IP_USER */
	uint64_t start;	  /* the pc of the sample */
	bool known;	  /* there is a binary for that; perf tells all there are */
	uint32_t pid;
};

enum step {
	STEP_NONE,   /* this method has no rule here; the state is as it was */
	STEP_CALLER, /* the state is the caller's */
	STEP_TRAP,   /* the state is that of the code which was interrupted */
	STEP_USER,   /* likewise, and that was not the kernel's */
	STEP_END,    /* there is no caller: a thread begins here */
	STEP_LOST,   /* a register or a part of the stack that is needed is missing */
};

const struct machine *machine_by_arch(const char *arch); /* NULL: not one of ours */

/* A word of the stack, or false: it is not in the copy. */
bool walk_word(const struct walk *w, uint64_t address, uint64_t *value);
/* The rules cached for an address of the code that is walked through; NULL: nothing is mapped. */
struct spot *walk_spot(const struct walk *w, uint64_t address);
/* The place of a frame's code: a return address may be just behind the function of the call. */
struct spot *walk_spot_of(const struct walk *w, const struct state *s);
/* As walk_spot(), with the function. */
struct spot *walk_spot_named(const struct walk *w, uint64_t address);
/* Where the function begins that an address is in; 0: unknown. */
uint64_t walk_function(const struct walk *w, uint64_t address);
/* Could the kernel, or the process, run code there? Not more than that. */
bool walk_is_code(const struct walk *w, uint64_t address);
/* An address that the kernel has nothing at, among those where user code is. */
bool walk_is_user(const struct walk *w, uint64_t address);
/* On x86: is there a call before the address? Linux changes calls at run time. */
bool walk_is_return(const struct walk *w, uint64_t address);
/* A return address without what the machine mixes into it. */
uint64_t walk_return(const struct walk *w, uint64_t address);

static inline bool reg_value(const struct state *s, uint64_t nr, uint64_t *value)
{
	if (nr >= MAX_REGS || !(s->known >> nr & 1))
		return false;
	*value = s->reg[nr];
	return true;
}

static inline void reg_set(struct state *s, unsigned nr, uint64_t value)
{
	s->reg[nr] = value;
	s->known |= 1ULL << nr;
}

enum step cfi_step(const struct walk *w, struct state *s);
/* Has the binary that this frame is of any such rules at all? */
bool cfi_present(const struct walk *w, const struct state *s);
void cfi_release(struct unwind *u);

enum step orc_step(const struct walk *w, struct state *s);
void orc_release(struct unwind *u);

enum step fp_step(const struct walk *w, struct state *s);
/* Only if there is no frame: at a function's entry, or in a leaf without one. */
enum step fp_leaf(const struct walk *w, struct state *s);

#define TRAP_AT_ENTRY 2	 /* words of the stack: nothing but an error code was pushed yet */
#define TRAP_ANYWHERE 40 /* Linux saves 21 words, and has little below that */

/* On x86: what the processor pushes, known by its looks, among the next `words` of the stack. */
enum step trap_pushed(const struct walk *w, struct state *s, unsigned words);
/* On x86-64: kernel mode, but the stack is still the user's. */
enum step trap_syscall(const struct walk *w, struct state *s);
/* Linux's struct pt_regs on arm64, by the frame record inside of it. */
enum step trap_record(const struct walk *w, struct state *s, uint64_t record);
/* Linux's struct pt_regs on x86, where a frame pointer says that it points to one. */
enum step trap_encoded(const struct walk *w, struct state *s, uint64_t fp);

#endif
