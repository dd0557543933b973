// SPDX-License-Identifier: GPL-2.0-or-later
/* See regs.h. */
#include "regs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "stream.h"
#include "wire/wire.h"

_Static_assert(REGS_MAX <= WIRE_REGISTERS_MAX, "readers ignore the rest");

/* Registers without a DWARF number. */
enum extra {
	PC,
	FLAGS,
	CS,
	CR0,
	EFER,
	SPACE,
	PRIVILEGE,
	STAGE1,	    /* SCTLR_EL1: whether EL1's page table is in use */
	STAGE2,	    /* the page table that a hypervisor has for its guest */
	HYP_CONFIG, /* HCR_EL2 */
	HYP_SPACE,  /* TTBR0_EL2: the page table of the hypervisor itself */
	CONTROL,    /* M-profile */
	PROCESS_SP, /* M-profile: the stack pointer of threads */
	STATUS,	    /* RISC-V: whether interrupts are masked; where they lead to; the last one */
	VECTOR,
	CAUSE,
	VECTOR3, /* of firmware */
	CAUSE3,
	EXTRAS
};

struct where {
	const char *names; /* QEMU's; the first one that exists counts */
	int gdb;	   /* number in gdb's core registers, or -1 */
};

struct arch {
	const char *name;
	unsigned word, n;
	unsigned sp, fp, result; /* DWARF numbers */
	int link;		 /* register with the return address; -1: on the stack */
	const int8_t *arguments; /* registers, up to -1; the rest is on the stack */
	const struct where *dwarf;
	struct where extra[EXTRAS];
};

static const struct where x86_64_regs[] = {
	{ "rax", 0 },  { "rdx", 3 },  { "rcx", 2 },  { "rbx", 1 },  { "rsi", 4 },  { "rdi", 5 },
	{ "rbp", 6 },  { "rsp", 7 },  { "r8", 8 },   { "r9", 9 },   { "r10", 10 }, { "r11", 11 },
	{ "r12", 12 }, { "r13", 13 }, { "r14", 14 }, { "r15", 15 }, { "rip", 16 },
};
static const struct where i386_regs[] = {
	{ "eax", 0 }, { "ecx", 1 }, { "edx", 2 }, { "ebx", 3 }, { "esp", 4 },
	{ "ebp", 5 }, { "esi", 6 }, { "edi", 7 }, { "eip", 8 },
};
static const struct where aarch64_regs[] = {
	{ "x0", 0 },   { "x1", 1 },   { "x2", 2 },   { "x3", 3 },   { "x4", 4 },   { "x5", 5 },
	{ "x6", 6 },   { "x7", 7 },   { "x8", 8 },   { "x9", 9 },   { "x10", 10 }, { "x11", 11 },
	{ "x12", 12 }, { "x13", 13 }, { "x14", 14 }, { "x15", 15 }, { "x16", 16 }, { "x17", 17 },
	{ "x18", 18 }, { "x19", 19 }, { "x20", 20 }, { "x21", 21 }, { "x22", 22 }, { "x23", 23 },
	{ "x24", 24 }, { "x25", 25 }, { "x26", 26 }, { "x27", 27 }, { "x28", 28 }, { "x29", 29 },
	{ "x30", 30 }, { "sp", 31 },  { "pc", 32 },
};
static const struct where arm_regs[] = {
	{ "r0", 0 },   { "r1", 1 },  { "r2", 2 },  { "r3", 3 },	 { "r4", 4 },	{ "r5", 5 },
	{ "r6", 6 },   { "r7", 7 },  { "r8", 8 },  { "r9", 9 },	 { "r10", 10 }, { "r11", 11 },
	{ "r12", 12 }, { "sp", 13 }, { "lr", 14 }, { "pc", 15 },
};
static const struct where riscv_regs[] = {
	{ "zero", 0 }, { "ra", 1 },  { "sp", 2 },    { "gp", 3 },   { "tp", 4 },  { "t0", 5 },
	{ "t1", 6 },   { "t2", 7 },  { "fp|s0", 8 }, { "s1", 9 },   { "a0", 10 }, { "a1", 11 },
	{ "a2", 12 },  { "a3", 13 }, { "a4", 14 },   { "a5", 15 },  { "a6", 16 }, { "a7", 17 },
	{ "s2", 18 },  { "s3", 19 }, { "s4", 20 },   { "s5", 21 },  { "s6", 22 }, { "s7", 23 },
	{ "s8", 24 },  { "s9", 25 }, { "s10", 26 },  { "s11", 27 }, { "t3", 28 }, { "t4", 29 },
	{ "t5", 30 },  { "t6", 31 },
};

