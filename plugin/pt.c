// SPDX-License-Identifier: GPL-2.0-or-later
/* See pt.h. A thread is one of QEMU's own: numbers of vCPUs come again when threads have ended. */
#include "pt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "block.h"
#include "pt_parts.h"
#include "regs.h"

#define BLOCKS_PER_TIME 32 /* how often the clock is read */
#define NAME_SIZE 16	   /* of a thread, in Linux */
#define PAGE 4096

enum { /* system calls of x86-64 */
       SYS_MMAP = 9,
       SYS_MPROTECT = 10,
       SYS_MUNMAP = 11,
       SYS_MREMAP = 25,
       SYS_SHMAT = 30,
       SYS_EXECVE = 59,
       SYS_EXIT = 60,
       SYS_PRCTL = 157,
       SYS_EXIT_GROUP = 231,
       SYS_EXECVEAT = 322,
       PRCTL_SET_NAME = 15,
};

struct thread {
	struct pt_packets packets;
	struct pt_file file;
	const struct block *last;
	bool ended;	 /* the last block came to its last instruction; only of a watched one */
	unsigned blocks; /* until the clock is read */
	uint64_t psb_at; /* where the last PSB is in the trace */
	unsigned maps;	 /* the version of the maps when it noted the time */
};

static __thread struct thread *self;
static struct pt_id parent; /* the thread that called fork() */
static uint32_t process;    /* the pid whose records exist */

uint64_t pt_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads */

static uint64_t used(const struct thread *t)
{
	return (uint64_t)(t->packets.at - t->file.part->bytes);
}

static uint64_t where(const struct thread *t)
{
	return t->file.written + used(t);
}

static uint64_t ip_of(const struct thread *t)
{
	return t->last ? t->last->start : 0;
}

static void keep(struct thread *t)
{
	pt_file_keep(&t->file, &t->packets, ip_of(t));
}

static void put_psb(struct thread *t, uint64_t ip)
{
	t->psb_at = where(t);
	pt_psb(&t->packets, ip, pt_tsc(pt_now()));
}

static void announce(struct pt_file *file)
{
	uint32_t pid = file->id.pid;

	if (process == pid)
		pt_file_fork(file, (struct pt_id){ pid, pid });
	else if (process)
		pt_file_fork(file, parent);
	else
		pt_file_comm(file, pt_comm, true);
	process = pid;
}

/* Also of a process that fork() made, whose maps of files are those of its parent. */
static struct thread *thread_begin(void)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	if (pt_file_open(&t->file)) {
		announce(&t->file);
		t->packets.at = t->file.part->bytes;
		put_psb(t, 0);
	}
	t->blocks = BLOCKS_PER_TIME;
	self = t;
	return t;
}

static void thread_end(void)
{
	struct thread *t = self;

	if (!t)
		return;
	if (t->file.part)
		pt_file_flush(&t->file, &t->packets, 0);
	pt_file_exit(&t->file, (struct pt_id){ t->file.id.pid, t->file.id.pid });
	pt_file_close(&t->file);
	free(t);
	self = NULL;
}

void pt_pause(void)
{
	if (self && self->file.part)
		pt_file_flush(&self->file, &self->packets, 0);
}

static void before_fork(void)
{
	if (self)
		parent = self->file.id;
	pt_maps_lock();
}

/* The files of the threads are those of the parent. */
static void after_fork_in_child(void)
{
	pt_maps_unlock();
	if (self && self->file.part)
		munmap(self->file.part, sizeof(*self->file.part));
	free(self);
	self = NULL;
}

/* Control flow */

/* Control went from the end of a block to an address to which it leads. */
static void put_step(struct pt_packets *p, const struct block *last, uint64_t to)
{
	uint64_t next = last->start + last->size;

	switch (last->flow) {
	case WIRE_FLOW_COND:
		if (!last->repeats)
			pt_condition(p, to != next);
		break;
	case WIRE_FLOW_CALL:
		if (to != next)
			pt_call(p, next);
		break;
	case WIRE_FLOW_CALL_ANY:
		pt_call(p, next);
		pt_go(p, to);
		break;
	case WIRE_FLOW_LEAVE:
	case WIRE_FLOW_JUMP_ANY: pt_go(p, to); break;
	case WIRE_FLOW_RETURN: pt_return(p, to); break;
	default: break;
	}
}

