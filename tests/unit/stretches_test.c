// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pass/stretches. A sample is `TIME TASK CPU STACK`, with a letter for each function, from the root on; a CPU of
 * `-` is unknown, and `!` after it: the cpu is not selected. `lost TIME CPU` may come in between. Each slice is a
 * line, in the order of their ends:
 *
 *	BEGIN-END TASK FUNCTION SAMPLES INSTRUCTIONS
 *	BEGIN-END cpu N runs TASK
 *	BEGIN-END cpu N gap
 *
 * Calls are indented by their depth. `~` before a time: the slice is cut there.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pass/stretches.h"
#include "test.h"

#define TRACKS 512
#define DEPTHS 64
#define SHARED 1000000000

struct shown {
	char text[65536];
	size_t len;
	const char *stacks[65536]; /* by handle */
	uint32_t nr_stacks;
	uint32_t functions[DEPTHS];
	unsigned depth[TRACKS];
	uint32_t open[TRACKS][DEPTHS];
	bool cut[TRACKS][DEPTHS];
	uint64_t last[TRACKS]; /* time of the last event */
	uint64_t covered;      /* by outermost slices, in ns */
	uint64_t ran;	       /* likewise, of runs */
	unsigned running;
	unsigned nr_open;
	bool quiet, wrong;
};

static void print(struct shown *shown, const char *fmt, ...)
{
	va_list ap;

	if (shown->quiet)
		return;
	va_start(ap, fmt);
	shown->len += (size_t)vsnprintf(shown->text + shown->len, sizeof(shown->text) - shown->len,
					fmt, ap);
	va_end(ap);
}

static size_t functions_of(void *data, uint32_t stack, const uint32_t **functions)
{
	struct shown *shown = data;
	const char *at = shown->stacks[stack];
	size_t nr = 0;

	for (; *at >= 'a' && *at <= 'z'; at++)
		shown->functions[nr++] = (uint32_t)*at;
	*functions = shown->functions;
	return nr;
}

static int announced(void *data, const struct event *ev, uint32_t frame)
{
	(void)data, (void)ev, (void)frame;
	return 0;
}

static unsigned track_of(const struct event *ev)
{
	return (ev->tid >= SHARED ? ev->tid - SHARED + 100 : ev->tid) % TRACKS;
}

static void print_task(struct shown *shown, const struct event *ev)
{
	if (ev->tid >= SHARED)
		print(shown, "shared%u", ev->tid - SHARED);
	else
		print(shown, "%u", ev->tid);
}

static void on_cpu(struct shown *shown, const struct event *ev)
{
	bool run = ev->slice.kind == SLICE_RUN;

	shown->running += run && !ev->slice.leave;
	if (!ev->slice.leave)
		return;
	shown->running -= run;
	shown->wrong |= ev->time < ev->slice.since;
	shown->ran += run ? ev->time - ev->slice.since : 0;
	print(shown, "%" PRIu64 "-%s%" PRIu64 " cpu %u %s", ev->slice.since,
	      ev->slice.cut ? "~" : "", ev->time, ev->cpu, run ? "runs " : "gap");
	if (run)
		print_task(shown, ev);
	print(shown, "\n");
}

static int emitted(void *data, struct event *ev)
{
	struct shown *shown = data;
	const struct event_slice *slice = &ev->slice;
	unsigned track = track_of(ev), depth = shown->depth[track];

	if (slice->kind == SLICE_SPLIT) {
		print(shown, "split %" PRIu64 "\n", ev->time);
		return 0;
	}
	if (slice->kind >= SLICE_RUN) {
		on_cpu(shown, ev);
		return 0;
	}
	shown->wrong |= slice->kind != SLICE_SAMPLED || ev->time < shown->last[track];
	shown->last[track] = ev->time;
	if (!slice->leave) {
		shown->open[track][depth] = slice->frame;
		shown->cut[track][depth] = slice->cut;
		shown->depth[track]++;
		shown->nr_open++;
		return 0;
	}
	shown->nr_open--;
	shown->wrong |=
		!depth || shown->open[track][depth - 1] != slice->frame || ev->time < slice->since;
	if (!depth)
		return 0;
	shown->depth[track] = --depth;
	shown->covered += depth ? 0 : ev->time - slice->since;
	print(shown, "%*s%s%" PRIu64 "-%s%" PRIu64 " ", (int)depth, "",
	      shown->cut[track][depth] ? "~" : "", slice->since, slice->cut ? "~" : "", ev->time);
	print_task(shown, ev);
	print(shown, " %c %" PRIu64 " %" PRIu64 "/%" PRIu64 "\n", (char)slice->frame,
	      slice->samples, slice->instructions, slice->own);
	return 0;
}

