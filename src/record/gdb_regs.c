// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/gdb_regs.h"

#include <elf.h>
#include <string.h>

#include "record/gdb_packet.h"
#include "wire/wire.h"

#define X86_VM (1u << 17)   /* in eflags */
#define X86_LONG (1u << 10) /* in efer */
#define M_EXCEPTION 0x1ffu  /* in xpsr */

enum family { X86, AARCH64, ARM, M_PROFILE, RISCV };

/* Names are separated by spaces, names of one register by bars. */
struct gdb_machine {
	const char *arch;
	enum family family;
	unsigned word, nr, sp, fp;
	const char *needs; /* a machine with these registers is this machine */
	const char *dwarf; /* in the order of DWARF's numbers */
	const char *special[GDB_SPECIALS];
	uint64_t space; /* the bits of the address space register that are no identifier */
	unsigned elf;
	const char *
		standard; /* gdb's registers of a stub without target.xml, after their sizes in bits */
};

#define RISCV_NAMES                                                                              \
	"zero|x0 ra|x1 sp|x2 gp|x3 tp|x4 t0|x5 t1|x6 t2|x7 fp|s0|x8 s1|x9 a0|x10 a1|x11 a2|x12 " \
	"a3|x13 "                                                                                \
	"a4|x14 a5|x15 a6|x16 a7|x17 s2|x18 s3|x19 s4|x20 s5|x21 s6|x22 s7|x23 s8|x24 s9|x25 "   \
	"s10|x26 "                                                                               \
	"s11|x27 t3|x28 t4|x29 t5|x30 t6|x31"
#define RISCV_STANDARD                                                                          \
	" zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 " \
	"s11 t3 t4 t5 t6 pc"
#define RISCV_SPECIAL                                                                        \
	{                                                                                    \
		[GDB_PC] = "pc", [GDB_LEVEL] = "priv", [GDB_SPACE] = "satp",                 \
		[GDB_VECTOR] = "stvec", [GDB_CAUSE] = "scause", [GDB_FROM] = "sepc",         \
		[GDB_SAVED] = "sstatus", [GDB_VECTOR_3] = "mtvec", [GDB_CAUSE_3] = "mcause", \
		[GDB_FROM_3] = "mepc", [GDB_SAVED_3] = "mstatus"                             \
	}
#define AARCH64_X                                                                                \
	"x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22 x23 " \
	"x24 x25 x26 x27 x28 x29 x30 sp pc"
#define ARM_R "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 sp|r13 lr|r14 pc|r15"

