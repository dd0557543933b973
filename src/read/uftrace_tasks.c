// SPDX-License-Identifier: GPL-2.0-or-later
/* What a uftrace folder says in text: task.txt, the maps, and which symbol file belongs to a map. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/uftrace_file.h"
#include "base/store.h"
#include "base/text.h"
#include "read/uftrace_parts.h"

#define PAGE 4096
#define MAX_LINE 8192

static bool open_file(const struct uftrace_tasks *tasks, struct in *in, const char *name)
{
	char *path = xasprintf("%s%s", tasks->folder, name);
	struct err err = { 0 };
	bool good = store_has(tasks->store, path) && store_in(tasks->store, in, path, &err) == 0;

	free(path);
	return good;
}

/* A line as a string; false at the end. */
static bool next_line(struct in *in, char line[MAX_LINE])
{
	const char *at;
	size_t len;

	if (!text_line(in, &at, &len))
		return false;
	snprintf(line, MAX_LINE, "%.*s", (int)(len < MAX_LINE ? len : MAX_LINE - 1), at);
	return true;
}

/* Symbol files */

/* Whether it belongs to the binary at this path. Files that do not say belong to any. */
static bool is_symbol_file(const struct uftrace_tasks *tasks, const char *file, const char *path)
{
	char line[MAX_LINE];
	struct err err = { 0 };
	struct in in;
	bool good = true;

	if (!store_has(tasks->store, file) || store_in(tasks->store, &in, file, &err) < 0)
		return false;
	while (good && next_line(&in, line) && line[0] == '#') {
		if (!strncmp(line, "# path name: ", 13))
			good = !strcmp(line + 13, path);
	}
	in_close(&in);
	return good;
}

/* The symbol file of a binary; if another binary has the same name, part of the build ID is added. */
static const char *symbol_file(struct uftrace_tasks *tasks, const char *path, const char *build_id)
{
	const char *name = text_last_part(path), *found = NULL;
	char *files[2] = { xasprintf("%s%s.sym", tasks->folder, name),
			   xasprintf("%s%s-%.4s.sym", tasks->folder, name, build_id) };

	for (int i = 0; i < 2 && !found; i++) {
		if (is_symbol_file(tasks, files[i], path))
			found = arena_strndup(&tasks->arena, files[i], strlen(files[i]));
	}
	free(files[0]);
	free(files[1]);
	return found;
}

/* Programs load a library again and again. */
static uint64_t last_symbol(struct uftrace_tasks *tasks, const char *names)
{
	struct err err = { 0 };
	char line[MAX_LINE];
	uint64_t last = 0, addr;
	struct in in;

	for (size_t i = 0; i < tasks->nr_measured; i++) {
		if (!strcmp(tasks->measured[i].names, names))
			return tasks->measured[i].last;
	}
	if (store_in(tasks->store, &in, names, &err) == 0) {
		while (next_line(&in, line)) {
			if (text_hex(line, strcspn(line, " "), &addr) && addr > last)
				last = addr;
		}
		in_close(&in);
	}
	GROW(tasks->measured, tasks->nr_measured + 1, tasks->cap_measured);
	tasks->measured[tasks->nr_measured++] = (struct uftrace_measured){ names, last };
	return last;
}

void uftrace_measure(struct uftrace_tasks *tasks, struct uftrace_map *map)
{
	uint64_t last;

	map->end = map->start;
	map->names = symbol_file(tasks, map->path, "");
	if (!map->names)
		return;
	last = last_symbol(tasks, map->names);
	if (last < UINT64_MAX - PAGE - map->start)
		map->end = map->start + last + PAGE;
}

/* Maps */

/* Names that are no paths belong to this folder. */
static const char *full_path(struct uftrace_tasks *tasks, const char *path)
{
	char *full = xasprintf("%s%s", path[0] == '/' ? "" : tasks->folder, path);
	const char *kept = arena_strndup(&tasks->arena, full, strlen(full));

	free(full);
	return kept;
}

static void add_map(struct uftrace_tasks *tasks, struct uftrace_session *session,
		    struct uftrace_map map, const char *path, const char *build_id)
{
	const struct uftrace_map *last = session->nr ? &session->maps[session->nr - 1] : NULL;

