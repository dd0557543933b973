// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Changes split the tree and join the parts again. These functions take over the references they are passed,
 * and return one. They recurse as deep as the tree is high, which is less than 1.5 times the logarithm of
 * its size, whatever the order of changes.
 */
#include "model/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct map_node *share(struct map_node *node)
{
	if (node)
		node->refs++;
	return node;
}

static void drop(struct map_node *node)
{
	if (!node || --node->refs)
		return;
	drop(node->left);
	drop(node->right);
	free(node);
}

static struct map_node *new_node(struct map map)
{
	struct map_node *node = xmalloc(sizeof(*node));

	*node = (struct map_node){ .map = map, .refs = 1, .height = 1 };
	return node;
}

/* A node that may be changed: the same one unless others use it. */
static struct map_node *own(struct map_node *node)
{
	struct map_node *copy;

	if (node->refs == 1)
		return node;
	copy = new_node(node->map);
	copy->left = share(node->left);
	copy->right = share(node->right);
	copy->height = node->height;
	node->refs--;
	return copy;
}

static uint32_t height(const struct map_node *node)
{
	return node ? node->height : 0;
}

static struct map_node *link_both(struct map_node *node, struct map_node *left,
				  struct map_node *right)
{
	node->left = left;
	node->right = right;
	node->height = 1 + (height(left) > height(right) ? height(left) : height(right));
	return node;
}

/* The right child becomes the root. */
static struct map_node *rotate_left(struct map_node *node)
{
	struct map_node *root = own(node->right);

	return link_both(root, link_both(node, node->left, root->left), root->right);
}

static struct map_node *rotate_right(struct map_node *node)
{
	struct map_node *root = own(node->left);

	return link_both(root, root->left, link_both(node, root->right, node->right));
}

/* Like link_both(), for children whose heights differ by up to 2. */
static struct map_node *balanced(struct map_node *node, struct map_node *left,
				 struct map_node *right)
{
	if (height(left) > height(right) + 1) {
		if (height(left->right) > height(left->left))
			left = rotate_left(own(left));
		return rotate_right(link_both(node, left, right));
	}
	if (height(right) > height(left) + 1) {
		if (height(right->left) > height(right->right))
			right = rotate_right(own(right));
		return rotate_left(link_both(node, left, right));
	}
	return link_both(node, left, right);
}

/* One tree of all of `left`, the map of `middle`, and all of `right`, in the order of addresses. */
static struct map_node *join(struct map_node *left, struct map_node *middle, struct map_node *right)
{
	if (height(left) > height(right) + 1) {
		left = own(left);
		return balanced(left, left->left, join(left->right, middle, right));
	}
	if (height(right) > height(left) + 1) {
		right = own(right);
		return balanced(right, join(left, middle, right->left), right->right);
	}
	return link_both(middle, left, right);
}

/* Maps that start below an address, and the others. */
static void split(struct map_node *node, uint64_t addr, struct map_node **below,
		  struct map_node **from)
{
	struct map_node *part;

	if (!node) {
		*below = *from = NULL;
		return;
	}
	node = own(node);
	if (node->map.start < addr) {
		split(node->right, addr, &part, from);
		*below = join(node->left, node, part);
	} else {
		split(node->left, addr, below, &part);
		*from = join(part, node, node->right);
	}
}

/* Takes the first map out of a tree that is not empty. */
static struct map_node *take_first(struct map_node *node, struct map_node **first)
{
	struct map_node *rest;

	node = own(node);
	if (!node->left) {
		rest = node->right;
		*first = link_both(node, NULL, NULL);
		return rest;
	}
	rest = take_first(node->left, first);
	return balanced(node, rest, node->right);
}

static const struct map *find(const struct map_node *node, uint64_t addr)
{
	while (node && (addr < node->map.start || addr > node->map.last))
		node = addr < node->map.start ? node->left : node->right;
	return node ? &node->map : NULL;
}

/* Makes two maps of one that goes on at an address, so that the second one starts there. */
static struct map_node *cut(struct map_node *root, uint64_t addr)
{
	const struct map *old = find(root, addr);
	struct map_node *below, *whole, *from;
	struct map tail;

	if (!old || old->start == addr)
		return root;
	tail = *old;
	split(root, tail.start, &below, &from);
	split(from, addr, &whole, &from);
	whole->map.last = addr - 1;
	tail.offset += addr - tail.start;
	tail.start = addr;
	return join(join(below, whole, NULL), new_node(tail), from);
}

void space_release(struct space *space)
{
	drop(space->maps);
	memset(space, 0, sizeof(*space));
}

void space_clear(struct space *space)
{
	drop(space->maps);
	space->maps = NULL;
	space->version++;
}

const struct map *space_find(const struct space *space, uint64_t addr)
{
	return find(space->maps, addr);
}

void space_map(struct space *space, struct map map)
{
	struct map_node *below, *old, *above = NULL;

	split(cut(space->maps, map.start), map.start, &below, &old);
	if (map.last < UINT64_MAX)
		split(cut(old, map.last + 1), map.last + 1, &old, &above);
	drop(old);
	space->maps = join(below, new_node(map), above);
	space->version++;
}

void space_unmap(struct space *space, uint64_t start)
{
	const struct map *map = find(space->maps, start);
	struct map_node *below, *old, *above;

	if (!map || map->start != start)
		return;
	split(space->maps, start, &below, &old);
	above = take_first(old, &old);
	drop(old);
	if (above) {
		above = take_first(above, &old);
		space->maps = join(below, old, above);
	} else {
		space->maps = below;
	}
	space->version++;
}

void space_copy(struct space *to, const struct space *from)
{
	struct map_node *maps = share(from->maps);

	drop(to->maps);
	to->maps = maps;
	to->version++;
}