/* The first that fits is taken. */
/* clang-format off */
static const struct gdb_machine machines[] = {
	{
		.arch = "x86_64", .family = X86, .word = 8, .nr = 17, .sp = 7, .fp = 6,
		.needs = "rip rsp", .space = 0x000ffffffffff000, .elf = EM_X86_64,
		.dwarf = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip",
		.special = {
			[GDB_PC] = "rip", [GDB_LEVEL] = "cs", [GDB_FLAGS] = "eflags",
			[GDB_SPACE] = "cr3", [GDB_CR0] = "cr0", [GDB_EFER] = "efer",
		},
		.standard = "64 rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip "
			    "32 eflags cs ss ds es fs gs",
	},
	{
		.arch = "i386", .family = X86, .word = 4, .nr = 9, .sp = 4, .fp = 5,
		.needs = "eip esp", .space = 0xffffffe0, .elf = EM_386,
		.dwarf = "eax ecx edx ebx esp ebp esi edi eip",
		.special = {
			[GDB_PC] = "eip", [GDB_LEVEL] = "cs", [GDB_FLAGS] = "eflags",
			[GDB_SPACE] = "cr3", [GDB_CR0] = "cr0",
		},
		.standard = "32 eax ecx edx ebx esp ebp esi edi eip eflags cs ss ds es fs gs",
	},
	{
		.arch = "riscv64", .family = RISCV, .word = 8, .nr = 32, .sp = 2, .fp = 8,
		.needs = "ra|x1 sp|x2 t6|x31|a0 pc", .space = ~(0xffffull << 44), .elf = EM_RISCV,
		.dwarf = RISCV_NAMES,
		.special = RISCV_SPECIAL,
		.standard = "64" RISCV_STANDARD,
	},
	{
		.arch = "riscv32", .family = RISCV, .word = 4, .nr = 32, .sp = 2, .fp = 8,
		.needs = "ra|x1 sp|x2 t6|x31|a0 pc", .space = ~(0x1ffull << 22), .elf = EM_RISCV,
		.dwarf = RISCV_NAMES,
		.special = RISCV_SPECIAL,
		.standard = "32" RISCV_STANDARD,
	},
	{
		.arch = "aarch64", .family = AARCH64, .word = 8, .nr = 33, .sp = 31, .fp = 29,
		.needs = "x30 sp pc", .space = 0x0000fffffffff000, .elf = EM_AARCH64,
		.dwarf = AARCH64_X,
		.special = {
			[GDB_PC] = "pc", [GDB_LEVEL] = "cpsr|CPSR",
			[GDB_SPACE] = "TTBR0_EL1|ttbr0_el1", [GDB_VECTOR] = "VBAR|VBAR_EL1",
			[GDB_FROM] = "ELR_EL1", [GDB_SAVED] = "SPSR_EL1", [GDB_USER_SP] = "SP_EL0",
		},
		.standard = "64 " AARCH64_X " 32 cpsr",
	},
	{
		.arch = "arm", .family = M_PROFILE, .word = 4, .nr = 16, .sp = 13, .fp = 7 /* Thumb's */,
		.needs = "r12 sp|r13 pc|r15 xpsr|xPSR",
		.dwarf = ARM_R,
		.special = {
			[GDB_PC] = "pc|r15", [GDB_LEVEL] = "xpsr|xPSR",
			[GDB_CONTROL] = "control|CONTROL", [GDB_PSP] = "psp|PSP",
		},
	},
	{
		.arch = "arm", .family = ARM, .word = 4, .nr = 16, .sp = 13, .fp = 11,
		.needs = "r12 sp|r13 lr|r14 pc|r15 cpsr|CPSR", .space = 0xffffffffff80, .elf = EM_ARM,
		.dwarf = ARM_R,
		.special = {
			[GDB_PC] = "pc|r15", [GDB_LEVEL] = "cpsr|CPSR",
			[GDB_SPACE] = "TTBR0|TTBR0_EL1|TTBR0_S",
		},
		.standard = "32 r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 sp lr pc "
			    "96 f0 f1 f2 f3 f4 f5 f6 f7 32 fps cpsr",
	},
};
/* clang-format on */

/* ---- Names ---- */

/* The next word of a list; its length, or 0 at the end. */
static size_t next_word(const char **at, const char *separators)
{
	*at += strspn(*at, separators);
	return strcspn(*at, separators);
}

static const struct gdb_register *find_one(const struct gdb_registers *registers, const char *name,
					   size_t len)
{
	for (size_t i = 0; i < registers->nr; i++) {
		const struct gdb_register *reg = &registers->at[i];

		if (!strncmp(reg->name, name, len) && !reg->name[len])
			return reg;
	}
	return NULL;
}

/* names: of one register, separated by bars. */
static const struct gdb_register *find(const struct gdb_registers *registers, const char *names,
				       size_t len)
{
	const char *end = names + len;

	while (names < end) {
		const char *bar = memchr(names, '|', (size_t)(end - names));
		const char *stop = bar ? bar : end;
		const struct gdb_register *reg;

		if (stop - names < GDB_NAME_MAX) {
			reg = find_one(registers, names, (size_t)(stop - names));
			if (reg)
				return reg;
		}
		names = stop + 1;
	}
	return NULL;
}

static bool fits(const struct gdb_machine *machine, const struct gdb_registers *registers)
{
	const struct gdb_register *pc = NULL;
	const char *at = machine->needs;
	size_t len;

	while ((len = next_word(&at, " "))) {
		pc = find(registers, at, len);
		if (!pc)
			return false;
		at += len;
	}
	/* The last name that a RISC-V needs is its pc. */
	return machine->family != RISCV || pc->size == machine->word;
}

/* ---- Layout ---- */

/* In `g`, registers come in the order of their numbers. */
static size_t offset_of(const struct gdb_registers *registers, uint32_t number)
{
	size_t sum = 0;

	for (size_t i = 0; i < registers->nr; i++)
		sum += registers->at[i].number < number ? registers->at[i].size : 0;
	return sum;
}

static void set_slot(struct gdb_slot *slot, const struct gdb_registers *registers,
		     const char *names, size_t len, size_t g)
{
	const struct gdb_register *reg = find(registers, names, len);

	if (!reg || reg->size > 8)
		return;
	*slot = (struct gdb_slot){ .known = true,
				   .number = reg->number,
				   .size = reg->size,
				   .at = offset_of(registers, reg->number) };
	slot->asked = slot->at + slot->size > g;
}

