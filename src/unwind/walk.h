/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of the unwinder.
 *
 *	unwind		walks from frame to frame and picks the method for each step
 *	machine		registers of the supported machines
 *	insn		calls, returns, and loads and stores of the link register
 *	link		whether the link register still holds the return address, or what does
 *	caller		whether a word that came with a chain is a caller that the chain lacks
 *	cfi		a step by the rules of .eh_frame and .debug_frame, read with libdw
 *	orc		a step by the rules of Linux on x86-64, .orc_unwind
 *	exidx		a step by the rules of 32-bit Arm, .ARM.exidx and .ARM.extab
 *	fp		a step along frame pointers, or out of a function without a frame
 *	trap		a step out of an interrupt, an exception or a system call, without rules
 *	m_profile	a step out of a Cortex-M exception, for which the hardware saves registers
 */
#ifndef KSCOPE_UNWIND_WALK_H
#define KSCOPE_UNWIND_WALK_H

#include "unwind/unwind.h"

#define MAX_REGS 33
#define NO_REG 255

enum machine_kind { X86_64, I386, AARCH64, ARM, RISCV64, RISCV32 };

/* Registers have DWARF's numbers. */
struct machine {
	enum machine_kind kind;
	uint8_t word; /* bytes */
	uint8_t nr;   /* uses registers 0 to nr - 1 */
	uint8_t sp, fp;
	uint8_t lr;    /* holds the return address at a function's entry; NO_REG: the stack does */
	uint8_t pc;    /* its number in rules; NO_REG: none */
	uint32_t kept; /* bits: registers that a function preserves */
	const uint8_t *perf; /* perf's number of each register; NULL: not supported in perf.data */
	uint8_t perf_pc;
};

/* The registers in one frame. */
struct state {
	uint64_t reg[MAX_REGS];
	uint64_t known; /* bits: registers with a value */
	uint64_t pc;
	uint64_t cfa;
	bool exact;	/* pc is where execution was; otherwise it is a return address */
	bool by_record; /* the frame pointer was saved by a function with a frame */
	bool first;	/* exact, because nothing called it: a new thread starts here */
};

/* Cached facts about one code address. */
struct spot {
	uint32_t image;
	bool has_function, has_cfi, has_orc; /* the lookup is done */
	bool label;			     /* the function has no size: it is assembly */
	bool thumb;			     /* the function is Thumb */
	bool has_link, has_frame;
	uint8_t link;  /* enum link */
	uint8_t frame; /* enum own_frame */
	uint64_t vaddr;
	uint64_t function; /* start of the function; 0: no symbol */
	struct cfi_row *cfi;
	struct orc_row {
		int16_t sp_offset, bp_offset;
		uint8_t sp_reg, bp_reg, type; /* type 0: no rule */
	} orc;
};

/* What decoding depends on. */
struct code_kind {
	enum machine_kind machine;
	bool thumb;
};

enum insn_kind {
	INSN_OTHER,
	INSN_CALL,   /* to the target, if that is not 0 */
	INSN_RETURN, /* by the link register */
	INSN_JUMP,   /* to the target */
	INSN_BRANCH, /* to the target, or to the next instruction */
	INSN_AWAY,   /* a jump to an unknown target, or the end of the code */
	INSN_SAVES,  /* stores the link register on the stack */
	INSN_LOADS,  /* loads the link register, or the pc, from the stack */
};

struct insn {
	enum insn_kind kind;
	uint8_t len;
	uint64_t target;
	/* Only on Arm, in bytes: */
	int32_t moves; /* the change of the stack pointer */
	int32_t slot;  /* of INSN_LOADS: the return address, relative to the stack pointer before */
	uint16_t list; /* the registers that it pops */
	bool replaces; /* it sets the stack pointer to something else */
	/* On all machines: */
	bool sets_fp;  /* makes the frame pointer point into the function's own frame */
	bool loads_fp; /* loads the frame pointer from the stack */
};

#define CALL_BYTES 7 /* of the longest call */

/* Decodes an instruction of a machine with a link register. False: not decoded. */
bool insn_decode(const struct code_kind *kind, const uint8_t *code, size_t len, uint64_t at,
		 struct insn *insn);
/* Completes a jump of RISC-V by a register that the instruction in the four bytes before has set. */
void insn_join(const struct code_kind *kind, const uint8_t *before, const uint8_t *code,
	       uint64_t at, struct insn *insn);
/* Whether the `len` bytes of code end in a call, on any machine. */
bool insn_call_ends(const struct code_kind *kind, const uint8_t *code, size_t len);

/* One walk up the stack of a sample. */
struct walk {
	struct unwind *unwind;
	const struct machine *machine;
	const struct cpu_state *cpu;
	uint64_t stack;	  /* address of the copy's first byte */
	uint64_t context; /* IP_KERNEL or IP_USER */
	uint64_t start;	  /* the pc of the sample */
	bool known;	  /* its binary is known; assumed for perf.data, which has all maps */
	uint32_t pid;
};

enum step {
	STEP_NONE,   /* this method has no rule here; the state is unchanged */
	STEP_CALLER, /* the state is the caller's */
	STEP_TRAP,   /* the state is that of the interrupted code */
	STEP_USER,   /* likewise, and that was user code */
	STEP_END,    /* there is no caller: a thread begins here */
	STEP_LOST,   /* a required register or part of the stack is missing */
};

const struct machine *machine_by_arch(const char *arch); /* NULL: not supported */

