// SPDX-License-Identifier: GPL-2.0-or-later
/* verify_test: --verify accepts right results, and finds each kind of wrong one. */
#include "verify.h"

#include <string.h>

#include "convert.h"
#include "test.h"

static const struct writer_ops quiet_ops = { .name = "test", .takes = EVENT_ALL };

struct run {
	struct strtab strings;
	struct image_search where;
	struct world world;
	struct writer writer;
	struct verify *verify;
	struct err err;
};

static void begin(struct run *run)
{
	struct event source = { .kind = EVENT_SOURCE, .source = { .id = 7, .name = "ticks" } };

	memset(run, 0, sizeof(*run));
	strtab_init(&run->strings);
	world_init(&run->world, &run->strings, &run->where);
	world_apply(&run->world, &source);
	run->writer = (struct writer){ .ops = &quiet_ops, .world = &run->world };
	run->verify = verify_new(1);
}

/* Whether the message has the text; NULL: whether there is no error. */
static bool ends_with(struct run *run, const char *text)
{
	struct writer *to[] = { &run->writer };
	int ret = verify_end(run->verify, &run->world, EVENT_ALL, to, false, &run->err);
	bool good = text ? ret < 0 && run->err.code == ERR_OUTPUT && strstr(run->err.msg, text)
			 : ret == 0;

	if (!good)
		printf("# %s\n", run->err.msg);
	verify_free(run->verify);
	world_release(&run->world);
	strtab_release(&run->strings);
	return good;
}

static struct event sample_of(uint64_t count, uint64_t weight)
{
	return (struct event){ .kind = EVENT_SAMPLE,
			       .sample = { .source = 1, .count = count, .weight = weight } };
}

static void come_and_reach(struct run *run, uint64_t came, uint64_t reached)
{
	struct event first = sample_of(0, came), second = sample_of(1, reached);

	verify_came(run->verify, &first, 1);
	verify_reached(run->verify, &second);
}

static void test_samples(void)
{
	struct run run;
	struct event ev = sample_of(3, 100), made = ev;

	begin(&run);
	come_and_reach(&run, 5, 5);
	verify_came(run.verify, &ev, 1);
	verify_left_out(run.verify, &ev, 1, 3, 100);
	check("verify.samples", ends_with(&run, NULL));

	begin(&run);
	verify_came(run.verify, &ev, 1);
	check("verify.lost", ends_with(&run, "ticks: read 3 samples (weight 100), left out 0 (0), "
					     "but wrote 0 (0)"));

	begin(&run);
	come_and_reach(&run, 5, 4);
	check("verify.weight", ends_with(&run, "wrote 1 (4)"));

	begin(&run);
	verify_reached(run.verify, &ev);
	check("verify.twice", ends_with(&run, "wrote 3 (100)"));

	/* One that a stage made does not stand for one that was read. */
	begin(&run);
	made.made_of = EVENT_BIT(EVENT_CHAIN);
	verify_came(run.verify, &ev, 1);
	verify_reached(run.verify, &made);
	check("verify.made", ends_with(&run, "read 3 samples"));
}

static void test_sums(void)
{
	struct run run;
	struct event ev = sample_of(0, 100);

	begin(&run);
	come_and_reach(&run, 60, 60);
	come_and_reach(&run, 40, 40);
	verify_sum(run.verify, &ev, 1, 30);
	verify_sum(run.verify, &ev, 1, 70);
	check("verify.sum", ends_with(&run, NULL));

	begin(&run);
	come_and_reach(&run, 60, 60);
	verify_sum(run.verify, &ev, 1, 100);
	check("verify.sum_less", ends_with(&run, "ticks: sums of 60 instead of 100"));
}

static void slice(struct run *run, uint32_t frame, bool leave, uint64_t since, uint64_t time)
{
	struct event ev = {
		.kind = EVENT_SLICE,
		.time = time,
		.pid = 1,
		.tid = 2,
		.slice = { .frame = frame, .kind = SLICE_CALL, .leave = leave, .since = since }
	};

	verify_reached(run->verify, &ev);
	verify_put(run->verify, 0, &ev);
}

static void split(struct run *run)
{
	struct event ev = { .kind = EVENT_SLICE, .slice = { .kind = SLICE_SPLIT } };

	verify_reached(run->verify, &ev);
}

