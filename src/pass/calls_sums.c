// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/calls.h"

#define MEMO_SIZE 262144
#define MEMO_WAYS 4
#define PLACES 16384

struct calls_path { /* a node in the tree of return addresses */
	uint64_t resume;
	uint64_t context;
	uint32_t parent;
	uint32_t frame;	   /* the handle of `resume` */
	uint32_t pid, tid; /* of the root */
	uint32_t stack;	   /* the handle of the stack down to it; 0: none yet */
	bool trap;	   /* interrupted there, without a call */
	bool guessed;	   /* or near there */
};

struct calls_counter { /* a mark of the tracker is the index of one */
	uint64_t leaf, context;
	uint64_t count;
	uint32_t path;
	uint32_t frame; /* the handle of `leaf` */
};

struct calls_place { /* what an address is, by the maps of `version` */
	uint64_t address;
	uint64_t leaf;
	uint32_t frame; /* the handle of `leaf` */
	uint32_t pid;	/* 0 in a kernel */
	uint32_t version;
	uint32_t context; /* the end of it: markers differ there */
};

struct calls_memo { /* which counter follows another one */
	uint64_t resume, to;
	uint32_t from, counter;
	uint32_t version;
};

static const struct track_ops sums_ops;

/* Index 0 means no path or counter. */
static void empty_tables(struct calls *calls)
{
	calls->nr_paths = calls->nr_counters = 1;
	GROW(calls->paths, 1, calls->cap_paths);
	GROW(calls->counters, 1, calls->cap_counters);
	calls->paths[0] = (struct calls_path){ 0 };
	calls->counters[0] = (struct calls_counter){ 0 };
}

void calls_init(struct calls *calls)
{
	memset(calls, 0, sizeof(*calls));
	track_init(&calls->track, &sums_ops, calls);
	calls->version = 1;
	calls->memo = xcalloc(MEMO_SIZE, sizeof(*calls->memo));
	calls->places = xcalloc(PLACES, sizeof(*calls->places));
	empty_tables(calls);
}

void calls_release(struct calls *calls)
{
	track_release(&calls->track);
	free(calls->paths);
	free(calls->counters);
	free(calls->memo);
	free(calls->places);
	free(calls->chain);
	hash_release(&calls->path_by_key);
	hash_release(&calls->counter_by_key);
	memset(calls, 0, sizeof(*calls));
}

/* Finds or adds the path that equals `want`. */
static uint32_t path_at(struct calls *calls, const struct calls_path *want)
{
	struct hash_key key = { want->resume ^ (uint64_t)want->trap << 63 ^
					(uint64_t)want->guessed << 62,
				(uint64_t)want->parent << 32 | want->frame };
	uint32_t *handle;

	if (!want->parent)
		key = (struct hash_key){ want->tid, want->pid };
	handle = hash_at(&calls->path_by_key, key);
	if (!*handle) {
		GROW(calls->paths, calls->nr_paths + 1, calls->cap_paths);
		calls->paths[calls->nr_paths] = *want;
		calls->paths[calls->nr_paths].stack = 0;
		*handle = (uint32_t)calls->nr_paths++;
	}
	return *handle;
}

static uint32_t counter_at(struct calls *calls, const struct calls_counter *want)
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

uint64_t calls_function(const struct calls *calls, uint64_t address, uint64_t context, uint32_t pid)
{
	return calls->function ? calls->function(calls->data, address, context, pid) : 0;
}

static uint64_t leaf_of(const struct calls *calls, uint64_t address, uint64_t context, uint32_t pid)
{
	uint64_t start = calls_function(calls, address, context, pid);

	return start ? start : address;
}

static uint32_t frame_of(const struct calls *calls, uint64_t address, uint64_t context,
			 uint32_t pid, bool is_return)
{
	return calls->frame ? calls->frame(calls->data, address, context, pid, is_return) : 0;
}

