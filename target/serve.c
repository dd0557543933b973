// SPDX-License-Identifier: MIT
/*
 * serve: the task that sends the stream and obeys commands. It sends one message at a time, never waits, and leaves
 * records in their rings until the link takes them: what does not fit there is dropped and counted.
 */
#include "kscope.h"
#include "text.h"
#include "wire_small.h"

#define PATIENCE 100000000ull /* ns that a record may wait for more, to fill a message */
/* Descriptions come again, because a link may lose them: after so many messages, or so many times their own. */
#define REPEAT 256
#define REPEAT_TIMES 8
#define DEPTH 16

/* ---- memory ---- */

bool kscope_divide(struct kscope *k)
{
	size_t share = k->queue_limit / k->port->cpus;
	uint32_t least = 2 * (uint32_t)(KSCOPE_HEAD_WORDS + KSCOPE_STACK_WORDS(k->depth));

	if (share > k->cpu_limit)
		share = k->cpu_limit;
	share &= ~(size_t)(sizeof(uint64_t) - 1);
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++)
		kscope_ring_init(&k->cpu[cpu].ring, k->memory + cpu * share, share);
	return k->cpu[0].ring.capacity >= least;
}

bool kscope_init(struct kscope *k, const struct kscope_port *port, void *memory, size_t size)
{
	size_t skip = -(uintptr_t)memory & (sizeof(uint64_t) - 1);

	/* Not by an initializer: a compiler may build that on the stack. */
	__builtin_memset(k, 0, sizeof(*k));
	k->port = port;
	k->depth = DEPTH;
	k->record_cpu = -1;
	if (!port->time || !port->cpus || port->cpus > KSCOPE_CPUS || size < skip)
		return false;
	k->memory = (uint8_t *)memory + skip;
	k->size = k->queue_limit = k->cpu_limit = size - skip;
	k->format = &kscope_format_wire;
	k->part = KSCOPE_PART_NONE;
	k->counters = port->pmu ? port->pmu->init() : 0;
	k->slot[0] = (struct kscope_slot){
		.event = { "cpu-clock", KSCOPE_SOFTWARE, 0, 0 },
		.on = true,
		.period = port->timer ? 1000000 : 0,
	};
	for (unsigned cpu = 0; cpu < port->cpus; cpu++)
		k->cpu[cpu].random = 2463534242u + cpu * 2654435761u;
	return kscope_divide(k);
}

/* ---- counts ---- */

/* The counts of interrupts have 32 bits; they are added up often enough. */
static void add_up(struct kscope_cpu *c)
{
	uint32_t taken = __atomic_load_n(&c->taken, __ATOMIC_RELAXED);
	uint32_t dropped = __atomic_load_n(&c->ring.dropped, __ATOMIC_RELAXED);

	c->taken_sum += taken - c->taken_seen;
	c->dropped_sum += dropped - c->dropped_seen;
	c->taken_seen = taken;
	c->dropped_seen = dropped;
}

void kscope_count(const struct kscope *k, unsigned cpu, struct kscope_counts *counts)
{
	const struct kscope_cpu *c = &k->cpu[cpu];

	*counts = (struct kscope_counts){ c->taken_sum, c->sent + c->sent_allocs, c->dropped_sum };
}

/* ---- for commands ---- */

void kscope_settle(struct kscope *k)
{
	__atomic_fetch_add(&k->generation, 1, __ATOMIC_RELEASE);
	for (unsigned cpu = 0; k->port->kick && cpu < k->port->cpus; cpu++)
		k->port->kick(k->port->data, cpu);
}

static void begin_pass(struct kscope *k, uint64_t now)
{
	k->pass = now;
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++)
		k->cpu[cpu].passed = false;
}

static void describe(struct kscope *k)
{
	k->part = KSCOPE_PART_EVENT;
	k->part_at = 0;
	k->described_at = k->messages;
	k->task = 0; /* they may have changed */
}

