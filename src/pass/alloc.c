// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "pass/merge.h"
#include "stage.h"

#define MAX_HEAPS 256

const char *const finding_names[FINDING_KINDS] = {
	[FINDING_DOUBLE_FREE] = "double free",
	[FINDING_UNKNOWN_FREE] = "free of unknown pointer",
	[FINDING_UNKNOWN_RESIZE] = "resize of unknown pointer",
	[FINDING_OVERLAP] = "new block over a live one",
};

void alloc_init(struct alloc_pass *pass, struct world *world)
{
	*pass = (struct alloc_pass){
		.world = world, .nr_heaps = 1, .nr_sites = 1, .nr_blocks = 1, .stretch = 1
	};
}

void alloc_release(struct alloc_pass *pass)
{
	for (size_t i = 1; i < pass->nr_heaps; i++) {
		free(pass->heaps[i]->findings);
		free(pass->heaps[i]->moved.at);
		free(pass->heaps[i]->resized.at);
		free(pass->heaps[i]);
	}
	free(pass->heaps);
	free(pass->sites);
	free(pass->blocks);
	hash_release(&pass->heap_by_name);
	hash_release(&pass->site_by_stack);
	hash_release(&pass->block_by_ptr);
	arena_release(&pass->arena);
}

/* Sizes come from the input: saturate instead of wrapping around. */
static void add_to(uint64_t *sum, uint64_t more)
{
	*sum = *sum > UINT64_MAX - more ? UINT64_MAX : *sum + more;
}

static void take_from(uint64_t *sum, uint64_t less)
{
	*sum = *sum < less ? 0 : *sum - less;
}

static struct hash_key name_key(const char *name)
{
	return (struct hash_key){ hash_bytes(name, strlen(name)), strlen(name) };
}

/* A kernel has a handful of allocators; more than MAX_HEAPS names are garbage and share a heap. */
static uint32_t heap_of(struct alloc_pass *pass, const char *name)
{
	uint32_t *handle, known = hash_get(&pass->heap_by_name, name_key(name));

	if (known)
		return known;
	if (pass->nr_heaps > MAX_HEAPS)
		name = "[others]";
	handle = hash_at(&pass->heap_by_name, name_key(name));
	if (!*handle) {
		struct alloc_heap *heap = xcalloc(1, sizeof(*heap));

		heap->name = arena_strndup(&pass->arena, name, strlen(name));
		*handle = (uint32_t)pass->nr_heaps;
		GROW(pass->heaps, pass->nr_heaps + 1, pass->cap_heaps);
		pass->heaps[pass->nr_heaps++] = heap;
	}
	return *handle;
}

static uint32_t site_of(struct alloc_pass *pass, const struct event *ev, uint32_t heap)
{
	const struct event_alloc *alloc = &ev->alloc;
	struct event sample = {
		.pid = ev->pid,
		.tid = ev->tid,
		.sample = { .ips = alloc->ips, .nr = alloc->nr, .context = alloc->context },
	};
	uint32_t stack = world_stack(pass->world, &sample);
	uint64_t who[] = { heap, (uint64_t)ev->pid << 32 | ev->tid, alloc->context, stack };
	struct hash_key key = hash_words(alloc->ips, alloc->nr, hash_words(who, 4, 0).a);
	uint32_t *handle = hash_at(&pass->site_by_stack, key);

	if (!*handle) {
		uint64_t *ips = arena_alloc(&pass->arena, (alloc->nr + 1) * sizeof(*ips));

		if (alloc->nr)
			memcpy(ips, alloc->ips, alloc->nr * sizeof(*ips));
		*handle = (uint32_t)pass->nr_sites;
		GROW(pass->sites, pass->nr_sites + 1, pass->cap_sites);
		pass->sites[pass->nr_sites++] = (struct alloc_site){
			.allocator = heap,
			.pid = ev->pid,
			.tid = ev->tid,
			.context = alloc->context,
			.stack = stack,
			.ips = ips,
			.nr = alloc->nr,
		};
	}
	return *handle;
}

/* Called before a site changes: until then, it has what it had at the allocator's last peak. */
static void note_peak(const struct alloc_heap *heap, struct alloc_site *site)
{
	if (site->peak_nr == heap->peak_nr)
		return;
	site->peak_nr = heap->peak_nr;
	site->sum.peak = site->sum.live;
	site->sum.peak_blocks = site->sum.live_blocks;
}

/* Halves the points of all allocators, so that they keep the same axis. */
static void thin_out(struct alloc_pass *pass)
{
	for (size_t h = 1; h < pass->nr_heaps; h++) {
		struct alloc_heap *heap = pass->heaps[h];

		for (size_t i = 0; i < heap->nr_series; i++) {
			uint64_t *to = &heap->series[i / 2];

			*to = i % 2 && *to > heap->series[i] ? *to : heap->series[i];
		}
		heap->nr_series = (heap->nr_series + 1) / 2;
	}
	pass->stretch *= 2;
}

