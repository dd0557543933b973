// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libkscope-dlfilter.so: perf script --dlfilter hands it the branches that perf decodes, and it draws them on a time
 * axis, as kscope trace does:
 *
 *	perf script --itrace=be --dlfilter libkscope-dlfilter.so --dlarg FILE [--dlarg t|c|i]
 *
 * perf calls start(), filter_event() for each sample, and stop(), all in one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "base/log.h"
#include "base/mem.h"
#include "code.h"
#include "output.h"
#include "read/perf_branch.h"

#define EXPORT __attribute__((visibility("default")))

#define KEEP_OUT 1 /* perf must not print the sample */

struct filter {
	struct options options;
	struct job job;
	struct output output;
	struct conversion *conversion;
	struct code code;
	struct hash threads; /* by tid: index of its counts, from 1 on */
	struct counts {
		uint32_t comm;	       /* the digest of its name */
		uint64_t instructions; /* since its last branch */
		struct perf_away away;
	} * counts;
	size_t nr, cap;
	bool counted; /* there are samples of instructions, which count them exactly */
	int ret;
};

EXPORT struct perf_dlfilter_fns perf_dlfilter_fns;

/* ---- start and stop ---- */

static int parse_axis(struct filter *f, const char *word)
{
	static const struct {
		const char *word;
		enum slice_axis axis;
	} axes[] = { { "t", AXIS_TIME }, { "c", AXIS_CYCLES }, { "i", AXIS_INSTRUCTIONS } };

	for (size_t i = 0; i < sizeof(axes) / sizeof(*axes); i++) {
		if (strcmp(word, axes[i].word))
			continue;
		f->options.timeline.axis = axes[i].axis;
		return 0;
	}
	return err_set(&f->job.err, ERR_USAGE,
		       "the second --dlarg is the axis: t (time), c (cycles) or i (instructions), "
		       "not '%s'",
		       word);
}

static int parse_args(struct filter *f, void *ctx)
{
	int nr = 0;
	char **args = perf_dlfilter_fns.args(ctx, &nr);

	if (nr < 1 || nr > 2)
		return err_set(
			&f->job.err, ERR_USAGE,
			"needs --dlarg FILE, and may have a second one, the axis: t, c or i");
	f->output.path = args[0];
	f->output.ops = writer_choose(NULL, args[0], &f->job.err);
	if (!f->output.ops)
		return -1;
	return nr > 1 ? parse_axis(f, args[1]) : 0;
}

static void release(struct filter *f)
{
	code_release(&f->code);
	hash_release(&f->threads);
	free(f->counts);
	free(f);
}

EXPORT int start(void **data, void *ctx)
{
	struct filter *f = xcalloc(1, sizeof(*f));

	f->job.options = &f->options;
	if (parse_args(f, ctx) < 0) {
		log_error("%s", f->job.err.msg);
		release(f);
		return -1;
	}
	f->conversion = convert_begin(&f->job, &f->output, 1, &f->ret);
	if (f->ret < 0) {
		convert_end(f->conversion, f->ret);
		release(f);
		return -1;
	}
	*data = f;
	return 0;
}

EXPORT int stop(void *data, void *ctx)
{
	struct filter *f = data;
	int code;

	(void)ctx;
	if (!f)
		return 0;
	code = convert_end(f->conversion, f->ret);
	if (code == ERR_NONE || code == ERR_PARTIAL)
		log_say("wrote %s; next: %s", f->output.path, f->output.ops->next);
	release(f);
	return code == ERR_NONE || code == ERR_PARTIAL ? 0 : -1;
}

EXPORT const char *filter_description(const char **more)
{
	if (more)
		*more = "Give the output with --dlarg FILE. Its name decides the format: .pftrace, "
			".fxt or "
			".ftf... A second --dlarg is the axis: t (time), c (cycles) or i "
			"(instructions).";
	return "draws calls on a time axis, for Perfetto";
}

/* ---- samples ---- */

static int push(struct filter *f, struct event *ev)
{
	if (f->ret == 0)
		f->ret = job_push(&f->job, ev, 1);
	return f->ret;
}

static struct counts *counts_of(struct filter *f, uint32_t tid)
{
	uint32_t *at = hash_at(&f->threads, (struct hash_key){ tid, 0 });

