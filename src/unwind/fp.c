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

/*
 * No standard defines where r11 points. LLVM: to the frame pointer, with lr above it. GCC: to lr,
 * with the frame pointer below it. GCC with -mapcs-frame: to pc, with lr, sp and the frame pointer
 * below.
 */
static bool read_arm_record(const struct walk *w, uint64_t fp, struct record *r)
{
	r->cfa = fp + 8;
	if (read_record(w, fp, fp + 4, r) && leads_up(r->next, fp) && walk_is_code(w, r->pc))
		return true;
	r->cfa = fp + 4;
	if (read_record(w, fp - 4, fp, r) && leads_up(r->next, fp) && walk_is_code(w, r->pc))
		return true;
	return read_record(w, fp - 12, fp - 4, r) && leads_up(r->next, fp) &&
	       walk_is_code(w, r->pc);
}

/* The function may have saved only its caller's frame pointer: then r->pc is not an address. */
static bool read_riscv_record(const struct walk *w, uint64_t fp, struct record *r)
{
	unsigned word = w->machine->word;

	r->cfa = fp;
	return read_record(w, fp - 2 * word, fp - word, r);
}

static bool read_frame(const struct walk *w, const struct state *s, struct record *r)
{
	const struct machine *m = w->machine;
	uint64_t fp, sp;

	if (!reg_value(s, m->fp, &fp) || !reg_value(s, m->sp, &sp))
		return false;
	if ((fp < sp || fp - sp > MAX_FRAME_BYTES) && fp - w->cpu->outer_addr > w->cpu->outer_len)
		return false;
	if (m->kind == ARM)
		return read_arm_record(w, fp, r);
	if (m->kind == RISCV64 || m->kind == RISCV32)
		return read_riscv_record(w, fp, r);
	r->cfa = fp + 2 * m->word;
	return read_record(w, fp, fp + m->word, r);
}

/* Sets the state after a return to `pc`. */
static enum step to_caller(const struct walk *w, struct state *s, uint64_t pc, uint64_t sp,
			   uint64_t fp)
{
	s->known = 0;
	reg_set(s, w->machine->fp, fp);
	reg_set(s, w->machine->sp, sp);
	s->cfa = sp;
	s->pc = pc;
	s->exact = s->by_record = false;
	return pc ? STEP_CALLER : STEP_END;
}

/* Does the code before the return address end in a call? */
static bool follows_call(const uint8_t *end)
{
	return end[-5] == 0xe8 || /* call rel32; below: call through a register or memory */
	       (end[-2] == 0xff && (end[-1] & 0x38) == 0x10) ||
	       (end[-3] == 0xff && (end[-2] & 0x38) == 0x10) ||
	       (end[-6] == 0xff && (end[-5] & 0x38) == 0x10) ||
	       (end[-7] == 0xff && (end[-6] & 0x38) == 0x10);
}

static const uint8_t *code_at(const struct walk *w, const struct spot *spot, uint64_t vaddr,
			      size_t len)
{
	struct symfile *symfile = image_symfile(&w->unwind->world->images, spot->image);

	return symfile ? symfile_code(symfile, vaddr, len) : NULL;
}

bool walk_is_return(const struct walk *w, uint64_t address)
{
	const struct spot *spot = walk_spot(w, address - 1);
	const uint8_t *code = spot ? code_at(w, spot, spot->vaddr + 1 - 7, 7) : NULL;

	return code && follows_call(code + 7);
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
	if (walk_is_code(w, pc))
		return to_caller(w, s, pc, sp + word, fp);
	for (unsigned i = 1; i < MAX_PUSHED && walk_word(w, sp + i * word, &pc); i++) {
		if (walk_is_return(w, pc))
			return to_caller(w, s, pc, sp + (i + 1) * word, fp);
	}
	return STEP_NONE;
}

/* The target of the BL that ends at `end`, where bit 0 means Thumb. */
static bool arm_call_target(const uint8_t *code, uint64_t end, uint64_t *target)
{
	uint32_t word = (uint32_t)(code[0] | code[1] << 8 | code[2] << 16) | (uint32_t)code[3]
										     << 24;
	uint32_t high = word & 0xffff, low = word >> 16, sign = high >> 10 & 1, distance;

	if (!(end & 1)) {
		distance = word << 8; /* 24 bits with their sign, in words */
		*target = (uint32_t)(end - 4 + 8 + (uint32_t)((int32_t)distance >> 6));
		return (word & 0x0f000000) == 0x0b000000;
	}
	distance = sign << 24 | ((low >> 13 & 1) == sign) << 23 | ((low >> 11 & 1) == sign) << 22 |
		   (high & 0x3ff) << 12 | (low & 0x7ff) << 1;
	*target = (uint32_t)((end & ~UINT64_C(1)) + (uint32_t)((int32_t)(distance << 7) >> 7));
	if (!(low >> 12 & 1)) /* BLX, to code that is not Thumb */
		*target &= ~UINT64_C(3);
	return (high & 0xf800) == 0xf000 && (low & 0xc000) == 0xc000;
}

/*
 * On Arm a function can return without lr, which may then be left over from any deeper call. It is
 * the return address if the call before it goes to this function.
 */
static bool arm_called_from(const struct walk *w, uint64_t lr, uint64_t function)
{
	const struct spot *spot = walk_spot(w, (lr & ~UINT64_C(1)) - 4);
	const uint8_t *code = spot ? code_at(w, spot, spot->vaddr, 4) : NULL;
	uint64_t target;

	return code && arm_call_target(code, (spot->vaddr + 4) | (lr & 1), &target) &&
	       target == function;
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
	if (w->machine->kind == ARM && spot->vaddr != function && !arm_called_from(w, lr, function))
		return STEP_NONE;
	lr = walk_return(w, lr);
	if (!lr || !walk_is_code(w, lr))
		return STEP_NONE;
	if (!reg_value(s, w->machine->fp, &fp))
		fp = 0;
	if (spot->vaddr == function)
		return to_caller(w, s, lr, sp, fp);
	if (walk_function(w, lr - 1) == function)
		return STEP_NONE;
	if (read_frame(w, s, &r) && walk_return(w, r.pc) == lr)
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
	const struct machine *m = w->machine;
	enum step step;
	struct record r;
	uint64_t fp;

	if (!reg_value(s, m->fp, &fp))
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
