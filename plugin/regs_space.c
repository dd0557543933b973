// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The address space of a vCPU: which register has it depends on the machine and on its hypervisor. Also
 * notes what code writes to these registers, and to those of exception vectors.
 */
#include "api.h"
#include "regs_parts.h"
#include "wire/wire.h"

/* The bits of the register with the address of the page table, without the address space identifier. */
static uint64_t space_mask(unsigned word)
{
	if (regs_machine->family == MACHINE_RISCV)
		return regs_machine->word == 8 ? ~(0xffffull << 44) : ~(0x1ffull << 22);
	if (regs_machine->family == MACHINE_X86)
		return word == 8 ? REGS_X86_TABLE : 0xffffffe0;
	return regs_machine->word == 8 ? 0x0000fffffffff000 : 0xffffffffff80;
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
static uint64_t aarch64_space(const struct regs_view *view, struct regs_cpu *cpu, uint64_t mode,
			      uint64_t space)
{
	uint64_t config, stage1, stage2, host, table = space_mask(8);

	if (!regs_extra(view, cpu, REG_HYP_CONFIG, &config) || !config)
		return space & table;
	if (config & HCR_E2H && (config & HCR_TGE || is_el2(mode)) &&
	    regs_extra(view, cpu, REG_HYP_SPACE, &host))
		return host & table;
	if (!(config & HCR_VM) || !regs_extra(view, cpu, REG_STAGE2, &stage2))
		return space & table;
	/* A register that QEMU does not list is unknown until code writes it: stage 1 is off at first. */
	if (!regs_extra(view, cpu, REG_STAGE1, &stage1) || !(stage1 & 1))
		space = stage2;
	return (space & table) | (stage2 & VMID_MASK);
}

static uint64_t riscv_space(const struct regs_view *view, struct regs_cpu *cpu, uint64_t mode,
			    uint64_t space)
{
	uint64_t stage2, mask = space_mask(regs_machine->word);
	uint64_t on = regs_machine->word == 8 ? 15ull << 60 : 1u << 31;

	if (!(mode & RISCV_GUEST) || !regs_extra(view, cpu, REG_STAGE2, &stage2) || !stage2)
		return space & mask;
	if (!(space & on))
		space = stage2;
	return (space & mask) | (stage2 & ~mask);
}

bool regs_read_space(const struct regs_view *view, struct regs_cpu *cpu, uint64_t mode,
		     unsigned word, uint64_t *space)
{
	*space = 0;
	if (!regs_machine || api.user_mode)
		return false;
	if (regs_machine->family == MACHINE_M_PROFILE) /* one space for all */
		return true;
	if (!regs_extra(view, cpu, REG_SPACE, space))
		return false;
	if (regs_machine->family == MACHINE_AARCH64)
		*space = aarch64_space(view, cpu, mode, *space);
	else if (regs_machine->family == MACHINE_RISCV)
		*space = riscv_space(view, cpu, mode, *space);
	else
		*space = (*space & space_mask(word)) | (uint64_t)cpu->guest << WIRE_X86_GUEST_SHIFT;
	return true;
}

bool regs_space(unsigned index, uint64_t mode, uint64_t *space)
{
	struct regs_view view = { .cpu = index };
	struct regs_cpu *cpu = regs_cpu(index);

	return cpu && regs_machine && regs_read_space(&view, cpu, mode, regs_machine->word, space);
}

/*
 * Writes to the registers of the address space and of exception vectors. Such an instruction ends its
 * block, and a work item runs before the next block: there, the source register still has the value. Data
 * of the callback: bits 0-7 the source's DWARF number, or NO_REG; 8-15 that of the upper half, NO_REG, or
 * SECOND_NAME if a VHE host does not redirect the name; 16-23 the written register, plus 1.
 */
#define NO_REG 0xff
#define SECOND_NAME 0xfe

/* A VHE host writes EL2's registers by the names of EL1, and EL1's by their second names. */
static bool is_vhe_host(const struct regs_view *view, struct regs_cpu *cpu)
{
	uint64_t mode, config;

	return regs_machine->family == MACHINE_AARCH64 &&
	       regs_extra(view, cpu, regs_machine->level, &mode) && is_el2(mode) &&
	       regs_extra(view, cpu, REG_HYP_CONFIG, &config) && config & HCR_E2H;
}

static void note_write(struct CPUState *state, void *data)
{
	uintptr_t packed = (uintptr_t)data;
	unsigned index = (unsigned)(packed >> 24), which = (packed >> 16 & 0xff) - 1;
	unsigned low = packed & 0xff, high = packed >> 8 & 0xff;
	struct regs_view view = { .cpu = index, .state = state };
	struct regs_cpu *cpu = regs_cpu(index);
	uint64_t value = 0, upper = 0;

	if (!cpu || (low != NO_REG && !regs_dwarf(&view, cpu, low, &value)))
		return;
	if (high < REGS_MAX && regs_dwarf(&view, cpu, high, &upper))
		value |= upper << 32;
	if (high == NO_REG && is_vhe_host(&view, cpu)) {
		if (which != REG_SPACE && which != REG_VECTOR)
			return;
		which = which == REG_SPACE ? REG_HYP_SPACE : REG_VECTOR_2;
	}
	atomic_store(&cpu->noted[which], value);
	atomic_fetch_or(&cpu->has_noted, 1u << which);
}

static void on_write(unsigned given, void *registers)
{
	unsigned cpu = api_running_cpu(given);
	struct CPUState *state = api.get_cpu((int)cpu);

	if (state)
		api.async_run_on_cpu(state, note_write,
				     (void *)((uintptr_t)registers | (uintptr_t)cpu << 24));
}

static unsigned pack(enum reg which, unsigned low, unsigned high)
{
	return (which + 1u) << 16 | high << 8 | low;
}

/* msr */
static unsigned aarch64_written(uint32_t code)
{
	static const struct {
		uint32_t code;
		enum reg which;
		unsigned name;
	} writes[] = {
		{ 0xd5182000, REG_SPACE, NO_REG },	/* ttbr0_el1 */
		{ 0xd51d2000, REG_SPACE, SECOND_NAME }, /* ttbr0_el12 */
		{ 0xd51c2000, REG_HYP_SPACE, SECOND_NAME },
		{ 0xd51c2100, REG_STAGE2, SECOND_NAME },
		{ 0xd51c1100, REG_HYP_CONFIG, SECOND_NAME },
		{ 0xd5181000, REG_STAGE1, NO_REG },	 /* sctlr_el1 */
		{ 0xd51d1000, REG_STAGE1, SECOND_NAME }, /* sctlr_el12 */
		{ 0xd518c000, REG_VECTOR, NO_REG },	 /* vbar_el1 */
		{ 0xd51dc000, REG_VECTOR, SECOND_NAME }, /* vbar_el12 */
		{ 0xd51cc000, REG_VECTOR_2, SECOND_NAME },
		{ 0xd51ec000, REG_VECTOR_3, SECOND_NAME },
	};
	unsigned from = (code & 31) == 31 ? NO_REG : code & 31;

	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		if ((code & 0xffffffe0) == writes[i].code)
			return pack(writes[i].which, from, writes[i].name);
	}
	return 0;
}