/* Reads a word of the stack; false: it is not in the copy. */
bool walk_word(const struct walk *w, uint64_t address, uint64_t *value);
/* The cached facts about an address in the context of the walk; NULL: nothing is mapped there. */
struct spot *walk_spot(const struct walk *w, uint64_t address);
/* The same for a frame's pc, minus 1 if it is a return address: the call may end the function. */
struct spot *walk_spot_of(const struct walk *w, const struct state *s);
/* As walk_spot(), with the function. */
struct spot *walk_spot_named(const struct walk *w, uint64_t address);
/* The start of the function around an address; 0: unknown. */
uint64_t walk_function(const struct walk *w, uint64_t address);
/* Whether the address may be code in the context of the walk. */
bool walk_is_code(const struct walk *w, uint64_t address);
/* Whether code may return to the address. A call may be the last instruction of the binary. */
bool walk_is_target(const struct walk *w, uint64_t address);
/* In a kernel: whether the address is in the user half and not kernel code. */
bool walk_is_user(const struct walk *w, uint64_t address);
/*
 * Whether the file has a call right before the address. Linux on x86 patches some at run time.
 */
bool walk_is_return(const struct walk *w, uint64_t address);
/* Whether the address is a function's first byte, and the file has no call before it. */
bool walk_is_uncalled(const struct walk *w, uint64_t address);
/* Bytes of the binary at an address of the walk; NULL: not in the file. */
const uint8_t *walk_code(const struct walk *w, uint64_t address, size_t len);
/* The kind of code at an address. */
struct code_kind walk_code_kind(const struct walk *w, uint64_t address);
/* A return address without the bits of pointer authentication or Thumb. */
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

enum link {
	LINK_UNKNOWN,
	LINK_LIVE,  /* it holds the return address */
	LINK_SAVED, /* the return address is on the stack, and the code loads it from there */
	LINK_CALLS, /* likewise, unless the call that comes first does not return */
};

/* Where the code at the pc keeps the return address, on a machine with a link register. */
enum link link_at(const struct walk *w, uint64_t pc);
/*
 * Whether an address in the link register can be the return address of the function that runs: if it
 * is in the function itself, the call before it must not go to another one.
 */
bool link_is_own(const struct walk *w, uint64_t lr, uint64_t function);
/* Whether the link register only has the target of the next call, as on RISC-V. */
bool link_is_target(const struct walk *w, uint64_t pc, uint64_t lr);
/*
 * Whether to believe a rule that says that the link register holds the return address. Compilers write
 * such a rule for every function whose prologue is hand-written assembly. But a call changes the
 * register, and if the code loads it from the stack later, it does not hold the return address now.
 */
bool link_may_return(const struct walk *w, const struct state *s);
/*
 * On Arm: a step out of code without rules. Follows the code to where it loads the return address from
 * the stack.
 */
enum step link_step(const struct walk *w, struct state *s);
enum own_frame {
	FRAME_UNKNOWN,
	/* None: the return address is where the call left it, and the frame pointer is the caller's. */
	FRAME_NOT_YET,
	FRAME_NONE,	   /* up to the return */
	FRAME_PERHAPS_NOT, /* it is in the first instructions, but where they lead is unknown */
	FRAME_HERE, /* the frame pointer is the function's own, or the return address is elsewhere */
};

/* Whether the function at the pc has a frame at this point, on a machine with a link register. */
enum own_frame link_frame(const struct walk *w, uint64_t pc);
/* The target of the call that ends at a return address; 0: unknown. */
uint64_t link_call_target(const struct walk *w, uint64_t lr);

/* Adds the sample's `link` to its chain, if the code shows that it is the caller. */
void caller_add(struct unwind *u, struct event *ev);

enum step cfi_step(const struct walk *w, struct state *s);
/* Whether the frame's binary has any such rules. */
bool cfi_present(const struct walk *w, const struct state *s);
void cfi_release(struct unwind *u);

enum step orc_step(const struct walk *w, struct state *s);
void orc_release(struct unwind *u);

enum step exidx_step(const struct walk *w, struct state *s);
void exidx_release(struct unwind *u);

enum step fp_step(const struct walk *w, struct state *s);
/* Steps out of a function without a frame: at its entry, or in a leaf. */
enum step fp_leaf(const struct walk *w, struct state *s);

#define TRAP_AT_ENTRY 2	 /* stack words: only an error code may have been pushed so far */
#define TRAP_ANYWHERE 40 /* Linux saves 21 words, and has little below that */

/* On x86: whether what the processor pushes is at this address of the stack. */
bool trap_is_pushed(const struct walk *w, uint64_t at);
/* On x86: searches the next `words` words of the stack for what the processor pushes. */
enum step trap_pushed(const struct walk *w, struct state *s, unsigned words);
/* On x86-64: in kernel mode, but still on the user's stack. */
enum step trap_syscall(const struct walk *w, struct state *s);
/* Linux's struct pt_regs on arm64, found by the frame record inside it. */
enum step trap_record(const struct walk *w, struct state *s, uint64_t record);
/* Linux's struct pt_regs on RISC-V, which is on top of the stack of the code that saved it. */
enum step trap_saved(const struct walk *w, struct state *s);
/* Linux's struct pt_regs on x86, found by an encoded frame pointer. */
enum step trap_encoded(const struct walk *w, struct state *s, uint64_t fp);

/* On Arm: whether a return to this address ends a Cortex-M exception, or the code run at reset. */
bool m_profile_ends(const struct walk *w, uint64_t address);
/* The state after that: the pc must be such an address. */
enum step m_profile_step(const struct walk *w, struct state *s);

#endif
