// SPDX-License-Identifier: GPL-2.0-or-later
/* folded: one line a stack, root;...;leaf COUNT, as flame graph tools write them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "model/frame.h"

#define MAX_DEPTH 65536

struct folded {
	bool told;
	uint64_t *ips; /* leaf first: filled from the end */
	size_t cap;
	/*
	 * The line before: lines are mostly sorted, so most of a stack is that of its neighbour.
	 * ends[i] is where its frame i ends, frames[i] what it is, both from the root.
	 */
	char *last;
	size_t last_len, cap_last;
	uint32_t *ends, *frames;
	size_t nr, cap_ends, cap_frames;
	uint32_t *known; /* by name: its frame */
	size_t nr_known;
};

/* The count after the last blank, and the length of the stack before it. 12.5 counts as 12. */
static bool split(const char *line, size_t len, size_t *stack, uint64_t *count)
{
	const char *blank, *dot;
	size_t digits;
	uint64_t part;

	while (len && strchr(" \t\r", line[len - 1]) && line[len - 1])
		len--;
	blank = memrchr(line, ' ', len);
	if (!blank)
		return false;
	*stack = (size_t)(blank - line);
	digits = len - *stack - 1;
	dot = memchr(blank + 1, '.', digits);
	if (dot) {
		digits = (size_t)(dot - blank - 1);
		if (!text_u64(dot + 1, len - (size_t)(dot + 1 - line), &part))
			return false;
	}
	while (*stack && line[*stack - 1] == ' ')
		--*stack;
	return *stack && text_u64(blank + 1, digits, count);
}

/* Text has no magic: most of the first lines have to be stacks. */
static int folded_probe(const uint8_t *head, size_t len)
{
	const char *line = (const char *)head, *end = line + len;
	int good = 0, bad = 0, frames = 0;

	if (memchr(head, '\0', len))
		return 0;
	while (line < end && good + bad < 8) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t stack, size = (size_t)((newline ? newline : end) - line);
		uint64_t count;

		if (size && *line != '#') {
			if (split(line, size, &stack, &count))
				good++;
			else if (newline) /* else it may only be cut by the end of the head */
				bad++;
			frames += memchr(line, ';', size) != NULL;
		}
		line += size + 1;
	}
	if (bad >= good && (bad || !frames))
		return 0;
	return 4 * good + (frames ? 8 : 0);
}

/* How many of the last line's frames this line begins with. */
static size_t shared_frames(const struct folded *f, const char *line, size_t len)
{
	size_t low = 0, high = f->nr, same = 0;
	size_t most = len < f->last_len ? len : f->last_len;

	while (same + 8 <= most && !memcmp(line + same, f->last + same, 8))
		same += 8;
	while (same < most && line[same] == f->last[same])
		same++;
	/* The number of frames that end, with their semicolon, inside what is the same. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->ends[mid] < same)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Other collapsers can mark the kernel's functions: vfs_read_[k] */
static uint8_t flags_of(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && !strcmp(name + len - 4, "_[k]") ? FRAME_KERNEL : 0;
}

static uint32_t frame_of_name(struct reader *r, uint32_t name)
{
	struct folded *f = r->priv;

	if (name >= f->nr_known) {
		size_t nr = grown_capacity(f->nr_known, name + 1);

		f->known = xrealloc(f->known, nr, sizeof(*f->known));
		memset(f->known + f->nr_known, 0, (nr - f->nr_known) * sizeof(*f->known));
		f->nr_known = nr;
	}
	if (!f->known[name])
		f->known[name] = frame_named(r->frames, name, 0,
					     flags_of(str_text(r->frames->strings, name)));
	return f->known[name];
}

static bool parse_stack(struct reader *r, const char *line, size_t len)
{
	struct folded *f = r->priv;
	struct strtab *strings = r->frames->strings;
	size_t nr = shared_frames(f, line, len);
	size_t at = nr ? f->ends[nr - 1] + 1 : 0;

	while (at <= len && nr < MAX_DEPTH) {
		const char *end = memchr(line + at, ';', len - at);
		size_t size = end ? (size_t)(end - line) - at : len - at;

		GROW(f->ends, nr + 1, f->cap_ends);
		GROW(f->frames, nr + 1, f->cap_frames);
		f->frames[nr] = frame_of_name(r, str_intern(strings, line + at, size));
		f->ends[nr++] = (uint32_t)(at + size);
		at += size + 1;
	}
	f->nr = nr;
	f->last_len = at > len ? len : at;
	GROW(f->last, len, f->cap_last);
	memcpy(f->last, line, len);
	return at > len;
}

static void set_chain(struct folded *f, struct event *ev)
{
	GROW(f->ips, f->nr, f->cap);
	for (size_t i = 0; i < f->nr; i++)
		f->ips[f->nr - 1 - i] = f->frames[i];
	ev->sample.ips = f->ips;
	ev->sample.nr = (uint32_t)f->nr;
	ev->sample.context = IP_NAMED;
	ev->sample.source = 1;
}

static int folded_next(struct reader *r, struct event *ev)
{
	struct folded *f = r->priv;
	const char *line;
	size_t len, stack;

	if (!f->told) {
		f->told = true;
		ev->kind = EVENT_SOURCE;
		ev->source = (struct event_source){
			.id = 1, .name = "samples", .type = SOURCE_SOFTWARE, .config = 9
		};
		return 1;
	}
	for (;;) {
		uint64_t offset = in_offset(r->in);

		if (!text_line(r->in, &line, &len))
			return 0;
		if (!len || *line == '#')
			continue;
		if (!split(line, len, &stack, &ev->sample.weight))
			return reader_damage(r, ev, offset, 1, len, "not 'stack count': %.*s",
					     len > 60 ? 60 : (int)len, line);
		if (!ev->sample.weight)
			continue;
		if (!parse_stack(r, line, stack))
			return reader_damage(r, ev, offset, 1, len, "a stack deeper than %d frames",
					     MAX_DEPTH);
		ev->kind = EVENT_SAMPLE;
		ev->sample.count = ev->sample.weight;
		set_chain(f, ev);
		return 1;
	}
}

static void folded_close(struct reader *r)
{
	struct folded *f = r->priv;

	free(f->ips);
	free(f->last);
	free(f->ends);
	free(f->frames);
	free(f->known);
}

const struct reader_ops read_folded = {
	.name = "folded",
	.about = "stacks as text, one a line, as flame graph tools write",
	.probe = folded_probe,
	.priv_size = sizeof(struct folded),
	.next = folded_next,
	.close = folded_close,
};
