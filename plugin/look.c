// SPDX-License-Identifier: GPL-2.0-or-later
#include "look.h"

#include <stdatomic.h>
#include <string.h>

#include "api.h"
#include "insn.h"
#include "regs.h"
#include "wire/wire.h"

#define PAGE_MASK 0xfffull

#define X86_VM (1u << 17) /* in eflags */
/* What switches interrupts on, and the same as an exception saved it; of Arm: what masks them. */
#define X86_IF (1u << 9)
#define ARM_I (1u << 7)
#define RISCV_SIE (1u << 1)
#define RISCV_SPIE (1u << 5)
#define RISCV_MIE (1u << 3)
#define RISCV_MPIE (1u << 7)
#define LOW_END 0x100000 /* of the memory in which 16-bit code runs */

static enum insn_set set;
static atomic_bool moves;	    /* see look_moves(); true until disproved */
static _Atomic uint8_t modes[8192]; /* enum insn_mode of each code segment of x86 in long mode */

void look_open(void)
{
	set = insn_set_of(api.arch);
	atomic_store(&moves, !api.user_mode);
}

void look_cpu_init(void)
{
	if (regs_is_m_profile()) {
		set = INSN_THUMB;
		atomic_store(&moves, false); /* there is no MMU */
	}
}

/* The size of a word on the stack in the current mode of the cpu. */
static size_t word_size(unsigned cpu)
{
	uint64_t mode;

	if (set == INSN_X86_64)
		return !regs_special(cpu, REG_EFER, &mode) || mode & 1u << 10 ? 8 : 4;
	return set == INSN_AARCH64 || set == INSN_RISCV64 ? 8 : 4;
}

