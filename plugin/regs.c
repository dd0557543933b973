// SPDX-License-Identifier: GPL-2.0-or-later
#include "regs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "regs_parts.h"
#include "stream.h"
#include "wire/wire.h"

#define X86_VM (1u << 17) /* in eflags */

_Static_assert(REGS_MAX <= WIRE_REGISTERS_MAX, "readers ignore the rest");

const struct machine *regs_machine;
static _Atomic(struct regs_cpu *) cpus[WIRE_CPUS_MAX];
static __thread GByteArray *scratch;

void regs_open(void)
{
	regs_machine = machine_of(api.arch);
}

struct regs_cpu *regs_cpu(unsigned index)
{
	struct regs_cpu *cpu, *none = NULL;

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

static GByteArray *byte_array(void)
{
	if (!scratch)
		scratch = api.byte_array_new();
	return scratch;
}

static GByteArray *buffer(void)
{
	api.byte_array_set_size(byte_array(), 0);
	return scratch;
}

bool regs_in_callback(void)
{
	return api.get_registers != NULL;
}

bool regs_in_work(void)
{
	return regs_machine && api.gdb_read && api.memory_rw_debug;
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
static bool is_m_profile(GArray *list, const struct regs_cpu *cpu)
{
	if (strcmp(api.arch, "arm") || api.user_mode)
		return false;
	if (list)
		return find_handle(list, "xpsr").known;
	return cpu->state && api.find_property && api.find_property(cpu->state, "init-nsvtor");
}

void regs_cpu_init(unsigned index)
{
	struct regs_cpu *cpu = regs_cpu(index);
	GArray *list;

	if (!cpu)
		return;
	atomic_store(&cpu->has_noted, 0);
	cpu->state = api.get_cpu ? api.get_cpu((int)index) : NULL;
	list = api.get_registers ? api.get_registers() : NULL;
	if (is_m_profile(list, cpu))
		regs_machine = &machine_m_profile;
	if (!list)
		return;
	for (unsigned i = 0; regs_machine && i < regs_machine->n; i++)
		cpu->dwarf[i] = find_handle(list, regs_machine->dwarf[i].names);
	for (unsigned i = 0; regs_machine && i < REG_KINDS; i++)
		cpu->reg[i] = find_handle(list, regs_machine->reg[i].names);
	if (!regs_machine)
		cpu->reg[REG_PC] = find_handle(list, machine_any_pc.names);
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
static struct CPUState *state_of(const struct regs_view *view, struct regs_cpu *cpu)
{
	if (view->state)
		return view->state;
	if (!cpu->state && api.get_cpu)
		cpu->state = api.get_cpu((int)view->cpu);
	return cpu->state;
}

static bool read_one(const struct regs_view *view, struct regs_cpu *cpu, struct handle handle,
		     const struct reg_name *name, uint64_t *value)
{
	bool public = !view->state || (api_reads_in_work() && api_is_current(view->state));
	struct CPUState *state;
	GByteArray *bytes;

	*value = 0;
	if (handle.known && public && api_read_register(handle.value, byte_array()))
		return number(scratch, value);
	state = name->names && name->gdb >= 0 && api.gdb_read ? state_of(view, cpu) : NULL;
	if (!state)
		return false;
	bytes = buffer();
	return api.gdb_read(state, bytes, name->gdb) && number(bytes, value);
}

bool regs_dwarf(const struct regs_view *view, struct regs_cpu *cpu, unsigned n, uint64_t *value)
{
	return read_one(view, cpu, cpu->dwarf[n], &regs_machine->dwarf[n], value);
}

bool regs_extra(const struct regs_view *view, struct regs_cpu *cpu, enum reg which, uint64_t *value)
{
	const struct reg_name *name = regs_machine ? &regs_machine->reg[which] : &machine_any_pc;

	if (read_one(view, cpu, cpu->reg[which], name, value))
		return true;
	if (!(atomic_load(&cpu->has_noted) & 1u << which))
		return false;
	*value = atomic_load(&cpu->noted[which]);
	return true;
}

bool regs_number(unsigned index, unsigned n, uint64_t *value)
{
	struct regs_view view = { .cpu = index };
	struct regs_cpu *cpu = regs_cpu(index);

	return cpu && regs_machine && regs_dwarf(&view, cpu, n, value);
}

bool regs_sp(unsigned index, uint64_t *sp)
{
	return regs_machine && regs_number(index, regs_machine->sp, sp);
}

bool regs_special(unsigned index, enum reg which, uint64_t *value)
{
	struct regs_view view = { .cpu = index };
	struct regs_cpu *cpu = regs_cpu(index);

	return cpu && regs_machine &&
	       read_one(&view, cpu, cpu->reg[which], &regs_machine->reg[which], value);
}

bool regs_written(unsigned index, enum reg which, uint64_t *value)
{
	struct regs_cpu *cpu = regs_cpu(index);

	if (!cpu || !(atomic_load(&cpu->has_noted) & 1u << which))
		return false;
	*value = atomic_load(&cpu->noted[which]);
	return true;
}

bool regs_lists(unsigned index, enum reg which)
{
	const struct regs_cpu *cpu = regs_cpu(index);

	return cpu && cpu->reg[which].known;
}

bool regs_mode(unsigned index, uint64_t *mode)
{
	return regs_machine && regs_special(index, regs_machine->level, mode);
}

/*
 * For a RISC-V whose mode QEMU does not expose: only user mode runs code in user pages, and only machine
 * mode runs code that is not mapped.
 */
static unsigned riscv_level_by_table(const struct regs *regs)
{
	bool wide = regs_machine->word == 8;
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
static unsigned m_level(const struct regs_view *view, struct regs_cpu *cpu, uint64_t xpsr)
{
	uint64_t control;

	if (xpsr & REGS_EXCEPTION || !regs_extra(view, cpu, REG_CONTROL, &control) ||
	    !(control & 1))
		return WIRE_LEVEL_KERNEL;
	return WIRE_LEVEL_USER;
}

static unsigned level_by_mode(const struct regs_view *view, struct regs_cpu *cpu, uint64_t mode)
{
	return regs_is_m_profile() ? m_level(view, cpu, mode) : machine_level(regs_machine, mode);
}

unsigned regs_level(unsigned index, uint64_t mode)
{
	struct regs_view view = { .cpu = index };
	struct regs_cpu *cpu = regs_cpu(index);

	return cpu && regs_machine ? level_by_mode(&view, cpu, mode) : WIRE_LEVEL_KERNEL;
}

static unsigned read_level(const struct regs_view *view, struct regs_cpu *cpu,
			   const struct regs *regs)
{
	bool x86 = regs_machine->family == MACHINE_X86;
	uint64_t mode, flags;

	if (api.user_mode)
		return WIRE_LEVEL_USER;
	if (!regs_extra(view, cpu, regs_machine->level, &mode))
		return regs_machine->family == MACHINE_RISCV ? riscv_level_by_table(regs)
							     : WIRE_LEVEL_KERNEL;
	if (x86 && regs_extra(view, cpu, REG_FLAGS, &flags) && flags & X86_VM)
		return WIRE_LEVEL_USER;
	return level_by_mode(view, cpu, mode);
}

/* A RISC-V interrupt starts at its level's vector. Firmware does not take the kernel's interrupts. */
static void read_riscv_trap(const struct regs_view *view, struct regs_cpu *cpu, struct regs *regs)
{
	bool firmware = regs->level == WIRE_LEVEL_FIRMWARE;
	uint64_t status, vector, cause, entry;

	if (regs->level == WIRE_LEVEL_USER || !regs_extra(view, cpu, REG_STATUS, &status) ||
	    !regs_extra(view, cpu, firmware ? REG_VECTOR_3 : REG_VECTOR, &vector) ||
	    !regs_extra(view, cpu, firmware ? REG_CAUSE_3 : REG_CAUSE, &cause))
		return;
	regs->masked = firmware || !(status & 2);
	entry = (vector & ~3ull) + (vector & 1 ? (cause & 63) * 4 : 0);
	regs->at_trap = regs->pc == entry && cause >> (8 * regs_machine->word - 1) & 1;
}

/*
 * Interrupts of Arm start at known offsets in the vector table, in a known state: on AArch64 in the
 * second and third of every four entries of 128 bytes, with all interrupts masked; on Arm at offset
 * 0x18, in IRQ mode.
 */
static void read_trap(const struct regs_view *view, struct regs_cpu *cpu, struct regs *regs)
{
	uint64_t flags;

	if (api.user_mode || regs_machine->family == MACHINE_X86)
		return;
	if (regs_machine->family == MACHINE_RISCV) {
		read_riscv_trap(view, cpu, regs);
		return;
	}
	if (!regs_extra(view, cpu, REG_FLAGS, &flags))
		return;
	if (!(flags & 0x10) && regs_machine->word == 8) {
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
	return regs_machine == &machine_m_profile;
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

static void read_m_trap(const struct regs_view *view, struct regs_cpu *cpu, uint64_t xpsr,
			struct regs *regs)
{
	if (!(xpsr & REGS_EXCEPTION))
		return;
	regs_extra(view, cpu, REG_SP_0, &regs->outer);
	regs->at_trap = regs_is_exception_return(regs->dwarf[14]) && is_m_entry(view, regs);
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

static void read_x86_mode(const struct regs_view *view, struct regs_cpu *cpu, struct regs *regs)
{
	uint64_t value, cs;

	if (regs_machine->family != MACHINE_X86 || api.user_mode)
		return;
	if (regs_extra(view, cpu, REG_EFER, &value) && !(value & 1u << 10))
		make_narrow(regs);
	/* In real mode, where firmware starts, addresses are relative to the segment. */
	if (regs_extra(view, cpu, REG_CR0, &value) && !(value & 1) &&
	    regs_extra(view, cpu, REG_CS, &cs))
		regs->pc += cs << 4;
}

void regs_read(const struct regs_view *view, uint64_t pc, struct regs *regs)
{
	struct regs_cpu *cpu = regs_cpu(view->cpu);
	/*
	 * At the start of a block QEMU may not have stored the pc, so the caller passes it. In system
	 * emulation of the targets here it is always stored, and better: a block may run at several
	 * addresses.
	 */
	bool stored = view->state || (regs_in_callback() && regs_machine && !api.user_mode);
	uint64_t mode;

	memset(regs, 0, offsetof(struct regs, dwarf));
	regs->pc = pc;
	regs->word = regs_machine ? regs_machine->word : 8;
	if (!cpu)
		return;
	if (stored || !pc) {
		uint64_t value;

		if (regs_extra(view, cpu, REG_PC, &value))
			regs->pc = value;
	}
	if (!regs_machine) {
		regs->level = api.user_mode ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
		return;
	}
	while (regs->n < regs_machine->n && regs_dwarf(view, cpu, regs->n, &regs->dwarf[regs->n]))
		regs->n++;
	if (regs->n < regs_machine->n) {
		regs->n = 0;
		return;
	}
	regs->sp = regs->dwarf[regs_machine->sp];
	regs->fp = regs->dwarf[regs_machine->fp];
	read_x86_mode(view, cpu, regs);
	regs_find_guest(cpu, regs->pc);
	regs_extra(view, cpu, regs_machine->level, &mode);
	regs->has_space = regs_read_space(view, cpu, mode, regs->word, &regs->space);
	regs->level = read_level(view, cpu, regs);
	if (regs_machine->family == MACHINE_M_PROFILE)
		read_m_trap(view, cpu, mode, regs);
	else
		read_trap(view, cpu, regs);
}

/* Functions and their arguments */

static bool is_i386(const struct regs *regs)
{
	return regs_machine->family == MACHINE_X86 && regs->word == 4;
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
	const int8_t *registers = regs->n && is_i386(regs) ? machine_no_arguments
				  : regs_machine	   ? regs_machine->arguments
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
	if (regs_machine->link < 0)
		n++; /* the return address comes first */
	return regs_pointer(view, regs, regs->sp + (uint64_t)n * regs->word, value);
}

bool regs_return_address(const struct regs_view *view, const struct regs *regs, uint64_t *address)
{
	if (!regs->n)
		return false;
	if (regs_machine->link < 0)
		return regs_pointer(view, regs, regs->sp, address);
	*address = regs->dwarf[regs_machine->link];
	return true;
}

uint64_t regs_result(const struct regs *regs)
{
	return regs->n ? regs->dwarf[regs_machine->result] : 0;
}

/* Memory */

static bool read_part(const struct regs_view *view, uint64_t address, void *bytes, size_t size)
{
	struct regs_cpu *cpu = regs_cpu(view->cpu);
	struct CPUState *state = cpu && api.memory_rw_debug ? state_of(view, cpu) : NULL;

	if (regs_is_nested(cpu) || (cpu && view->left_guest))
		return regs_read_guest(view, cpu, address, bytes, size);
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
