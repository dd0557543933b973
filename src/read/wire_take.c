// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_take: puts the records of chunks into the order, and reports what is wrong with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "read/wire_parts.h"

#define ANSWER_MAX 1000	  /* bytes */
#define REFUSALS_SHOWN 10 /* in a recording that is damaged, there may be more */

struct wire_cpu *wire_cpu(struct wire_reader *w, uint32_t cpu)
{
	if (cpu >= w->nr_cpus) {
		w->cpus = xrealloc(w->cpus, cpu + 1, sizeof(*w->cpus));
		memset(w->cpus + w->nr_cpus, 0, (cpu + 1 - w->nr_cpus) * sizeof(*w->cpus));
		w->nr_cpus = cpu + 1;
	}
	return &w->cpus[cpu];
}

/* The last damage that waits; NULL: none. */
static struct event *last_damage(struct wire_events *events)
{
	for (size_t i = events->nr; i > events->next; i--) {
		if (events->at[i - 1].kind == EVENT_LOST && events->at[i - 1].lost.damage)
			return &events->at[i - 1];
	}
	return NULL;
}

void wire_damage(struct reader *r, uint64_t offset, uint64_t count, uint64_t bytes,
		 const char *text)
{
	struct wire_reader *w = r->priv;
	bool room = w->before.nr + 1 < WIRE_EVENTS; /* the last one is for `dropped` */
	struct event *ev = room ? wire_add(&w->before, EVENT_LOST) : NULL, spare, *last;

	reader_damage(r, ev ? ev : &spare, offset, count, bytes, "%s", text);
	last = ev ? NULL : last_damage(&w->before);
	if (last) {
		last->lost.count += count;
		last->lost.bytes += bytes;
	}
}

/* ---- records ---- */

/* The fields of a chunk other than its records. */
struct chunk_facts {
	uint64_t cpu, sequence, dropped, trace_time;
	bool has_cpu;
	bool has_info;
	struct pb trace;
	uint64_t unread; /* bytes after the last field that can be read */
};

static void add_dropped(struct wire_reader *w, const struct chunk_facts *facts)
{
	struct event *ev = wire_add(&w->before, EVENT_LOST);

	if (facts->has_cpu)
		wire_cpu(w, (uint32_t)facts->cpu)->dropped += facts->dropped;
	if (!ev)
		return;
	ev->lost.count = facts->dropped;
	ev->cpu = facts->has_cpu ? (uint32_t)facts->cpu : NO_CPU;
}

static void keep(struct wire_reader *w, const struct wire_item *item, uint64_t time,
		 uint64_t offset, struct pb message)
{
	buf_clear(&w->scratch);
	buf_add(&w->scratch, item, sizeof(*item));
	buf_add(&w->scratch, message.at, (size_t)(message.end - message.at));
	/* The code of a trace has to come before it, whichever cpu recorded it. */
	order_put(&w->order, wire_boot_note(&w->boot, time), w->info.trace ? 0 : item->cpu, offset,
		  w->scratch.data, w->scratch.len);
}

/* A description of version 5 is not a record of the boot's clock: it may be older than the first one. */
static void keep_description(struct wire_reader *w, const struct wire_item *item, uint64_t time,
			     uint64_t offset, struct pb message)
{
	buf_clear(&w->scratch);
	buf_add(&w->scratch, item, sizeof(*item));
	buf_add(&w->scratch, message.at, (size_t)(message.end - message.at));
	order_put(&w->order, w->boot.fresh ? w->boot.last : wire_boot_time(&w->boot, time), 0,
		  offset, w->scratch.data, w->scratch.len);
}

static bool good_sample(const struct wire_reader *w, const struct sample_message *sample)
{
	size_t nr;

	return (!w->described.on || sample->task < NO_TASK) && sample->event < WIRE_EVENT_IDS &&
	       wire_get_frames(sample->frames, 0, NULL, 0, &nr);
}