	if (!*at) {
		GROW(f->counts, f->nr + 1, f->cap);
		f->counts[f->nr++] = (struct counts){ 0 };
		*at = (uint32_t)f->nr;
	}
	return &f->counts[*at - 1];
}

static void tell_comm(struct filter *f, const struct perf_dlfilter_sample *sample, const char *comm)
{
	struct counts *counts = counts_of(f, (uint32_t)sample->tid);
	uint32_t digest = comm ? (uint32_t)hash_bytes(comm, strlen(comm)) | 1 : 0;
	struct event ev = { .kind = EVENT_COMM,
			    .time = sample->time,
			    .cpu = NO_CPU,
			    .pid = (uint32_t)sample->pid,
			    .tid = (uint32_t)sample->tid,
			    .comm = { .comm = comm } };

	if (!digest || counts->comm == digest)
		return;
	counts->comm = digest;
	if (*comm != ':') /* perf's name of a task without one: :PID */
		push(f, &ev);
}

/* Tells what is at both ends of a branch, as far as that is news. */
static void tell_code(struct filter *f, const struct perf_dlfilter_sample *sample, void *ctx)
{
	uint32_t pid = (uint32_t)sample->pid;
	bool begins = sample->flags & PERF_IS_BEGIN;
	const struct perf_dlfilter_al *al;
	struct event ev;

	if (begins || (sample->ip && code_asks(&f->code, pid, sample->ip))) {
		al = perf_dlfilter_fns.resolve_ip(ctx);
		if (al && al->size >= OLDEST_AL)
			tell_comm(f, sample, al->comm);
		if (sample->ip && code_learn(&f->code, pid, sample->ip, al, &ev))
			push(f, &ev);
	}
	if (sample->addr && sample->addr_correlates_sym && code_asks(&f->code, pid, sample->addr)) {
		al = perf_dlfilter_fns.resolve_addr(ctx);
		if (code_learn(&f->code, pid, sample->addr, al, &ev))
			push(f, &ev);
	}
}

static uint32_t ask_size(void *ctx)
{
	uint32_t size = 0;

	return perf_dlfilter_fns.insn(ctx, &size) ? size : 0;
}

static void take_branch(struct filter *f, const struct perf_dlfilter_sample *sample, void *ctx)
{
	struct counts *counts = counts_of(f, (uint32_t)sample->tid);
	uint64_t instructions = f->counted ? counts->instructions : sample->insn_cnt;
	struct perf_branch branch = {
		.flags = sample->flags,
		.from = sample->ip,
		.to = sample->addr,
		.from_kernel = sample->ip >> 63,
		.to_kernel = sample->addr >> 63,
		.instructions = instructions,
		.cycles = sample->cyc_cnt,
	};
	struct event ev = { .kind = EVENT_BRANCH,
			    .time = sample->time,
			    .cpu = sample->cpu < 0 ? NO_CPU : (uint32_t)sample->cpu,
			    .pid = (uint32_t)sample->pid,
			    .tid = (uint32_t)sample->tid };

	counts->instructions = 0;
	if (sample->flags & PERF_IS_CALL && sample->ip)
		branch.size = code_size(&f->code, ev.pid, sample->ip, ask_size, ctx);
	/* The kernel may have mapped something. */
	if (sample->flags & (PERF_IS_BEGIN | PERF_IS_SYSCALL | PERF_IS_INTERRUPT))
		code_changed(&f->code, ev.pid);
	tell_code(f, sample, ctx);
	ev.branch = perf_branch(&branch);
	perf_branch_back(&counts->away, &ev.branch);
	push(f, &ev);
}

static bool is_event(const struct perf_dlfilter_sample *sample, const char *name)
{
	return sample->event && !strncmp(sample->event, name, strlen(name));
}

EXPORT int filter_event(void *data, const struct perf_dlfilter_sample *sample, void *ctx)
{
	struct filter *f = data;

	if (sample->size < OLDEST_SAMPLE) {
		log_error("this version of perf hands too little to a dlfilter");
		return -1;
	}
	if (is_event(sample, "instructions")) {
		f->counted = true;
		counts_of(f, (uint32_t)sample->tid)->instructions += sample->period;
	} else if (is_event(sample, "branches")) {
		take_branch(f, sample, ctx);
	}
	return f->ret < 0 ? -1 : KEEP_OUT;
}
