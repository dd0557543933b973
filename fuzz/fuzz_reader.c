// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any reader on any bytes: -DREADER=read_perfdata names it. It must come to its end without
 * a crash, a leak, a hang, or an event that points outside of what was allocated.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "format.h"
#include "model/frame.h"
#include "model/strtab.h"

extern const struct reader_ops READER;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void touch(const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		sink += bytes[i];
}

static void touch_text(const char *text)
{
	if (text)
		touch(text, strlen(text));
}

static void touch_sample(const struct event_sample *sample)
{
	touch(sample->ips, sample->nr * sizeof(*sample->ips));
	if (sample->branches)
		touch(sample->branches, sample->nr_branches * sizeof(*sample->branches));
	if (!sample->user)
		return;
	touch(sample->user->regs,
	      (size_t)__builtin_popcountll(sample->user->mask) * sizeof(*sample->user->regs));
	touch(sample->user->stack, sample->user->stack_len);
}

static void touch_event(const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_META:
		touch_text(ev->meta.key);
		touch_text(ev->meta.value);
		break;
	case EVENT_SOURCE:
		touch_text(ev->source.name);
		touch_text(ev->source.unit);
		break;
	case EVENT_COMM:
		touch_text(ev->comm.comm);
		break;
	case EVENT_MAP:
		touch_text(ev->map.path);
		touch_text(ev->map.anchor);
		touch(ev->map.build_id, ev->map.build_id_len);
		break;
	case EVENT_SAMPLE:
		touch_sample(&ev->sample);
		break;
	case EVENT_SYMBOL:
		touch_text(ev->symbol.name);
		break;
	case EVENT_ALLOC:
		touch_text(ev->alloc.allocator);
		touch(ev->alloc.ips, ev->alloc.nr * sizeof(*ev->alloc.ips));
		break;
	case EVENT_AUX:
		if (ev->aux.data)
			touch(ev->aux.data, ev->aux.len);
		break;
	default:
		break;
	}
}

static struct event blank_event(void)
{
	struct event ev;

	memset(&ev, 0, sizeof(ev));
	ev.time = NO_TIME;
	ev.cpu = NO_CPU;
	ev.pid = ev.tid = NO_TASK;
	return ev;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct options options = { 0 };
	struct strtab strings;
	struct frames frames;
	struct in in;
	struct reader r = { .ops = &READER, .options = &options, .in = &in, .frames = &frames };
	struct event ev;

	log_level = -1;
	strtab_init(&strings);
	frames_init(&frames, &strings);
	in_open_memory(&in, "fuzz", data, size);
	r.priv = xcalloc(1, READER.priv_size);
	sink += (uint64_t)READER.probe(data, size);
	if (READER.open(&r) == 0) {
		for (ev = blank_event(); READER.next(&r, &ev) > 0; ev = blank_event())
			touch_event(&ev);
	}
	READER.close(&r);
	free(r.priv);
	in_close(&in);
	frames_release(&frames);
	strtab_release(&strings);
	return 0;
}
