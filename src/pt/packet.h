/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packet: the packets of Intel PT other than those that come all the time (pt/flow decodes these itself).
 * libipt reads them.
 */
#ifndef KSCOPE_PT_PACKET_H
#define KSCOPE_PT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ipt_packet_kind {
	IPT_PSB,
	IPT_PSBEND,
	IPT_MODE_EXEC, /* value: 64-bit code */
	IPT_MODE_TSX,  /* value: a transaction was aborted */
	IPT_CBR,       /* value: the ratio of the core's clock and the bus clock */
	IPT_TMA,       /* value: CTC, other: fast counter */
	IPT_OVF,
	IPT_STOP,
	IPT_PIP, /* value: CR3, other: it is that of a guest */
	/* value: the payload */
	IPT_PTW,    /* what a program wrote */
	IPT_EXSTOP, /* the core's clock stopped */
	IPT_MWAIT,
	IPT_PWRE, /* the core enters a C-state */
	IPT_PWRX, /* and leaves it */
	/* value: see each */
	IPT_CFE,   /* the type of an event, such as an interrupt */
	IPT_TRIG,  /* a trigger fired */
	IPT_BBP,   /* a block of items begins: bytes of an item */
	IPT_BEP,   /* it ends */
	IPT_OTHER, /* nothing for kscope */
};

struct ipt_packet {
	enum ipt_packet_kind kind;
	size_t size;
	uint64_t value, other;
	bool ip; /* a FUP packet that follows tells where it happened */
};

#define IPT_LONGEST 16	/* bytes of a packet */
#define IPT_PSB_SIZE 16 /* the first byte of a PSB packet, and every other one, is 2 */

/* False: kscope was built without libipt. */
bool ipt_packet_available(void);
/* 1: a packet; 0: the bytes end inside it; -1: there is no such packet. */
int ipt_packet_read(const uint8_t *at, const uint8_t *end, struct ipt_packet *packet);
/* The first PSB packet; NULL: none. */
const uint8_t *ipt_packet_find_psb(const uint8_t *at, const uint8_t *end);

#endif
