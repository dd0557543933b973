// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A signal leads from any place to its handler, without a jump. Its frame on the stack says where from: the
 * return address, which is the program's code for sigreturn(), and the registers of what was interrupted.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pt_parts.h"
#include "regs.h"

#define SYS_RT_SIGACTION 13
#define SIGNALS 65
#define FRAMES_MAX 64 /* signals that come at once */

enum { DWARF_RDI = 5, DWARF_RSP = 7 };
/* From the stack pointer to the registers of what was interrupted: rt_sigframe of x86-64. */
enum { FRAME_RDI = 112, FRAME_RSP = 168, FRAME_RIP = 176 };

/* By signal. A program has few. */
static struct {
	_Atomic uint64_t handler, restorer;
} actions[SIGNALS];
static _Atomic uint64_t filter; /* a bit for each handler, so that most blocks need no search */

static uint64_t filter_bit(uint64_t address)
{
	return (uint64_t)1 << (address >> 2 & 63);
}

/* Memory may be gone, or never have been there. */
bool pt_guest_read(uint64_t address, void *bytes, size_t size)
{
	struct iovec to = { bytes, size }, from = { (void *)pt_guest(address), size };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

bool pt_guest_text(uint64_t address, char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!pt_guest_read(address + i, text + i, 1))
			break;
		if (!text[i])
			return true;
	}
	text[size - 1] = 0;
	return false;
}

void pt_signal_syscall(const struct api_syscall *call)
{
	uint64_t action[3]; /* handler, flags, restorer */

	if (call->returns || call->number != SYS_RT_SIGACTION || call->args[0] >= SIGNALS ||
	    !call->args[1] || !pt_guest_read(call->args[1], action, sizeof(action)))
		return;
	if (action[0] > 1) { /* not SIG_DFL or SIG_IGN */
		atomic_store(&actions[call->args[0]].restorer, action[2]);
		atomic_store(&actions[call->args[0]].handler, action[0]);
		atomic_fetch_or(&filter, filter_bit(action[0]));
	}
}

bool pt_signal_reads(void)
{
	return regs_in_callback();
}

static bool read_register(unsigned cpu, unsigned dwarf, uint64_t *value)
{
	GByteArray *bytes;
	bool good;

	if (regs_in_callback())
		return regs_number(cpu, dwarf, value);
	if (!api.gdb_read || !api_current_cpu())
		return false;
	bytes = api.byte_array_new();
	good = api.gdb_read(api_current_cpu(), bytes, (int)dwarf) == sizeof(*value);
	if (good)
		memcpy(value, bytes->data, sizeof(*value));
	api.byte_array_free(bytes, true);
	return good;
}

static bool is_fault(uint64_t signal)
{
	return signal == 4 || signal == 5 || signal == 7 || signal == 8 || signal == 11;
}

/* Registers when a handler begins. */
struct entry {
	uint64_t address, signal, sp;
};

static bool is_entry(const struct entry *entry)
{
	uint64_t back;

	return entry->signal < SIGNALS &&
	       atomic_load(&actions[entry->signal].handler) == entry->address &&
	       pt_guest_read(entry->sp, &back, sizeof(back)) &&
	       back == atomic_load(&actions[entry->signal].restorer);
}

static bool read_interrupted(const struct entry *entry, struct entry *interrupted)
{
	return pt_guest_read(entry->sp + FRAME_RIP, &interrupted->address,
			     sizeof(interrupted->address)) &&
	       pt_guest_read(entry->sp + FRAME_RDI, &interrupted->signal,
			     sizeof(interrupted->signal)) &&
	       pt_guest_read(entry->sp + FRAME_RSP, &interrupted->sp, sizeof(interrupted->sp));
}

/* If several signals come at once, each interrupts the next one's handler before its first instruction. */
bool pt_signal_at(unsigned cpu, uint64_t address, uint64_t last, struct pt_signal *signal)
{
	struct entry entry = { .address = address }, interrupted;

	if (!(atomic_load_explicit(&filter, memory_order_relaxed) & filter_bit(address)))
		return false;
	if (!read_register(cpu, DWARF_RDI, &entry.signal) ||
	    !read_register(cpu, DWARF_RSP, &entry.sp) || !is_entry(&entry))
		return false;
	for (int i = 0; i < FRAMES_MAX && read_interrupted(&entry, &interrupted); i++) {
		signal->interrupted = interrupted.address;
		signal->fault = is_fault(entry.signal);
		if (interrupted.address == last || !is_entry(&interrupted))
			return true;
		entry = interrupted;
	}
	return false;
}