struct setup {
	struct slices slices;
	struct stretches stretches;
	struct stretch_pace pace;
	struct shown shown;
};

static struct setup *begin(uint64_t from, uint64_t until)
{
	struct setup *setup = calloc(1, sizeof(*setup));

	setup->slices = (struct slices){ .announce = announced,
					 .emit = emitted,
					 .data = &setup->shown,
					 .from = from,
					 .until = until };
	setup->stretches = (struct stretches){ .slices = &setup->slices,
					       .functions = functions_of,
					       .data = &setup->shown };
	return setup;
}

static void finish(struct setup *setup)
{
	stretches_finish(&setup->stretches);
	slices_finish(&setup->slices);
	setup->shown.wrong |= setup->shown.nr_open || setup->shown.running;
}

static void end(struct setup *setup)
{
	stretches_release(&setup->stretches);
	slices_release(&setup->slices);
	free(setup);
}

/* Task 0 shares its tid on all cpus. */
static void add_row(struct setup *setup, uint64_t width, const char *row)
{
	struct stretch_sample sample = { .width = width,
					 .count = 1,
					 .instructions = 10,
					 .here = true,
					 .pid = 7,
					 .pace = width ? NULL : &setup->pace };
	char *at;

	if (!strncmp(row, "lost ", 5)) {
		uint64_t time = strtoull(row + 5, &at, 10);

		stretches_lost(&setup->stretches, (uint32_t)strtoul(at, NULL, 10), time);
		return;
	}
	sample.time = strtoull(row, &at, 10);
	sample.tid = (uint32_t)strtoul(at, &at, 10);
	sample.shared = !sample.tid;
	at++;
	if (*at == '-') {
		sample.cpu = NO_CPU;
		at++;
	} else {
		sample.cpu = (uint32_t)strtoul(at, &at, 10);
	}
	sample.here = *at != '!';
	sample.selected = sample.here;
	at += strspn(at, " !");
	sample.stack = setup->shown.nr_stacks++ % 65536;
	setup->shown.stacks[sample.stack] = at;
	stretches_add(&setup->stretches, &sample);
}

static void stretches_are(const char *name, uint64_t width, const char *rows, const char *want)
{
	struct setup *setup = begin(0, UINT64_MAX);

	for (const char *at = rows; *at; at = strchr(at, ';') + 1)
		add_row(setup, width, at);
	finish(setup);
	check(name, !strcmp(setup->shown.text, want) && !setup->shown.wrong);
	if (strcmp(setup->shown.text, want))
		printf("have:\n%swant:\n%s", setup->shown.text, want);
	end(setup);
}

static void test_stretches(void)
{
	stretches_are("stretches: common callers go on", 10,
		      "100 1 0 abc;110 1 0 abd;121 1 0 ab;130 1 0 ax;",
		      "  90-100 1 c 1 10/10\n"
		      "  100-110 1 d 1 10/10\n"
		      " 90-121 1 b 3 30/10\n"
		      " 121-130 1 x 1 10/10\n"
		      "90-130 1 a 4 40/0\n"
		      "90-130 cpu 0 runs 1\n");
	stretches_are("stretches: another first function", 10, "100 1 0 ab;110 1 0 cb;",
		      " 90-100 1 b 1 10/10\n"
		      "90-100 1 a 1 10/0\n"
		      " 100-110 1 b 1 10/10\n"
		      "100-110 1 c 1 10/0\n"
		      "90-110 cpu 0 runs 1\n");
	stretches_are("stretches: no sample, so it did not run", 10,
		      "100 1 0 a;130 1 0 a;161 1 0 a;",
		      "90-130 1 a 2 20/20\n"
		      "90-130 cpu 0 runs 1\n"
		      "151-161 1 a 1 10/10\n"
		      "151-161 cpu 0 runs 1\n");
	stretches_are("stretches: two tasks take turns on a cpu", 10,
		      "100 1 0 a;110 2 0 b;120 1 0 a;130 1 0 a;",
		      "90-100 cpu 0 runs 1\n"
		      "90-100 1 a 1 10/10\n"
		      "100-110 cpu 0 runs 2\n"
		      "100-110 2 b 1 10/10\n"
		      "110-130 1 a 2 20/20\n"
		      "110-130 cpu 0 runs 1\n");
	stretches_are("stretches: a cpu runs one task at a time", 10,
		      "100 1 0 a;108 2 0 b;112 1 0 a;",
		      "90-100 cpu 0 runs 1\n"
		      "100-108 cpu 0 runs 2\n"
		      "98-108 2 b 1 10/10\n"
		      "90-112 1 a 2 20/20\n"
		      "108-112 cpu 0 runs 1\n");
	stretches_are("stretches: a task moves to another cpu", 10, "100 1 0 a;106 1 1 a;",
		      "90-100 cpu 0 runs 1\n"
		      "90-106 1 a 2 20/20\n"
		      "100-106 cpu 1 runs 1\n");
	stretches_are("stretches: no stack", 10, "100 1 0 a;110 1 0 ;120 1 0 a;",
		      "90-100 1 a 1 10/10\n"
		      "110-120 1 a 1 10/10\n"
		      "90-120 cpu 0 runs 1\n");
	stretches_are("stretches: the first moments of time", 10, "3 1 0 a;8 1 0 a;",
		      "0-8 1 a 2 20/20\n"
		      "0-8 cpu 0 runs 1\n");
}

