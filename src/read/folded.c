// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folded: one stack per line, root;...;leaf COUNT, as flame graph tools write them. Tasks may have
 * names like "#1 worker": see is_comment(). Where that is not enough, our own writer puts a backslash
 * before the #.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "model/frame.h"

#define MAX_DEPTH 65536

struct folded {
	bool told;
	bool cut;	  /* the last line may be incomplete; to be reported at the end */
	uint64_t last_at; /* offset of the last line */
	bool pairs;	  /* each line has two counts, before and after: difffolded.pl's output */
	uint64_t *ips;	  /* leaf first: filled from the end */
	size_t cap;
	/*
	 * The previous line: lines are mostly sorted, so neighbours share most of their frames.
	 * Its frame i, counted from the root, is frames[i] and ends at last[ends[i]].
	 */
	char *last;
	size_t last_len, cap_last;
	uint32_t *ends, *frames;
	size_t nr, cap_ends, cap_frames;
	uint32_t *known; /* name handle to frame, 0: none yet */
	size_t nr_known;
};

/* Finds the count after the last blank and the length of the stack before it. 12.5 becomes 12. */
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

/* Starts with #, and is not a stack of several frames, such as "#1 worker;main 5". */
static bool is_comment(const char *line, size_t len)
{
	size_t stack;
	uint64_t count;

	if (!len || *line != '#')
		return false;
	return len < 2 || strchr(" \t#", line[1]) || !split(line, len, &stack, &count) ||
	       !memchr(line, ';', stack);
}

static bool is_escaped(const char *line, size_t len)
{
	size_t slashes = 0;

	while (slashes < len && line[slashes] == '\\')
		slashes++;
	return slashes && slashes < len && line[slashes] == '#';
}

/* As in perf script -F hw:ip,addr, where the number is the target of a branch. */
static bool ends_in_arrow(const char *stack, size_t len)
{
	return len > 2 && !memcmp(stack + len - 3, " =>", 3);
}

/* There is no magic number: require that most of the first lines are stacks. */
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

		if (size && !is_comment(line, size)) {
			if (split(line, size, &stack, &count) && !ends_in_arrow(line, stack))
				good++;
			else if (newline) /* without one, the line may go on after the head */
				bad++;
			frames += memchr(line, ';', size) != NULL;
		}
		line += size + 1;
	}
	if (bad >= good && (bad || !frames))
		return 0;
	return 4 * good + (frames ? 8 : 0);
}

/* Do all complete lines, and at least two, have two counts? */
static bool has_pairs(const char *line, size_t len)
{
	const char *newline;
	size_t stack, lines = 0;
	uint64_t count;

	while ((newline = memchr(line, '\n', len))) {
		size_t size = (size_t)(newline - line);

		if (size && !is_comment(line, size)) {
			if (!split(line, size, &stack, &count) ||
			    !split(line, stack, &stack, &count))
				return false;
			lines++;
		}
		line += size + 1;
		len -= size + 1;
	}
	return lines > 1;
}

static int folded_open(struct reader *r)
{
	struct folded *f = r->priv;
	size_t have;
	const char *head = (const char *)in_peek(r->in, 1, &have);

	f->pairs = has_pairs(head, have);
	if (f->pairs)
		log_warn("%s: lines have two counts, using the second; to show the change, run "
			 "kscope flame AFTER --diff BEFORE",
			 r->in->path);
	return 0;
}

/* The number of leading frames this line has in common with the previous one. */
static size_t shared_frames(const struct folded *f, const char *line, size_t len)
{
	size_t low = 0, high = f->nr, same = 0;
	size_t most = len < f->last_len ? len : f->last_len;

	while (same + 8 <= most && !memcmp(line + same, f->last + same, 8))
		same += 8;
	while (same < most && line[same] == f->last[same])
		same++;
	/* Count the frames that end, including their semicolon, inside the common part. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->ends[mid] < same)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* stackcollapse scripts can mark kernel functions: vfs_read_[k] */
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

/* Other tools may have omitted the last newline, so the sample is kept. */
static int finish(struct reader *r, struct event *ev)
{
	struct folded *f = r->priv;

	if (!f->cut)
		return 0;
	f->cut = false;
	return reader_damage(r, ev, f->last_at, 0, 0, TEXT_CUT "; its count may be incomplete");
}

static int folded_next(struct reader *r, struct event *ev)
{
	struct folded *f = r->priv;
	const char *line;
	size_t len, stack;
	uint64_t before;

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
			return finish(r, ev);
		f->cut = !text_line_ended(r->in);
		f->last_at = offset;
		if (!len || is_comment(line, len))
			continue;
		if (is_escaped(line, len)) {
			line++;
			len--;
		}
		if (!split(line, len, &stack, &ev->sample.weight) ||
		    (f->pairs && !split(line, stack, &stack, &before))) {
			f->cut = false; /* one report is enough */
			return reader_damage(r, ev, offset, 1, len,
					     "expected 'STACK COUNT', found: %.*s",
					     len > 60 ? 60 : (int)len, line);
		}
		if (!ev->sample.weight)
			continue;
		if (!parse_stack(r, line, stack))
			return reader_damage(r, ev, offset, 1, len, "stack deeper than %d frames",
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
	.about = "folded stacks, one per line, as flame graph tools write them",
	.probe = folded_probe,
	.priv_size = sizeof(struct folded),
	.next = folded_next,
	.open = folded_open,
	.close = folded_close,
};