static const int8_t x86_64_arguments[] = { 5, 4, 1, 2, 8, 9, -1 };
static const int8_t no_arguments[] = { -1 };
static const int8_t aarch64_arguments[] = { 0, 1, 2, 3, 4, 5, 6, 7, -1 };
static const int8_t arm_arguments[] = { 0, 1, 2, 3, -1 };
static const int8_t riscv_arguments[] = { 10, 11, 12, 13, 14, 15, 16, 17, -1 };

/* clang-format off */
#define RISCV(name, word)                                                           \
	{                                                                           \
		name, word, 32, 2, 8, 10, 1, riscv_arguments, riscv_regs,           \
		{                                                                   \
			[PC] = { "pc", 32 }, [SPACE] = { "satp", -1 },              \
			[PRIVILEGE] = { "priv", -1 }, [STAGE2] = { "hgatp", -1 },   \
			[STATUS] = { "sstatus", -1 },                               \
			[VECTOR] = { "stvec", -1 }, [CAUSE] = { "scause", -1 },     \
			[VECTOR3] = { "mtvec", -1 }, [CAUSE3] = { "mcause", -1 },   \
		}                                                                   \
	}
/* clang-format on */

static const struct arch arches[] = {
	{ "x86_64",
	  8,
	  17,
	  7,
	  6,
	  0,
	  -1,
	  x86_64_arguments,
	  x86_64_regs,
	  { [PC] = { "rip", 16 },
	    [FLAGS] = { "eflags", 17 },
	    [CS] = { "cs", 18 },
	    [CR0] = { "cr0", 27 },
	    [EFER] = { "efer", 32 },
	    [SPACE] = { "cr3", 29 } } },
	{ "i386",
	  4,
	  9,
	  4,
	  5,
	  0,
	  -1,
	  no_arguments,
	  i386_regs,
	  { [PC] = { "eip", 8 },
	    [FLAGS] = { "eflags", 9 },
	    [CS] = { "cs", 10 },
	    [CR0] = { "cr0", 19 },
	    [SPACE] = { "cr3", 21 } } },
	{ "aarch64",
	  8,
	  33,
	  31,
	  29,
	  0,
	  30,
	  aarch64_arguments,
	  aarch64_regs,
	  { [PC] = { "pc", 32 },
	    [FLAGS] = { "cpsr", 33 },
	    [SPACE] = { "TTBR0_EL1", -1 },
	    [STAGE1] = { "SCTLR_EL1|SCTLR", -1 },
	    [STAGE2] = { "VTTBR_EL2", -1 },
	    [HYP_CONFIG] = { "HCR_EL2", -1 },
	    [HYP_SPACE] = { "TTBR0_EL2", -1 } } },
	{ "arm",
	  4,
	  16,
	  13,
	  11,
	  0,
	  14,
	  arm_arguments,
	  arm_regs,
	  { [PC] = { "pc", 15 },
	    [FLAGS] = { "cpsr", 25 },
	    [SPACE] = { "TTBR0|TTBR0_EL1|TTBR0_S", -1 } } },
	RISCV("riscv64", 8),
	RISCV("riscv32", 4),
};
static const struct arch m_profile = { "arm",
				       4,
				       16,
				       13,
				       7, /* Thumb's frame pointer */
				       0,
				       14,
				       arm_arguments,
				       arm_regs,
				       { [PC] = { "pc", 15 },
					 [FLAGS] = { "xpsr", 25 },
					 [CONTROL] = { "control", -1 },
					 [PROCESS_SP] = { "psp", -1 } } };
/* For targets without an entry, if QEMU lists their registers. */
static const struct where any_pc = { "pc|rpc|nip|pswa|PC", -1 };

/* QEMU's handle of a register, which may be NULL. */
struct handle {
	void *value;
	bool known;
};

