// SPDX-License-Identifier: GPL-2.0-or-later
#include "live_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define STEP_TIME (LIVE_SECOND / 50)
#define BLIND_BYTES 65536

const struct writer_ops live_writer = {
	.name = "live",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_LOST),
	.options = OPTION_USES(TALLY_OPTIONS(struct live, options)),
	.put = live_put,
};

uint64_t live_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * LIVE_SECOND + (uint64_t)ts.tv_nsec;
}

struct live *live_open(const struct job *like, int fd, const char *name, struct err *err)
{
	struct live *live = xcalloc(1, sizeof(*live));
	int ret;

	live->job = *like;
	live->job.inputs = NULL;
	live->job.nr_inputs = 0;
	in_open_live(&live->in, fd, name);
	live->now = live->began = live_clock();
	strtab_init(&live->strings);
	if (like->reader && !reader_by_name(like->reader))
		ret = err_set(err, ERR_USAGE, "unknown input format '%s': see kscope formats",
			      like->reader);
	else
		ret = option_apply(live_writer.options, live, like->options->given, err);
	if (ret == 0)
		return live;
	live_close(live);
	return NULL;
}

void live_close(struct live *live)
{
	live_forget(live);
	free(live->sums);
	free(live->cpus);
	if (live->job_opened)
		job_release(&live->job);
	else
		in_close(&live->in);
	strtab_release(&live->strings);
	free(live);
}

static int fail(struct live *live, const struct err *err)
{
	live->err = *err;
	live->state = LIVE_FAILED;
	return -1;
}

/* ---- from the first bytes to a reader ---- */

/* 1: the format is known, or more bytes do not help. */
static int detect(struct live *live)
{
	const struct reader_ops *ops;
	const uint8_t *head;
	bool ended, sure;
	size_t have;

	in_peek(&live->in, 0, &have);
	ended = in_ready(&live->in, have + 1) && live->in.eof;
	head = in_peek(&live->in, 0, &have);
	/* Of a compressed stream, nobody knows how much is needed for the next byte. */
	live->compressed = unpack_probe(head, have);
	if (live->compressed)
		return 1;
	ops = live->job.reader ? reader_by_name(live->job.reader)
			       : reader_by_head(head, have, ended, &sure);
	if (!live->job.reader && !sure && !ended)
		return 0;
	live->ops = ops;
	return 1;
}

static int open_job(struct live *live)
{
	live->job_opened = true; /* and has the input */
	if (live->ops)
		live->job.reader = live->ops->name;
	if (job_open_in(&live->job, &live->strings, &live->in) < 0)
		return fail(live, &live->job.err);
	live->writer =
		(struct writer){ .ops = &live_writer, .world = &live->job.world, .priv = live };
	live->to[0] = &live->writer;
	job_begin(&live->job, live->to, 1);
	live->state = LIVE_READS;
	return 1;
}

/* A reader that is not live would wait for the rest, unless that is there. */
static bool can_follow(const struct live *live)
{
	return !live->compressed &&
	       (live->in.eof || !live->ops || live->ops->live || live->ops->live_view);
}

static int open_reader(struct live *live)
{
	if (!live->ops && !detect(live))
		return 0;
	if (!can_follow(live)) {
		live->state = LIVE_BLIND;
		return 1;
	}
	if (live->ops && live->ops->ready && !live->ops->ready(&live->in))
		return 0;
	return open_job(live);
}

/* ---- events ---- */

static int end_job(struct live *live, int ret)
{
	if (ret == 0 && job_end(&live->job, 0) == 0) {
		live->state = LIVE_ENDED;
		return -1;
	}
	return fail(live, live->job.err.code ? &live->job.err : &live->job.merge.err);
}

static int read_events(struct live *live)
{
	uint64_t until = live->now + STEP_TIME;
	struct event *events;
	size_t nr;
	int ret;

	do {
		ret = merge_next(&live->job.merge, &events, &nr);
		if (ret == MERGE_AGAIN)
			return 0;
		if (ret <= 0)
			return end_job(live, ret);
		if (job_push(&live->job, events, nr) < 0)
			return end_job(live, -1);
		live->now = live_clock();
	} while (live->now < until);
	return 1;
}

/* Only counts: the writer must not have to wait for us. */
static int read_blindly(struct live *live)
{
	struct pollfd fd = { .fd = live->in.fd, .events = POLLIN };
	char data[BLIND_BYTES];
	ssize_t got;

	if (poll(&fd, 1, 0) <= 0)
		return 0;
	got = read(live->in.fd, data, sizeof(data));
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got > 0) {
		live->in.taken += (uint64_t)got;
		return 1;
	}
	live->state = LIVE_ENDED;
	return -1;
}

int live_step(struct live *live)
{
	if (live->state >= LIVE_ENDED)
		return -1;
	live->now = live_clock();
	switch (live->state) {
	case LIVE_WAITS: return open_reader(live);
	case LIVE_READS: return read_events(live);
	case LIVE_BLIND: return read_blindly(live);
	default: return -1;
	}
}

int live_fd(const struct live *live)
{
	if (live->state >= LIVE_ENDED)
		return -1;
	return live->job_opened ? live->job.merge.inputs[0].in.fd : live->in.fd;
}

enum live_state live_state(const struct live *live)
{
	return live->state;
}

const char *live_error(const struct live *live)
{
	return live->err.msg;
}

const char *live_format(const struct live *live)
{
	return live->ops ? live->ops->name : NULL;
}
