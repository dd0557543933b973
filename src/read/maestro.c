// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maestro: raw data of Maestro's QEMU plugin kern-profile. A record is a byte n, then n addresses
 * of 8 bytes, leaf first. There is no magic, no time and no cpu, and nothing separates kernel from
 * user mode. The plugin's frame pointer walk runs through interrupts and past the root, so a chain
 * may hold several stacks and end in garbage: pass/split splits it once symbols are known.
 */
#include "base/mem.h"
#include "read/bare.h"

#define MAX_FRAMES 64
#define RECORD_MAX (1 + 8 * MAX_FRAMES)
#define CHAIN_PROOF 4 /* valid records in a row that end a search after damage */
#define LOWEST_PC 0x1000

struct maestro {
	struct bare bare;
	uint64_t ips[MAX_FRAMES];
	bool cut; /* the last record is truncated; report that after its sample */
	uint64_t cut_at;
	size_t cut_bytes;
};

/* The first address is the executed instruction: it is valid even if the rest is garbage. */
static bool record_plausible(const uint8_t *data, size_t len)
{
	uint64_t pc;

	if (data[0] < 1 || data[0] > MAX_FRAMES)
		return false;
	if (len < 9)
		return true;
	pc = bare_le64(data + 1);
	return pc >= LOWEST_PC && bare_canonical(pc);
}

/*
 * Counts consecutive records, up to `most`; 0 if any of them is invalid. *left: the bytes of a
 * truncated record at the end.
 */
static unsigned walk(const uint8_t *data, size_t len, unsigned most, size_t *left)
{
	unsigned nr = 0;

	for (*left = 0; len && nr < most; nr++) {
		size_t size = 1 + 8 * (size_t)data[0];

		if (!record_plausible(data, len))
			return 0;
		if (size > len) {
			*left = len;
			break;
		}
		data += size;
		len -= size;
	}
	return nr;
}

/* Three bytes in four cannot start a record, and most words are not addresses: some evidence. */
static int maestro_probe(const uint8_t *head, size_t len)
{
	size_t left;
	unsigned nr = walk(head, len, 6, &left);

	if (nr == 0 || (nr < 3 && left))
		return 0;
	return 4 + 3 * (int)nr;
}

static size_t record_size(const uint8_t *data, size_t len)
{
	size_t size = 1 + 8 * (size_t)data[0];

	if (!record_plausible(data, len))
		return 0;
	return size > len ? READER_CUT : size;
}

static int maestro_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, CHAIN_PROOF, record_size);
}

/* Skips to several valid records in a row, or to the last ones if they end with the file. */
static int resync(struct reader *r, struct event *ev)
{
	uint64_t start = in_offset(r->in);
	uint8_t n = *in_peek(r->in, 1, &(size_t){ 0 });
	const uint8_t *data;
	size_t have, left;

	do {
		in_skip(r->in, 1);
		data = in_peek(r->in, CHAIN_PROOF * RECORD_MAX, &have);
	} while (have && (!walk(data, have, CHAIN_PROOF, &left) || left));
	if (n < 1 || n > MAX_FRAMES)
		return reader_damage(r, ev, start, 1, in_offset(r->in) - start,
				     "invalid frame count %u (expected 1 to %u)", n, MAX_FRAMES);
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start,
			     "stack starts at an invalid address");
}

/* Keeps the complete frames of a record truncated by the end of the file, as kern-profile does. */
static int maestro_cut(struct reader *r, struct event *ev, size_t have)
{
	struct maestro *m = r->priv;
	uint64_t offset = in_offset(r->in);
	size_t frames = (have - 1) / 8;

	in_skip(r->in, have);
	if (frames) {
		m->cut = true;
		m->cut_at = offset;
		m->cut_bytes = (have - 1) % 8;
		bare_sample(ev, m->ips, (uint32_t)frames);
		ev->kind = EVENT_CHAIN;
		return 1;
	}
	return reader_damage(r, ev, offset, 1, have, "truncated record");
}

static int maestro_next(struct reader *r, struct event *ev)
{
	struct maestro *m = r->priv;
	const uint8_t *data;
	size_t have, size;

	if (bare_tell(&m->bare, "cpu-clock", ev))
		return 1;
	data = in_peek(r->in, RECORD_MAX, &have);
	if (!have && m->cut) {
		m->cut = false;
		return reader_damage(r, ev, m->cut_at, 0, m->cut_bytes,
				     "truncated record; keeping its complete frames");
	}
	if (!have)
		return 0;
	if (!record_plausible(data, have))
		return resync(r, ev);
	size = 1 + 8 * (size_t)data[0];
	for (size_t i = 0; i < data[0] && 9 + 8 * i <= have; i++)
		m->ips[i] = bare_le64(data + 1 + 8 * i);
	if (size > have)
		return maestro_cut(r, ev, have);
	bare_sample(ev, m->ips, data[0]);
	ev->kind = EVENT_CHAIN;
	in_skip(r->in, size);
	return 1;
}

const struct reader_ops read_maestro = {
	.name = "maestro",
	.about = "Maestro kern-profile raw data, from its QEMU plugin",
	.probe = maestro_probe,
	.search = maestro_search,
	.options = BARE_OPTIONS(struct maestro),
	.priv_size = sizeof(struct maestro),
	.next = maestro_next,
};
