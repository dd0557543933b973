// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/packet.h"

#include <string.h>

const uint8_t *ipt_packet_find_psb(const uint8_t *at, const uint8_t *end)
{
	static const uint8_t psb[IPT_PSB_SIZE] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
						   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

	return at < end ? memmem(at, (size_t)(end - at), psb, sizeof(psb)) : NULL;
}

#ifdef HAVE_LIBIPT
#include <intel-pt.h>

/* Packets of event tracing, which libipt 2.0 does not know. */
static const struct {
	uint8_t opcode, size;
} newer[] = {
	{ 0x13, 4 },  /* CFE */
	{ 0x53, 11 }, /* EVD */
};

bool ipt_packet_available(void)
{
	return true;
}

static int read_newer(const uint8_t *at, const uint8_t *end, struct ipt_packet *packet)
{
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++) {
		if (end - at < 2 || at[0] != 2 || at[1] != newer[i].opcode)
			continue;
		*packet = (struct ipt_packet){ .kind = IPT_OTHER, .size = newer[i].size };
		return end - at >= newer[i].size;
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
	uint64_t payload = 0;

	memcpy(&payload, at + 2, size - 2);
	return payload;
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
	case ppt_pip: set(packet, IPT_PIP, p->payload.pip.cr3, 0); break;
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
