// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wire_describe: what samples of version 5 refer to. Descriptions are repeated, because a link may lose them: the
 * tables here have what is known, so that only news becomes events. The descriptions of a file are noted before its
 * first sample; in a stream, a description may come after samples that refer to it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "model/frame.h"
#include "model/strtab.h"
#include "read/bare.h"
#include "read/wire_parts.h"

#define TEXT_MAX 4096 /* bytes of a name or a path; the rest is ignored */

static uint32_t intern(const struct reader *r, struct pb text)
{
	size_t len = (size_t)(text.end - text.at);

	len = strnlen((const char *)text.at, len < TEXT_MAX ? len : TEXT_MAX);
	return len ? str_intern(r->frames->strings, (const char *)text.at, len) : 0;
}

static const char *text_of(const struct reader *r, uint32_t handle)
{
	return handle ? str_text(r->frames->strings, handle) : NULL;
}

bool wire_describes(uint32_t kind)
{
	return kind == WIRE_CHUNK_EVENT || kind == WIRE_CHUNK_TASK || kind == WIRE_CHUNK_MAP;
}

bool wire_description_time(uint32_t kind, struct pb message, uint64_t *time)
{
	struct event_message event;
	struct task_message task;
	struct map_message map;

	switch (kind) {
	case WIRE_CHUNK_EVENT: *time = 0; return wire_get_event(message, &event);
	case WIRE_CHUNK_TASK:
		if (!wire_get_task(message, &task))
			return false;
		*time = task.time;
		return true;
	case WIRE_CHUNK_MAP:
		if (!wire_get_map(message, &map))
			return false;
		*time = map.time;
		return true;
	}
	return false;
}

static uint64_t event_time(const struct wire_reader *w, uint64_t time)
{
	return time ? wire_boot_time(&w->boot, time) : NO_TIME;
}

/* ---- events ---- */

static struct known_event *known_event(struct wire_described *d, size_t id)
{
	if (id >= d->nr_events) {
		GROW(d->events, id + 1, d->cap_events);
		memset(d->events + d->nr_events, 0, (id + 1 - d->nr_events) * sizeof(*d->events));
		d->nr_events = id + 1;
	}
	return &d->events[id];
}

static struct known_event take_event(const struct reader *r, const struct event_message *message)
{
	return (struct known_event){
		.described = true,
		.name = intern(r, message->name),
		.unit = intern(r, message->unit),
		.type = (uint32_t)message->type,
		.config = message->config,
		.period = message->period,
		.frequency = message->frequency,
	};
}

bool wire_event_came(struct wire_reader *w, struct pb message)
{
	struct event_message decoded;
	struct known_event *event;
	bool came;

	wire_get_event(message, &decoded);
	event = known_event(&w->described, decoded.id);
	came = event->came;
	event->came = true;
	return came;
}

static bool same_event(const struct known_event *a, const struct known_event *b)
{
	return a->described == b->described && a->name == b->name && a->unit == b->unit &&
	       a->type == b->type && a->config == b->config && a->period == b->period &&
	       a->frequency == b->frequency;
}

/* --event-name names the first event; the others have names of their own. */
static bool takes_name(struct wire_reader *w, uint32_t id)
{
	struct wire_described *d = &w->described;

	if (!w->event_name)
		return false;
	if (!d->named)
		d->named = id + 1;
	if (d->named != id + 1 && !d->renamed) {
		log_warn("--event-name: the recording has several events; only the first one that "
			 "was "
			 "described gets this name");
		d->renamed = true;
	}
	return d->named == id + 1;
}

/* An event that was not described has the name of the clock, if it is the first one, or a number. */
static void fill_unknown(const struct reader *r, uint32_t id, struct event_source *source)
{
	struct strtab *strings = r->frames->strings;
	char name[24];

	wire_clock_source(r, source);
	if (!id)
		return;
	snprintf(name, sizeof(name), "event-%" PRIu32, id);
	*source = (struct event_source){
		.name = str_text(strings, str_intern_z(strings, name)),
		.type = SOURCE_SOFTWARE,
	};
}

