// SPDX-License-Identifier: MIT
/*
 * children: the protection domains that are profiled: their registers, their memory, and which of them was running when
 * the timer interrupted.
 *
 * seL4 does not say who that was. So there are two interrupts for a sample: shortly before it, the profiler looks at all
 * children. Whoever has run since then, and does not wait, was running: an interrupted thread goes on afterwards. If there
 * are several, there was a switch from one to another, probably away from the one of the last sample, and to the one with
 * the highest priority. If nobody has run since the look, because there was no time, the last sample takes its place.
 */
#include <microkit.h>

#include "domain.h"

#define CHILDREN 64 /* of a protection domain, at most */
#define SVC 0xd4000001u

struct seen {
	uint64_t digest;  /* of its registers */
	bool ran_earlier; /* between the last sample and the look */
};
static struct seen seen[CHILDREN]; /* by id */
static int last = SYSTEM_NONE;

static bool read_registers(const struct system_child *child, seL4_UserContext *registers)
{
	return seL4_TCB_ReadRegisters(BASE_TCB_CAP + child->id, false, 0,
				      sizeof(*registers) / sizeof(seL4_Word),
				      registers) == seL4_NoError;
}

/* ---- who was running ---- */

static uint64_t digest_of(const seL4_UserContext *registers)
{
	const seL4_Word *words = (const seL4_Word *)registers;
	uint64_t digest = 14695981039346656037ull;

	for (size_t i = 0; i < sizeof(*registers) / sizeof(*words); i++)
		digest = (digest ^ words[i]) * 1099511628211ull;
	return digest;
}

/* Whether a child has run since this was last asked: the kernel says so, or its registers have changed. */
static bool has_run(const struct system_child *child, const seL4_UserContext *registers)
{
	uint64_t digest = digest_of(registers);
	bool ran = digest != seen[child->id].digest;

	seen[child->id].digest = digest;
#ifdef BASE_USER_CAPS
	if (child->time != SYSTEM_NONE) {
		seL4_CPtr cap = microkit_cspace_root_slot_to_cptr((seL4_Word)child->time);
		seL4_SchedContext_Consumed_t time = seL4_SchedContext_Consumed(cap);

		ran |= time.error == seL4_NoError && time.consumed;
	}
#endif
	return ran;
}

/* Of the linker script: this program. */
extern const char _text[], _text_end[];

static bool enters_kernel(uint64_t pc)
{
	return pc % 4 == 0 && pc >= (uintptr_t)_text && pc < (uintptr_t)_text_end &&
	       *(const uint32_t *)pc == SVC;
}

/* A thread that waits in the kernel is at the instruction by which it entered. */
static bool waits(const struct system_child *child, uint64_t pc)
{
	size_t from = 0, to = child->n_waits;

	if (!child->waits)
		return enters_kernel(pc);
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (child->waits[middle] == pc)
			return true;
		if (child->waits[middle] < pc)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

void children_look(unsigned cpu)
{
	for (unsigned i = 0; i < system_n_children; i++) {
		const struct system_child *child = &system_children[i];
		seL4_UserContext registers;

		if (child->cpu == cpu && read_registers(child, &registers))
			seen[child->id].ran_earlier = has_run(child, &registers);
	}
}

void children_begin(unsigned cpu)
{
	children_look(cpu);
	for (unsigned id = 0; id < CHILDREN; id++)
		seen[id].ran_earlier = false;
	last = SYSTEM_NONE;
}

/* Higher: more likely. 0: it was not running. */
static unsigned likelihood(unsigned i, const seL4_UserContext *registers)
{
	const struct system_child *child = &system_children[i];
	struct seen *before = &seen[child->id];
	bool ran = has_run(child, registers), earlier = before->ran_earlier;

	before->ran_earlier = false;
	if (waits(child, registers->pc) || (!ran && !earlier))
		return 0;
	return 1 + child->priority + ((int)i != last) * 256u + ran * 512u;
}

bool children_find(unsigned cpu, struct kscope_at *at, bool *doubt)
{
	unsigned best = 0;
	int found = SYSTEM_NONE;

	for (unsigned i = 0; i < system_n_children; i++) {
		seL4_UserContext registers;
		unsigned likely;

		if (system_children[i].cpu != cpu ||
		    !read_registers(&system_children[i], &registers))
			continue;
		likely = likelihood(i, &registers);
		if (likely <= best)
			continue;
		best = likely;
		found = (int)i;
		*at = (struct kscope_at){ .task = i + 1,
					  .user = true,
					  .pc = registers.pc,
					  .fp = registers.x29,
					  .sp = registers.sp,
					  .link = registers.x30 };
	}
	last = found;
	*doubt = best && best < 512;
	return found != SYSTEM_NONE;
}

bool children_at(unsigned cpu, unsigned id, struct kscope_at *at)
{
	for (unsigned i = 0; i < system_n_children; i++) {
		seL4_UserContext registers;

		if (system_children[i].cpu != cpu || system_children[i].id != id)
			continue;
		at->task = i + 1;
		at->user = true;
		if (read_registers(&system_children[i], &registers)) {
			at->sp = registers.sp;
			at->link = registers.x30;
		}
		return true;
	}
	return false;
}

/* ---- memory ---- */

bool children_read(const struct kscope_at *at, void *to, uintptr_t from, size_t size)
{
	for (unsigned i = 0; i < system_n_windows; i++) {
		const struct system_window *window = &system_windows[i];
		uint64_t offset = from - window->address;
		const volatile uint8_t *here = (const uint8_t *)(window->here + offset);

		if (window->child + 1 != at->task || from < window->address ||
		    size > window->size || offset > window->size - size)
			continue;
		for (size_t byte = 0; byte < size; byte++)
			((uint8_t *)to)[byte] = here[byte];
		return true;
	}
	return false;
}
