// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gdb_look: reads the state of every thread of a stopped target, in two or three rounds: the registers of all
 * threads, then their stacks and code, then the interrupted stacks, if handlers run on a stack of their own.
 */
#include <string.h>

#include "base/mem.h"
#include "record/gdb_parts.h"

#define FRAMES_MAX 128

/* ---- Registers ---- */

static void ask_thread(struct gdb *gdb, const struct gdb_thread *thread)
{
	if (thread->id[0])
		gdb_batch_add(&gdb->batch, "Hg%s", thread->id);
}

static void ask_registers(struct gdb *gdb, const struct gdb_thread *thread)
{
	const struct gdb_layout *layout = &gdb->target.layout;

	ask_thread(gdb, thread);
	gdb_batch_add(&gdb->batch, "g");
	for (unsigned i = 0; i < GDB_SLOTS; i++) {
		if (layout->slots[i].asked)
			gdb_batch_add(&gdb->batch, "p%x", layout->slots[i].number);
	}
	if (gdb->target.says_halted)
		gdb_batch_add(&gdb->batch, "qThreadExtraInfo,%s", thread->id);
}

static bool next(struct gdb *gdb)
{
	return gdb_batch_next(&gdb->talk, &gdb->batch);
}

static bool is_halted(const struct buf *reply)
{
	uint8_t text[64] = "";

	gdb_unhex(reply->data ? reply->data : "", reply->len, text, sizeof(text) - 1);
	return strstr((char *)text, "[halted");
}

static bool take_registers(struct gdb *gdb, struct gdb_thread *thread)
{
	const struct gdb_target *target = &gdb->target;
	const struct buf *reply = &gdb->talk.reply;
	const struct gdb_values before = thread->values;
	bool selected = true;

	if (thread->id[0]) {
		if (!next(gdb))
			return false;
		selected = gdb_is_ok(&gdb->talk);
	}
	if (!next(gdb))
		return false;
	gdb_values_all(&target->layout, reply, &thread->values);
	for (unsigned i = 0; i < GDB_SLOTS; i++) {
		if (!target->layout.slots[i].asked)
			continue;
		if (!next(gdb))
			return false;
		gdb_values_one(&target->layout, i, reply, &thread->values);
	}
	if (target->says_halted && !next(gdb))
		return false;
	thread->halted = target->says_halted && is_halted(reply);
	gdb_state_read(&target->layout, &thread->values, &before, &thread->state);
	if (!selected)
		thread->state.nr = 0; /* it has ended; these were the registers of another one */
	return true;
}

static bool look_at_registers(struct gdb *gdb)
{
	struct gdb_target *target = &gdb->target;

	gdb_batch_clear(&gdb->batch);
	for (size_t i = 0; i < target->nr; i++) {
		target->threads[i].state.nr = 0;
		if (target->threads[i].listed)
			ask_registers(gdb, &target->threads[i]);
	}
	for (size_t i = 0; i < target->nr; i++) {
		if (target->threads[i].listed && !take_registers(gdb, &target->threads[i]))
			return false;
	}
	return true;
}

/* ---- Memory ---- */

/* The part of a range that one request can read, and that is in one page: if it fails, the page is not there. */
static size_t part_of(const struct gdb *gdb, uint64_t address, size_t size)
{
	size_t part = gdb->talk.packet_size / 2, page = GDB_PAGE - (size_t)(address % GDB_PAGE);

	if (part > page)
		part = page;
	return part < size ? part : size;
}

static void ask_memory(struct gdb *gdb, uint64_t address, size_t size)
{
	while (size) {
		size_t part = part_of(gdb, address, size);

		gdb_batch_add(&gdb->batch, "%c%llx,%zx", gdb->target.binary ? 'x' : 'm',
			      (unsigned long long)address, part);
		address += part;
		size -= part;
	}
}

static size_t take_part(struct gdb *gdb, uint8_t *bytes, size_t size)
{
	const struct buf *reply = &gdb->talk.reply;

	if (!gdb->target.binary && reply->len % 2)
		return 0; /* E14 is an error, not a byte */
	if (!gdb->target.binary)
		return gdb_unhex(reply->data ? reply->data : "", reply->len, bytes, size);
	if (reply->len < 1 || reply->data[0] != 'b')
		return 0;
	if (size > reply->len - 1)
		size = reply->len - 1;
	memcpy(bytes, reply->data + 1, size);
	return size;
}

/* Sets *got to the bytes up to the first that cannot be read. False: the link is lost. */
static bool take_memory(struct gdb *gdb, uint64_t address, uint8_t *bytes, size_t size, size_t *got)
{
	bool whole = true;

	*got = 0;
	for (size_t at = 0; at < size;) {
		size_t part = part_of(gdb, address + at, size - at), n;

		if (!next(gdb))
			return false;
		n = whole ? take_part(gdb, bytes + at, part) : 0;
		*got += n;
		whole = whole && n == part;
		at += part;
	}
	return true;
}

static size_t stack_size(const struct gdb *gdb)
{
	uint64_t size = gdb->options->stack_given ? gdb->options->stack : GDB_STACK;

	return size < GDB_STACK_MAX ? (size_t)size : GDB_STACK_MAX;
}

static bool wants_memory(const struct gdb_thread *thread)
{
	return thread->listed && thread->state.nr && !thread->halted;
}

