// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_target: any bytes as what happens to the sampler: commands, interrupts, some of which interrupt others, tasks that
 * come and go, hosts that connect, and a link that takes what it wants. Whatever comes, the output is a valid stream, with
 * every chunk and every sample of it, and in the end taken = sent + dropped.
 */
#include "tests/unit/target_port.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_SMALL 8192  /* records are dropped soon */
#define MEMORY_LARGE 65536 /* several messages wait in a ring */
#define TASKS_MAX 400
#define TURNS 200000 /* of the task that serves: more than any stream here takes */

struct bytes {
	const uint8_t *at, *end;
};

static struct bytes input;
static struct bytes typed; /* what the host sends */
static unsigned nested;	   /* interrupts that come inside the next sample */
static bool checks;	   /* the stream is kscope's own */

static void need(bool good)
{
	if (!good)
		abort();
}

static unsigned next_byte(void)
{
	return input.at < input.end ? *input.at++ : 0;
}

/* ---- the stream ---- */

struct stream {
	bool open; /* an info has come, and no end */
	bool known;
	uint64_t start;
	uint32_t sequence[PORT_CPUS + 1]; /* the last one is that of chunks without a cpu */
	uint64_t samples[PORT_CPUS], allocs[PORT_CPUS], dropped[PORT_CPUS], time[PORT_CPUS];
	uint64_t round;
	unsigned ends;
};

static uint64_t varint(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		need(b->at < b->end);
		value |= (uint64_t)(*b->at & 0x7f) << shift;
		if (!(*b->at++ & 0x80))
			return value;
	}
	need(false);
	return 0;
}

struct field {
	uint32_t id;
	uint64_t value;
	struct bytes bytes;
};

static bool next_field(struct bytes *b, struct field *field)
{
	uint64_t tag;
	size_t size = 0;

	if (b->at == b->end)
		return false;
	tag = varint(b);
	*field = (struct field){ .id = (uint32_t)(tag >> 3) };
	switch (tag & 7) {
	case WIRE_VARINT: field->value = varint(b); return true;
	case WIRE_FIXED32: size = 4; break;
	case WIRE_FIXED64: size = 8; break;
	case WIRE_BYTES: size = varint(b); break;
	default: need(false);
	}
	need(size <= (size_t)(b->end - b->at));
	field->bytes = (struct bytes){ b->at, b->at + size };
	b->at += size;
	return true;
}

static uint64_t number_of(struct bytes message, uint32_t id)
{
	struct field field;
	uint64_t value = 0;

	while (next_field(&message, &field)) {
		if (field.id == id)
			value = field.value;
	}
	return value;
}

static void take_record(struct stream *s, uint64_t cpu, const struct field *field)
{
	struct bytes message = field->bytes;
	struct field inner;
	uint64_t time = number_of(message, WIRE_SAMPLE_TIME);

	need(cpu < PORT_CPUS);
	if (field->id == WIRE_CHUNK_ALLOC) {
		time = 0;
		while (next_field(&message, &inner)) {
			if (inner.id == WIRE_ALLOC_AT)
				time = number_of(inner.bytes, WIRE_SAMPLE_TIME);
		}
		s->allocs[cpu]++;
	} else {
		s->samples[cpu]++;
	}
	need(time >= s->time[cpu] && time >= s->round);
	s->time[cpu] = time;
}

static void take_end(struct stream *s, struct bytes message)
{
	struct field field;
	uint64_t cpus = 0;

	while (next_field(&message, &field)) {
		uint64_t cpu;

		if (field.id != WIRE_END_COUNT)
			continue;
		cpu = number_of(field.bytes, WIRE_COUNT_CPU);
		need(cpu == cpus++ && cpu < PORT_CPUS);
		need(number_of(field.bytes, WIRE_COUNT_SAMPLES) == s->samples[cpu]);
		need(number_of(field.bytes, WIRE_COUNT_ALLOCS) == s->allocs[cpu]);
		need(number_of(field.bytes, WIRE_COUNT_DROPPED) == s->dropped[cpu]);
		need(number_of(field.bytes, WIRE_COUNT_CHUNKS) == s->sequence[cpu]);
	}
	need(cpus == port_ops.cpus);
	s->open = false;
	s->ends++;
}

static void take_info(struct stream *s, struct bytes message)
{
	uint64_t start = number_of(message, WIRE_INFO_START);
	unsigned ends = s->ends;

	need(number_of(message, WIRE_INFO_VERSION) == WIRE_VERSION);
	if (s->known && s->start == start)
		return;
	need(!s->open);
	*s = (struct stream){ .open = true, .known = true, .start = start, .ends = ends };
}

