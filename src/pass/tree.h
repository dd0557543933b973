/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree: the call tree of names that folded text, flame graphs and reports show. Addresses are
 * already resolved; inlined functions are separate nodes. Node 0 is the root. A parent's id is
 * always smaller than its children's.
 */
#ifndef KSCOPE_PASS_TREE_H
#define KSCOPE_PASS_TREE_H

#include <stdint.h>

#include "base/hash.h"
#include "model/strtab.h"

enum tree_kind { TREE_PLAIN, TREE_USER, TREE_KERNEL, TREE_TASK, TREE_KINDS };

struct tree_node {
	uint32_t parent;
	uint32_t name;	 /* in tree.names */
	uint32_t binary; /* in tree.names: the binary's name, 0 if unknown */
	uint8_t kind;	 /* enum tree_kind */
	uint8_t inlined;
	uint64_t self, total;		    /* totals are valid after tree_finish() */
	uint64_t before_self, before_total; /* the other side of a differential tree */
	uint32_t child, sibling;	    /* 0: none; valid after tree_finish() */
};

struct tree {
	struct strtab *names; /* borrowed */
	struct tree_node *nodes;
	uint32_t nr;
	uint32_t depth; /* of the deepest node; the root has 0; valid after tree_finish() */
	size_t cap;
	struct hash index; /* from (parent, name) to the node, except for a parent's first child */
};

void tree_init(struct tree *tree, struct strtab *names);
void tree_release(struct tree *tree);
/* Finds or adds the child with this name. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint32_t name);
/*
 * Sums up totals and links the children of each node, in bytewise order of their names. Do not call
 * tree_child() after it.
 */
void tree_finish(struct tree *tree);

#endif
