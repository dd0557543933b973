// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpoprofile: the profile stream of Akaros before kpdata, words of 64 bits:
 *
 *	0xee01 << 48 | core << 16 | n,  time in ns,  n addresses, leaf first
 *	address,  time in ns		a sample that was written to the file by hand
 *
 * There are no processes, no maps and no end of a record but its count. Blocks were flushed a core
 * at a time, and the kernel itself overwrote the ends of some; then the next descriptor is where it
 * goes on. An address tells by its upper half whether it is of the kernel. All of it belongs to
 * pid 0, named akaros: which process an address is of nothing tells.
 *
 * Samples come in the order of the file: nothing in it (no map, no name) depends on the order.
 */
#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "model/source.h"
#include "read/bare.h"

#define MAX_FRAMES 16 /* of the kernel that wrote it */
#define ENOUGH_RECORDS 16

struct kpoprofile {
	const char *event_name; /* --event-name; NULL: not given */
	unsigned told;
	uint64_t ips[MAX_FRAMES];
};

static uint64_t word(const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* Bits that are always zero, and a count that was possible: 48 bits of certainty. */
static bool is_descriptor(uint64_t value)
{
	return value >> 32 == 0xee010000 && (value & 0xffff) <= MAX_FRAMES;
}

/* An address that code can have: the upper or the lower half, and not just a small number. */
static bool is_address(uint64_t value)
{
	return value >> 47 == 0x1ffff || (value >> 47 == 0 && value >= 4096);
}

/* By hand: an address and a time that is a multiple of 16, with something sensible after them. */
static bool is_pair(const uint8_t *data, size_t have)
{
	uint64_t after = have >= 24 ? word(data + 16) : 0;

	return have >= 16 && is_address(word(data)) && !(data[8] & 15) && !(data[15] & 0x80) &&
	       (have < 24 || is_descriptor(after) || is_address(after));
}

static size_t record_size(uint64_t descriptor)
{
	return 16 + 8 * (size_t)(descriptor & 0xffff);
}

static int kpoprofile_probe(const uint8_t *head, size_t len)
{
	int nr = 0;

	for (size_t at = 0; at + 8 <= len && nr < ENOUGH_RECORDS; nr++) {
		uint64_t value = word(head + at);

		if (!is_descriptor(value))
			return nr ? 32 : 0;
		at += record_size(value);
	}
	return nr ? 32 + 4 * nr : 0;
}

static bool tell(struct reader *r, struct event *ev)
{
	struct kpoprofile *p = r->priv;

	switch (p->told) {
	case 0:
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ "osrelease", "Akaros" };
		break;
	case 1:
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ "arch", "x86_64" };
		break;
	case 2:
		ev->kind = EVENT_SOURCE;
		ev->source.id = 1;
		ev->source.unit = "ticks";
		source_from_name(&ev->source, p->event_name ? p->event_name : "timer");
		break;
	case 3: bare_map(ev); break;
	case 4:
		ev->kind = EVENT_COMM;
		ev->pid = ev->tid = 0;
		ev->comm.comm = "akaros";
		break;
	default: return false;
	}
	p->told++;
	return true;
}

static void sample(struct kpoprofile *p, struct event *ev, uint32_t nr, uint64_t time)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (ip_is_marker(p->ips[i]))
			p->ips[i] = 0;
	}
	ev->kind = EVENT_SAMPLE;
	ev->time = time;
	ev->pid = ev->tid = 0;
	ev->sample = (struct event_sample){
		.ips = p->ips,
		.nr = nr,
		.source = 1,
		.weight = 1,
		.context = p->ips[0] >> 63 ? IP_KERNEL : IP_USER,
	};
}

/* Some kernels wrote records without an address: a sample of nowhere. */
static void traced(struct kpoprofile *p, const uint8_t *data, uint64_t descriptor, struct event *ev)
{
	uint32_t nr = descriptor & 0xffff;
	uint64_t time = word(data + 8);

	ev->cpu = descriptor >> 16 & 0xffff;
	if (!nr) {
		ev->kind = EVENT_LOST;
		ev->time = time;
		ev->lost = (struct event_lost){ .count = 1, .bytes = 16 };
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		p->ips[i] = word(data + 16 + 8 * i);
	sample(p, ev, nr, time);
}

/*
 * The number of bytes up to the next descriptor, or to the end. Words are looked for at every byte:
 * what was lost need not have been a multiple of 8.
 */
static uint64_t skip_damage(struct in *in)
{
	uint64_t skipped = 0;
	size_t have;

	for (;;) {
		const uint8_t *data = in_peek(in, 8, &have);
		size_t at = skipped ? 0 : 1;

		while (at + 8 <= have && !is_descriptor(word(data + at)))
			at++;
		if (have < 8 || at > have)
			at = have;
		in_skip(in, at);
		skipped += at;
		if (have < 8 || at + 8 <= have)
			return skipped;
	}
}

static int kpoprofile_next(struct reader *r, struct event *ev)
{
	struct kpoprofile *p = r->priv;
	uint64_t offset = in_offset(r->in), first, skipped;
	const char *why = "neither a record nor an address";
	const uint8_t *data;
	size_t have;

	if (tell(r, ev))
		return 1;
	data = in_peek(r->in, record_size(MAX_FRAMES), &have);
	if (!have)
		return 0;
	first = have >= 8 ? word(data) : 0;
	if (is_descriptor(first) && have >= record_size(first)) {
		traced(p, data, first, ev);
		in_skip(r->in, record_size(first));
		return 1;
	}
	if (is_pair(data, have)) {
		p->ips[0] = first;
		sample(p, ev, 1, word(data + 8));
		in_skip(r->in, 16);
		return 1;
	}
	if (is_descriptor(first) || have < 8)
		why = "the file ends inside a record";
	skipped = skip_damage(r->in);
	return reader_damage(r, ev, offset, 1, skipped, "%s; %" PRIu64 " bytes skipped", why,
			     skipped);
}

const struct reader_ops read_kpoprofile = {
	.name = "kpoprofile",
	.about = "Akaros profiles before kpdata",
	.probe = kpoprofile_probe,
	.options = OPTION_USES({ &event_name_table, offsetof(struct kpoprofile, event_name) }),
	.priv_size = sizeof(struct kpoprofile),
	.next = kpoprofile_next,
};
