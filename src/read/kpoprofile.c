// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpoprofile: reads the profile stream that Akaros had before kpdata, in words of 64 bits:
 *
 *	0xee01 << 48 | core << 16 | n,  time in ns,  n addresses, leaf first
 *	address,  time in ns		a sample that a user wrote to the file
 *
 * The stream has no processes and no maps, and only the count marks the end of a record. The kernel
 * flushed blocks one core at a time and overwrote the end of some; reading resumes at the next
 * descriptor. The upper half of the address space is the kernel's. The process is unknown, so all
 * samples belong to pid 0, named akaros.
 *
 * Samples are emitted in file order, because no other record depends on their order.
 */
#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "model/source.h"
#include "read/bare.h"

#define MAX_FRAMES 16 /* limit of the kernel that wrote the file */
#define ENOUGH_RECORDS 16

struct kpoprofile {
	const char *event_name; /* --event-name; NULL: not given */
	unsigned preamble;	/* number of preamble events emitted */
	uint64_t ips[MAX_FRAMES];
};

static uint64_t word(const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* Checks a fixed pattern, zero bits and the range of the count: 48 bits in total. */
static bool is_descriptor(uint64_t value)
{
	return value >> 32 == 0xee010000 && (value & 0xffff) <= MAX_FRAMES;
}

/* A canonical address that is not a small number. */
static bool is_address(uint64_t value)
{
	return value >> 47 == 0x1ffff || (value >> 47 == 0 && value >= 4096);
}

/* A user's sample: an address and a time that is a multiple of 16, followed by a valid word. */
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

static size_t search_size(const uint8_t *data, size_t len)
{
	size_t size;

	if (len < 8)
		return READER_CUT;
	if (!is_descriptor(word(data)))
		return 0;
	size = record_size(word(data));
	return size > len ? READER_CUT : size;
}

static int kpoprofile_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, 2, search_size);
}

static bool preamble_event(struct reader *r, struct event *ev)
{
	struct kpoprofile *p = r->priv;

	switch (p->preamble) {
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
	p->preamble++;
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

/* Some kernels wrote records without an address: these count as lost. */
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
 * Skips to the next descriptor, or to the end, and returns the number of bytes. Checks every byte
 * offset, since the number of lost bytes need not be a multiple of 8.
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
	const char *why = "expected a record or an address";
	const uint8_t *data;
	size_t have;

	if (preamble_event(r, ev))
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
	return reader_damage(r, ev, offset, 1, skipped, "%s; skipped %" PRIu64 " byte%s", why,
			     skipped, skipped == 1 ? "" : "s");
}

const struct reader_ops read_kpoprofile = {
	.name = "kpoprofile",
	.about = "Akaros profile stream before kpdata",
	.probe = kpoprofile_probe,
	.search = kpoprofile_search,
	.options = OPTION_USES({ &event_name_table, offsetof(struct kpoprofile, event_name) }),
	.priv_size = sizeof(struct kpoprofile),
	.next = kpoprofile_next,
};
