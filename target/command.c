// SPDX-License-Identifier: MIT
/* command: the commands, one a line. What is wrong is refused, and the answer says what is right. */
#include "kscope.h"
#include "divide.h"
#include "text.h"

#define WORDS 5

struct request {
	struct kscope *k;
	char **words;
	int nr;
	struct text *answer;
};

static bool refuse(const struct request *r, const char *why)
{
	kscope_text_add(r->answer, "error: ");
	kscope_text_add(r->answer, why);
	return false;
}

static bool refuse_number(const struct request *r, const char *what, uint64_t least, uint64_t most)
{
	refuse(r, what);
	kscope_text_add(r->answer, " must be from ");
	kscope_text_number(r->answer, least);
	kscope_text_add(r->answer, " to ");
	kscope_text_number(r->answer, most);
	return false;
}

/* The number in a word, within bounds. */
static bool number(const struct request *r, int word, const char *what, uint64_t least,
		   uint64_t most, uint64_t *value)
{
	if (!kscope_text_parse(r->words[word], value) || *value < least || *value > most)
		return refuse_number(r, what, least, most);
	return true;
}

static bool is(const struct request *r, int word, const char *text)
{
	return word < r->nr && kscope_text_same(r->words[word], text);
}

/* Interrupts use most settings. */
static bool is_stopped(const struct request *r)
{
	return r->k->state == KSCOPE_IDLE || refuse(r, "not while running; stop first");
}

/* ---- start, stop ---- */

static bool do_start(const struct request *r)
{
	const char *why;

	return kscope_start(r->k, &why) || refuse(r, why);
}

static bool do_stop(const struct request *r)
{
	kscope_stop(r->k);
	return true;
}

static bool do_flush(const struct request *r)
{
	kscope_flush(r->k);
	return true;
}

static bool do_clear(const struct request *r)
{
	kscope_clear(r->k);
	return true;
}

/* ---- what triggers samples ---- */

static bool do_timer_period(const struct request *r)
{
	uint64_t us;

	if (!is_stopped(r) || !number(r, 2, "the period in us", 1, 3600000000u, &us))
		return false;
	r->k->slot[0].period = us * 1000;
	r->k->slot[0].hertz = 0;
	r->k->slot[0].on = true;
	return true;
}

static bool do_timer(const struct request *r)
{
	bool all = is(r, 1, "all"), on = is(r, 2, "on");
	uint64_t core = 0;

	if (!r->k->port->timer)
		return refuse(r, "this kernel has no timer for samples");
	if (is(r, 1, "period"))
		return do_timer_period(r);
	if (!on && !is(r, 2, "off"))
		return refuse(r, "use: timer CORE|all on|off, or timer period US");
	if (!all && !number(r, 1, "the core", 0, r->k->port->cpus - 1, &core))
		return false;
	for (unsigned cpu = 0; cpu < r->k->port->cpus; cpu++) {
		if (all || cpu == core)
			r->k->cpu[cpu].off = !on;
	}
	kscope_settle(r->k);
	return true;
}

static void name_raw(struct kscope_slot *slot, const char *name)
{
	struct text text = text_into(slot->raw, sizeof(slot->raw));

	kscope_text_add(&text, name);
	slot->event.name = slot->raw;
}

static bool event_off(const struct request *r, const struct kscope_event *event)
{
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		struct kscope_slot *slot = &r->k->slot[i];

		if (slot->on && slot->event.type == event->type &&
		    slot->event.config == event->config)
			slot->on = false;
	}
	return true;
}

static bool event_on(const struct request *r, const struct kscope_event *event)
{
	bool by_frequency = is(r, 2, "freq");
	struct kscope_slot *slot;
	uint64_t value;
	int i;

	if (r->nr != 4 || (!by_frequency && !is(r, 2, "period")))
		return refuse(r, "use: event NAME|rXX period N|freq N, or event NAME|rXX off");
	i = kscope_event_slot(r->k, event);
	if (i < 0)
		return refuse(r, "no counter that counts this event is free");
	slot = &r->k->slot[i];
	if (!number(r, 3, by_frequency ? "the frequency" : "the period", 1,
		    by_frequency ? 1000000 : r->k->port->pmu->period_max(slot->counter), &value))
		return false;
	if (!event->name)
		name_raw(slot, r->words[1]);
	slot->on = true;
	slot->period = by_frequency ? kscope_quotient(1000000000, value) : value;
	slot->hertz = by_frequency ? value : 0;
	return true;
}

