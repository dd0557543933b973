// SPDX-License-Identifier: GPL-2.0-or-later
#include "look.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "insn.h"
#include "regs.h"
#include "stream.h"

#define PAGE_MASK 0xfffull

#define X86_VM (1u << 17) /* in eflags */
#define LOW_END 0x100000  /* of the memory in which 16-bit code runs */

enum reg {
	REG_PC,
	REG_SP,
	REG_LEVEL,
	REG_MODE, /* EFER; CONTROL of M-profile */
	REG_LINK, /* the return address of an exception, or lr */
	/* Of the hypervisor and the firmware, and the stack pointers of the levels. */
	REG_LINK_2,
	REG_LINK_3,
	REG_SAVED_2,
	REG_SAVED_3,
	REG_SP_0, /* of M-profile: the one of threads */
	REG_SP_1,
	REG_SP_2,
	REG_VECTOR, /* where traps lead to, and on RISC-V the level that they interrupted */
	REG_STATUS,
	REG_VECTOR_2, /* of the hypervisor */
	REG_VECTOR_3, /* of firmware */
	REG_STATUS_3,
	REG_KINDS
};

/* A register: QEMU's name for it, or NULL, and gdb's number or -1. */
struct reg_name {
	const char *name;
	int gdb;
};

/* clang-format off */
#define RISCV                                                                                  \
	{                                                                                      \
		[REG_PC] = { "pc", 32 }, [REG_SP] = { "sp", 2 }, [REG_LEVEL] = { "priv", -1 }, \
		[REG_LINK] = { "sepc", -1 }, [REG_LINK_3] = { "mepc", -1 },                    \
		[REG_VECTOR] = { "stvec", -1 }, [REG_VECTOR_3] = { "mtvec", -1 },              \
		[REG_STATUS] = { "sstatus", -1 }, [REG_STATUS_3] = { "mstatus", -1 },          \
	}
/* clang-format on */

static const struct reg_name names[][REG_KINDS] = {
	[INSN_X86_64] = { [REG_PC] = { "rip", 16 },
			  [REG_SP] = { "rsp", 7 },
			  [REG_LEVEL] = { "cs", 18 },
			  [REG_MODE] = { "efer", 32 } },
	[INSN_I386] = { [REG_PC] = { "eip", 8 },
			[REG_SP] = { "esp", 4 },
			[REG_LEVEL] = { "cs", 10 } },
	[INSN_AARCH64] = { [REG_PC] = { "pc", 32 },
			   [REG_SP] = { "sp", 31 },
			   [REG_LEVEL] = { "cpsr", 33 },
			   [REG_LINK] = { "ELR_EL1", -1 },
			   [REG_LINK_2] = { "ELR_EL2", -1 },
			   [REG_LINK_3] = { "ELR_EL3", -1 },
			   [REG_SAVED_2] = { "SPSR_EL2", -1 },
			   [REG_SAVED_3] = { "SPSR_EL3", -1 },
			   [REG_SP_0] = { "SP_EL0", -1 },
			   [REG_SP_1] = { "SP_EL1", -1 },
			   [REG_SP_2] = { "SP_EL2", -1 },
			   [REG_VECTOR] = { "VBAR", -1 },
			   [REG_VECTOR_2] = { "VBAR_EL2", -1 },
			   [REG_VECTOR_3] = { "VBAR_EL3", -1 } },
	[INSN_ARM] = { [REG_PC] = { "pc", 15 },
		       [REG_SP] = { "sp", 13 },
		       [REG_LEVEL] = { "cpsr", 25 },
		       [REG_LINK] = { "lr", 14 } },
	[INSN_THUMB] = { [REG_PC] = { "pc", 15 }, /* M-profile */
			 [REG_SP] = { "sp", 13 },
			 [REG_LEVEL] = { "xpsr", 25 },
			 [REG_MODE] = { "control", -1 },
			 [REG_LINK] = { "lr", 14 },
			 [REG_SP_0] = { "psp", -1 } },
	[INSN_RISCV64] = RISCV,
	[INSN_RISCV32] = RISCV,
};