/* Of one vCPU. */
struct cpu {
	struct handle dwarf[REGS_MAX], extra[EXTRAS];
	_Atomic uint64_t noted[EXTRAS]; /* the last values that instructions wrote */
	_Atomic unsigned has_noted;	/* a bit for each */
};

static const struct arch *arch;
static _Atomic(struct cpu *) cpus[WIRE_CPUS_MAX];
static __thread GByteArray *scratch;

void regs_open(void)
{
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++)
		if (!strcmp(api.arch, arches[i].name))
			arch = &arches[i];
}

static struct cpu *cpu_of(unsigned index)
{
	struct cpu *cpu, *none = NULL;

	if (index >= WIRE_CPUS_MAX)
		return NULL;
	cpu = atomic_load(&cpus[index]);
	if (cpu)
		return cpu;
	cpu = calloc(1, sizeof(*cpu));
	if (!cpu || atomic_compare_exchange_strong(&cpus[index], &none, cpu))
		return cpu;
	free(cpu);
	return none;
}

static GByteArray *buffer(void)
{
	if (!scratch)
		scratch = api.byte_array_new();
	api.byte_array_set_size(scratch, 0);
	return scratch;
}

bool regs_in_callback(void)
{
	return api.get_registers != NULL;
}

bool regs_in_work(void)
{
	return arch && api.gdb_read && api.memory_rw_debug;
}

bool regs_at_block(void)
{
	return regs_in_callback() || (regs_in_work() && api.get_cpu);
}

/* Handles */

static bool is_named(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (; *names; names += names[0] == '|') {
		size_t word = strcspn(names, "|");

		if (word == length && !strncmp(names, name, length))
			return true;
		names += word;
	}
	return false;
}

static struct handle find_handle(GArray *list, const char *names)
{
	unsigned stride = api.array_element_size(list);

	for (unsigned i = 0; names && i < list->len; i++) {
		struct {
			void *handle;
			const char *name;
		} entry;

		memcpy(&entry, list->data + (size_t)i * stride, sizeof(entry));
		if (entry.name && is_named(names, entry.name))
			return (struct handle){ entry.handle, true };
	}
	return (struct handle){ 0 };
}

/*
 * Cortex-M is "arm" for QEMU, too. Since 9.0, its list of registers has xpsr, and no cpsr. Before, only
 * M-profile vCPUs have the property that sets the first vector table.
 */
static bool is_m_profile(GArray *list, unsigned index)
{
	struct CPUState *state;

	if (strcmp(api.arch, "arm") || api.user_mode)
		return false;
	if (list)
		return find_handle(list, "xpsr").known;
	state = api.get_cpu ? api.get_cpu((int)index) : NULL;
	return state && api.find_property && api.find_property(state, "init-nsvtor");
}

void regs_cpu_init(unsigned index)
{
	struct cpu *cpu = cpu_of(index);
	GArray *list;

	if (!cpu)
		return;
	atomic_store(&cpu->has_noted, 0);
	list = api.get_registers ? api.get_registers() : NULL;
	if (is_m_profile(list, index))
		arch = &m_profile;
	if (!list)
		return;
	for (unsigned i = 0; arch && i < arch->n; i++)
		cpu->dwarf[i] = find_handle(list, arch->dwarf[i].names);
	for (unsigned i = 0; arch && i < EXTRAS; i++)
		cpu->extra[i] = find_handle(list, arch->extra[i].names);
	if (!arch)
		cpu->extra[PC] = find_handle(list, any_pc.names);
	api.array_free(list, 1);
}

/* Reading */

static bool number(const GByteArray *bytes, uint64_t *value)
{
	*value = 0;
	if (bytes->len != 1 && bytes->len != 2 && bytes->len != 4 && bytes->len != 8)
		return false;
	for (unsigned i = 0; i < bytes->len; i++) /* all targets here are little-endian */
		*value |= (uint64_t)bytes->data[i] << 8 * i;
	return true;
}

/* The argument for exported functions, or NULL. */
static struct CPUState *state_of(const struct regs_view *view)
{
	if (view->state)
		return view->state;
	return api.get_cpu ? api.get_cpu((int)view->cpu) : NULL;
}

