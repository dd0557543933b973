/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * microkit.h: stands in for the header of the seL4 Microkit SDK: what target/microkit uses of Microkit and seL4, with
 * the same names, types and numbers. Without an SDK, the tests compile against it: for AArch64, where stand_in_arm.c has
 * the functions, and for the host, where stand_in.c has them.
 */
#ifndef STAND_IN_MICROKIT_H
#define STAND_IN_MICROKIT_H

#include <stdint.h>

#include "sel4/config.h"

typedef unsigned long seL4_Word;
typedef seL4_Word seL4_CPtr;
typedef seL4_CPtr seL4_TCB;
typedef seL4_CPtr seL4_SchedContext;
typedef int8_t seL4_Bool;
#define seL4_True 1
#define seL4_False 0
typedef enum { seL4_NoError } seL4_Error;

typedef struct {
	seL4_Word pc, sp, spsr;
	seL4_Word x0, x1, x2, x3, x4, x5, x6, x7, x8, x16, x17, x18, x29, x30;
	seL4_Word x9, x10, x11, x12, x13, x14, x15;
	seL4_Word x19, x20, x21, x22, x23, x24, x25, x26, x27, x28;
	seL4_Word tpidr_el0, tpidrro_el0;
} seL4_UserContext;

int seL4_TCB_ReadRegisters(seL4_TCB tcb, seL4_Bool suspend, uint8_t arch_flags, seL4_Word count,
			   seL4_UserContext *registers);

typedef struct {
	int error;
	uint64_t consumed;
} seL4_SchedContext_Consumed_t;
seL4_SchedContext_Consumed_t seL4_SchedContext_Consumed(seL4_SchedContext context);

/* A kernel with PMU faults */
#ifdef CONFIG_PROFILER_ENABLE
enum { seL4_Fault_PMUEvent = 10 };
enum { seL4_PMUEvent_PC, seL4_PMUEvent_FP };
enum { seL4_TCBFlag_profile = 2 };
typedef struct {
	int error;
	seL4_Word flags;
} seL4_TCB_SetFlags_t;
seL4_TCB_SetFlags_t seL4_TCB_SetFlags(seL4_TCB tcb, seL4_Word clear, seL4_Word set);
#endif

typedef unsigned int microkit_channel;
typedef unsigned int microkit_child;
typedef struct {
	seL4_Word words[1];
} seL4_MessageInfo_t;
typedef seL4_MessageInfo_t microkit_msginfo;

#define BASE_TCB_CAP 202
#define BASE_USER_CAPS 458

/* The entry points of a protection domain */
void init(void);
void notified(microkit_channel channel);
microkit_msginfo protected(microkit_channel channel, microkit_msginfo message);
seL4_Bool fault(microkit_child child, microkit_msginfo message, microkit_msginfo *reply);

extern char microkit_name[64];
void microkit_dbg_puts(const char *text);
void microkit_dbg_put32(uint32_t number);
void microkit_notify(microkit_channel channel);
void microkit_irq_ack(microkit_channel channel);
microkit_msginfo microkit_ppcall(microkit_channel channel, microkit_msginfo message);
microkit_msginfo microkit_msginfo_new(seL4_Word label, uint16_t count);
seL4_Word microkit_msginfo_get_label(microkit_msginfo message);
void microkit_mr_set(uint8_t number, seL4_Word value);
seL4_Word microkit_mr_get(uint8_t number);
seL4_CPtr microkit_cspace_root_slot_to_cptr(seL4_Word slot);

#endif
