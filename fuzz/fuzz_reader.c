// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_reader: feeds the fuzzer's bytes to one reader (-DREADER=read_...), and its events to the
 * world, the tracker of calls and the dump writer. Slices of the calls, and those of the samples, go to the
 * writers of timelines: each must end once, and not before it began; where a part of a timeline ends, all have
 * ended. The last byte selects the axis, the time, the length of parts, and the functions between which there are slices;
 * the one before it, whether hardware traces are decoded, whether jumps inside a function count, whether the input comes
 * through a pipe, which is written in two parts, and whether somebody watches it. With -DFOLDER the bytes are the files of a folder: of each its name in a line, its size in a line, and its content; see fuzz/run.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "format.h"
#include "model/world.h"
#include "pass/calls.h"
#include "pass/stretches.h"

extern const struct reader_ops READER;
extern const struct writer_ops write_dump, write_perfetto, write_fxt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOT_DECODED 1 /* bits of the byte before the last one */
#define ALL_BRANCHES 2
#define PIPED 4
#define WATCHED 8
#define MAX_PIPE (1 << 20)
#define MAX_EVENTS 200000 /* more from such a short input is an endless loop */

struct timelines {
	struct writer writers[2];
	struct hash depths; /* the number of open slices, plus 1, by task or cpu */
	uint64_t nr_open;
	struct slices slices;
	/* Of samples: */
	struct world *world;
	struct stretches stretches;
	struct stretch_pace pace;
	uint32_t *stack;
	size_t cap_stack;
};

/* The pipe that the input comes through, and what is not written yet. */
struct feed {
	int fd; /* -1: none, or all is written */
	const uint8_t *rest;
	size_t size;
};

struct fuzz {
	struct calls calls;
	struct timelines of_calls, of_samples;
	struct feed feed;
};

static void check_slice(struct timelines *t, const struct event *ev)
{
	bool masked = ev->slice.kind == SLICE_MASKED;
	bool on_cpu = ev->slice.kind == SLICE_RUN || ev->slice.kind == SLICE_GAP || masked;
	uint64_t id = on_cpu ? ev->cpu : (uint64_t)ev->pid << 32 | ev->tid;
	uint32_t *depth = hash_at(&t->depths, (struct hash_key){ id, (uint64_t)on_cpu + masked });

	if (!*depth)
		*depth = 1;
	if (!ev->slice.leave) {
		++*depth;
		t->nr_open++;
		return;
	}
	if (*depth == 1 || ev->time < ev->slice.since || ev->slice.own > ev->slice.instructions)
		abort();
	--*depth;
	t->nr_open--;
}

static int emit_slice(void *data, struct event *ev)
{
	struct timelines *t = data;

	if (ev->slice.kind == SLICE_SPLIT) {
		if (t->nr_open)
			abort();
		return 0;
	}
	if (ev->slice.kind != SLICE_RATE && ev->slice.kind != SLICE_NOTE)
		check_slice(t, ev);
	else if (ev->time < ev->slice.since)
		abort();
	for (size_t i = 0; i < 2; i++)
		t->writers[i].ops->put(&t->writers[i], ev);
	return 0;
}

static int announce_task(void *data, const struct event *ev, uint32_t frame)
{
	(void)data, (void)ev, (void)frame;
	return 0;
}

static uint32_t frame_at(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	struct event at = { .pid = pid };

	return world_frame(data, &at, context, address, is_return ? FRAME_RETURN : 0);
}

static unsigned gate(const struct slices *slices, uint32_t frame)
{
	(void)slices;
	return (frame % 4 == 1) * GATE_START | (frame % 4 == 2) * GATE_END;
}

/* A choice has two bits each for the axis, the time, the length of parts, and the gate. */
static void choose_options(struct slices *slices, uint8_t choice)
{
	static const uint64_t lengths[] = { 0, 0, 1000, 1000000 };

	if ((choice & 3) == 3)
		slices->axis = AXIS_INSTRUCTIONS;
	if ((choice >> 2 & 3) == 3) {
		slices->from = 1000;
		slices->until = 100000;
	}
	slices->length = lengths[choice >> 4 & 3];
	if (choice >> 6 == 3) {
		slices->gate = gate;
		slices->closed = true;
	}
}

static void open_timelines(struct timelines *t, struct world *world, struct out *out,
			   uint8_t choice)
{
	const struct writer_ops *ops[] = { &write_perfetto, &write_fxt };

	for (size_t i = 0; i < 2; i++) {
		t->writers[i] = (struct writer){ .ops = ops[i], .world = world, .out = out };
		t->writers[i].priv = xcalloc(1, ops[i]->priv_size);
		if (ops[i]->open)
			ops[i]->open(&t->writers[i]);
	}
	t->world = world;
	t->slices = (struct slices){
		.announce = announce_task, .emit = emit_slice, .data = t, .until = UINT64_MAX
	};
	choose_options(&t->slices, choice);
}

