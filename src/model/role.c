// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/role.h"

#include <string.h>

/* Names begin with these: */
static const char *const idle_tasks[] = { "idle", "swapper", NULL };
static const char *const idle_functions[] = { "[idle]",	       "idle_thread", "default_idle",
					      "arch_cpu_idle", "cpu_idle",    "native_safe_halt",
					      "cpu_halt",      "intel_idle",  NULL };
static const char *const interrupt_functions[] = { "asm_sysvec_",
						   "sysvec_",
						   "asm_common_interrupt",
						   "common_interrupt",
						   "apic_timer_inter",
						   "smp_apic_timer_inter",
						   "do_IRQ",
						   "do_irq",
						   "__do_softirq",
						   "do_softirq",
						   "handle_softirqs",
						   "el1_irq",
						   "el0_irq",
						   "el1h_64_irq",
						   "el0t_64_irq",
						   "el1_interrupt",
						   "el0_interrupt",
						   "gic_handle_irq",
						   "handle_riscv_irq",
						   "handle_irq",
						   "handle_interrupt",
						   "interrupt_handler",
						   "handle_timer_inter",
						   "timer_interrupt",
						   "irq_handler",
						   "irq_entry",
						   "isr_",
						   NULL };

static bool starts_with_any(const char *text, const char *const *words)
{
	for (; *words; words++) {
		if (!strncmp(text, *words, strlen(*words)))
			return true;
	}
	return false;
}

bool role_idle_task(const char *comm)
{
	return starts_with_any(comm, idle_tasks);
}

bool role_idle(const char *function)
{
	return starts_with_any(function, idle_functions);
}

bool role_interrupt(const char *function)
{
	return starts_with_any(function, interrupt_functions);
}
