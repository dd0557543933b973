// SPDX-License-Identifier: GPL-2.0-or-later
/* Frame pointer walks over stacks that are whole, damaged, or somewhere else. */
#include <string.h>

#include "target_port.h"
#include "test.h"

#define WORD sizeof(uintptr_t)
#define STACK 0x10000 /* the address of the memory below */
#define CODE ((uintptr_t)0xffffffff81000000)

static struct {
	uintptr_t words[0x1000 / WORD];
	uintptr_t bad; /* cannot be read */
	unsigned reads;
	struct kscope_at user;
	bool has_user;
} memory;

static bool mem_read(void *data, const struct kscope_at *at, void *to, uintptr_t from, size_t size)
{
	(void)data;
	(void)at;
	memory.reads++;
	if (from < STACK || from > STACK + sizeof(memory.words) - size || from == memory.bad ||
	    from % WORD || from + size < from)
		return false;
	memcpy(to, (uint8_t *)memory.words + (from - STACK), size);
	return true;
}

static bool mem_user(void *data, const struct kscope_at *at, struct kscope_at *user)
{
	(void)data;
	user->pc = memory.user.pc;
	user->fp = memory.user.fp;
	return memory.has_user && !at->user && user->user;
}

static void open_memory(unsigned depth)
{
	port_open(1, sizeof(port_memory));
	port_ops.read = mem_read;
	port_ops.user = mem_user;
	memset(&memory, 0, sizeof(memory));
	port_k.depth = depth;
}

/* A frame at an address: the caller's frame pointer, and the return address. */
static void frame(uintptr_t at, uintptr_t caller, uintptr_t address)
{
	memory.words[(at - STACK) / WORD] = caller;
	memory.words[(at - STACK) / WORD + 1] = address;
}

static struct kscope_record record;
static uintptr_t words[KSCOPE_RECORD_WORDS];

static bool sample(const struct kscope_at *at)
{
	port_says("start");
	kscope_sample(&port_k, 0, 0, 1, at);
	return kscope_take(&port_k.cpu[0].ring, words, &record);
}

static bool walks_user(uintptr_t fp, unsigned nr, unsigned user_frames)
{
	return sample(&(struct kscope_at){ .pc = CODE, .fp = fp }) && record.nr == nr &&
	       record.user_frames == user_frames && record.frames[0] == CODE;
}

static bool walks(uintptr_t fp, unsigned nr)
{
	return walks_user(fp, nr, 0);
}

static void chain(uintptr_t at, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		frame(at + i * 2 * WORD, at + (i + 1) * 2 * WORD, CODE + 1 + i);
	frame(at + nr * 2 * WORD, 0, 0);
}

static void test_good(void)
{
	bool good = true;

	open_memory(16);
	chain(STACK, 5);
	check("a chain", walks(STACK, 6));
	for (unsigned i = 1; i < 6; i++)
		good &= record.frames[i] == CODE + i;
	check("its addresses", good);
	frame(STACK + 4 * 2 * WORD, 0, CODE + 5);
	check("a chain whose last frame pointer is 0", walks(STACK, 6));
	check("no frame pointer", walks(0, 1));
	port_ops.read = NULL;
	check("a port that cannot read", walks(STACK, 1));
}

static void test_depth(void)
{
	static const unsigned depths[] = { 1, 2, 16, KSCOPE_DEPTH };

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		open_memory(depths[i]);
		chain(STACK, 200);
		check("a chain that is too long", walks(STACK, depths[i]));
		check("no more reads than frames", memory.reads == depths[i] - 1);
	}
}

