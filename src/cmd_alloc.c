// SPDX-License-Identifier: GPL-2.0-or-later
/* alloc: shows how much memory each allocator allocated, for which stacks, and what went wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/wide.h"
#include "cmd.h"
#include "look.h"
#include "pass/alloc.h"

#define MAX_SHOWN_FRAMES 12

struct alloc_options {
	bool json;
	uint64_t limit;	 /* rows of a table; 0: all */
	uint64_t points; /* --live-over-time */
};

static const struct option_table alloc_table = {
	"Output",
	(const struct option_row[]){
		OPTION_JSON(struct alloc_options),
		{ "limit", 'n', "N", "print at most N rows (default 20, 0: all)",
		  OPTION_NUMBER(struct alloc_options, limit, 0, 1000000000) },
		{ "live-over-time", 0, "N", "show live memory in N intervals",
		  OPTION_NUMBER(struct alloc_options, points, 0, ALLOC_SERIES) },
		{ 0 },
	},
};

struct allocs {
	const struct alloc_options *asked;
	struct job *job;
	struct alloc_pass pass;
	struct buf text;
	struct json_out json; /* into text */
	uint32_t *order;      /* the sites of one allocator */
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
	.needs = WRITER_OUTSIDE,
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

/* Collects the sites of this allocator that have live blocks, the largest first. */
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

/* Calls each() for the functions of a site's stack, leaf first. */
static void each_frame(struct allocs *a, uint32_t handle,
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

			each(a, str_text(world->strings, symbol->name), nr++);
		}
	}
}

static void text_frame(struct allocs *a, const char *name, size_t nr)
{
	if (nr > MAX_SHOWN_FRAMES)
		return;
	buf_adds(&a->text, nr ? " <- " : "");
	text_add_plain(&a->text, nr < MAX_SHOWN_FRAMES ? name : "...");
}

