// SPDX-License-Identifier: GPL-2.0-or-later
/* gdb: the source: when it stops the target, and for how long. */
#include "record/gdb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/gdb_parts.h"

#define GREETING (5 * SECOND)  /* for the first answer */
#define STOPPING (10 * SECOND) /* for the target to stop */
#define AT_ONCE (SECOND / 20)  /* how long step() waits for the stop itself */
#define LIST_EVERY SECOND
#define FLUSH_EVERY (SECOND / 4)
#define RECENT (5.0 * (double)SECOND)
#define DETACHING (2 * SECOND)

#define SIGNAL_INT 2 /* gdb's own numbers */
#define SIGNAL_TRAP 5
#define SIGNAL_STOP 17

static uint64_t max_stop(const struct gdb *gdb)
{
	uint64_t percent = gdb->options->max_stop;

	return percent && percent < 100 ? percent : percent ? 99 : GDB_MAX_STOP;
}

static uint64_t period(const struct gdb *gdb)
{
	return SECOND / (gdb->options->freq ? gdb->options->freq : GDB_FREQ);
}

/* The host's time without the time that the target was stopped. */
static uint64_t target_time(const struct gdb *gdb, uint64_t now)
{
	return now - gdb->stopped;
}

static enum source_state fail(struct gdb *gdb)
{
	gdb->phase = GDB_OVER;
	return SOURCE_FAILED;
}

/* ---- The end ---- */

static void end_stream(struct gdb *gdb, const char *reason)
{
	gdb_out_end(&gdb->out, reason);
	gdb->phase = GDB_OVER;
}

static void forget_guard(struct gdb *gdb)
{
	gdb->released = true;
	gdb_guard_end(&gdb->guard, true);
}

/* The target or the link is gone. What was recorded before is valid. */
static enum source_state ended(struct gdb *gdb)
{
	const struct buf *reply = &gdb->talk.reply;
	const char *address = gdb->options->address;
	const char *why = gdb->link.why;

	if (gdb_is_exit(reply)) {
		source_say(gdb->source, "%s: the target has ended (%s 0x%.2s)", address,
			   reply->data[0] == 'W' ? "exit code" : "signal", reply->data + 1);
		forget_guard(gdb);
		end_stream(gdb, "target ended");
		return SOURCE_ENDED;
	}
	if (!gdb->out.samples) {
		err_set(&gdb->source->err, ERR_INPUT, "%s: the stub %s", address,
			why[0] ? GDB_CLOSED : "does not answer");
		return fail(gdb);
	}
	gdb->source->partial = true;
	if (why[0])
		source_warn(gdb->source,
			    "%s: lost the connection to the stub (%s); the recording ends here",
			    address, why);
	else
		source_warn(gdb->source, "%s: the stub no longer answers; the recording ends here",
			    address);
	end_stream(gdb, "link lost");
	return SOURCE_ENDED;
}

/* ---- Stop and go ---- */

static uint64_t random_below(struct gdb *gdb, uint64_t limit)
{
	gdb->random ^= gdb->random << 13;
	gdb->random ^= gdb->random >> 7;
	gdb->random ^= gdb->random << 17;
	return limit ? gdb->random % limit : 0;
}

/*
 * When to stop the target again: after a period, which varies so that it does not follow a timer of the target; but
 * not before the target ran long enough for another stop like the last: for no more than its share of the last seconds.
 */
static void plan_next(struct gdb *gdb, uint64_t now, uint64_t stopped, uint64_t ran)
{
	double faded = 1 / (1 + (double)(stopped + ran) / RECENT);
	double percent = 0.95 * (double)max_stop(gdb), due, least; /* stops differ */

	gdb->recent_stopped = (gdb->recent_stopped + (double)stopped) * faded;
	gdb->recent_ran = (gdb->recent_ran + (double)ran) * faded;
	due = (gdb->recent_stopped + (double)stopped) * (100 - percent) / percent - gdb->recent_ran;
	least = (double)stopped * (100 - percent) / percent / 2;
	if (due < least)
		due = least;
	gdb->next = gdb->asked + period(gdb) / 2 + random_below(gdb, period(gdb));
	if (gdb->next < now + (uint64_t)due)
		gdb->next = now + (uint64_t)due + random_below(gdb, (uint64_t)due / 4);
}