/* The start of QEMU's structure, to which later versions append. */
struct register_descriptor {
	void *handle;
	const char *name, *feature;
};

/* Where exceptions stored the registers of the last interrupted threads; 0: unused. */
#define PARKED_MAX 64
struct parked {
	uint32_t frames[PARKED_MAX];
	unsigned n;
};

static enum insn_set set;
static atomic_bool moves;	 /* see look_moves(); true until disproved */
static void *handles[REG_KINDS]; /* the same for all vCPUs */
static bool has_handle[REG_KINDS];
static struct CPUState *states[WIRE_CPUS_MAX];
static _Atomic uint8_t modes[8192]; /* enum insn_mode of each code segment of x86 in long mode */
/* M-profile: see search_frame(). */
static uint64_t thread_sps[WIRE_CPUS_MAX];
static struct parked parked_threads[WIRE_CPUS_MAX];
static _Thread_local GByteArray *scratch;

void look_open(void)
{
	set = insn_set_of(api.arch);
	atomic_store(&moves, !api.user_mode);
}

static void find_handles(void)
{
	GArray *list = api.get_registers();
	unsigned size = list ? api.array_element_size(list) : 0;

	for (unsigned i = 0; list && i < list->len; i++) {
		const struct register_descriptor *reg =
			(const void *)(list->data + (size_t)i * size);

		for (int kind = 0; kind < REG_KINDS; kind++) {
			const char *wanted = names[set][kind].name;

			if (has_handle[kind] || !wanted || strcmp(wanted, reg->name))
				continue;
			handles[kind] = reg->handle;
			has_handle[kind] = true;
		}
	}
	if (list)
		api.array_free(list, 1);
}

void look_cpu_init(unsigned cpu)
{
	if (regs_is_m_profile()) {
		set = INSN_THUMB;
		atomic_store(&moves, false); /* there is no MMU */
	}
	if (api.get_registers && set != INSN_OTHER)
		find_handles();
	if (cpu < WIRE_CPUS_MAX && api.get_cpu)
		states[cpu] = api.get_cpu((int)cpu);
}

static uint64_t little(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size < 8 ? size : 8);
	return value;
}

static void empty_scratch(void)
{
	if (!scratch)
		scratch = api.byte_array_new();
	api.byte_array_set_size(scratch, 0);
}

static bool in_scratch(size_t size, uint64_t *value)
{
	if (!size || size > scratch->len)
		return false;
	*value = little(scratch->data, size);
	return true;
}

/* Reads a register by gdb's number. */
static bool read_number(unsigned cpu, int number, uint64_t *value)
{
	if (number < 0 || set == INSN_OTHER || !api.gdb_read || cpu >= WIRE_CPUS_MAX)
		return false;
	if (!states[cpu] && api.get_cpu)
		states[cpu] = api.get_cpu((int)cpu);
	if (!states[cpu])
		return false;
	empty_scratch();
	return in_scratch((size_t)api.gdb_read(states[cpu], scratch, number), value);
}

static bool read_reg(unsigned cpu, enum reg kind, uint64_t *value)
{
	const struct reg_name *name = &names[set][kind];

	if (!has_handle[kind])
		return read_number(cpu, name->name ? name->gdb : -1, value);
	empty_scratch();
	return in_scratch(api_read_register(handles[kind], scratch), value);
}

/* The size of a word on the stack in the current mode of the cpu. */
static size_t word_size(unsigned cpu)
{
	uint64_t mode;

	if (set == INSN_X86_64)
		return !read_reg(cpu, REG_MODE, &mode) || mode & 1u << 10 ? 8 : 4;
	return set == INSN_AARCH64 || set == INSN_RISCV64 ? 8 : 4;
}

static bool read_words(unsigned cpu, uint64_t address, size_t word, uint64_t *words, size_t n)
{
	uint8_t bytes[64];

	if (api.memory_rw_debug && cpu < WIRE_CPUS_MAX && states[cpu]) {
		if (api.memory_rw_debug(states[cpu], address, bytes, n * word, false) < 0)
			return false;
	} else if (api.read_memory) {
		if (!scratch)
			scratch = api.byte_array_new();
		api.byte_array_set_size(scratch, 0);
		if (!api.read_memory(address, scratch, n * word) || scratch->len < n * word)
			return false;
		memcpy(bytes, scratch->data, n * word);
	} else {
		return false;
	}
	for (size_t i = 0; i < n; i++)
		words[i] = little(bytes + i * word, word);
	return true;
}

