// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/source.h"

void tally_init(struct tally *tally, struct world *world, unsigned by)
{
	memset(tally, 0, sizeof(*tally));
	tally->world = world;
	tally->by = by;
}

void tally_release(struct tally *tally)
{
	free(tally->entries);
	hash_release(&tally->index);
	memset(tally, 0, sizeof(*tally));
}

void tally_add(struct tally *tally, const struct event *ev)
{
	uint32_t comm = tally->by & BY_COMM ? world_comm(tally->world, ev->pid, ev->tid) : 0;
	/* A task without a name goes by its number. */
	bool by_pid = tally->by & BY_PID || (tally->by & BY_COMM && !comm);
	struct tally_entry entry = {
		.stack = world_stack(tally->world, ev),
		.source = tally->by & BY_SOURCE ? ev->sample.source : 0,
		.comm = comm,
		.pid = by_pid ? ev->pid : 0,
		.tid = tally->by & BY_TID ? ev->tid : 0,
		.cpu = tally->by & BY_CPU ? ev->cpu : 0,
	};
	uint64_t words[] = { (uint64_t)entry.stack << 32 | entry.source,
			     (uint64_t)entry.comm << 32 | entry.cpu,
			     (uint64_t)entry.pid << 32 | entry.tid };
	struct hash_key key = hash_words(words, 3, 0);
	uint32_t *handle = hash_at(&tally->index, key);

	if (!*handle) {
		*handle = (uint32_t)tally->nr + 1;
		GROW(tally->entries, tally->nr + 1, tally->cap);
		tally->entries[tally->nr++] = entry;
	}
	tally->entries[*handle - 1].samples += ev->sample.count;
	tally->entries[*handle - 1].weight += ev->sample.weight;
}

unsigned tally_by_options(const struct options *options)
{
	switch (options->root) {
	case ROOT_COMM:
		return BY_SOURCE | BY_COMM;
	case ROOT_PID:
		return BY_SOURCE | BY_COMM | BY_PID;
	case ROOT_TID:
		return BY_SOURCE | BY_COMM | BY_PID | BY_TID;
	case ROOT_NONE:
		break;
	}
	return BY_SOURCE;
}

bool tally_counts_weight(const struct tally *tally, const struct options *options,
			 enum measure otherwise)
{
	enum measure measure = options->measure ? options->measure : otherwise;

	/* Where the weight has a unit of its own, bytes say, it is what the data is about. */
	if (!options->measure && tally->nr && tally->world->sources[tally->entries[0].source].unit)
		return true;
	return measure == MEASURE_WEIGHT;
}

const char *tally_unit(const struct tally *tally, bool weight)
{
	struct world *world = tally->world;
	uint32_t source = tally->nr ? tally->entries[0].source : 0;

	if (!weight || !source)
		return "samples";
	if (world->sources[source].unit)
		return str_text(world->strings, world->sources[source].unit);
	return str_text(world->strings, source_name(world, source));
}

/* Entries with the same frames under the root stand together. */
static int by_group(const void *va, const void *vb)
{
	const struct tally_entry *a = va, *b = vb;

#define ORDER(field) if (a->field != b->field) return a->field < b->field ? -1 : 1
	ORDER(source);
	ORDER(comm);
	ORDER(pid);
	ORDER(tid);
	ORDER(stack);
#undef ORDER
	return 0;
}

static bool same_group(const struct tally_entry *a, const struct tally_entry *b)
{
	return a->source == b->source && a->comm == b->comm && a->pid == b->pid && a->tid == b->tid;
}

struct growing { /* the tree, and where in it each stack of the group at hand is */
	struct tally *tally;
	struct tree *tree;
	const struct options *options;
	bool several_sources;
	uint32_t *node, *group;
	uint32_t *path; /* scratch: stacks, from a leaf up */
	size_t cap_path;
	uint32_t group_nr;
	uint32_t root;
};

static uint32_t task_name(struct growing *g, const struct tally_entry *entry)
{
	struct strtab *names = g->tree->names;
	const char *comm = str_text(names, entry->comm);
	char text[300];

	if (g->options->root == ROOT_NONE || (!entry->comm && entry->pid == NO_TASK))
		return 0;
	if (g->options->root == ROOT_COMM && entry->comm)
		return entry->comm;
	if (!entry->comm)
		comm = "pid";
	if (g->options->root == ROOT_TID)
		snprintf(text, sizeof(text), "%.200s %" PRIu32 "/%" PRIu32, comm, entry->pid,
			 entry->tid);
	else
		snprintf(text, sizeof(text), "%.200s %" PRIu32, comm, entry->pid);
	return str_intern_z(names, text);
}

static uint32_t add_node(struct growing *g, uint32_t parent, uint32_t name, enum tree_kind kind)
{
	uint32_t known = g->tree->nr, node = tree_child(g->tree, parent, name);

	if (node >= known)
		g->tree->nodes[node].kind = (uint8_t)kind;
	return node;
}

