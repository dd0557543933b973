// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calls_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_ENTRIES (4u << 20) /* paths or counters, before they are emitted */
#define MEMO_SIZE 65536

/* Index 0 means no path or counter. */
static void empty_tables(struct calls *calls)
{
	calls->nr_paths = calls->nr_counters = 1;
	GROW(calls->paths, 1, calls->cap_paths);
	GROW(calls->counters, 1, calls->cap_counters);
	calls->paths[0] = (struct calls_path){ 0 };
	calls->counters[0] = (struct calls_counter){ 0 };
}

void sums_init(struct calls *calls)
{
	calls->memo = xcalloc(MEMO_SIZE, sizeof(*calls->memo));
	empty_tables(calls);
}

void sums_release(struct calls *calls)
{
	free(calls->paths);
	free(calls->counters);
	free(calls->memo);
	free(calls->chain);
	free(calls->frames);
	hash_release(&calls->path_by_key);
	hash_release(&calls->counter_by_key);
}

uint32_t path_at(struct calls *calls, const struct calls_path *want)
{
	struct hash_key key = { want->resume ^ (uint64_t)want->trap << 63,
				(uint64_t)want->parent << 32 | want->frame };
	uint32_t *handle;

	if (!want->parent)
		key = (struct hash_key){ want->tid, want->pid };
	handle = hash_at(&calls->path_by_key, key);
	if (!*handle) {
		GROW(calls->paths, calls->nr_paths + 1, calls->cap_paths);
		calls->paths[calls->nr_paths] = *want;
		*handle = (uint32_t)calls->nr_paths++;
	}
	return *handle;
}

uint32_t counter_at(struct calls *calls, const struct calls_counter *want)
{
	struct hash_key key = { want->leaf, (uint64_t)want->frame << 32 | want->path << 1 |
						    (want->context == IP_USER) };
	uint32_t *handle = hash_at(&calls->counter_by_key, key);

	if (!*handle) {
		GROW(calls->counters, calls->nr_counters + 1, calls->cap_counters);
		calls->counters[calls->nr_counters] = *want;
		calls->counters[calls->nr_counters].count = 0;
		*handle = (uint32_t)calls->nr_counters++;
	}
	return *handle;
}

static uint64_t leaf_of(const struct calls *calls, uint64_t address, uint64_t context, uint32_t pid)
{
	uint64_t start = calls->function ? calls->function(calls->data, address, context, pid) : 0;

	return start ? start : address;
}

static uint32_t frame_of(const struct calls *calls, uint64_t address, uint64_t context,
			 uint32_t pid, bool is_return)
{
	return calls->frame ? calls->frame(calls->data, address, context, pid, is_return) : 0;
}

/* The counter of an event's target, on a path. */
static uint32_t counter_on(struct calls *calls, uint32_t path, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct calls_counter want = { .leaf = leaf_of(calls, b->to, b->context, ev->pid),
				      .context = b->context,
				      .path = path };

	want.frame = frame_of(calls, want.leaf, b->context, ev->pid, false);
	return counter_at(calls, &want);
}

static struct calls_memo *memo_of(struct calls *calls, uint32_t from, uint64_t resume, uint64_t to)
{
	uint64_t hash = (to ^ resume * 31 ^ (uint64_t)from << 20) * 0x9e3779b97f4a7c15ull;

	return &calls->memo[hash >> 48 & (MEMO_SIZE - 1)];
}

static bool is_memo(const struct calls *calls, const struct calls_memo *memo, uint32_t from,
		    uint64_t resume, uint64_t to)
{
	return memo->counter && memo->from == from && memo->resume == resume && memo->to == to &&
	       memo->version == calls->version;
}

uint32_t counter_beside(struct calls *calls, uint32_t from, const struct event *ev)
{
	uint64_t to = ev->branch.to;
	struct calls_memo *memo = memo_of(calls, from, 0, to);

	if (!is_memo(calls, memo, from, 0, to))
		*memo = (struct calls_memo){ 0, to, from,
					     counter_on(calls, calls->counters[from].path, ev),
					     calls->version };
	return memo->counter;
}

/* The path of code that `caller` calls: the caller's own path and its return address. */
static uint32_t path_below(struct calls *calls, uint32_t from, const struct calls_frame *caller,
			   uint64_t context)
{
	uint32_t parent = calls->counters[from].path;
	bool trap = caller->kind == CALLS_TRAP, fresh = caller->context != context;
	struct calls_path path = { .resume = caller->resume,
				   .context = caller->context,
				   .parent = parent,
				   .pid = calls->paths[parent].pid,
				   .tid = calls->paths[parent].tid,
				   .trap = trap };

	path.frame =
		frame_of(calls, path.resume + (trap && !fresh), path.context, caller->pid, !fresh);
	return path_at(calls, &path);
}

uint32_t counter_below(struct calls *calls, uint32_t from, const struct calls_frame *caller,
		       const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	uint64_t key = caller->resume ^ (uint64_t)(caller->kind == CALLS_TRAP) << 63;
	struct calls_memo *memo = memo_of(calls, from, key, b->to);

	if (!is_memo(calls, memo, from, key, b->to)) {
		uint32_t path = path_below(calls, from, caller, b->context);

		*memo = (struct calls_memo){ key, b->to, from, counter_on(calls, path, ev),
					     calls->version };
	}
	return memo->counter;
}

