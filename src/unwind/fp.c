// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frame pointers. A function with a frame has stored its caller's frame pointer and its return
 * address next to each other, and its frame pointer points there. At the first instruction, in a
 * leaf that needs no frame and just before the return there is no frame. The return address is then
 * where the call left it: in the link register, or on top of the stack.
 */
#include <string.h>

#include "unwind/walk.h"

#define MAX_FRAME_BYTES 0x4000 /* a frame pointer that points further up is not one */
#define PROLOGUE_BYTES 64
#define MAX_PUSHED 8 /* words that a function without a frame may have pushed */

struct record {
	uint64_t next; /* the caller's frame pointer */
	uint64_t pc;   /* the return address */
	uint64_t cfa;
};

static bool read_record(const struct walk *w, uint64_t next, uint64_t pc, struct record *r)
{
	return walk_word(w, next, &r->next) && walk_word(w, pc, &r->pc);
}

/* Does it look like the frame pointer of the caller of the frame at fp? */
static bool leads_up(uint64_t next, uint64_t fp)
{
	return !next || (next > fp && next - fp <= MAX_FRAME_BYTES);
}

/* May code return to the address? */
static bool is_target(const struct walk *w, uint64_t address)
{
	return walk_is_target(w, address) || m_profile_ends(w, address);
}

/* Interrupted code may have any frame pointer. */
static bool is_arm_record(const struct walk *w, const struct record *r, uint64_t fp)
{
	return is_target(w, r->pc) && (leads_up(r->next, fp) || m_profile_ends(w, r->pc));
}

/*
 * No standard defines where r11 points. LLVM: to the frame pointer, with lr above it. GCC: to lr,
 * with the frame pointer below it. GCC with -mapcs-frame: to pc, with lr, sp and the frame pointer
 * below. In Thumb code LLVM's frame pointer is r7; GCC's points to the end of the frame.
 */
static bool read_arm_record(const struct walk *w, uint64_t fp, uint64_t sp, struct record *r)
{
	r->cfa = fp + 8;
	if (read_record(w, fp, fp + 4, r) &&
	    (is_arm_record(w, r, fp) || (!r->pc && !r->next))) /* a thread's first function */
		return true;
	r->cfa = fp + 4;
	if (fp - sp >= 4 && read_record(w, fp - 4, fp, r) && is_arm_record(w, r, fp))
		return true;
	return fp - sp >= 12 && read_record(w, fp - 12, fp - 4, r) && is_arm_record(w, r, fp);
}

#define THUMB_FP 7

static uint8_t frame_register(const struct walk *w, const struct state *s)
{
	bool thumb = walk_code_kind(w, s->exact ? s->pc : s->pc - 1).thumb;

	return thumb ? THUMB_FP : w->machine->fp;
}

/* The function may have saved only its caller's frame pointer: then r->pc is not an address. */
static bool read_riscv_record(const struct walk *w, uint64_t fp, struct record *r)
{
	unsigned word = w->machine->word;

	r->cfa = fp;
	return read_record(w, fp - 2 * word, fp - word, r);
}

/*
 * May the frame be there? Frame pointers lead from the stack of interrupts to the interrupted one. But
 * on Cortex-M the hardware's frame is in between: such a frame pointer is the interrupted code's.
 */
static bool is_near(const struct walk *w, uint64_t fp, uint64_t sp)
{
	const struct cpu_state *cpu = w->cpu;
	bool outer = cpu->outer_len && fp - cpu->outer_addr <= cpu->outer_len;

	if (outer && (w->machine->kind != ARM || sp - cpu->outer_addr > cpu->outer_len))
		return w->machine->kind != ARM;
	return fp >= sp && fp - sp <= MAX_FRAME_BYTES;
}

