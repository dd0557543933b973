// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "model/world.h"

static const struct reader_ops *choose(struct merge_input *input, struct err *err)
{
	const char *format = input->format;
	struct in *in = &input->in;
	const struct reader_ops *ops = NULL;
	size_t have;

	if (format) {
		ops = reader_by_name(format);
		if (!ops)
			err_set(err, ERR_USAGE, "unknown input format '%s': see kscope formats",
				format);
		return ops;
	}
	in_peek(in, 1, &have);
	if (have)
		ops = input->expects ? reader_expected(in, input->expects) : reader_by_content(in);
	if (ops)
		return ops;
	if (in->err.code)
		*err = in->err;
	else if (!have)
		err_set(err, ERR_INPUT, "%s: the input is empty", in->path);
	else
		err_set(err, ERR_INPUT,
			"%s: unknown format; if you know it, use -f FORMAT (see kscope formats)",
			in->path);
	return NULL;
}

/* ---- files, and the recordings in archives ---- */

static struct merge_input *add_input(struct merge *merge, struct store *store, const char *format)
{
	GROW(merge->inputs, merge->nr + 1, merge->cap);
	merge->inputs[merge->nr] = (struct merge_input){
		.in.fd = -1,
		.reader.store = store,
		.format = format,
	};
	return &merge->inputs[merge->nr++];
}

/* The last input is an archive: its recordings take its place. */
static int open_archive(struct merge *merge, const char *format, struct err *err)
{
	struct in *in = &merge->inputs[merge->nr - 1].in;
	struct store *store = store_read_archive(in, err), **last = &merge->archives;

	if (!store)
		return -1;
	in_close(in);
	merge->nr--;
	while (*last)
		last = &(*last)->next;
	*last = store;
	for (size_t i = 0; i < store->nr_inputs; i++) {
		const struct store_input *from = &store->inputs[i];
		struct merge_input *input = add_input(merge, store, format ? format : from->format);

		if (!reader_by_name(from->format))
			return err_set(err, ERR_INPUT, "%s: %s has an unknown format: %s",
				       store->archive, from->path, from->format);
		if (store_in(store, &input->in, from->path, err) < 0)
			return -1;
	}
	return 0;
}

static int find_input(struct merge *merge, const char *path, const char *format, struct store *list,
		      struct err *err)
{
	char *file = strcmp(path, "-") ? reader_folder_file(path) : NULL;
	struct merge_input *input = add_input(merge, list, format);
	int ret = store_in(list, &input->in, file ? file : path, err);

	free(file);
	if (ret < 0)
		return -1;
	return store_probe(&input->in) ? open_archive(merge, format, err) : 0;
}

int merge_find(struct merge *merge, const char *const *paths, size_t nr, const char *format,
	       struct store *list, struct err *err)
{
	memset(merge, 0, sizeof(*merge));
	for (size_t i = 0; i < nr; i++) {
		if (find_input(merge, paths[i], format, list, err) < 0)
			return -1;
	}
	return 0;
}

void merge_take(struct merge *merge, struct in *in, const char *format)
{
	struct merge_input *input;

	memset(merge, 0, sizeof(*merge));
	input = add_input(merge, NULL, format);
	input->in = *in;
	input->reader.live_view = true;
}

/* ---- readers ---- */

static int open_input(struct merge_input *input, const struct options *options, struct world *world,
		      struct err *err)
{
	struct reader *r = &input->reader;

	r->ops = choose(input, err);
	if (!r->ops)
		return -1;
	r->options = options;
	r->in = &input->in;
	r->frames = &world->frames;
	r->library = &world->images.library;
	r->priv = xcalloc(1, r->ops->priv_size);
	if (option_apply(r->ops->options, r->priv, options->given, &r->err) < 0 ||
	    (r->ops->open && r->ops->open(r) < 0)) {
		*err = r->err;
		return -1;
	}
	return 0;
}

int merge_open(struct merge *merge, const struct options *options, struct world *world,
	       struct err *err)
{
	for (size_t i = 0; i < merge->nr; i++) {
		if (open_input(&merge->inputs[i], options, world, err) < 0)
			return -1;
	}
	merge->last = merge->nr;
	return 0;
}