/* Gets the time of a record, and the place of a sample. False: the record is damaged. */
static bool record_time(const struct wire_reader *w, enum wire_chunk_field kind, struct pb message,
			uint64_t *time, uint64_t *place)
{
	struct sample_message sample;
	struct alloc_message alloc;
	struct code_message code;
	struct counter_message counter;

	switch (kind) {
	case WIRE_CHUNK_ALLOC:
		if (!wire_get_alloc(message, &alloc))
			return false;
		message = alloc.at;
		/* fall through */
	case WIRE_CHUNK_SAMPLE:
		if (!wire_get_sample(message, &sample) || !good_sample(w, &sample))
			return false;
		*time = sample.time;
		*place = kind == WIRE_CHUNK_SAMPLE ? sample.place : 0;
		return true;
	case WIRE_CHUNK_CODE:
		if (!wire_get_code(message, &code))
			return false;
		*time = code.time;
		return true;
	case WIRE_CHUNK_COUNTER:
		if (!wire_get_counter(message, &counter))
			return false;
		*time = counter.time;
		return true;
	default: return wire_description_time(kind, message, time);
	}
}

static void take_record(struct reader *r, const struct wire_chunk *chunk,
			const struct chunk_facts *facts, const struct pb_field *field)
{
	struct wire_reader *w = r->priv;
	enum wire_chunk_field kind = (enum wire_chunk_field)field->number;
	uint64_t time = 0, place = 0, offset = chunk->offset + chunk->head;
	struct wire_cpu *count = facts->has_cpu ? wire_cpu(w, (uint32_t)facts->cpu) : NULL;
	struct wire_item item = { .kind = kind, .cpu = count ? (uint32_t)facts->cpu : NO_CPU };

	if (field->wire == PB_BYTES)
		offset += (uint64_t)(field->bytes.at - chunk->data);
	if (field->wire != PB_BYTES || !record_time(w, kind, field->bytes, &time, &place)) {
		bool counts = kind == WIRE_CHUNK_SAMPLE || kind == WIRE_CHUNK_ALLOC ||
			      kind == WIRE_CHUNK_CODE;

		wire_damage(r, offset, counts, 0, "cannot read this record");
		if (count && counts)
			count->damaged++;
		return;
	}
	if (wire_describes(kind)) {
		if (kind == WIRE_CHUNK_EVENT && wire_event_came(w, field->bytes))
			time = w->boot.last - w->boot.shift;
		keep_description(w, &item, time, offset, field->bytes);
		return;
	}
	if (count) {
		count->samples += kind == WIRE_CHUNK_SAMPLE;
		count->allocs += kind == WIRE_CHUNK_ALLOC;
	}
	if (count && place) {
		wire_checks_add(&count->checks, place, field->bytes);
		return;
	}
	/* The code of a trace has to come before it. */
	if (kind == WIRE_CHUNK_CODE && w->info.trace)
		time = w->round;
	keep(w, &item, time, offset, field->bytes);
}

static void take_trace(struct wire_reader *w, const struct wire_chunk *chunk,
		       const struct chunk_facts *facts)
{
	uint64_t offset = chunk->offset + chunk->head + (uint64_t)(facts->trace.at - chunk->data);
	struct wire_cpu *count = wire_cpu(w, (uint32_t)facts->cpu);

	wire_merge_add(&w->traces, (uint32_t)facts->cpu, facts->trace.at,
		       (size_t)(facts->trace.end - facts->trace.at), facts->trace_time, count->hole,
		       offset);
	count->hole = false;
}

/* ---- the end ---- */

/* What the target counted, and what arrived. */
static void check_count(struct reader *r, const struct wire_chunk *chunk, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct pb_field field;
	uint64_t cpu = 0, samples = 0, allocs = 0, dropped = 0, taken, here;
	const struct wire_cpu *seen;
	char text[120];

	while (pb_next(&message, &field) > 0) {
		switch (field.number) {
		case WIRE_COUNT_CPU: cpu = field.value; break;
		case WIRE_COUNT_SAMPLES: samples = field.value; break;
		case WIRE_COUNT_DROPPED: dropped = field.value; break;
		case WIRE_COUNT_ALLOCS: allocs = field.value; break;
		}
	}
	if (cpu >= WIRE_CPUS_MAX)
		return;
	seen = wire_cpu(w, (uint32_t)cpu);
	taken = samples + allocs;
	here = seen->samples + seen->allocs;
	if (here + seen->damaged < taken) {
		snprintf(text, sizeof(text),
			 "expected %" PRIu64 " records of cpu %" PRIu64 ", found %" PRIu64, taken,
			 cpu, here);
		wire_damage(r, chunk->offset, taken - here - seen->damaged, 0, text);
	}
	if (seen->dropped < dropped) {
		snprintf(text, sizeof(text),
			 "expected %" PRIu64 " dropped records of cpu %" PRIu64 ", found %" PRIu64,
			 dropped, cpu, seen->dropped);
		wire_damage(r, chunk->offset, dropped - seen->dropped, 0, text);
	}
}