static void fill_source(struct reader *r, uint32_t id, struct event *ev)
{
	struct wire_reader *w = r->priv;
	struct known_event *event = &w->described.events[id];

	ev->kind = EVENT_SOURCE;
	ev->pid = ev->tid = NO_TASK;
	if (event->described)
		ev->source = (struct event_source){
			.name = text_of(r, event->name),
			.type = event->type,
			.config = event->config,
			.period = event->frequency ? event->frequency : event->period,
			.freq = event->frequency != 0,
			.unit = text_of(r, event->unit),
		};
	else
		fill_unknown(r, id, &ev->source);
	ev->source.id = id + 1;
	if (takes_name(w, id))
		ev->source.name = w->event_name;
	event->told = true;
}

static void describe_event(struct reader *r, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct event_message decoded;
	struct known_event *event, now;
	struct event *ev;
	bool late;

	wire_get_event(message, &decoded);
	now = take_event(r, &decoded);
	event = known_event(&w->described, decoded.id);
	if (event->told && same_event(event, &now))
		return;
	late = event->told && !event->described;
	ev = wire_add(&w->before, EVENT_SOURCE);
	if (!ev)
		return;
	now.came = true;
	*event = now;
	fill_source(r, (uint32_t)decoded.id, ev);
	ev->source.late = late;
}

uint32_t wire_described_source(struct reader *r, uint64_t id)
{
	struct wire_reader *w = r->priv;
	const struct known_event *event = known_event(&w->described, id);
	struct event *ev = event->told ? NULL : wire_add(&w->before, EVENT_SOURCE);

	if (ev)
		fill_source(r, (uint32_t)id, ev);
	return (uint32_t)id + 1;
}

/* ---- binaries ---- */

/* The binary that the user named for a path of the target: one with the same last part. */
static const char *given_for(const struct reader *r, uint32_t process, const char *path)
{
	const struct options *options = r->options;
	const char *name = text_last_part(path);

	for (size_t i = 0; i < options->nr_elfs; i++) {
		const struct elf_option *elf = &options->elfs[i];

		if ((elf->pid == NO_TASK || elf->pid == process) &&
		    !strcmp(text_last_part(elf->path), name))
			return elf->path;
	}
	return NULL;
}

static void set_path(const struct reader *r, const struct known_map *map, struct event_map *to)
{
	const char *path = text_of(r, map->path), *given = given_for(r, map->process, path);

	to->path = given ? given : path;
	to->given = given;
	to->build_id = map->build_id_len ? map->build_id : NULL;
	to->build_id_len = map->build_id_len;
	to->prot = PROT_READ | PROT_EXEC;
}

/* The kernel itself, which --kernel may name. */
static bool fill_main(struct reader *r, const struct known_map *map, struct event *ev)
{
	struct wire_reader *w = r->priv;
	const char *kernel = wire_kernel(r);
	bool told = w->described.kernel_told;

	w->described.kernel_told = true;
	if (!map->size) { /* with --kernel, it is in the preamble */
		if (kernel && told)
			return false;
		wire_kernel_map(r, ev);
		ev->map.foreign = false;
		set_path(r, map, &ev->map);
		return true;
	}
	set_path(r, map, &ev->map);
	if (kernel) {
		ev->map.path = kernel;
		ev->map.given = true;
	}
	return true;
}

/* False: the map is not news. */
static bool fill_map(struct reader *r, const struct known_map *map, struct event *ev)
{
	const struct wire_reader *w = r->priv;

	ev->kind = EVENT_MAP;
	ev->time = event_time(w, map->time);
	ev->pid = ev->tid = map->process;
	ev->map = (struct event_map){
		.addr = map->address,
		.len = map->size,
		.offset = map->offset,
		.kernel = !map->process,
		.whole = !map->size,
	};
	if (!map->process)
		ev->pid = ev->tid = NO_TASK;
	if (map->main)
		return fill_main(r, map, ev);
	set_path(r, map, &ev->map);
	return true;
}