static bool read_frame(const struct walk *w, const struct state *s, struct record *r)
{
	const struct machine *m = w->machine;
	uint64_t fp, sp;

	if (!reg_value(s, frame_register(w, s), &fp) || !reg_value(s, m->sp, &sp) ||
	    !is_near(w, fp, sp))
		return false;
	if (m->kind == ARM)
		return read_arm_record(w, fp, sp, r);
	if (m->kind == RISCV64 || m->kind == RISCV32)
		return read_riscv_record(w, fp, r);
	r->cfa = fp + 2 * m->word;
	return read_record(w, fp, fp + m->word, r);
}

/* Sets the state after a return to `pc`. */
static enum step to_caller(const struct walk *w, struct state *s, uint64_t pc, uint64_t sp,
			   uint64_t fp)
{
	uint8_t fp_register = frame_register(w, s);

	s->known &= w->machine->kind == ARM ? 1 << w->machine->fp | 1 << THUMB_FP : 0;
	reg_set(s, fp_register, fp);
	reg_set(s, w->machine->sp, sp);
	s->cfa = sp;
	s->pc = pc;
	s->exact = s->by_record = false;
	return pc ? STEP_CALLER : STEP_END;
}

static const uint8_t *code_at(const struct walk *w, const struct spot *spot, uint64_t vaddr,
			      size_t len)
{
	struct symfile *symfile = image_symfile(&w->unwind->world->images, spot->image);

	return symfile ? symfile_code(symfile, vaddr, len) : NULL;
}

/* mov %rsp,%rbp in either encoding; on 32 bits mov %esp,%ebp, without the prefix */
static bool sets_frame_pointer(const uint8_t *code, size_t len, bool is_64bit)
{
	for (size_t i = is_64bit; i + 1 < len; i++) {
		if (is_64bit && code[i - 1] != 0x48)
			continue;
		if ((code[i] == 0x89 && code[i + 1] == 0xe5) ||
		    (code[i] == 0x8b && code[i + 1] == 0xec))
			return true;
	}
	return false;
}

/* On x86: does the function have a frame at this point? Assumes so if the code is unknown. */
static bool has_frame(const struct walk *w, const struct spot *spot, uint64_t function)
{
	uint64_t before = spot->vaddr - function;
	const uint8_t *code;

	code = code_at(w, spot, spot->vaddr, 1);
	if (code && code[0] == 0xc3) /* ret */
		return false;
	if (before > PROLOGUE_BYTES)
		before = PROLOGUE_BYTES;
	code = code_at(w, spot, function, before);
	return !code || sets_frame_pointer(code, before, w->machine->word == 8);
}

/* x86: the return address is on top of the stack, or a few words from there. */
static enum step leaf_by_stack(const struct walk *w, struct state *s, const struct spot *spot)
{
	unsigned word = w->machine->word;
	uint64_t function = walk_function(w, s->pc), fp, sp, pc;

	if (!function || !reg_value(s, w->machine->sp, &sp) || !walk_word(w, sp, &pc))
		return STEP_NONE;
	if (!reg_value(s, w->machine->fp, &fp))
		fp = 0;
	if (spot->vaddr != function && has_frame(w, spot, function))
		return STEP_NONE;
	if (walk_is_target(w, pc))
		return to_caller(w, s, pc, sp + word, fp);
	for (unsigned i = 1; i < MAX_PUSHED && walk_word(w, sp + i * word, &pc); i++) {
		if (walk_is_return(w, pc))
			return to_caller(w, s, pc, sp + (i + 1) * word, fp);
	}
	return STEP_NONE;
}

/*
 * On Arm a function can return without lr, which may then be left over from any deeper call. The code
 * usually shows this; if it does not, the call before lr must go to this function.
 */
static bool arm_link_is_live(const struct walk *w, const struct state *s, uint64_t lr,
			     uint64_t function)
{
	enum link link = link_at(w, s->pc);
	struct record r;

	if (link != LINK_UNKNOWN || walk_function(w, lr - 1) == function)
		return link == LINK_LIVE && link_is_own(w, lr, function);
	if (read_frame(w, s, &r) && walk_return(w, r.pc) == lr)
		return false;
	return m_profile_ends(w, lr) || link_call_target(w, lr) == function;
}

