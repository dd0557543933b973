// SPDX-License-Identifier: MIT
/* format_wire: kscope's own stream, version 5; wire/README.md describes it. */
#include "kscope.h"
#include "wire_small.h"

static uint8_t *wire_open_message(struct kscope *k, struct wire *w, int cpu)
{
	const struct kscope_cpu *c = cpu < 0 ? NULL : &k->cpu[cpu];

	return wire_chunk(w, cpu, c ? c->sequence : k->sequence,
			  c ? c->dropped_sum - c->dropped_told : 0);
}

/* Differs between recordings, also of several boots; those may be numbered one by one, or not at all. */
static uint64_t start_number(const struct kscope *k)
{
	return k->port->boot ? (k->port->boot << 16) + k->recording : k->begun + k->recording;
}

static void put_hello(struct kscope *k, struct wire *w)
{
	const struct kscope_slot *slot = &k->slot[0];
	struct wire_info info = {
		.arch = k->port->arch,
		.producer = k->port->name,
		.cpus = k->port->cpus,
		.clock = WIRE_CLOCK_GUEST,
		.period = slot->on ? slot->period : 0,
		.start = start_number(k),
		.checked = true,
		.described = true,
	};

	wire_info(w, WIRE_CHUNK_INFO, &info);
}

static void put_event(struct wire *w, unsigned id, const struct kscope_slot *slot)
{
	struct wire_event event = {
		.id = id,
		.type = slot->event.type,
		.name = slot->event.name,
		.unit = id ? NULL : "ns",
		.config = slot->event.config,
		.period = slot->hertz ? 0 : slot->period,
		.frequency = slot->hertz,
	};

	wire_event(w, &event);
}

static void put_task(struct wire *w, const struct kscope_task *task)
{
	struct wire_task message = {
		.id = task->id, .process = task->process, .name = task->name, .time = task->since
	};

	wire_task(w, &message);
}

static void put_map(struct wire *w, const struct kscope_map *map)
{
	struct wire_map message = {
		.time = map->since,
		.process = map->process,
		.address = map->address,
		.size = map->size,
		.offset = map->offset,
		.path = map->path,
	};

	wire_map(w, &message);
}

static void put_record(struct kscope *k, struct wire *w, unsigned cpu,
		       const struct kscope_record *record)
{
	struct wire_interrupted traps[KSCOPE_TRAPS];
	struct wire_sample sample = {
		.time = record->time,
		.pc = record->frames[0],
		.level = record->user ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL,
		.task = record->task,
		.no_space = true,
		.frames = record->frames,
		.n_frames = record->nr,
		.user_frames = record->user_frames,
		.link = record->link,
		.interrupted = traps,
		.n_interrupted = record->nr_traps,
	};
	struct wire_alloc alloc = {
		.op = (enum wire_op)record->event,
		.allocator = record->allocator,
		.pointer = record->value,
		.size = record->size,
		.at = &sample,
	};

	(void)k;
	(void)cpu;
	for (unsigned i = 0; i < record->nr_traps; i++)
		traps[i] =
			(struct wire_interrupted){ record->traps[i].frame, record->traps[i].link };
	if (record->kind == KSCOPE_ALLOC) {
		wire_alloc(w, WIRE_CHUNK_ALLOC, &alloc);
		return;
	}
	sample.weight = record->value;
	sample.event = record->event;
	wire_sample(w, WIRE_CHUNK_SAMPLE, &sample);
}

/* An interrupt may change the sum while it is read, in two parts on a 32-bit machine. */
static uint64_t sum_of(const volatile uint64_t *sum)
{
	uint64_t first, second = *sum;

	do {
		first = second;
		second = *sum;
	} while (first != second);
	return first;
}

/* They belong to the message, but not at any price. */
static void put_counters(struct kscope *k, struct wire *w, unsigned cpu)
{
	uint64_t now = k->port->time(k->port->data);

	for (unsigned i = 0; i < KSCOPE_EVENTS; i++) {
		uint8_t *before = w->at;

		if (!k->slot[i].on)
			continue;
		wire_counter(w, now, i, sum_of(&k->cpu[cpu].pace[i].sum));
		if (w->full) {
			w->at = before;
			w->full = false;
			return;
		}
	}
}

static void put_round(struct wire *w, uint64_t time)
{
	wire_uint(w, WIRE_CHUNK_ROUND, time);
}

static void put_end(struct kscope *k, struct wire *w)
{
	uint8_t *opened = wire_open(w, WIRE_CHUNK_END);

	wire_string(w, WIRE_END_REASON, "stopped");
	for (unsigned cpu = 0; cpu < k->port->cpus; cpu++) {
		const struct kscope_cpu *c = &k->cpu[cpu];
		struct wire_count count = {
			.cpu = cpu,
			.samples = c->sent,
			.dropped = c->dropped_sum,
			.chunks = c->sequence,
			.allocs = c->sent_allocs,
		};

		wire_count(w, &count);
	}
	wire_close(w, opened);
}

static void put_answer(struct wire *w, const char *text)
{
	wire_string(w, WIRE_CHUNK_ANSWER, text);
}

const struct kscope_format kscope_format_wire = {
	.name = "kscope",
	.batch = UINT32_MAX,
	.allocs = true,
	.open = wire_open_message,
	.close = wire_close_checked,
	.hello = put_hello,
	.event = put_event,
	.task = put_task,
	.map = put_map,
	.record = put_record,
	.counters = put_counters,
	.round = put_round,
	.end = put_end,
	.answer = put_answer,
};