/* Nothing is left of the recording before. */
static void reset(struct kscope *k)
{
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		struct kscope_cpu *c = &k->cpu[cpu];

		add_up(c);
		c->sequence = c->throttled = 0;
		c->taken_sum = c->dropped_sum = c->sent = c->sent_allocs = c->dropped_told = 0;
		for (unsigned i = 0; i < KSCOPE_EVENTS; i++)
			c->pace[i].sum = 0;
	}
	k->sequence = 0;
	k->ended = k->flush = k->fresh = false;
	k->record_cpu = -1;
}

/* Without a timer of its own, the kernel calls kscope_sample() when it wants to. */
static bool has_trigger(const struct kscope *k)
{
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		if (!k->cpu[cpu].off)
			return true;
	}
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		if (k->slot[i].on)
			return true;
	}
	return false;
}

bool kscope_start(struct kscope *k, const char **why)
{
	*why = "the last recording is still being sent; try again";
	if (k->state == KSCOPE_ENDS && k->format->end)
		return false;
	*why = "nothing triggers samples; use timer or event";
	if (!has_trigger(k))
		return false;
	/* A host that connects again needs the beginning again. */
	k->greet = true;
	describe(k);
	if (k->state == KSCOPE_STREAMS)
		return true;
	if (k->state == KSCOPE_IDLE) {
		reset(k);
		k->recording++;
		k->begun = k->port->time(k->port->data);
	}
	/* In a format without an end, a recording that is ending just goes on. */
	k->ended = false;
	k->state = KSCOPE_STREAMS;
	begin_pass(k, k->port->time(k->port->data));
	__atomic_store_n(&k->running, true, __ATOMIC_RELEASE);
	kscope_settle(k);
	return true;
}

void kscope_stop(struct kscope *k)
{
	if (k->state != KSCOPE_STREAMS)
		return;
	__atomic_store_n(&k->running, false, __ATOMIC_RELAXED);
	k->state = KSCOPE_ENDS;
	k->ended = false;
	kscope_settle(k);
}

void kscope_clear(struct kscope *k)
{
	struct kscope_record record;

	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		while (kscope_take(&k->cpu[cpu].ring, k->words, &record))
			__atomic_fetch_add(&k->cpu[cpu].ring.dropped, 1, __ATOMIC_RELAXED);
	}
	if (k->record_cpu >= 0)
		__atomic_fetch_add(&k->cpu[k->record_cpu].ring.dropped, 1, __ATOMIC_RELAXED);
	k->record_cpu = -1;
}

void kscope_flush(struct kscope *k)
{
	k->flush = k->state != KSCOPE_IDLE;
	begin_pass(k, k->port->time(k->port->data));
}

/* Where a host that connects has to begin: the last one has got part of this message. */
static size_t resume_at(const struct kscope *k)
{
	size_t at = 0, next = 0;

	if (k->out_text || k->out_sent == k->out_len)
		return k->out_len;
	while (next <= k->out_sent && k->format->size) {
		at = next;
		next += k->format->size(k->out + at);
	}
	return at;
}

void kscope_connected(struct kscope *k)
{
	k->greeting = k->format->greeting;
	k->out_sent = resume_at(k);
	k->line_len = 0; /* the last host has no more to say */
	k->line_long = k->line_whole = false;
	/* In a format without a beginning, the end of a recording needs none either. */
	if (k->state == KSCOPE_STREAMS || (k->state == KSCOPE_ENDS && k->format->hello)) {
		k->greet = true;
		describe(k);
	}
}

void kscope_changed(struct kscope *k)
{
	if (k->state == KSCOPE_STREAMS)
		describe(k);
}

bool kscope_is_running(const struct kscope *k)
{
	return __atomic_load_n(&k->running, __ATOMIC_RELAXED);
}

bool kscope_is_done(const struct kscope *k)
{
	return k->state == KSCOPE_IDLE && k->out_sent == k->out_len;
}

/* ---- messages ---- */

struct message {
	struct wire w;
	uint8_t *opened;
	int cpu;
};

static struct message open_message(struct kscope *k, int cpu)
{
	/* The end needs more room if there are many cpus. */
	struct message m = { .w = wire_into(k->out, k->ended ? sizeof(k->out) : KSCOPE_CHUNK),
			     .cpu = cpu };

	m.w.end -= WIRE_CHECK_SIZE; /* for close() */
	m.opened = k->format->open ? k->format->open(k, &m.w, cpu) : m.w.at;
	return m;
}

