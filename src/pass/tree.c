// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/tree.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Below this many siblings, insertion is faster than qsort() and its calls. */
#define FEW 24

struct sibling {
	uint64_t head; /* the name's first bytes, so that most comparisons need no more */
	uint32_t node;
};

struct siblings {
	const struct tree *tree;
	struct sibling *list;
	size_t nr, cap;
};

void tree_init(struct tree *tree, struct strtab *names)
{
	memset(tree, 0, sizeof(*tree));
	tree->names = names;
	GROW(tree->nodes, 1, tree->cap);
	memset(&tree->nodes[0], 0, sizeof(tree->nodes[0]));
	tree->nr = 1;
}

void tree_release(struct tree *tree)
{
	free(tree->nodes);
	hash_release(&tree->index);
	memset(tree, 0, sizeof(*tree));
}

static uint32_t add_node(struct tree *tree, uint32_t parent, uint32_t name)
{
	GROW(tree->nodes, (size_t)tree->nr + 1, tree->cap);
	tree->nodes[tree->nr] = (struct tree_node){ .parent = parent, .name = name };
	return tree->nr++;
}

/*
 * Until tree_finish(), `child` is the child that came first, and only the others are in the index.
 * Most nodes have one child, so this keeps the index small.
 */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t name)
{
	uint32_t first = tree->nodes[parent].child;
	uint32_t *place;

	if (!first) {
		first = add_node(tree, parent, name);
		tree->nodes[parent].child = first;
		return first;
	}
	if (tree->nodes[first].name == name)
		return first;
	place = hash_at(&tree->index, (struct hash_key){ parent, name });
	if (!*place)
		*place = add_node(tree, parent, name);
	return *place;
}

/* Weights come from the input: saturate instead of wrapping around. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* A parent's id is smaller, so going backwards, each child is complete before it is added. */
static void sum_and_link(struct tree *tree)
{
	struct tree_node *nodes = tree->nodes;

	for (uint32_t i = 0; i < tree->nr; i++) {
		nodes[i].total = nodes[i].self;
		nodes[i].before_total = nodes[i].before_self;
		nodes[i].child = nodes[i].sibling = 0;
	}
	for (uint32_t i = tree->nr; i-- > 1;) {
		struct tree_node *parent = &nodes[nodes[i].parent];

		parent->total = add(parent->total, nodes[i].total);
		parent->before_total = add(parent->before_total, nodes[i].before_total);
		nodes[i].sibling = parent->child;
		parent->child = i;
	}
}

static void measure_depth(struct tree *tree)
{
	uint32_t *depth = xmalloc((size_t)tree->nr * sizeof(*depth));

	depth[0] = tree->depth = 0;
	for (uint32_t i = 1; i < tree->nr; i++) {
		depth[i] = depth[tree->nodes[i].parent] + 1;
		if (depth[i] > tree->depth)
			tree->depth = depth[i];
	}
	free(depth);
}

static uint64_t head_of(const char *text, size_t len)
{
	uint64_t head = 0;

	memcpy(&head, text, len < sizeof(head) ? len : sizeof(head));
	return be64toh(head);
}

static int compare(const void *va, const void *vb, void *vtree)
{
	const struct sibling *a = va, *b = vb;
	const struct tree *tree = vtree;
	uint32_t name_a = tree->nodes[a->node].name, name_b = tree->nodes[b->node].name;
	size_t len_a, len_b;
	int order;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	len_a = str_len(tree->names, name_a);
	len_b = str_len(tree->names, name_b);
	order = memcmp(str_text(tree->names, name_a), str_text(tree->names, name_b),
		       len_a < len_b ? len_a : len_b);
	if (order)
		return order;
	return len_a < len_b ? -1 : len_a > len_b;
}

static void insertion_sort(struct siblings *all)
{
	for (size_t i = 1; i < all->nr; i++) {
		struct sibling moving = all->list[i];
		size_t at = i;

		for (; at && compare(&moving, &all->list[at - 1], (void *)all->tree) < 0; at--)
			all->list[at] = all->list[at - 1];
		all->list[at] = moving;
	}
}

static void gather(struct siblings *all, uint32_t first)
{
	const struct tree *tree = all->tree;

	all->nr = 0;
	for (uint32_t i = first; i; i = tree->nodes[i].sibling) {
		uint32_t name = tree->nodes[i].name;

		GROW(all->list, all->nr + 1, all->cap);
		all->list[all->nr++] = (struct sibling){
			head_of(str_text(tree->names, name), str_len(tree->names, name)), i
		};
	}
}

static void sort_children(struct tree *tree, uint32_t parent, struct siblings *all)
{
	gather(all, tree->nodes[parent].child);
	if (all->nr <= FEW)
		insertion_sort(all);
	else
		qsort_r(all->list, all->nr, sizeof(*all->list), compare, tree);
	tree->nodes[parent].child = all->list[0].node;
	for (size_t i = 0; i < all->nr; i++)
		tree->nodes[all->list[i].node].sibling =
			i + 1 < all->nr ? all->list[i + 1].node : 0;
}

void tree_finish(struct tree *tree)
{
	struct siblings all = { .tree = tree };

	sum_and_link(tree);
	measure_depth(tree);
	for (uint32_t i = 0; i < tree->nr; i++) {
		uint32_t child = tree->nodes[i].child;

		if (child && tree->nodes[child].sibling)
			sort_children(tree, i, &all);
	}
	free(all.list);
}
