// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_reader: feeds the fuzzer's bytes to one reader (-DREADER=read_...), and its events to the
 * world, the tracker of calls and the dump writer.
 */

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "format.h"
#include "model/world.h"
#include "pass/calls.h"

extern const struct reader_ops READER;
extern const struct writer_ops write_dump;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_EVENTS 200000 /* more from such a short input is an endless loop */

static void take(struct writer *w, struct calls *calls, struct event *ev)
{
	if (ev->kind == EVENT_MAP && ev->map.whole)
		return;
	world_apply(w->world, ev);
	if (ev->kind == EVENT_SAMPLE)
		world_stack(w->world, ev);
	if (ev->kind == EVENT_BRANCH)
		calls_add(calls, ev);
	w->ops->put(w, ev);
}

static void drain(struct reader *r, struct writer *w, struct calls *calls)
{
	struct event ev, *run = NULL;
	size_t nr = 0;

	for (;;) {
		memset(&ev, 0, sizeof(ev));
		ev.time = NO_TIME;
		ev.cpu = NO_CPU;
		ev.pid = ev.tid = NO_TASK;
		if (r->ops->next(r, &ev) <= 0)
			break;
		take(w, calls, &ev);
		for (size_t n = r->ops->run ? r->ops->run(r, &run) : 0; n; n--, nr++)
			take(w, calls, run++);
		if (++nr > MAX_EVENTS)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct options options;
	static const struct image_search nowhere;
	struct strtab strings;
	struct world world;
	struct err err = { 0 };
	struct calls calls;
	struct out out;
	struct in in;
	struct reader r = { .ops = &READER,
			    .options = &options,
			    .in = &in,
			    .frames = &world.frames,
			    .library = &world.images.library };
	struct writer w = { .ops = &write_dump, .world = &world, .out = &out };

	log_level = -1;
	calls_init(&calls);
	strtab_init(&strings);
	world_init(&world, &strings, &nowhere);
	in_open_memory(&in, "fuzz", data, size);
	r.priv = xcalloc(1, r.ops->priv_size);
	w.priv = xcalloc(1, w.ops->priv_size);
	r.ops->probe(data, size < 4096 ? size : 4096);
	if (out_open(&out, "/dev/null", false, &err) == 0 && (!r.ops->open || r.ops->open(&r) == 0))
		drain(&r, &w, &calls);
	if (r.ops->close)
		r.ops->close(&r);
	w.ops->close(&w);
	out_abandon(&out);
	free(r.priv);
	free(w.priv);
	in_close(&in);
	world_release(&world);
	strtab_release(&strings);
	calls_release(&calls);
	return 0;
}