/* ---- events ---- */

#define DATA                                                                          \
	(EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_CHAIN) | EVENT_BIT(EVENT_BRANCH) | \
	 EVENT_BIT(EVENT_CALL) | EVENT_BIT(EVENT_ALLOC) | EVENT_BIT(EVENT_NOTE) |     \
	 EVENT_BIT(EVENT_LOST))

/* Fails at the end of an input whose format was given, if there was nothing of it. */
static int check_found(struct merge *merge, const struct merge_input *input)
{
	const struct reader *r = &input->reader;
	bool empty = !in_offset(&input->in);

	if (!input->format || r->live_view || r->nr_damaged || input->in.err.code ||
	    input->seen & DATA || (r->ops->header && !empty))
		return 0;
	if (empty)
		return err_set(&merge->err, ERR_INPUT, "%s: the input is empty", input->in.path);
	return err_set(&merge->err, ERR_INPUT,
		       "%s: no %s data found; without -f, kscope detects the format",
		       input->in.path, r->ops->name);
}

/* Reads the next events of an input. */
static int fill(struct merge *merge, size_t i)
{
	static const struct event blank = {
		.time = NO_TIME, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
	};
	struct merge_input *input = &merge->inputs[i];
	struct reader *r = &input->reader;
	int ret;

	input->pending = r->ops->run ? r->ops->run(r, &input->next) : 0;
	for (size_t n = 0; i && n < input->pending; n++)
		input->next[n].input = (uint32_t)i;
	if (input->pending)
		return 1;
	input->read = blank; /* faster than memset(), which GCC turns into one slow instruction */
	input->next = &input->read;
	ret = r->ops->next(r, &input->read);
	input->waits = ret == READER_AGAIN;
	if (input->waits)
		return MERGE_AGAIN;
	input->read.input = (uint32_t)i;
	input->pending = ret > 0;
	input->ended = ret <= 0;
	if (ret < 0 && !merge->err.code)
		merge->err = r->err;
	if (ret == 0 && input->in.err.code) {
		/* A read error ended the input: keep the events before it, and count it as damage. */
		log_warn("%s", input->in.err.msg);
		r->nr_damaged++;
	}
	return ret == 0 ? check_found(merge, input) : ret;
}

int merge_next(struct merge *merge, struct event **events, size_t *nr)
{
	struct merge_input *first = NULL;
	bool again = false;

	/* The last events were valid until now: refill their input only now. */
	if (merge->last < merge->nr) {
		merge->inputs[merge->last].pending -= merge->taken;
		merge->inputs[merge->last].next += merge->taken;
	}
	merge->last = merge->nr;
	for (size_t i = 0; i < merge->nr; i++) {
		struct merge_input *input = &merge->inputs[i];

		if (!input->pending && !input->ended) {
			int ret = fill(merge, i);

			if (ret < 0)
				return -1;
			again |= ret == MERGE_AGAIN;
		}
		/* NO_TIME + 1 is 0, so events without a time come first. */
		if (input->pending && (!first || input->next->time + 1 < first->next->time + 1))
			first = input;
	}
	/* The next event is unknown until every input has one or has ended. */
	if (again)
		return MERGE_AGAIN;
	if (!first)
		return 0;
	merge->last = (size_t)(first - merge->inputs);
	merge->taken = merge->nr == 1 ? first->pending : 1;
	first->seen |= EVENT_BIT(first->next->kind);
	*events = first->next;
	*nr = merge->taken;
	return 1;
}

void merge_wait(struct merge *merge)
{
	for (size_t i = 0; i < merge->nr; i++) {
		if (merge->inputs[i].waits)
			in_wait(&merge->inputs[i].in);
	}
}

void merge_close(struct merge *merge)
{
	for (size_t i = 0; i < merge->nr; i++) {
		struct reader *r = &merge->inputs[i].reader;

		if (r->priv && r->ops->close)
			r->ops->close(r);
		free(r->priv);
		in_close(&merge->inputs[i].in);
	}
	free(merge->inputs);
	store_free(merge->archives);
	memset(merge, 0, sizeof(*merge));
}