static enum wire_level x86_level(uint64_t cs)
{
	return (cs & 3) == 3 ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
}

/* Handlers are privileged. Where CONTROL cannot be read, threads count as privileged, too. */
static enum wire_level m_level(unsigned cpu, uint64_t xpsr)
{
	uint64_t control;

	if (xpsr & REGS_EXCEPTION || !read_reg(cpu, REG_MODE, &control) || !(control & 1))
		return WIRE_LEVEL_KERNEL;
	return WIRE_LEVEL_USER;
}

static unsigned level_of(unsigned cpu, uint64_t value)
{
	switch (set) {
	case INSN_X86_64:
	case INSN_I386: return x86_level(value);
	case INSN_AARCH64: return value & 0x10 ? (value & 15) != 0 : value >> 2 & 3;
	case INSN_ARM:
		switch (value & 0x1f) {
		case 0x10: return WIRE_LEVEL_USER;
		case 0x1a: return WIRE_LEVEL_HYPERVISOR;
		case 0x16: return WIRE_LEVEL_FIRMWARE;
		default: return WIRE_LEVEL_KERNEL;
		}
	case INSN_THUMB: return m_level(cpu, value);
	case INSN_RISCV64:
	case INSN_RISCV32: return value & 3;
	default: return WIRE_LEVEL_KERNEL;
	}
}

/* For a QEMU that does not list a register. It is slower. */
static void look_harder(unsigned cpu, uint64_t pc, struct look *look)
{
	struct regs_view view = { .cpu = cpu };
	struct regs regs;

	regs_read(&view, pc, &regs);
	look->sp = regs.sp;
	look->space = regs.space;
	look->level = regs.level;
}

void look_at(unsigned cpu, uint64_t pc, struct look *look)
{
	uint64_t mode;

	*look = (struct look){ 0 };
	if (api.user_mode) {
		read_reg(cpu, REG_SP, &look->sp);
		return;
	}
	if (!read_reg(cpu, REG_SP, &look->sp) || !read_reg(cpu, REG_LEVEL, &mode) ||
	    !regs_space(cpu, mode, &look->space)) {
		look_harder(cpu, pc, look);
		return;
	}
	look->level = level_of(cpu, mode);
	if (set == INSN_THUMB)
		look->exception = mode & REGS_EXCEPTION;
}

bool look_has_exceptions(void)
{
	return set == INSN_THUMB;
}

unsigned look_exception(unsigned cpu)
{
	uint64_t xpsr;

	return read_reg(cpu, REG_LEVEL, &xpsr) ? xpsr & REGS_EXCEPTION : 0;
}

/* lr at the start of a handler. */
#define M_FROM_THREAD 8u
#define M_BASIC_FRAME 16u

/* The words that an exception of M-profile stores: r0 to r3, r12, lr, pc, xPSR. */
enum { M_STORED = 5, M_PC = 6, M_XPSR = 7, M_WORDS = 8 };
#define M_THUMB (1u << 24)
#define M_FLAGS (31u << 27)
#define M_FRAME 0x20
#define M_FRAME_WITH_FP 0x68
#define M_ALIGNED (1u << 9) /* in the stored xPSR: a word was skipped to align the frame */

/*
 * The stack pointer of threads, for a QEMU that does not list it. A handler writes it by msr. When an
 * exception interrupts a thread, the thread's registers are both on its stack and in the cpu: the plugin
 * searches for them around the last known stack pointer. The match at the highest address is the newest,
 * unless it belongs to another thread, which may have stopped at the same place.
 */
#define SEARCH_BYTES 4096
#define SEARCH_PIECE 256

static bool is_frame(const uint32_t *words, const uint64_t *stored, uint64_t xpsr)
{
	for (size_t i = 0; i < M_STORED; i++) {
		if (words[i] != stored[i])
			return false;
	}
	return words[M_XPSR] & M_THUMB && !(words[M_XPSR] & REGS_EXCEPTION) &&
	       !((words[M_XPSR] ^ xpsr) & M_FLAGS);
}

