// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_serial: what the seL4 profiler prints on a serial line: a {...} a sample that looks like JSON
 * and is not: no commas, and the ip is hexadecimal without saying so. Other output of the system
 * may stand between the samples, and a line may be damaged in transmission.
 */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "read/sel4.h"

struct sel4_serial {
	struct sel4 sel4;
	bool in_sample, in_ips, bad;
	uint64_t start; /* of the sample at hand */
};

static int sel4_serial_probe(const uint8_t *head, size_t len)
{
	const uint8_t *ip = memmem(head, len, "\"ip\": \"", 7);
	const uint8_t *end = ip ? memchr(ip, '\n', len - (size_t)(ip - head)) : NULL;

	if (!end)
		return 0;
	while (end > ip && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	return end[-1] == '"' ? 56 : 0; /* JSON would have a comma here */
}

static int sel4_serial_open(struct reader *r)
{
	return sel4_open(r, r->priv);
}

static void trim(const char **s, size_t *len, const char *blanks)
{
	while (*len && strchr(blanks, (*s)[*len - 1]) && (*s)[*len - 1])
		--*len;
	while (*len && strchr(blanks, **s) && **s) {
		++*s;
		--*len;
	}
}

/* The target prints with %ld: what is above 2^63 comes out negative. */
static bool number(const char *s, size_t len, uint64_t *value)
{
	bool negative;

	trim(&s, &len, " \t\",");
	negative = len && *s == '-';
	if (!text_u64(s + negative, len - negative, value))
		return false;
	if (negative)
		*value = -*value;
	return true;
}

static bool number32(const char *s, size_t len, uint32_t *value)
{
	uint64_t wide;

	if (!number(s, len, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

static bool hex(const char *s, size_t len, uint64_t *value)
{
	trim(&s, &len, " \t\",");
	if (len > 2 && s[0] == '0' && s[1] == 'x') {
		s += 2;
		len -= 2;
	}
	return text_hex(s, len, value);
}

static bool parse_field(struct sel4_serial *p, const char *line, size_t len)
{
	struct sel4_sample *sample = &p->sel4.sample;
	const char *colon = memchr(line, ':', len);
	const char *key = line, *value;
	size_t key_len, value_len;

	if (!colon)
		return false;
	value = colon + 1;
	key_len = (size_t)(colon - line);
	value_len = len - key_len - 1;
	trim(&key, &key_len, " \t\"");
	if (key_len == 3 && !memcmp(key, "ips", 3)) {
		p->in_ips = true;
		return true;
	}
	if (key_len == 2 && !memcmp(key, "ip", 2))
		return hex(value, value_len, &sample->chain[0]);
	if (key_len == 3 && !memcmp(key, "pid", 3))
		return number32(value, value_len, &sample->pid);
	if (key_len == 4 && !memcmp(key, "time", 4))
		return number(value, value_len, &sample->time);
	if (key_len == 3 && !memcmp(key, "cpu", 3))
		return number32(value, value_len, &sample->cpu);
	if (key_len == 6 && !memcmp(key, "period", 6))
		return number(value, value_len, &sample->period);
	return key_len == 2 && !memcmp(key, "nr", 2) && number(value, value_len, &sample->nr);
}

static bool parse_ip(struct sel4_serial *p, const char *line, size_t len)
{
	struct sel4_sample *sample = &p->sel4.sample;

	if (len == 1 && *line == ']') {
		p->in_ips = false;
		return true;
	}
	if (sample->nr_ips == SEL4_MAX_DEPTH)
		return false;
	return number(line, len, &sample->chain[1 + sample->nr_ips]) && ++sample->nr_ips;
}

static int bad_sample(struct reader *r, struct event *ev, uint64_t until, const char *why)
{
	struct sel4_serial *p = r->priv;

	p->in_sample = p->in_ips = p->bad = false;
	return reader_damage(r, ev, p->start, 1, until - p->start, "%s", why);
}

static void begin_sample(struct sel4_serial *p, uint64_t offset)
{
	memset(&p->sel4.sample, 0, offsetof(struct sel4_sample, chain) + sizeof(uint64_t));
	p->in_sample = true;
	p->in_ips = p->bad = false;
	p->start = offset;
}

static int sel4_serial_next(struct reader *r, struct event *ev)
{
	struct sel4_serial *p = r->priv;
	const char *line;
	size_t len;

	if (sel4_tell(r, &p->sel4, ev))
		return 1;
	for (;;) {
		uint64_t offset = in_offset(r->in);

		if (!text_line(r->in, &line, &len)) {
			if (p->in_sample)
				return bad_sample(r, ev, offset, "the dump is cut short in a sample");
			return sel4_end(r, &p->sel4), 0;
		}
		trim(&line, &len, " \t\r");
		if (len == 1 && *line == '{') {
			bool open = p->in_sample;
			int ret = open ? bad_sample(r, ev, offset, "a sample without its end") : 0;

			begin_sample(p, offset);
			if (open)
				return ret;
		} else if (!p->in_sample || !len) {
			continue; /* what else the system prints */
		} else if (len == 1 && *line == '}') {
			if (p->bad || p->in_ips)
				return bad_sample(r, ev, in_offset(r->in),
						  "a sample with a damaged line");
			p->in_sample = false;
			sel4_event(r, &p->sel4, ev);
			return 1;
		} else if (p->in_ips ? !parse_ip(p, line, len) : !parse_field(p, line, len)) {
			p->bad = true;
		}
	}
}

static void sel4_serial_close(struct reader *r)
{
	sel4_close(&((struct sel4_serial *)r->priv)->sel4);
}

const struct reader_ops read_sel4_serial = {
	.name = "sel4-serial",
	.about = "seL4 profiler samples as printed on its serial line",
	.probe = sel4_serial_probe,
	.priv_size = sizeof(struct sel4_serial),
	.open = sel4_serial_open,
	.next = sel4_serial_next,
	.close = sel4_serial_close,
};
