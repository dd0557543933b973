// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/inlines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KNOWN 32768	/* runs */
#define PARTS_MAX 65536 /* of all of them; if there are more, they are looked up again */
#define IN_MAX ((size_t)4 * PARTS_MAX)
#define RUN_PARTS_MAX 1024 /* the last part has the rest */
#define RUN_MAX 65536	   /* bytes: a longer straight run of instructions is an error */

struct inlines_known {
	uint64_t from, last;
	uint32_t pid; /* 0 in a kernel */
	uint32_t version;
	uint32_t context; /* the end of it: markers differ there */
	uint32_t first, nr;
	uint32_t size;
	bool counted;
};

void inlines_init(struct inlines *inlines)
{
	memset(inlines, 0, sizeof(*inlines));
	inlines->known = xcalloc(KNOWN, sizeof(*inlines->known));
	inlines->parts = xcalloc(PARTS_MAX, sizeof(*inlines->parts));
	inlines->in = xcalloc(IN_MAX, sizeof(*inlines->in));
}

void inlines_release(struct inlines *inlines)
{
	hash_release(&inlines->call_by_id);
	free(inlines->known);
	free(inlines->parts);
	free(inlines->in);
	memset(inlines, 0, sizeof(*inlines));
}

static void forget(struct inlines *inlines)
{
	memset(inlines->known, 0, KNOWN * sizeof(*inlines->known));
	inlines->nr_parts = inlines->nr_in = 0;
}

static uint32_t number_of(struct inlines *inlines, const struct inlined_call *call)
{
	uint32_t *number =
		hash_at(&inlines->call_by_id, (struct hash_key){ call->id, call->image });

	if (!*number)
		*number = (uint32_t)inlines->call_by_id.nr;
	return *number;
}

/* Code of the next function, which the run falls into, is not inlined in the first one. */
static void add_part(struct inlines *inlines, uint64_t from, const struct inlines_at *at,
		     uint64_t function)
{
	struct inlined *in = inlines->in + inlines->nr_in;
	size_t nr = at->function == function ? at->nr : 0;

	for (size_t i = 0; i < nr; i++)
		in[i] = (struct inlined){ number_of(inlines, &at->all[i]), at->all[i].frame,
					  at->all[i].start };
	inlines->nr_in += nr;
	inlines->parts[inlines->nr_parts++] =
		(struct inlines_part){ .from = from, .in = in, .nr = nr };
}

/* The place and the run's last byte that is known: the first one of its last instruction. */
static void find_parts(struct inlines *inlines, const struct track_place *from, uint64_t last,
		       struct inlines_known *known)
{
	struct track_place place = *from;
	struct inlines_at at;
	uint64_t function = 0;

	known->first = (uint32_t)inlines->nr_parts;
	do {
		inlines->at(inlines->data, &place, &at);
		if (!known->nr)
			function = at.function;
		add_part(inlines, place.address, &at, function);
		place.address = at.until;
	} while (++known->nr < RUN_PARTS_MAX && at.until <= last && at.until > from->address);
}

static void measure(struct inlines *inlines, const struct track_place *from, uint64_t last,
		    struct inlines_known *known)
{
	struct inlines_part *parts = inlines->parts + known->first;
	struct track_place place = *from;
	uint64_t sizes[RUN_PARTS_MAX], size = 0;

	known->counted = true;
	for (uint32_t i = 0; i < known->nr; i++) {
		parts[i].to = i + 1 < known->nr ? parts[i + 1].from - 1 : last;
		place.address = parts[i].from;
		sizes[i] = inlines->instructions(inlines->data, &place, parts[i].to + 1);
		known->counted &= sizes[i] > 0;
	}
	for (uint32_t i = 0; i < known->nr; i++) {
		parts[i].before = size;
		size += known->counted ? sizes[i] : parts[i].to + 1 - parts[i].from;
	}
	known->size = (uint32_t)size;
}

static void look_up(struct inlines *inlines, const struct track_place *from, uint64_t last,
		    struct inlines_known *known)
{
	known->nr = 0;
	find_parts(inlines, from, last, known);
	measure(inlines, from, last, known);
}

struct inlines_run inlines_run(struct inlines *inlines, const struct track_place *from,
			       uint64_t last)
{
	uint32_t pid = from->context == IP_KERNEL ? 0 : from->pid;
	struct inlines_known *known, want;

	if (last < from->address || last - from->address > RUN_MAX)
		last = from->address;
	known = &inlines->known[(from->address * 31 + last + pid) * 0x9e3779b97f4a7c15ull >> 32 &
				(KNOWN - 1)];
	if (!known->nr || known->from != from->address || known->last != last ||
	    known->pid != pid || known->context != (uint32_t)from->context ||
	    known->version != inlines->version) {
		if (inlines->nr_parts + RUN_PARTS_MAX > PARTS_MAX ||
		    inlines->nr_in + (size_t)RUN_PARTS_MAX * SYM_MAX_INLINE > IN_MAX)
			forget(inlines);
		want = (struct inlines_known){ .from = from->address,
					       .last = last,
					       .pid = pid,
					       .version = inlines->version,
					       .context = (uint32_t)from->context };
		look_up(inlines, from, last, &want);
		*known = want;
	}
	return (struct inlines_run){ inlines->parts + known->first, known->nr, known->size,
				     known->counted };
}

uint64_t inlines_before(const struct inlines_run *run, size_t part, uint64_t nr)
{
	uint64_t before = run->parts[part].before;

	if (!run->counted)
		return before * nr / run->size;
	return before < nr ? before : nr;
}
