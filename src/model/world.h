/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * world: the state of the recorded machine at this point of the event stream: tasks and their
 * names, maps, sources, and the tables of frames and stacks. Handles are uint32_t, 0 means none,
 * and stay valid; pointers into tables do not.
 */
#ifndef KSCOPE_MODEL_WORLD_H
#define KSCOPE_MODEL_WORLD_H

#include "model/event.h"
#include "model/frame.h"
#include "model/image.h"
#include "model/space.h"
#include "model/stack.h"
#include "model/strtab.h"

struct source {
	uint32_t name, unit; /* handles */
	uint32_t type;
	uint64_t config, period;
	bool freq, branches, raw;
	uint64_t branch_type; /* what all inputs have in common */
	unsigned lacks;	      /* enum source_lacks */
};

struct task {
	uint32_t pid, tid;
	uint32_t comm; /* handle, 0 if unknown */
};

struct fact { /* handles */
	uint32_t key, value;
};

struct world {
	struct strtab *strings; /* borrowed: several worlds may share one */
	struct images images;
	struct frames frames;
	struct stacks stacks;

	struct space *spaces; /* [0] none, [1] the kernel, [2] guests, then one per process */
	size_t nr_spaces, cap_spaces;
	struct hash space_by_pid;
	uint32_t version; /* changes whenever any of them does */

	/*
	 * Processes that have ended keep their maps for a while, because samples of their last
	 * moments come after the exit. A ring, or memory would grow with the number of processes.
	 */
	struct ended {
		uint32_t space, version; /* version: at exit; if it changed, the pid was reused */
	} * ended;
	size_t nr_ended; /* in total */

	struct task *tasks; /* [0] none */
	size_t nr_tasks, cap_tasks;
	struct hash task_by_id;

	struct source *sources; /* [0] none */
	size_t nr_sources, cap_sources;
	struct hash source_by_name, source_by_id; /* by id: (input, the reader's id) */
	struct {
		uint32_t input, id, handle;
	} last_source; /* of the last sample: most samples have the source of the previous one */

	struct fact *facts;
	size_t nr_facts, cap_facts;

	struct hash function_index; /* (image, address) to functions */
	uint64_t *functions;	    /* distance of an address from its function's start; [0] none */
	size_t nr_functions, cap_functions;

	uint64_t *scratch; /* context of each address in the current chain */
	size_t cap_scratch;
};

/* The calls that are inlined at an address, outermost first. */
struct inlines_at {
	struct inlined_call {
		uint32_t frame; /* has the name, but no address */
		uint32_t image; /* with `id`, no other call has it */
		uint64_t id;
		uint64_t start; /* of its code, or of a part of it */
	} all[SYM_MAX_INLINE];
	size_t nr;
	uint64_t function; /* identifies the function around them, in its image; 0: unknown */
	uint64_t until;	   /* they are the same up to there */
};

#define SPACE_KERNEL 1
#define SPACE_GUEST 2 /* all virtual machines: the data rarely tells them apart */
#define SPACES_FIXED 3

void world_init(struct world *world, struct strtab *strings, const struct image_search *where);
void world_release(struct world *world);

/*
 * Updates the world with an event. Replaces the reader's source id, in a source or a sample, with
 * the world's handle. The caller must split maps of whole images first: see world_segment().
 */
void world_apply(struct world *world, struct event *ev);

/*
 * The nth executable segment of a `whole` map as a map; false after the last. An image that cannot
 * be read yields one map over all user addresses, so that at least the binary's name is shown.
 */
bool world_segment(struct world *world, const struct event *whole, size_t n, struct event *ev);

uint32_t world_stack(struct world *world, const struct event *sample);
/* The frame of one address in the space of the event's task. flags: FRAME_RETURN, FRAME_FUNCTION. */
uint32_t world_frame(struct world *world, const struct event *ev, uint64_t context, uint64_t ip,
		     uint8_t flags);
/* The handle of the source that events of this input refer to by `id`; 0: unknown. */
uint32_t world_source(struct world *world, uint32_t input, uint32_t id);
uint32_t world_comm(const struct world *world, uint32_t pid, uint32_t tid); /* handle or 0 */
/* The map at an address of a process; NULL: none. Valid until the world changes. */
const struct map *world_map(const struct world *world, uint32_t pid, uint64_t addr);
/* The start of the function around an address of a process or of the kernel; 0: unknown. */
uint64_t world_function(struct world *world, uint32_t pid, uint64_t context, uint64_t addr);
/* The inlined calls at an address of a process or of the kernel. */
void world_inlines(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		   struct inlines_at *out);
/* How many instructions begin between two addresses, see symfile_instructions(); 0: unknown. */
uint64_t world_instructions(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
			    uint64_t end);
/* Changes whenever the maps of a process or of the kernel do. */
uint32_t world_maps(struct world *world, uint32_t pid, uint64_t context);
/* The image at an address of a process or of the kernel, and the address in its ELF; 0: none, or it was not found. */
uint32_t world_image(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		     uint64_t *vaddr);
/* The code from an address of a process or of the kernel on, as far as one map goes; bytes NULL: unknown. */
void world_code(struct world *world, uint32_t pid, uint64_t context, uint64_t addr,
		struct insn_code *code);
const char *world_fact(const struct world *world, const char *key); /* NULL if unknown */
/* As printed by uname -m; "" if unknown. */
const char *world_arch(const struct world *world);

/* The functions at a frame, innermost first; at least one. Valid until the next call. */
const struct symbol *frame_symbols(struct world *world, uint32_t frame, size_t *nr);
uint32_t frame_binary(const struct world *world, uint32_t frame); /* the name's handle, or 0 */
/* The frame of the start of the function around a frame; if that is unknown, the frame itself. */
uint32_t frame_function(struct world *world, uint32_t frame);

#endif