static void take_chunk(struct stream *s, struct bytes chunk)
{
	struct bytes fields = chunk;
	struct field field;
	uint64_t cpu = PORT_CPUS, dropped = 0, sequence = 0;

	need(chunk.end - chunk.at > 10);
	for (struct bytes b = chunk; next_field(&b, &field);) {
		if (field.id == WIRE_CHUNK_INFO)
			take_info(s, field.bytes);
		if (field.id == WIRE_CHUNK_CPU)
			cpu = field.value;
		if (field.id == WIRE_CHUNK_SEQUENCE)
			sequence = field.value;
		if (field.id == WIRE_CHUNK_DROPPED)
			dropped = field.value;
	}
	need(s->open && cpu <= PORT_CPUS && sequence == s->sequence[cpu]);
	s->sequence[cpu]++;
	if (cpu < PORT_CPUS)
		s->dropped[cpu] += dropped;
	while (next_field(&fields, &field)) {
		if (field.id == WIRE_CHUNK_SAMPLE || field.id == WIRE_CHUNK_ALLOC)
			take_record(s, cpu, &field);
		else if (field.id == WIRE_CHUNK_ROUND)
			s->round = field.value;
		else if (field.id == WIRE_CHUNK_END)
			take_end(s, field.bytes);
	}
}

static void check_crc(struct bytes chunk)
{
	const uint8_t *check = chunk.end - WIRE_CHECK_SIZE;
	uint32_t crc = wire_crc(0, chunk.at, (size_t)(check - chunk.at));

	need(check[0] == WIRE_TAG(WIRE_CHUNK_CHECK, WIRE_FIXED32));
	for (unsigned i = 0; i < 4; i++)
		need(check[1 + i] == (uint8_t)(crc >> 8 * i));
}

static bool is_chunk(struct bytes b)
{
	return b.end - b.at > 10 && b.at[0] == 0x0a && !memcmp(b.at + 5, "\x0dKSCP", 5);
}

/* Chunks, and lines of text before and after streams. */
static void check_stream(struct stream *s)
{
	struct bytes b = { port_state.out, port_state.out + port_state.out_len };

	while (b.at < b.end) {
		size_t size;

		if (!is_chunk(b)) {
			need(!s->open);
			while (*b.at++ != '\n')
				need(b.at < b.end);
			continue;
		}
		b.at++;
		size = varint(&b);
		need(size <= (size_t)(b.end - b.at));
		check_crc((struct bytes){ b.at, b.at + size });
		take_chunk(s, (struct bytes){ b.at, b.at + size });
		b.at += size;
	}
}

/* ---- the kernel ---- */

static int receive(void *data)
{
	(void)data;
	return typed.at < typed.end ? *typed.at++ : -1;
}

static void interrupt(unsigned what, unsigned cpu)
{
	static const char *const allocators[] = { "malloc", "a", "slab" };
	static char long_name[3000];
	struct kscope_at at = { .task = next_byte(),
				.user = what & 16,
				.pc = next_byte() << 12,
				.fp = (uintptr_t)next_byte() << 3,
				.link = what << 8 };
	unsigned before = port_state.cpu;

	memset(long_name, 'n', sizeof(long_name) - 1);
	port_state.cpu = cpu;
	switch (what % 4) {
	case 0: kscope_timer(&port_k, cpu, &at); break;
	case 1:
		port_state.overflows[cpu] = next_byte();
		kscope_counter(&port_k, cpu, &at);
		break;
	case 2: kscope_sample(&port_k, cpu, what >> 4 & 7, what, &at); break;
	default:
		kscope_alloc(&port_k, cpu, (enum kscope_op)(what >> 4 & 1),
			     what & 64 ? long_name : allocators[what % 3], what, cpu, &at);
	}
	port_state.cpu = before;
}

/* A frame somewhere; and here is where interrupts interrupt others. */
static bool read_memory(void *data, const struct kscope_at *at, void *to, uintptr_t from,
			size_t size)
{
	uintptr_t frame[2] = { from + 8 * (next_byte() % 8), at->pc + 4 };

	(void)data;
	memcpy(to, frame, size);
	if (nested) {
		nested--;
		interrupt(next_byte(), port_state.cpu);
	}
	return next_byte() % 8;
}

static uint64_t clock_time(void *data)
{
	port_state.now += 1 + (nested & 1);
	if (nested && input.at < input.end && !(*input.at & 3)) {
		nested--;
		interrupt(next_byte(), port_state.cpu);
	}
	return port_time(data);
}