static void close_timelines(struct timelines *t)
{
	if (t->nr_open)
		abort();
	for (size_t i = 0; i < 2; i++) {
		t->writers[i].ops->close(&t->writers[i]);
		free(t->writers[i].priv);
	}
	hash_release(&t->depths);
	slices_release(&t->slices);
}

static void open_calls(struct fuzz *fuzz, struct world *world, struct out *out, uint8_t choice)
{
	calls_init(&fuzz->calls);
	open_timelines(&fuzz->of_calls, world, out, choice);
	fuzz->calls.frame = frame_at;
	fuzz->calls.data = world;
	fuzz->calls.slices = &fuzz->of_calls.slices;
}

static void close_calls(struct fuzz *fuzz)
{
	slices_finish(&fuzz->of_calls.slices);
	close_timelines(&fuzz->of_calls);
	calls_release(&fuzz->calls);
}

static size_t frames_of(void *data, uint32_t stack, const uint32_t **frames)
{
	struct timelines *t = data;
	const struct stack *all = t->world->stacks.all;
	size_t nr = 0, i;

	for (uint32_t at = stack; at; at = all[at].parent)
		nr++;
	GROW(t->stack, nr, t->cap_stack);
	i = nr;
	for (uint32_t at = stack; at; at = all[at].parent)
		t->stack[--i] = all[at].frame;
	*frames = t->stack;
	return nr;
}

static void open_samples(struct fuzz *fuzz, struct world *world, struct out *out, uint8_t choice)
{
	struct timelines *t = &fuzz->of_samples;

	open_timelines(t, world, out, choice);
	t->stretches = (struct stretches){
		.slices = &t->slices, .functions = frames_of, .data = t, .max_waiting = 50
	};
}

static void close_samples(struct fuzz *fuzz)
{
	struct timelines *t = &fuzz->of_samples;

	stretches_finish(&t->stretches);
	slices_finish(&t->slices);
	stretches_release(&t->stretches);
	free(t->stack);
	close_timelines(t);
}

/* By the low bits of its weight, a sample is selected or not, and tells its width or not. */
static void take_sample(struct timelines *t, const struct event *ev)
{
	uint64_t weight = ev->sample.weight;

	if (ev->time > INT64_MAX)
		return;
	stretches_add(&t->stretches, &(struct stretch_sample){ .time = ev->time,
							       .width = weight & 1 ? 0 : weight,
							       .pace = &t->pace,
							       .count = 1,
							       .pid = ev->pid,
							       .tid = ev->tid,
							       .cpu = ev->cpu,
							       .stack = world_stack(t->world, ev),
							       .shared = !ev->pid,
							       .here = !(weight & 2),
							       .selected = !(weight & 6) });
}

static void take(struct writer *w, struct fuzz *fuzz, struct event *ev)
{
	if (ev->kind == EVENT_MAP && ev->map.whole)
		return;
	world_apply(w->world, ev);
	if (ev->kind == EVENT_SAMPLE)
		take_sample(&fuzz->of_samples, ev);
	if (ev->kind == EVENT_LOST)
		stretches_lost(&fuzz->of_samples.stretches, ev->cpu, ev->time);
	if (ev->kind == EVENT_BRANCH)
		calls_add(&fuzz->calls, ev);
	if (ev->kind == EVENT_MASK)
		calls_mask(&fuzz->calls, ev);
	if (ev->kind == EVENT_NOTE)
		calls_note(&fuzz->calls, ev);
	w->ops->put(w, ev);
}

/* A byte of a hardware trace may be thousands of branches: these do not count. */
static bool is_read(const struct event *ev)
{
	return !(ev->made_of & EVENT_BIT(EVENT_AUX));
}

static void feed_part(struct feed *feed, size_t size)
{
	if (feed->fd < 0)
		return;
	if (write(feed->fd, feed->rest, size) != (ssize_t)size)
		abort();
	feed->rest += size;
	feed->size -= size;
	if (feed->size)
		return;
	close(feed->fd);
	feed->fd = -1;
}

/* False: there is too much for a pipe that nobody reads. */
static bool open_feed(struct feed *feed, struct in *in, const uint8_t *data, size_t size)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	if (size > MAX_PIPE || fcntl(fds[1], F_SETPIPE_SZ, MAX_PIPE) < (int)size) {
		close(fds[0]);
		close(fds[1]);
		return false;
	}
	*feed = (struct feed){ .fd = fds[1], .rest = data, .size = size };
	in_open_live(in, fds[0], "fuzz");
	return true;
}