static void take_end(struct reader *r, const struct wire_chunk *chunk, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct pb_field field;

	if (w->ended) /* it came twice */
		return;
	w->ended = true;
	while (pb_next(&message, &field) > 0) {
		if (field.number == WIRE_END_COUNT && field.wire == PB_BYTES)
			check_count(r, chunk, field.bytes);
	}
}

static void finish(struct reader *r)
{
	struct wire_reader *w = r->priv;
	const char *producer = w->info.producer ? w->info.producer : "";

	w->finished = true;
	wire_place_end(r);
	order_finish(&w->order);
	wire_merge_until(&w->traces, UINT64_MAX);
	if (w->ended || w->boot.over)
		return;
	reader_missing(r, "%s: the recording was cut off: %s; the data before the cut is intact",
		       r->in->path,
		       strstr(producer, "QEMU")
			       ? "QEMU was killed, or was still running when the file was copied"
			       : "the target was reset, the link broke, or the recording was still "
				 "running when the file was copied");
}

/* ---- chunks ---- */

/* A truncated trace is valid up to the cut; a truncated record is not. */
static void take_cut_trace(struct chunk_facts *facts, struct pb rest)
{
	uint64_t tag, len;

	if (pb_varint(&rest, &tag) && tag == WIRE_TAG(WIRE_CHUNK_TRACE, WIRE_BYTES) &&
	    pb_varint(&rest, &len))
		facts->trace = rest;
}

/* False: the rest of the chunk cannot be read. */
static bool read_facts(const struct wire_chunk *chunk, struct chunk_facts *facts)
{
	struct pb message = { chunk->data, chunk->data + chunk->len }, rest = message;
	struct pb_field field;
	int ret;

	*facts = (struct chunk_facts){ .trace_time = NO_TIME };
	while ((ret = pb_next(&message, &field)) > 0) {
		rest = message;
		switch (field.number) {
		case WIRE_CHUNK_CPU:
			facts->has_cpu = field.value < WIRE_CPUS_MAX;
			facts->cpu = field.value;
			break;
		case WIRE_CHUNK_SEQUENCE: facts->sequence = field.value; break;
		case WIRE_CHUNK_DROPPED: facts->dropped += field.value; break;
		case WIRE_CHUNK_INFO: facts->has_info = true; break;
		case WIRE_CHUNK_TRACE: facts->trace = field.bytes; break;
		case WIRE_CHUNK_TRACE_TIME: facts->trace_time = field.value; break;
		}
	}
	facts->unread = (uint64_t)(message.end - message.at);
	if (ret < 0 && chunk->cut)
		take_cut_trace(facts, rest);
	return ret == 0;
}

/* What the target said to a command. The text may contain anything. */
static void take_answer(struct wire_reader *w, struct pb text)
{
	size_t len = (size_t)(text.end - text.at);
	char *copy = xstrndup((const char *)text.at, len < ANSWER_MAX ? len : ANSWER_MAX);
	const char *plain = text_plain(&w->scratch, copy);

	if (strncmp(plain, "error: ", 7) != 0)
		log_note("target: %s", plain);
	else if (w->refusals++ < REFUSALS_SHOWN)
		log_warn("target: %s", plain);
	free(copy);
}

/* Takes whole lines of `text`, and keeps the rest. */
static void take_lines(struct wire_reader *w, struct buf *text)
{
	const char *line = text->data, *end = line + text->len, *next;

	while ((next = memchr(line, '\n', (size_t)(end - line)))) {
		if (next - line > 7 && !memcmp(line, "error: ", 7))
			take_answer(w, (struct pb){ (const uint8_t *)line, (const uint8_t *)next });
		line = next + 1;
	}
	text->len = (size_t)(end - line);
	memmove(text->data, line, text->len);
}