static bool task(void *data, size_t i, struct kscope_task *what)
{
	static const char name[] =
		"a name that is rather long, so that many of them need several messages";

	(void)data;
	*what = (struct kscope_task){ .id = (uint32_t)i + 1, .name = name + i % 60 };
	return i < port_state.tasks;
}

static void command(void)
{
	static const char *const lines[] = {
		"start\n",
		"stop\n",
		"flush\n",
		"clear\n",
		"status\n",
		"mappings\n",
		"hold on\n",
		"hold off\n",
		"drop oldest\n",
		"drop newest\n",
		"event cycles period 9\n",
		"event cycles off\n",
		"event instructions freq 100\n",
		"timer all off\n",
		"timer all on\n",
		"jitter 30\n",
		"prof_btdepth 3\n",
		"prof_btdepth 60\n",
		"prof_qlimit 4\n",
		"prof_qlimit 8\n",
		"timer 1 off\n",
		"timer period 3\n",
		"format sel4\n",
		"format kpdata\n",
		"format kscope\n",
	};
	unsigned nr = next_byte();

	typed = (struct bytes){ input.at,
				input.at + (nr < (size_t)(input.end - input.at) ? nr : 0) };
	if (nr >= 128) {
		const char *line = lines[nr % (sizeof(lines) / sizeof(lines[0]))];

		typed = (struct bytes){ (const uint8_t *)line,
					(const uint8_t *)line + strlen(line) };
	} else {
		input.at = typed.end;
	}
}

/* A new host gets the last message from its beginning, but not the rest of a text. */
static void connect(void)
{
	size_t sent = port_k.out_sent;

	kscope_connected(&port_k);
	if (sent < port_k.out_len)
		port_state.out_len -= port_k.out_sent <= sent ? sent - port_k.out_sent : sent;
}

static void serve(unsigned turns, size_t window)
{
	port_state.window = window;
	for (unsigned i = 0; i < turns && kscope_serve(&port_k); i++)
		checks &= port_k.format == &kscope_format_wire;
	checks &= port_k.format == &kscope_format_wire;
}

static void step(void)
{
	unsigned what = next_byte();

	switch (what % 8) {
	case 0:
		command();
		serve(3, PORT_OUT);
		break;
	case 1:
	case 2:
		nested = what >> 6;
		interrupt(next_byte(), what >> 3 & 3);
		break;
	case 3: port_state.now += (uint64_t)next_byte() << (what >> 3); break;
	case 4: serve(what >> 3, next_byte() * 8); break;
	case 5:
		port_state.cpu = what >> 3 & 3;
		kscope_apply(&port_k, port_state.cpu);
		break;
	case 6:
		port_state.tasks = next_byte() * 2 % TASKS_MAX;
		kscope_changed(&port_k);
		break;
	default:
		if (what & 64)
			connect();
		else
			port_state.no_kick = what & 128;
	}
}

/* Whatever happened, a recording comes to its end. */
static void finish(void)
{
	unsigned turns = 0;

	nested = 0;
	input.at = input.end;
	port_says("stop");
	port_state.window = PORT_OUT;
	while (!kscope_is_done(&port_k)) {
		need(turns++ < TURNS);
		kscope_serve(&port_k);
	}
	for (unsigned cpu = 0; cpu < port_ops.cpus; cpu++) {
		struct kscope_counts counts;

		kscope_count(&port_k, cpu, &counts);
		need(counts.taken == counts.sent + counts.dropped);
		need(kscope_ring_is_quiet(&port_k.cpu[cpu].ring));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream stream = { 0 };

	input = (struct bytes){ data, data + size };
	typed = (struct bytes){ 0 };
	nested = 0;
	port_open(PORT_CPUS, size && data[0] & 2 ? MEMORY_LARGE : MEMORY_SMALL);
	port_ops.time = clock_time;
	port_ops.read = read_memory;
	port_ops.receive = receive;
	port_ops.task = task;
	port_state.maps = 3;
	checks = true;
	if (size && data[0] & 1) /* positions that wrap soon */
		for (unsigned cpu = 0; cpu < PORT_CPUS; cpu++) {
			struct kscope_ring *ring = &port_k.cpu[cpu].ring;

			ring->reserved = ring->readable = ring->oldest = UINT32_MAX - 50 * cpu;
		}
	while (input.at < input.end && port_state.out_len < PORT_OUT / 2)
		step();
	finish();
	if (checks)
		check_stream(&stream);
	return 0;
}