/* A message that was opened, but is not closed, has no number. */
static void count_message(struct kscope *k, int cpu)
{
	k->messages++;
	if (cpu < 0) {
		k->sequence++;
	} else {
		k->cpu[cpu].sequence++;
		k->cpu[cpu].dropped_told = k->cpu[cpu].dropped_sum;
	}
}

static bool close_message(struct kscope *k, struct message *m)
{
	m->w.end += WIRE_CHECK_SIZE;
	if (k->format->close)
		k->format->close(&m->w, m->opened);
	k->out_len = m->w.full ? 0 : (size_t)(m->w.at - k->out);
	k->out_sent = 0;
	k->out_text = false;
	if (k->out_len)
		count_message(k, m->cpu);
	return k->out_len > 0;
}

static bool send_hello(struct kscope *k)
{
	struct message m;

	if (!k->greet)
		return false;
	k->greet = false;
	if (!k->format->hello)
		return false;
	m = open_message(k, -1);
	k->format->hello(k, &m.w);
	return close_message(k, &m);
}

/* ---- descriptions ---- */

static bool add_event(struct kscope *k, struct wire *w)
{
	const struct kscope_slot *slot = &k->slot[k->part_at];

	if (k->part_at == KSCOPE_EVENTS)
		return false;
	if (slot->on && k->format->event)
		k->format->event(w, (unsigned)k->part_at, slot);
	return true;
}

static bool add_task(struct kscope *k, struct wire *w)
{
	const struct kscope_port *port = k->port;
	struct kscope_task task = { 0 };

	if (!port->task || !k->format->task || !port->task(port->data, k->part_at, &task))
		return false;
	k->format->task(w, &task);
	return true;
}

static bool add_map(struct kscope *k, struct wire *w)
{
	const struct kscope_port *port = k->port;
	struct kscope_map map = { 0 };

	if (!port->map || !k->format->map || !port->map(port->data, k->part_at, &map))
		return false;
	k->format->map(w, &map);
	return true;
}

uint32_t kscope_process(struct kscope *k, uint32_t id)
{
	const struct kscope_port *port = k->port;
	struct kscope_task task = { 0 };

	if (!id || id == k->task)
		return id ? k->process : 0;
	k->task = k->process = id;
	for (size_t i = 0; port->task && port->task(port->data, i, &task); i++) {
		if (task.id == id && task.process)
			k->process = task.process;
		if (task.id == id)
			break;
	}
	return k->process;
}

static void next_part(struct kscope *k)
{
	uint32_t repeat;

	k->part_at = 0;
	if (++k->part != KSCOPE_PART_NONE)
		return;
	repeat = REPEAT_TIMES * (k->messages - k->described_at);
	k->describe_at = k->messages + (repeat > REPEAT ? repeat : REPEAT);
}

/* Adds the next description. False: the message is full. One that does not fit an empty message is left out. */
static bool add_description(struct kscope *k, struct wire *w, const uint8_t *empty)
{
	bool maps_first = k->format->maps_first;
	bool (*const add[])(struct kscope * k, struct wire * w) = {
		add_event,
		maps_first ? add_map : add_task,
		maps_first ? add_task : add_map,
	};
	uint8_t *before = w->at;

	if (!add[k->part](k, w))
		next_part(k);
	else if (!w->full || before == empty)
		k->part_at++;
	if (!w->full)
		return true;
	w->at = before;
	w->full = false;
	return before == empty;
}

/* As many descriptions as fit a message. False: there are no more. */
static bool send_descriptions(struct kscope *k)
{
	struct message m;
	const uint8_t *empty;

	if (k->part == KSCOPE_PART_NONE)
		return false;
	m = open_message(k, -1);
	empty = m.w.at;
	while (k->part != KSCOPE_PART_NONE && add_description(k, &m.w, empty))
		;
	return m.w.at != empty && close_message(k, &m);
}

/* ---- records ---- */

/* The next record of a cpu: the one that did not fit the last message, or one of the ring. */
static bool next_record(struct kscope *k, unsigned cpu)
{
	if (k->record_cpu == (int)cpu)
		return true;
	if (k->record_cpu >= 0 || !kscope_take(&k->cpu[cpu].ring, k->words, &k->record))
		return false;
	k->record_cpu = (int)cpu;
	return true;
}