static bool resume(struct gdb *gdb, const char *thread, unsigned signal)
{
	const struct gdb_target *target = &gdb->target;
	bool pass = target->user_mode && signal && signal != SIGNAL_INT && signal != SIGNAL_TRAP &&
		    signal != SIGNAL_STOP;
	bool sent;

	gdb_guard_set(&gdb->guard, GDB_CHANGING);
	if (pass && target->resumes_with_signal && thread[0])
		sent = gdb_send(&gdb->talk, "vCont;C%02x:%s;c", signal, thread);
	else if (pass)
		sent = gdb_send(&gdb->talk, "C%02x", signal);
	else
		sent = gdb_send(&gdb->talk, target->vcont ? "vCont;c" : "c");
	if (sent)
		gdb_guard_set(&gdb->guard, GDB_RUNNING);
	gdb->resumed = source_now();
	gdb->phase = GDB_SAMPLES;
	return sent;
}

/* Lets the target go on for good. It is stopped. A stub that cannot detach can at least do that. */
static void detach(struct gdb *gdb)
{
	if (gdb_send(&gdb->talk, "%s", gdb->detach ? gdb->detach : "D") &&
	    gdb_answer(&gdb->talk, source_now() + DETACHING) == GDB_GOT &&
	    (gdb_is_ok(&gdb->talk) || resume(gdb, "", 0)))
		forget_guard(gdb);
}

/* Samples of all threads, at the moment when kscope asked the target to stop. */
static void put_samples(struct gdb *gdb, uint64_t time)
{
	for (size_t i = 0; i < gdb->target.nr; i++) {
		struct gdb_thread *thread = &gdb->target.threads[i];

		if (!thread->listed || !thread->state.nr || thread->last >= time)
			continue;
		gdb_out_thread(gdb, (uint32_t)i, time);
		thread->last = time;
	}
	gdb->last = time;
}

static bool list_threads(struct gdb *gdb)
{
	if (!gdb->target.user_mode && gdb->asked < gdb->listed_at + LIST_EVERY)
		return true;
	gdb->listed_at = gdb->asked;
	return gdb_target_list(gdb);
}

/* The thread that a stop reply names: T05thread:ID;... */
static void stopped_thread(const struct buf *reply, char *id)
{
	const char *at = reply->data[0] == 'T' ? strstr(reply->data, "thread:") : NULL;
	size_t len = at ? strspn(at + 7, "0123456789abcdefp.") : 0;

	id[0] = '\0';
	if (at && len < GDB_ID_MAX) {
		memcpy(id, at + 7, len);
		id[len] = '\0';
	}
}

/* The target has stopped: looks at it, and lets it go on. */
static enum source_state on_stop(struct gdb *gdb)
{
	uint64_t ran = gdb->asked - gdb->resumed, time = target_time(gdb, gdb->asked);
	bool looks = !(gdb->ending && gdb->hurry);
	char thread[GDB_ID_MAX];
	uint64_t stopped;
	uint8_t signal = 0;

	gdb_guard_set(&gdb->guard, GDB_STOPPED);
	gdb_unhex(gdb->talk.reply.data + 1, 2, &signal, 1);
	stopped_thread(&gdb->talk.reply, thread);
	if (!gdb->stops && gdb->target.user_mode) {
		gdb_target_paths(gdb); /* by now, it should have loaded its libraries */
		gdb_out_begin(gdb);
	}
	if (looks && (!list_threads(gdb) || !gdb_look(gdb)))
		return ended(gdb);
	if (gdb->ending)
		detach(gdb);
	else if (!resume(gdb, thread, signal))
		return ended(gdb);
	stopped = source_now() - gdb->asked;
	gdb->stopped += stopped;
	gdb->stops++;
	if (looks)
		put_samples(gdb, time);
	plan_next(gdb, gdb->resumed, stopped, ran);
	if (gdb->ending) {
		end_stream(gdb, "stopped");
		return SOURCE_ENDED;
	}
	return SOURCE_GOES_ON;
}

/* A system call that the target leaves to the debugger: Fwrite,1,ADDRESS/LENGTH. */
static bool refuse_call(struct gdb *gdb)
{
	if (!gdb->told_files)
		source_warn(gdb->source,
			    "%s: the target leaves system calls (%.20s) to the debugger, and "
			    "kscope refuses "
			    "them; with QEMU, use -semihosting-config target=native",
			    gdb->options->address, gdb->talk.reply.data + 1);
	gdb->told_files = true;
	return gdb_send(&gdb->talk, "F-1,270f");
}

/* What the stub said while the target ran. */
static enum source_state on_reply(struct gdb *gdb)
{
	const struct buf *reply = &gdb->talk.reply;

	if (gdb_is_exit(reply))
		return ended(gdb);
	if (reply->len && reply->data[0] == 'F' && !refuse_call(gdb))
		return ended(gdb);
	if (!gdb_is_stop(reply))
		return SOURCE_GOES_ON; /* output of the program, say */
	if (gdb->phase != GDB_STOPS)
		gdb->asked = source_now(); /* it stopped by itself: a signal */
	return on_stop(gdb);
}