static bool read_one(const struct regs_view *view, struct handle handle, const struct where *where,
		     uint64_t *value)
{
	bool public = !view->state || (api_reads_in_work() && api_is_current(view->state));
	struct CPUState *state;
	GByteArray *bytes;

	*value = 0;
	if (handle.known && public && api_read_register(handle.value, buffer()))
		return number(scratch, value);
	state = where->gdb >= 0 && api.gdb_read ? state_of(view) : NULL;
	if (!state)
		return false;
	bytes = buffer();
	return api.gdb_read(state, bytes, where->gdb) && number(bytes, value);
}

static bool read_extra(const struct regs_view *view, const struct cpu *cpu, enum extra which,
		       uint64_t *value)
{
	const struct where *where = arch ? &arch->extra[which] : &any_pc;

	*value = 0;
	if (!where->names)
		return false;
	if (read_one(view, cpu->extra[which], where, value))
		return true;
	if (!(atomic_load(&cpu->has_noted) & 1u << which))
		return false;
	*value = atomic_load(&cpu->noted[which]);
	return true;
}

/* The register with the privilege level. */
static bool read_mode(const struct regs_view *view, const struct cpu *cpu, uint64_t *mode)
{
	return read_extra(view, cpu, arch->extra[PRIVILEGE].names ? PRIVILEGE : FLAGS, mode);
}

static unsigned arm_level(uint64_t mode)
{
	switch (mode & 0x1f) {
	case 0x10: return WIRE_LEVEL_USER;
	case 0x16: return WIRE_LEVEL_FIRMWARE;
	case 0x1a: return WIRE_LEVEL_HYPERVISOR;
	}
	return WIRE_LEVEL_KERNEL;
}

/*
 * For a RISC-V whose mode QEMU does not expose: only user mode runs code in user pages, and only machine
 * mode runs code that is not mapped.
 */
static unsigned riscv_level_by_table(const struct regs *regs)
{
	bool wide = arch->word == 8;
	unsigned mode = (unsigned)(wide ? regs->space >> 60 : regs->space >> 31);
	unsigned levels = !wide ? 2 : mode == 8 ? 3 : mode == 9 ? 4 : 5;
	unsigned bits = wide ? 9 : 10, size = wide ? 8 : 4;
	uint64_t table = (regs->space & (wide ? (1ull << 44) - 1 : (1u << 22) - 1)) << 12;

	if (!regs->has_space || !mode || !api.physical_rw)
		return WIRE_LEVEL_FIRMWARE;
	while (levels--) {
		uint64_t index = regs->pc >> (12 + bits * levels) & ((1u << bits) - 1);
		uint64_t entry = 0;

		api.physical_rw(table + index * size, &entry, size, false);
		if (!(entry & 1))
			return WIRE_LEVEL_FIRMWARE;
		if (entry & 0xe)
			return entry & 0x10 ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
		table = (entry >> 10 & ((1ull << 44) - 1)) << 12;
	}
	return WIRE_LEVEL_FIRMWARE;
}

/* Handlers are privileged. Where CONTROL cannot be read, threads count as privileged, too. */
static unsigned m_level(const struct regs_view *view, const struct cpu *cpu, uint64_t xpsr)
{
	uint64_t control;

	if (xpsr & REGS_EXCEPTION || !read_extra(view, cpu, CONTROL, &control) || !(control & 1))
		return WIRE_LEVEL_KERNEL;
	return WIRE_LEVEL_USER;
}

static unsigned read_level(const struct regs_view *view, const struct cpu *cpu,
			   const struct regs *regs)
{
	uint64_t value, flags;

	if (api.user_mode)
		return WIRE_LEVEL_USER;
	if (!arch)
		return WIRE_LEVEL_KERNEL;
	if (arch->extra[CS].names) {
		read_extra(view, cpu, CS, &value);
		read_extra(view, cpu, FLAGS, &flags);
		return (value & 3) == 3 || flags & 1u << 17 ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
	}
	if (arch->extra[FLAGS].names) {
		if (!read_extra(view, cpu, FLAGS, &value))
			return WIRE_LEVEL_KERNEL;
		if (arch == &m_profile)
			return m_level(view, cpu, value);
		return arch->word == 8 && !(value & 0x10) ? (unsigned)(value >> 2 & 3)
							  : arm_level(value);
	}
	if (read_extra(view, cpu, PRIVILEGE, &value))
		return (unsigned)(value & 3);
	return riscv_level_by_table(regs);
}