/* Extends a series with `live` up to the current event. Called before and after `live` changes. */
static void draw_to(struct alloc_pass *pass, struct alloc_heap *heap)
{
	size_t point = pass->events / pass->stretch;

	if (point < heap->nr_series) {
		if (heap->series[point] < heap->sum.live)
			heap->series[point] = heap->sum.live;
		return;
	}
	while (heap->nr_series <= point)
		heap->series[heap->nr_series++] = heap->sum.live;
}

static void find(struct alloc_heap *heap, const struct event *ev, enum finding_kind kind,
		 uint32_t site)
{
	if (ev->outside)
		return;
	heap->found[kind]++;
	if (heap->nr_findings == ALLOC_MAX_FINDINGS)
		return;
	GROW(heap->findings, heap->nr_findings + 1, heap->cap_findings);
	heap->findings[heap->nr_findings++] = (struct alloc_finding){
		.kind = kind,
		.ptr = ev->alloc.ptr,
		.offset = ev->alloc.offset,
		.site = site,
		.input = ev->input,
	};
}

static void grow(struct alloc_heap *heap, struct alloc_site *site, uint64_t bytes, uint64_t blocks)
{
	struct alloc_sum *sums[] = { &heap->sum, &site->sum };

	note_peak(heap, site);
	for (unsigned i = 0; i < 2; i++) {
		add_to(&sums[i]->live, bytes);
		add_to(&sums[i]->total, bytes);
		sums[i]->live_blocks += blocks;
		sums[i]->allocs += blocks;
	}
}

static void shrink(struct alloc_heap *heap, struct alloc_site *site, uint64_t bytes,
		   uint64_t blocks)
{
	struct alloc_sum *sums[] = { &heap->sum, &site->sum };

	note_peak(heap, site);
	for (unsigned i = 0; i < 2; i++) {
		take_from(&sums[i]->live, bytes);
		take_from(&sums[i]->live_blocks, blocks);
	}
}

static void queue(struct alloc_pass *pass, struct alloc_queue *q, uint32_t block)
{
	GROW(q->at, q->first + q->nr + 1, q->cap);
	q->at[q->first + q->nr].block = block;
	q->at[q->first + q->nr].born = pass->blocks[block].born;
	q->nr++;
}

/* Removes and returns the oldest block that is still live; 0 if there is none. */
static uint32_t unqueue(struct alloc_pass *pass, struct alloc_queue *q)
{
	while (q->nr) {
		uint32_t handle = q->at[q->first].block;
		const struct alloc_block *block = &pass->blocks[handle];
		bool same = block->live && block->born == q->at[q->first].born;

		q->first++;
		q->nr--;
		if (same)
			return handle;
	}
	q->first = 0;
	return 0;
}

static struct hash_key ptr_key(uint32_t heap, uint64_t ptr)
{
	return (struct hash_key){ ptr, heap };
}

static void tell(struct alloc_pass *pass, const struct alloc_block *block, uint64_t was,
		 uint64_t now)
{
	if (pass->change && !block->outside)
		pass->change(pass->arg, (uint32_t)(block - pass->blocks), pass->by, was, now);
}

static void begin_block(struct alloc_pass *pass, const struct event *ev, uint32_t heap,
			uint32_t site)
{
	uint32_t *handle = hash_at(&pass->block_by_ptr, ptr_key(heap, ev->alloc.ptr));

	/* A block that is live or has another address by now has moved, and keeps its slot. */
	if (!*handle || pass->blocks[*handle].live || pass->blocks[*handle].ptr != ev->alloc.ptr) {
		*handle = (uint32_t)pass->nr_blocks;
		GROW(pass->blocks, pass->nr_blocks + 1, pass->cap_blocks);
		pass->nr_blocks++;
	}
	pass->blocks[*handle] = (struct alloc_block){
		.ptr = ev->alloc.ptr,
		.size = ev->alloc.size,
		.born = pass->events,
		.site = site,
		.live = true,
		.outside = ev->outside,
	};
	if (!ev->outside)
		grow(pass->heaps[heap], &pass->sites[site], ev->alloc.size, 1);
	tell(pass, &pass->blocks[*handle], 0, ev->alloc.size);
}

static void end_block(struct alloc_pass *pass, uint32_t heap, struct alloc_block *block)
{
	if (!block->outside)
		shrink(pass->heaps[heap], &pass->sites[block->site], block->size, 1);
	block->live = false;
	tell(pass, block, block->size, 0);
}