	map.path = full_path(tasks, path);
	map.foreign = path[0] != '/';
	if (last && !strcmp(last->path, map.path)) {
		map.names = last->names;
		/* Symbols are relative to the first map of the file. */
		if (map.names)
			map.offset = last->offset + (map.start - last->start);
	} else {
		map.names = symbol_file(tasks, path, build_id);
		if (map.names)
			map.offset = 0;
	}
	GROW(session->maps, session->nr + 1, session->cap);
	session->maps[session->nr++] = map;
}

/* As in /proc/PID/maps: "start-end prot offset device inode path [build-id:ID]". */
static void read_map_line(struct uftrace_tasks *tasks, struct uftrace_session *session,
			  const char *line)
{
	char path[MAX_LINE] = "", build_id[MAX_LINE] = "";
	struct uftrace_map map = { 0 };
	const char *id = "build-id:";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*x:%*x %*d %8000s %8000s",
		   &map.start, &map.end, &map.offset, path, build_id) < 4 ||
	    path[0] == '[' || map.end <= map.start)
		return;
	add_map(tasks, session, map, path,
		strncmp(build_id, id, strlen(id)) ? "" : build_id + strlen(id));
}

static void read_session(struct uftrace_tasks *tasks, struct uftrace_session *session,
			 struct reader *r)
{
	char *name = xasprintf("sid-%s.map", session->id);
	char line[MAX_LINE];
	uint64_t offset = 0;
	struct in in;

	if (strchr(session->id, '/') || !open_file(tasks, &in, name)) {
		reader_missing(r, "%s%s: not found: its functions have no names", tasks->folder,
			       name);
		free(name);
		return;
	}
	for (; next_line(&in, line); offset = in_offset(&in)) {
		if (text_line_ended(&in))
			read_map_line(tasks, session, line);
		else
			uftrace_damage(r, in.path, offset, strlen(line), TEXT_CUT);
	}
	in_close(&in);
	free(name);
}

static uint32_t session_of(struct uftrace_tasks *tasks, const char *id, struct reader *r)
{
	struct hash_key key = { hash_bytes(id, strlen(id)), 0 };
	uint32_t *at = hash_at(&tasks->session_by_id, key);

	if (!*at) {
		GROW(tasks->sessions, tasks->nr_sessions + 1, tasks->cap_sessions);
		tasks->sessions[tasks->nr_sessions] = (struct uftrace_session){
			.id = arena_strndup(&tasks->arena, id, strlen(id)),
		};
		*at = (uint32_t)++tasks->nr_sessions;
		read_session(tasks, &tasks->sessions[tasks->nr_sessions - 1], r);
	}
	return *at;
}

/* task.txt */

/* The value of a field, up to the next blank, or in quotes up to the last one. */
static bool field(const char *line, const char *name, char value[MAX_LINE])
{
	const char *at = strstr(line, name), *end;

	if (!at)
		return false;
	at += strlen(name);
	if (*at == '"')
		end = strrchr(++at, '"');
	else
		end = at + strcspn(at, " ");
	if (!end)
		end = at + strlen(at);
	snprintf(value, MAX_LINE, "%.*s", (int)(end - at), at);
	return *value;
}

static bool number(const char *line, const char *name, uint32_t *value)
{
	char text[MAX_LINE];

	return field(line, name, text) && text_u32(text, strlen(text), value);
}

static bool time_of(const char *line, uint64_t *time)
{
	char text[MAX_LINE];

	return field(line, " timestamp=", text) && text_seconds(text, strlen(text), time);
}

static bool read_entry(struct uftrace_tasks *tasks, const char *line, struct uftrace_entry *entry,
		       struct reader *r)
{
	char text[MAX_LINE];

	if (!time_of(line, &entry->time))
		return false;
	if (!strncmp(line, "TASK ", 5)) {
		entry->kind = BEGIN_THREAD;
		return number(line, " tid=", &entry->tid) && number(line, " pid=", &entry->pid);
	}
	if (!strncmp(line, "FORK ", 5)) {
		entry->kind = BEGIN_PROCESS;
		return number(line, " pid=", &entry->tid) && number(line, " ppid=", &entry->pid);
	}
	entry->kind = strncmp(line, "DLOP ", 5) ? BEGIN_PROGRAM : BEGIN_LIBRARY;
	if (entry->kind == BEGIN_PROGRAM && strncmp(line, "SESS ", 5) != 0)
		return false;
	if (!number(line, " pid=", &entry->tid) && !number(line, " tid=", &entry->tid))
		return false;
	entry->pid = entry->tid;
	if (entry->kind == BEGIN_LIBRARY &&
	    !(field(line, " base=", text) && text_hex(text, strlen(text), &entry->base)))
		return false;
	if (entry->kind == BEGIN_PROGRAM) {
		if (!field(line, " sid=", text))
			return false;
		entry->session = session_of(tasks, text, r);
	}
	if (!field(line, entry->kind == BEGIN_PROGRAM ? " exename=" : " libname=", text))
		return entry->kind == BEGIN_PROGRAM;
	entry->name = arena_strndup(&tasks->arena, text, strlen(text));
	return true;
}

