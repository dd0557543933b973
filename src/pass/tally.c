// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/source.h"

static const char *const roots[] = { "comm", "pid", "tid", "none", NULL };

/* clang-format off: tables are read by the row. */
const struct option_table count_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "samples", 0, NULL, "count samples (default for flame graphs and folded stacks)",
		  OPTION_VALUE(struct tally_options, measure, MEASURE_SAMPLES) },
		{ "weight", 0, NULL,
		  "sum the weights of samples, such as cycles (default for report)",
		  OPTION_VALUE(struct tally_options, measure, MEASURE_WEIGHT) },
		{ "lines", 0, NULL, "add the source line to function names",
		  OPTION_FLAG(struct tally_options, lines) },
		{ 0 },
	},
};

const struct option_table measure_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "samples", 0, NULL, "count samples",
		  OPTION_VALUE(struct tally_options, measure, MEASURE_SAMPLES) },
		{ "weight", 0, NULL, "sum the weights of samples, such as cycles (default)",
		  OPTION_VALUE(struct tally_options, measure, MEASURE_WEIGHT) },
		{ 0 },
	},
};

const struct option_table no_inline_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "no-inline", 0, NULL, "omit inlined functions",
		  OPTION_FLAG(struct tally_options, no_inline) },
		{ 0 },
	},
};

const struct option_table tree_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "root", 0, "KIND", "show comm (default), pid, tid or none as outermost frame",
		  OPTION_WORD(struct tally_options, root, roots) },
		{ "inverted", 0, NULL, "merge stacks from the leaf, to show callers",
		  OPTION_FLAG(struct tally_options, inverted) },
		{ 0 },
	},
};
/* clang-format on */

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

size_t tally_add_entry(struct tally *tally, const struct tally_entry *entry)
{
	uint64_t words[] = { (uint64_t)entry->stack << 32 | entry->source,
			     (uint64_t)entry->comm << 32 | entry->cpu,
			     (uint64_t)entry->pid << 32 | entry->tid };
	struct hash_key key = hash_words(words, 3, 0);
	uint32_t *handle = hash_at(&tally->index, key);

	if (*handle) {
		tally->entries[*handle - 1].samples += entry->samples;
		tally->entries[*handle - 1].weight += entry->weight;
		return *handle - 1;
	}
	*handle = (uint32_t)tally->nr + 1;
	GROW(tally->entries, tally->nr + 1, tally->cap);
	tally->entries[tally->nr++] = *entry;
	return tally->nr - 1;
}

size_t tally_add(struct tally *tally, const struct event *ev)
{
	uint32_t comm = tally->by & BY_COMM ? world_comm(tally->world, ev->pid, ev->tid) : 0;
	/* Tasks without a name are distinguished by pid. */
	bool by_pid = tally->by & BY_PID || (tally->by & BY_COMM && !comm);
	struct tally_entry entry = {
		.stack = world_stack(tally->world, ev),
		.source = tally->by & BY_SOURCE ? ev->sample.source : 0,
		.comm = comm,
		.pid = by_pid ? ev->pid : 0,
		.tid = tally->by & BY_TID ? ev->tid : 0,
		.cpu = tally->by & BY_CPU ? ev->cpu : 0,
		.samples = ev->sample.count,
		.weight = ev->sample.weight,
	};

	return tally_add_entry(tally, &entry);
}

unsigned tally_by_options(const struct tally_options *options)
{
	switch (options->root) {
	case ROOT_COMM: return BY_SOURCE | BY_COMM;
	case ROOT_PID: return BY_SOURCE | BY_COMM | BY_PID;
	case ROOT_TID: return BY_SOURCE | BY_COMM | BY_PID | BY_TID;
	case ROOT_NONE: break;
	}
	return BY_SOURCE;
}

bool tally_counts_weight(const struct tally *tally, const struct tally_options *options,
			 enum measure otherwise)
{
	enum measure measure = options->measure ? options->measure : otherwise;
	bool has_unit = tally->nr && tally->world->sources[tally->entries[0].source].unit;