static struct known_map take_map(const struct reader *r, const struct map_message *message)
{
	size_t len = (size_t)(message->build_id.end - message->build_id.at);
	struct known_map map = {
		.process = (uint32_t)message->process,
		.path = intern(r, message->path),
		.time = message->time,
		.address = message->size ? message->address : 0,
		.size = message->size,
		.offset = message->size ? message->offset : 0,
	};

	map.build_id_len = (uint8_t)(len < sizeof(map.build_id) ? len : sizeof(map.build_id));
	memcpy(map.build_id, message->build_id.at, map.build_id_len);
	return map;
}

static bool same_map(const struct known_map *a, const struct known_map *b)
{
	return a->path == b->path && a->size == b->size && a->offset == b->offset &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/* The slot of what is mapped at the same place. Several whole binaries may be in one process. */
static uint32_t *map_slot(struct wire_described *d, const struct known_map *map)
{
	uint64_t whole = map->size ? 0 : map->path;

	return hash_at(&d->map_by_place,
		       (struct hash_key){ (uint64_t)map->process << 32 | whole, map->address });
}

static uint32_t known_map(const struct wire_described *d, const struct known_map *map)
{
	uint64_t whole = map->size ? 0 : map->path;

	return hash_get(&d->map_by_place,
			(struct hash_key){ (uint64_t)map->process << 32 | whole, map->address });
}

/* NULL: there are too many. */
static struct known_map *add_map(struct wire_described *d, const struct known_map *map)
{
	if (d->nr_maps >= WIRE_MAPS_MAX)
		return NULL;
	GROW(d->maps, d->nr_maps + 1, d->cap_maps);
	d->maps[d->nr_maps] = *map;
	d->maps[d->nr_maps].main = !map->process && !d->has_kernel;
	d->has_kernel |= !map->process;
	*hash_at(&d->has_map, (struct hash_key){ map->process, 0 }) = 1;
	*map_slot(d, map) = (uint32_t)++d->nr_maps;
	return &d->maps[d->nr_maps - 1];
}

static void too_many(struct reader *r, uint64_t offset, bool *reported, const char *text)
{
	if (!*reported)
		wire_damage(r, offset, 0, 0, text);
	*reported = true;
}

static void describe_map(struct reader *r, uint64_t offset, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct wire_described *d = &w->described;
	struct map_message decoded;
	struct known_map now, *map;
	struct event ev = { .cpu = NO_CPU }, *to;
	uint32_t known;

	wire_get_map(message, &decoded);
	now = take_map(r, &decoded);
	if (!now.path)
		return;
	known = known_map(d, &now);
	map = known ? &d->maps[known - 1] : add_map(d, &now);
	if (!map) {
		too_many(r, offset, &d->too_many_maps, "too many maps; kscope ignores the others");
		return;
	}
	if (known && (same_map(map, &now) || now.time < map->time)) {
		map->time = now.time > map->time ? now.time : map->time;
		return;
	}
	now.main = map->main;
	*map = now;
	if (!fill_map(r, map, &ev))
		return;
	to = wire_add(&w->before, EVENT_MAP);
	if (to)
		*to = ev;
}

void wire_described_kernel(struct reader *r)
{
	struct wire_reader *w = r->priv;
	struct event *ev;

	if (w->described.kernel_told || w->info.user_mode)
		return;
	w->described.kernel_told = true;
	ev = wire_add(&w->before, EVENT_MAP);
	if (!ev)
		return;
	ev->pid = ev->tid = NO_TASK;
	wire_kernel_map(r, ev);
}

/* ---- tasks ---- */

static struct known_task *find_task(const struct wire_described *d, uint32_t id)
{
	uint32_t known = hash_get(&d->task_by_id, (struct hash_key){ id, 0 });

	return known ? &d->tasks[known - 1] : NULL;
}

static uint32_t process_of(const struct known_task *task)
{
	return task->process ? task->process : task->id;
}

static void fill_comm(const struct reader *r, const struct known_task *task, struct event *ev)
{
	ev->kind = EVENT_COMM;
	ev->time = event_time(r->priv, task->time);
	ev->pid = process_of(task);
	ev->tid = task->id;
	ev->comm.comm = text_of(r, task->name);
}

static struct known_task take_task(const struct reader *r, const struct task_message *message)
{
	return (struct known_task){
		.id = (uint32_t)message->id,
		.process = (uint32_t)message->process,
		.name = intern(r, message->name),
		.time = message->time,
	};
}

/* NULL: there are too many. */
static struct known_task *add_task(struct wire_described *d, const struct known_task *task)
{
	if (d->nr_tasks >= WIRE_TASKS_MAX)
		return NULL;
	GROW(d->tasks, d->nr_tasks + 1, d->cap_tasks);
	d->tasks[d->nr_tasks] = *task;
	*hash_at(&d->task_by_id, (struct hash_key){ task->id, 0 }) = (uint32_t)++d->nr_tasks;
	return &d->tasks[d->nr_tasks - 1];
}

static bool same_task(const struct known_task *a, const struct known_task *b)
{
	return process_of(a) == process_of(b) && a->name == b->name;
}

/* Without any map, a binary that the user named may have the name of the task. */
static bool is_program(const char *path, const char *task)
{
	const char *name = text_last_part(path);
	size_t len = strlen(task);

	return !strncmp(name, task, len) && (!name[len] || !strcmp(name + len, ".elf"));
}

static bool fill_program(const struct reader *r, const struct known_task *task, struct event *ev)
{
	struct wire_described *d = &((struct wire_reader *)r->priv)->described;
	uint32_t pid = process_of(task);

	for (size_t i = 0; task->name && i < r->options->nr_elfs; i++) {
		const struct elf_option *elf = &r->options->elfs[i];

		if (elf->pid != NO_TASK || !is_program(elf->path, text_of(r, task->name)) ||
		    hash_get(&d->has_map, (struct hash_key){ pid, 0 }))
			continue;
		*hash_at(&d->has_map, (struct hash_key){ pid, 0 }) = 1;
		ev->kind = EVENT_MAP;
		ev->pid = ev->tid = pid;
		ev->map = (struct event_map){ .path = elf->path, .whole = true, .given = true };
		return true;
	}
	return false;
}

static void add_program(struct reader *r, const struct known_task *task)
{
	struct wire_reader *w = r->priv;
	struct event ev = { .time = NO_TIME, .cpu = NO_CPU }, *to;

	if (!fill_program(r, task, &ev))
		return;
	to = wire_add(&w->before, EVENT_MAP);
	if (to)
		*to = ev;
}

static void describe_task(struct reader *r, uint64_t offset, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct wire_described *d = &w->described;
	struct task_message decoded;
	struct known_task now, *task;
	struct event *ev;
	bool known;

	wire_get_task(message, &decoded);
	now = take_task(r, &decoded);
	task = find_task(d, now.id);
	known = task;
	if (!known)
		task = add_task(d, &now);
	if (!task) {
		too_many(r, offset, &d->too_many_tasks,
			 "too many tasks; kscope ignores the others");
		return;
	}
	if (known && (same_task(task, &now) || now.time < task->time)) {
		task->time = now.time > task->time ? now.time : task->time;
		return;
	}
	*task = now;
	ev = task->name ? wire_add(&w->before, EVENT_COMM) : NULL;
	if (ev)
		fill_comm(r, task, ev);
	add_program(r, task);
}

/* perf's process 0 is what runs when no task does. */
static void name_kernel(struct wire_reader *w)
{
	struct event *ev = w->described.kernel_named ? NULL : wire_add(&w->before, EVENT_COMM);

	w->described.kernel_named = true;
	if (!ev)
		return;
	ev->pid = ev->tid = 0;
	ev->comm.comm = "kernel";
}

void wire_described_task(struct reader *r, const struct sample_message *sample, struct event *ev)
{
	struct wire_reader *w = r->priv;
	const struct known_task *task = find_task(&w->described, (uint32_t)sample->task);

	ev->tid = (uint32_t)sample->task;
	ev->pid = task ? process_of(task) : ev->tid;
	if (!sample->task)
		name_kernel(w);
}

/* ---- all of them ---- */

void wire_describe(struct reader *r, const struct order_item *item, uint32_t kind,
		   struct pb message)
{
	switch (kind) {
	case WIRE_CHUNK_EVENT: describe_event(r, message); break;
	case WIRE_CHUNK_TASK: describe_task(r, item->offset, message); break;
	case WIRE_CHUNK_MAP: describe_map(r, item->offset, message); break;
	}
}

static void note_event(const struct reader *r, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct event_message decoded;
	struct known_event *event;

	if (!wire_get_event(message, &decoded))
		return;
	event = known_event(&w->described, decoded.id);
	if (!event->described)
		*event = take_event(r, &decoded);
}

static void note_task(const struct reader *r, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct task_message decoded;
	struct known_task task;

	if (!wire_get_task(message, &decoded))
		return;
	task = take_task(r, &decoded);
	task.time = 0;
	if (!find_task(&w->described, task.id))
		add_task(&w->described, &task);
}

static void note_map(const struct reader *r, struct pb message)
{
	struct wire_reader *w = r->priv;
	struct map_message decoded;
	struct known_map map;

	if (!wire_get_map(message, &decoded))
		return;
	map = take_map(r, &decoded);
	map.time = 0;
	if (map.path && !known_map(&w->described, &map))
		add_map(&w->described, &map);
}

void wire_described_guess(struct wire_reader *w, const struct wire_chunk *chunk)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field;

	if (w->info.found || chunk->check != WIRE_CHECK_GOOD)
		return;
	while (!w->described.on && pb_next(&message, &field) > 0)
		w->described.on = wire_describes(field.number);
}

