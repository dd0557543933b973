// SPDX-License-Identifier: GPL-2.0-or-later
/* See sample.h. */
#include "sample.h"

#include <stdlib.h>
#include <time.h>

#include "api.h"
#include "args.h"
#include "trace.h"

#define GUEST_JUMP 1000000

static struct {
	_Atomic(struct vcpu *) vcpus[WIRE_CPUS_MAX];
	_Atomic unsigned n;
	_Atomic bool running;
	_Atomic bool started;
	_Atomic uint64_t guest_time;  /* the last value read */
	_Atomic uint64_t guest_shift; /* the sum of its jumps back */
} sampler;

static __thread bool between_blocks;
static __thread uint8_t *stack_copy;

/* Time */

static uint64_t host_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The CPU time of the vCPU's thread since the last call. It excludes the time that the host spent on
 * other processes, which says nothing about the guest. The first call returns a period, because the
 * thread may have done anything before. 0: unknown, because vCPUs share the thread.
 */
static uint64_t ran_since(struct vcpu *vcpu)
{
	static __thread const struct vcpu *last;
	static __thread bool shared;
	struct timespec now;
	uint64_t before = vcpu->cpu_time;

	shared |= last && last != vcpu;
	last = vcpu;
	if (shared || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now))
		return 0;
	vcpu->cpu_time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return before && before < vcpu->cpu_time ? vcpu->cpu_time - before : args.period;
}

bool sample_between_blocks(bool yes)
{
	bool before = between_blocks;

	between_blocks = yes;
	return before;
}

/*
 * The guest's clock jumps back when QEMU loads a snapshot, but the time of records must not. A small
 * step back is no jump: threads may arrive here in another order than they read the clock.
 */
static uint64_t guest_now(void)
{
	uint64_t time = (uint64_t)api.clock_ns(API_CLOCK_VIRTUAL);
	uint64_t before = atomic_load(&sampler.guest_time);

	time += atomic_load(&sampler.guest_shift);
	if (time + GUEST_JUMP < before) {
		atomic_fetch_add(&sampler.guest_shift, before - time);
		time = before;
	}
	if (time > before)
		atomic_store(&sampler.guest_time, time);
	return time;
}

uint64_t sample_now(void)
{
	if (args.clock == WIRE_CLOCK_HOST || !api.clock_ns)
		return host_now();
	if (!between_blocks && api_counts_time())
		return atomic_load(&sampler.guest_time);
	return guest_now();
}

uint64_t sample_round(void)
{
	return sample_now();
}

/* vCPUs */

struct vcpu *sample_vcpu(unsigned cpu)
{
	struct vcpu *vcpu, *none = NULL;
	unsigned n = atomic_load(&sampler.n);

	if (cpu >= WIRE_CPUS_MAX)
		return NULL;
	vcpu = atomic_load_explicit(&sampler.vcpus[cpu], memory_order_acquire);
	if (vcpu)
		return vcpu;
	vcpu = calloc(1, sizeof(*vcpu));
	if (!vcpu)
		return NULL;
	vcpu->index = cpu;
	pthread_mutex_init(&vcpu->lock, NULL);
	if (!atomic_compare_exchange_strong(&sampler.vcpus[cpu], &none, vcpu)) {
		free(vcpu);
		return none;
	}
	while (n <= cpu && !atomic_compare_exchange_weak(&sampler.n, &n, cpu + 1))
		;
	return vcpu;
}

unsigned sample_vcpus(void)
{
	return atomic_load(&sampler.n);
}

uint64_t sample_instructions(void)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < sample_vcpus(); cpu++) {
		struct vcpu *vcpu = atomic_load(&sampler.vcpus[cpu]);

		sum += vcpu ? atomic_load(&vcpu->ran) : 0;
	}
	return sum;
}

/* In a child of the emulated program: a thread that the child does not have may hold a lock. */
static void in_child(void)
{
	for (unsigned cpu = 0; cpu < sample_vcpus(); cpu++) {
		struct vcpu *vcpu = atomic_load(&sampler.vcpus[cpu]);

		if (vcpu)
			pthread_mutex_init(&vcpu->lock, NULL);
	}
}

static void set_here(struct vcpu *vcpu, bool here)
{
	pthread_mutex_lock(&vcpu->lock);
	vcpu->here = here;
	if (!here)
		vcpu->state = NULL;
	pthread_mutex_unlock(&vcpu->lock);
}

