// SPDX-License-Identifier: GPL-2.0-or-later
/* alloc: what allocators did: how much is live, where it came from, and what went wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "pass/alloc.h"

#define MAX_SHOWN_FRAMES 12
#define BAR 50

struct allocs {
	const struct args *args;
	struct job *job;
	struct alloc_pass pass;
	struct buf text;
	uint32_t *order; /* the sites of one allocator */
	size_t nr_order, cap_order;
};

static int allocs_put(struct writer *w, const struct event *ev)
{
	struct allocs *a = w->priv;

	alloc_add(&a->pass, ev);
	return 0;
}

static int allocs_finish(struct writer *w)
{
	struct allocs *a = w->priv;

	alloc_finish(&a->pass);
	return 0;
}

static const struct writer_ops allocs_ops = {
	.name = "alloc",
	.takes = EVENT_BIT(EVENT_ALLOC),
	.put = allocs_put,
	.finish = allocs_finish,
};

static int by_live(const void *va, const void *vb, void *arg)
{
	const struct alloc_site *sites = arg;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	if (sites[a].sum.live != sites[b].sum.live)
		return sites[a].sum.live > sites[b].sum.live ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* The sites of this allocator that have live blocks, the largest first. */
static void order_sites(struct allocs *a, uint32_t heap)
{
	a->nr_order = 0;
	for (uint32_t i = 1; i < a->pass.nr_sites; i++) {
		if (a->pass.sites[i].allocator != heap || !a->pass.sites[i].sum.live_blocks)
			continue;
		GROW(a->order, a->nr_order + 1, a->cap_order);
		a->order[a->nr_order++] = i;
	}
	if (a->nr_order)
		qsort_r(a->order, a->nr_order, sizeof(*a->order), by_live, a->pass.sites);
}

/* Calls each(name) for the functions of a stack, from the leaf; returns how many there are. */
static size_t each_frame(struct allocs *a, uint32_t handle,
			 void (*each)(struct allocs *a, const char *name, size_t nr))
{
	const struct alloc_site *site = &a->pass.sites[handle];
	struct world *world = &a->job->world;
	size_t nr = 0;

	for (uint32_t s = site->stack; s; s = world->stacks.all[s].parent) {
		uint32_t frame = world->stacks.all[s].frame;
		size_t nr_symbols = 1;

		for (size_t i = 0; i < nr_symbols; i++) {
			const struct symbol *symbol = &frame_symbols(world, frame, &nr_symbols)[i];

			if (!symbol->inlined || !a->args->options.no_inline)
				each(a, str_text(world->strings, symbol->name), nr++);
		}
	}
	return nr;
}

static void text_frame(struct allocs *a, const char *name, size_t nr)
{
	if (nr < MAX_SHOWN_FRAMES)
		buf_addf(&a->text, "%s%s", nr ? " <- " : "", name);
	else if (nr == MAX_SHOWN_FRAMES)
		buf_adds(&a->text, " <- ...");
}

static void json_frame(struct allocs *a, const char *name, size_t nr)
{
	buf_adds(&a->text, nr ? "," : "");
	text_quote_json(&a->text, name);
}

static void print_leaks(struct allocs *a)
{
	size_t limit =
		a->args->limit && a->args->limit < a->nr_order ? a->args->limit : a->nr_order;

	if (!a->nr_order)
		return;
	buf_adds(&a->text, "\n  never freed, by the stack that allocated it\n"
			   "         bytes     blocks\n");
	for (size_t i = 0; i < limit; i++) {
		const struct alloc_sum *sum = &a->pass.sites[a->order[i]].sum;

		buf_addf(&a->text, "  %12" PRIu64 " %10" PRIu64 "  ", sum->live, sum->live_blocks);
		each_frame(a, a->order[i], text_frame);
		buf_addc(&a->text, '\n');
	}
	if (limit < a->nr_order)
		buf_addf(&a->text, "%27s(%zu more stacks: --limit 0)\n", "", a->nr_order - limit);
}

static void print_findings(struct allocs *a, const struct alloc_heap *heap)
{
	uint64_t all = 0;
	size_t limit = heap->nr_findings;

	for (unsigned i = 0; i < FINDING_KINDS; i++)
		all += heap->found[i];
	if (!all)
		return;
	buf_adds(&a->text, "\n  not in order\n");
	for (unsigned i = 0; i < FINDING_KINDS; i++) {
		if (heap->found[i])
			buf_addf(&a->text, "  %12" PRIu64 "  %s\n", heap->found[i],
				 finding_names[i]);
	}
	if (a->args->limit && a->args->limit < limit)
		limit = a->args->limit;
	for (size_t i = 0; i < limit; i++) {
		const struct alloc_finding *f = &heap->findings[i];

		buf_addf(&a->text, "  byte %" PRIu64 ": %s 0x%" PRIx64 " by ", f->offset,
			 finding_names[f->kind], f->ptr);
		each_frame(a, f->site, text_frame);
		buf_addc(&a->text, '\n');
	}
	if (limit < all)
		buf_addf(&a->text, "  (%" PRIu64 " more)\n", all - limit);
}

/* The most that was live in the nth of `points` parts of the recording. */
static uint64_t live_at(const struct alloc_heap *heap, unsigned points, unsigned n)
{
	size_t from = heap->nr_series * n / points, until = heap->nr_series * (n + 1) / points;
	uint64_t most = 0;

	for (size_t i = from; i < until || i == from; i++)
		most = heap->series[i] > most ? heap->series[i] : most;
	return most;
}

static unsigned nr_points(const struct allocs *a, const struct alloc_heap *heap)
{
	return a->args->points < heap->nr_series ? a->args->points : (unsigned)heap->nr_series;
}

static void print_series(struct allocs *a, const struct alloc_heap *heap)
{
	unsigned points = nr_points(a, heap);

	if (!points)
		return;
	buf_adds(&a->text, "\n  live over time: the most in each stretch of events\n"
			   "    up to event        bytes\n");
	for (unsigned i = 0; i < points; i++) {
		uint64_t live = live_at(heap, points, i);
		uint64_t event = (uint64_t)((__uint128_t)a->pass.events * (i + 1) / points);
		double share = heap->sum.peak ? (double)live / (double)heap->sum.peak : 0;

		buf_addf(&a->text, "  %13" PRIu64 " %12" PRIu64 "  %.*s\n", event, live,
			 (int)(share * BAR + 0.5),
			 "##################################################");
	}
}

static void print_heap(struct allocs *a, uint32_t handle)
{
	const struct alloc_heap *heap = a->pass.heaps[handle];
	const struct alloc_sum *sum = &heap->sum;

	buf_addf(&a->text,
		 "%s: %" PRIu64 " allocated, %" PRIu64 " resized, %" PRIu64 " freed\n"
		 "  in all        %12" PRIu64 " bytes\n"
		 "  at the peak   %12" PRIu64 " bytes in %" PRIu64 " blocks, after event %" PRIu64
		 "\n"
		 "  at the end    %12" PRIu64 " bytes in %" PRIu64 " blocks\n",
		 heap->name, sum->allocs, sum->resizes, sum->frees, sum->total, sum->peak,
		 sum->peak_blocks, heap->peak_event + 1, sum->live, sum->live_blocks);
	if (heap->guesses)
		buf_addf(&a->text,
			 "  approximate: %" PRIu64
			 " blocks moved in a resize, which says not where to\n",
			 heap->guesses);
	print_series(a, heap);
	order_sites(a, handle);
	print_leaks(a);
	print_findings(a, heap);
	buf_addc(&a->text, '\n');
}

static void json_leaks(struct allocs *a)
{
	buf_adds(&a->text, ",\n\"never_freed\":[");
	for (size_t i = 0; i < a->nr_order; i++) {
		const struct alloc_sum *sum = &a->pass.sites[a->order[i]].sum;

		buf_addf(&a->text, "%s\n{\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"stack\":[",
			 i ? "," : "", sum->live, sum->live_blocks);
		each_frame(a, a->order[i], json_frame);
		buf_adds(&a->text, "]}");
	}
	buf_addc(&a->text, ']');
}

static void json_findings(struct allocs *a, const struct alloc_heap *heap)
{
	buf_addf(&a->text,
		 ",\n\"double_frees\":%" PRIu64 ",\"unknown_frees\":%" PRIu64
		 ",\"unknown_resizes\":%" PRIu64 ",\"overlaps\":%" PRIu64 ",\"findings\":[",
		 heap->found[FINDING_DOUBLE_FREE], heap->found[FINDING_UNKNOWN_FREE],
		 heap->found[FINDING_UNKNOWN_RESIZE], heap->found[FINDING_OVERLAP]);
	for (size_t i = 0; i < heap->nr_findings; i++) {
		const struct alloc_finding *f = &heap->findings[i];

		buf_addf(&a->text,
			 "%s\n{\"what\":\"%s\",\"ptr\":%" PRIu64 ",\"offset\":%" PRIu64
			 ",\"stack\":[",
			 i ? "," : "", finding_names[f->kind], f->ptr, f->offset);
		each_frame(a, f->site, json_frame);
		buf_adds(&a->text, "]}");
	}
	buf_addc(&a->text, ']');
}

static void json_heap(struct allocs *a, uint32_t handle)
{
	const struct alloc_heap *heap = a->pass.heaps[handle];
	const struct alloc_sum *sum = &heap->sum;
	unsigned points = nr_points(a, heap);

	buf_adds(&a->text, handle > 1 ? ",\n{\"name\":" : "{\"name\":");
	text_quote(&a->text, heap->name, strlen(heap->name));
	buf_addf(&a->text,
		 ",\"allocs\":%" PRIu64 ",\"resizes\":%" PRIu64 ",\"frees\":%" PRIu64
		 ",\"total_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64 ",\"live_blocks\":%" PRIu64
		 ",\"peak_bytes\":%" PRIu64 ",\"peak_blocks\":%" PRIu64 ",\"peak_event\":%" PRIu64
		 ",\"guesses\":%" PRIu64,
		 sum->allocs, sum->resizes, sum->frees, sum->total, sum->live, sum->live_blocks,
		 sum->peak, sum->peak_blocks, heap->peak_event + 1, heap->guesses);
	order_sites(a, handle);
	json_leaks(a);
	json_findings(a, heap);
	buf_adds(&a->text, ",\n\"live_over_time\":[");
	for (unsigned i = 0; i < points; i++)
		buf_addf(&a->text, "%s%" PRIu64, i ? "," : "", live_at(heap, points, i));
	buf_adds(&a->text, "]}");
}

static void print_all(struct allocs *a)
{
	bool json = a->args->json;

	if (json)
		buf_addf(&a->text,
			 "{\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"damaged\":%" PRIu64
			 ",\"allocators\":[\n",
			 a->pass.events, a->job->lost, a->job->damaged);
	for (uint32_t i = 1; i < a->pass.nr_heaps; i++) {
		if (json)
			json_heap(a, i);
		else
			print_heap(a, i);
	}
	if (json)
		buf_adds(&a->text, "]}\n");
	else if (!a->pass.events)
		buf_adds(&a->text, "no allocations\n");
	fwrite(a->text.data, 1, a->text.len, stdout);
}

static int run(struct args *args)
{
	struct job job;
	struct allocs a = { .args = args, .job = &job };
	struct writer writer = {
		.ops = &allocs_ops, .options = &args->options, .world = &job.world, .priv = &a
	};
	struct strtab strings;
	int ret;

	strtab_init(&strings);
	args_job(args, &job);
	ret = job_open(&job, &strings);
	alloc_init(&a.pass, &job.world);
	if (ret == 0)
		ret = job_run(&job, (struct writer *[]){ &writer }, 1);
	if (ret == 0)
		print_all(&a);
	ret = job_result(&job, ret);
	alloc_release(&a.pass);
	free(a.order);
	buf_release(&a.text);
	job_release(&job);
	strtab_release(&strings);
	return ret;
}

const struct command cmd_alloc = {
	.name = "alloc",
	.verb = VERB_ALLOC,
	.usage = "alloc IN... [--kernel ELF] [options]",
	.about = "Tell what allocators did: totals, peak, what was never freed, what was freed "
		 "twice.",
	.examples = "  kscope alloc memtrace --kernel maestro\n"
		    "  kscope alloc memtrace --kernel maestro --live-over-time 40\n"
		    "  kscope alloc memtrace --kernel maestro --json | python3 -m json.tool\n"
		    "  kscope flame memtrace --kernel maestro --value peak -o peak.svg\n",
	.run = run,
};