static bool read_words(const struct regs_view *view, uint64_t address, size_t word, uint64_t *words,
		       size_t n)
{
	uint8_t bytes[64];

	if (regs_memory(view, address, bytes, n * word) < n * word)
		return false;
	for (size_t i = 0; i < n; i++) {
		words[i] = 0;
		memcpy(&words[i], bytes + i * word, word); /* all targets here are little-endian */
	}
	return true;
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

/* Whether interrupts are on, by the bits of a register that switch them on, or off. */
static unsigned mask_by(unsigned cpu, enum reg which, uint64_t on, uint64_t off)
{
	uint64_t value;

	if (!regs_special(cpu, which, &value))
		return WIRE_MASK_SAME;
	return value & off || (on && !(value & on)) ? WIRE_MASK_OFF : WIRE_MASK_ON;
}

/* Not all Cortex-M have the last two registers. */
static unsigned m_mask(unsigned cpu)
{
	unsigned mask = mask_by(cpu, REG_PRIMASK, 0, 1);

	if (mask == WIRE_MASK_ON && (mask_by(cpu, REG_BASEPRI, 0, 0xff) == WIRE_MASK_OFF ||
				     mask_by(cpu, REG_FAULTMASK, 0, 1) == WIRE_MASK_OFF))
		return WIRE_MASK_OFF;
	return mask;
}

unsigned look_mask(unsigned cpu, unsigned level)
{
	if (level == WIRE_LEVEL_USER)
		return WIRE_MASK_ON;
	switch (set) {
	case INSN_X86_64:
	case INSN_I386: return mask_by(cpu, REG_FLAGS, X86_IF, 0);
	case INSN_AARCH64:
	case INSN_ARM: return mask_by(cpu, REG_FLAGS, 0, ARM_I);
	case INSN_THUMB: return m_mask(cpu);
	case INSN_RISCV64:
	case INSN_RISCV32:
		return level == WIRE_LEVEL_FIRMWARE ? mask_by(cpu, REG_STATUS_3, RISCV_MIE, 0)
						    : mask_by(cpu, REG_STATUS, RISCV_SIE, 0);
	default: return WIRE_MASK_SAME;
	}
}

/* The same for the code that an exception interrupted. saved: the register with its flags. */
static unsigned interrupted_mask(unsigned cpu, unsigned level, enum reg saved, uint64_t on,
				 uint64_t off)
{
	return level == WIRE_LEVEL_USER ? WIRE_MASK_ON : mask_by(cpu, saved, on, off);
}

static void read_look(unsigned cpu, uint64_t pc, struct look *look)
{
	uint64_t mode;

	*look = (struct look){ .guest = regs_guest(cpu) };
	if (api.user_mode) {
		regs_sp(cpu, &look->sp);
		return;
	}
	if (!regs_sp(cpu, &look->sp) || !regs_mode(cpu, &mode) ||
	    !regs_space(cpu, mode, &look->space)) {
		look_harder(cpu, pc, look);
		return;
	}
	look->level = regs_level(cpu, mode);
	if (set == INSN_THUMB)
		look->exception = mode & REGS_EXCEPTION;
}

void look_at(unsigned cpu, uint64_t pc, struct look *look)
{
	read_look(cpu, pc, look);
	look->mask = look_mask(cpu, look->level);
}

uint64_t look_pc(unsigned cpu, uint64_t start)
{
	uint64_t pc, mode;

	if (!atomic_load_explicit(&moves, memory_order_relaxed) ||
	    !regs_special(cpu, REG_PC, &pc) || pc == start)
		return start;
	/* Outside of long mode segments have a base. */
	if (set == INSN_I386 ||
	    (set == INSN_X86_64 && (!regs_special(cpu, REG_EFER, &mode) || !(mode & 1u << 10))))
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

/* An exception in 32-bit mode pushes sp and ss only if the privilege changes. */
static bool pushes_sp(unsigned cpu, const uint64_t *words, bool wide)
{
	uint64_t now;

	return wide || words[2] & X86_VM || (regs_mode(cpu, &now) && (words[1] & 3) != (now & 3));
}

/* Whether these words are what an exception pushes: ip, cs, flags, and perhaps sp and ss. */
static bool is_x86_frame(const uint64_t *words, bool with_sp)
{
	uint64_t cs = words[1], flags = words[2], ss = words[4];

	if (cs > 0xffff || cs < 8 || !(flags & 2) || flags & 0x8028 || flags >> 22)
		return false;
	return !with_sp || (ss <= 0xffff && (flags & X86_VM || (ss & 3) == (cs & 3)));
}

static bool x86_trap(const struct regs_view *view, uint64_t sp, struct look_trap *trap)
{
	size_t word = word_size(view->cpu);
	uint64_t words[6];

	if (!read_words(view, sp, word, words, 6))
		return false;
	for (size_t i = 0; i < 2; i++) {
		bool with_sp = pushes_sp(view->cpu, words + i, word == 8);

		if (is_x86_frame(words + i, with_sp)) {
			trap->resume = words[i];
			trap->level = regs_level(view->cpu, words[i + 1]);
			trap->mask = trap->level == WIRE_LEVEL_USER || words[i + 2] & X86_IF
					     ? WIRE_MASK_ON
					     : WIRE_MASK_OFF;
			trap->left = with_sp ? words[i + 3] : sp + (i + 3) * word;
			return true;
		}
	}
	return false;
}

/* The interrupted stack pointer. The entry of the vector table shows which one it was. */
static uint64_t aarch64_left(unsigned cpu, unsigned level, uint64_t pc, uint64_t sp)
{
	uint64_t saved = 0, left = 0;

	switch (pc >> 9 & 3) {
	case 1: return sp; /* of the same level */
	case 3: return 0;  /* of 32-bit code */
	case 2:
		if (level > 1 && !regs_special(cpu, level == 2 ? REG_SAVED_2 : REG_SAVED_3, &saved))
			return 0;
		break;
	default: break;
	}
	if (!(saved & 1))
		regs_special(cpu, REG_SP_0, &left);
	else if ((saved >> 2 & 3) == 1)
		regs_special(cpu, REG_SP_1, &left);
	else if ((saved >> 2 & 3) == 2)
		regs_special(cpu, REG_SP_2, &left);
	return left;
}

/* The register with the return address of an exception that is handled at this level. */
static enum reg link_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_LINK_2;
	case WIRE_LEVEL_FIRMWARE: return REG_LINK_3;
	default: return REG_LINK;
	}
}