static uint64_t page_of(const struct gdb_thread *thread)
{
	return thread->state.pc & ~(uint64_t)(GDB_PAGE - 1);
}

static bool look_at_memory(struct gdb *gdb, size_t size)
{
	struct gdb_target *target = &gdb->target;

	gdb_batch_clear(&gdb->batch);
	for (size_t i = 0; i < target->nr; i++) {
		struct gdb_thread *thread = &target->threads[i];

		thread->stack_size = thread->outer_size = 0;
		if (!wants_memory(thread))
			continue;
		if (!thread->stack)
			thread->stack = xmalloc(size + 1);
		ask_thread(gdb, thread);
		ask_memory(gdb, page_of(thread), WIRE_CODE_SIZE);
		ask_memory(gdb, thread->state.sp, size);
	}
	for (size_t i = 0; i < target->nr; i++) {
		struct gdb_thread *thread = &target->threads[i];
		size_t code;

		if (!wants_memory(thread))
			continue;
		if ((thread->id[0] && !next(gdb)) ||
		    !take_memory(gdb, page_of(thread), thread->code, WIRE_CODE_SIZE, &code) ||
		    !take_memory(gdb, thread->state.sp, thread->stack, size, &thread->stack_size))
			return false;
		thread->has_code = code == WIRE_CODE_SIZE;
	}
	return true;
}

/* ---- The interrupted stack ---- */

static bool word_at(const struct gdb_thread *thread, uint64_t address, uint64_t *value)
{
	uint64_t at = address - thread->state.sp;

	*value = 0;
	if (at >= thread->stack_size || thread->stack_size - at < thread->state.word)
		return false;
	memcpy(value, thread->stack + at, thread->state.word);
	return true;
}

/* Linux on x86-64 stores the address in the topmost word of the interrupt stack, after which memory ends. */
static uint64_t by_top_word(const struct gdb_thread *thread, size_t wanted)
{
	uint64_t top = 0;

	if (thread->stack_size < wanted)
		word_at(thread, thread->state.sp + thread->stack_size - thread->state.word, &top);
	return top;
}

/*
 * Linux on RISC-V enters a handler with sp at the saved registers (36 words: the pc, x1 to x31, others), and with the
 * interrupted sp (x2) in the frame pointer (x8). In this case, returns the interrupted frame pointer, else fp.
 */
static uint64_t before_trap(const struct gdb_thread *thread, bool riscv, uint64_t registers,
			    uint64_t fp)
{
	unsigned word = thread->state.word;
	uint64_t sp, interrupted;

	if (riscv && fp == registers + 36 * word && word_at(thread, registers + 2 * word, &sp) &&
	    sp == fp && word_at(thread, registers + 8 * word, &interrupted))
		return interrupted;
	return fp;
}

/* The first frame outside of the copy. */
static uint64_t by_frame_pointer(const struct gdb_thread *thread, bool riscv)
{
	uint64_t below = riscv ? 2 * thread->state.word : 0;
	uint64_t fp = before_trap(thread, riscv, thread->state.sp, thread->state.fp), frame;

	for (unsigned n = 0; n < FRAMES_MAX; n++) {
		if (!word_at(thread, fp - below, &frame))
			return fp - below;
		fp = before_trap(thread, riscv, fp, frame);
	}
	return 0;
}

static bool is_outer(const struct gdb_thread *thread, uint64_t address)
{
	unsigned word = thread->state.word, top = 8 * word - 1;

	return address && !(address & (word - 1)) && address >> top == thread->state.sp >> top &&
	       address - thread->state.sp >= thread->stack_size;
}

static uint64_t outer_address(const struct gdb *gdb, const struct gdb_thread *thread, size_t wanted)
{
	const char *arch = gdb->target.layout.arch;
	uint64_t address = 0;

	if (!wants_memory(thread) || thread->state.level == WIRE_LEVEL_USER)
		return 0;
	if (thread->state.outer)
		return thread->state.outer;
	if (!strcmp(arch, "x86_64"))
		address = thread->stack_size ? by_top_word(thread, wanted) : 0;
	else if (!strcmp(arch, "aarch64") || gdb_is_riscv(&gdb->target.layout))
		address = by_frame_pointer(thread, gdb_is_riscv(&gdb->target.layout));
	return is_outer(thread, address) ? address : 0;
}

static bool look_at_outer(struct gdb *gdb, size_t size)
{
	struct gdb_target *target = &gdb->target;

	gdb_batch_clear(&gdb->batch);
	for (size_t i = 0; i < target->nr; i++) {
		struct gdb_thread *thread = &target->threads[i];

		thread->outer_address = outer_address(gdb, thread, size);
		if (!thread->outer_address)
			continue;
		if (!thread->outer)
			thread->outer = xmalloc(size);
		ask_thread(gdb, thread);
		ask_memory(gdb, thread->outer_address, size);
	}
	for (size_t i = 0; i < target->nr; i++) {
		struct gdb_thread *thread = &target->threads[i];

		if (thread->outer_address &&
		    ((thread->id[0] && !next(gdb)) ||
		     !take_memory(gdb, thread->outer_address, thread->outer, size,
				  &thread->outer_size)))
			return false;
	}
	return true;
}

bool gdb_look(struct gdb *gdb)
{
	size_t size = stack_size(gdb);

	return look_at_registers(gdb) && look_at_memory(gdb, size) &&
	       (!size || look_at_outer(gdb, size));
}