/* A RISC-V interrupt starts at its level's vector. Firmware does not take the kernel's interrupts. */
static void read_riscv_trap(const struct regs_view *view, const struct cpu *cpu, struct regs *regs)
{
	bool firmware = regs->level == WIRE_LEVEL_FIRMWARE;
	uint64_t status, vector, cause, entry;

	if (regs->level == WIRE_LEVEL_USER || !read_extra(view, cpu, STATUS, &status) ||
	    !read_extra(view, cpu, firmware ? VECTOR3 : VECTOR, &vector) ||
	    !read_extra(view, cpu, firmware ? CAUSE3 : CAUSE, &cause))
		return;
	regs->masked = firmware || !(status & 2);
	entry = (vector & ~3ull) + (vector & 1 ? (cause & 63) * 4 : 0);
	regs->at_trap = regs->pc == entry && cause >> (8 * arch->word - 1) & 1;
}

/*
 * Interrupts of Arm start at known offsets in the vector table, in a known state: on AArch64 in the
 * second and third of every four entries of 128 bytes, with all interrupts masked; on Arm at offset
 * 0x18, in IRQ mode.
 */
static void read_trap(const struct regs_view *view, const struct cpu *cpu, struct regs *regs)
{
	uint64_t flags;

	if (api.user_mode || arch->extra[CS].names)
		return;
	if (arch->extra[PRIVILEGE].names) {
		read_riscv_trap(view, cpu, regs);
		return;
	}
	if (!read_extra(view, cpu, FLAGS, &flags))
		return;
	if (!(flags & 0x10) && arch->word == 8) {
		unsigned entry = regs->pc >> 7 & 3;

		regs->masked = (flags & 0x3c0) == 0x3c0;
		regs->at_trap = regs->masked && !(regs->pc & 0x7f) && (entry == 1 || entry == 2);
	} else {
		regs->masked = flags & 0x80;
		regs->at_trap = (regs->pc & 0x1f) == 0x18 && (flags & 0x9f) == 0x92;
	}
}

bool regs_is_m_profile(void)
{
	return arch == &m_profile;
}

/*
 * An M-profile exception stores these registers on the stack and does not change them: at the first
 * instruction of its handler, both are equal.
 */
static bool is_m_entry(const struct regs_view *view, const struct regs *regs)
{
	static const uint8_t stored[] = { 0, 1, 2, 3, 12 };
	uint64_t frame = regs->dwarf[14] & REGS_ON_PROCESS_STACK ? regs->outer : regs->sp;
	uint32_t words[sizeof(stored)];

	if (!frame || regs_memory(view, frame, words, sizeof(words)) < sizeof(words))
		return false;
	for (size_t i = 0; i < sizeof(stored); i++) {
		if (words[i] != regs->dwarf[stored[i]])
			return false;
	}
	return true;
}

static void read_m_trap(const struct regs_view *view, const struct cpu *cpu, uint64_t xpsr,
			struct regs *regs)
{
	if (!(xpsr & REGS_EXCEPTION))
		return;
	read_extra(view, cpu, PROCESS_SP, &regs->outer);
	regs->at_trap = regs_is_exception_return(regs->dwarf[14]) && is_m_entry(view, regs);
}

/* The bits of the register with the address of the page table, without the address space identifier. */
static uint64_t space_mask(unsigned word)
{
	if (arch->extra[PRIVILEGE].names)
		return arch->word == 8 ? ~(0xffffull << 44) : ~(0x1ffull << 22);
	if (arch->extra[CS].names)
		return word == 8 ? 0x000ffffffffff000 : 0xffffffe0;
	return arch->word == 8 ? 0x0000fffffffff000 : 0xffffffffff80;
}

#define HCR_VM 1u
#define HCR_TGE (1u << 27)
#define HCR_E2H (1ull << 34)
#define VMID_MASK (0xffffull << 48)
#define RISCV_GUEST 4 /* in `priv`, since QEMU 10.0 */

static bool is_el2(uint64_t mode)
{
	return !(mode & 0x10) && (mode >> 2 & 3) == 2;
}

/*
 * A guest of a hypervisor: the number of the guest takes the place of the address space identifier. If
 * the guest does not translate addresses itself, the page table is the hypervisor's. seL4 runs its own
 * threads this way.
 */
