// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qperf: what the QEMU plugin of rCore's qperf writes: records without a file header, each number
 * encoded as a bincode varint. Version 2 added the time, version 3 the pc and the cpu. The summary
 * file next to the data names the version; without it, the version that fits the bytes best wins.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"
#include "read/bare.h"

#define MAX_DEPTH 29000 /* qperf's own tools reject longer records */
#define MAX_CPU 4096
#define RECORD_MAX ((size_t)256 << 10)
#define SCORED ((size_t)64 << 10) /* bytes used to guess the version */
#define LOWEST_PC 0x1000
#define CUT READER_CUT
#define LIKELY_SIZE 2048 /* bytes of the longest record that detection accepts */
#define RUN 4		 /* records in a row, or two at the end: the record around them is none */
#define MAX_LOW 3	 /* numbers that are tried as parts of such records */
#define PROOF 8		 /* records in a row are no coincidence; version 3: half as many */

struct qperf {
	struct bare bare;
	unsigned version;
	uint64_t hz, dropped; /* from the summary; 0: unknown */
	char arch[32];
	uint64_t *ips;
	size_t cap_ips;
};

struct record {
	uint64_t time, pc;
	uint32_t cpu;
	uint64_t nr;
	const uint8_t *frames;
};

struct cursor {
	const uint8_t *at, *end;
	bool cut, bad;
};

static uint64_t number(struct cursor *c)
{
	static const unsigned sizes[] = { 2, 4, 8 };
	uint64_t value = 0;
	uint8_t first;

	if (c->cut || c->bad)
		return 0;
	if (c->at == c->end) {
		c->cut = true;
		return 0;
	}
	first = *c->at++;
	if (first < 251)
		return first;
	c->bad = first > 253;
	if (c->bad)
		return 0;
	if ((size_t)(c->end - c->at) < sizes[first - 251]) {
		c->cut = true;
		return 0;
	}
	for (unsigned i = sizes[first - 251]; i-- > 0;)
		value = value << 8 | c->at[i];
	c->at += sizes[first - 251];
	return value;
}

static void parse_fixed(struct cursor *c, unsigned version, struct record *rec)
{
	uint64_t cpu;

	if (version >= 2)
		rec->time = number(c);
	if (version < 3)
		return;
	rec->pc = number(c);
	number(c); /* sp */
	number(c); /* fp */
	cpu = number(c);
	c->bad |= cpu >= MAX_CPU;
	rec->cpu = (uint32_t)cpu;
	c->bad |= number(c) > 1; /* how the chain was unwound: one byte, same as a varint */
}

/* The record's length; 0: not a record; CUT: truncated. */
static size_t parse(const uint8_t *data, size_t len, unsigned version, struct record *rec)
{
	struct cursor c = { .at = data, .end = data + len };

	*rec = (struct record){ .time = NO_TIME, .cpu = NO_CPU };
	parse_fixed(&c, version, rec);
	rec->nr = number(&c);
	rec->frames = c.at;
	c.bad |= !c.cut && (rec->nr < 1 || rec->nr > MAX_DEPTH);
	for (uint64_t i = 0; i < rec->nr && !c.bad && !c.cut; i++) {
		uint64_t ip = number(&c);

		if (i == 0 && !c.cut)
			c.bad |= ip < LOWEST_PC || (version == 3 && ip != rec->pc);
	}
	if (c.bad)
		return 0;
	return c.cut ? CUT : (size_t)(c.at - data);
}

/* How many bytes, and records, at the start are valid in this version. */
static size_t score(const uint8_t *data, size_t len, unsigned version, unsigned *records)
{
	size_t taken = 0;

	*records = 0;
	while (taken < len) {
		struct record rec;
		size_t size = parse(data + taken, len - taken, version, &rec);

		if (!size)
			return taken;
		if (size == CUT)
			return *records ? len : 0;
		taken += size;
		++*records;
	}
	return taken;
}

static unsigned best_version(const uint8_t *data, size_t len, size_t *taken, unsigned *records)
{
	unsigned best = 3;

	*taken = score(data, len, best, records);
	for (unsigned version = 2; version >= 1; version--) {
		unsigned nr;
		size_t got = score(data, len, version, &nr);

		if (got > *taken) {
			*taken = got;
			*records = nr;
			best = version;
		}
	}
	return best;
}

/* A version 3 record has the pc twice: strong evidence. The others have nothing like it. */
static int qperf_probe(const uint8_t *head, size_t len)
{
	size_t taken;
	unsigned records, version = best_version(head, len, &taken, &records);

	if (!records || taken < len || (version < 3 && records < 8) || (len == 4096 && records < 3))
		return 0;
	if (version < 3)
		return 10;
	return records > 4 ? 32 : 12 + 4 * (int)records;
}