/* Starts the ticker, once. */
static void start_ticking(void)
{
	if (!args.trace && args.clock != WIRE_CLOCK_INSTRUCTIONS &&
	    !atomic_exchange(&sampler.started, true))
		tick_start();
}

/*
 * Up to 8.2 the creator of the vCPU calls this, before the vCPU's thread exists. While QEMU builds the
 * machine this is harmless, because the ticker waits until the machine runs. A vCPU that is added
 * later takes requests only after its first idle callback.
 */
void sample_cpu_init(unsigned cpu)
{
	struct vcpu *vcpu = sample_vcpu(cpu);
	struct track *track = stream_known_track(cpu);
	bool early = !api.get_registers && api.runstate_is_running && api.runstate_is_running();

	if (!vcpu)
		return;
	atomic_store(&vcpu->idle, false);
	atomic_store(&vcpu->asked, false);
	vcpu->masked = true;
	if (track)
		track_skip(track);
	count_cpu_init(vcpu);
	set_here(vcpu, !early);
	if (!tick_wants_blocks())
		start_ticking();
}

void sample_cpu_exit(unsigned cpu)
{
	struct vcpu *vcpu = sample_vcpu(cpu);

	if (vcpu)
		set_here(vcpu, false);
}

void sample_cpu_idle(unsigned cpu)
{
	struct vcpu *vcpu = sample_vcpu(cpu);

	if (!vcpu)
		return;
	atomic_store(&vcpu->idle, true);
	if (!vcpu->here)
		set_here(vcpu, true);
}

void sample_cpu_resume(unsigned cpu)
{
	struct vcpu *vcpu = sample_vcpu(cpu);

	if (vcpu)
		atomic_store(&vcpu->idle, false);
}

void sample_syscall(unsigned cpu, bool returns)
{
	struct vcpu *vcpu = sample_vcpu(cpu);

	if (vcpu)
		atomic_store(&vcpu->idle, !returns);
}

/* Looks */

bool sample_by_work(void)
{
	return api.async_run_on_cpu && api.get_cpu && regs_in_work();
}

uint64_t sample_jitter(uint64_t *state, uint64_t period)
{
	if (!args.jitter || period < 2)
		return period;
	if (!*state)
		*state = 0x9e3779b97f4a7c15;
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return period - period / 2 + *state % (period / 2 * 2 + 1);
}

size_t sample_stack(const struct regs_view *view, const struct regs *regs, const uint8_t **stack)
{
	if (!stack_copy && args.stack)
		stack_copy = malloc(args.stack);
	*stack = stack_copy;
	if (!stack_copy || !regs->n)
		return 0;
	return regs_memory(view, regs->sp, stack_copy, args.stack);
}

void sample_from_regs(struct wire_sample *sample, const struct regs_view *view,
		      const struct regs *regs)
{
	const uint8_t *stack;

	*sample = (struct wire_sample){
		.pc = regs->pc,
		.space = regs->space,
		.level = regs->level,
		.no_space = !regs->has_space,
		.registers = regs->dwarf,
		.n_registers = regs->n,
	};
	sample->stack_size = sample_stack(view, regs, &stack);
	sample->stack = stack;
	outer_stack(sample, view, regs);
}

static void put_idle(struct track *track)
{
	struct wire_sample sample = { .idle = true };

	if (args.maestro || !args.user || !args.kernel_level || !sample_running())
		track_skip(track);
	else
		track_put_sample(track, &sample);
}

/* Instead of a sample while recording is stopped: the next sample must not count this time. */
static void skip(struct vcpu *vcpu, struct track *track)
{
	if (args.clock == WIRE_CLOCK_HOST)
		ran_since(vcpu);
	track_skip(track);
}

void sample_take(struct vcpu *vcpu, const struct regs_view *view, uint64_t pc, uint64_t weight)
{
	struct track *track = stream_known_track(vcpu->index);
	struct wire_sample sample;
	struct regs regs;
	bool was_masked;

	if (!track)
		return;
	if (!sample_running()) {
		skip(vcpu, track);
		return;
	}
	regs_read(view, pc, &regs);
	/*
	 * Before a work item QEMU delivers pending interrupts to the vCPU. The time was spent in the
	 * interrupted code, whose address is lost, so it goes to the next sample. If interrupts were
	 * masked before, the code only looks like the start of a handler.
	 */
	was_masked = vcpu->masked;
	vcpu->masked = regs.masked;
	if (view->state && regs.at_trap && !was_masked && args.clock != WIRE_CLOCK_INSTRUCTIONS)
		return;
	if (args.clock == WIRE_CLOCK_HOST)
		weight = ran_since(vcpu);
	if (!args_wants_level(regs.level)) {
		track_skip(track);
		return;
	}
	if (args.maestro) {
		maestro_put(track, view, &regs);
		return;
	}
	code_note(track, view, &regs);
	sample_from_regs(&sample, view, &regs);
	sample.weight = weight;
	track_put_sample(track, &sample);
}