static enum reg saved_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_SAVED_2;
	case WIRE_LEVEL_FIRMWARE: return REG_SAVED_3;
	default: return REG_SAVED;
	}
}

static enum reg vector_of(unsigned level)
{
	switch (level) {
	case WIRE_LEVEL_HYPERVISOR: return REG_VECTOR_2;
	case WIRE_LEVEL_FIRMWARE: return REG_VECTOR_3;
	default: return REG_VECTOR;
	}
}

/* The level that was interrupted: each entry of the vector table is for the same or for lower levels. */
static unsigned aarch64_interrupted(unsigned cpu, unsigned level, uint64_t pc)
{
	uint64_t saved;

	if (!(pc >> 10 & 1))
		return level;
	if (level > 1 && regs_special(cpu, level == 2 ? REG_SAVED_2 : REG_SAVED_3, &saved))
		return saved & 0x10 ? WIRE_LEVEL_USER : saved >> 2 & 3;
	return WIRE_LEVEL_USER;
}

/* If the level stays the same at an entry for lower levels, the code jumps there itself, as Linux does. */
static bool is_aarch64_vector(uint64_t pc, uint64_t vectors, unsigned level, unsigned before)
{
	return pc - vectors < 0x800 && !(pc & 0x7f) && !(pc & 0x400 && before >= level);
}

/* trap->level: at first the level of the code before. */
static bool aarch64_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	uint64_t vectors;

	if (pc & 0x7f)
		return false;
	trap->left = aarch64_left(cpu, look->level, pc, look->sp);
	if (!regs_special(cpu, vector_of(look->level), &vectors))
		vectors = pc;
	if (!is_aarch64_vector(pc, vectors, look->level, trap->level))
		return false;
	trap->level = aarch64_interrupted(cpu, look->level, pc);
	trap->mask = interrupted_mask(cpu, trap->level, saved_of(look->level), 0, ARM_I);
	return regs_special(cpu, link_of(look->level), &trap->resume);
}

static bool arm_trap(unsigned cpu, uint64_t pc, struct look_trap *trap)
{
	static const uint8_t back[8] = { 0, 0, 0, 4, 8, 0, 4, 4 };

	if ((pc & ~0x1cull) != 0 && (pc & ~0x1cull) != 0xffff0000)
		return false;
	if (!regs_special(cpu, REG_LINK, &trap->resume))
		return false;
	trap->resume -= back[pc >> 2 & 7];
	return true;
}

#define RISCV_CAUSES 64

/* Bit 0: interrupts have entries of their own there. */
static bool is_riscv_vector(uint64_t pc, uint64_t vector)
{
	return !(pc & 3) && pc - (vector & ~3ull) < (vector & 1 ? 4 * RISCV_CAUSES : 4);
}

/* A trap saves the bit of the level that it is handled at, and keeps those of the levels below. */
static unsigned interrupted_riscv(unsigned cpu, unsigned level, unsigned interrupted)
{
	if (level != WIRE_LEVEL_FIRMWARE)
		return interrupted_mask(cpu, interrupted, REG_STATUS, RISCV_SPIE, 0);
	return interrupted_mask(cpu, interrupted, REG_STATUS_3,
				interrupted == level ? RISCV_MPIE : RISCV_SIE, 0);
}