/* No address, and not one of the values that qperf's own tools ignore. */
static bool is_low(uint64_t ip)
{
	return ip && ip < LOWEST_PC;
}

/* As parse(), but all frames must be addresses. */
static size_t likely_size(const uint8_t *data, size_t len, unsigned version)
{
	struct record rec;
	size_t most = len < LIKELY_SIZE ? len : LIKELY_SIZE;
	size_t size = parse(data, most, version, &rec);
	struct cursor c = { .at = rec.frames, .end = data + most };

	if (!size)
		return 0;
	for (uint64_t i = 0; i < rec.nr && !c.cut; i++) {
		if (is_low(number(&c)) && !c.cut)
			return 0;
	}
	return size == CUT && most < len ? 0 : size;
}

static size_t likely_size_1(const uint8_t *data, size_t len)
{
	return likely_size(data, len, 1);
}

static size_t likely_size_2(const uint8_t *data, size_t len)
{
	return likely_size(data, len, 2);
}

static size_t likely_size_3(const uint8_t *data, size_t len)
{
	return likely_size(data, len, 3);
}

/* The version with most records after damage, and their share; 0: none has enough. */
static unsigned search_version(const uint8_t *data, size_t len, int *share)
{
	static size_t (*const sizes[])(const uint8_t *data, size_t len) = { NULL, likely_size_1,
									    likely_size_2,
									    likely_size_3 };
	unsigned best = 0;

	*share = 0;
	for (unsigned version = 3; version >= 1; version--) {
		int found =
			reader_search(data, len, version == 3 ? PROOF / 2 : PROOF, sizes[version]);

		if (found > *share) {
			*share = found;
			best = version;
		}
	}
	return best;
}

static int qperf_search(const uint8_t *data, size_t len)
{
	int share;

	search_version(data, len, &share);
	return share;
}

static void take_fact(struct qperf *q, const char *line, size_t len)
{
	const char *equals = memmem(line, len, " = ", 3);
	size_t key = equals ? (size_t)(equals - line) : 0, rest = equals ? len - key - 3 : 0;
	uint64_t version;

	if (!equals)
		return;
	equals += 3;
	if (key == 20 && !memcmp(line, "qperf_format_version", key)) {
		if (text_u64(equals, rest, &version) && version >= 1 && version <= 3)
			q->version = (unsigned)version;
	} else if (key == 12 && !memcmp(line, "frequency_hz", key)) {
		text_u64(equals, rest, &q->hz);
	} else if (key == 15 && !memcmp(line, "dropped_samples", key)) {
		text_u64(equals, rest, &q->dropped);
	} else if (key == 4 && !memcmp(line, "arch", key) && rest < sizeof(q->arch)) {
		memcpy(q->arch, equals, rest);
		q->arch[rest] = '\0';
	}
}

/* If QEMU exited cleanly, NAME.summary.txt is next to NAME.bin. */
static void read_summary(struct reader *r)
{
	const char *dot = strrchr(r->in->path, '.'), *slash = strrchr(r->in->path, '/');
	size_t stem =
		dot && (!slash || dot > slash) ? (size_t)(dot - r->in->path) : strlen(r->in->path);
	char *path = xasprintf("%.*s.summary.txt", (int)stem, r->in->path);
	struct err err = { 0 };
	const char *line;
	struct in in;
	size_t len;

	if (store_has(r->store, path) && store_in(r->store, &in, path, &err) == 0) {
		while (text_line(&in, &line, &len)) {
			if (text_line_ended(&in))
				take_fact(r->priv, line, len);
			else
				reader_missing(r, "%s: " TEXT_CUT "; ignored that line", path);
		}
		in_close(&in);
	}
	free(path);
}

static unsigned guess_version(struct in *in)
{
	size_t len, taken;
	const uint8_t *data = in_peek(in, SCORED, &len);
	unsigned records, best, found;
	int share;

	len = len < SCORED ? len : SCORED;
	best = best_version(data, len, &taken, &records);
	found = taken < len ? search_version(data, len, &share) : 0; /* only if there is damage */
	return found ? found : best;
}

static int qperf_open(struct reader *r)
{
	struct qperf *q = r->priv;

	read_summary(r);
	if (!q->version)
		q->version = guess_version(r->in);
	return 0;
}

static bool is_run(const uint8_t *data, const uint8_t *end, unsigned version)
{
	for (unsigned nr = 0; nr < RUN; nr++) {
		size_t size = likely_size(data, (size_t)(end - data), version);

		if (!size || size == CUT)
			return false;
		data += size;
		if (data == end)
			return nr > 0;
	}
	return true;
}