static enum source_state ask_to_stop(struct gdb *gdb)
{
	gdb_guard_set(&gdb->guard, GDB_CHANGING);
	gdb->phase = GDB_STOPS;
	gdb->asked = source_now();
	gdb->deadline = gdb->asked + STOPPING;
	return link_write(&gdb->link, "\x03", 1) ? SOURCE_GOES_ON : ended(gdb);
}

static enum source_state not_stopping(struct gdb *gdb)
{
	const char *address = gdb->options->address;

	if (!gdb->out.samples) {
		err_set(&gdb->source->err, ERR_INPUT,
			"%s: the target does not stop when kscope interrupts it", address);
		return fail(gdb);
	}
	source_warn(
		gdb->source,
		"%s: the target no longer stops when kscope interrupts it; the recording ends here",
		address);
	gdb->source->partial = true;
	end_stream(gdb, "target does not stop");
	return SOURCE_ENDED;
}

static void flush_if_due(struct gdb *gdb, uint64_t now)
{
	if (now < gdb->flushed_at + FLUSH_EVERY)
		return;
	gdb->flushed_at = now;
	gdb_out_flush(&gdb->out, gdb->last);
}

static enum source_state sample(struct gdb *gdb)
{
	uint64_t now = source_now();
	enum source_state state = SOURCE_GOES_ON;
	enum gdb_got got;

	if (gdb->phase == GDB_SAMPLES && (now >= gdb->next || gdb->ending))
		state = ask_to_stop(gdb);
	if (state != SOURCE_GOES_ON)
		return state;
	got = gdb_receive(&gdb->talk, gdb->phase == GDB_STOPS ? now + AT_ONCE : now);
	if (got == GDB_LOST)
		return ended(gdb);
	if (got == GDB_GOT)
		state = on_reply(gdb);
	else if (gdb->phase == GDB_STOPS && source_now() > gdb->deadline)
		state = not_stopping(gdb);
	if (state == SOURCE_GOES_ON)
		flush_if_due(gdb, now);
	return state;
}

/* ---- The beginning ---- */

static const struct link_ops *ops_of(const char *address)
{
	struct stat st;

	if (!strchr(address, '/'))
		return &link_tcp;
	return stat(address, &st) == 0 && S_ISCHR(st.st_mode) ? &link_serial : &gdb_link_unix;
}

/* A stub may stop the target for a new connection, so the guard is there before it. */
static int start_guard(struct link *link)
{
	struct gdb *gdb = link->owner;

	gdb_guard_end(&gdb->guard, true); /* the host has several addresses */
	return gdb_guard_start(&gdb->guard, link->fd);
}

static int gdb_open(struct record_source *s)
{
	struct gdb_options *options = s->priv;
	struct gdb *gdb = options->gdb = xcalloc(1, sizeof(*gdb));

	gdb->source = s;
	gdb->options = options;
	gdb->out.raw = s->raw;
	gdb->random = source_now() | 1;
	gdb->deadline = source_now() + GREETING;
	if (link_init(&gdb->link, ops_of(options->address), options->address, &s->err) < 0)
		return -1;
	gdb->link.before_connect = start_guard;
	gdb->link.owner = gdb;
	if (link_open(&gdb->link, &s->err) == 0)
		return 0;
	forget_guard(gdb);
	return -1;
}

static enum source_state connect_link(struct gdb *gdb)
{
	int ret = link_progress(&gdb->link, &gdb->source->err);

	if (ret == 0 && source_now() > gdb->deadline)
		ret = err_set(&gdb->source->err, ERR_INPUT, "%s: cannot connect: %s",
			      gdb->options->address, strerror(ETIMEDOUT));
	if (ret < 0) {
		forget_guard(gdb);
		return fail(gdb);
	}
	if (ret == 0)
		return SOURCE_GOES_ON;
	gdb_talk_init(&gdb->talk, &gdb->link);
	if (!gdb->guard.shared && gdb_guard_start(&gdb->guard, gdb->link.fd) < 0) { /* serial */
		err_set(&gdb->source->err, ERR_OUTPUT, "cannot start a process: %s",
			strerror(errno));
		return fail(gdb);
	}
	gdb->phase = GDB_GREETS;
	gdb->deadline = source_now() + GREETING;
	return gdb_send(&gdb->talk, "qSupported:xmlRegisters=i386,arm,riscv") ? SOURCE_GOES_ON
									      : ended(gdb);
}

static enum source_state greet(struct gdb *gdb)
{
	enum gdb_got got = gdb_answer(&gdb->talk, source_now());

