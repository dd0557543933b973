// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>

#include "base/mem.h"
#include "write/firefox.h"

enum phase { PHASE_MOMENT, PHASE_INTERVAL };

struct field {
	const char *key, *label, *format;
};

static const struct schema {
	const char *name, *chart, *table;
	const struct field *fields; /* besides those of timeline_arg_info() */
	bool args;		    /* it has these, too */
} schemas[MARKER_TYPES] = {
	[MARKER_CALL] = { .name = "Call",
			  .chart = "{marker.name}",
			  .table = "{marker.data.kind}",
			  .fields = (const struct field[]){ { "kind", "Kind", "string" }, { 0 } },
			  .args = true },
	[MARKER_NOTE] = { .name = "Note",
			  .chart = "{marker.name}",
			  .table = "{marker.name}",
			  .fields = (const struct field[]){ { 0 } },
			  .args = true },
	[MARKER_LOST] = { .name = "Lost",
			  .chart = "{marker.data.samples} lost",
			  .table = "{marker.data.samples} lost: {marker.data.reason}",
			  .fields = (const struct field[]){ { "samples", "Number", "integer" },
							    { "bytes", "Bytes", "bytes" },
							    { "cpu", "CPU", "integer" },
							    { "reason", "Reason", "string" },
							    { 0 } } },
	[MARKER_CPU] = { .name = "CPU",
			 .chart = "CPU {marker.data.cpu}",
			 .table = "{marker.data.samples} samples",
			 .fields = (const struct field[]){ { "cpu", "CPU", "integer" },
							   { "samples", "Samples", "integer" },
							   { 0 } } },
};

static void put_field(struct json_out *json, const char *key, const char *label, const char *format)
{
	json_out_object(json, NULL);
	json_out_text(json, "key", key);
	json_out_text(json, "label", label);
	json_out_text(json, "format", format);
	json_out_end(json);
}

static void put_arg_fields(struct json_out *json)
{
	for (unsigned i = 0; i < TIMELINE_ARGS; i++) {
		struct timeline_arg_info info = timeline_arg_info(i);

		put_field(json, info.name, info.name,
			  info.type == TIMELINE_NUMBER ? "integer" : "string");
	}
}

void firefox_put_schemas(struct json_out *json)
{
	json_out_array(json, "markerSchema");
	for (unsigned i = 0; i < MARKER_TYPES; i++) {
		json_out_object(json, NULL);
		json_out_text(json, "name", schemas[i].name);
		json_out_text(json, "chartLabel", schemas[i].chart);
		json_out_text(json, "tooltipLabel", schemas[i].chart);
		json_out_text(json, "tableLabel", schemas[i].table);
		json_out_array(json, "display");
		json_out_text(json, NULL, "marker-chart");
		json_out_text(json, NULL, "marker-table");
		if (i == MARKER_LOST)
			json_out_text(json, NULL, "timeline-overview");
		json_out_end(json);
		json_out_array(json, "fields");
		for (const struct field *field = schemas[i].fields; field->key; field++)
			put_field(json, field->key, field->label, field->format);
		if (schemas[i].args)
			put_arg_fields(json);
		json_out_end(json);
		if (i == MARKER_CALL)
			json_out_bool(json, "isStackBased", true);
		json_out_end(json);
	}
	json_out_end(json);
}

/* The event that a marker was made of, or would have been. */
static struct event event_of(const struct firefox_marker *m, struct event_note *note)
{
	*note = (struct event_note){ .kind = m->kind, .value = m->value, .address = m->address };
	return (struct event){
		.kind = EVENT_SLICE,
		.time = m->end,
		.cpu = m->cpu,
		.pid = m->pid,
		.tid = m->tid,
		.slice = { .frame = m->frame,
			   .kind = m->type == MARKER_NOTE ? SLICE_NOTE : m->kind,
			   .leave = m->type == MARKER_CALL,
			   .cut = m->goes_on,
			   .knows = m->knows,
			   .since = m->begin,
			   .began = m->begin,
			   .ended = m->end,
			   .samples = m->samples,
			   .instructions = m->instructions,
			   .own = m->own,
			   .cycles = m->cycles,
			   .own_cycles = m->own_cycles,
			   .lines = m->lines,
			   .own_lines = m->own_lines,
			   .note = m->type == MARKER_NOTE ? note : NULL },
	};
}