static void test_slices(void)
{
	struct run run;

	begin(&run);
	slice(&run, 1, false, 0, 10);
	slice(&run, 2, false, 0, 20);
	slice(&run, 2, true, 20, 30);
	slice(&run, 1, true, 10, 30);
	check("verify.nested", ends_with(&run, NULL));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	slice(&run, 2, false, 0, 20);
	slice(&run, 1, true, 10, 30);
	slice(&run, 2, true, 20, 30);
	check("verify.crossed", ends_with(&run, "2 of 2 slices are wrong (the first at 30: the "
						"end of a different slice)"));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	check("verify.open", ends_with(&run, "at 10: a slice that never ends"));

	begin(&run);
	slice(&run, 1, true, 10, 20);
	check("verify.unbegun", ends_with(&run, "at 20: an end without a start"));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	slice(&run, 1, true, 11, 20);
	check("verify.since", ends_with(&run, "at 20: an end whose start time is wrong"));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	slice(&run, 1, true, 10, 9);
	check("verify.backward", ends_with(&run, "at 9: an end before its start"));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	split(&run);
	slice(&run, 1, true, 10, 20);
	check("verify.split", ends_with(&run, "at 10: a slice that never ends"));
}

static void test_writers(void)
{
	struct run run;
	struct event ev = sample_of(0, 100);

	begin(&run);
	verify_put(run.verify, 0, &ev);
	run.writer.written = (struct written){ .knows = WROTE_SAMPLES | WROTE_WEIGHT,
					       .samples = 1,
					       .weight = 100 };
	check("verify.written", ends_with(&run, NULL));

	begin(&run);
	verify_put(run.verify, 0, &ev);
	run.writer.written = written_sum(true, 99);
	check("verify.written_less", ends_with(&run, "the test output has 99 units of weight "
						     "instead of 100"));

	begin(&run);
	verify_put(run.verify, 0, &ev);
	run.writer.written = written_sum(false, 2);
	check("verify.written_more", ends_with(&run, "has 2 samples instead of 1"));

	begin(&run);
	slice(&run, 1, false, 0, 10);
	slice(&run, 1, true, 10, 20);
	run.writer.written = (struct written){ .knows = WROTE_SLICES, .begins = 1 };
	check("verify.written_ends", ends_with(&run, "has 0 slice ends instead of 1"));
}

/* Of a writer that writes only the calls of functions. */
static void calls_of(struct run *run, uint64_t begins, uint64_t ends)
{
	struct event runs = { .kind = EVENT_SLICE, .slice.kind = SLICE_RUN };

	begin(run);
	verify_put(run->verify, 0, &runs);
	slice(run, 1, false, 0, 10);
	slice(run, 1, true, 10, 20);
	run->writer.written =
		(struct written){ .knows = WROTE_CALLS, .begins = begins, .ends = ends };
}

static void test_calls(void)
{
	struct run run;

	calls_of(&run, 1, 1);
	check("verify.calls", ends_with(&run, NULL));
	calls_of(&run, 1, 0);
	check("verify.calls_ends", ends_with(&run, "has 0 slice ends instead of 1"));
	calls_of(&run, 2, 1);
	check("verify.calls_begins", ends_with(&run, "has 2 slice starts instead of 1"));
}

/* ---- a whole run, with a writer that writes less than it gets ---- */

static int forgetful_put(struct writer *w, const struct event *ev)
{
	w->written.knows = WROTE_WEIGHT;
	w->written.weight += ev->kind == EVENT_SAMPLE ? ev->sample.weight / 2 : 0;
	return 0;
}

static const struct writer_ops forgetful_ops = { .name = "forgetful",
						 .takes = EVENT_BIT(EVENT_SAMPLE),
						 .put = forgetful_put };

static void test_run(void)
{
	struct options options = { .verify = true };
	struct job job = { .inputs = (const char *[]){ "tests/golden/folded/input.folded" },
			   .nr_inputs = 1,
			   .options = &options };
	struct writer writer = { .ops = &forgetful_ops, .world = &job.world };
	struct writer *to[] = { &writer };
	struct strtab strings;
	int ret;

	strtab_init(&strings);
	ret = job_open(&job, &strings);
	if (ret == 0)
		ret = job_run(&job, to, 1);
	check("verify.run", ret < 0 && job.err.code == ERR_OUTPUT &&
				    strstr(job.err.msg, "the forgetful output has"));
	job_release(&job);
	strtab_release(&strings);
}

int main(void)
{
	test_samples();
	test_sums();
	test_slices();
	test_writers();
	test_calls();
	test_run();
	return test_result();
}
