// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guests of a hypervisor that uses AMD SVM. No register says whether a guest runs: vmrun starts
 * one, and when the guest leaves, the hypervisor goes on after its vmrun. The cpu keeps a guest's
 * state in a page, the VMCB, whose address is in rax.
 */
#include <pthread.h>

#include "api.h"
#include "regs_parts.h"
#include "wire/wire.h"

#define EFER_LONG (1u << 10)
#define EFER_SVM (1u << 12)
#define CR0_PAGING (1u << 31)
#define RUNS_MAX 16 /* vmrun instructions; a hypervisor has one or two */

/* Offsets in the VMCB. */
enum vmcb {
	VMCB_EXIT = 0x70,
	VMCB_NESTED = 0x90,
	VMCB_NESTED_TABLE = 0xb0,
	VMCB_CODE_BASE = 0x418,
	VMCB_LEVEL = 0x4cb,
	VMCB_EFER = 0x4d0,
	VMCB_CR3 = 0x550,
	VMCB_CR0 = 0x558,
	VMCB_PC = 0x578,
	VMCB_SP = 0x5d8,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct guest {
	uint64_t vmcb;
	/* An interrupt came, and then the guest left before its handler ran. */
	bool interrupted;
	struct regs_saved at; /* what the interrupt interrupted */
	uint64_t handler;
} guests[WIRE_X86_GUESTS]; /* by number */
static unsigned nr_guests = 1;
static _Atomic uint64_t after[RUNS_MAX]; /* where hypervisors go on after a vmrun */
static _Atomic unsigned nr_after;

static uint64_t read_physical(uint64_t address, size_t size)
{
	uint64_t value = 0;

	api.physical_rw(address, &value, size, false);
	return value;
}

/* Numbers guests in the order in which they first run. 0: there are too many. */
static unsigned number_of(uint64_t vmcb)
{
	unsigned number = 1;

	pthread_mutex_lock(&lock);
	while (number < nr_guests && guests[number].vmcb != vmcb)
		number++;
	if (number == WIRE_X86_GUESTS)
		number = 0;
	else if (number == nr_guests)
		guests[nr_guests++].vmcb = vmcb;
	pthread_mutex_unlock(&lock);
	return number;
}

static bool read_saved(unsigned index, uint64_t vmcb, struct regs_saved *saved)
{
	if (!vmcb || !api.physical_rw)
		return false;
	saved->exit = read_physical(vmcb + VMCB_EXIT, 8);
	saved->pc = read_physical(vmcb + VMCB_PC, 8);
	saved->sp = read_physical(vmcb + VMCB_SP, 8);
	saved->level = regs_level(index, read_physical(vmcb + VMCB_LEVEL, 1));
	if (!(read_physical(vmcb + VMCB_EFER, 8) & EFER_LONG))
		saved->pc += read_physical(vmcb + VMCB_CODE_BASE, 8);
	return true;
}

/* Before a vmrun, which fails under these conditions. */
static void on_run(unsigned given, void *next)
{
	unsigned index = api_running_cpu(given);
	struct regs_cpu *cpu = regs_cpu(index);
	uint64_t efer, cs, vmcb;

	if (!cpu || !regs_special(index, REG_EFER, &efer) || !(efer & EFER_SVM) ||
	    !regs_mode(index, &cs) || cs & 3 || !regs_number(index, regs_machine->result, &vmcb) ||
	    vmcb & (REGS_PAGE - 1))
		return;
	if (cpu->vmcb != vmcb)
		cpu->last_guest = number_of(vmcb);
	cpu->guest = cpu->last_guest;
	cpu->after_guest = (uintptr_t)next;
	cpu->vmcb = vmcb;
	cpu->nested = 0;
	if (!read_saved(index, vmcb, &cpu->start))
		return;
	if (read_physical(vmcb + VMCB_NESTED, 8) & 1)
		cpu->nested = read_physical(vmcb + VMCB_NESTED_TABLE, 8);
}

/* Before the block after a vmrun. */
static void on_return(unsigned given, void *unused)
{
	struct regs_cpu *cpu = regs_cpu(api_running_cpu(given));

	(void)unused;
	if (cpu)
		cpu->guest = 0;
}

static bool is_after(uint64_t address)
{
	unsigned nr = atomic_load(&nr_after);

	for (unsigned i = 0; i < nr; i++) {
		if (atomic_load(&after[i]) == address)
			return true;
	}
	return false;
}

/* False: there are too many. */
static bool note_after(uint64_t address)
{
	bool noted;

	pthread_mutex_lock(&lock);
	noted = is_after(address);
	if (!noted && nr_after < RUNS_MAX) {
		atomic_store(&after[nr_after], address);
		atomic_fetch_add(&nr_after, 1);
		noted = true;
	}
	pthread_mutex_unlock(&lock);
	return noted;
}

/* vmrun ends its block, and has at most a prefix for its only operand. */
static bool is_run(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[4] = { 0 };
	size_t size = api_insn_data(insn, bytes, sizeof(bytes));

	return size >= 3 && size == api.insn_size(insn) && bytes[size - 3] == 0x0f &&
	       bytes[size - 2] == 0x01 && bytes[size - 1] == 0xd8;
}

void regs_translate_return(struct qemu_plugin_tb *tb)
{
	if (is_after(api.tb_vaddr(tb)))
		api.tb_exec_cb(tb, on_return, API_NO_REGS, NULL);
}

void regs_translate_run(struct qemu_plugin_tb *tb)
{
	size_t n = api.tb_n_insns(tb);
	struct qemu_plugin_insn *last = n ? api.tb_get_insn(tb, n - 1) : NULL;
	uint64_t next;

	if (!regs_machine || regs_machine->family != MACHINE_X86 || api.user_mode || !last ||
	    !is_run(last))
		return;
	next = api.insn_vaddr(last) + api.insn_size(last);
	if (note_after(next))
		api.insn_exec_cb(last, on_run, API_R_REGS, (void *)(uintptr_t)next);
}

void regs_find_guest(struct regs_cpu *cpu, uint64_t pc)
{
	if (cpu->guest && pc == cpu->after_guest)
		cpu->guest = 0;
}

unsigned regs_guest(unsigned index)
{
	const struct regs_cpu *cpu = regs_cpu(index);

	return cpu ? cpu->guest : 0;
}

bool regs_guest_left(unsigned index, struct regs_saved *saved)
{
	const struct regs_cpu *cpu = regs_cpu(index);

	return cpu && read_saved(index, cpu->vmcb, saved);
}

void regs_guest_in_trap(unsigned index, uint64_t handler, const struct regs_saved *at)
{
	const struct regs_cpu *cpu = regs_cpu(index);
	struct guest *guest = cpu ? &guests[cpu->last_guest] : NULL;

	if (!guest)
		return;
	guest->interrupted = true;
	guest->at = *at;
	guest->handler = handler;
}

void regs_guest_bounced(unsigned index)
{
	const struct regs_cpu *cpu = regs_cpu(index);
	struct regs_saved saved;

	if (regs_guest_left(index, &saved) && saved.pc != cpu->start.pc)
		regs_guest_in_trap(index, saved.pc, &cpu->start);
}

bool regs_guest_interrupted(unsigned index, uint64_t pc, struct regs_saved *at)
{
	const struct regs_cpu *cpu = regs_cpu(index);
	struct guest *guest = cpu ? &guests[cpu->guest] : NULL;
	bool before;

	if (!guest || !read_saved(index, cpu->vmcb, at))
		return false;
	before = guest->interrupted && guest->handler == pc;
	guest->interrupted = false;
	if (before)
		*at = guest->at;
	return at->pc != pc;
}

/*
 * Nested page tables: the addresses in a guest's page tables, and those to which they lead, are in
 * turn translated by a table of the hypervisor. QEMU's functions that read virtual memory ignore
 * it.
 */

/*
 * Translates an address by a page table in long mode, whose own addresses `nested` translates,
 * unless it is 0.
 */
static bool translate(uint64_t table, uint64_t nested, uint64_t *address)
{
	for (unsigned level = 4; level-- > 0;) {
		unsigned shift = 12 + 9 * level;
		uint64_t inside = (1ull << shift) - 1;
		uint64_t at = (table & REGS_X86_TABLE) + (*address >> shift & 511) * 8;

		if (nested && !translate(nested, 0, &at))
			return false;
		table = read_physical(at, 8);
		if (!(table & 1))
			return false;
		if (!level || (level < 3 && table & 0x80)) {
			*address = (table & REGS_X86_TABLE & ~inside) | (*address & inside);
			return !nested || translate(nested, 0, address);
		}
	}
	return false;
}

bool regs_is_nested(const struct regs_cpu *cpu)
{
	return cpu && cpu->guest && cpu->nested;
}

/* The registers of the guest that runs, or of the one that left. */
static bool read_paging(const struct regs_view *view, struct regs_cpu *cpu, uint64_t *cr0,
			uint64_t *efer, uint64_t *table)
{
	if (!view->left_guest)
		return regs_extra(view, cpu, REG_CR0, cr0) &&
		       regs_extra(view, cpu, REG_EFER, efer) &&
		       regs_extra(view, cpu, REG_SPACE, table);
	if (!cpu->vmcb || !api.physical_rw)
		return false;
	*cr0 = read_physical(cpu->vmcb + VMCB_CR0, 8);
	*efer = read_physical(cpu->vmcb + VMCB_EFER, 8);
	*table = read_physical(cpu->vmcb + VMCB_CR3, 8);
	return true;
}

bool regs_read_guest(const struct regs_view *view, struct regs_cpu *cpu, uint64_t address,
		     void *bytes, size_t size)
{
	uint64_t efer, cr0, table;

	if (!read_paging(view, cpu, &cr0, &efer, &table))
		return false;
	if (!(cr0 & CR0_PAGING)) {
		if (cpu->nested && !translate(cpu->nested, 0, &address))
			return false;
	} else if (!(efer & EFER_LONG) || !translate(table, cpu->nested, &address)) {
		return false;
	}
	api.physical_rw(address, bytes, size, false);
	return true;
}
