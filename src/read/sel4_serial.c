// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_serial: what the seL4 profiler prints on a serial line: one {...} per sample, which looks
 * like JSON but has no commas and prints the ip in hexadecimal without a prefix. Other output may
 * come between and inside samples, and lines may be damaged or lost.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "read/sel4.h"

enum field {
	FIELD_IP,
	FIELD_PID,
	FIELD_TIME,
	FIELD_CPU,
	FIELD_PERIOD,
	FIELD_NR,
	FIELD_IPS,
	FIELDS
};

struct sel4_serial {
	struct sel4 sel4;
	bool in_sample, in_ips, bad;
	unsigned seen;	 /* a bit for each enum field */
	uint64_t start;	 /* offset of the current sample */
	uint64_t depth;	 /* addresses per sample */
	struct buf line; /* without escape sequences and control characters */
	size_t at;	 /* how much of it was parsed */
	uint64_t offset; /* of the line in the input */
};

static int sel4_serial_probe(const uint8_t *head, size_t len)
{
	const uint8_t *ip = memmem(head, len, "\"ip\": \"", 7);
	const uint8_t *end = ip ? memchr(ip + 7, '"', len - (size_t)(ip + 7 - head)) : NULL;

	if (!end || end + 1 == head + len)
		return 0;
	return end[1] != ',' ? 56 : 0; /* JSON would have a comma here */
}

static int sel4_serial_open(struct reader *r)
{
	return sel4_open(r, r->priv, false);
}

/* Removes what the console added: colours and control characters. */
static void clean(struct buf *to, const char *line, size_t len)
{
	buf_clear(to);
	buf_reserve(to, len);
	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\033' && i + 1 < len && line[i + 1] == '[') {
			for (i += 2; i < len && (line[i] < '@' || line[i] > '~'); i++)
				;
		} else if ((unsigned char)line[i] >= ' ' || line[i] == '\t') {
			buf_addc(to, line[i]);
		}
	}
	buf_add(to, "", 0);
}

/* The target prints with %ld: addresses of 2^63 and more come out negative. */
static bool address(const char *s, size_t len, uint64_t *value)
{
	bool negative = len && *s == '-';

	if (!text_u64(s + negative, len - negative, value))
		return false;
	if (negative && *value > (uint64_t)1 << 63)
		return false;
	if (negative)
		*value = -*value;
	return true;
}

static bool hex(const char *s, size_t len, uint64_t *value)
{
	bool prefix = len > 2 && s[0] == '0' && s[1] == 'x';

	return text_hex(s + 2 * prefix, len - 2 * prefix, value);
}

/* A log may begin with anything. In many logs, "ip" is not an address. */
static int sel4_serial_search(const uint8_t *data, size_t len)
{
	const uint8_t *ip = memmem(data, len, "\"ip\": \"", 7);
	const uint8_t *end = ip ? memchr(ip + 7, '"', len - (size_t)(ip + 7 - data)) : NULL;
	uint64_t value;

	if (!end || !hex((const char *)ip + 7, (size_t)(end - ip - 7), &value))
		return 0;
	return sel4_serial_probe(data, len) ? 95 : 0; /* JSON has the same keys: beat its share */
}

static bool set_field(struct sel4_serial *p, enum field field, const char *value, size_t len)
{
	struct sel4_sample *sample = &p->sel4.sample;

	p->seen |= 1U << field;
	switch (field) {
	case FIELD_IP: return hex(value, len, &sample->chain[0]);
	case FIELD_PID: return text_u32(value, len, &sample->pid);
	case FIELD_TIME: return text_u64(value, len, &sample->time);
	case FIELD_CPU: return text_u32(value, len, &sample->cpu);
	case FIELD_PERIOD: return text_u64(value, len, &sample->period);
	case FIELD_NR: return text_u64(value, len, &sample->nr);
	default: return false;
	}
}

static enum field field_of(const char *key, size_t len)
{
	static const char *const names[FIELDS] = {
		"ip", "pid", "time", "cpu", "period", "nr", "ips"
	};
	unsigned i = 0;