static void add_entry(struct uftrace_tasks *tasks, struct uftrace_entry entry)
{
	entry.order = tasks->nr;
	GROW(tasks->entries, tasks->nr + 1, tasks->cap);
	tasks->entries[tasks->nr++] = entry;
}

static void read_task_file(struct uftrace_tasks *tasks, struct reader *r)
{
	char line[MAX_LINE];
	uint64_t offset = 0;
	struct in in;

	if (!open_file(tasks, &in, "task.txt")) {
		reader_missing(r, "%stask.txt: not found: tasks and functions have no names",
			       tasks->folder);
		return;
	}
	for (; next_line(&in, line); offset = in_offset(&in)) {
		struct uftrace_entry entry = { 0 };

		if (!*line)
			continue;
		if (!text_line_ended(&in))
			uftrace_damage(r, in.path, offset, strlen(line), TEXT_CUT);
		else if (read_entry(tasks, line, &entry, r))
			add_entry(tasks, entry);
		else
			uftrace_damage(r, in.path, offset, strlen(line), "unknown line");
	}
	in_close(&in);
}

/* Names of threads */

static uint64_t get(const uint8_t *at, unsigned len)
{
	uint64_t value = 0;

	while (len-- > 0)
		value = value << 8 | at[len];
	return value;
}

/* A record of perf; other ones than names are skipped. */
static void read_name(struct uftrace_tasks *tasks, const uint8_t *record, size_t size)
{
	enum { HEAD = 8, IDS = 8, SAMPLE_ID = 16 };
	const char *name = (const char *)record + HEAD + IDS;

	if (get(record, 4) != UFTRACE_PERF_COMM || size <= HEAD + IDS + SAMPLE_ID)
		return;
	add_entry(tasks,
		  (struct uftrace_entry){
			  .kind = BEGIN_NAME,
			  .time = get(record + size - 8, 8),
			  .pid = (uint32_t)get(record + HEAD, 4),
			  .tid = (uint32_t)get(record + HEAD + 4, 4),
			  .name = arena_strndup(&tasks->arena, name,
						strnlen(name, size - HEAD - IDS - SAMPLE_ID)),
		  });
}

/* False: there is no such file. */
static bool read_perf_file(struct uftrace_tasks *tasks, unsigned cpu, struct reader *r)
{
	char *file = xasprintf("perf-cpu%u.dat", cpu);
	const uint8_t *record;
	struct in in;
	size_t have;
	bool there = open_file(tasks, &in, file);

	free(file);
	if (!there)
		return false;
	while (record = in_peek(&in, 8, &have), have) {
		size_t size = have < 8 ? 0 : get(record + 6, 2);

		record = in_peek(&in, size, &have);
		if (size < 8 || have < size) {
			uftrace_damage(r, in.path, in_offset(&in), have,
				       "a perf record has the wrong size");
			break;
		}
		read_name(tasks, record, size);
		in_skip(&in, size);
	}
	in_close(&in);
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct uftrace_entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

void uftrace_read_tasks(struct uftrace_tasks *tasks, struct reader *r)
{
	read_task_file(tasks, r);
	for (unsigned cpu = 0; read_perf_file(tasks, cpu, r); cpu++)
		;
	if (tasks->nr)
		qsort(tasks->entries, tasks->nr, sizeof(*tasks->entries), by_time);
}

void uftrace_release_tasks(struct uftrace_tasks *tasks)
{
	for (size_t i = 0; i < tasks->nr_sessions; i++)
		free(tasks->sessions[i].maps);
	free(tasks->sessions);
	free(tasks->entries);
	hash_release(&tasks->session_by_id);
	free(tasks->measured);
	arena_release(&tasks->arena);
}