/* Whether the last block was executed to its end when a signal came. */
static bool is_complete(const struct block *last, const struct pt_signal *signal)
{
	if (last->flow == WIRE_FLOW_ENTER)
		return false;
	if (signal->fault && block_index(last, signal->interrupted) >= 0)
		return false;
	return block_leads_to(last, signal->interrupted);
}

static void interrupt(struct thread *t, const struct block *last, const struct block *block,
		      const struct pt_signal *signal)
{
	struct pt_packets *p = &t->packets;
	uint64_t tsc = pt_tsc(pt_now());

	if (is_complete(last, signal))
		put_step(p, last, signal->interrupted);
	if (last->flow == WIRE_FLOW_ENTER && signal->interrupted == last->start + last->size)
		pt_end_at_call(p, tsc); /* int3 and the like */
	else
		pt_end_at(p, signal->interrupted, tsc);
	pt_begin(p, block->start, tsc);
}

/*
 * Whether QEMU left the last block before its end, to run an instruction again in a block of its own: an atomic one
 * that it cannot translate, or one that writes to its own page. Older QEMUs also tell of a last instruction that
 * crosses pages, or of its first bytes, though it is the first one of the next block.
 */
static bool is_again(const struct block *last, const struct block *block)
{
	uint64_t at = block->start, end = last->start + last->size;

	if (at - last->start >= last->size || last->count < 2)
		return false;
	if (at == end - last->last && (at ^ (at + block->sizes[0] - 1)) / PAGE)
		return true;
	return block->count == 1 && block->flow == WIRE_FLOW_ON && block_index(last, at) >= 0;
}

/* Control did not leave the last block at its end. What nothing explains was interrupted, at an unknown place. */
static void stray(struct thread *t, const struct block *last, const struct block *block)
{
	uint64_t tsc = pt_tsc(pt_now());

	if (last->flow != WIRE_FLOW_ENTER && block_index(last, block->start) >= 0)
		return;
	pt_end_at(&t->packets, last->start, tsc);
	pt_begin(&t->packets, block->start, tsc);
}

/* Whether QEMU may leave the block at this instruction, to run it again alone: with a lock prefix, or xchg. */
static bool is_atomic(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[16] = { 0 };
	size_t size = api_insn_data(insn, bytes, sizeof(bytes)), i = 0;

	for (; i < size; i++) {
		if (bytes[i] == 0xf0)
			return true;
		if (bytes[i] != 0x66 && bytes[i] != 0xf2 && bytes[i] != 0xf3 && bytes[i] >> 4 != 4)
			break;
	}
	return i < size && (bytes[i] == 0x86 || bytes[i] == 0x87);
}

static void on_last_insn(unsigned cpu, void *data)
{
	(void)cpu, (void)data;
	if (self)
		self->ended = true;
}

/* A loop may lead back to an atomic instruction, too: only the last instruction tells these apart. */
static void watch_end(struct qemu_plugin_tb *tb, struct block *block)
{
	size_t nr = api.tb_n_insns(tb);

	for (size_t i = 0; i + 1 < nr && !block->watched; i++)
		block->watched = is_atomic(api.tb_get_insn(tb, i));
	if (block->watched)
		api.insn_exec_cb(api.tb_get_insn(tb, nr - 1), on_last_insn, API_NO_REGS, NULL);
}