	/* If the weight has a unit, such as bytes, it is what the data measures. */
	if (!options->measure && has_unit)
		return true;
	/* Data may have no weights, such as perf.data of Akaros's kprof2perf. */
	return measure == MEASURE_WEIGHT && (has_unit || tally_total(tally, true));
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

/* Groups the entries that have the same frames under the root. */
static int by_group(const void *va, const void *vb)
{
	const struct tally_entry *a = va, *b = vb;

#define ORDER(field)              \
	if (a->field != b->field) \
	return a->field < b->field ? -1 : 1
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

/* A stack in the current group. */
struct grown {
	uint64_t total;
	uint32_t child;	  /* one of its callees in the group; 0: none */
	uint32_t sibling; /* next with the same caller; of the last: itself; 0: not in the group */
};

struct bud { /* a stack, and its node in the tree */
	uint32_t stack, node;
};

struct buds {
	struct bud *all;
	size_t nr, cap;
};

/* A tree while it is built, group by group. A group is one task of one source. */
struct growing {
	struct tally *tally;
	struct tree *tree;
	const struct tally_view *view;
	const struct tally_options *options;
	bool several_sources;
	uint32_t root;
	struct grown *at; /* by stack; zero outside of the current group */
	struct buds level, next;
};

static uint32_t task_name(struct growing *g, const struct tally_entry *entry)
{
	struct strtab *names = g->tree->names;
	/* A name that became known after the samples is better than none. */
	uint32_t handle =
		entry->comm ? entry->comm : world_comm(g->tally->world, entry->pid, entry->pid);
	const char *comm = handle ? str_text(names, handle) : "pid";
	char text[300];

	if (g->options->root == ROOT_NONE || (!handle && entry->pid == NO_TASK))
		return 0;
	if (g->options->root == ROOT_COMM && handle)
		return handle;
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
	/* Data with names may still distinguish kernel and user code. */
	if (!(flags & FRAME_NAMED) || flags & FRAME_KERNEL || n->binary)
		n->kind = flags & FRAME_KERNEL ? TREE_KERNEL : TREE_USER;
	return node;
}

/* Adds a node for each function at the frame: inlined ones below the function around them. */
static uint32_t add_frame(struct growing *g, uint32_t parent, uint32_t frame, bool inverted)
{
	size_t nr;
	/* Valid until the next frame_symbols(). */
	const struct symbol *symbols = frame_symbols(g->tally->world, frame, &nr);

	if (g->options->no_inline)
		return add_symbol(g, parent, frame, &symbols[nr - 1]);
	for (size_t i = 0; i < nr; i++)
		parent = add_symbol(g, parent, frame, &symbols[inverted ? i : nr - 1 - i]);
	return parent;
}

static uint64_t value_of(const struct growing *g, const struct tally_entry *entry)
{
	return g->view->weight ? entry->weight : entry->samples;
}

static void add_value(const struct growing *g, uint32_t node, uint64_t value)
{
	if (g->view->before)
		g->tree->nodes[node].before_self += value;
	else
		g->tree->nodes[node].self += value;
}

/* Adds a value to a stack and its callers, and adds them to the group. */
static void note_stack(struct growing *g, uint32_t stack, uint64_t value)
{
	const struct stack *all = g->tally->world->stacks.all;

	g->at[0].total += value;
	for (uint32_t s = stack; s; s = all[s].parent) {
		struct grown *at = &g->at[s], *caller = &g->at[all[s].parent];

		at->total += value;
		if (at->sibling)
			continue;
		at->sibling = caller->child ? caller->child : s;
		caller->child = s;
	}
}

/* The next stack with the same caller; 0: none. */
static uint32_t next_sibling(const struct growing *g, uint32_t stack)
{
	return g->at[stack].sibling == stack ? 0 : g->at[stack].sibling;
}

static void add_bud(struct buds *buds, uint32_t stack, uint32_t node)
{
	GROW(buds->all, buds->nr + 1, buds->cap);
	buds->all[buds->nr++] = (struct bud){ stack, node };
}

/* Adds nodes for the callees of a stack; the rest of its total is its own. */
static void grow_calls(struct growing *g, struct bud bud)
{
	const struct stack *all = g->tally->world->stacks.all;
	uint64_t own = g->at[bud.stack].total;

	for (uint32_t s = g->at[bud.stack].child; s; s = next_sibling(g, s)) {
		uint32_t node = add_frame(g, bud.node, all[s].frame, false);

		g->tree->nodes[node].total += g->at[s].total;
		own -= g->at[s].total;
		add_bud(&g->next, s, node);
	}
	add_value(g, bud.node, own);
}

/*
 * Builds the tree level by level. Several stacks may be one node: only when all of them are added
 * is it known whether the node is wide enough to look into.
 */
static void grow_levels(struct growing *g)
{
	g->level.nr = 0;
	add_bud(&g->level, 0, g->root);
	while (g->level.nr) {
		g->next.nr = 0;
		for (size_t i = 0; i < g->level.nr; i++)
			grow_calls(g, g->level.all[i]);
		g->level.nr = 0;
		for (size_t i = 0; i < g->next.nr; i++) {
			struct bud bud = g->next.all[i];

			if (g->tree->nodes[bud.node].total < g->view->min)
				add_value(g, bud.node, g->at[bud.stack].total);
			else
				add_bud(&g->level, bud.stack, bud.node);
		}
	}
}

/* Merged by leaf, callers come after their callees and the task comes last. */
static uint32_t node_inverted(struct growing *g, const struct tally_entry *entry, uint32_t task)
{
	const struct stacks *stacks = &g->tally->world->stacks;
	uint32_t node = g->root;

	for (uint32_t stack = entry->stack; stack; stack = stacks->all[stack].parent)
		node = add_frame(g, node, stacks->all[stack].frame, true);
	return task ? add_node(g, node, task, TREE_TASK) : node;
}

uint64_t tally_total(const struct tally *tally, bool weight)
{
	uint64_t total = 0;

	for (size_t i = 0; i < tally->nr; i++)
		total += weight ? tally->entries[i].weight : tally->entries[i].samples;
	return total;
}

static void grow_group(struct growing *g, const struct tally_entry *first, size_t nr)
{
	uint32_t task = task_name(g, first);

	g->root = 0;
	if (g->several_sources)
		g->root = add_node(g, g->root, source_name(g->tally->world, first->source),
				   TREE_TASK);
	if (g->options->inverted) {
		for (size_t i = 0; i < nr; i++)
			add_value(g, node_inverted(g, &first[i], task), value_of(g, &first[i]));
		return;
	}
	if (task)
		g->root = add_node(g, g->root, task, TREE_TASK);
	/* In reverse, because note_stack() puts the last stack before its siblings. */
	for (size_t i = nr; i-- > 0;)
		note_stack(g, first[i].stack, value_of(g, &first[i]));
	grow_levels(g);
}

static void forget_group(struct growing *g, const struct tally_entry *first, size_t nr)
{
	const struct stack *all = g->tally->world->stacks.all;

	g->at[0] = (struct grown){ 0 };
	for (size_t i = 0; i < nr; i++) {
		for (uint32_t s = first[i].stack; g->at[s].sibling; s = all[s].parent)
			g->at[s] = (struct grown){ 0 };
	}
}

void tally_tree(struct tally *tally, struct tree *tree, const struct tally_view *view)
{
	struct growing g = {
		.tally = tally,
		.tree = tree,
		.view = view,
		.options = view->options,
		.at = xcalloc(tally->world->stacks.nr, sizeof(*g.at)),
	};
	const struct tally_entry *entries = tally->entries;

	if (tally->nr)
		qsort(tally->entries, tally->nr, sizeof(*tally->entries), by_group);
	/* Sorting invalidates the index. */
	hash_release(&tally->index);
	g.several_sources = tally->nr && entries[0].source != entries[tally->nr - 1].source;
	for (size_t start = 0, end; start < tally->nr; start = end) {
		for (end = start + 1; end < tally->nr; end++) {
			if (!same_group(&entries[start], &entries[end]))
				break;
		}
		grow_group(&g, &entries[start], end - start);
		if (end < tally->nr)
			forget_group(&g, &entries[start], end - start);
	}
	free(g.at);
	free(g.level.all);
	free(g.next.all);
}