bool sample_in_trace(struct track *track, unsigned cpu, uint64_t pc, uint64_t place)
{
	struct regs_view view = { .cpu = cpu };
	struct wire_sample sample;
	struct regs regs;

	regs_read(&view, pc, &regs);
	regs.pc = pc; /* as in the trace; in x86's real mode, the register is only an offset */
	sample_from_regs(&sample, &view, &regs);
	sample.place = place;
	return track_put_sample(track, &sample);
}

/* A work item: the vCPU is between two blocks. */
static void look(struct CPUState *state, void *data)
{
	struct vcpu *vcpu = data;
	struct regs_view view = { .cpu = vcpu->index, .state = state };
	struct track *track = stream_known_track(vcpu->index);
	bool before = sample_between_blocks(true);
	uint64_t ran, weight;

	atomic_store(&vcpu->asked, false);
	count_correct(vcpu);
	ran = atomic_load(&vcpu->ran);
	/* The earlier count may have been too high: see count_correct(). */
	weight = ran > vcpu->seen ? ran - vcpu->seen : 1;
	if (args.clock != WIRE_CLOCK_INSTRUCTIONS) {
		weight = 0;
		if (track && api.cpu_is_idle && api.cpu_is_idle(state)) {
			if (!api.runstate_is_running || api.runstate_is_running())
				put_idle(track);
			track = NULL;
		}
	}
	vcpu->seen = ran;
	if (track)
		sample_take(vcpu, &view, 0, weight);
	sample_between_blocks(before);
}

static bool is_idle(struct vcpu *vcpu)
{
	return atomic_load(&vcpu->idle) || (api.cpu_is_idle && api.cpu_is_idle(vcpu->state));
}

void sample_ask(struct vcpu *vcpu)
{
	struct track *track = stream_known_track(vcpu->index);

	if (!track || atomic_load(&vcpu->asked))
		return;
	pthread_mutex_lock(&vcpu->lock);
	if (vcpu->here && !vcpu->state && api.get_cpu)
		vcpu->state = api.get_cpu((int)vcpu->index);
	if (!vcpu->here || (sample_by_work() && !vcpu->state)) {
		pthread_mutex_unlock(&vcpu->lock);
		return;
	}
	if (args.clock != WIRE_CLOCK_INSTRUCTIONS && is_idle(vcpu)) {
		/* A thread of a program that waits in a system call is not an idle cpu. */
		if (!api.user_mode)
			put_idle(track);
	} else {
		atomic_store(&vcpu->asked, true);
		if (sample_by_work())
			api.async_run_on_cpu(vcpu->state, look, vcpu);
	}
	pthread_mutex_unlock(&vcpu->lock);
}

/* Start and stop */

bool sample_running(void)
{
	return atomic_load_explicit(&sampler.running, memory_order_relaxed);
}

void sample_set_running(bool on)
{
	atomic_store(&sampler.running, on);
	trace_set_running(on);
}

void sample_open(void)
{
	atomic_store(&sampler.running, !args.paused && !args.n_from);
	pthread_atfork(NULL, NULL, in_child);
	if (args.trace)
		return;
	if (args.clock == WIRE_CLOCK_INSTRUCTIONS || !sample_by_work())
		count_open();
	if (args.clock != WIRE_CLOCK_INSTRUCTIONS)
		tick_open();
}

bool sample_wants_blocks(void)
{
	return args.clock == WIRE_CLOCK_INSTRUCTIONS || !sample_by_work() || tick_wants_blocks();
}

void sample_translate(struct qemu_plugin_tb *tb)
{
	if (args.trace)
		return;
	start_ticking();
	if (args.clock == WIRE_CLOCK_INSTRUCTIONS || !sample_by_work())
		count_translate(tb);
}

void sample_close(void)
{
	tick_close();
	count_close();
	atomic_store(&sampler.running, false);
}
