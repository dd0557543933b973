// SPDX-License-Identifier: MIT
/*
 * format_sel4: what the profiler of seL4 sends over TCP, and what its board says, for that profiler's own tools: netconn
 * records, toperf converts.
 *
 * A frame is two decimal digits and a protobuf message of that length. Two digits cannot hold 100, and a message of 100
 * bytes or more would end the framing for good. So it is shortened to 99, by the outermost callers: of addresses in the
 * upper half, which take ten bytes, about five callers are left.
 *
 * The format does not have: which event a sample belongs to, whether it was taken in the kernel, names of tasks,
 * allocations, drops (`status` counts them), the end of the stream.
 */
#include "kscope.h"
#include "text.h"
#include "wire_small.h"

enum { FIELD_IP = 1, FIELD_PID, FIELD_TIME, FIELD_CPU, FIELD_PERIOD, FIELD_NR, FIELD_IPS };

#define DIGITS 2
#define MESSAGE_MAX 99
/* Always: toperf refuses samples with more or less. NR says how many of them mean something. */
#define ADDRESSES 16
#define NR_SIZE 2 /* bytes of the field, and of the head of IPS */
#define IPS_HEAD 2
/* Frames in a message: with these, it fits a segment of TCP. netconn loses samples that arrive in two pieces. */
#define BATCH 14

static size_t varint_size(uint64_t value)
{
	size_t size = 1;

	while (value >>= 7)
		size++;
	return size;
}

/* How many callers fit, and the bytes of all addresses then. */
static unsigned fit(const struct kscope_record *record, size_t room, size_t *size)
{
	unsigned nr = 0;

	*size = ADDRESSES; /* an address that is not there is a 0 */
	while (nr < ADDRESSES && nr + 1 < record->nr) {
		size_t more = varint_size(record->frames[nr + 1]) - 1;

		if (*size + more > room)
			break;
		*size += more;
		nr++;
	}
	return nr;
}

static void put_record(struct kscope *k, struct wire *w, unsigned cpu,
		       const struct kscope_record *record)
{
	uint64_t values[] = {
		[FIELD_IP] = record->frames[0], [FIELD_PID] = kscope_process(k, record->task),
		[FIELD_TIME] = record->time,	[FIELD_CPU] = cpu,
		[FIELD_PERIOD] = record->value,
	};
	uint8_t *digits = w->at;
	size_t size;
	unsigned nr;

	wire_little(w, 0, DIGITS);
	for (unsigned field = FIELD_IP; field <= FIELD_PERIOD; field++)
		wire_uint(w, field, values[field]);
	if (w->full)
		return;
	size = (size_t)(w->at - digits) - DIGITS + NR_SIZE + IPS_HEAD;
	nr = fit(record, MESSAGE_MAX - size, &size);
	wire_uint(w, FIELD_NR, nr);
	wire_bytes_head(w, FIELD_IPS, size);
	for (unsigned i = 1; i <= ADDRESSES; i++)
		wire_varint(w, i <= nr ? record->frames[i] : 0);
	if (w->full)
		return;
	size = (size_t)(w->at - digits) - DIGITS;
	digits[0] = (uint8_t)('0' + size / 10);
	digits[1] = (uint8_t)('0' + size % 10);
}

/* An answer in the stream looks like a long frame, and is sent again as a whole. */
static size_t frame_size(const uint8_t *at)
{
	return DIGITS + (size_t)(at[0] - '0') * 10 + (size_t)(at[1] - '0');
}

/* ---- MAPPINGS: one binary for each pid ---- */

/* The number of the first map of a process; false: it has none. */
static bool find_map(const struct kscope_port *port, uint32_t process, struct kscope_map *map,
		     size_t *i)
{
	for (*i = 0; port->map && port->map(port->data, *i, map); ++*i) {
		if (map->process == process)
			return true;
	}
	return false;
}

/* The name of the file: toperf looks for it in the build folder. What would end the name becomes '_'. */
static void add_name(struct text *text, const char *path)
{
	const char *name = path;

	for (; *path; path++) {
		if (*path == '/')
			name = path + 1;
	}
	for (; *name; name++) {
		char c[2] = { *name > ' ' && *name < 0x7f && *name != ':' ? *name : '_', '\0' };

		kscope_text_add(text, c);
	}
}

/* A line that does not fit is left out whole. The last one has no end: netconn fails if there is one. */
static void add_mapping(struct text *text, bool first, const char *path, uint32_t pid)
{
	struct text before = *text;

	if (!first)
		kscope_text_add(text, "\n");
	add_name(text, path);
	kscope_text_add(text, ": ");
	kscope_text_number(text, pid);
	if (text->room > 1)
		return;
	*text = before;
	*text->at = '\0';
}

static void add_mappings(const struct kscope_port *port, struct text *text)
{
	const char *start = text->at;
	struct kscope_map map, kernel, other;
	struct kscope_task task;
	size_t first;

	for (size_t i = 0; port->map && port->map(port->data, i, &map); i++) {
		if (find_map(port, map.process, &other, &first) && first == i)
			add_mapping(text, text->at == start, map.path, map.process);
	}
	/* Tasks that have no memory of their own run in the kernel's binary. */
	if (!port->task || !find_map(port, 0, &kernel, &first))
		return;
	for (size_t i = 0; port->task(port->data, i, &task); i++) {
		if ((!task.process || task.process == task.id) &&
		    !find_map(port, task.id, &other, &first))
			add_mapping(text, text->at == start, kernel.path, task.id);
	}
}

/* ---- the conversation ---- */

#define ERROR "400 ERROR"

static void say_start(struct kscope *k, struct text *text)
{
	const char *why;

	if (kscope_start(k, &why))
		return;
	kscope_text_add(text, ERROR " (");
	kscope_text_add(text, why);
	kscope_text_add(text, ")\n");
}

static void say_mappings(struct kscope *k, struct text *text)
{
	const char *start = text->at;

	add_mappings(k->port, text);
	if (text->at == start) /* as the later profiler says, which does not know the command */
		kscope_text_add(text, ERROR "\n");
}

/* The original's commands are upper case. What begins with a lower-case letter is a command of ours. */
static bool obey(struct kscope *k, const char *line, char *answer, size_t size)
{
	struct text text = text_into(answer, size);

	if (!*line || (*line >= 'a' && *line <= 'z'))
		return false;
	if (kscope_text_same(line, "HELLO"))
		kscope_text_add(&text, "200 OK (Ready to go)\n");
	else if (kscope_text_same(line, "START"))
		say_start(k, &text);
	else if (kscope_text_same(line, "STOP"))
		kscope_stop(k);
	else if (kscope_text_same(line, "REFRESH"))
		kscope_flush(k);
	else if (kscope_text_same(line, "MAPPINGS"))
		say_mappings(k, &text);
	else
		kscope_text_add(&text, ERROR "\n");
	return true;
}

/* In a stream, tools know only this one. */
static void put_answer(struct wire *w, const char *text)
{
	if (*text == 'e') /* "error: ..." */
		wire_raw(w, ERROR "\n", sizeof(ERROR));
}

const struct kscope_format kscope_format_sel4 = {
	.name = "sel4",
	.batch = BATCH,
	.size = frame_size,
	.greeting = "100 SEL4 PROFILING CLIENT\n",
	.record = put_record,
	.answer = put_answer,
	.command = obey,
};