/*
 * Where other records begin among the frames of this one; 0: nowhere. Its depth is wrong then, and a low number is one
 * of the next record: its depth, or in version 3 one of those before it.
 */
static size_t find_hidden(const struct qperf *q, const uint8_t *data, const uint8_t *end,
			  const struct record *rec)
{
	static const unsigned numbers[] = { 0, 1, 2, 7 }; /* of a record, up to its depth */
	const uint8_t *starts[7];			  /* of the last numbers */
	struct cursor c = { .at = rec->frames, .end = end };
	unsigned low = 0, most = numbers[q->version];

	for (uint64_t i = 0; i < rec->nr && low < MAX_LOW; i++) {
		starts[i % most] = c.at;
		if (!is_low(number(&c)))
			continue;
		low++;
		for (uint64_t nth = i < most ? 0 : i - most + 1; nth <= i; nth++) {
			if (is_run(starts[nth % most], end, q->version))
				return (size_t)(starts[nth % most] - data);
		}
	}
	return 0;
}

/* A record followed by another one or by the end is unlikely to be chance. */
static bool believable(const struct qperf *q, const uint8_t *data, size_t have)
{
	struct record rec;
	size_t size = parse(data, have, q->version, &rec);

	if (!size || size == CUT)
		return false;
	return size == have || parse(data + size, have - size, q->version, &rec);
}

static int resync(struct reader *r, struct event *ev, const char *why)
{
	struct qperf *q = r->priv;
	uint64_t start = in_offset(r->in);
	const uint8_t *data;
	size_t have;

	do {
		in_skip(r->in, 1);
		data = in_peek(r->in, 4096, &have);
	} while (have && !believable(q, data, have));
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start, "%s",
			     have ? "invalid sample" : why);
}

static void tell(struct qperf *q, const struct record *rec, const uint8_t *end, struct event *ev)
{
	struct cursor c = { .at = rec->frames, .end = end };
	uint32_t nr = 0;

	GROW(q->ips, rec->nr, q->cap_ips);
	for (uint64_t i = 0; i < rec->nr; i++) {
		uint64_t ip = number(&c);

		if (ip && ip != UINT64_MAX) /* qperf's own tools ignore both, too */
			q->ips[nr++] = ip;
	}
	bare_sample(ev, q->ips, nr);
	ev->time = rec->time;
	ev->cpu = rec->cpu;
	if (q->hz)
		ev->sample.weight = 1000000000 / q->hz;
}

static bool preamble(struct reader *r, struct event *ev)
{
	struct qperf *q = r->priv;

	if (bare_tell(&q->bare, "cpu-clock", ev)) {
		if (ev->kind == EVENT_SOURCE && q->hz)
			ev->source.period = 1000000000 / q->hz;
		return true;
	}
	if (q->arch[0] && q->bare.told == 2) {
		q->bare.told++;
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ "arch", q->arch };
		return true;
	}
	if (!q->dropped)
		return false;
	ev->kind = EVENT_LOST;
	ev->lost.count = q->dropped;
	q->dropped = 0;
	return true;
}

static int qperf_next(struct reader *r, struct event *ev)
{
	struct qperf *q = r->priv;
	struct record rec;
	const uint8_t *data;
	size_t have, size, hidden, want = 4096;

	if (preamble(r, ev))
		return 1;
	for (;; want *= 8) {
		data = in_peek(r->in, want, &have);
		if (!have)
			return 0;
		size = parse(data, have, q->version, &rec);
		if (size != CUT || have < want || want > RECORD_MAX)
			break;
	}
	if (!size)
		return resync(r, ev, "invalid sample");
	if (size == CUT)
		return resync(r, ev, "truncated sample");
	hidden = find_hidden(q, data, data + have, &rec);
	if (hidden) {
		uint64_t offset = in_offset(r->in);

		return reader_damage(r, ev, offset, 1, in_skip(r->in, hidden), "invalid sample");
	}
	tell(q, &rec, data + size, ev);
	in_skip(r->in, size);
	return 1;
}

static void qperf_close(struct reader *r)
{
	free(((struct qperf *)r->priv)->ips);
}

const struct reader_ops read_qperf = {
	.name = "qperf",
	.about = "rCore qperf raw samples, versions 1 to 3",
	.probe = qperf_probe,
	.search = qperf_search,
	.options = BARE_OPTIONS(struct qperf),
	.priv_size = sizeof(struct qperf),
	.open = qperf_open,
	.next = qperf_next,
	.close = qperf_close,
};