static uint64_t aarch64_space(const struct regs_view *view, const struct cpu *cpu, uint64_t mode,
			      uint64_t space)
{
	uint64_t config, stage1, stage2, host, table = space_mask(8);

	if (!read_extra(view, cpu, HYP_CONFIG, &config) || !config)
		return space & table;
	if (config & HCR_E2H && (config & HCR_TGE || is_el2(mode)) &&
	    read_extra(view, cpu, HYP_SPACE, &host))
		return host & table;
	if (!(config & HCR_VM) || !read_extra(view, cpu, STAGE2, &stage2))
		return space & table;
	/* A register that QEMU does not list is unknown until code writes it: stage 1 is off at first. */
	if (!read_extra(view, cpu, STAGE1, &stage1) || !(stage1 & 1))
		space = stage2;
	return (space & table) | (stage2 & VMID_MASK);
}

static uint64_t riscv_space(const struct regs_view *view, const struct cpu *cpu, uint64_t mode,
			    uint64_t space)
{
	uint64_t stage2, mask = space_mask(arch->word);
	uint64_t on = arch->word == 8 ? 15ull << 60 : 1u << 31;

	if (!(mode & RISCV_GUEST) || !read_extra(view, cpu, STAGE2, &stage2) || !stage2)
		return space & mask;
	if (!(space & on))
		space = stage2;
	return (space & mask) | (stage2 & ~mask);
}

/* word: bytes of a pointer in the current mode. */
static bool read_space(const struct regs_view *view, const struct cpu *cpu, uint64_t mode,
		       unsigned word, uint64_t *space)
{
	*space = 0;
	if (!arch || api.user_mode)
		return false;
	if (arch == &m_profile) /* one space for all */
		return true;
	if (!read_extra(view, cpu, SPACE, space))
		return false;
	if (arch->extra[HYP_CONFIG].names)
		*space = aarch64_space(view, cpu, mode, *space);
	else if (arch->extra[PRIVILEGE].names)
		*space = riscv_space(view, cpu, mode, *space);
	else
		*space &= space_mask(word);
	return true;
}

bool regs_space(unsigned index, uint64_t mode, uint64_t *space)
{
	struct regs_view view = { .cpu = index };
	const struct cpu *cpu = cpu_of(index);

	return cpu && arch && read_space(&view, cpu, mode, arch->word, space);
}

/* A 64-bit x86 outside of long mode: its registers become those of i386, with their numbers. */
static void make_narrow(struct regs *regs)
{
	static const uint8_t order[] = { 0, 2, 1, 3, 7, 6, 4, 5, 16 };
	uint64_t wide[REGS_MAX];

	memcpy(wide, regs->dwarf, sizeof(wide));
	for (size_t i = 0; i < sizeof(order); i++)
		regs->dwarf[i] = wide[order[i]] & 0xffffffff;
	regs->n = sizeof(order);
	regs->word = 4;
}

static void read_x86_mode(const struct regs_view *view, const struct cpu *cpu, struct regs *regs)
{
	uint64_t value, cs;

	if (!arch->extra[CS].names || api.user_mode)
		return;
	if (read_extra(view, cpu, EFER, &value) && !(value & 1u << 10))
		make_narrow(regs);
	/* In real mode, where firmware starts, addresses are relative to the segment. */
	if (read_extra(view, cpu, CR0, &value) && !(value & 1) && read_extra(view, cpu, CS, &cs))
		regs->pc += cs << 4;
}