static void put_args(struct firefox_tables *t, struct json_out *json,
		     const struct firefox_marker *m)
{
	struct buf scratch = { 0 };
	struct timeline_args args;
	struct event_note note;
	struct event ev = event_of(m, &note);

	timeline_args(&args, &scratch, t->world, &ev);
	for (size_t i = 0; i < args.nr; i++) {
		const struct timeline_arg *arg = &args.all[i];
		const char *key = timeline_arg_info(arg->id).name;

		if (timeline_arg_info(arg->id).type == TIMELINE_TEXT) {
			char *text = xstrndup(arg->text, arg->len);

			json_out_text(json, key, text);
			free(text);
		} else if (timeline_arg_info(arg->id).type == TIMELINE_TRUE) {
			json_out_text(json, key, "yes");
		} else {
			json_out_u64(json, key, arg->number);
		}
	}
	if (m->began_before)
		json_out_text(json, timeline_arg_info(TIMELINE_BEGAN_BEFORE).name, "yes");
	buf_release(&scratch);
}

static void put_cpu(struct json_out *json, uint32_t cpu)
{
	if (cpu != NO_CPU)
		json_out_u64(json, "cpu", cpu);
}

static void put_data(struct firefox_tables *t, struct json_out *json,
		     const struct firefox_marker *m)
{
	json_out_object(json, NULL);
	json_out_text(json, "type", schemas[m->type].name);
	switch (m->type) {
	case MARKER_CALL: json_out_text(json, "kind", timeline_kind_names[m->kind]); break;
	case MARKER_LOST:
		json_out_u64(json, "samples", m->samples);
		json_out_u64(json, "bytes", m->value);
		put_cpu(json, m->cpu);
		json_out_text(json, "reason",
			      m->damage ? "the input is damaged" : "while recording");
		break;
	case MARKER_CPU:
		put_cpu(json, m->cpu);
		json_out_u64(json, "samples", m->samples);
		break;
	}
	if (schemas[m->type].args)
		put_args(t, json, m);
	json_out_end(json);
}

static uint32_t name_of(struct firefox_tables *t, const struct firefox_marker *m)
{
	struct event_note note;
	struct event ev = event_of(m, &note);
	char name[TIMELINE_CPU_NAME];

	if (m->type == MARKER_LOST)
		return str_intern_z(t->world->strings, "lost");
	if (m->type == MARKER_CPU) {
		timeline_cpu_name(name, m->cpu, false);
		return str_intern_z(t->world->strings, name);
	}
	return timeline_name(t->world, &ev);
}

static enum firefox_category category_of(struct firefox_tables *t, const struct firefox_marker *m)
{
	if (m->type == MARKER_LOST || (m->type == MARKER_CALL && m->kind == SLICE_GAP))
		return CATEGORY_LOST;
	if (m->type == MARKER_CPU || (m->type == MARKER_CALL && m->kind == SLICE_RUN))
		return CATEGORY_CPU;
	if (m->type == MARKER_CALL && (m->kind == SLICE_TRAP || m->kind == SLICE_MASKED))
		return CATEGORY_INTERRUPT;
	return m->frame ? firefox_category_of(t->world, m->frame) : CATEGORY_OTHER;
}

static void put_time(struct json_out *json, uint64_t time, uint64_t start)
{
	json_out_decimal(json, NULL, time == NO_TIME ? 0 : time - start, FIREFOX_MS);
}

static void count(struct written *written, const struct firefox_marker *m)
{
	written->begins += m->type == MARKER_CALL;
	written->ends += m->type == MARKER_CALL;
}

#define COLUMN(key, value)                                     \
	do {                                                   \
		json_out_array(json, key);                     \
		rows_begin(&reader, rows, group);              \
		for (nr = 0; (m = rows_next(&reader)); nr++) { \
			value;                                 \
			firefox_flush(out, FIREFOX_FULL);      \
		}                                              \
		rows_end(&reader);                             \
		json_out_end(json);                            \
	} while (0)

void firefox_put_markers(struct firefox_tables *t, struct firefox_out *out, struct rows *rows,
			 uint32_t group, uint64_t start, struct written *written)
{
	struct json_out *json = &out->json;
	const struct firefox_marker *m;
	struct rows_reader reader;
	size_t nr;

	json_out_object(json, "markers");
	COLUMN("data", (put_data(t, json, m), count(written, m)));
	COLUMN("name", json_out_u64(json, NULL, firefox_string(t, name_of(t, m))));
	COLUMN("startTime", put_time(json, m->begin, start));
	COLUMN("endTime", put_time(json, m->end, start));
	COLUMN("phase",
	       json_out_u64(json, NULL,
			    m->type == MARKER_LOST || m->type == MARKER_NOTE ? PHASE_MOMENT
									     : PHASE_INTERVAL));
	COLUMN("category", json_out_u64(json, NULL, category_of(t, m)));
	json_out_u64(json, "length", nr);
	json_out_end(json);
}