static void test_bad(void)
{
	open_memory(127);
	chain(STACK, 8);
	memory.bad = STACK + 3 * 2 * WORD;
	check("a frame that cannot be read", walks(STACK, 4));
	chain(STACK, 8);
	memory.bad = 0;
	frame(STACK + 2 * 2 * WORD, STACK + 3 * 2 * WORD + 1, CODE + 3);
	check("one that is not aligned", walks(STACK, 4));
	check("at the beginning, too", walks(STACK + 1, 1));
	chain(STACK, 8);
	frame(STACK + 2 * 2 * WORD, STACK + 2 * 2 * WORD, CODE + 3);
	check("one that is its own caller", walks(STACK, 4));
	frame(STACK + 2 * 2 * WORD, STACK, CODE + 3);
	check("a cycle", walks(STACK, 1 + 3 * 3) && memory.reads < 30);
	frame(STACK, STACK + 0x100, CODE + 1);
	frame(STACK + 0x100, STACK, CODE + 2);
	chain(STACK, 4);
	frame(STACK + 2 * WORD, STACK + 4 * WORD, KSCOPE_MARK_USER);
	check("a return address that looks like a mark", walks(STACK, 2));
	check("a pc that looks like one",
	      sample(&(struct kscope_at){ .pc = KSCOPE_MARK_USER, .fp = STACK }) &&
		      record.nr == 2 && !record.nr_traps && record.frames[0] == KSCOPE_MARK_USER);
	frame(STACK, STACK + 0x100, CODE + 1);
	frame(STACK + 0x100, STACK, CODE + 2);
	check("a cycle of two", walks(STACK, 1 + 3 * 2));
}

static void test_ends(void)
{
	uintptr_t tops[] = { UINTPTR_MAX, UINTPTR_MAX - 1, -WORD, -2 * WORD + 1, 1, WORD };

	open_memory(16);
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++)
		check("at an end of the address space", walks(tops[i], 1));
	memory.reads = 0;
	check("no read goes over the end", walks(-WORD, 1) && !memory.reads);
	check("a frame before it is tried", walks(-3 * WORD, 1) && memory.reads == 1);
}

/* From the stack of interrupts, of an NMI inside it, to that of a task. */
static void test_stacks(void)
{
	uintptr_t low = STACK, high = STACK + 0x400, top = STACK + 0x800;

	open_memory(16);
	chain(high, 3);
	chain(low, 3);
	frame(high + 2 * 2 * WORD, low, CODE + 3);
	check("from a higher stack to a lower one", walks(high, 7));
	chain(high, 3);
	frame(low + 2 * 2 * WORD, high, CODE + 3);
	check("from a lower one to a higher one", walks(low, 7));
	chain(top, 3);
	frame(top + 2 * 2 * WORD, high, CODE + 3);
	chain(high, 3);
	frame(high + 2 * 2 * WORD, low, CODE + 3);
	chain(low, 3);
	check("two jumps down", walks(top, 10));
}

static void test_user(void)
{
	open_memory(16);
	chain(STACK, 3);
	chain(STACK + 0x400, 4);
	memory.user = (struct kscope_at){ .pc = 0x401000, .fp = STACK + 0x400 };
	check("a task that is nowhere in user code", walks(STACK, 4));
	memory.has_user = true;
	check("user frames behind those of the kernel", walks_user(STACK, 9, 5));
	check("they begin with the pc",
	      record.frames[4] == 0x401000 && record.frames[5] == CODE + 1);
	port_k.depth = 6;
	check("up to the depth", walks_user(STACK, 6, 2));
	port_k.depth = 4;
	check("none are left", walks_user(STACK, 4, 0));
	port_k.depth = 16;
	check("user code has no user code below",
	      sample(&(struct kscope_at){ .user = true, .pc = 5, .fp = STACK }) && record.user &&
		      record.nr == 4 && !record.user_frames);
}

#define ENTRY (CODE + 0x100) /* handlers return to it */

/* The frame of a trap has the frame pointer of what it interrupted, and nothing else. */
static bool mem_trap(void *data, const struct kscope_at *at, uintptr_t back, uintptr_t fp,
		     struct kscope_at *before)
{
	(void)data;
	if (back != ENTRY || fp < STACK)
		return false;
	*before = *at;
	before->fp = memory.words[(fp - STACK) / WORD];
	before->pc = memory.words[(fp - STACK) / WORD + 1];
	before->link = CODE + 7;
	before->user = before->pc < STACK;
	return true;
}