/* Whether a message would be full enough, or has waited long enough. */
static bool is_due(const struct kscope *k, const struct kscope_cpu *c, uint64_t now)
{
	size_t waits = kscope_ring_used(&c->ring) * sizeof(uintptr_t);

	if (k->state == KSCOPE_ENDS || k->flush)
		return true;
	if (k->hold)
		return false;
	return waits >= 2 * KSCOPE_CHUNK || now - c->sent_at >= PATIENCE;
}

static void count_sent(struct kscope *k, struct kscope_cpu *c)
{
	c->sent += k->record.kind == KSCOPE_SAMPLE;
	c->sent_allocs += k->record.kind == KSCOPE_ALLOC;
	c->passed |= k->record.time >= k->pass;
	k->record_cpu = -1;
	k->fresh = true;
}

/* As many records as fit a message. One that does not fit an empty one is dropped. */
static void add_records(struct kscope *k, struct wire *w, unsigned cpu)
{
	struct kscope_cpu *c = &k->cpu[cpu];
	unsigned nr = 0;

	while (nr < k->format->batch && next_record(k, cpu)) {
		uint8_t *before = w->at;

		k->format->record(k, w, cpu, &k->record);
		if (!w->full) {
			nr++;
			count_sent(k, c);
			continue;
		}
		w->at = before;
		w->full = false;
		if (nr) /* it begins the next message */
			return;
		__atomic_fetch_add(&c->ring.dropped, 1, __ATOMIC_RELAXED);
		k->record_cpu = -1;
	}
}

static bool send_records(struct kscope *k, unsigned cpu, uint64_t now)
{
	struct kscope_cpu *c = &k->cpu[cpu];
	struct message m;
	bool tells;

	add_up(c);
	tells = k->format->open && c->dropped_told != c->dropped_sum;
	if (k->record_cpu != (int)cpu && (k->record_cpu >= 0 || !is_due(k, c, now)))
		return false;
	if (!next_record(k, cpu) && !tells)
		return false;
	m = open_message(k, (int)cpu);
	add_records(k, &m.w, cpu);
	if (k->format->counters)
		k->format->counters(k, &m.w, cpu);
	c->sent_at = now;
	return close_message(k, &m);
}

/* ---- rounds: no later record is older than the time at which a pass over all rings began ---- */

static bool all_passed(struct kscope *k)
{
	bool all = true;

	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		struct kscope_cpu *c = &k->cpu[cpu];

		/* A writer that has not begun yet reads the clock later. */
		c->passed |= k->record_cpu != (int)cpu && kscope_ring_is_quiet(&c->ring);
		all &= c->passed;
	}
	return all;
}

static bool send_round(struct kscope *k, uint64_t now)
{
	uint64_t pass = k->pass;
	struct message m;

	if (!all_passed(k))
		return false;
	begin_pass(k, now);
	k->flush = false;
	if (!k->fresh || !k->format->round)
		return false;
	k->fresh = false;
	m = open_message(k, -1);
	k->format->round(&m.w, pass);
	return close_message(k, &m);
}

static bool are_quiet(const struct kscope *k)
{
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		if (!kscope_ring_is_quiet(&k->cpu[cpu].ring))
			return false;
	}
	return k->record_cpu < 0;
}

static bool send_end(struct kscope *k)
{
	struct message m;

	if (k->state != KSCOPE_ENDS || !are_quiet(k))
		return false;
	if (!k->ended) { /* the last ones: tasks and maps may have come since the start */
		k->ended = true;
		describe(k);
		if (send_descriptions(k))
			return true;
	}
	k->state = KSCOPE_IDLE;
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++)
		add_up(&k->cpu[cpu]);
	if (!k->format->end)
		return false;
	m = open_message(k, -1);
	k->format->end(k, &m.w);
	return close_message(k, &m);
}

static bool send_any_records(struct kscope *k, uint64_t now)
{
	for (unsigned i = 0; i < k->port->cpus; i++) {
		unsigned cpu = k->next_cpu;

		k->next_cpu = (cpu + 1) % k->port->cpus;
		if (send_records(k, cpu, now))
			return true;
	}
	return false;
}