static void test_widths(void)
{
	stretches_are("stretches: the usual distance", 0,
		      "100 1 - a;107 1 - a;114 1 - ab;200 1 - a;",
		      " 107-114 1 b 1 10/10\n"
		      "93-114 1 a 3 30/20\n"
		      "193-200 1 a 1 10/10\n");
	stretches_are("stretches: one sample tells no distance", 0, "100 1 0 a;",
		      "100-100 1 a 1 10/10\n"
		      "100-100 cpu 0 runs 1\n");
	stretches_are("stretches: the distance of the samples of a cpu", 0,
		      "100 1 0 a;110 2 0 b;120 3 0 c;",
		      "90-100 cpu 0 runs 1\n"
		      "90-100 1 a 1 10/10\n"
		      "100-110 cpu 0 runs 2\n"
		      "100-110 2 b 1 10/10\n"
		      "110-120 3 c 1 10/10\n"
		      "110-120 cpu 0 runs 3\n");
	stretches_are("stretches: no sample stands for more than 10 s", UINT64_MAX,
		      "20000000000 1 - a;", "10000000000-20000000000 1 a 1 10/10\n");
}

static void test_axes(void)
{
	stretches_are("stretches: each cpu has its idle task", 10,
		      "100 0 0 a;101 0 1 a;110 0 0 a;111 0 1 b;",
		      "91-101 shared1 a 1 10/10\n"
		      "90-110 shared0 a 2 20/20\n"
		      "90-110 cpu 0 runs shared0\n"
		      "101-111 shared1 b 1 10/10\n"
		      "91-111 cpu 1 runs shared1\n");
	stretches_are("stretches: unknown cpus have no axis", 10, "100 1 - a;110 1 - a;",
		      "90-110 1 a 2 20/20\n");
	stretches_are("stretches: cpus that are not selected", 10,
		      "100 1 0 a;110 1 1! a;120 1 0 a;",
		      "90-100 cpu 0 runs 1\n"
		      "90-100 1 a 1 10/10\n"
		      "110-120 1 a 1 10/10\n"
		      "110-120 cpu 0 runs 1\n");
}

static void test_lost(void)
{
	stretches_are("stretches: lost samples", 10, "100 1 0 a;lost 195 0;200 1 0 a;210 1 0 a;",
		      "90-100 1 a 1 10/10\n"
		      "90-100 cpu 0 runs 1\n"
		      "100-190 cpu 0 gap\n"
		      "190-210 1 a 2 20/20\n"
		      "190-210 cpu 0 runs 1\n");
	stretches_are("stretches: nothing that shows is lost", 10,
		      "100 1 0 a;lost 105 0;110 1 0 a;",
		      "90-110 1 a 2 20/20\n"
		      "90-110 cpu 0 runs 1\n");
	stretches_are("stretches: the last samples are lost", 10, "100 1 0 a;100 2 1 b;lost 180 0;",
		      "90-100 1 a 1 10/10\n"
		      "90-100 cpu 0 runs 1\n"
		      "90-100 2 b 1 10/10\n"
		      "90-100 cpu 1 runs 2\n"
		      "100-180 cpu 0 gap\n");
}

static void test_order(void)
{
	struct setup *setup = begin(0, UINT64_MAX);

	for (const char *at = "100 1 0 a;120 2 1 b;110 1 0 a;105 1 0 c;110 1 0 d;"; *at;
	     at = strchr(at, ';') + 1)
		add_row(setup, 10, at);
	finish(setup);
	check("stretches: samples of a thread that come late are left out",
	      !strcmp(setup->shown.text, "90-110 1 a 2 20/20\n"
					 "90-110 cpu 0 runs 1\n"
					 "110-120 2 b 1 10/10\n"
					 "110-120 cpu 1 runs 2\n") &&
		      setup->stretches.late == 2);
	end(setup);
}