/* Each level has its own vector. */
static bool riscv_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	bool firmware = look->level == WIRE_LEVEL_FIRMWARE;
	uint64_t vector, status;

	trap->left = look->sp;
	if (!regs_special(cpu, firmware ? REG_VECTOR_3 : REG_VECTOR, &vector) ||
	    !is_riscv_vector(pc, vector) ||
	    !regs_special(cpu, firmware ? REG_STATUS_3 : REG_STATUS, &status) ||
	    !regs_special(cpu, link_of(look->level), &trap->resume))
		return false;
	trap->level = firmware ? status >> 11 & 3 : status >> 8 & 1;
	trap->mask = interrupted_riscv(cpu, look->level, trap->level);
	return true;
}

bool look_for_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap)
{
	struct regs_view view = { .cpu = cpu };

	switch (set) {
	case INSN_X86_64:
	case INSN_I386: return x86_trap(&view, look->sp, trap);
	case INSN_AARCH64: return aarch64_trap(cpu, pc, look, trap);
	case INSN_ARM: return arm_trap(cpu, pc, trap);
	case INSN_RISCV64:
	case INSN_RISCV32: return riscv_trap(cpu, pc, look, trap);
	default: return false;
	}
}

bool look_is_vector(unsigned cpu, uint64_t pc, const struct look *look, unsigned level_before)
{
	uint64_t vector;

	switch (set) {
	case INSN_AARCH64:
		return regs_written(cpu, vector_of(look->level), &vector) &&
		       is_aarch64_vector(pc, vector, look->level, level_before);
	case INSN_RISCV64: /* whose level may be a guess */
	case INSN_RISCV32:
		return (regs_written(cpu, REG_VECTOR, &vector) && is_riscv_vector(pc, vector)) ||
		       (regs_written(cpu, REG_VECTOR_3, &vector) && is_riscv_vector(pc, vector));
	default: return false;
	}
}

bool look_knows_vectors(unsigned cpu)
{
	return regs_lists(cpu, REG_VECTOR);
}

/*
 * QEMU does not say whether x86 code is 64-bit code. Some instructions reveal it, and then all other
 * code in the same segment is 64-bit code, too.
 */
static unsigned long_mode_word(unsigned cpu, enum insn_mode mode)
{
	uint64_t cs;
	_Atomic uint8_t *known;

	if (!regs_mode(cpu, &cs))
		return 0;
	known = &modes[cs >> 3 & 8191];
	if (mode != INSN_MODE_ANY)
		atomic_store(known, (uint8_t)mode);
	switch (atomic_load(known)) {
	case INSN_MODE_64: return 8;
	case INSN_MODE_32: return 4;
	default: return 0;
	}
}

unsigned look_word(unsigned cpu, uint64_t start, enum insn_mode mode)
{
	uint64_t value;

	switch (set) {
	case INSN_X86_64:
		if (start >> 32 || api.user_mode)
			return 8;
		if (regs_special(cpu, REG_EFER, &value) && value & 1u << 10)
			return long_mode_word(cpu, mode);
		return start < LOW_END ? 0 : 4;
	case INSN_I386: return start < LOW_END && !api.user_mode ? 0 : 4;
	case INSN_AARCH64: /* or 32-bit code, which has other instructions */
		return regs_mode(cpu, &value) && value & 0x10 ? 0 : 8;
	case INSN_RISCV64: return 8;
	case INSN_OTHER: return 0;
	default: return 4;
	}
}

bool look_is_sure(void)
{
	return set == INSN_X86_64 || set == INSN_I386;
}

static bool has_word(const struct regs_view *view, uint64_t address, size_t size, uint64_t value)
{
	uint64_t word;

	return read_words(view, address, size, &word, 1) && word == value;
}

bool look_returned(const struct regs_view *view, uint64_t sp, uint64_t pc)
{
	size_t size = word_size(view->cpu);

	return has_word(view, sp - size, size, pc);
}

bool look_called(const struct regs_view *view, uint64_t sp, uint64_t next)
{
	return has_word(view, sp, word_size(view->cpu), next);
}

bool look_for_guest_trap(const struct regs_view *view, uint64_t sp, struct look_trap *trap)
{
	return x86_trap(view, sp, trap);
}