/* A handler with one caller, the trap's frame behind it, and code with three frames that was interrupted. */
static void trap_at(uintptr_t handler, uintptr_t interrupted, uintptr_t pc)
{
	frame(handler, handler + 2 * WORD, ENTRY);
	frame(handler + 2 * WORD, interrupted, pc);
}

static void test_traps(void)
{
	uintptr_t low = STACK, high = STACK + 0x400;

	open_memory(16);
	port_ops.trap = mem_trap;
	chain(low, 3);
	trap_at(high, low, CODE + 9);
	check("a stack through a trap", walks(high, 6) && record.frames[1] == ENTRY &&
						record.frames[2] == CODE + 9 &&
						record.frames[3] == CODE + 1);
	check("what it interrupted", record.nr_traps == 1 && record.traps[0].frame == 2 &&
					     record.traps[0].link == CODE + 7);
	trap_at(high, low, 0x1234);
	memory.has_user = true;
	check("a trap from user code", walks_user(high, 6, 4) && record.traps[0].frame == 2);
	port_k.depth = 2;
	check("no room for it", walks(high, 2) && !record.nr_traps);
	port_k.depth = 16;
	trap_at(high, high, CODE + 9);
	memory.has_user = false;
	check("traps without an end",
	      walks(high, 1 + 2 * KSCOPE_TRAPS + 1) && record.nr_traps == KSCOPE_TRAPS);
}

#if UINTPTR_MAX > UINT32_MAX
/* AArch64: bits above the address are a signature, except bit 55, which tells the kernel from user code. */
static void test_signed(void)
{
	open_memory(16);
	port_ops.address_bits = 48;
	frame(STACK, STACK + 0x10, 0x12008000081234);
	frame(STACK + 0x10, STACK + 0x20, (uintptr_t)0x5a80ffff81000010);
	frame(STACK + 0x20, 0, 0x5a7f00001234);
	sample(&(struct kscope_at){
		.pc = CODE, .fp = STACK, .link = (uintptr_t)0xa5ff800000000123 });
	check("a signed address of the kernel", record.frames[2] == (uintptr_t)0xffffffff81000010);
	check("one of user code",
	      record.frames[1] == 0x8000081234 && record.frames[3] == 0x5a7f00001234);
	check("the link register", record.link == (uintptr_t)0xffff800000000123);
	port_ops.address_bits = 0;
	sample(&(struct kscope_at){
		.pc = CODE, .fp = STACK, .link = (uintptr_t)0xa5ff800000000123 });
	check("no signatures",
	      record.frames[1] == 0x12008000081234 && record.link == (uintptr_t)0xa5ff800000000123);
}
#endif

/* ---- RISC-V: the frame is below the address in the frame pointer ---- */

#define BELOW (2 * sizeof(uintptr_t))
#define kscope_walk riscv_walk
#define kscope_plain riscv_plain
unsigned riscv_walk(const struct kscope *k, const struct kscope_at *at, struct kscope_ring *ring,
		    uint32_t to, unsigned max);
uintptr_t riscv_plain(const struct kscope *k, uintptr_t address);
#include "target/stack.c"

static unsigned walk_riscv(uintptr_t fp)
{
	struct kscope_at at = { .pc = CODE, .fp = fp };

	return riscv_walk(&port_k, &at, &port_k.cpu[0].ring, 0, 16);
}

static void test_riscv(void)
{
	open_memory(16);
	for (unsigned i = 0; i < 4; i++)
		frame(STACK + i * 2 * WORD, STACK + (i + 2) * 2 * WORD, CODE + 1 + i);
	check("RISC-V: a chain", walk_riscv(STACK + 2 * WORD) == 5);
	check("RISC-V: too low for a frame", walk_riscv(BELOW) == 1 && walk_riscv(WORD) == 1);
	check("RISC-V: the top", walk_riscv(-WORD) == 1 && walk_riscv(UINTPTR_MAX) == 1);
}

int main(void)
{
	test_riscv();
	test_good();
	test_depth();
	test_bad();
	test_ends();
	test_stacks();
	test_user();
	test_traps();
#if UINTPTR_MAX > UINT32_MAX
	test_signed();
#endif
	return test_result();
}
