// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * managarm: the kernel-profile stream of Managarm's kernel, in words of 8 bytes: a head with the
 * number of frames and flags, then the addresses, leaf first. The first generation has only
 * addresses, one per sample. Other streams may share the port, so the reader resynchronizes.
 */
#include "base/mem.h"
#include "read/bare.h"

#define MAX_FRAMES 15
#define MAX_FLAGS 0xff
#define FLAG_NO_INTERRUPTS 1
#define RECORD_MAX (8 + 8 * MAX_FRAMES)
#define KERNEL_HALF ((uint64_t)-1 << 47)
#define CUT READER_CUT
#define PROOF 3 /* records in a row are no coincidence */

enum { SOURCE_ALL = 1, SOURCE_NO_INTERRUPTS = 2 };

struct managarm {
	struct bare bare;
	bool addresses_only; /* the first generation */
	bool second_told;    /* emitted the source of samples with interrupts off */
	uint64_t ips[MAX_FRAMES];
};

static bool head_possible(uint64_t head)
{
	return (uint32_t)head >= 1 && (uint32_t)head <= MAX_FRAMES && head >> 32 <= MAX_FLAGS;
}

/* The record's length; 0: not a record; CUT: truncated. */
static size_t parse(const uint8_t *data, size_t len)
{
	uint64_t head;
	uint32_t nr;

	if (len < 8)
		return CUT;
	head = bare_le64(data);
	nr = (uint32_t)head;
	if (!head_possible(head))
		return 0;
	for (uint32_t i = 1; i <= nr && 8 * (i + 1) <= len; i++) {
		uint64_t ip = bare_le64(data + 8 * (size_t)i);

		/* An address that is a valid head: the frame count was wrong. */
		if (!bare_canonical(ip) || head_possible(ip))
			return 0;
	}
	return len < 8 + 8 * (size_t)nr ? CUT : 8 + 8 * (size_t)nr;
}

/* First generation: nearly all words are kernel addresses, and the first is not a head. */
static bool looks_like_addresses(const uint8_t *data, size_t len)
{
	size_t kernel = 0, words = len / 8;

	if (!words || parse(data, len))
		return false;
	for (size_t i = 0; i < words; i++) {
		uint64_t word = bare_le64(data + 8 * i);

		if (!bare_canonical(word))
			return false;
		kernel += word >= KERNEL_HALF;
	}
	return kernel * 10 >= words * 9;
}

static int managarm_probe(const uint8_t *head, size_t len)
{
	unsigned records = 0, kernel = 0;

	if (looks_like_addresses(head, len))
		return len >= 128 ? 8 : 0;
	while (len) {
		size_t size = parse(head, len);

		if (!size)
			return 0;
		if (size == CUT)
			break;
		kernel += bare_le64(head + 8) >= KERNEL_HALF;
		records++;
		head += size;
		len -= size;
	}
	if (!kernel)
		return 0;
	return records > 4 ? 32 : 12 + 4 * (int)records;
}

static int managarm_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, PROOF, parse);
}

static int managarm_open(struct reader *r)
{
	struct managarm *m = r->priv;
	size_t have;
	const uint8_t *data = in_peek(r->in, 4096, &have);

	m->addresses_only = looks_like_addresses(data, have < 4096 ? have : 4096);
	return 0;
}

static bool believable(const uint8_t *data, size_t have)
{
	size_t size = parse(data, have);

	return size && size != CUT && (size == have || parse(data + size, have - size));
}

static int resync(struct reader *r, struct event *ev, const char *why)
{
	uint64_t start = in_offset(r->in);
	const uint8_t *data;
	size_t have;

	do {
		in_skip(r->in, 1);
		data = in_peek(r->in, 2 * RECORD_MAX, &have);
	} while (have && !believable(data, have));
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start, "%s",
			     have ? "invalid sample" : why);
}

static void tell(struct managarm *m, uint32_t nr, bool no_interrupts, struct event *ev)
{
	bare_sample(ev, m->ips, nr);
	if (m->ips[0] < KERNEL_HALF)
		ev->sample.context = IP_USER;
	if (no_interrupts)
		ev->sample.source = SOURCE_NO_INTERRUPTS;
}

static int next_address(struct reader *r, struct event *ev)
{
	struct managarm *m = r->priv;
	size_t have;
	const uint8_t *data = in_peek(r->in, 8, &have);
	uint64_t offset = in_offset(r->in);

	if (!have)
		return 0;
	in_skip(r->in, have < 8 ? have : 8);
	if (have < 8)
		return reader_damage(r, ev, offset, 1, have, "truncated address");
	m->ips[0] = bare_le64(data);
	if (!bare_canonical(m->ips[0]))
		return reader_damage(r, ev, offset, 1, 8, "invalid address");
	tell(m, 1, false, ev);
	return 1;
}

static void tell_second_source(struct managarm *m, struct event *ev)
{
	m->second_told = true;
	ev->kind = EVENT_SOURCE;
	ev->source = (struct event_source){
		.id = SOURCE_NO_INTERRUPTS,
		.name = "cycles-irqs-off",
		.type = SOURCE_HARDWARE,
	};
}

static int managarm_next(struct reader *r, struct event *ev)
{
	struct managarm *m = r->priv;
	const uint8_t *data;
	uint64_t head;
	size_t have, size;

	if (bare_tell(&m->bare, "cycles", ev))
		return 1;
	if (m->addresses_only)
		return next_address(r, ev);
	data = in_peek(r->in, RECORD_MAX, &have);
	if (!have)
		return 0;
	size = parse(data, have);
	if (!size || size == CUT)
		return resync(r, ev, size ? "truncated sample" : "invalid sample");
	head = bare_le64(data);
	if (head >> 32 & FLAG_NO_INTERRUPTS && !m->second_told) {
		tell_second_source(m, ev);
		return 1;
	}
	for (uint32_t i = 0; i < (uint32_t)head; i++)
		m->ips[i] = bare_le64(data + 8 + 8 * (size_t)i);
	tell(m, (uint32_t)head, head >> 32 & FLAG_NO_INTERRUPTS, ev);
	in_skip(r->in, size);
	return 1;
}

const struct reader_ops read_managarm = {
	.name = "managarm",
	.about = "Managarm kernel-profile stream, all generations",
	.probe = managarm_probe,
	.search = managarm_search,
	.options = BARE_OPTIONS(struct managarm),
	.priv_size = sizeof(struct managarm),
	.open = managarm_open,
	.next = managarm_next,
};