static uint32_t with_line(struct growing *g, const struct symbol *symbol)
{
	struct strtab *names = g->tree->names;
	const char *file = str_text(names, symbol->file), *slash = strrchr(file, '/');
	char text[600];

	if (!g->options->lines || !symbol->file)
		return symbol->name;
	snprintf(text, sizeof(text), "%.400s %.100s:%" PRIu32, str_text(names, symbol->name),
		 slash ? slash + 1 : file, symbol->line);
	return str_intern_z(names, text);
}

static uint32_t add_symbol(struct growing *g, uint32_t parent, uint32_t frame,
			   const struct symbol *symbol)
{
	struct world *world = g->tally->world;
	uint8_t flags = world->frames.all[frame].flags;
	uint32_t known = g->tree->nr, name = with_line(g, symbol);
	uint32_t node = tree_child(g->tree, parent, name);
	struct tree_node *n = &g->tree->nodes[node];

	if (node < known)
		return node;
	n->binary = frame_binary(world, frame);
	n->inlined = symbol->inlined;
	/* Data with names may still tell kernel and user apart. */
	if (!(flags & FRAME_NAMED) || flags & FRAME_KERNEL || n->binary)
		n->kind = flags & FRAME_KERNEL ? TREE_KERNEL : TREE_USER;
	return node;
}

/* A frame is as many nodes as functions were inlined there, the outermost first. */
static uint32_t add_frame(struct growing *g, uint32_t parent, uint32_t frame, bool inverted)
{
	size_t nr;
	/* The symbols may move when names are added, but not while one frame is at work. */
	const struct symbol *symbols = frame_symbols(g->tally->world, frame, &nr);

	if (g->options->no_inline)
		return add_symbol(g, parent, frame, &symbols[nr - 1]);
	for (size_t i = 0; i < nr; i++)
		parent = add_symbol(g, parent, frame, &symbols[inverted ? i : nr - 1 - i]);
	return parent;
}

static uint32_t node_of_stack(struct growing *g, uint32_t stack)
{
	const struct stacks *stacks = &g->tally->world->stacks;
	size_t depth = 0;
	uint32_t node;

	for (; stack && g->group[stack] != g->group_nr; stack = stacks->parent[stack]) {
		GROW(g->path, depth + 1, g->cap_path);
		g->path[depth++] = stack;
	}
	node = stack ? g->node[stack] : g->root;
	while (depth) {
		stack = g->path[--depth];
		node = add_frame(g, node, stacks->frame[stack], false);
		g->node[stack] = node;
		g->group[stack] = g->group_nr;
	}
	return node;
}

/* Merged by leaf, callers come after their callees and the task comes last. */
static uint32_t node_inverted(struct growing *g, const struct tally_entry *entry, uint32_t task)
{
	const struct stacks *stacks = &g->tally->world->stacks;
	uint32_t node = g->root;

	for (uint32_t stack = entry->stack; stack; stack = stacks->parent[stack])
		node = add_frame(g, node, stacks->frame[stack], true);
	return task ? add_node(g, node, task, TREE_TASK) : node;
}

static void begin_group(struct growing *g, const struct tally_entry *entry, uint32_t task)
{
	g->group_nr++;
	g->root = 0;
	if (g->several_sources)
		g->root = add_node(g, g->root, source_name(g->tally->world, entry->source),
				   TREE_TASK);
	if (task && !g->options->inverted)
		g->root = add_node(g, g->root, task, TREE_TASK);
}

void tally_tree(struct tally *tally, struct tree *tree, const struct options *options, bool weight,
		bool before)
{
	size_t nr_stacks = tally->world->stacks.nr;
	struct growing g = {
		.tally = tally,
		.tree = tree,
		.options = options,
		.node = xcalloc(nr_stacks, sizeof(uint32_t)),
		.group = xcalloc(nr_stacks, sizeof(uint32_t)),
	};
	uint32_t task = 0;

	if (tally->nr)
		qsort(tally->entries, tally->nr, sizeof(*tally->entries), by_group);
	/* The order has changed, and with it what the index says. */
	hash_release(&tally->index);
	g.several_sources = tally->nr &&
			    tally->entries[0].source != tally->entries[tally->nr - 1].source;
	for (size_t i = 0; i < tally->nr; i++) {
		const struct tally_entry *entry = &tally->entries[i];
		uint64_t value = weight ? entry->weight : entry->samples;
		uint32_t node;

		if (!i || !same_group(entry, entry - 1)) {
			task = task_name(&g, entry);
			begin_group(&g, entry, task);
		}
		node = options->inverted ? node_inverted(&g, entry, task)
					 : node_of_stack(&g, entry->stack);
		if (before)
			tree->nodes[node].before_self += value;
		else
			tree->nodes[node].self += value;
	}
	free(g.node);
	free(g.group);
	free(g.path);
}