static void print_leaks(struct allocs *a)
{
	size_t limit =
		a->asked->limit && a->asked->limit < a->nr_order ? a->asked->limit : a->nr_order;

	if (!a->nr_order)
		return;
	buf_adds(&a->text, "\n"
			   "  never freed, by allocating stack\n"
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
	buf_adds(&a->text, "\n  problems found\n");
	for (unsigned i = 0; i < FINDING_KINDS; i++) {
		if (heap->found[i])
			buf_addf(&a->text, "  %12" PRIu64 "  %s\n", heap->found[i],
				 finding_names[i]);
	}
	if (a->asked->limit && a->asked->limit < limit)
		limit = a->asked->limit;
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

/* The maximum that was live in the nth of `points` intervals of the recording. */
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
	return (unsigned)(a->asked->points < heap->nr_series ? a->asked->points : heap->nr_series);
}

static void print_series(struct allocs *a, const struct alloc_heap *heap)
{
	unsigned points = nr_points(a, heap);

	if (!points)
		return;
	buf_adds(&a->text, "\n  live over time: the maximum in each interval of events\n"
			   "    up to event        bytes\n");
	for (unsigned i = 0; i < points; i++) {
		uint64_t live = live_at(heap, points, i);
		uint64_t event = wide_quotient(wide_product(a->pass.events, i + 1), points);
		double share = heap->sum.peak ? (double)live / (double)heap->sum.peak : 0;

		buf_addf(&a->text, "  %13" PRIu64 " %12" PRIu64 "  ", event, live);
		look_bar(&a->text, share);
		buf_addc(&a->text, '\n');
	}
}

static void print_heap(struct allocs *a, uint32_t handle)
{
	const struct alloc_heap *heap = a->pass.heaps[handle];
	const struct alloc_sum *sum = &heap->sum;

	text_add_plain(&a->text, heap->name);
	buf_addf(&a->text,
		 ": %" PRIu64 " allocated, %" PRIu64 " resized, %" PRIu64 " freed\n"
		 "  in all        %12" PRIu64 " bytes\n"
		 "  at the peak   %12" PRIu64 " bytes in %" PRIu64 " blocks, after event %" PRIu64
		 "\n"
		 "  at the end    %12" PRIu64 " bytes in %" PRIu64 " blocks\n",
		 sum->allocs, sum->resizes, sum->frees, sum->total, sum->peak, sum->peak_blocks,
		 heap->peak_event + 1, sum->live, sum->live_blocks);
	if (heap->guesses)
		buf_addf(&a->text,
			 "  approximate: %" PRIu64
			 " blocks moved in a resize, and the data lacks their new address\n",
			 heap->guesses);
	print_series(a, heap);
	order_sites(a, handle);
	print_leaks(a);
	print_findings(a, heap);
	buf_addc(&a->text, '\n');
}

static void json_frame(struct allocs *a, const char *name, size_t nr)
{
	(void)nr;
	json_out_text(&a->json, NULL, name);
}

static void json_stack(struct allocs *a, uint32_t site)
{
	json_out_array(&a->json, "stack");
	each_frame(a, site, json_frame);
	json_out_end(&a->json);
}

static void json_leaks(struct allocs *a)
{
	struct json_out *to = &a->json;

	json_out_array(to, "never_freed");
	for (size_t i = 0; i < a->nr_order; i++) {
		const struct alloc_sum *sum = &a->pass.sites[a->order[i]].sum;

		json_out_object(to, NULL);
		json_out_u64(to, "bytes", sum->live);
		json_out_u64(to, "blocks", sum->live_blocks);
		json_stack(a, a->order[i]);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_findings(struct allocs *a, const struct alloc_heap *heap)
{
	struct json_out *to = &a->json;

	json_out_u64(to, "double_frees", heap->found[FINDING_DOUBLE_FREE]);
	json_out_u64(to, "unknown_frees", heap->found[FINDING_UNKNOWN_FREE]);
	json_out_u64(to, "unknown_resizes", heap->found[FINDING_UNKNOWN_RESIZE]);
	json_out_u64(to, "overlaps", heap->found[FINDING_OVERLAP]);
	json_out_array(to, "findings");
	for (size_t i = 0; i < heap->nr_findings; i++) {
		const struct alloc_finding *f = &heap->findings[i];

		json_out_object(to, NULL);
		json_out_text(to, "what", finding_names[f->kind]);
		json_out_u64(to, "ptr", f->ptr);
		json_out_u64(to, "offset", f->offset);
		json_stack(a, f->site);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_series(struct allocs *a, const struct alloc_heap *heap)
{
	unsigned points = nr_points(a, heap);

	json_out_array(&a->json, "live_over_time");
	for (unsigned i = 0; i < points; i++)
		json_out_u64(&a->json, NULL, live_at(heap, points, i));
	json_out_end(&a->json);
}

static void json_heap(struct allocs *a, uint32_t handle)
{
	const struct alloc_heap *heap = a->pass.heaps[handle];
	const struct alloc_sum *sum = &heap->sum;
	struct json_out *to = &a->json;

	json_out_object(to, NULL);
	json_out_text(to, "name", heap->name);
	json_out_u64(to, "allocs", sum->allocs);
	json_out_u64(to, "resizes", sum->resizes);
	json_out_u64(to, "frees", sum->frees);
	json_out_u64(to, "total_bytes", sum->total);
	json_out_u64(to, "live_bytes", sum->live);
	json_out_u64(to, "live_blocks", sum->live_blocks);
	json_out_u64(to, "peak_bytes", sum->peak);
	json_out_u64(to, "peak_blocks", sum->peak_blocks);
	json_out_u64(to, "peak_event", heap->peak_event + 1);
	json_out_u64(to, "guesses", heap->guesses);
	order_sites(a, handle);
	json_leaks(a);
	json_findings(a, heap);
	json_series(a, heap);
	json_out_end(to);
}

static void print_json(struct allocs *a)
{
	struct json_out *to = &a->json;

	to->to = &a->text;
	json_out_object(to, NULL);
	json_out_u64(to, "events", a->pass.events);
	json_out_u64(to, "lost", a->job->lost);
	json_out_u64(to, "damaged", a->job->damaged);
	json_out_array(to, "allocators");
	for (uint32_t i = 1; i < a->pass.nr_heaps; i++)
		json_heap(a, i);
	json_out_end(to);
	json_out_end(to);
}

static void print_text(struct allocs *a)
{
	for (uint32_t i = 1; i < a->pass.nr_heaps; i++)
		print_heap(a, i);
	if (!a->pass.events)
		buf_adds(&a->text, "no allocations\n");
}

static void print_all(struct allocs *a)
{
	if (a->asked->json)
		print_json(a);
	else
		print_text(a);
	fwrite(a->text.data, 1, a->text.len, stdout);
}

static int run(struct args *args)
{
	struct job job;
	struct allocs a = { .asked = args->state, .job = &job };
	struct writer writer = { .ops = &allocs_ops, .world = &job.world, .priv = &a };
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
	.usage = "alloc INPUT... [--kernel FILE] [OPTIONS]",
	.about = "Show what allocators did: totals, peak, blocks never freed, blocks freed twice.",
	.examples = "  kscope alloc memtrace --kernel maestro\n"
		    "  kscope alloc memtrace --kernel maestro --live-over-time 40\n"
		    "  kscope alloc memtrace --kernel maestro --json | python3 -m json.tool\n"
		    "  kscope flame memtrace --kernel maestro --value peak -o peak.svg\n",
	.options = OPTION_USES({ &alloc_table, 0 }),
	.defaults = &(const struct alloc_options){ .limit = 20 },
	.state_size = sizeof(struct alloc_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &allocs_ops, NULL },
	.run = run,
};