/* Makes the next message. False: there is none at the moment. */
static bool next_message(struct kscope *k)
{
	uint64_t now = k->port->time(k->port->data);

	if (k->state == KSCOPE_IDLE)
		return false;
	if (send_hello(k))
		return true;
	if (k->format->event && k->part == KSCOPE_PART_NONE &&
	    (int32_t)(k->messages - k->describe_at) >= 0)
		describe(k);
	/* They take turns: there may be many tasks, and the rings fill meanwhile. */
	k->describes = !k->describes;
	if (k->describes && send_descriptions(k))
		return true;
	return send_any_records(k, now) || send_descriptions(k) || send_round(k, now) ||
	       send_end(k);
}

/* ---- commands ---- */

static void answer(struct kscope *k, const char *text)
{
	bool streams = k->state != KSCOPE_IDLE;
	struct message m;

	if (streams && k->format->answer) {
		m = open_message(k, -1);
		k->format->answer(&m.w, text);
		close_message(k, &m);
	} else if (!streams) {
		struct text out = text_into((char *)k->out, sizeof(k->out) - 1);

		kscope_text_add(&out, text);
		if (out.at[-1] != '\n')
			*out.at++ = '\n';
		k->out_len = (size_t)(out.at - (char *)k->out);
		k->out_sent = 0;
		k->out_text = true;
	}
}

/* A text as it is. */
static void say(struct kscope *k, const char *text)
{
	struct text out = text_into((char *)k->out, sizeof(k->out));

	kscope_text_add(&out, text);
	k->out_len = (size_t)(out.at - (char *)k->out);
	k->out_sent = 0;
	k->out_text = true;
}

/* Answers a command that asks, or that is wrong. Others have no answer: a stream may follow. */
static void obey_line(struct kscope *k)
{
	char text[sizeof(k->out) < 1024 ? sizeof(k->out) : 1024];

	if (k->format->command && k->format->command(k, k->line, text, sizeof(text))) {
		say(k, text);
		return;
	}
	kscope_command(k, k->line, text, sizeof(text));
	if (*text)
		answer(k, text);
}

static void obey(struct kscope *k)
{
	k->line[k->line_len] = '\0';
	if (k->line_long)
		k->line[0] = '?'; /* too long for any command: the usage */
	if (k->line_len)
		obey_line(k);
	k->line_len = 0;
	k->line_long = k->line_whole = false;
}

/* Reads up to the end of a line, but not for ever: a host may send garbage faster than this reads it. */
static bool read_line(struct kscope *k)
{
	unsigned nr = 0;
	int c;

	while (!k->line_whole && nr < KSCOPE_LINE && k->port->receive &&
	       (c = k->port->receive(k->port->data)) >= 0) {
		nr++;
		if (c == '\n' || c == '\r')
			k->line_whole = true;
		else if (k->line_len < sizeof(k->line) - 1)
			k->line[k->line_len++] = (char)(c ? c : '?');
		else
			k->line_long = true;
	}
	return nr > 0;
}

/* ---- the task ---- */

/* Whether the host has the greeting. */
static bool send_greeting(struct kscope *k)
{
	const struct kscope_port *port = k->port;
	size_t size = 0;

	while (k->greeting && k->greeting[size])
		size++;
	if (size)
		k->greeting += port->send ? port->send(port->data, k->greeting, size) : size;
	return !size || !*k->greeting;
}

/* Whether the link took something. */
static bool send_rest(struct kscope *k)
{
	const struct kscope_port *port = k->port;
	size_t rest = k->out_len - k->out_sent, took;

	if (!send_greeting(k) || !rest)
		return false;
	took = port->send ? port->send(port->data, k->out + k->out_sent, rest) : rest;
	k->out_sent += took;
	return took > 0;
}

bool kscope_serve(struct kscope *k)
{
	bool busy = read_line(k);

	busy |= send_rest(k);
	if (k->out_sent < k->out_len)
		return busy;
	if (k->line_whole)
		obey(k);
	if (k->out_sent == k->out_len && !next_message(k))
		return busy;
	return send_rest(k) || busy;
}