static bool is_parked(const struct parked *parked, uint64_t frame)
{
	for (size_t i = 0; i < PARKED_MAX; i++) {
		if (parked->frames[i] == frame)
			return true;
	}
	return false;
}

static void park(struct parked *parked, uint64_t frame)
{
	if (frame)
		parked->frames[parked->n++ % PARKED_MAX] = (uint32_t)frame;
}

void look_resumed(unsigned cpu, uint64_t sp)
{
	struct parked *parked;

	if (has_handle[REG_SP_0] || cpu >= WIRE_CPUS_MAX)
		return;
	parked = &parked_threads[cpu];
	for (size_t i = 0; i < PARKED_MAX; i++) {
		uint64_t size = (sp - parked->frames[i]) & ~4ull;

		if (size == M_FRAME || size == M_FRAME_WITH_FP)
			parked->frames[i] = 0;
	}
}

static uint64_t search_frame(unsigned cpu, uint64_t near)
{
	static const uint8_t numbers[M_STORED] = { 0, 1, 2, 3, 12 };
	uint64_t low = (near - SEARCH_BYTES) & ~7ull, stored[M_STORED], xpsr;
	uint32_t words[2 * SEARCH_BYTES / 4] = { 0 };

	for (size_t i = 0; i < M_STORED; i++) {
		if (!read_number(cpu, numbers[i], &stored[i]))
			return 0;
	}
	if (near < SEARCH_BYTES || !api.memory_rw_debug || !read_reg(cpu, REG_LEVEL, &xpsr))
		return 0;
	for (size_t at = 0; at < sizeof(words); at += SEARCH_PIECE)
		api.memory_rw_debug(states[cpu], low + at, words + at / 4, SEARCH_PIECE, false);
	for (size_t i = sizeof(words) / 4 - M_WORDS; i > 0; i--) {
		if (is_frame(words + i, stored, xpsr) &&
		    !is_parked(&parked_threads[cpu], low + i * 4))
			return low + i * 4;
	}
	return 0;
}

static bool thread_sp(unsigned cpu, const struct look *before, uint64_t *sp)
{
	if (read_reg(cpu, REG_SP_0, sp))
		return true;
	if (cpu >= WIRE_CPUS_MAX)
		return false;
	if (!before->exception) {
		thread_sps[cpu] = search_frame(cpu, before->sp);
		park(&parked_threads[cpu], thread_sps[cpu]);
	}
	*sp = thread_sps[cpu];
	return *sp != 0;
}

void look_note_thread_sp(unsigned cpu, unsigned source)
{
	uint64_t value;

	if (!has_handle[REG_SP_0] && cpu < WIRE_CPUS_MAX)
		thread_sps[cpu] = read_number(cpu, (int)source, &value) ? value : 0;
}

bool look_frame(unsigned cpu, uint64_t sp, const struct look *before, struct look_trap *trap,
		unsigned *exception)
{
	uint64_t lr, at = sp, words[M_WORDS];

	*trap = (struct look_trap){ 0 };
	*exception = 0;
	if (!read_reg(cpu, REG_LINK, &lr) || !regs_is_exception_return(lr))
		return false;
	trap->level = lr & M_FROM_THREAD ? m_level(cpu, 0) : WIRE_LEVEL_KERNEL;
	if (lr & REGS_ON_PROCESS_STACK && !thread_sp(cpu, before, &at))
		return true;
	if (!read_words(cpu, at, 4, words, M_WORDS))
		return true;
	trap->resume = words[M_PC];
	trap->left = at + (lr & M_BASIC_FRAME ? M_FRAME : M_FRAME_WITH_FP) +
		     (words[M_XPSR] & M_ALIGNED ? 4 : 0);
	if (!(lr & M_FROM_THREAD))
		*exception = words[M_XPSR] & REGS_EXCEPTION;
	return true;
}

