// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/stream.h"

#include <inttypes.h>
#include <stdio.h>

#define CHUNK 65536
#define AT_ONCE 64		  /* reads before the rest of the loop has its turn */
#define LOOK_AGAIN (SECOND / 20)  /* at something that poll() cannot wait for */
#define TRY_AGAIN (SECOND / 5)	  /* to open a link */
#define CONNECT_BY (10 * SECOND)  /* the first time */
#define SILENCE SECOND		  /* after the command to stop: nothing more comes */
#define DRAIN_BY (10 * SECOND)	  /* of a target that does not stop */
#define ADVISE_AFTER (3 * SECOND) /* without a byte */

static int stream_open(struct record_source *s)
{
	struct stream *stream = s->priv;

	stream->opened = source_now();
	stream->needle.text = s->until;
	return link_open(&stream->link, &s->err);
}

/* ---- the link opens, breaks and comes back ---- */

static void begin(struct record_source *s)
{
	struct stream *stream = s->priv;
	uint64_t now = source_now();

	if (stream->phase == STREAM_BROKEN)
		source_say(s, "%s is back after %.1f s; data sent in between is lost",
			   stream->link.address, (double)(now - stream->broke) / 1e9);
	stream->phase = STREAM_FLOWS;
	s->trouble = false;
	stream->last = now;
	talk_begin(&stream->talk);
	/* What connects to a port begins then. */
	if (!s->began)
		s->began = now;
}

static enum source_state over(struct stream *stream)
{
	link_close(&stream->link);
	stream->phase = STREAM_OVER;
	return SOURCE_ENDED;
}

/* The link has ended: in order, or it broke and may come back. */
static enum source_state ended(struct record_source *s)
{
	struct stream *stream = s->priv;
	struct link *link = &stream->link;

	if (stream->stopping || talk_is_over(&stream->talk) ||
	    (link->orderly && (link->ops->one_way || talk_ends_with_link(&stream->talk))))
		return over(stream);
	s->breaks++;
	if (!stream->retry) {
		source_warn(s, "%s: the link broke after %" PRIu64 " bytes (%s)", link->address,
			    s->raw->bytes, link->why);
		return over(stream);
	}
	source_warn(s,
		    "%s: the link broke after %" PRIu64 " bytes (%s); waiting up to %g s for it to "
		    "come back",
		    link->address, s->raw->bytes, link->why, (double)stream->retry / 1e9);
	link_close(link);
	stream->phase = STREAM_BROKEN;
	s->trouble = true;
	stream->broke = source_now();
	stream->next_try = 0;
	return SOURCE_GOES_ON;
}

static enum source_state gave_up(struct record_source *s)
{
	struct stream *stream = s->priv;

	source_warn(s, "%s did not come back within %g s: the recording ends here",
		    stream->link.address, (double)stream->retry / 1e9);
	return over(stream);
}

static enum source_state reopen(struct record_source *s, uint64_t now)
{
	struct stream *stream = s->priv;
	struct err unused = { 0 };

	if (stream->stopping)
		return over(stream);
	if (now >= stream->broke + stream->retry)
		return gave_up(s);
	if (stream->link.fd < 0 && now >= stream->next_try) {
		stream->next_try = now + TRY_AGAIN;
		link_open(&stream->link, &unused);
	}
	if (stream->link.fd >= 0 && link_progress(&stream->link, &unused) > 0)
		begin(s);
	return SOURCE_GOES_ON;
}

static enum source_state open_first(struct record_source *s, uint64_t now)
{
	struct stream *stream = s->priv;
	struct link *link = &stream->link;
	int ret = link_progress(link, &s->err);

	if (ret > 0)
		begin(s);
	if (ret < 0)
		return SOURCE_FAILED;
	if (!ret && stream->stopping)
		return over(stream);
	if (!ret && link->ops != &link_listen && now >= stream->opened + CONNECT_BY) {
		err_set(&s->err, ERR_INPUT, "%s: no answer within %llu s (%s)", link->address,
			CONNECT_BY / SECOND, link->ops->advice);
		return SOURCE_FAILED;
	}
	return SOURCE_GOES_ON;
}

/* ---- bytes ---- */

/* False: the link has ended, or the disk is full. */
static bool take(struct record_source *s)
{
	struct stream *stream = s->priv;
	char data[CHUNK];
	ssize_t got = 1;

	for (int i = 0; i < AT_ONCE && got > 0; i++) {
		got = link_read(&stream->link, data, sizeof(data));
		if (got <= 0)
			break;
		stream->last = source_now();
		talk_feed(&stream->talk, data, (size_t)got);
		needle_feed(&stream->needle, data, (size_t)got);
		s->found |= stream->needle.found;
		if (!raw_write(s->raw, data, (size_t)got))
			return false;
	}
	return got >= 0;
}