void wire_take_text(struct reader *r)
{
	struct buf text = { 0 };
	uint64_t all = 0;
	size_t have, size, head, len;

	do {
		const uint8_t *data = in_peek(r->in, 1, &have);

		if (wire_head(data, have, &head, &len)) /* a short chunk: do not wait for more */
			break;
		data = in_peek(r->in, WIRE_HEAD_MAX, &have);
		size = wire_text(data, have);
		buf_add(&text, (const char *)data, size);
		take_lines(r->priv, &text);
		if (text.len > ANSWER_MAX)
			text.len = ANSWER_MAX;
		all += in_skip(r->in, size);
	} while (size);
	if (all)
		log_note("%s: %" PRIu64 " bytes of text precede the recording", r->in->path, all);
	buf_release(&text);
}

static void take_records(struct reader *r, const struct wire_chunk *chunk,
			 const struct chunk_facts *facts)
{
	struct wire_reader *w = r->priv;
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field;

	while (pb_next(&message, &field) > 0) {
		switch (field.number) {
		case WIRE_CHUNK_SAMPLE:
		case WIRE_CHUNK_ALLOC:
		case WIRE_CHUNK_CODE: take_record(r, chunk, facts, &field); break;
		case WIRE_CHUNK_EVENT:
		case WIRE_CHUNK_TASK:
		case WIRE_CHUNK_MAP:
		case WIRE_CHUNK_COUNTER:
			if (w->described.on)
				take_record(r, chunk, facts, &field);
			break;
		case WIRE_CHUNK_ROUND:
			w->round = field.value;
			order_until(&w->order, wire_boot_note(&w->boot, field.value));
			wire_merge_until(&w->traces, field.value);
			break;
		case WIRE_CHUNK_END: take_end(r, chunk, field.bytes); break;
		case WIRE_CHUNK_ANSWER:
			if (w->described.on)
				take_answer(w, field.bytes);
			break;
		}
	}
}

/* Takes the number of a chunk of a cpu, or of the others, and reports what is wrong with it. */
static enum wire_turn take_turn(struct reader *r, const struct wire_chunk *chunk,
				const struct chunk_facts *facts, struct wire_turns *turns)
{
	uint32_t expected = turns->now.next;
	enum wire_turn turn = wire_turn_take(turns, (uint32_t)facts->sequence);
	char of[40] = "without a cpu", text[100];

	if (facts->has_cpu)
		snprintf(of, sizeof(of), "of cpu %" PRIu64, facts->cpu);
	if (turn == WIRE_TURN_TWICE)
		snprintf(text, sizeof(text), "duplicate chunk %" PRIu64 " %s; ignored",
			 facts->sequence, of);
	else
		snprintf(text, sizeof(text), "expected chunk %" PRIu32 " %s, found %" PRIu64,
			 expected, of, facts->sequence);
	if (turn == WIRE_TURN_TWICE || turn == WIRE_TURN_GAP)
		wire_damage(r, chunk->offset, 0, 0, text);
	return turn;
}

/* False: the chunk came twice. */
static bool check_sequence(struct reader *r, const struct wire_chunk *chunk,
			   const struct chunk_facts *facts)
{
	struct wire_reader *w = r->priv;
	struct wire_cpu *count;
	enum wire_turn turn;

	if (!facts->has_cpu) { /* their numbers matter only if they describe something */
		bool numbered = facts->sequence || !w->others.now.next;

		return !w->described.on || !numbered ||
		       take_turn(r, chunk, facts, &w->others) != WIRE_TURN_TWICE;
	}
	count = wire_cpu(w, (uint32_t)facts->cpu);
	turn = take_turn(r, chunk, facts, &count->turn);
	count->hole |= turn == WIRE_TURN_GAP || turn == WIRE_TURN_LATE;
	return turn != WIRE_TURN_TWICE;
}

/* A chunk that was not read before. */
static void take_new(struct reader *r, const struct wire_chunk *chunk, struct chunk_facts *facts,
		     bool whole)
{
	struct wire_reader *w = r->priv;

	wire_place_chunk(r, chunk);
	take_records(r, chunk, facts);
	if (facts->has_cpu && facts->trace.at != facts->trace.end)
		take_trace(w, chunk, facts);
	if (facts->dropped)
		add_dropped(w, facts);
	if (whole)
		return;
	if (facts->has_cpu) /* the rest may have been a trace */
		wire_cpu(w, (uint32_t)facts->cpu)->hole = true;
	wire_damage(r, chunk->offset, 0, facts->unread,
		    chunk->cut ? "the recording ends inside a chunk"
			       : "cannot read the rest of this chunk");
}