	if (got == GDB_LOST)
		return ended(gdb);
	if (got == GDB_NOTHING && source_now() > gdb->deadline) {
		bool strange = gdb->talk.noise || gdb->talk.faults;

		err_set(&gdb->source->err, ERR_INPUT,
			strange ? "%s: this is not a gdb stub; check the address" : GDB_NO_ANSWER,
			gdb->options->address);
		return fail(gdb);
	}
	if (got == GDB_NOTHING)
		return SOURCE_GOES_ON;
	if (gdb_target_read(gdb) < 0)
		return fail(gdb);
	if (!gdb->target.user_mode)
		gdb_out_begin(gdb);
	if (!resume(gdb, "", 0))
		return ended(gdb);
	gdb->began = gdb->asked = gdb->last = gdb->resumed;
	for (size_t i = 0; i < gdb->target.nr; i++)
		gdb->target.threads[i].last = gdb->began;
	gdb->listed_at = gdb->flushed_at = gdb->began;
	plan_next(gdb, gdb->began, 0, 0);
	gdb->source->began = gdb->began;
	return SOURCE_GOES_ON;
}

static size_t gdb_wait(struct record_source *s, struct pollfd *fds, uint64_t *until)
{
	const struct gdb_options *options = s->priv;
	const struct gdb *gdb = options->gdb;

	link_wait(&gdb->link, &fds[0]);
	source_earlier(until, gdb->phase == GDB_SAMPLES ? gdb->next : gdb->deadline);
	return 1;
}

static enum source_state gdb_step(struct record_source *s)
{
	const struct gdb_options *options = s->priv;
	struct gdb *gdb = options->gdb;

	if (gdb->ending && gdb->phase < GDB_SAMPLES)
		gdb->phase = GDB_OVER; /* nothing was recorded; close() releases the target */
	switch (gdb->phase) {
	case GDB_CONNECTS: return connect_link(gdb);
	case GDB_GREETS: return greet(gdb);
	case GDB_OVER: return s->err.code ? SOURCE_FAILED : SOURCE_ENDED;
	default: return sample(gdb);
	}
}

static void gdb_stop(struct record_source *s, bool hurry)
{
	const struct gdb_options *options = s->priv;

	options->gdb->ending = true;
	options->gdb->hurry |= hurry;
}

static double stopped_percent(const struct gdb *gdb)
{
	uint64_t took = (gdb->phase == GDB_SAMPLES ? source_now() : gdb->resumed) - gdb->began;

	return took ? 100.0 * (double)gdb->stopped / (double)took : 0;
}

static size_t nr_threads(const struct gdb *gdb)
{
	size_t nr = 0;

	for (size_t i = 0; i < gdb->target.nr; i++)
		nr += gdb->target.threads[i].listed;
	return nr;
}

static void gdb_tell_state(struct record_source *s, struct buf *text)
{
	const struct gdb_options *options = s->priv;
	const struct gdb *gdb = options->gdb;
	double seconds = (double)(source_now() - gdb->began) / (double)SECOND;
	size_t nr = nr_threads(gdb);

	if (!gdb->began)
		return;
	buf_addf(text, "%zu %s%s, %.0f stops/s, stopped %.1f%% of the time", nr,
		 gdb->target.user_mode ? "thread" : "cpu", nr == 1 ? "" : "s",
		 seconds > 0 ? (double)gdb->stops / seconds : 0, stopped_percent(gdb));
}

/*
 * If the target was not released, the guard does that now. It also does so if the stub never answered: the request to
 * detach waits in the stub's queue of connections, and lets the target go on when its turn comes.
 */
static void gdb_close(struct record_source *s)
{
	struct gdb_options *options = s->priv;
	struct gdb *gdb = options->gdb;

	if (!gdb)
		return;
	if (gdb->stops)
		source_say(s,
			   "%s: %" PRIu64 " samples in %" PRIu64
			   " stops; the target was stopped %.1f%% of the time",
			   options->address, gdb->out.samples, gdb->stops, stopped_percent(gdb));
	gdb_guard_end(&gdb->guard, gdb->released);
	link_release(&gdb->link);
	gdb_talk_release(&gdb->talk);
	gdb_batch_release(&gdb->batch);
	gdb_target_release(&gdb->target);
	gdb_out_release(&gdb->out);
	free(gdb->detach);
	free(gdb);
	options->gdb = NULL;
}

const struct source_ops source_gdb = {
	.open = gdb_open,
	.wait = gdb_wait,
	.step = gdb_step,
	.stop = gdb_stop,
	.state = gdb_tell_state,
	.close = gdb_close,
};