static bool send_next(struct stream *stream, uint64_t now)
{
	size_t len;
	const char *text = talk_next(&stream->talk, now, &len);

	return !text || link_write(&stream->link, text, len);
}

/* Some targets are silent until they get a command, and kscope does not know which. */
static void advise(struct record_source *s, uint64_t now)
{
	struct stream *stream = s->priv;

	if (stream->advised || s->raw->bytes || now < stream->last + ADVISE_AFTER)
		return;
	stream->advised = true;
	source_say(s,
		   "%s: no data yet (%s); if the target waits for a command, send it with "
		   "--start-with TEXT, or name the format with -f",
		   stream->link.address, stream->link.ops->advice);
}

/* A target that has no command to stop just goes on: what has arrived is all there is to wait for. */
static uint64_t drain_by(const struct stream *stream)
{
	return stream->stopped + (talk_can_stop(&stream->talk) ? DRAIN_BY : SILENCE);
}

static bool is_drained(struct record_source *s, uint64_t now)
{
	const struct stream *stream = s->priv;

	if (stream->hurry ||
	    (now >= stream->last + SILENCE && talk_next_at(&stream->talk) == UINT64_MAX))
		return true;
	if (now < drain_by(stream))
		return false;
	if (talk_can_stop(&stream->talk))
		source_warn(s,
			    "%s: still sends %llu s after the command to stop; the recording ends "
			    "here",
			    stream->link.address, DRAIN_BY / SECOND);
	return true;
}

static enum source_state flow(struct record_source *s, uint64_t now)
{
	struct stream *stream = s->priv;

	if (!take(s) || !send_next(stream, now))
		return s->raw->err.code ? over(stream) : ended(s);
	if (talk_is_over(&stream->talk))
		return over(stream);
	if (stream->stopping && is_drained(s, source_now()))
		return over(stream);
	advise(s, now);
	return SOURCE_GOES_ON;
}

/* ---- the source ---- */

static enum source_state stream_step(struct record_source *s)
{
	struct stream *stream = s->priv;
	uint64_t now = source_now();

	switch (stream->phase) {
	case STREAM_OPENING: return open_first(s, now);
	case STREAM_FLOWS: return flow(s, now);
	case STREAM_BROKEN: return reopen(s, now);
	case STREAM_OVER: break;
	}
	return SOURCE_ENDED;
}

static size_t stream_wait(struct record_source *s, struct pollfd *fds, uint64_t *until)
{
	struct stream *stream = s->priv;
	uint64_t now = source_now();

	link_wait(&stream->link, fds);
	if (fds->fd < 0)
		source_earlier(until, now + LOOK_AGAIN);
	switch (stream->phase) {
	case STREAM_OPENING:
	case STREAM_BROKEN: source_earlier(until, now + TRY_AGAIN); break;
	case STREAM_FLOWS: source_earlier(until, talk_next_at(&stream->talk)); break;
	case STREAM_OVER: *until = now; break;
	}
	if (stream->stopping)
		source_earlier(until, stream->last + SILENCE);
	else if (!stream->advised && !s->raw->bytes)
		source_earlier(until, stream->last + ADVISE_AFTER);
	return 1;
}

static void stream_stop(struct record_source *s, bool hurry)
{
	struct stream *stream = s->priv;

	stream->hurry |= hurry;
	if (stream->stopping)
		return;
	stream->stopping = true;
	stream->last = stream->stopped = source_now();
	talk_stop(&stream->talk);
}

static void stream_state(struct record_source *s, struct buf *text)
{
	struct stream *stream = s->priv;
	uint64_t now = source_now();

	buf_addf(text, "%.1f MB", (double)s->raw->bytes / 1e6);
	if (stream->phase == STREAM_OPENING)
		buf_addf(text, ", waiting for %s", stream->link.address);
	else if (stream->phase == STREAM_BROKEN)
		buf_adds(text, ", link broken, waiting");
	else if (now - stream->last > 2 * SECOND)
		buf_addf(text, ", no data for %.0f s", (double)(now - stream->last) / 1e9);
}

static void stream_close(struct record_source *s)
{
	struct stream *stream = s->priv;

	link_close(&stream->link);
}

void stream_release(struct stream *stream)
{
	link_release(&stream->link);
	talk_release(&stream->talk);
	needle_release(&stream->needle);
}

const struct source_ops source_stream = {
	.open = stream_open,
	.wait = stream_wait,
	.step = stream_step,
	.stop = stream_stop,
	.state = stream_state,
	.close = stream_close,
};
