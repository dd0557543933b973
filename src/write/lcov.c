// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lcov: which lines, functions and conditional jumps of a trace ran, and how often, as lcov's tracefile (.info).
 * pass/coverage.h counts.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "format.h"
#include "pass/coverage.h"

struct lcov {
	struct coverage coverage;
	uint64_t lost; /* places where data is missing */
	struct buf text;
};

static int lcov_open(struct writer *w)
{
	struct lcov *lcov = w->priv;

	coverage_init(&lcov->coverage, w->world);
	return 0;
}

static int lcov_put(struct writer *w, const struct event *ev)
{
	struct lcov *lcov = w->priv;

	if (ev->kind == EVENT_LOST)
		lcov->lost++;
	else
		coverage_add(&lcov->coverage, ev);
	return 0;
}

/* ---- missing data ---- */

static const char *const reasons[COVERAGE_STATES] = {
	[STRAIGHT_NO_CODE] = "their code was not found",
	[STRAIGHT_NO_DECODER] = "kscope was built without a decoder for their machine",
	[STRAIGHT_DIFFERENT] = "the binary has different code",
};

/* A comment for readers of the file, and a warning for the user. */
static void say(struct lcov *lcov, const char *text)
{
	buf_adds(&lcov->text, "# ");
	text_add_plain(&lcov->text, text);
	buf_addc(&lcov->text, '\n');
	log_warn("lcov: %s", text);
}

static void say_binaries(struct writer *w)
{
	struct lcov *lcov = w->priv;
	const struct coverage *coverage = &lcov->coverage;
	struct buf line = { 0 };
	size_t named = 0;

	buf_adds(&line, "not covered, because they have no debug information:");
	for (size_t i = 0; i < coverage->nr_lineless; i++) {
		const struct image *image = &w->world->images.all[coverage->lineless[i]];

		if (!coverage->lineless[i])
			continue;
		buf_addf(&line, "%s ", named++ ? "," : "");
		text_add_plain(&line, str_text(w->world->strings, image->name));
	}
	if (named)
		say(lcov, line.data);
	buf_release(&line);
}

static void say_missing(struct writer *w)
{
	struct lcov *lcov = w->priv;
	const struct coverage *coverage = &lcov->coverage;
	uint64_t all = coverage->instructions;
	struct buf line = { 0 };

	for (unsigned i = 0; i < COVERAGE_STATES; i++)
		all += coverage->unknown[i];
	for (unsigned i = 0; i < COVERAGE_STATES; i++) {
		if (!coverage->unknown[i])
			continue;
		buf_clear(&line);
		buf_addf(&line, "%" PRIu64 " of %" PRIu64 " instructions are not counted: %s",
			 coverage->unknown[i], all, reasons[i]);
		say(lcov, line.data);
	}
	if (coverage->uncounted) {
		buf_clear(&line);
		buf_addf(&line,
			 "the code before %" PRIu64
			 " branches is not counted: the input has no number of instructions there",
			 coverage->uncounted);
		say(lcov, line.data);
	}
	if (coverage->gaps + lcov->lost) {
		buf_clear(&line);
		buf_addf(&line,
			 "the trace has gaps (%" PRIu64
			 "): code that ran there is not counted, so lines with a count of 0 "
			 "may have run",
			 coverage->gaps + lcov->lost);
		say(lcov, line.data);
	}
	say_binaries(w);
	buf_release(&line);
}

/* ---- the records ---- */

static void flush(struct writer *w)
{
	struct lcov *lcov = w->priv;

	out_write(w->out, lcov->text.data, lcov->text.len);
	buf_clear(&lcov->text);
}

struct tail { /* the sums that are not written yet start here */
	size_t line, function, jump;
};

/* Readers end a name at a comma. */
static void put_name(struct writer *w, uint32_t name)
{
	struct lcov *lcov = w->priv;
	size_t begin = lcov->text.len;

	text_add_plain(&lcov->text, str_text(w->world->strings, name));
	for (size_t i = begin; i < lcov->text.len; i++) {
		if (lcov->text.data[i] == ',')
			lcov->text.data[i] = ';';
	}
	buf_addc(&lcov->text, '\n');
}

static void put_functions(struct writer *w, uint32_t file, size_t *at)
{
	struct lcov *lcov = w->priv;
	const struct coverage *coverage = &lcov->coverage;
	struct buf *to = &lcov->text;
	size_t first = *at, hit = 0;

	for (; *at < coverage->nr_functions && coverage->functions[*at].file == file; (*at)++) {
		buf_addf(to, "FN:%" PRIu32 ",", coverage->functions[*at].line);
		put_name(w, coverage->functions[*at].name);
	}
	for (size_t i = first; i < *at; i++) {
		buf_addf(to, "FNDA:%" PRIu64 ",", coverage->functions[i].count);
		put_name(w, coverage->functions[i].name);
		hit += coverage->functions[i].count > 0;
	}
	buf_addf(to, "FNF:%zu\nFNH:%zu\n", *at - first, hit);
}