/* csrrw TO, CSR, FROM */
static unsigned riscv_written(uint32_t code)
{
	unsigned from = code >> 15 & 31, to = code >> 7 & 31;

	if ((code & 0x707f) != 0x1073 || (from == to && from))
		return 0;
	switch (code >> 20) {
	case 0x180: return pack(REG_SPACE, from, NO_REG); /* satp */
	case 0x105: return pack(REG_VECTOR, from, NO_REG);
	case 0x305: return pack(REG_VECTOR_3, from, NO_REG);
	default: return 0;
	}
}

/* The packed registers of such a write; 0: any other instruction. */
static unsigned written_by(uint32_t code)
{
	if (regs_machine->family == MACHINE_RISCV)
		return riscv_written(code);
	if (regs_machine->word == 8)
		return aarch64_written(code);
	if ((code & 0x0fff0fff) == 0x0e020f10) /* mcr p15, 0, RT, c2, c0, 0 */
		return pack(REG_SPACE, code >> 12 & 15, NO_REG);
	if ((code & 0x0ff00fff) == 0x0c400f02) /* mcrr p15, 0, RT, RT2, c2 */
		return pack(REG_SPACE, code >> 12 & 15, code >> 16 & 15);
	return 0;
}

bool regs_wants_blocks(void)
{
	if (!regs_machine || api.user_mode || !regs_machine->reg[REG_SPACE].names ||
	    regs_machine->family == MACHINE_X86 || !regs_in_work() || !api.async_run_on_cpu ||
	    !api.get_cpu)
		return false;
	return !api_reads_in_work() || api_mixes_cpus();
}

void regs_translate(struct qemu_plugin_tb *tb)
{
	size_t n;

	if (regs_machine && regs_machine->family == MACHINE_X86 && !api.user_mode)
		regs_translate_return(tb);
	if (!regs_wants_blocks())
		return;
	/* Only the last instruction of a block can set such a register. */
	n = api.tb_n_insns(tb);
	if (n) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, n - 1);
		uint32_t code = 0;
		size_t size = api_insn_data(insn, &code, sizeof(code));
		unsigned registers;

		if (size != 4)
			return;
		registers = written_by(code);
		if (!registers && regs_machine->family ==
					  MACHINE_ARM) /* Thumb's halves are the other way round */
			registers = written_by(code << 16 | code >> 16);
		if (registers)
			api.insn_exec_cb(insn, on_write, API_NO_REGS, (void *)(uintptr_t)registers);
	}
}