bool gdb_layout_init(struct gdb_layout *layout, const struct gdb_registers *registers, size_t g,
		     bool user_mode)
{
	const struct gdb_machine *machine = NULL;
	const char *at;
	size_t len;

	*layout = (struct gdb_layout){ 0 };
	for (size_t i = 0; !machine && i < sizeof(machines) / sizeof(machines[0]); i++)
		machine = fits(&machines[i], registers) ? &machines[i] : NULL;
	if (!machine)
		return false;
	layout->machine = machine;
	layout->arch = machine->arch;
	layout->user_mode = user_mode;
	at = machine->dwarf;
	for (unsigned i = 0; (len = next_word(&at, " ")); i++, at += len)
		set_slot(&layout->slots[i], registers, at, len, g);
	for (unsigned i = 0; i < GDB_SPECIALS; i++) {
		if (machine->special[i] && (i == GDB_PC || !user_mode))
			set_slot(&layout->slots[GDB_DWARF_MAX + i], registers, machine->special[i],
				 strlen(machine->special[i]), g);
	}
	return true;
}

bool gdb_default_registers(struct gdb_registers *registers, unsigned elf_machine, bool wide)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct gdb_machine *machine = &machines[i];
		const char *at = machine->standard;
		unsigned bits = 0;
		size_t len;

		if (!at || machine->elf != elf_machine || (machine->word == 8) != wide)
			continue;
		for (; (len = next_word(&at, " ")); at += len) {
			if (*at >= '1' && *at <= '9')
				bits = *at == '6' ? 64 : *at == '9' ? 96 : 32;
			else
				gdb_registers_add(registers, at, len, registers->next, bits);
		}
		return true;
	}
	return false;
}

bool gdb_is_riscv(const struct gdb_layout *layout)
{
	return layout->machine->family == RISCV;
}

/* ---- Values ---- */

static bool value_at(const struct buf *reply, size_t at, size_t size, uint64_t *value)
{
	uint8_t bytes[8] = { 0 };

	if (2 * (at + size) > reply->len ||
	    gdb_unhex(reply->data + 2 * at, 2 * size, bytes, size) != size)
		return false;
	*value = 0;
	for (size_t i = 0; i < size; i++) /* all machines here are little-endian */
		*value |= (uint64_t)bytes[i] << 8 * i;
	return true;
}

void gdb_values_all(const struct gdb_layout *layout, const struct buf *reply,
		    struct gdb_values *values)
{
	*values = (struct gdb_values){ 0 };
	for (unsigned i = 0; i < GDB_SLOTS; i++) {
		const struct gdb_slot *slot = &layout->slots[i];

		if (slot->known && !slot->asked)
			values->has[i] = value_at(reply, slot->at, slot->size, &values->at[i]);
	}
}

void gdb_values_one(const struct gdb_layout *layout, unsigned slot, const struct buf *reply,
		    struct gdb_values *values)
{
	values->has[slot] = value_at(reply, 0, layout->slots[slot].size, &values->at[slot]);
}

static bool special(const struct gdb_values *values, enum gdb_special which, uint64_t *value)
{
	*value = values->at[GDB_DWARF_MAX + which];
	return values->has[GDB_DWARF_MAX + which];
}

static unsigned arm_level(uint64_t mode)
{
	switch (mode & 0x1f) {
	case 0x10: return WIRE_LEVEL_USER;
	case 0x16: return WIRE_LEVEL_FIRMWARE;
	case 0x1a: return WIRE_LEVEL_HYPERVISOR;
	default: return WIRE_LEVEL_KERNEL;
	}
}

static unsigned level_of(enum family family, const struct gdb_values *values)
{
	uint64_t mode, other;

	if (!special(values, GDB_LEVEL, &mode))
		return WIRE_LEVEL_KERNEL;
	switch (family) {
	case X86:
		if (special(values, GDB_FLAGS, &other) && other & X86_VM)
			return WIRE_LEVEL_USER;
		return (mode & 3) == 3 ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
	case AARCH64: return mode & 0x10 ? arm_level(mode) : mode >> 2 & 3;
	case RISCV: return mode & 3;
	case M_PROFILE: /* handlers are privileged */
		return !(mode & M_EXCEPTION) && special(values, GDB_CONTROL, &other) && other & 1
			       ? WIRE_LEVEL_USER
			       : WIRE_LEVEL_KERNEL;
	default: return arm_level(mode);
	}
}

/* A 64-bit x86 outside of long mode: its registers become those of i386, with their numbers. */
static void make_narrow(struct gdb_state *state)
{
	static const uint8_t order[] = { 0, 2, 1, 3, 7, 6, 4, 5, 16 };
	uint64_t wide[GDB_DWARF_MAX];

	memcpy(wide, state->dwarf, sizeof(wide));
	for (size_t i = 0; i < sizeof(order); i++)
		state->dwarf[i] = wide[order[i]] & 0xffffffff;
	state->nr = sizeof(order);
	state->word = 4;
}

