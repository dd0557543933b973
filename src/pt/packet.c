// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/packet.h"

#include <string.h>

#include "base/le.h"

const uint8_t *ipt_packet_find_psb(const uint8_t *at, const uint8_t *end)
{
	static const uint8_t psb[IPT_PSB_SIZE] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
						   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

	return at < end ? memmem(at, (size_t)(end - at), psb, sizeof(psb)) : NULL;
}

#ifdef HAVE_LIBIPT
#include <intel-pt.h>

/* Packets that libipt 2.0 does not know, or refuses. `ip`: the bit in byte `at` that announces a FUP packet. */
static const struct {
	uint8_t first, second; /* second 0: any */
	uint8_t size, kind, at, ip;
} newer[] = {
	{ 0x02, 0x13, 4, IPT_CFE, 2, 0x80 },
	{ 0x02, 0x53, 11, IPT_OTHER, 0, 0 }, /* EVD */
	{ 0x02, 0x63, 3, IPT_BBP, 0, 0 },
	{ 0x02, 0x33, 2, IPT_BEP, 0, 0 },
	{ 0x02, 0xb3, 2, IPT_BEP, 1, 0x80 },
	{ 0xd9, 0, 3, IPT_TRIG, 1, 0x80 },
	/* TMA, damaged: erratum SKZ84, in a virtual machine with a clock of its own */
	{ 0x02, 0x73, 7, IPT_OTHER, 0, 0 },
};

#define TRIG_COUNT 0x40 /* two more bytes */
#define BBP_SMALL 0x80	/* items have 4 bytes, not 8 */

bool ipt_packet_available(void)
{
	return true;
}

/* What differs from one packet of a kind to the other. */
static void complete_newer(const uint8_t *at, struct ipt_packet *packet)
{
	switch (packet->kind) {
	case IPT_TRIG: packet->size += at[1] & TRIG_COUNT ? 2 : 0; break;
	case IPT_BBP: packet->value = at[2] & BBP_SMALL ? 4 : 8; break;
	case IPT_CFE: packet->value = at[2] & 0x1f; break;
	default: break;
	}
}

static int read_newer(const uint8_t *at, const uint8_t *end, struct ipt_packet *packet)
{
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++) {
		if (at[0] != newer[i].first || (newer[i].second && end - at < 2) ||
		    (newer[i].second && at[1] != newer[i].second))
			continue;
		if (end - at < newer[i].size)
			return 0;
		*packet = (struct ipt_packet){ .kind = newer[i].kind,
					       .size = newer[i].size,
					       .ip = at[newer[i].at] & newer[i].ip };
		complete_newer(at, packet);
		return (size_t)(end - at) >= packet->size;
	}
	return -1;
}

static void take_mode(const struct pt_packet_mode *mode, struct ipt_packet *packet)
{
	packet->kind = IPT_OTHER;
	if (mode->leaf == pt_mol_exec) {
		packet->kind = IPT_MODE_EXEC;
		packet->value = pt_get_exec_mode(&mode->bits.exec) == ptem_64bit;
	} else if (mode->leaf == pt_mol_tsx) {
		packet->kind = IPT_MODE_TSX;
		packet->value = mode->bits.tsx.abrt;
	}
}

static void set(struct ipt_packet *packet, enum ipt_packet_kind kind, uint64_t value,
		uint64_t other)
{
	packet->kind = kind;
	packet->value = value;
	packet->other = other;
}

/* All bytes of a packet after its two bytes of opcode. */
static uint64_t payload_of(const uint8_t *at, size_t size)
{
	return le_at(at + 2, size - 2);
}

static void translate(const struct pt_packet *p, const uint8_t *at, struct ipt_packet *packet)
{
	switch (p->type) {
	case ppt_psb: packet->kind = IPT_PSB; break;
	case ppt_psbend: packet->kind = IPT_PSBEND; break;
	case ppt_ovf: packet->kind = IPT_OVF; break;
	case ppt_stop: packet->kind = IPT_STOP; break;
	case ppt_mode: take_mode(&p->payload.mode, packet); break;
	case ppt_cbr: set(packet, IPT_CBR, p->payload.cbr.ratio, 0); break;
	case ppt_tma: set(packet, IPT_TMA, p->payload.tma.ctc, p->payload.tma.fc); break;
	case ppt_pip: set(packet, IPT_PIP, p->payload.pip.cr3, p->payload.pip.nr); break;
	case ppt_ptw:
		set(packet, IPT_PTW, p->payload.ptw.payload, 0);
		packet->ip = p->payload.ptw.ip;
		break;
	case ppt_exstop:
		packet->kind = IPT_EXSTOP;
		packet->ip = p->payload.exstop.ip;
		break;
	case ppt_mwait:
		set(packet, IPT_MWAIT, payload_of(at, p->size), 0);
		packet->ip = true;
		break;
	case ppt_pwre: set(packet, IPT_PWRE, payload_of(at, p->size), 0); break;
	case ppt_pwrx: set(packet, IPT_PWRX, payload_of(at, p->size), 0); break;
	default: packet->kind = IPT_OTHER; break;
	}
}

int ipt_packet_read(const uint8_t *at, const uint8_t *end, struct ipt_packet *packet)
{
	struct pt_packet_decoder *decoder;
	struct pt_config config;
	struct pt_packet p;
	int size;

	pt_config_init(&config);
	/* libipt only reads it. */
	config.begin = (uint8_t *)(uintptr_t)at;
	config.end = (uint8_t *)(uintptr_t)(end - at < IPT_LONGEST ? end : at + IPT_LONGEST);
	decoder = pt_pkt_alloc_decoder(&config);
	if (!decoder)
		return -1;
	size = pt_pkt_sync_set(decoder, 0);
	if (size >= 0)
		size = pt_pkt_next(decoder, &p, sizeof(p));
	pt_pkt_free_decoder(decoder);
	if (size == -pte_eos)
		return end - at < IPT_LONGEST ? 0 : -1;
	if (size <= 0)
		return read_newer(at, end, packet);
	*packet = (struct ipt_packet){ .size = (size_t)size };
	translate(&p, at, packet);
	return 1;
}
#else
bool ipt_packet_available(void)
{
	return false;
}

int ipt_packet_read(const uint8_t *at, const uint8_t *end, struct ipt_packet *packet)
{
	(void)at, (void)end, (void)packet;
	return -1;
}
#endif
