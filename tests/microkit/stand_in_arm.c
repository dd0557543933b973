// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stand_in_arm: stands in for libmicrokit, so that the programs of target/microkit can be linked for AArch64. Nobody runs
 * them: what counts are their symbols, and that they have system calls.
 */
#include <microkit.h>

char microkit_name[64];

static seL4_Word enter_kernel(seL4_Word number)
{
	register seL4_Word x0 __asm__("x0") = number;

	__asm__ volatile("svc #0" : "+r"(x0)::"memory");
	return x0;
}

int seL4_TCB_ReadRegisters(seL4_TCB tcb, seL4_Bool suspend, uint8_t arch_flags, seL4_Word count,
			   seL4_UserContext *registers)
{
	registers->pc = tcb + (seL4_Word)suspend + arch_flags + count;
	return (int)enter_kernel(1);
}

seL4_SchedContext_Consumed_t seL4_SchedContext_Consumed(seL4_SchedContext context)
{
	return (seL4_SchedContext_Consumed_t){ .consumed = enter_kernel(context) };
}

#ifdef CONFIG_PROFILER_ENABLE
seL4_TCB_SetFlags_t seL4_TCB_SetFlags(seL4_TCB tcb, seL4_Word clear, seL4_Word set)
{
	return (seL4_TCB_SetFlags_t){ .flags = enter_kernel(tcb + clear + set) };
}
#endif

void microkit_dbg_puts(const char *text)
{
	enter_kernel((seL4_Word)*text);
}

void microkit_dbg_put32(uint32_t number)
{
	enter_kernel(number);
}

void microkit_notify(microkit_channel channel)
{
	enter_kernel(channel);
}

void microkit_irq_ack(microkit_channel channel)
{
	enter_kernel(channel);
}

microkit_msginfo microkit_msginfo_new(seL4_Word label, uint16_t count)
{
	return (microkit_msginfo){ { label << 12 | count } };
}

seL4_Word microkit_msginfo_get_label(microkit_msginfo message)
{
	return message.words[0] >> 12;
}

microkit_msginfo microkit_ppcall(microkit_channel channel, microkit_msginfo message)
{
	message.words[0] = enter_kernel(channel);
	return message;
}

static seL4_Word message_registers[4];

void microkit_mr_set(uint8_t number, seL4_Word value)
{
	message_registers[number & 3] = value;
}

seL4_Word microkit_mr_get(uint8_t number)
{
	return message_registers[number & 3];
}

seL4_CPtr microkit_cspace_root_slot_to_cptr(seL4_Word slot)
{
	return BASE_USER_CAPS + slot;
}

__attribute__((weak)) microkit_msginfo protected(microkit_channel channel, microkit_msginfo message)
{
	(void)channel;
	return message;
}

__attribute__((weak)) seL4_Bool fault(microkit_child child, microkit_msginfo message,
				      microkit_msginfo *reply)
{
	(void)child;
	*reply = message;
	return seL4_False;
}

int main(void);
int main(void)
{
	init();
	for (;;) {
		microkit_msginfo message = { { enter_kernel(0) } }, reply;

		notified((microkit_channel)message.words[0]);
		protected(0, message);
		fault(0, message, &reply);
	}
}

/* Weak: programs may have their own. */
__asm__(".section .text.start, \"ax\"\n.weak _start\n_start:\n\tb main\n.text");