static void read_x86(const struct gdb_values *values, struct gdb_state *state)
{
	uint64_t value, cs;

	if (state->word == 8 && special(values, GDB_EFER, &value) && !(value & X86_LONG))
		make_narrow(state);
	/* In real mode, where firmware starts, addresses are relative to the segment. */
	if (special(values, GDB_CR0, &value) && !(value & 1) && special(values, GDB_LEVEL, &cs))
		state->pc += cs << 4;
}

/* ---- Interrupts ---- */

/* Interrupts of AArch64 start in the second and third of every four entries of 128 bytes. */
static void before_aarch64_interrupt(const struct gdb_values *values, struct gdb_state *state)
{
	uint64_t vector, from, saved, sp;
	unsigned entry = state->pc >> 7 & 3;

	if (state->level != WIRE_LEVEL_KERNEL || !special(values, GDB_VECTOR, &vector) ||
	    state->pc - vector >= 0x800 || state->pc & 0x7f || entry < 1 || entry > 2)
		return;
	if (!special(values, GDB_FROM, &from) || !special(values, GDB_SAVED, &saved) ||
	    !special(values, GDB_USER_SP, &sp) || saved & 0x10 /* 32-bit code */)
		return;
	state->pc = state->dwarf[32] = from;
	state->level = saved >> 2 & 3;
	if (!(saved & 1))
		state->sp = state->dwarf[31] = sp;
}

/* Traps of RISC-V start at the vector, or, if its lowest bit is set, interrupts at 4 times their number after it. */
static void before_riscv_interrupt(const struct gdb_values *values, struct gdb_state *state)
{
	bool firmware = state->level == WIRE_LEVEL_FIRMWARE;
	unsigned more = firmware ? GDB_VECTOR_3 - GDB_VECTOR : 0, top = 8 * state->word - 1;
	uint64_t vector, cause, from, saved;

	if (state->level == WIRE_LEVEL_USER || !special(values, GDB_VECTOR + more, &vector) ||
	    !special(values, GDB_CAUSE + more, &cause) || !(cause >> top & 1))
		return;
	if (state->pc != (vector & ~3ull) + (vector & 1 ? 4 * (cause & 0xff) : 0))
		return;
	if (!special(values, GDB_FROM + more, &from) || !special(values, GDB_SAVED + more, &saved))
		return;
	state->pc = from;
	state->level = firmware ? saved >> 11 & 3 : saved >> 8 & 1;
}

/*
 * A cpu at the first instruction of an interrupt handler, because the stub delivers pending interrupts before it
 * stops: when it was asked to stop, it ran the code that the interrupt left, with the same registers. But if nothing
 * has changed since the stop before, it stays at that instruction: a kernel that does not expect interrupts loops there.
 */
static void before_interrupt(const struct gdb_machine *machine, const struct gdb_values *values,
			     const struct gdb_values *before, struct gdb_state *state)
{
	if (!memcmp(values->at, before->at, sizeof(values->at)))
		return;
	if (machine->family == AARCH64)
		before_aarch64_interrupt(values, state);
	else if (machine->family == RISCV)
		before_riscv_interrupt(values, state);
}

void gdb_state_read(const struct gdb_layout *layout, const struct gdb_values *values,
		    const struct gdb_values *before, struct gdb_state *state)
{
	const struct gdb_machine *machine = layout->machine;
	uint64_t mode;

	*state = (struct gdb_state){ .word = machine->word, .level = WIRE_LEVEL_USER };
	if (!special(values, GDB_PC, &state->pc) || !values->has[machine->sp])
		return;
	state->nr = machine->nr;
	memcpy(state->dwarf, values->at, machine->nr * sizeof(state->dwarf[0]));
	state->sp = state->dwarf[machine->sp];
	state->fp = state->dwarf[machine->fp];
	if (layout->user_mode)
		return;
	state->level = level_of(machine->family, values);
	state->has_space =
		special(values, GDB_SPACE, &state->space) || machine->family == M_PROFILE;
	state->space &= machine->space;
	if (machine->family == X86)
		read_x86(values, state);
	else if (machine->family == M_PROFILE && special(values, GDB_LEVEL, &mode) &&
		 mode & M_EXCEPTION)
		special(values, GDB_PSP, &state->outer);
	if (layout->interrupts_first)
		before_interrupt(machine, values, before, state);
}