/* A reader that may wait gets all of it. */
static void feed_first(struct feed *feed, const struct reader *r)
{
	bool all = !r->ops->live && !r->live_view;

	feed_part(feed, all ? feed->size : feed->size / 2);
	if (feed->fd >= 0 && r->ops->ready && !r->ops->ready(r->in))
		feed_part(feed, feed->size);
}

static void drain(struct reader *r, struct writer *w, struct fuzz *fuzz)
{
	struct event ev, *run = NULL;
	size_t nr = 0;

	for (;;) {
		int ret;

		memset(&ev, 0, sizeof(ev));
		ev.time = NO_TIME;
		ev.cpu = NO_CPU;
		ev.pid = ev.tid = NO_TASK;
		ret = r->ops->next(r, &ev);
		if (ret == READER_AGAIN) {
			if (fuzz->feed.fd < 0)
				abort();
			feed_part(&fuzz->feed, fuzz->feed.size);
			continue;
		}
		if (ret <= 0)
			break;
		take(w, fuzz, &ev);
		nr += is_read(&ev);
		for (size_t n = r->ops->run ? r->ops->run(r, &run) : 0; n; n--) {
			nr += is_read(run);
			take(w, fuzz, run++);
		}
		if (nr > MAX_EVENTS)
			abort();
	}
}

#ifdef FOLDER
#define IS_FOLDER 1
#else
#define IS_FOLDER 0
#endif

/* The next line, as a word; false: there is none. */
static bool take_word(const uint8_t **data, size_t *size, char word[64])
{
	const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
	size_t len = end ? (size_t)(end - *data) : 0;

	if (!end || len >= 64)
		return false;
	memcpy(word, *data, len);
	word[len] = '\0';
	*data += len + 1;
	*size -= len + 1;
	return true;
}

/* Unpacks a folder, and opens its main file. */
static int open_folder(struct in *in, struct folder *folder, const uint8_t *data, size_t size)
{
	static const struct folder_mark none = { "none", "none" };
	char path[64], name[64], text[64], *file;
	struct err err = { 0 };
	int ret;

	snprintf(path, sizeof(path), "/tmp/kscope-fuzz-%ld", (long)getpid());
	if (folder_open(folder, path, &none, &err) < 0)
		abort();
	while (take_word(&data, &size, name) && take_word(&data, &size, text)) {
		size_t len = strtoul(text, NULL, 10);

		len = len < size ? len : size;
		if (*name && !strchr(name, '/') && name[0] != '.')
			folder_append(folder, name, data, len);
		data += len;
		size -= len;
	}
	file = xasprintf("%s/%s", folder->temp, READER.folder_file);
	ret = in_open(in, file, &err);
	free(file);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct options options;
	static const struct image_search nowhere;
	struct strtab strings;
	struct world world;
	struct err err = { 0 };
	struct fuzz fuzz = { .feed.fd = -1 };
	struct folder folder = { 0 };
	struct out out;
	struct in in;
	struct reader r = { .ops = &READER,
			    .options = &options,
			    .in = &in,
			    .frames = &world.frames,
			    .library = &world.images.library };
	struct writer w = { .ops = &write_dump, .world = &world, .out = &out };
	uint8_t choice = size ? data[size - 1] : 0, decoding = size > 1 ? data[size - 2] : 0;

	r.decodes = !(decoding & NOT_DECODED);
	r.all_branches = decoding & ALL_BRANCHES;
	r.live_view = decoding & WATCHED && READER.live_view;
	log_level = -1;
	strtab_init(&strings);
	world_init(&world, &strings, &nowhere);
	if ((!IS_FOLDER || open_folder(&in, &folder, data, size) < 0) &&
	    !(decoding & PIPED && open_feed(&fuzz.feed, &in, data, size)))
		in_open_memory(&in, "fuzz", data, size);
	r.priv = xcalloc(1, r.ops->priv_size);
	w.priv = xcalloc(1, w.ops->priv_size);
	r.ops->probe(data, size < 4096 ? size : 4096);
	if (r.ops->search)
		r.ops->search(data, size < 65536 ? size : 65536);
	if (out_open(&out, "/dev/null", false, &err) < 0)
		abort();
	open_calls(&fuzz, &world, &out, choice);
	open_samples(&fuzz, &world, &out, choice);
	feed_first(&fuzz.feed, &r);
	if (!r.ops->open || r.ops->open(&r) == 0)
		drain(&r, &w, &fuzz);
	close_calls(&fuzz);
	close_samples(&fuzz);
	if (fuzz.feed.fd >= 0)
		close(fuzz.feed.fd);
	if (r.ops->close)
		r.ops->close(&r);
	w.ops->close(&w);
	out_abandon(&out);
	free(r.priv);
	free(w.priv);
	in_close(&in);
	folder_abandon(&folder);
	world_release(&world);
	strtab_release(&strings);
	return 0;
}