static bool is_countable(const struct kscope *k, const struct kscope_event *event)
{
	unsigned counter = 0;

	while (counter < k->counters && !k->port->pmu->takes(counter, event))
		counter++;
	return counter < k->counters;
}

/* Those that this machine counts: of what its processor could have, that is a part. */
static bool list_events(const struct request *r)
{
	refuse(r, "no such event; this machine has, by name or by number:");
	for (const struct kscope_event *e = r->k->port->pmu->events; e->name; e++) {
		if (!is_countable(r->k, e))
			continue;
		kscope_text_add(r->answer, " ");
		kscope_text_add(r->answer, e->name);
	}
	kscope_text_add(r->answer, " rXX");
	return false;
}

static bool do_event(const struct request *r)
{
	struct kscope_event event;

	if (!r->k->counters)
		return refuse(r, "this machine has no counters");
	if (!kscope_event_find(r->k, r->words[1], &event))
		return list_events(r);
	if (!is_stopped(r))
		return false;
	return r->nr == 3 && is(r, 2, "off") ? event_off(r, &event) : event_on(r, &event);
}

static bool do_jitter(const struct request *r)
{
	uint64_t percent = 0;

	if (!is_stopped(r) ||
	    (!is(r, 1, "off") && !number(r, 1, "the jitter in percent", 0, 90, &percent)))
		return false;
	r->k->jitter = (unsigned)percent;
	return true;
}

/* ---- memory and depth ---- */

/* Sets a limit of the rings, unless they would not fit the memory. */
static bool limit(const struct request *r, size_t *what, const char *name, uint64_t least,
		  uint64_t most)
{
	uint64_t kb, before = *what;

	if (!is_stopped(r) || !number(r, 1, name, least, most, &kb))
		return false;
	*what = (size_t)kb << 10;
	if (kscope_divide(r->k))
		return true;
	*what = (size_t)before;
	kscope_divide(r->k);
	return refuse(r, "too little for the samples of all cpus");
}

static bool do_qlimit(const struct request *r)
{
	return limit(r, &r->k->queue_limit, "prof_qlimit in KB", 1, r->k->size >> 10);
}

static bool do_cpubufsz(const struct request *r)
{
	return limit(r, &r->k->cpu_limit, "prof_cpubufsz in KB", 1,
		     (r->k->size / r->k->port->cpus) >> 10);
}

static bool do_depth(const struct request *r)
{
	unsigned before = r->k->depth;
	uint64_t depth;

	if (!is_stopped(r) || !number(r, 1, "the depth", 1, KSCOPE_DEPTH, &depth))
		return false;
	r->k->depth = (unsigned)depth;
	if (kscope_divide(r->k))
		return true;
	r->k->depth = before;
	return refuse(r, "the rings are too small for stacks of that depth");
}

static bool do_drop(const struct request *r)
{
	if (!is(r, 1, "oldest") && !is(r, 1, "newest"))
		return refuse(r, "use: drop oldest|newest");
	if (!is_stopped(r))
		return false;
	r->k->drop_newest = is(r, 1, "newest");
	return true;
}

static bool do_hold(const struct request *r)
{
	if (!is(r, 1, "on") && !is(r, 1, "off"))
		return refuse(r, "use: hold on|off");
	r->k->hold = is(r, 1, "on");
	return true;
}

static bool do_format(const struct request *r)
{
	static const struct kscope_format *const formats[] = { &kscope_format_wire,
							       &kscope_format_sel4,
							       &kscope_format_kpdata };

	if (!is_stopped(r))
		return false;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (is(r, 1, formats[i]->name)) {
			r->k->format = formats[i];
			if (formats[i]->greeting) /* whoever selects it has connected before */
				kscope_text_add(r->answer, formats[i]->greeting);
			return true;
		}
	}
	return refuse(r, "use: format kscope|sel4|kpdata");
}

/* ---- what is there ---- */

static bool do_mappings(const struct request *r)
{
	const struct kscope_port *port = r->k->port;
	struct kscope_map map = { 0 };

	for (size_t i = 0; port->map && port->map(port->data, i, &map); i++) {
		if (i)
			kscope_text_add(r->answer, "\n");
		kscope_text_add(r->answer, map.path ? map.path : "?");
		kscope_text_add(r->answer, ": ");
		kscope_text_number(r->answer, map.process);
	}
	return true;
}

