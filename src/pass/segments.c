// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * segments: replaces the map of a whole image by one map for each of its executable segments. Data
 * that only names the binary of each task (seL4) comes with such maps.
 */
#include <inttypes.h>

#include "base/hash.h"
#include "base/log.h"
#include "model/world.h"
#include "pass/merge.h"
#include "stage.h"

struct segments {
	struct hash binary_by_pid; /* (pid, 0): the binary, (pid, 1): the input that has it, + 1 */
};

/* Two recordings may use the same pid for different binaries; then they cannot be merged. */
static int check_pid(struct stage *s, const struct event *whole)
{
	struct segments *segments = s->priv;
	struct chain *chain = s->chain;
	struct strtab *strings = chain->world->strings;
	const struct merge_input *inputs = chain->merge->inputs;
	uint32_t path = str_intern_z(strings, whole->map.path);
	uint32_t *known = hash_at(&segments->binary_by_pid, (struct hash_key){ whole->pid, 0 });
	uint32_t before = *known, *input;

	*known = path;
	input = hash_at(&segments->binary_by_pid, (struct hash_key){ whole->pid, 1 });
	if (before && before != path && *input != whole->input + 1)
		return err_set(&chain->err, ERR_INPUT,
			       "pid %" PRIu32 " is %s in %s, but %s in %s: convert them separately",
			       whole->pid, str_text(strings, before), inputs[*input - 1].in.path,
			       whole->map.path, inputs[whole->input].in.path);
	*input = whole->input + 1;
	return 0;
}

static void warn_of_missing(const struct chain *chain, const struct event *whole)
{
	const char *folder = chain->options->build_dir;

	if (folder)
		log_warn("no usable binary %s for pid %" PRIu32
			 " in %s: its samples have no names; use --elf %" PRIu32 "=FILE",
			 whole->map.path, whole->pid, folder, whole->pid);
	else
		log_warn("no usable binary %s for pid %" PRIu32
			 ": its samples have no names; use --build-dir DIR",
			 whole->map.path, whole->pid);
}

static int segments_push(struct stage *s, struct event *ev)
{
	struct event segment;

	if (!ev->map.whole)
		return stage_emit(s, ev);
	if (check_pid(s, ev) < 0)
		return -1;
	for (size_t n = 0; world_segment(s->chain->world, ev, n, &segment); n++) {
		if (segment.map.as_linked) {
			warn_of_missing(s->chain, ev);
			s->chain->partial = true;
		}
		if (stage_emit(s, &segment) < 0)
			return -1;
	}
	return 0;
}

static void segments_close(struct stage *s)
{
	struct segments *segments = s->priv;

	hash_release(&segments->binary_by_pid);
}

const struct stage_ops stage_segments = {
	.name = "segments",
	.takes = EVENT_BIT(EVENT_MAP),
	.priv_size = sizeof(struct segments),
	.push = segments_push,
	.close = segments_close,
};