void regs_read(const struct regs_view *view, uint64_t pc, struct regs *regs)
{
	const struct cpu *cpu = cpu_of(view->cpu);
	/*
	 * At the start of a block QEMU may not have stored the pc, so the caller passes it. In system
	 * emulation of the targets here it is always stored, and better: a block may run at several
	 * addresses.
	 */
	bool stored = view->state || (regs_in_callback() && arch && !api.user_mode);
	uint64_t mode;

	memset(regs, 0, offsetof(struct regs, dwarf));
	regs->pc = pc;
	regs->word = arch ? arch->word : 8;
	if (!cpu)
		return;
	if (stored || !pc) {
		uint64_t value;

		if (read_extra(view, cpu, PC, &value))
			regs->pc = value;
	}
	if (!arch) {
		regs->level = api.user_mode ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
		return;
	}
	while (regs->n < arch->n &&
	       read_one(view, cpu->dwarf[regs->n], &arch->dwarf[regs->n], &regs->dwarf[regs->n]))
		regs->n++;
	if (regs->n < arch->n) {
		regs->n = 0;
		return;
	}
	regs->sp = regs->dwarf[arch->sp];
	regs->fp = regs->dwarf[arch->fp];
	read_x86_mode(view, cpu, regs);
	read_mode(view, cpu, &mode);
	regs->has_space = read_space(view, cpu, mode, regs->word, &regs->space);
	regs->level = read_level(view, cpu, regs);
	if (arch == &m_profile)
		read_m_trap(view, cpu, mode, regs);
	else
		read_trap(view, cpu, regs);
}

/* Functions and their arguments */

static bool is_i386(const struct regs *regs)
{
	return arch->extra[CS].names && regs->word == 4;
}

bool regs_pointer(const struct regs_view *view, const struct regs *regs, uint64_t address,
		  uint64_t *value)
{
	*value = 0;
	return regs_memory(view, address, value, regs->word) == regs->word;
}

bool regs_argument(const struct regs_view *view, const struct regs *regs, unsigned n,
		   uint64_t *value)
{
	const int8_t *registers = regs->n && is_i386(regs) ? no_arguments
				  : arch		   ? arch->arguments
							   : NULL;
	unsigned i = 0;

	if (!regs->n || !registers)
		return false;
	for (; i < n && registers[i] >= 0; i++)
		;
	if (registers[i] >= 0) {
		*value = regs->dwarf[registers[i]];
		return true;
	}
	n -= i;
	if (arch->link < 0)
		n++; /* the return address comes first */
	return regs_pointer(view, regs, regs->sp + (uint64_t)n * regs->word, value);
}

bool regs_return_address(const struct regs_view *view, const struct regs *regs, uint64_t *address)
{
	if (!regs->n)
		return false;
	if (arch->link < 0)
		return regs_pointer(view, regs, regs->sp, address);
	*address = regs->dwarf[arch->link];
	return true;
}

uint64_t regs_result(const struct regs *regs)
{
	return regs->n ? regs->dwarf[arch->result] : 0;
}

/* Memory */

static bool read_part(const struct regs_view *view, uint64_t address, void *bytes, size_t size)
{
	struct CPUState *state = api.memory_rw_debug ? state_of(view) : NULL;

	if (state)
		return !api.memory_rw_debug(state, address, bytes, size, false);
	if (view->state || !api.read_memory || !api.read_memory(address, buffer(), size) ||
	    scratch->len < size)
		return false;
	memcpy(bytes, scratch->data, size);
	return true;
}

size_t regs_memory(const struct regs_view *view, uint64_t address, void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t part = REGS_PAGE - (size_t)((address + done) & (REGS_PAGE - 1));

		if (part > size - done)
			part = size - done;
		if (!read_part(view, address + done, (uint8_t *)bytes + done, part))
			break;
		done += part;
	}
	return done;
}

/*
 * Writes to the registers of the address space. Such an instruction ends its block, and a work item runs
 * before the next block: there, the source register still has the value. The data of the callback is
 * the DWARF number of that register or NO_REG, in bits 8 to 15 that of the upper half, NO_REG or
 * SECOND_NAME, and in bits 16 to 23 the register that it writes, plus 1.
 */
#define NO_REG 0xff
#define SECOND_NAME 0xfe

/* A VHE host writes EL2's registers by the names of EL1, and EL1's by their second names. */
static bool is_vhe_host(const struct regs_view *view, const struct cpu *cpu)
{
	uint64_t mode, config;

	return arch->extra[HYP_CONFIG].names && read_mode(view, cpu, &mode) && is_el2(mode) &&
	       read_extra(view, cpu, HYP_CONFIG, &config) && config & HCR_E2H;
}

