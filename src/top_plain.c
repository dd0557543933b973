// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "look.h"
#include "top_parts.h"

#define ROWS 20
#define NAME_MOST 100

static void add_header(struct top *top, struct buf *text)
{
	const struct live_counts *counts = &top->view.counts;
	size_t begin;
	bool alarm;

	buf_addf(text, "kscope top: %s, ", text_plain(&top->scratch[0], top->setup->title));
	top_time(top, text);
	buf_adds(text, ", ");
	begin = text->len;
	top_state(top, text, &alarm);
	if (text->len == begin)
		text->len -= 2;
	buf_addc(text, '\n');
	top_samples(top, text);
	buf_addf(text, ", %" PRIu64 " lost, %" PRIu64 " damaged, %zu tasks", counts->lost,
		 counts->damaged, counts->tasks);
	if (top->view.source)
		buf_addf(text, ", %s", top_name(top, 0, top->view.source));
	buf_addc(text, '\n');
}

static void add_cpus(struct top *top, struct buf *text)
{
	const struct live_view *view = &top->view;

	for (size_t i = 0; i < view->nr_cpus; i++) {
		const struct live_cpu *cpu = &view->cpus[i];

		buf_addf(text, "cpu %zu: ", i);
		if (cpu->all)
			buf_addf(text, "%.0f%% busy, ", look_share(cpu->busy, cpu->all));
		buf_addf(text, "%" PRIu64 " samples", cpu->samples);
		if (cpu->lost)
			buf_addf(text, ", %" PRIu64 " lost", cpu->lost);
		buf_addc(text, '\n');
	}
}

/* The bytes of at most NAME_MOST characters: a template's name may have thousands. */
static int name_length(const char *name)
{
	int len = 0;

	for (size_t nr = 0; name[len]; len++) {
		if ((name[len] & 0xc0) != 0x80 && nr++ == NAME_MOST)
			break;
	}
	return len;
}

static void add_row(struct top *top, struct buf *text, const struct live_row *row)
{
	const struct live_view *view = &top->view;
	const char *name = top_row_name(top, row), *binary = top_name(top, 1, row->sum.binary);

	buf_addf(text, "%7.2f%% %7.2f%% %7.2f%% %10" PRIu64 "  %-40.*s %.*s",
		 look_share(row->sum.self, view->weight), look_share(row->sum.total, view->weight),
		 look_share(row->now, view->now), row->sum.samples, name_length(name), name,
		 name_length(binary), binary);
	while (text->data[text->len - 1] == ' ')
		text->len--;
	buf_addc(text, '\n');
}

bool top_print(struct top *top)
{
	struct buf text = { 0 };
	bool good;

	add_header(top, &text);
	add_cpus(top, &text);
	if (top->nr_rows)
		buf_adds(&text, "    self    total      now    samples  function\n");
	for (size_t i = 0; i < top->nr_rows && i < ROWS; i++)
		add_row(top, &text, top->rows[i]);
	if (top->nr_rows > ROWS)
		buf_addf(&text, "%*s(%zu more)\n", 39, "", top->nr_rows - ROWS);
	buf_addc(&text, '\n');
	good = fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
	buf_release(&text);
	return good;
}