/* A recording of threads that come and go, and the sums of its windows. */

static uint64_t draw(uint64_t *random, uint64_t below)
{
	return next_random(random) % below;
}

static const char *const stacks[] = { "", "a", "ab", "abc", "abd", "b", "ba", "aaaa", "aaa" };

static void add_random(struct setup *setup, uint64_t *random, uint64_t *now, bool hostile)
{
	struct stretch_sample sample = { .count = 1, .here = true, .selected = true, .pid = 7 };

	*now += draw(random, 8) ? draw(random, 12) : draw(random, 300);
	sample.time = *now;
	sample.tid = (uint32_t)draw(random, 6) + 1;
	sample.cpu = (uint32_t)draw(random, 3);
	sample.width = draw(random, 2) ? 10 : 0;
	sample.pace = &setup->pace;
	sample.instructions = draw(random, 100);
	if (hostile) {
		sample.time = draw(random, 3) ? *now + draw(random, 100) : draw(random, 100000);
		sample.width =
			draw(random, 4) ? draw(random, 1000) : UINT64_MAX >> draw(random, 64);
		sample.cpu = draw(random, 9) ? sample.cpu : NO_CPU - (uint32_t)draw(random, 3);
		sample.shared = !draw(random, 5);
		sample.here = draw(random, 4);
		sample.selected = sample.here && draw(random, 4);
		if (!draw(random, 20))
			stretches_lost(&setup->stretches, draw(random, 2) ? sample.cpu : NO_CPU,
				       draw(random, 2) ? sample.time : NO_TIME);
	}
	sample.stack = (uint32_t)draw(random, 9);
	setup->shown.stacks[sample.stack] = stacks[sample.stack];
	stretches_add(&setup->stretches, &sample);
}

static struct setup *random_setup(uint64_t seed, uint64_t from, uint64_t until, bool hostile)
{
	struct setup *setup = begin(from, until);
	uint64_t random = seed, now = 1000;

	setup->shown.quiet = true;
	setup->stretches.max_waiting = 1 + (size_t)draw(&random, 300);
	for (unsigned i = 0; i < 2000; i++)
		add_random(setup, &random, &now, hostile);
	finish(setup);
	return setup;
}

static void test_windows(void)
{
	static const uint64_t borders[] = { 0, 1500, 1501, 7000, 20000, UINT64_MAX };
	bool equal = true, nested = true, shorter = true;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct setup *whole = random_setup(seed, 0, UINT64_MAX, false);
		uint64_t covered = 0, ran = 0;

		for (unsigned i = 0; i + 1 < sizeof(borders) / sizeof(*borders); i++) {
			struct setup *part = random_setup(seed, borders[i], borders[i + 1], false);

			covered += part->shown.covered;
			ran += part->shown.ran;
			nested &= !part->shown.wrong;
			shorter &= part->shown.covered < whole->shown.covered;
			end(part);
		}
		equal &= covered == whole->shown.covered && ran == whole->shown.ran && ran > 1000;
		end(whole);
	}
	check("stretches: windows add up to the whole", equal);
	check("stretches: no window is the whole", shorter);
	check("stretches: windows are nested", nested);
}

static void test_hostile(void)
{
	bool nested = true, some = true;

	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct setup *setup = random_setup(seed, seed % 2 ? 0 : 20000, UINT64_MAX, true);

		nested &= !setup->shown.wrong;
		some &= seed % 2 == 0 || setup->shown.covered > 0;
		end(setup);
	}
	check("stretches: always nested, and each begin has an end", nested);
	check("stretches: of any samples, some are shown", some);
}

static void test_memory(void)
{
	struct setup *setup = begin(0, UINT64_MAX);
	struct stretch_sample sample = { .count = 1, .here = true, .selected = true, .width = 10 };
	size_t most = 0;

	setup->shown.quiet = true;
	setup->stretches.max_waiting = 100;
	setup->shown.stacks[0] = "abc";
	for (uint32_t i = 0; i < 100000; i++) {
		sample.time += 10;
		sample.pid = sample.tid = i;
		stretches_add(&setup->stretches, &sample);
		if (setup->stretches.track_by_key.mask > most)
			most = setup->stretches.track_by_key.mask;
	}
	check("stretches: threads that do not go on are forgotten", most < 1000);
	finish(setup);
	check("stretches: of many threads, all slices are nested", !setup->shown.wrong);
	end(setup);
}

int main(void)
{
	test_stretches();
	test_widths();
	test_axes();
	test_lost();
	test_order();
	test_windows();
	test_hostile();
	test_memory();
	return test_result();
}
