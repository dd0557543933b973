// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * zephyr: a console log with the output of Zephyr's shell command `perf printbuf`, between
 * prompts, colours and other lines. A dump is its length in words, then one word per line. A
 * sample is a frame count and that many addresses, leaf first.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "read/bare.h"

#define HEADER "Perf buf length "
#define WORD_DIGITS 16
#define MAX_LINE 400
#define LOWEST_PC 256 /* smaller words are counts, larger ones are addresses */

struct zephyr {
	struct bare bare;
	uint64_t left;	/* words still to read in this dump */
	uint64_t want;	/* frames of the current sample */
	uint64_t start; /* its offset */
	uint64_t *ips;
	uint32_t nr;
	size_t cap;
	bool lost; /* the reader lost sync: skip words until a count comes */
};

/* Copies a line without colours, carriage returns and surrounding blanks. */
static size_t strip(const char *line, size_t len, char *to)
{
	size_t nr = 0;

	for (size_t i = 0; i < len && nr < MAX_LINE; i++) {
		if (line[i] == '\033' && i + 1 < len && line[i + 1] == '[') {
			for (i += 2; i < len && (line[i] < '@' || line[i] > '~'); i++)
				;
		} else if (line[i] != '\r' && line[i] != '\b' && (nr || line[i] != ' ')) {
			to[nr++] = line[i];
		}
	}
	while (nr && to[nr - 1] == ' ')
		nr--;
	return nr;
}

static bool header_in(const char *text, size_t len, uint64_t *words)
{
	const char *at = memmem(text, len, HEADER, strlen(HEADER));

	if (!at)
		return false;
	at += strlen(HEADER);
	return text_u64(at, (size_t)(text + len - at), words);
}

static bool word_in(const char *text, size_t len, uint64_t *word)
{
	return len == WORD_DIGITS && text_hex(text, len, word);
}

static int zephyr_probe(const uint8_t *head, size_t len)
{
	const char *at = memmem(head, len, HEADER, strlen(HEADER)), *end = (const char *)head + len;
	char text[MAX_LINE];
	uint64_t words = 0, first;

	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t nr = strip(at, (size_t)((newline ? newline : end) - at), text);

		if (!newline)
			return 0;
		if (at[0] == 'P' && !header_in(text, nr, &words))
			return 0;
		if (word_in(text, nr, &first))
			return first && first < words ? 96 : 0;
		at = newline + 1;
	}
	return 0;
}

/* The log ends, or another dump begins, before this dump is complete. */
static int missing(struct reader *r, struct event *ev, uint64_t offset)
{
	struct zephyr *z = r->priv;
	uint64_t words = z->left;

	z->left = z->want = 0;
	return reader_damage(r, ev, offset, 1, 0, "truncated dump: %" PRIu64 " words are missing",
			     words);
}

static int begin_dump(struct reader *r, struct event *ev, uint64_t words, uint64_t offset)
{
	struct zephyr *z = r->priv;
	int ret = z->left ? missing(r, ev, offset) : 0;

	z->left = words;
	z->want = 0;
	z->lost = false;
	return ret;
}

static int begin_sample(struct reader *r, struct event *ev, uint64_t count, uint64_t offset)
{
	struct zephyr *z = r->priv;
	bool told = z->lost;

	z->lost = !count || count >= LOWEST_PC || count > z->left;
	if (z->lost)
		return told ? 0
			    : reader_damage(r, ev, offset, 1, WORD_DIGITS,
					    "invalid frame count %" PRIu64 " (%" PRIu64
					    " words left in the dump)",
					    count, z->left);
	z->want = count;
	z->start = offset;
	z->nr = 0;
	return 0;
}

static int take_word(struct reader *r, struct event *ev, uint64_t word, uint64_t offset)
{
	struct zephyr *z = r->priv;

	z->left--;
	if (!z->want) /* while lost, look only at words that can be a count */
		return z->lost && word >= LOWEST_PC ? 0 : begin_sample(r, ev, word, offset);
	if (word && word < LOWEST_PC && z->nr) {
		uint64_t start = z->start;

		begin_sample(r, ev, word, offset);
		return reader_damage(r, ev, start, 1, 0, "stack has missing lines");
	}
	GROW(z->ips, z->nr + 1, z->cap);
	z->ips[z->nr++] = word;
	if (z->nr < z->want)
		return 0;
	bare_sample(ev, z->ips, z->nr);
	z->want = 0;
	return 1;
}

static int zephyr_next(struct reader *r, struct event *ev)
{
	struct zephyr *z = r->priv;
	char text[MAX_LINE];
	const char *line;
	size_t len;

	if (bare_tell(&z->bare, "cpu-clock", ev))
		return 1;
	for (;;) {
		uint64_t offset = in_offset(r->in), value;
		bool ended;
		int ret = 0;

		if (!text_line(r->in, &line, &len))
			return z->left ? missing(r, ev, offset) : 0;
		ended = text_line_ended(r->in);
		len = strip(line, len, text);
		if (header_in(text, len, &value))
			ret = begin_dump(r, ev, value, offset);
		else if (!ended && memmem(text, len, HEADER, strlen("Perf buf")))
			ret = reader_damage(r, ev, offset, 1, len, TEXT_CUT);
		else if (z->left && word_in(text, len, &value))
			ret = take_word(r, ev, value, offset);
		if (ret)
			return ret;
	}
}

static void zephyr_close(struct reader *r)
{
	free(((struct zephyr *)r->priv)->ips);
}

const struct reader_ops read_zephyr = {
	.name = "zephyr",
	.about = "Zephyr perf printbuf output in a console log",
	.probe = zephyr_probe,
	.search = zephyr_probe, /* a log may begin with anything */
	.options = BARE_OPTIONS(struct zephyr),
	.priv_size = sizeof(struct zephyr),
	.next = zephyr_next,
	.close = zephyr_close,
};