static void add_count(struct text *text, const char *name, uint64_t value)
{
	kscope_text_add(text, name);
	kscope_text_number(text, value);
}

static void add_slot(struct text *text, const struct kscope_slot *slot)
{
	if (!slot->on)
		return;
	kscope_text_add(text, "\nevent ");
	kscope_text_add(text, slot->event.name);
	add_count(text, slot->hertz ? " freq " : " period ",
		  slot->hertz ? slot->hertz : slot->period);
}

static bool do_status(const struct request *r)
{
	static const char *const states[] = { "stopped", "running", "stopping" };
	struct kscope *k = r->k;

	kscope_text_add(r->answer, states[k->state]);
	kscope_text_add(r->answer, ", format ");
	kscope_text_add(r->answer, k->format->name);
	add_count(r->answer, ", depth ", k->depth);
	add_count(r->answer, ", ring ", k->cpu[0].ring.capacity * sizeof(uintptr_t) >> 10);
	kscope_text_add(r->answer, " KB, drop ");
	kscope_text_add(r->answer, k->drop_newest ? "newest" : "oldest");
	for (unsigned i = 0; i < KSCOPE_EVENTS; i++)
		add_slot(r->answer, &k->slot[i]);
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		struct kscope_counts counts;

		kscope_count(k, cpu, &counts);
		add_count(r->answer, "\ncpu ", cpu);
		kscope_text_add(r->answer, k->cpu[cpu].off ? " off" : " on");
		add_count(r->answer, ", taken ", counts.taken);
		add_count(r->answer, ", sent ", counts.sent);
		add_count(r->answer, ", dropped ", counts.dropped);
		add_count(r->answer, ", throttled ", k->cpu[cpu].throttled);
	}
	return true;
}

/* ---- the table ---- */

static const struct row {
	const char *name, *usage;
	bool (*run)(const struct request *r);
	int least, most; /* words */
} rows[] = {
	{ "start", "start", do_start, 1, 1 },
	{ "stop", "stop", do_stop, 1, 1 },
	{ "flush", "flush", do_flush, 1, 1 },
	{ "clear", "clear", do_clear, 1, 1 },
	{ "timer", "timer CORE|all on|off, timer period US", do_timer, 3, 3 },
	{ "event", "event NAME|rXX period N|freq N|off", do_event, 2, 4 },
	{ "jitter", "jitter PERCENT|off", do_jitter, 2, 2 },
	{ "prof_qlimit", "prof_qlimit KB", do_qlimit, 2, 2 },
	{ "prof_cpubufsz", "prof_cpubufsz KB", do_cpubufsz, 2, 2 },
	{ "prof_btdepth", "prof_btdepth N", do_depth, 2, 2 },
	{ "drop", "drop oldest|newest", do_drop, 2, 2 },
	{ "hold", "hold on|off", do_hold, 2, 2 },
	{ "format", "format kscope|sel4|kpdata", do_format, 2, 2 },
	{ "mappings", "mappings", do_mappings, 1, 1 },
	{ "status", "status", do_status, 1, 1 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool usage(struct text *answer)
{
	kscope_text_add(answer, "error: the commands are:");
	for (size_t i = 0; i < ROWS; i++) {
		kscope_text_add(answer, i ? ", " : " ");
		kscope_text_add(answer, rows[i].usage);
	}
	return false;
}

static bool run(const struct request *r)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];

		if (!is(r, 0, row->name))
			continue;
		if (r->nr >= row->least && r->nr <= row->most)
			return row->run(r);
		refuse(r, "use: ");
		kscope_text_add(r->answer, row->usage);
		return false;
	}
	return usage(r->answer);
}

bool kscope_command(struct kscope *k, const char *line, char *answer, size_t size)
{
	struct text text = text_into(answer, size);
	char copy[KSCOPE_LINE], *words[WORDS];
	struct text into = text_into(copy, sizeof(copy));
	struct request r = { .k = k, .words = words, .answer = &text };

	if (k->format->command && k->format->command(k, line, answer, size))
		return true;
	kscope_text_add(&into, line);
	r.nr = kscope_text_split(copy, words, WORDS);
	if (r.nr == 0)
		return true;
	return r.nr < 0 || into.room == 1 ? usage(&text) : run(&r);
}