void wire_describe_early(struct reader *r, const struct wire_chunk *chunk)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field;

	while (pb_next(&message, &field) > 0) {
		if (field.wire != PB_BYTES)
			continue;
		switch (field.number) {
		case WIRE_CHUNK_EVENT: note_event(r, field.bytes); break;
		case WIRE_CHUNK_TASK: note_task(r, field.bytes); break;
		case WIRE_CHUNK_MAP: note_map(r, field.bytes); break;
		}
	}
}

/* --elf PID=FILE is all of a process that the target does not describe. */
static bool next_given(struct reader *r, struct event *ev)
{
	struct wire_described *d = &((struct wire_reader *)r->priv)->described;
	const struct options *options = r->options;

	while (d->elf < options->nr_elfs) {
		const struct elf_option *elf = &options->elfs[d->elf++];

		if (elf->pid == NO_TASK || hash_get(&d->has_map, (struct hash_key){ elf->pid, 0 }))
			continue;
		ev->kind = EVENT_MAP;
		ev->pid = ev->tid = elf->pid;
		ev->map = (struct event_map){ .path = elf->path, .whole = true, .given = true };
		return true;
	}
	return false;
}

bool wire_described_next(struct reader *r, struct event *ev)
{
	struct wire_described *d = &((struct wire_reader *)r->priv)->described;

	while (d->early_event < d->nr_events) {
		uint32_t id = (uint32_t)d->early_event++;

		if (!d->events[id].described || d->events[id].told)
			continue;
		fill_source(r, id, ev);
		return true;
	}
	while (d->early_map < d->nr_maps) {
		if (fill_map(r, &d->maps[d->early_map++], ev))
			return true;
	}
	while (d->early_task < d->nr_tasks) {
		const struct known_task *task = &d->tasks[d->early_task++];

		if (!task->name)
			continue;
		fill_comm(r, task, ev);
		return true;
	}
	while (d->early_program < d->nr_tasks) {
		if (fill_program(r, &d->tasks[d->early_program++], ev))
			return true;
	}
	return next_given(r, ev);
}

void wire_described_forget(struct wire_described *d)
{
	for (size_t i = 0; i < d->nr_tasks; i++)
		d->tasks[i].time = 0;
	for (size_t i = 0; i < d->nr_maps; i++)
		d->maps[i].time = 0;
	for (size_t i = 0; i < d->nr_events; i++)
		d->events[i].came = false;
}

void wire_described_release(struct wire_described *d)
{
	free(d->events);
	free(d->tasks);
	free(d->maps);
	hash_release(&d->task_by_id);
	hash_release(&d->map_by_place);
	hash_release(&d->has_map);
}