uint64_t look_pc(unsigned cpu, uint64_t start)
{
	uint64_t pc, mode;

	if (!atomic_load_explicit(&moves, memory_order_relaxed) || !read_reg(cpu, REG_PC, &pc) ||
	    pc == start)
		return start;
	/* Outside of long mode segments have a base. */
	if (set == INSN_I386 ||
	    (set == INSN_X86_64 && (!read_reg(cpu, REG_MODE, &mode) || !(mode & 1u << 10))))
		return start;
	if ((pc ^ start) & PAGE_MASK) {
		atomic_store(&moves, false);
		return start;
	}
	return pc;
}

bool look_moves(void)
{
	return atomic_load_explicit(&moves, memory_order_relaxed);
}

/* An exception in 32-bit mode pushes sp and ss only if the privilege changes. */
static bool pushes_sp(unsigned cpu, const uint64_t *words, bool wide)
{
	uint64_t now;

	return wide || words[2] & X86_VM ||
	       (read_reg(cpu, REG_LEVEL, &now) && (words[1] & 3) != (now & 3));
}

/* Whether these words are what an exception pushes: ip, cs, flags, and perhaps sp and ss. */
static bool is_x86_frame(const uint64_t *words, bool with_sp)
{
	uint64_t cs = words[1], flags = words[2], ss = words[4];

	if (cs > 0xffff || cs < 8 || !(flags & 2) || flags & 0x8028 || flags >> 22)
		return false;
	return !with_sp || (ss <= 0xffff && (flags & X86_VM || (ss & 3) == (cs & 3)));
}

static bool x86_trap(unsigned cpu, uint64_t sp, struct look_trap *trap)
{
	size_t word = word_size(cpu);
	uint64_t words[6];

	if (!read_words(cpu, sp, word, words, 6))
		return false;
	for (size_t i = 0; i < 2; i++) {
		bool with_sp = pushes_sp(cpu, words + i, word == 8);

		if (is_x86_frame(words + i, with_sp)) {
			trap->resume = words[i];
			trap->level = x86_level(words[i + 1]);
			trap->left = with_sp ? words[i + 3] : sp + (i + 3) * word;
			return true;
		}
	}
	return false;
}

/* The interrupted stack pointer. The entry of the vector table shows which one it was. */
static uint64_t aarch64_left(unsigned cpu, unsigned level, uint64_t pc, uint64_t sp)
{
	uint64_t saved = 0, left = 0;

	switch (pc >> 9 & 3) {
	case 1: return sp; /* of the same level */
	case 3: return 0;  /* of 32-bit code */
	case 2:
		if (level > 1 && !read_reg(cpu, level == 2 ? REG_SAVED_2 : REG_SAVED_3, &saved))
			return 0;
		break;
	default: break;
	}
	if (!(saved & 1))
		read_reg(cpu, REG_SP_0, &left);
	else if ((saved >> 2 & 3) == 1)
		read_reg(cpu, REG_SP_1, &left);
	else if ((saved >> 2 & 3) == 2)
		read_reg(cpu, REG_SP_2, &left);
	return left;
}

/* The register with the return address of an exception that is handled at this level. */
static enum reg link_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_LINK_2;
	case WIRE_LEVEL_FIRMWARE: return REG_LINK_3;
	default: return REG_LINK;
	}
}

static enum reg vector_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_VECTOR_2;
	case WIRE_LEVEL_FIRMWARE: return REG_VECTOR_3;
	default: return REG_VECTOR;
	}
}

/* The level that was interrupted: each entry of the vector table is for the same or for lower levels. */
static unsigned aarch64_interrupted(unsigned cpu, unsigned level, uint64_t pc)
{
	uint64_t saved;

	if (!(pc >> 10 & 1))
		return level;
	if (level > 1 && read_reg(cpu, level == 2 ? REG_SAVED_2 : REG_SAVED_3, &saved))
		return saved & 0x10 ? WIRE_LEVEL_USER : saved >> 2 & 3;
	return WIRE_LEVEL_USER;
}

