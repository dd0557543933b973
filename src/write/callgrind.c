// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * callgrind: costs by line and by call for KCachegrind and callgrind_annotate. Samples do not count calls: the count of
 * a call is the number of samples whose stacks contain it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "pass/tally.h"
#include "write/callgrind_costs.h"
#include "write/sums.h"
#include "write/timeline.h"

#define NO_COLUMN (SIZE_MAX - 1)
#define CMDLINE "cmdline: " /* has a key of its own in this format */

enum name_kind { NAME_OBJECT, NAME_FILE, NAME_FUNCTION, NAME_KINDS };

struct callgrind {
	struct tally_options options; /* --no-inline */
	struct tally tally;
	struct sums_events events;
	struct sums_lost lost;
	struct callgrind_costs costs;
	struct timeline_numbers names[NAME_KINDS]; /* in the output: of handles, and of functions */
	uint32_t nr_names[NAME_KINDS];
	size_t column[SUMS_MAX_EVENTS]; /* of the events' weights */
	size_t nr_weights;
	uint32_t *shown; /* by function: the handle of its name in the output */
	struct buf text, scratch;
};

static int callgrind_open(struct writer *w)
{
	struct callgrind *c = w->priv;

	tally_init(&c->tally, w->world, BY_SOURCE | BY_COMM);
	return 0;
}

static int callgrind_put(struct writer *w, const struct event *ev)
{
	struct callgrind *c = w->priv;

	if (ev->kind == EVENT_LOST)
		sums_lose(&c->lost, ev);
	else
		tally_add(&c->tally, ev);
	return 0;
}

static void flush(struct writer *w)
{
	struct callgrind *c = w->priv;

	out_write(w->out, c->text.data, c->text.len);
	buf_clear(&c->text);
}

/* ---- the sums ---- */

static uint32_t task_function(struct writer *w, const struct tally_entry *entry)
{
	struct callgrind *c = w->priv;
	struct strtab *strings = w->world->strings;
	uint32_t name = sums_task(w->world, entry), tasks = str_intern_z(strings, "tasks");

	if (!name && entry->pid != NO_TASK) {
		char *text = xasprintf("pid %" PRIu32, entry->pid);

		name = str_intern_z(strings, text);
		free(text);
	}
	if (!name)
		name = str_intern_z(strings, "[all]");
	return callgrind_function(&c->costs, name, tasks, 0);
}

static void sum_up(struct writer *w)
{
	struct callgrind *c = w->priv;

	for (size_t i = 0; i < c->events.nr; i++)
		c->column[i] = c->events.all[i].weighs ? c->nr_weights++ : NO_COLUMN;
	callgrind_costs_init(&c->costs, w->world, c->nr_weights + 1, c->options.no_inline);
	for (size_t i = 0; i < c->tally.nr; i++) {
		const struct tally_entry *entry = &c->tally.entries[i];

		callgrind_costs_add(&c->costs, entry, task_function(w, entry),
				    c->column[sums_event_of(&c->events, entry->source)]);
	}
	callgrind_costs_sort(&c->costs);
}

/*
 * Readers merge functions with the same name in the same file, or without a file. If these are of several binaries, the
 * names get those of the binaries.
 */
static void name_functions(struct writer *w)
{
	struct callgrind *c = w->priv;
	struct strtab *strings = w->world->strings;
	struct hash first = { 0 };
	struct buf text = { 0 };

	c->shown = xcalloc(c->costs.nr_functions, sizeof(*c->shown));
	for (uint32_t i = 1; i < c->costs.nr_functions; i++) {
		const struct callgrind_function *f = &c->costs.functions[i];
		uint32_t *at = hash_at(&first, (struct hash_key){ f->name, f->file });

		c->shown[i] = f->name;
		if (!*at) {
			*at = i;
			continue;
		}
		buf_clear(&text);
		buf_add(&text, str_text(strings, f->name), str_len(strings, f->name));
		buf_addf(&text, " [%s]", f->binary ? str_text(strings, f->binary) : "?");
		c->shown[i] = str_intern(strings, text.data, text.len);
	}
	buf_release(&text);
	hash_release(&first);
}