uint32_t counter_root(struct calls *calls, const struct event *ev)
{
	struct calls_path root = { .pid = ev->pid, .tid = ev->tid };

	return counter_on(calls, path_at(calls, &root), ev);
}

/* Samples */

bool calls_full(const struct calls *calls)
{
	return calls->nr_paths > MAX_ENTRIES || calls->nr_counters > MAX_ENTRIES;
}

static void add_ip(struct calls *calls, size_t *nr, uint64_t ip)
{
	GROW(calls->chain, *nr + 1, calls->cap_chain);
	calls->chain[(*nr)++] = ip;
}

static void add_frame(struct calls *calls, size_t *nr, uint64_t ip, uint32_t frame)
{
	add_ip(calls, nr, ip);
	GROW(calls->frames, calls->nr_frames + 1, calls->cap_frames);
	calls->frames[calls->nr_frames++] = frame;
}

/* Builds the chain of a counter, leaf first, with markers. Returns the root of its path. */
static const struct calls_path *make_chain(struct calls *calls, const struct calls_counter *counter,
					   size_t *nr)
{
	const struct calls_path *path = &calls->paths[counter->path];
	uint64_t context = counter->context;

	*nr = calls->nr_frames = 0;
	add_ip(calls, nr, context);
	add_frame(calls, nr, counter->leaf, counter->frame);
	for (; path->parent; path = &calls->paths[path->parent]) {
		bool fresh = path->context != context;

		if (fresh)
			add_ip(calls, nr, path->context);
		context = path->context;
		/* Callers are looked up at address - 1; add 1 to where code was interrupted. */
		add_frame(calls, nr, path->resume + (path->trap && !fresh), path->frame);
	}
	return path;
}

/* The old tables, and the new index of each path. 0: dropped. */
struct remap {
	struct calls_path *paths;
	struct calls_counter *counters;
	size_t nr_paths;
	uint32_t *path;
};

static void need_path(struct remap *map, uint32_t path)
{
	for (; path && !map->path[path]; path = map->paths[path].parent)
		map->path[path] = 1;
}

static void need_paths(struct remap *map, const struct calls_task *task)
{
	if (!task)
		return;
	for (size_t i = 0; i < task->nr; i++)
		need_path(map, map->counters[task->frames[i].counter].path);
	need_path(map, map->counters[task->counter].path);
}

/* A path comes after its parent, in both tables. */
static void copy_paths(struct calls *calls, struct remap *map)
{
	for (size_t i = 1; i < map->nr_paths; i++) {
		struct calls_path path = map->paths[i];

		if (!map->path[i])
			continue;
		path.parent = map->path[path.parent];
		map->path[i] = path_at(calls, &path);
	}
}

static void remap_counter(struct calls *calls, const struct remap *map, uint32_t *counter)
{
	struct calls_counter want = map->counters[*counter];

	want.path = map->path[want.path];
	*counter = counter_at(calls, &want);
}

static void remap_task(struct calls *calls, const struct remap *map, struct calls_task *task)
{
	if (!task)
		return;
	for (size_t i = 0; i < task->nr; i++)
		remap_counter(calls, map, &task->frames[i].counter);
	remap_counter(calls, map, &task->counter);
}

/* Replaces the tables by new ones, with only the stacks of the tasks. */
static void start_anew(struct calls *calls)
{
	struct remap map = { calls->paths, calls->counters, calls->nr_paths,
			     xcalloc(calls->nr_paths, sizeof(uint32_t)) };

	memset(calls->memo, 0, MEMO_SIZE * sizeof(*calls->memo));
	calls->paths = NULL;
	calls->counters = NULL;
	calls->cap_paths = calls->cap_counters = 0;
	empty_tables(calls);
	for (size_t i = 0; i < calls->nr_cpus; i++)
		need_paths(&map, calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		need_paths(&map, calls->left[i]);
	for (size_t i = 0; i < CALLS_FORKS; i++)
		calls->forks[i].resume = 0;
	copy_paths(calls, &map);
	for (size_t i = 0; i < calls->nr_cpus; i++)
		remap_task(calls, &map, calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		remap_task(calls, &map, calls->left[i]);
	free(map.paths);
	free(map.counters);
	free(map.path);
	calls->emitted = 0;
}

bool calls_sample(struct calls *calls, struct event *ev)
{
	const struct calls_counter *counter;
	const struct calls_path *root;
	size_t nr;

	/* Nothing is looked up until start_anew(), which fills new indexes. */
	hash_release(&calls->path_by_key);
	hash_release(&calls->counter_by_key);
	while (calls->emitted < calls->nr_counters && !calls->counters[calls->emitted].count)
		calls->emitted++;
	if (calls->emitted == calls->nr_counters) {
		start_anew(calls);
		return false;
	}
	counter = &calls->counters[calls->emitted++];
	root = make_chain(calls, counter, &nr);
	ev->kind = EVENT_SAMPLE;
	ev->pid = root->pid;
	ev->tid = root->tid;
	ev->sample = (struct event_sample){
		.ips = calls->chain,
		.nr = (uint32_t)nr,
		.weight = counter->count,
		.context = counter->context,
	};
	return true;
}