/* A new block has the address of a live one, which has moved, or whose free is missing. */
static void displace(struct alloc_pass *pass, const struct event *ev, uint32_t heap, uint32_t site,
		     uint32_t handle)
{
	if (pass->blocks[handle].queued) {
		queue(pass, &pass->heaps[heap]->moved, handle);
		return;
	}
	find(pass->heaps[heap], ev, FINDING_OVERLAP, site);
	end_block(pass, heap, &pass->blocks[handle]);
}

/* Guesses which block moved to this address. Returns 0 if none can have. */
static uint32_t guess(struct alloc_pass *pass, uint32_t heap, uint64_t ptr)
{
	struct alloc_heap *h = pass->heaps[heap];
	uint32_t handle = unqueue(pass, &h->moved);

	if (!handle)
		handle = unqueue(pass, &h->resized);
	if (!handle)
		return 0;
	h->guesses += !pass->blocks[handle].outside;
	pass->blocks[handle].ptr = ptr;
	pass->blocks[handle].queued = false;
	*hash_at(&pass->block_by_ptr, ptr_key(heap, ptr)) = handle;
	return handle;
}

static void resize(struct alloc_pass *pass, const struct event *ev, uint32_t heap, uint32_t handle)
{
	struct alloc_block *block = &pass->blocks[handle];
	struct alloc_site *site = &pass->sites[block->site];
	uint64_t size = ev->alloc.size;
	bool grows = size > block->size;

	if (!block->outside) {
		if (grows)
			grow(pass->heaps[heap], site, size - block->size, 0);
		else
			shrink(pass->heaps[heap], site, block->size - size, 0);
		pass->heaps[heap]->sum.resizes++;
		site->sum.resizes++;
	}
	tell(pass, block, block->size, size);
	block->size = size;
	if (grows && !block->queued) { /* a block that shrinks does not move */
		block->queued = true;
		queue(pass, &pass->heaps[heap]->resized, handle);
	}
}

static void apply(struct alloc_pass *pass, const struct event *ev, uint32_t heap, uint32_t site)
{
	struct alloc_heap *h = pass->heaps[heap];
	uint32_t handle = hash_get(&pass->block_by_ptr, ptr_key(heap, ev->alloc.ptr));
	bool live =
		handle && pass->blocks[handle].live && pass->blocks[handle].ptr == ev->alloc.ptr;

	if (ev->alloc.op == ALLOC_NEW) {
		if (live)
			displace(pass, ev, heap, site, handle);
		begin_block(pass, ev, heap, site);
		return;
	}
	if (!live) {
		uint32_t moved = guess(pass, heap, ev->alloc.ptr);

		live = moved != 0;
		handle = live ? moved : handle;
	}
	if (ev->alloc.op == ALLOC_RESIZE && live) {
		resize(pass, ev, heap, handle);
	} else if (ev->alloc.op == ALLOC_RESIZE) {
		find(h, ev, FINDING_UNKNOWN_RESIZE, site);
		begin_block(pass, ev, heap, site);
	} else if (live) {
		if (!pass->blocks[handle].outside) {
			h->sum.frees++;
			pass->sites[pass->blocks[handle].site].sum.frees++;
		}
		end_block(pass, heap, &pass->blocks[handle]);
	} else {
		h->sum.frees += !ev->outside;
		find(h, ev, handle ? FINDING_DOUBLE_FREE : FINDING_UNKNOWN_FREE, site);
	}
}

void alloc_add(struct alloc_pass *pass, const struct event *ev)
{
	uint32_t heap = heap_of(pass, ev->alloc.allocator);
	uint32_t site = site_of(pass, ev, heap);
	struct alloc_heap *h = pass->heaps[heap];

	if (pass->events / pass->stretch >= ALLOC_SERIES)
		thin_out(pass);
	draw_to(pass, h);
	pass->by = site;
	apply(pass, ev, heap, site);
	draw_to(pass, h);
	if (h->sum.live > h->sum.peak || (h->sum.live == h->sum.peak && !h->peak_nr)) {
		h->sum.peak = h->sum.live;
		h->sum.peak_blocks = h->sum.live_blocks;
		h->peak_event = pass->events;
		h->peak_nr++;
	}
	pass->events++;
}

void alloc_finish(struct alloc_pass *pass)
{
	for (size_t i = 1; i < pass->nr_sites; i++)
		note_peak(pass->heaps[pass->sites[i].allocator], &pass->sites[i]);
	if (!pass->events)
		return;
	pass->events--; /* extend all series to the last event */
	for (size_t i = 1; i < pass->nr_heaps; i++)
		draw_to(pass, pass->heaps[i]);
	pass->events++;
}

