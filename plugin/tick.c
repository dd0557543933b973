// SPDX-License-Identifier: GPL-2.0-or-later
/* tick: requests samples of all vCPUs, by host time or by guest time. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "api.h"
#include "args.h"
#include "sample.h"

static struct {
	pthread_t thread;
	bool has_thread;
	int wake;
	_Atomic bool stopping;
	uint64_t random;
	bool was_stopped;
	/* QEMU's timer: a structure that only QEMU accesses, smaller than this. */
	_Alignas(16) uint8_t timer[512];
	int64_t next;
} ticker = { .wake = -1, .was_stopped = true };

static void skip_all(void)
{
	for (unsigned cpu = 0; cpu < sample_vcpus(); cpu++) {
		struct track *track = stream_known_track(cpu);

		if (track)
			track_skip(track);
	}
}

/*
 * While the machine does not run, a vCPU may have no thread, and a request would abort QEMU. With from=
 * and to= the ticker always requests samples: the guest may pass both faster than the clock ticks.
 */
static bool guest_runs(void)
{
	return (sample_running() || args.n_from || args.n_to) &&
	       (!api.runstate_is_running || api.runstate_is_running());
}

static void tick(void)
{
	if (!guest_runs()) {
		ticker.was_stopped = true;
		return;
	}
	if (ticker.was_stopped) {
		ticker.was_stopped = false;
		skip_all();
		return;
	}
	for (unsigned cpu = 0; cpu < sample_vcpus(); cpu++) {
		struct vcpu *vcpu = sample_vcpu(cpu);

		if (vcpu && args_wants_cpu(cpu))
			sample_ask(vcpu);
	}
}

static int64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *ticker_main(void *unused)
{
	struct pollfd wake = { .fd = ticker.wake, .events = POLLIN };
	int64_t next = host_ns();

	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	while (!atomic_load(&ticker.stopping)) {
		int64_t now = host_ns(), wait;

		next += (int64_t)sample_jitter(&ticker.random, args.period);
		if (next < now)
			next = now; /* do not catch up */
		wait = next - now;
		if (wait > 0)
			ppoll(&wake, 1, &(struct timespec){ wait / 1000000000, wait % 1000000000 },
			      NULL);
		if (!atomic_load(&ticker.stopping))
			tick();
	}
	return NULL;
}

/* QEMU calls this in its main loop, or with -icount between two blocks. */
static void on_timer(void *unused)
{
	bool before = sample_between_blocks(true);

	(void)unused;
	if (!atomic_load(&ticker.stopping)) {
		tick();
		ticker.next += (int64_t)sample_jitter(&ticker.random, args.period);
		if (ticker.next <= api.clock_ns(API_CLOCK_VIRTUAL))
			ticker.next = api.clock_ns(API_CLOCK_VIRTUAL) + (int64_t)args.period;
		api.timer_mod(ticker.timer, ticker.next);
	}
	sample_between_blocks(before);
}

static void arm_timer(struct CPUState *state, void *unused)
{
	(void)state, (void)unused;
	api.timer_init(ticker.timer, api.timer_lists, API_CLOCK_VIRTUAL, 1, 0, on_timer, NULL);
	ticker.next = api.clock_ns(API_CLOCK_VIRTUAL) + (int64_t)args.period;
	api.timer_mod(ticker.timer, ticker.next);
}

static bool has_timer(void)
{
	return args.clock == WIRE_CLOCK_GUEST && !api.user_mode && sample_by_work() &&
	       api.timer_init && api.timer_mod && api.timer_lists && api.clock_ns;
}

bool tick_wants_blocks(void)
{
	return has_timer() || (!api.user_mode && !api.runstate_is_running);
}

void tick_open(void)
{
	if (args.clock == WIRE_CLOCK_GUEST && !has_timer())
		api_say("this QEMU has no timers for plugins: clock=guest takes samples by host "
			"time "
			"while the guest runs; with -icount use clock=instructions");
}

static void in_child(void)
{
	ticker.has_thread = false;
}

static void start_thread(void)
{
	int result;

	ticker.wake = api_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	pthread_atfork(NULL, NULL, in_child);
	result = api_thread(&ticker.thread, ticker_main);
	ticker.has_thread = !result;
	if (result)
		api_say("cannot start a thread, so there will be no samples: %s", strerror(result));
}

void tick_start(void)
{
	struct CPUState *first = has_timer() ? api.get_cpu(0) : NULL;

	if (first)
		api.async_run_on_cpu(first, arm_timer, NULL);
	else
		start_thread();
}

void tick_close(void)
{
	uint64_t one = 1;

	atomic_store(&ticker.stopping, true);
	if (!ticker.has_thread)
		return;
	if (write(ticker.wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(ticker.thread, NULL);
	ticker.has_thread = false;
}