static void note_space(struct CPUState *state, void *data)
{
	uintptr_t packed = (uintptr_t)data;
	unsigned index = (unsigned)(packed >> 24), which = (packed >> 16 & 0xff) - 1;
	unsigned low = packed & 0xff, high = packed >> 8 & 0xff;
	struct regs_view view = { index, state };
	struct cpu *cpu = cpu_of(index);
	uint64_t value = 0, upper = 0;

	if (!cpu || (low != NO_REG && !read_one(&view, cpu->dwarf[low], &arch->dwarf[low], &value)))
		return;
	if (high < REGS_MAX && read_one(&view, cpu->dwarf[high], &arch->dwarf[high], &upper))
		value |= upper << 32;
	if (high == NO_REG && is_vhe_host(&view, cpu)) {
		if (which != SPACE)
			return;
		which = HYP_SPACE;
	}
	atomic_store(&cpu->noted[which], value);
	atomic_fetch_or(&cpu->has_noted, 1u << which);
}

static void on_space_write(unsigned given, void *registers)
{
	unsigned cpu = api_running_cpu(given);
	struct CPUState *state = api.get_cpu((int)cpu);

	if (state)
		api.async_run_on_cpu(state, note_space,
				     (void *)((uintptr_t)registers | (uintptr_t)cpu << 24));
}

static unsigned pack(enum extra which, unsigned low, unsigned high)
{
	return (which + 1u) << 16 | high << 8 | low;
}

/* msr to one of the registers that determine the address space. */
static unsigned aarch64_written(uint32_t code)
{
	static const struct {
		uint32_t code;
		enum extra which;
		unsigned name;
	} writes[] = {
		{ 0xd5182000, SPACE, NO_REG },	    /* ttbr0_el1 */
		{ 0xd51d2000, SPACE, SECOND_NAME }, /* ttbr0_el12 */
		{ 0xd51c2000, HYP_SPACE, SECOND_NAME },
		{ 0xd51c2100, STAGE2, SECOND_NAME },
		{ 0xd51c1100, HYP_CONFIG, SECOND_NAME },
		{ 0xd5181000, STAGE1, NO_REG },	     /* sctlr_el1 */
		{ 0xd51d1000, STAGE1, SECOND_NAME }, /* sctlr_el12 */
	};
	unsigned from = (code & 31) == 31 ? NO_REG : code & 31;

	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		if ((code & 0xffffffe0) == writes[i].code)
			return pack(writes[i].which, from, writes[i].name);
	}
	return 0;
}

/* The source registers of an instruction that sets the address space, or 0 for any other. */
static unsigned written_to_space(uint32_t code)
{
	unsigned from = code >> 15 & 31, to = code >> 7 & 31;

	if (arch->extra[PRIVILEGE].names) /* csrrw TO, satp, FROM */
		return (code & 0xfff0707f) == 0x18001073 && (from != to || !from)
			       ? pack(SPACE, from, NO_REG)
			       : 0;
	if (arch->word == 8)
		return aarch64_written(code);
	if ((code & 0x0fff0fff) == 0x0e020f10) /* mcr p15, 0, RT, c2, c0, 0 */
		return pack(SPACE, code >> 12 & 15, NO_REG);
	if ((code & 0x0ff00fff) == 0x0c400f02) /* mcrr p15, 0, RT, RT2, c2 */
		return pack(SPACE, code >> 12 & 15, code >> 16 & 15);
	return 0;
}

bool regs_wants_blocks(void)
{
	if (!arch || api.user_mode || !arch->extra[SPACE].names || arch->extra[CS].names ||
	    !regs_in_work() || !api.async_run_on_cpu || !api.get_cpu)
		return false;
	return !api_reads_in_work() || api_mixes_cpus();
}

void regs_translate(struct qemu_plugin_tb *tb)
{
	size_t n;

	if (!regs_wants_blocks())
		return;
	/* Only the last instruction of a block can set the address space. */
	n = api.tb_n_insns(tb);
	if (n) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, n - 1);
		uint32_t code = 0;
		size_t size = api_insn_data(insn, &code, sizeof(code));
		unsigned registers;

		if (size != 4)
			return;
		registers = written_to_space(code);
		if (!registers &&
		    arch->dwarf == arm_regs) /* Thumb's halves are the other way round */
			registers = written_to_space(code << 16 | code >> 16);
		if (registers)
			api.insn_exec_cb(insn, on_space_write, API_NO_REGS,
					 (void *)(uintptr_t)registers);
	}
}