static void look_up(const struct calls *calls, struct calls_place *place, const struct event *ev,
		    uint32_t pid)
{
	const struct event_branch *b = &ev->branch;
	uint64_t leaf = leaf_of(calls, b->to, b->context, ev->pid);

	*place = (struct calls_place){ .address = b->to,
				       .leaf = leaf,
				       .frame = frame_of(calls, leaf, b->context, ev->pid, false),
				       .pid = pid,
				       .version = calls->version,
				       .context = (uint32_t)b->context };
}

/* An event's target. */
static inline const struct calls_place *place_of(struct calls *calls, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	uint32_t pid = b->context == IP_KERNEL ? 0 : ev->pid;
	struct calls_place *place =
		&calls->places[(b->to + pid) * 0x9e3779b97f4a7c15ull >> 32 & (PLACES - 1)];

	if (place->address != b->to || place->pid != pid ||
	    place->context != (uint32_t)b->context || place->version != calls->version)
		look_up(calls, place, ev, pid);
	return place;
}

/* The counter of an event's target, on a path. */
static uint32_t counter_on(struct calls *calls, uint32_t path, const struct event *ev)
{
	const struct calls_place *place = place_of(calls, ev);
	struct calls_counter want = { .leaf = place->leaf,
				      .context = ev->branch.context,
				      .path = path,
				      .frame = place->frame };

	return counter_at(calls, &want);
}

static inline bool is_memo(const struct calls_memo *memo, const struct calls_memo *want)
{
	return memo->to == want->to && memo->from == want->from && memo->resume == want->resume &&
	       memo->version == want->version;
}

/*
 * Finds a memo, or makes room for it; if its counter is 0, the caller must set it. The first few successors
 * of a counter are adjacent, at an index computed from that counter. Counters that were made one after
 * the other have places near each other, so code that runs again finds them in the cpu's cache.
 */
static inline struct calls_memo *memo_of(struct calls *calls, uint32_t from, uint64_t resume,
					 uint64_t to)
{
	struct calls_memo *own = &calls->memo[from * MEMO_WAYS % MEMO_SIZE], *memo, *free = NULL;
	struct calls_memo want = { resume, to, from, 0, calls->version };
	uint64_t hash = (to ^ resume * 31) * 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < MEMO_WAYS; i++) {
		memo = &own[(i ^ hash >> 62) % MEMO_WAYS];
		if (is_memo(memo, &want))
			return memo;
		if (!free && (memo->from != from || memo->version != calls->version))
			free = memo;
	}
	memo = &calls->memo[(hash >> 40 ^ from * 31) % MEMO_SIZE];
	if (is_memo(memo, &want))
		return memo;
	if (free)
		memo = free;
	*memo = want;
	return memo;
}

static uint32_t counter_beside(void *data, uint32_t from, const struct event *ev)
{
	struct calls *calls = data;
	const struct calls_place *place = place_of(calls, ev);
	const struct calls_counter *at = &calls->counters[from];
	struct calls_memo *memo;

	if (at->leaf == place->leaf && at->frame == place->frame &&
	    at->context == ev->branch.context)
		return from;
	memo = memo_of(calls, from, 0, ev->branch.to);
	if (!memo->counter)
		memo->counter = counter_on(calls, at->path, ev);
	return memo->counter;
}

/* The path of code that `caller` calls: the caller's own path and its return address. */
static uint32_t path_below(struct calls *calls, uint32_t from, const struct track_frame *caller,
			   uint64_t context)
{
	uint32_t parent = calls->counters[from].path;
	bool trap = caller->kind == TRACK_TRAP, fresh = caller->context != context;
	struct calls_path path = { .resume = caller->resume,
				   .context = caller->context,
				   .parent = parent,
				   .pid = calls->paths[parent].pid,
				   .tid = calls->paths[parent].tid,
				   .trap = trap,
				   .guessed = caller->guessed };

	path.frame =
		frame_of(calls, path.resume + (trap && !fresh), path.context, caller->pid, !fresh);
	return path_at(calls, &path);
}

