// SPDX-License-Identifier: GPL-2.0-or-later
/* See pt_packets.h, and the chapter on Intel PT in Intel's manual (volume 3). */
#include "pt_packets.h"

#include <string.h>

#include "wire/emulate.h"

/* After a PSB, an address is whole. A processor takes the last one for 0, but perf 6.1 keeps it. */
#define ANY_IP UINT64_MAX

enum { IP_TIP = 0x0d, IP_PGE = 0x11, IP_PGD = 0x01, IP_FUP = 0x1d };

static void put(struct pt_packets *p, uint64_t value, size_t bytes)
{
	memcpy(p->at, &value, bytes); /* the host is little endian */
	p->at += bytes;
}

/* The highest bit says where the packet's bits begin. */
static void put_short_tnt(struct pt_packets *p, uint64_t bits, unsigned nr)
{
	put(p, (1u << nr | bits) << 1, 1);
}

static void put_long_tnt(struct pt_packets *p, uint64_t bits, unsigned nr)
{
	put(p, 0xa302, 2);
	put(p, (uint64_t)1 << nr | bits, 6);
}

/* A processor may write either kind. Both have to work, so each has its turn. */
void pt_flush_tnt(struct pt_packets *p)
{
	uint64_t bits = p->tnt & (((uint64_t)1 << p->nr_tnt) - 1);

	if (p->nr_tnt > 6 && p->nr_psb % 2) {
		put_long_tnt(p, bits, p->nr_tnt);
		p->nr_tnt = 0;
	}
	while (p->nr_tnt) {
		unsigned nr = p->nr_tnt < 6 ? p->nr_tnt : 6;

		p->nr_tnt -= nr;
		put_short_tnt(p, bits >> p->nr_tnt & ((1u << nr) - 1), nr);
	}
	p->tnt = 0;
}

/* The fewest bytes from which a decoder that knows the last address finds this one. */
static void put_ip(struct pt_packets *p, uint8_t opcode, uint64_t ip)
{
	unsigned mode = 6, bytes = 8;

	if (!((ip ^ p->last_ip) >> 16))
		mode = 1, bytes = 2;
	else if (!((ip ^ p->last_ip) >> 32))
		mode = 2, bytes = 4;
	else if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
		mode = 3, bytes = 6;
	put(p, opcode | mode << 5, 1);
	put(p, ip, bytes);
	p->last_ip = ip;
}

static void forget_returns(struct pt_packets *p)
{
	p->nr_returns = 0;
}

static uint64_t crystal(uint64_t tsc)
{
	return tsc / EMULATE_TSC_RATIO;
}

/* Cycles since the last such packet. */
static void put_cyc(struct pt_packets *p, uint64_t cycles)
{
	put(p, 3 | (cycles & 0x1f) << 3 | (uint64_t)(cycles > 0x1f) << 2, 1);
	for (cycles >>= 5; cycles; cycles >>= 7)
		put(p, (cycles & 0x7f) << 1 | (cycles > 0x7f), 1);
}

static void put_tsc(struct pt_packets *p, uint64_t tsc)
{
	put(p, 0x19, 1);
	put(p, tsc, 7);
	p->tsc = tsc;
	p->mtc = crystal(tsc) >> EMULATE_MTC_SHIFT;
}

/* The crystal's counter at the last TSC, and the ticks of the TSC since it changed. */
static void put_tma(struct pt_packets *p)
{
	put(p, 0x7302, 2);
	put(p, crystal(p->tsc), 2);
	put(p, 0, 1);
	put(p, p->tsc % EMULATE_TSC_RATIO, 2);
}

static void put_cbr(struct pt_packets *p)
{
	put(p, 0x0302, 2);
	put(p, EMULATE_CBR, 2);
}

static void put_mode(struct pt_packets *p)
{
	put(p, 0x0199, 2); /* 64 bits */
}

void pt_time(struct pt_packets *p, uint64_t tsc)
{
	uint64_t mtc = crystal(tsc) >> EMULATE_MTC_SHIFT;

	if (tsc <= p->tsc)
		return;
	pt_flush_tnt(p);
	if (mtc - p->mtc > 0x80) { /* its 8 bits do not tell */
		put_tsc(p, tsc);
		put_tma(p);
		return;
	}
	put_cyc(p, tsc - p->tsc);
	p->tsc = tsc;
	if (mtc != p->mtc) {
		put(p, 0x59 | (mtc & 0xff) << 8, 2);
		p->mtc = mtc;
	}
}

void pt_psb(struct pt_packets *p, uint64_t ip, uint64_t tsc)
{
	pt_flush_tnt(p);
	for (int i = 0; i < 8; i++)
		put(p, 0x8202, 2);
	p->nr_psb++;
	p->last_ip = ANY_IP;
	forget_returns(p);
	put_tsc(p, tsc > p->tsc ? tsc : p->tsc);
	put_tma(p);
	put_cbr(p);
	put_mode(p);
	if (p->on)
		put_ip(p, IP_FUP, ip);
	put(p, 0x2302, 2); /* its end */
}

void pt_begin(struct pt_packets *p, uint64_t ip, uint64_t tsc)
{
	pt_time(p, tsc);
	put_mode(p);
	put_ip(p, IP_PGE, ip);
	forget_returns(p);
	p->on = true;
}

static void end(struct pt_packets *p)
{
	put(p, IP_PGD, 1); /* the address is not in user mode */
	forget_returns(p);
	p->on = false;
}

void pt_end_at_call(struct pt_packets *p, uint64_t tsc)
{
	pt_flush_tnt(p);
	pt_time(p, tsc);
	end(p);
}

void pt_end_at(struct pt_packets *p, uint64_t ip, uint64_t tsc)
{
	pt_flush_tnt(p);
	pt_time(p, tsc);
	put_ip(p, IP_FUP, ip);
	end(p);
}

void pt_go(struct pt_packets *p, uint64_t ip)
{
	pt_flush_tnt(p);
	put_ip(p, IP_TIP, ip);
}

/*
 * The processor writes one bit for a return to where its stack says. perf takes an address off its stack for
 * every return, libipt only for one that was a bit: so the stack is empty after the others.
 */
void pt_return(struct pt_packets *p, uint64_t ip)
{
	if (p->nr_returns && p->returns[(p->top - 1) % PT_RETURNS] == ip) {
		p->nr_returns--;
		p->top--;
		pt_condition(p, true);
		return;
	}
	pt_go(p, ip);
	forget_returns(p);
}