void alloc_say_findings(const struct alloc_pass *pass,
			void (*say)(void *arg, const char *kind, uint64_t nr), void *arg)
{
	for (size_t h = 1; h < pass->nr_heaps; h++) {
		const struct alloc_heap *heap = pass->heaps[h];

		for (unsigned i = 0; i < FINDING_KINDS; i++) {
			char *kind;

			if (!heap->found[i])
				continue;
			kind = xasprintf("%s: %s", heap->name, finding_names[i]);
			log_warn("%s: %" PRIu64 "; kscope alloc lists them", kind, heap->found[i]);
			say(arg, kind, heap->found[i]);
			free(kind);
		}
	}
}

/* ---- the stage ---- */

struct alloc_stage {
	struct alloc_pass pass; /* must be first: functions of the pass get s->priv */
	enum value { VALUE_LIVE, VALUE_TOTAL, VALUE_COUNT, VALUE_PEAK } value;
};

static const char *const values[] = { "live", "total", "count", "peak", NULL };

static const struct option_table value_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "value", 0, "KIND", "show live (default), total, count or peak of allocations",
		  OPTION_WORD(struct alloc_stage, value, values) },
		{ 0 },
	},
};

static void measure(const struct alloc_sum *sum, enum value value, struct event_sample *sample)
{
	switch (value) {
	case VALUE_LIVE:
		sample->weight = sum->live;
		sample->count = sum->live_blocks;
		break;
	case VALUE_PEAK:
		sample->weight = sum->peak;
		sample->count = sum->peak_blocks;
		break;
	case VALUE_TOTAL:
		sample->weight = sum->total;
		sample->count = sum->allocs;
		break;
	case VALUE_COUNT: sample->weight = sample->count = sum->allocs; break;
	}
}

static int alloc_open(struct stage *s)
{
	alloc_init(s->priv, s->chain->world);
	return 0;
}

static int alloc_push(struct stage *s, struct event *ev)
{
	alloc_add(s->priv, ev);
	return 0;
}

static void warn_of_findings(const struct stage *s, const struct alloc_heap *heap)
{
	const struct alloc_finding *first = heap->findings;
	uint64_t all = 0;

	for (unsigned i = 0; i < FINDING_KINDS; i++)
		all += heap->found[i];
	if (all)
		log_warn("%s: byte %" PRIu64 ": %s: %s 0x%" PRIx64 ", the first of %" PRIu64
			 " problems; kscope alloc lists the others",
			 s->chain->merge->inputs[first->input].in.path, first->offset, heap->name,
			 finding_names[first->kind], first->ptr, all);
}

static int emit_heap(struct stage *s, struct alloc_heap *heap, uint32_t id)
{
	const struct alloc_stage *stage = s->priv;
	struct event_source source = {
		.id = id,
		.name = heap->name,
		.type = SOURCE_SOFTWARE,
		.config = 9, /* PERF_COUNT_SW_DUMMY */
		.unit = stage->value == VALUE_COUNT ? "allocations" : "bytes",
	};

	return stage_source(s, &source, &heap->source);
}

static int emit_site(struct stage *s, const struct alloc_site *site)
{
	const struct alloc_stage *stage = s->priv;
	const struct alloc_pass *pass = &stage->pass;
	struct event ev;

	stage_event(s, &ev, EVENT_SAMPLE);
	ev.pid = site->pid;
	ev.tid = site->tid;
	ev.sample = (struct event_sample){
		.ips = site->ips,
		.nr = site->nr,
		.stack = site->stack,
		.source = pass->heaps[site->allocator]->source,
		.context = site->context,
	};
	measure(&site->sum, stage->value, &ev.sample);
	return ev.sample.count ? stage_emit(s, &ev) : 0;
}

/* Emits the sums as samples, at the end only. */
static int alloc_flush(struct stage *s, uint64_t until)
{
	struct alloc_pass *pass = s->priv;

	if (until != UINT64_MAX)
		return 0;
	alloc_finish(pass);
	for (size_t i = 1; i < pass->nr_heaps; i++)
		warn_of_findings(s, pass->heaps[i]);
	for (size_t i = 1; i < pass->nr_heaps; i++) {
		if (emit_heap(s, pass->heaps[i], (uint32_t)i) < 0)
			return -1;
	}
	for (size_t i = 1; i < pass->nr_sites; i++) {
		if (emit_site(s, &pass->sites[i]) < 0)
			return -1;
	}
	return 0;
}

static void alloc_close(struct stage *s)
{
	alloc_release(s->priv);
}

const struct stage_ops stage_alloc = {
	.name = "alloc",
	.takes = EVENT_BIT(EVENT_ALLOC),
	.makes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE),
	.options = OPTION_USES({ &value_table, 0 }),
	.priv_size = sizeof(struct alloc_stage),
	.open = alloc_open,
	.push = alloc_push,
	.flush = alloc_flush,
	.close = alloc_close,
};
