// SPDX-License-Identifier: GPL-2.0-or-later
#include "glance.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "live.h"
#include "look.h"

#define PERIOD 500000000ULL

/*
 * The writer fills the slot that readers do not look at, then moves them on to it. A reader that was so slow that
 * the writer came around to its slot tries again.
 */
static void put(uint32_t *turn, void *slots, const void *from, size_t size)
{
	uint32_t next = *turn + 1;

	memcpy((char *)slots + (next & 1) * size, from, size);
	__atomic_store_n(turn, next, __ATOMIC_SEQ_CST);
}

static void get(const uint32_t *turn, const void *slots, void *to, size_t size)
{
	uint32_t before;

	do {
		before = __atomic_load_n(turn, __ATOMIC_SEQ_CST);
		memcpy(to, (const char *)slots + (before & 1) * size, size);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	} while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != before);
}

void glance_put_sums(struct glance *g, const struct glance_sums *sums)
{
	put(&g->sums.turn, g->sums.slots, sums, sizeof(*sums));
}

void glance_get_sums(const struct glance *g, struct glance_sums *sums)
{
	get(&g->sums.turn, g->sums.slots, sums, sizeof(*sums));
	sums->hottest[sizeof(sums->hottest) - 1] = sums->problem[sizeof(sums->problem) - 1] = '\0';
}

void glance_put_source(struct glance *g, const struct glance_source *source)
{
	put(&g->source.turn, g->source.slots, source, sizeof(*source));
}

void glance_get_source(const struct glance *g, struct glance_source *source)
{
	get(&g->source.turn, g->source.slots, source, sizeof(*source));
	source->text[sizeof(source->text) - 1] = '\0';
}

/* ---- a viewer without a screen ---- */

static void explain(const struct live *live, struct glance_sums *sums)
{
	const char *format = live_format(live);

	if (live_state(live) == LIVE_FAILED)
		snprintf(sums->problem, sizeof(sums->problem), "%.190s", live_error(live));
	else if (live_state(live) == LIVE_BLIND)
		snprintf(sums->problem, sizeof(sums->problem), "%.60s cannot be read live",
			 format ? format : "a compressed stream");
}

static const struct live_row *hottest(const struct live_view *view)
{
	const struct live_row *best = NULL;

	for (size_t i = 0; i < view->nr_rows; i++) {
		if (!best || view->rows[i].sum.self > best->sum.self)
			best = &view->rows[i];
	}
	return best;
}

/* Not in the middle of a character. */
static void copy_start(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	while (len && (from[len] & 0xc0) == 0x80)
		len--;
	memcpy(to, from, len);
	to[len] = '\0';
}

void glance_fill(const struct live *live, const struct live_view *view, struct glance_sums *sums)
{
	const struct live_row *row = hottest(view);
	struct buf plain = { 0 };

	*sums = (struct glance_sums){ .samples = view->counts.samples,
				      .lost = view->counts.lost,
				      .damaged = view->counts.damaged };
	explain(live, sums);
	if (row) {
		const char *name = text_plain(&plain, str_text(live_names(live), row->sum.name));

		sums->share = look_share(row->sum.self, view->weight);
		copy_start(sums->hottest, sizeof(sums->hottest), name);
	}
	buf_release(&plain);
}

int live_glance(int fd, const struct job *like, struct glance *g)
{
	struct err err = { 0 };
	struct live *live = live_open(like, fd, "live", &err);
	struct live_view view = { 0 };
	struct glance_sums sums;
	uint64_t next = 0;
	int ret = 0;

	if (!live)
		return err.code;
	signal(SIGINT, SIG_IGN); /* the recorder ends the stream */
	signal(SIGTERM, SIG_IGN);
	while (ret >= 0) {
		struct pollfd wait = { .fd = live_fd(live), .events = POLLIN };
		uint64_t began;

		poll(&wait, 1, ret > 0 ? 0 : (int)(PERIOD / 1000000));
		ret = live_step(live);
		began = live_clock();
		if (ret >= 0 && began < next)
			continue;
		live_look(live, &view, FLAT_FUNCTION, 0);
		glance_fill(live, &view, &sums);
		glance_put_sums(g, &sums);
		/* Looking takes longer the more code ran: never more than a tenth of the time. */
		next = live_clock() + PERIOD + 10 * (live_clock() - began);
	}
	live_view_release(&view);
	live_close(live);
	return err.code;
}
