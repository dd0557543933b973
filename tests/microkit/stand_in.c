// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stand_in: runs a protection domain of target/microkit as a process of the host: stand_in NAME SHARED.... A line on
 * stdin says what happens to it, and it asks for what it needs in lines on stdout; tests/kit/microkit.py is the kernel.
 *
 * All these processes have the same program at the same addresses, and SHARED are files FILE:ADDRESS that they share, as
 * the protection domains have in the real system.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <microkit.h>

#include "domain.h"

char microkit_name[64];

/* What the linker script names in the real system: a program with one instruction, svc #0. */
const uint32_t stand_in_text[1] = { 0xd4000001 };
__asm__(".globl _text, _text_end\n.set _text, stand_in_text\n.set _text_end, stand_in_text + 4");

static seL4_Word message_registers[4];
static const uint64_t *clock_page;

/* ---- the kernel ---- */

static char *read_line(void)
{
	static char line[8192];

	if (!fgets(line, sizeof(line), stdin))
		exit(0); /* the kernel is gone: the test is over */
	return line;
}

/* Asks the kernel; the answer is one or more numbers. */
static uint64_t ask(const char *what, uint64_t a, uint64_t b)
{
	printf("%s %" PRIu64 " %" PRIu64 "\n", what, a, b);
	fflush(stdout);
	return strtoull(read_line(), NULL, 0);
}

int seL4_TCB_ReadRegisters(seL4_TCB tcb, seL4_Bool suspend, uint8_t arch_flags, seL4_Word count,
			   seL4_UserContext *registers)
{
	seL4_Word *word = (seL4_Word *)registers;
	char *at;

	if (suspend || arch_flags || count != sizeof(*registers) / sizeof(*word))
		return 1;
	printf("registers %lu 0\n", tcb);
	fflush(stdout);
	at = read_line();
	for (seL4_Word i = 0; i < count; i++)
		word[i] = strtoull(at, &at, 0);
	return seL4_NoError;
}

seL4_SchedContext_Consumed_t seL4_SchedContext_Consumed(seL4_SchedContext context)
{
	return (seL4_SchedContext_Consumed_t){ .consumed = ask("consumed", context, 0) };
}

#ifdef CONFIG_PROFILER_ENABLE
seL4_TCB_SetFlags_t seL4_TCB_SetFlags(seL4_TCB tcb, seL4_Word clear, seL4_Word set)
{
	(void)clear;
	return (seL4_TCB_SetFlags_t){ .flags = ask("flags", tcb, set) };
}
#endif

/* ---- Microkit ---- */

void microkit_dbg_puts(const char *text)
{
	fputs(text, stderr);
}

void microkit_dbg_put32(uint32_t number)
{
	fprintf(stderr, "%" PRIu32, number);
}

void microkit_notify(microkit_channel channel)
{
	ask("notify", channel, 0);
}

void microkit_irq_ack(microkit_channel channel)
{
	ask("ack", channel, 0);
}

microkit_msginfo microkit_msginfo_new(seL4_Word label, uint16_t count)
{
	return (microkit_msginfo){ { label << 12 | count } };
}

seL4_Word microkit_msginfo_get_label(microkit_msginfo message)
{
	return message.words[0] >> 12;
}

seL4_Word microkit_mr_get(uint8_t number)
{
	return message_registers[number & 3];
}

seL4_CPtr microkit_cspace_root_slot_to_cptr(seL4_Word slot)
{
	return BASE_USER_CAPS + slot;
}

/* ---- the machine: what the files for Arm do ---- */

uint64_t clock_now(void)
{
	return *(const volatile uint64_t *)clock_page;
}

void alarm_set(unsigned channel, uint64_t ns)
{
	ask("alarm", ns, channel);
}

void alarm_acknowledge(unsigned channel)
{
	microkit_irq_ack(channel);
}

void link_init(void)
{
}

void link_notified(unsigned channel)
{
	microkit_irq_ack(channel);
}

size_t link_send(const void *bytes, size_t size)
{
	printf("send %zu 0\n", size);
	fwrite(bytes, size, 1, stdout);
	fflush(stdout);
	return strtoull(read_line(), NULL, 0);
}

int link_receive(void)
{
	return (int)ask("receive", 0, 0) - 1;
}

#ifdef CONFIG_PROFILER_ENABLE
static const struct kscope_event stand_in_events[] = { { "cycles", KSCOPE_HARDWARE, 0, 0x11 },
						       { 0 } };
const struct kscope_pmu kscope_pmu_armv8 = { .events = stand_in_events };

static unsigned stand_in_init(void)
{
	return 1;
}

static bool stand_in_takes(unsigned counter, const struct kscope_event *event)
{
	return counter == 0 && event->raw == 0x11;
}

static void stand_in_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	(void)event;
	ask("counter", counter, period);
}

static uint32_t stand_in_overflows(void)
{
	return (uint32_t)ask("overflows", 0, 0);
}

static uint64_t stand_in_period_max(unsigned counter)
{
	(void)counter;
	return UINT32_MAX;
}

struct kscope_pmu domain_pmu = {
	.name = "stand-in",
	.init = stand_in_init,
	.takes = stand_in_takes,
	.set = stand_in_set,
	.overflows = stand_in_overflows,
	.period_max = stand_in_period_max,
};
#endif

/* ---- the process ---- */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *map_shared(char *word, size_t *size)
{
	char *colon = strrchr(word, ':');
	uintptr_t address = colon ? strtoull(colon + 1, NULL, 0) : 0;
	struct stat about;
	int fd;

	if (!colon)
		die(word);
	*colon = '\0';
	fd = open(word, O_RDWR);
	if (fd < 0 || fstat(fd, &about) != 0)
		die(word);
	*size = (size_t)about.st_size;
	if (mmap((void *)address, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		 fd, 0) != (void *)address)
		die(word);
	return (void *)address;
}

static void happen(char *line)
{
	uint64_t number[4] = { 0 };
	microkit_msginfo reply;

	sscanf(line, "%*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &number[0], &number[1],
	       &number[2], &number[3]);
	if (!strncmp(line, "notified", 8)) {
		notified((microkit_channel)number[0]);
		ask("done", 0, 0);
		return;
	}
	message_registers[0] = number[2];
	message_registers[1] = number[3];
	ask("done",
	    (uint64_t)fault((microkit_child)number[0], microkit_msginfo_new(number[1], 2), &reply),
	    0);
}

/* The first file is the clock, the second one the region of kscope. */
int main(int argc, char **argv)
{
	size_t size;

	if (argc < 4)
		return 2;
	snprintf(microkit_name, sizeof(microkit_name), "%s", argv[1]);
	clock_page = map_shared(argv[2], &size);
	kscope_region = (uintptr_t)map_shared(argv[3], &size);
	kscope_region_size = size;
	for (int i = 4; i < argc; i++)
		map_shared(argv[i], &size);
	init();
	ask("done", 0, 0);
	for (;;)
		happen(read_line());
}
