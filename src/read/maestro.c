// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maestro: the raw data of Maestro's QEMU plugin kern-profile: a byte n, then n addresses of 8
 * bytes, the leaf first. No magic, no time, no cpu; kernel and user mode are not told apart. The
 * walk by frame pointers goes through interrupts and past the root, so that a chain may hold
 * several stacks and end in garbage: pass/split takes it apart where symbols are known.
 */
#include "base/mem.h"
#include "read/bare.h"

#define MAX_FRAMES 64
#define RECORD_MAX (1 + 8 * MAX_FRAMES)
#define CHAIN_PROOF 4 /* records in a row, from which on the stream is believed again */
#define LOWEST_PC 0x1000

struct maestro {
	struct bare bare;
	uint64_t ips[MAX_FRAMES];
	bool cut; /* the last record was cut in the middle, here: */
	uint64_t cut_at;
	size_t cut_bytes;
};

/* The executed instruction is a real address even where the rest of the walk is garbage. */
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

/* How many records follow each other from here; *left: bytes of a cut one at the end. */
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

/* Three of four bytes cannot start a record, and most words are no address. */
static int maestro_probe(const uint8_t *head, size_t len)
{
	size_t left;
	unsigned nr = walk(head, len, 6, &left);

	if (nr == 0 || (nr < 3 && left))
		return 0;
	return 4 + 3 * (int)nr;
}

/* Goes on where several records in a row make sense, or the last ones end where the file does. */
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
				     "a stack of %u frames: 1 to %u are possible", n, MAX_FRAMES);
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start,
			     "a stack that starts at no possible address");
}

/* As the original does: of a record that is cut at the end of the file the whole frames count. */
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
	return reader_damage(r, ev, offset, 1, have, "the file is cut short in a record");
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
		return reader_damage(
			r, ev, m->cut_at, 0, m->cut_bytes,
			"the file is cut short in a record; its whole frames are kept");
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
	.options = BARE_OPTIONS(struct maestro),
	.priv_size = sizeof(struct maestro),
	.next = maestro_next,
};
