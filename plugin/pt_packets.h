/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pt_packets: writes Intel PT packets, as a processor would that traces user mode, with return compression and with
 * times by TSC, TMA, MTC and CYC packets. The caller provides room, and tells what the code does.
 */
#ifndef KSCOPE_PLUGIN_PT_PACKETS_H
#define KSCOPE_PLUGIN_PT_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PT_RETURNS 64	    /* the processor's stack of return addresses */
#define PT_ROOM 256	    /* bytes that one call of the functions below needs at most */
#define PT_TNT_MAX 47	    /* bits of a long TNT packet */
#define PT_PSB_PERIOD 16384 /* bytes */

struct pt_packets {
	uint8_t *at; /* where the next byte goes */
	uint64_t last_ip;
	uint64_t tnt; /* the newest bit is the lowest */
	unsigned nr_tnt;
	uint64_t returns[PT_RETURNS];
	unsigned nr_returns, top; /* top: of the next one, modulo PT_RETURNS */
	uint64_t tsc, mtc;	  /* the last ones that were written */
	unsigned nr_psb;
	bool on; /* between PGE and PGD */
};

/* The synchronization point: what a decoder needs to begin here, at ip. */
void pt_psb(struct pt_packets *p, uint64_t ip, uint64_t tsc);
/* The trace begins at ip, and ends at a system call, or elsewhere. */
void pt_begin(struct pt_packets *p, uint64_t ip, uint64_t tsc);
void pt_end_at_call(struct pt_packets *p, uint64_t tsc);
void pt_end_at(struct pt_packets *p, uint64_t ip, uint64_t tsc);
/* Time has passed. */
void pt_time(struct pt_packets *p, uint64_t tsc);

void pt_flush_tnt(struct pt_packets *p);
/* A jump or a call to an address that is not in the code. */
void pt_go(struct pt_packets *p, uint64_t ip);
/* A return. */
void pt_return(struct pt_packets *p, uint64_t ip);

/* A conditional jump. */
static inline void pt_condition(struct pt_packets *p, bool taken)
{
	p->tnt = p->tnt << 1 | taken;
	if (++p->nr_tnt == PT_TNT_MAX)
		pt_flush_tnt(p);
}

/* Any call that is not to the next instruction: where it returns to. */
static inline void pt_call(struct pt_packets *p, uint64_t next)
{
	p->returns[p->top++ % PT_RETURNS] = next;
	p->nr_returns += p->nr_returns < PT_RETURNS;
}

#endif