/*
 * The link register holds the return address up to the first call, and again after it is restored
 * at the end. In between it points into the function itself, and there is a frame. If there is a
 * frame already, but was no call yet, the frame has the same address.
 */
static enum step leaf_by_link(const struct walk *w, struct state *s, const struct spot *spot)
{
	uint64_t function = walk_function(w, s->pc), lr, fp, sp;
	struct record r;

	if (!function || !reg_value(s, w->machine->lr, &lr) || !reg_value(s, w->machine->sp, &sp))
		return STEP_NONE;
	lr = walk_return(w, lr);
	if (!lr || !is_target(w, lr))
		return STEP_NONE;
	if (!reg_value(s, frame_register(w, s), &fp))
		fp = 0;
	if (spot->vaddr == function)
		return to_caller(w, s, lr, sp, fp);
	if (w->machine->kind == ARM)
		return arm_link_is_live(w, s, lr, function) ? to_caller(w, s, lr, sp, fp)
							    : STEP_NONE;
	/* In a recursive function the caller is the function itself. */
	if (walk_function(w, lr - 1) == function)
		return link_at(w, s->pc) == LINK_LIVE && link_is_own(w, lr, function)
			       ? to_caller(w, s, lr, sp, fp)
			       : STEP_NONE;
	if ((read_frame(w, s, &r) && walk_return(w, r.pc) == lr) || link_is_target(w, s->pc, lr))
		return STEP_NONE;
	/* On RISC-V a leaf that saves only the frame pointer has it in the place of ra. */
	if ((w->machine->kind == RISCV64 || w->machine->kind == RISCV32) && read_frame(w, s, &r) &&
	    !walk_is_code(w, r.pc) && r.pc > fp && leads_up(r.pc, fp))
		return to_caller(w, s, lr, fp, r.pc);
	return to_caller(w, s, lr, sp, fp);
}

enum step fp_leaf(const struct walk *w, struct state *s)
{
	struct spot *spot = s->exact && w->cpu->whole ? walk_spot(w, s->pc) : NULL;

	if (!spot)
		return STEP_NONE;
	return w->machine->lr == NO_REG ? leaf_by_stack(w, s, spot) : leaf_by_link(w, s, spot);
}

/* On RISC-V, Linux starts a thread with the address of its function in the frame pointer. */
static bool is_start(const struct walk *w, uint64_t fp)
{
	const struct spot *spot;

	if (w->context != IP_KERNEL || (w->machine->kind != RISCV64 && w->machine->kind != RISCV32))
		return false;
	spot = walk_spot_named(w, fp);
	return spot && spot->function && spot->vaddr == spot->function;
}

/*
 * At the root the frame pointer is 0 or, where the kernel was entered from user code, still that
 * code's. In code without frame pointers the register may have any value.
 */
static bool is_root(const struct walk *w, const struct state *s, uint64_t fp)
{
	const struct spot *spot;
	uint64_t lr;

	if (fp && is_start(w, fp))
		return true;
	if (fp && (w->context != IP_KERNEL || !walk_is_user(w, fp)))
		return false;
	if (s->by_record)
		return true;
	spot = walk_spot_named(w, s->exact ? s->pc : s->pc - 1);
	if (spot && spot->label)
		return true;
	return s->exact && reg_value(s, w->machine->lr, &lr) && (!lr || walk_is_user(w, lr));
}

enum step fp_step(const struct walk *w, struct state *s)
{
	enum step step;
	struct record r;
	uint64_t fp;

	if (!reg_value(s, frame_register(w, s), &fp))
		return STEP_LOST;
	if (is_root(w, s, fp))
		return STEP_END;
	step = trap_encoded(w, s, fp);
	if (step != STEP_NONE)
		return step;
	if (!read_frame(w, s, &r))
		return STEP_LOST;
	step = trap_record(w, s, fp);
	if (step != STEP_NONE)
		return step;
	step = to_caller(w, s, walk_return(w, r.pc), r.cfa, r.next);
	s->by_record = true;
	return step;
}
