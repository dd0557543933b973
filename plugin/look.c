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

enum reg {
	REG_PC,
	REG_SP,
	REG_LEVEL,
	REG_MODE,   /* EFER; CONTROL of M-profile */
	REG_LINK,   /* the return address of an exception, or lr */
	REG_LINK2,  /* the same at the level of a hypervisor */
	REG_LINK3,  /* at that of firmware */
	REG_VECTOR, /* RISC-V: where traps lead to, and the level that they interrupted */
	REG_STATUS,
	REG_VECTOR3, /* of firmware */
	REG_STATUS3,
	REG_PROCESS_SP,
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
		[REG_LINK] = { "sepc", -1 }, [REG_LINK3] = { "mepc", -1 },                     \
		[REG_VECTOR] = { "stvec", -1 }, [REG_VECTOR3] = { "mtvec", -1 },               \
		[REG_STATUS] = { "sstatus", -1 }, [REG_STATUS3] = { "mstatus", -1 },           \
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
			   [REG_LINK2] = { "ELR_EL2", -1 },
			   [REG_LINK3] = { "ELR_EL3", -1 } },
	[INSN_ARM] = { [REG_PC] = { "pc", 15 },
		       [REG_SP] = { "sp", 13 },
		       [REG_LEVEL] = { "cpsr", 25 },
		       [REG_LINK] = { "lr", 14 } },
	[INSN_THUMB] = { [REG_PC] = { "pc", 15 }, /* M-profile */
			 [REG_SP] = { "sp", 13 },
			 [REG_LEVEL] = { "xpsr", 25 },
			 [REG_MODE] = { "control", -1 },
			 [REG_LINK] = { "lr", 14 },
			 [REG_PROCESS_SP] = { "psp", -1 } },
	[INSN_RISCV64] = RISCV,
	[INSN_RISCV32] = RISCV,
};

/* The start of QEMU's structure, to which later versions append. */
struct register_descriptor {
	void *handle;
	const char *name, *feature;
};

static enum insn_set set;
static atomic_bool moves;	 /* see look_moves(); true until disproved */
static void *handles[REG_KINDS]; /* the same for all vCPUs */
static bool has_handle[REG_KINDS];
static struct CPUState *states[WIRE_CPUS_MAX];
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

static bool read_reg(unsigned cpu, enum reg kind, uint64_t *value)
{
	int number = names[set][kind].gdb;
	size_t size = 0;

	if (!scratch)
		scratch = api.byte_array_new();
	api.byte_array_set_size(scratch, 0);
	if (has_handle[kind]) {
		size = api_read_register(handles[kind], scratch);
	} else if (names[set][kind].name && number >= 0 && set != INSN_OTHER && api.gdb_read &&
		   cpu < WIRE_CPUS_MAX) {
		if (!states[cpu] && api.get_cpu)
			states[cpu] = api.get_cpu((int)cpu);
		if (states[cpu])
			size = (size_t)api.gdb_read(states[cpu], scratch, number);
	}
	if (!size || size > scratch->len)
		return false;
	*value = little(scratch->data, size);
	return true;
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
enum { M_PC = 6, M_XPSR = 7, M_WORDS = 8 };
#define M_FRAME 0x20
#define M_FRAME_WITH_FP 0x68
#define M_ALIGNED (1u << 9) /* in the stored xPSR: a word was skipped to align the frame */

bool look_frame(unsigned cpu, uint64_t sp, struct look_frame *frame)
{
	uint64_t lr, at = sp, words[M_WORDS];

	*frame = (struct look_frame){ 0 };
	if (!read_reg(cpu, REG_LINK, &lr) || !regs_is_exception_return(lr))
		return false;
	frame->level = lr & M_FROM_THREAD ? m_level(cpu, 0) : WIRE_LEVEL_KERNEL;
	if (lr & REGS_ON_PROCESS_STACK && !read_reg(cpu, REG_PROCESS_SP, &at))
		return true;
	if (!read_words(cpu, at, 4, words, M_WORDS))
		return true;
	frame->resume = words[M_PC];
	frame->left = at + (lr & M_BASIC_FRAME ? M_FRAME : M_FRAME_WITH_FP) +
		      (words[M_XPSR] & M_ALIGNED ? 4 : 0);
	frame->exception = lr & M_FROM_THREAD ? 0 : words[M_XPSR] & REGS_EXCEPTION;
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

/* Whether these words are what an exception pushes: ip, cs, flags, and in 64-bit mode sp and ss. */
static bool is_x86_frame(const uint64_t *words, bool wide)
{
	uint64_t cs = words[1], flags = words[2];

	if (cs > 0xffff || cs < 8 || !(flags & 2) || flags & 0x8028 || flags >> 22)
		return false;
	return !wide || words[4] <= 0xffff;
}

static bool x86_trap(unsigned cpu, uint64_t sp, uint64_t *resume, unsigned *level)
{
	size_t word = word_size(cpu);
	bool wide = word == 8;
	uint64_t words[6];

	if (!read_words(cpu, sp, word, words, 6))
		return false;
	for (size_t i = 0; i < 2; i++) {
		if (is_x86_frame(words + i, wide)) {
			*resume = words[i];
			*level = x86_level(words[i + 1]);
			return true;
		}
	}
	return false;
}

static bool arm_trap(unsigned cpu, uint64_t pc, uint64_t *resume)
{
	static const uint8_t back[8] = { 0, 0, 0, 4, 8, 0, 4, 4 };

	if ((pc & ~0x1cull) != 0 && (pc & ~0x1cull) != 0xffff0000)
		return false;
	if (!read_reg(cpu, REG_LINK, resume))
		return false;
	*resume -= back[pc >> 2 & 7];
	return true;
}

/* The register with the return address of an exception that is handled at this level. */
static enum reg link_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_LINK2;
	case WIRE_LEVEL_FIRMWARE: return REG_LINK3;
	default: return REG_LINK;
	}
}

#define RISCV_CAUSES 64

/* Each level has its own vector. Bit 0: interrupts have entries of their own there. */
static bool riscv_trap(unsigned cpu, uint64_t pc, unsigned at, uint64_t *resume, unsigned *level)
{
	bool firmware = at == WIRE_LEVEL_FIRMWARE;
	uint64_t vector, status;

	if (pc & 3 || !read_reg(cpu, firmware ? REG_VECTOR3 : REG_VECTOR, &vector) ||
	    pc - (vector & ~3ull) >= (vector & 1 ? 4 * RISCV_CAUSES : 4) ||
	    !read_reg(cpu, firmware ? REG_STATUS3 : REG_STATUS, &status) ||
	    !read_reg(cpu, link_of(at), resume))
		return false;
	*level = firmware ? status >> 11 & 3 : status >> 8 & 1;
	return true;
}

bool look_for_trap(unsigned cpu, uint64_t pc, const struct look *look, uint64_t *resume,
		   unsigned *level)
{
	switch (set) {
	case INSN_X86_64:
	case INSN_I386: return x86_trap(cpu, look->sp, resume, level);
	case INSN_AARCH64: return !(pc & 0x7f) && read_reg(cpu, link_of(look->level), resume);
	case INSN_ARM: return arm_trap(cpu, pc, resume);
	case INSN_RISCV64:
	case INSN_RISCV32: return riscv_trap(cpu, pc, look->level, resume, level);
	default: return false;
	}
}

bool look_knows_vectors(void)
{
	return has_handle[REG_VECTOR];
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