/* ---- the header ---- */

static void put_fact(void *arg, const char *line)
{
	struct callgrind *c = arg;

	if (strncmp(line, CMDLINE, strlen(CMDLINE)) == 0)
		buf_addf(&c->text, "cmd: %s\n", line + strlen(CMDLINE));
	else
		buf_addf(&c->text, "desc: %s\n", line);
}

/* Readers take letters, digits and underscores. */
static void add_event_name(struct buf *text, const char *name)
{
	if (!isalpha((unsigned char)*name))
		buf_adds(text, "e_");
	for (; *name; name++)
		buf_addc(text, (char)(isalnum((unsigned char)*name) ? *name : '_'));
}

/* Names that differ only in other characters get numbers. */
static void put_events(struct writer *w)
{
	struct callgrind *c = w->priv;
	struct strtab *strings = w->world->strings;
	struct hash known = { 0 };
	struct buf names = { 0 }, name = { 0 };

	*hash_at(&known, (struct hash_key){ str_intern_z(strings, "samples"), 0 }) = 1;
	for (size_t i = 0; i < c->events.nr; i++) {
		const char *full = str_text(strings, c->events.all[i].weight_name);
		uint32_t *at;

		if (!c->events.all[i].weighs)
			continue;
		buf_clear(&name);
		add_event_name(&name, full);
		at = hash_at(&known, (struct hash_key){ str_intern_z(strings, name.data), 0 });
		if (*at)
			buf_addf(&name, "__%zu", i);
		*at = 1;
		buf_addf(&names, " %s", name.data);
		if (strcmp(name.data, full) != 0)
			buf_addf(&c->text, "event: %s : %s\n", name.data,
				 text_plain(&c->scratch, full));
	}
	buf_addf(&c->text, "events:%s samples\n", names.len ? names.data : "");
	hash_release(&known);
	buf_release(&names);
	buf_release(&name);
}

/* Zeros at the end are left out. */
static void put_values(struct callgrind *c, const uint64_t *values)
{
	size_t nr = c->costs.nr_values;

	while (nr && !values[nr - 1])
		nr--;
	for (size_t i = 0; i < nr; i++) {
		buf_addc(&c->text, ' ');
		buf_addu(&c->text, values[i]);
	}
	if (!nr)
		buf_adds(&c->text, " 0");
	buf_addc(&c->text, '\n');
}

static void put_header(struct writer *w)
{
	struct callgrind *c = w->priv;

	buf_adds(&c->text, "# callgrind format\nversion: 1\ncreator: kscope\npositions: line\n");
	sums_describe(w->world, &c->lost, put_fact, c);
	put_events(w);
	buf_adds(&c->text, "summary:");
	for (size_t i = 0; i < c->events.nr; i++) {
		if (c->events.all[i].weighs)
			buf_addf(&c->text, " %" PRIu64, c->events.all[i].weight);
	}
	buf_addf(&c->text, " %" PRIu64 "\n", tally_total(&c->tally, false));
}

/* ---- the costs ---- */

/*
 * Puts the name at its first use, and its number later. KCachegrind merges two functions with the same number, even if
 * their binaries differ. A handle of 0 is an unknown name.
 */
static void put_name(struct writer *w, const char *key, enum name_kind kind, uint32_t what,
		     uint32_t name)
{
	struct callgrind *c = w->priv;
	uint32_t *number = timeline_number(&c->names[kind], what);
	bool is_new = !*number;

	if (is_new)
		*number = ++c->nr_names[kind];
	buf_addf(&c->text, "%s=(%" PRIu32 ")", key, *number);
	if (is_new) {
		const char *text = timeline_text(&c->scratch, w->world, name);

		buf_addc(&c->text, ' ');
		/* Readers skip spaces, and expect that a number without a name is a known one. */
		buf_adds(&c->text, text[strspn(text, " ")] ? text : "???");
	}
	buf_addc(&c->text, '\n');
}