/* Forgets all counts: those of the new boot start at 0. */
static void start_over(struct reader *r, const struct wire_chunk *chunk)
{
	struct wire_reader *w = r->priv;

	for (size_t i = 0; i < w->nr_cpus; i++) {
		struct wire_cpu *cpu = &w->cpus[i];

		cpu->turn = (struct wire_turns){ 0 };
		cpu->samples = cpu->allocs = cpu->damaged = cpu->dropped = 0;
	}
	w->others = (struct wire_turns){ 0 };
	w->boots++;
	w->ended = false;
	wire_spaces_forget(&w->spaces);
	wire_described_forget(&w->described);
	if (w->boot.over)
		wire_damage(
			r, chunk->offset, 0, 0,
			"the target restarted here; a trace ends at a restart, and kscope ignores "
			"the rest");
	else if (w->slide)
		wire_damage(r, chunk->offset, 0, 0,
			    "the target restarted here; if its kernel moved to another address, "
			    "its names are wrong from here on");
	else
		wire_damage(r, chunk->offset, 0, 0, "the target restarted here");
}

/* What is wrong with the chunk; NULL: nothing, or only a part of it. */
static const char *wrong_with(struct wire_reader *w, const struct wire_chunk *chunk)
{
	w->checked |= chunk->check == WIRE_CHECK_GOOD || (chunk->check && !w->plain);
	if (chunk->check == WIRE_CHECK_WRONG)
		return "the checksum of this chunk is wrong";
	if (chunk->check == WIRE_CHECK_GOOD)
		return NULL;
	if (w->checked)
		return chunk->cut ? "the length of this chunk is wrong"
				  : "the checksum of this chunk is missing";
	w->plain = true;
	return wire_is_broken(chunk) ? "another chunk begins inside this one" : NULL;
}

/* The input cannot be read from here. The next chunk may begin at any byte: a wrong length says nothing. */
static void lose_chunk(struct reader *r, const char *why, bool cut)
{
	struct wire_reader *w = r->priv;

	w->lost_why = why;
	w->lost_end = cut;
	w->lost_at = in_offset(r->in);
	in_skip(r->in, 1);
}

static bool find_chunk(struct reader *r)
{
	struct wire_reader *w = r->priv;
	size_t have;

	if (!wire_resync(r->in))
		return false;
	in_peek(r->in, 0, &have);
	wire_damage(r, w->lost_at, 0, in_offset(r->in) - w->lost_at,
		    w->lost_end && !have ? "the recording ends inside a chunk" : w->lost_why);
	w->lost_why = NULL;
	return true;
}

/* After the end of a trace. False: needs more input. */
static bool ignore_rest(struct reader *r)
{
	size_t have;

	if (!in_ready(r->in, 1))
		return false;
	in_peek(r->in, 1, &have);
	if (!have)
		finish(r);
	in_skip(r->in, have);
	return true;
}

bool wire_take(struct reader *r)
{
	struct wire_reader *w = r->priv;
	struct chunk_facts facts;
	struct wire_chunk chunk;
	const char *why;
	bool whole;
	int ret;

	if (w->lost_why)
		return find_chunk(r);
	if (w->boot.over)
		return ignore_rest(r);
	if (w->ended && w->described.on && !wire_skip_text(r->in)) /* answers */
		return false;
	if (!wire_ready(r->in))
		return false;
	ret = wire_peek(r->in, &chunk);
	if (!ret) {
		finish(r);
		return true;
	}
	why = ret < 0 ? "expected a chunk of a recording" : wrong_with(w, &chunk);
	if (why) {
		lose_chunk(r, why, ret > 0 && chunk.cut);
		return true;
	}
	whole = read_facts(&chunk, &facts);
	if ((facts.has_info && wire_boot_info(w, &chunk)) ||
	    (facts.has_cpu && wire_boot_sequence(w, (uint32_t)facts.cpu, facts.sequence))) {
		if (order_waits(
			    &w->order)) { /* first the records of the last boot, then this chunk */
			order_finish(&w->order);
			return true;
		}
		wire_boot_next(w, &chunk);
		start_over(r, &chunk);
	}
	if (!w->boot.over && check_sequence(r, &chunk, &facts))
		take_new(r, &chunk, &facts, whole);
	in_skip(r->in, chunk.head + chunk.len);
	return true;
}