/* trap->level: at first the level of the code before. */
static bool aarch64_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	uint64_t vectors;

	if (pc & 0x7f)
		return false;
	trap->left = aarch64_left(cpu, look->level, pc, look->sp);
	if (read_reg(cpu, vector_of(look->level), &vectors) && pc - vectors >= 0x800)
		return false;
	if (pc & 0x400 && trap->level >= look->level)
		return false; /* the code jumps there itself, as Linux does from other vectors */
	trap->level = aarch64_interrupted(cpu, look->level, pc);
	return read_reg(cpu, link_of(look->level), &trap->resume);
}

static bool arm_trap(unsigned cpu, uint64_t pc, struct look_trap *trap)
{
	static const uint8_t back[8] = { 0, 0, 0, 4, 8, 0, 4, 4 };

	if ((pc & ~0x1cull) != 0 && (pc & ~0x1cull) != 0xffff0000)
		return false;
	if (!read_reg(cpu, REG_LINK, &trap->resume))
		return false;
	trap->resume -= back[pc >> 2 & 7];
	return true;
}

#define RISCV_CAUSES 64

/* Each level has its own vector. Bit 0: interrupts have entries of their own there. */
static bool riscv_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	bool firmware = look->level == WIRE_LEVEL_FIRMWARE;
	uint64_t vector, status;

	trap->left = look->sp;
	if (pc & 3 || !read_reg(cpu, firmware ? REG_VECTOR_3 : REG_VECTOR, &vector) ||
	    pc - (vector & ~3ull) >= (vector & 1 ? 4 * RISCV_CAUSES : 4) ||
	    !read_reg(cpu, firmware ? REG_STATUS_3 : REG_STATUS, &status) ||
	    !read_reg(cpu, link_of(look->level), &trap->resume))
		return false;
	trap->level = firmware ? status >> 11 & 3 : status >> 8 & 1;
	return true;
}

bool look_for_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	switch (set) {
	case INSN_X86_64:
	case INSN_I386: return x86_trap(cpu, look->sp, trap);
	case INSN_AARCH64: return aarch64_trap(cpu, pc, look, trap);
	case INSN_ARM: return arm_trap(cpu, pc, trap);
	case INSN_RISCV64:
	case INSN_RISCV32: return riscv_trap(cpu, pc, look, trap);
	default: return false;
	}
}

bool look_knows_vectors(void)
{
	return has_handle[REG_VECTOR];
}

/*
 * QEMU does not say whether x86 code is 64-bit code. Some instructions reveal it, and then all other
 * code in the same segment is 64-bit code, too.
 */
static unsigned long_mode_word(unsigned cpu, enum insn_mode mode)
{
	uint64_t cs;
	_Atomic uint8_t *known;

	if (!read_reg(cpu, REG_LEVEL, &cs))
		return 0;
	known = &modes[cs >> 3 & 8191];
	if (mode != INSN_MODE_ANY)
		atomic_store(known, (uint8_t)mode);
	switch (atomic_load(known)) {
	case INSN_MODE_64: return 8;
	case INSN_MODE_32: return 4;
	default: return 0;
	}
}

unsigned look_word(unsigned cpu, uint64_t start, enum insn_mode mode)
{
	uint64_t value;

	switch (set) {
	case INSN_X86_64:
		if (start >> 32 || api.user_mode)
			return 8;
		if (read_reg(cpu, REG_MODE, &value) && value & 1u << 10)
			return long_mode_word(cpu, mode);
		return start < LOW_END ? 0 : 4;
	case INSN_I386: return start < LOW_END && !api.user_mode ? 0 : 4;
	case INSN_AARCH64: /* or 32-bit code, which has other instructions */
		return read_reg(cpu, REG_LEVEL, &value) && value & 0x10 ? 0 : 8;
	case INSN_RISCV64: return 8;
	case INSN_OTHER: return 0;
	default: return 4;
	}
}

bool look_is_sure(void)
{
	return set == INSN_X86_64 || set == INSN_I386;
}

bool look_returned(unsigned cpu, uint64_t sp, uint64_t pc)
{
	size_t size = word_size(cpu);
	uint64_t word;

	return read_words(cpu, sp - size, size, &word, 1) && word == pc;
}

bool look_called(unsigned cpu, uint64_t sp, uint64_t next)
{
	uint64_t word;

	return read_words(cpu, sp, word_size(cpu), &word, 1) && word == next;
}