static uint32_t counter_below(void *data, uint32_t from, const struct track_frame *caller,
			      const struct event *ev)
{
	struct calls *calls = data;
	const struct event_branch *b = &ev->branch;
	uint64_t key = caller->resume ^ (uint64_t)(caller->kind == TRACK_TRAP) << 63 ^
		       (uint64_t)caller->guessed << 62;
	struct calls_memo *memo = memo_of(calls, from, key, b->to);

	if (!memo->counter)
		memo->counter = counter_on(calls, path_below(calls, from, caller, b->context), ev);
	/* What follows it is needed next. */
	__builtin_prefetch(&calls->memo[memo->counter * MEMO_WAYS % MEMO_SIZE]);
	__builtin_prefetch(&calls->counters[memo->counter]);
	return memo->counter;
}

static uint32_t counter_root(void *data, const struct event *ev)
{
	struct calls *calls = data;
	struct calls_path root = { .pid = ev->pid, .tid = ev->tid };

	return counter_on(calls, path_at(calls, &root), ev);
}

uint32_t calls_leaf(const struct calls *calls, uint32_t mark, uint64_t *start)
{
	*start = calls->counters[mark].leaf;
	return calls->counters[mark].frame;
}

/* The same leaf on another path. */
static uint32_t moved(struct calls *calls, uint32_t counter, uint32_t path)
{
	struct calls_counter want = calls->counters[counter];

	want.path = path;
	return counter_at(calls, &want);
}

/* The frames get paths that begin at the first of them. */
static void counter_reroot(void *data, struct track_frame *frames, size_t nr, uint32_t *mark)
{
	struct calls *calls = data;
	const struct calls_path *old =
		&calls->paths[calls->counters[nr ? frames[0].mark : *mark].path];
	struct calls_path root = { .pid = old->pid, .tid = old->tid };
	uint32_t path = path_at(calls, &root);

	for (size_t i = 0; i < nr; i++) {
		uint32_t below = i + 1 < nr ? frames[i + 1].mark : *mark;
		struct calls_path next = calls->paths[calls->counters[below].path];

		next.parent = path;
		frames[i].mark = moved(calls, frames[i].mark, path);
		path = path_at(calls, &next);
	}
	*mark = moved(calls, *mark, path);
}

static void counter_run(void *data, uint32_t counter, uint64_t instructions)
{
	struct calls *calls = data;

	calls->counters[counter].count += instructions;
}

static uint64_t function_of(void *data, uint64_t address, uint64_t context, uint32_t pid)
{
	return calls_function(data, address, context, pid);
}

static uint64_t target_of(void *data, const struct event *ev)
{
	return place_of(data, ev)->leaf;
}

static uint64_t start_of(void *data, uint32_t mark)
{
	const struct calls *calls = data;

	return calls->counters[mark].leaf;
}

static uint32_t whole_of(void *data, const struct event *ev)
{
	struct calls *calls = data;

	return calls->whole ? calls->whole(calls->data, place_of(calls, ev)->frame) : 0;
}

static uint32_t name_of(void *data, uint32_t mark)
{
	struct calls *calls = data;

	return calls->name(calls->data, calls->counters[mark].frame);
}

static bool is_kernel(void *data, uint64_t address)
{
	struct calls *calls = data;

	if (calls->kernel)
		return calls->kernel(calls->data, address);
	return !calls->function || calls->function(calls->data, address, IP_KERNEL, 0);
}

static void task_ended(void *data, void *own)
{
	struct calls *calls = data;

	slices_end_task(calls->slices, own);
}