static void put_outcome(struct buf *to, const struct coverage_branch *jump, unsigned which,
			uint64_t count)
{
	buf_addf(to, "BRDA:%" PRIu32 ",%" PRIu32 ",%u,", jump->line, jump->nth, which);
	if (jump->ran)
		buf_addu(to, count);
	else
		buf_addc(to, '-');
	buf_addc(to, '\n');
}

static void put_jumps(struct lcov *lcov, uint32_t file, size_t *at)
{
	const struct coverage *coverage = &lcov->coverage;
	size_t first = *at, hit = 0;

	for (; *at < coverage->nr_jumps && coverage->jumps[*at].file == file; (*at)++) {
		const struct coverage_branch *jump = &coverage->jumps[*at];

		put_outcome(&lcov->text, jump, 0, jump->goes_on);
		put_outcome(&lcov->text, jump, 1, jump->jumps);
		hit += (jump->goes_on > 0) + (jump->jumps > 0);
	}
	buf_addf(&lcov->text, "BRF:%zu\nBRH:%zu\n", 2 * (*at - first), hit);
}

static void put_lines(struct lcov *lcov, uint32_t file, size_t *at)
{
	const struct coverage *coverage = &lcov->coverage;
	size_t first = *at, hit = 0;

	for (; *at < coverage->nr_lines && coverage->lines[*at].file == file; (*at)++) {
		buf_adds(&lcov->text, "DA:");
		buf_addu(&lcov->text, coverage->lines[*at].line);
		buf_addc(&lcov->text, ',');
		buf_addu(&lcov->text, coverage->lines[*at].count);
		buf_addc(&lcov->text, '\n');
		hit += coverage->lines[*at].count > 0;
	}
	buf_addf(&lcov->text, "LF:%zu\nLH:%zu\n", *at - first, hit);
}

/* The next file that has lines or functions; each jump has a line. */
static uint32_t next_file(const struct writer *w, const struct tail *tail)
{
	const struct lcov *lcov = w->priv;
	const struct coverage *coverage = &lcov->coverage;
	const struct strtab *strings = w->world->strings;
	bool lines = tail->line < coverage->nr_lines;
	bool functions = tail->function < coverage->nr_functions;
	uint32_t a = lines ? coverage->lines[tail->line].file : 0;
	uint32_t b = functions ? coverage->functions[tail->function].file : 0;

	if (lines && functions)
		return strcmp(str_text(strings, a), str_text(strings, b)) <= 0 ? a : b;
	return lines ? a : b;
}

static int lcov_finish(struct writer *w)
{
	struct lcov *lcov = w->priv;
	struct coverage *coverage = &lcov->coverage;
	struct tail tail = { 0 };
	uint32_t file;

	if (!coverage->branches)
		return err_set(
			&w->err, ERR_INPUT,
			"coverage needs a trace of branches, which the input lacks: use kscope "
			"record qemu --trace, kscope record emulate, or Intel PT");
	coverage_sum(coverage);
	say_missing(w);
	if (!coverage->nr_lines)
		return err_set(&w->err, ERR_INPUT,
			       "no coverage: no binary that ran has source lines; use --elf or "
			       "--build-dir to name binaries with debug information");
	while ((file = next_file(w, &tail))) {
		buf_adds(&lcov->text, "TN:\nSF:");
		text_add_plain(&lcov->text, str_text(w->world->strings, file));
		buf_addc(&lcov->text, '\n');
		put_functions(w, file, &tail.function);
		put_jumps(lcov, file, &tail.jump);
		put_lines(lcov, file, &tail.line);
		buf_adds(&lcov->text, "end_of_record\n");
		flush(w);
	}
	return 0;
}

static void lcov_close(struct writer *w)
{
	struct lcov *lcov = w->priv;

	coverage_release(&lcov->coverage);
	buf_release(&lcov->text);
}

const struct writer_ops write_lcov = {
	.name = "lcov",
	.about = "lines, functions and branches that a trace executed, for genhtml and lcov",
	.extension = ".info",
	.needs = WRITER_TEXT | WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_NOTE) | EVENT_BIT(EVENT_LOST),
	.next = "run genhtml on it",
	.priv_size = sizeof(struct lcov),
	.open = lcov_open,
	.put = lcov_put,
	.finish = lcov_finish,
	.close = lcov_close,
};