static void step(struct thread *t, unsigned cpu, const struct block *last,
		 const struct block *block)
{
	struct pt_signal signal;

	if (!t->packets.on)
		pt_begin(&t->packets, block->start, pt_tsc(pt_now()));
	else if (pt_signal_at(cpu, block->start, last->start, &signal))
		interrupt(t, last, block, &signal);
	else if (is_again(last, block) ||
		 (last->watched && !t->ended && block_index(last, block->start) >= 0))
		return;
	else if (last->flow != WIRE_FLOW_ENTER && block_leads_to(last, block->start))
		put_step(&t->packets, last, block->start);
	else
		stray(t, last, block);
}

static void pass_time(struct thread *t, const struct block *block)
{
	t->blocks = BLOCKS_PER_TIME;
	pt_time(&t->packets, pt_tsc(pt_now()));
	if (where(t) - t->psb_at > PT_PSB_PERIOD)
		put_psb(t, block->start);
	if (used(t) > EMULATE_BYTES - BLOCKS_PER_TIME * PT_ROOM)
		pt_file_flush(&t->file, &t->packets, block->start);
}

static void on_block(unsigned cpu, void *data)
{
	const struct block *block = data;
	struct thread *t = self ? self : thread_begin();
	unsigned maps;

	if (!t->file.part)
		return;
	maps = atomic_load_explicit(&pt_maps_version, memory_order_relaxed);
	if (t->maps != maps) {
		pt_time(&t->packets, pt_tsc(pt_now()));
		t->maps = maps;
	}
	step(t, cpu, t->last, block);
	t->last = block;
	t->ended = false;
	if (!--t->blocks)
		pass_time(t, block);
	if (t->file.part)
		keep(t);
}

static void on_translate(struct qemu_plugin_tb *tb)
{
	struct block *block = block_of(tb);
	struct thread *t = self ? self : thread_begin();

	if (!block)
		return;
	pt_maps_translate(&t->file, tb);
	watch_end(tb, block);
	api.tb_exec_cb(tb, on_block, pt_signal_reads() ? API_R_REGS : API_NO_REGS, block);
}

/* System calls */

static void rename_thread(const struct api_syscall *call)
{
	char name[NAME_SIZE] = "";

	if (!self || call->args[0] != PRCTL_SET_NAME)
		return;
	pt_guest_text(call->args[1], name, sizeof(name));
	pt_file_comm(&self->file, name, false);
}

static void before_call(const struct api_syscall *call)
{
	if (self && self->file.part && self->packets.on) {
		pt_end_at_call(&self->packets, pt_tsc(pt_now()));
		keep(self);
	}
	switch (call->number) {
	case SYS_EXECVE:
	case SYS_EXECVEAT: pt_exec(call); break;
	case SYS_EXIT:
	case SYS_EXIT_GROUP: thread_end(); break;
	case SYS_PRCTL: rename_thread(call); break;
	default: break;
	}
}

static void on_syscall(unsigned cpu, const struct api_syscall *call)
{
	(void)cpu;
	if (!call->returns)
		before_call(call);
	else if (call->number == SYS_MMAP || call->number == SYS_MPROTECT ||
		 call->number == SYS_MUNMAP || call->number == SYS_MREMAP ||
		 call->number == SYS_SHMAT)
		pt_maps_changed();
	pt_signal_syscall(call);
}

static void on_cpu_init(unsigned cpu)
{
	regs_cpu_init(cpu);
}

int pt_open(uint64_t plugin_id)
{
	struct api_hooks hooks = { .cpu_init = on_cpu_init,
				   .translate = on_translate,
				   .syscall = on_syscall };

	if (!api.user_mode || strcmp(api.arch, "x86_64")) {
		api_say("mode=pt needs qemu-x86_64, not %s%s",
			api.user_mode ? "qemu-" : "qemu-system-", api.arch);
		return -1;
	}
	if (!api.insn_haddr || !api.byte_array_free) {
		api_say("mode=pt does not work with this QEMU");
		return -1;
	}
	regs_open();
	if (block_open() || pt_file_check() || pt_exec_open())
		return -1;
	pthread_atfork(before_fork, pt_maps_unlock, after_fork_in_child);
	api_hook(plugin_id, &hooks);
	return 0;
}