static void put_file(struct writer *w, const char *key, uint32_t name)
{
	put_name(w, key, NAME_FILE, name, name);
}

static void put_function(struct writer *w, const struct callgrind_cost *cost)
{
	struct callgrind *c = w->priv;
	const struct callgrind_function *f = &c->costs.functions[cost->function];

	buf_addc(&c->text, '\n');
	put_name(w, "ob", NAME_OBJECT, f->binary, f->binary);
	put_file(w, "fl", f->file);
	put_name(w, "fn", NAME_FUNCTION, cost->function, c->shown[cost->function]);
}

static void put_callee(struct writer *w, const struct callgrind_cost *cost)
{
	struct callgrind *c = w->priv;
	const struct callgrind_function *callee = &c->costs.functions[cost->callee];

	put_name(w, "cob", NAME_OBJECT, callee->binary, callee->binary);
	put_file(w, "cfi", callee->file);
	put_name(w, "cfn", NAME_FUNCTION, cost->callee, c->shown[cost->callee]);
	/* Readers would add the cost of an entry without calls to the caller's own cost. */
	buf_addf(&c->text, "calls=%" PRIu64 " 0\n", cost->calls ? cost->calls : 1);
}

static void count(struct writer *w, const uint64_t *values)
{
	const struct callgrind *c = w->priv;

	for (size_t i = 0; i < c->nr_weights; i++)
		w->written.weight += values[i];
	w->written.samples += values[c->nr_weights];
}

static void put_costs(struct writer *w)
{
	struct callgrind *c = w->priv;
	uint32_t function = 0, file = 0;

	for (size_t i = 1; i < c->costs.nr; i++) {
		const struct callgrind_cost *cost = &c->costs.all[i];
		const uint64_t *values = c->costs.values + cost->values;

		if (cost->function != function) {
			put_function(w, cost);
			file = c->costs.functions[cost->function].file;
		}
		if (cost->file != file)
			put_file(w, "fi", cost->file);
		function = cost->function;
		file = cost->file;
		if (cost->callee)
			put_callee(w, cost);
		else
			count(w, values);
		buf_addu(&c->text, cost->line);
		put_values(c, values);
		flush(w);
	}
}

static int callgrind_finish(struct writer *w)
{
	struct callgrind *c = w->priv;

	sums_events(&c->events, &c->tally);
	sum_up(w);
	name_functions(w);
	put_header(w);
	put_costs(w);
	flush(w);
	for (size_t i = 0; i < c->events.nr; i++) {
		if (!c->events.all[i].weighs)
			w->written.weight += c->events.all[i].weight; /* the same as its samples */
	}
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	return 0;
}

static void callgrind_close(struct writer *w)
{
	struct callgrind *c = w->priv;

	tally_release(&c->tally);
	sums_events_release(&c->events);
	callgrind_costs_release(&c->costs);
	for (unsigned i = 0; i < NAME_KINDS; i++)
		timeline_numbers_release(&c->names[i]);
	free(c->shown);
	buf_release(&c->text);
	buf_release(&c->scratch);
}

const struct writer_ops write_callgrind = {
	.name = "callgrind",
	.about = "costs by line and call, for KCachegrind and callgrind_annotate",
	.extension = ".callgrind",
	.needs = WRITER_TEXT,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_LOST),
	.next = "open it in KCachegrind",
	.options = OPTION_USES({ &no_inline_table, offsetof(struct callgrind, options) }),
	.priv_size = sizeof(struct callgrind),
	.open = callgrind_open,
	.put = callgrind_put,
	.finish = callgrind_finish,
	.close = callgrind_close,
};
