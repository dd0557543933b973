// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/strtab.h"
#include "read/wire_parts.h"

struct event *wire_add(struct wire_events *events, enum event_kind kind)
{
	struct event *ev;

	if (events->nr == WIRE_EVENTS)
		return NULL;
	ev = &events->at[events->nr++];
	*ev = (struct event){ .kind = kind, .time = NO_TIME, .cpu = NO_CPU };
	return ev;
}

static void add_comm(struct wire_spaces *spaces, uint32_t pid, const char *name,
		     struct wire_events *out)
{
	struct event *ev = wire_add(out, EVENT_COMM);

	if (!ev)
		return;
	ev->pid = ev->tid = pid;
	ev->comm.comm = str_text(spaces->strings, str_intern_z(spaces->strings, name));
}

/* Names a process that has not run a program yet. */
static void add_first_comm(struct wire_spaces *spaces, uint32_t pid, uint64_t space,
			   struct wire_events *out)
{
	uint64_t guest = spaces->guest_shift ? space >> spaces->guest_shift : 0;
	char name[32] = "kernel";

	if (guest)
		snprintf(name, sizeof(name), "guest-%" PRIu64, guest);
	add_comm(spaces, pid, spaces->program ? text_last_part(spaces->program) : name, out);
}

static struct wire_process *process_of(struct wire_spaces *spaces, uint64_t space,
				       struct wire_events *out)
{
	uint32_t *slot = hash_at(&spaces->by_space, (struct hash_key){ space & spaces->mask, 0 });

	if (!*slot) {
		spaces->nr += !spaces->nr;
		GROW(spaces->processes, spaces->nr + 1, spaces->cap);
		spaces->processes[spaces->nr] = (struct wire_process){ .pid = ++spaces->nr_pids };
		*slot = (uint32_t)spaces->nr++;
		add_first_comm(spaces, spaces->nr_pids, space, out);
	}
	return &spaces->processes[*slot];
}

uint32_t wire_space_pid(struct wire_spaces *spaces, uint64_t space, bool user,
			struct wire_events *out)
{
	struct wire_process *process = process_of(spaces, space, out);
	char name[40];

	if (user && !process->user_seen) {
		process->user_seen = true;
		if (!process->program && !spaces->program) {
			snprintf(name, sizeof(name), "space-%" PRIx64, space & spaces->mask);
			add_comm(spaces, process->pid, name, out);
		}
	}
	return process->pid;
}

/* Another program with the same value of the register is a new process. */
static void new_process(struct wire_spaces *spaces, struct wire_process *process)
{
	hash_release(&process->pages);
	*process = (struct wire_process){ .pid = ++spaces->nr_pids };
}

/* Whether the page had other code before. */
static bool page_changed(struct wire_process *process, const struct code_message *code)
{
	size_t len = (size_t)(code->bytes.end - code->bytes.at);
	uint32_t digest = (uint32_t)hash_bytes(code->bytes.at, len) | 1;
	uint32_t *slot = hash_at(&process->pages, (struct hash_key){ code->address, 0 });
	bool changed = *slot && *slot != digest;

	*slot = digest;
	return changed;
}

static bool is_library(const char *path)
{
	const char *so = strstr(text_last_part(path), ".so");

	return so && (so[3] == '\0' || so[3] == '.');
}

static bool was_emitted(struct wire_spaces *spaces, uint32_t pid, const struct event_map *map)
{
	uint32_t path = str_intern_z(spaces->strings, map->path);
	uint32_t *slot = hash_at(&spaces->maps, (struct hash_key){ (uint64_t)pid << 32 | path,
								   map->addr ^ map->offset });
	bool before = *slot;

	*slot = 1;
	return before;
}

/* Without an MMU, as on Cortex-M, all programs and the kernel are in one address space. */
static void name_process(struct wire_spaces *spaces, struct wire_process *process, uint64_t space,
			 const struct event_map *map, struct wire_events *out)
{
	uint32_t program = str_intern_z(spaces->strings, map->path);
	bool shared = !(space & spaces->mask) && !spaces->program;

	if (process->program == program)
		return;
	if (process->program && !shared) {
		new_process(spaces, process);
		was_emitted(spaces, process->pid, map);
	}
	process->program = program;
	if (!shared)
		add_comm(spaces, process->pid, text_last_part(map->path), out);
}

void wire_space_code(struct wire_spaces *spaces, const struct code_message *code,
		     struct wire_events *out)
{
	bool user = code->level == WIRE_LEVEL_USER, found;
	struct wire_process *process = process_of(spaces, code->space, out);
	struct event_map map = { 0 };
	struct event *ev;

	if (user && page_changed(process, code)) {
		new_process(spaces, process);
		page_changed(process, code);
	}
	found = spaces->place && place_code(spaces->place, code->address, code->bytes.at,
					    (size_t)(code->bytes.end - code->bytes.at), &map);
	if (!found || was_emitted(spaces, user ? process->pid : 0, &map))
		return;
	if (user && !is_library(map.path))
		name_process(spaces, process, code->space, &map, out);
	ev = wire_add(out, EVENT_MAP);
	if (!ev)
		return;
	ev->map = map;
	ev->map.kernel = !user;
	ev->pid = ev->tid = process->pid;
}

void wire_spaces_forget(struct wire_spaces *spaces)
{
	hash_release(&spaces->by_space);
	spaces->by_space = (struct hash){ 0 };
}

void wire_spaces_release(struct wire_spaces *spaces)
{
	for (size_t i = 1; i < spaces->nr; i++)
		hash_release(&spaces->processes[i].pages);
	free(spaces->processes);
	hash_release(&spaces->by_space);
	hash_release(&spaces->maps);
}