static const struct track_ops sums_ops = {
	.root = counter_root,
	.beside = counter_beside,
	.below = counter_below,
	.reroot = counter_reroot,
	.run = counter_run,
	.function = function_of,
	.target = target_of,
	.start = start_of,
	.whole = whole_of,
	.name = name_of,
	.kernel = is_kernel,
	.ended = task_ended,
};

/* Samples */

static void add_ip(struct calls *calls, size_t *nr, uint64_t ip)
{
	GROW(calls->chain, *nr + 1, calls->cap_chain);
	calls->chain[(*nr)++] = ip;
}

/* Builds the chain of a counter, leaf first, with markers. Returns the root of its path. */
static const struct calls_path *make_chain(struct calls *calls, const struct calls_counter *counter,
					   size_t *nr)
{
	const struct calls_path *path = &calls->paths[counter->path];
	uint64_t context = counter->context;

	*nr = 0;
	add_ip(calls, nr, context);
	add_ip(calls, nr, counter->leaf);
	for (; path->parent; path = &calls->paths[path->parent]) {
		bool fresh = path->context != context;

		if (fresh)
			add_ip(calls, nr, path->context);
		context = path->context;
		/* Callers are looked up at address - 1; add 1 to where code was interrupted. */
		add_ip(calls, nr, path->resume + (path->trap && !fresh));
	}
	return path;
}

/* The handle of the stack down to a path; 0: the root. */
static uint32_t stack_of(struct calls *calls, uint32_t path)
{
	struct calls_path *at = &calls->paths[path];

	if (!at->stack && at->parent)
		at->stack = calls->stack(calls->data, stack_of(calls, at->parent), at->frame);
	return at->stack;
}

uint32_t calls_stack(struct calls *calls, uint32_t mark)
{
	const struct calls_counter *counter = &calls->counters[mark];

	if (!mark || !calls->stack)
		return 0;
	return calls->stack(calls->data, stack_of(calls, counter->path), counter->frame);
}

size_t calls_callers(const struct calls *calls, uint32_t mark, uint64_t *leaf,
		     struct calls_caller *callers, size_t max)
{
	const struct calls_path *path = &calls->paths[calls->counters[mark].path];
	size_t nr = 0;

	*leaf = calls->counters[mark].leaf;
	for (; path->parent && nr < max; path = &calls->paths[path->parent])
		callers[nr++] = (struct calls_caller){ .address = path->resume,
						       .context = path->context,
						       .guessed = path->guessed,
						       .trap = path->trap };
	return nr;
}

/* The old tables, and the new index of each path. 0: dropped. */
struct remap {
	struct calls *calls;
	struct calls_path *paths;
	struct calls_counter *counters;
	size_t nr_paths;
	uint32_t *path;
};

static uint32_t need_path(void *data, uint32_t counter)
{
	struct remap *map = data;
	uint32_t path = map->counters[counter].path;

	for (; path && !map->path[path]; path = map->paths[path].parent)
		map->path[path] = 1;
	return counter;
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

static uint32_t remap_counter(void *data, uint32_t counter)
{
	struct remap *map = data;
	struct calls_counter want = map->counters[counter];

	want.path = map->path[want.path];
	return counter_at(map->calls, &want);
}

/* Replaces the tables by new ones, with only the stacks of the tasks. */
static void start_anew(struct calls *calls)
{
	struct remap map = { calls, calls->paths, calls->counters, calls->nr_paths,
			     xcalloc(calls->nr_paths, sizeof(uint32_t)) };

	memset(calls->memo, 0, MEMO_SIZE * sizeof(*calls->memo));
	calls->paths = NULL;
	calls->counters = NULL;
	calls->cap_paths = calls->cap_counters = 0;
	empty_tables(calls);
	track_marks(&calls->track, need_path, &map);
	copy_paths(calls, &map);
	track_marks(&calls->track, remap_counter, &map);
	if (calls->slices)
		calls_forget_marks(calls);
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
	ev->sample.stack = calls_stack(calls, (uint32_t)calls->emitted - 1);
	return true;
}