	while (i < FIELDS && (strlen(names[i]) != len || memcmp(names[i], key, len) != 0))
		i++;
	return (enum field)i;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* Takes the value that follows "key":. Returns its end. */
static const char *take_value(struct sel4_serial *p, const char *key, size_t key_len, const char *s)
{
	enum field field = field_of(key, key_len);
	bool quoted;
	size_t len;

	s = skip_blanks(s);
	if (field == FIELD_IPS && *s == '[') {
		p->seen |= 1U << FIELD_IPS;
		p->in_ips = true;
		return s + 1;
	}
	quoted = *s == '"';
	s += quoted;
	len = strcspn(s, quoted ? "\"" : " \t,}\"");
	if (field < FIELDS && !set_field(p, field, s, len))
		p->bad = true;
	return s + len + (quoted && s[len]);
}

static void add_ip(struct sel4_serial *p, const char *text, size_t len)
{
	struct sel4_sample *sample = &p->sel4.sample;

	if (sample->nr_ips == SEL4_MAX_DEPTH ||
	    !address(text, len, &sample->chain[1 + sample->nr_ips]))
		p->bad = true;
	else
		sample->nr_ips++;
}

/* A quoted string: a key if a colon follows, an address of the list, or other output. */
static const char *take_text(struct sel4_serial *p, const char *s, bool foreign)
{
	size_t len = strcspn(s, "\"");
	const char *behind = skip_blanks(s + len + (s[len] == '"'));

	if (*behind == ':')
		return take_value(p, s, len, behind + 1);
	if (p->in_ips && !foreign &&
	    (!*behind || *behind == ',' || *behind == ']' || *behind == '"'))
		add_ip(p, s, len);
	return s + len + (s[len] == '"');
}

/* A sample's brace is followed by a key or nothing, not by a word as in a log's {name}. */
static bool opens_sample(const char *behind)
{
	behind = skip_blanks(behind);
	return !*behind || *behind == '"';
}

static void begin_sample(struct sel4_serial *p, uint64_t offset)
{
	memset(&p->sel4.sample, 0, offsetof(struct sel4_sample, chain) + sizeof(uint64_t));
	p->in_sample = true;
	p->in_ips = p->bad = false;
	p->seen = 0;
	p->start = offset;
}

/* Every sample has the same number of addresses, used or not: fewer mean a lost line. */
static bool is_whole(struct sel4_serial *p)
{
	const struct sel4_sample *sample = &p->sel4.sample;
	unsigned needed = 1U << FIELD_IP | 1U << FIELD_PID | 1U << FIELD_TIME;

	if (p->bad || p->in_ips || (p->seen & needed) != needed || sample->nr_ips < sample->nr ||
	    sample->nr_ips < p->depth)
		return false;
	p->depth = sample->nr_ips;
	return true;
}

static int bad_sample(struct reader *r, struct event *ev, uint64_t until, const char *why)
{
	struct sel4_serial *p = r->priv;

	p->in_sample = false;
	return reader_damage(r, ev, p->start, 1, until - p->start, "%s", why);
}

static int end_sample(struct reader *r, struct event *ev)
{
	struct sel4_serial *p = r->priv;

	if (!is_whole(p))
		return bad_sample(r, ev, in_offset(r->in), "sample has damaged or missing lines");
	p->in_sample = false;
	return sel4_take(r, &p->sel4, p->start, in_offset(r->in) - p->start, ev);
}

/* Parses the rest of the line. 1: *ev is filled, 0: the line ended. */
static int scan_line(struct reader *r, struct event *ev)
{
	struct sel4_serial *p = r->priv;
	const char *s = p->line.data + p->at;
	/* Inside brackets of other output, such as those around a time stamp. */
	bool foreign = false, foreign_brace = false;

	while (*s) {
		char c = *s++;

		p->at = (size_t)(s - p->line.data);
		if (c == '{' && !opens_sample(s)) {
			foreign_brace = true;
		} else if (c == '}' && foreign_brace) {
			foreign_brace = false;
		} else if (c == '{') {
			bool open = p->in_sample;
			int ret = open ? bad_sample(r, ev, p->offset, "unterminated sample") : 0;

			begin_sample(p, p->offset);
			if (open)
				return ret;
		} else if (!p->in_sample) {
			continue;
		} else if (c == '"') {
			s = take_text(p, s, foreign);
		} else if (c == '[') {
			foreign = true;
		} else if (c == ']') {
			p->in_ips &= foreign;
			foreign = false;
		} else if (c == '}') {
			return end_sample(r, ev);
		}
	}
	p->at = p->line.len;
	return 0;
}

static int sel4_serial_next(struct reader *r, struct event *ev)
{
	struct sel4_serial *p = r->priv;
	const char *line;
	size_t len;

	if (sel4_tell(&p->sel4, ev))
		return 1;
	for (;;) {
		if (p->at < p->line.len && scan_line(r, ev))
			return 1;
		if (!text_line_ready(r->in))
			return READER_AGAIN;
		p->offset = in_offset(r->in);
		if (!text_line(r->in, &line, &len))
			break;
		/* A key outside of any sample: the start of its sample is lost. */
		if (!p->in_sample && memmem(line, len, "\"ip\":", 5) && !memchr(line, '{', len)) {
			begin_sample(p, p->offset);
			p->bad = true;
		}
		clean(&p->line, line, len);
		p->at = 0;
	}
	if (p->in_sample)
		return bad_sample(r, ev, p->offset, "truncated sample");
	return sel4_end(r, &p->sel4), 0;
}

static void sel4_serial_close(struct reader *r)
{
	struct sel4_serial *p = r->priv;

	sel4_close(&p->sel4);
	buf_release(&p->line);
}

const struct reader_ops read_sel4_serial = {
	.name = "sel4-serial",
	.about = "seL4 profiler samples as printed on its serial line",
	.probe = sel4_serial_probe,
	.search = sel4_serial_search,
	.live = true,
	.options = SEL4_OPTIONS(struct sel4_serial),
	.priv_size = sizeof(struct sel4_serial),
	.open = sel4_serial_open,
	.next = sel4_serial_next,
	.close = sel4_serial_close,
};
