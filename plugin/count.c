// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * count: counts instructions, block by block. Since QEMU 9.1 the generated code counts and calls back
 * only at a limit; before, every block calls back.
 *
 * It serves clock=instructions, and any clock on a QEMU whose vCPUs cannot be interrupted for samples.
 * There each vCPU checks after some instructions whether the ticker has asked for a sample.
 */
#include <stddef.h>

#include "api.h"
#include "args.h"
#include "sample.h"

/* Counters start below this limit, by the instructions until the next callback. */
#define LIMIT (1ull << 62)
/* The instructions between two checks of a vCPU for a request. */
#define LOOK_EVERY 10000

static struct {
	bool open;
	api_u64 counter;
} count;

/* Valid only once the machine exists: before, it is unknown how vCPUs run. */
static bool is_inlined(void)
{
	return count.counter.score && !api_mixes_cpus();
}

static void arm(struct vcpu *vcpu)
{
	vcpu->armed = args.clock == WIRE_CLOCK_INSTRUCTIONS
			      ? sample_jitter(&vcpu->random, args.period)
			      : LOOK_EVERY;
	if (is_inlined())
		api.u64_set(count.counter, vcpu->index, LIMIT - vcpu->armed);
}

/* Takes a sample, if one is due. */
static void look(struct vcpu *vcpu, uint64_t pc)
{
	struct regs_view view = { .cpu = vcpu->index };
	uint64_t ran = atomic_load_explicit(&vcpu->ran, memory_order_relaxed);
	uint64_t weight = 0;

	if (args.clock == WIRE_CLOCK_INSTRUCTIONS) {
		if (!args_wants_cpu(vcpu->index) || !sample_running()) {
			vcpu->seen = ran;
			return;
		}
		if (sample_by_work()) {
			sample_ask(vcpu);
			return;
		}
		weight = ran - vcpu->seen;
		vcpu->seen = ran;
	} else if (!atomic_exchange(&vcpu->asked, false)) {
		return;
	}
	sample_take(vcpu, &view, pc, weight);
}

/* Since 9.1: the counter has reached the limit. */
static void on_limit(unsigned cpu, void *pc)
{
	struct vcpu *vcpu = sample_vcpu(cpu);
	uint64_t value = api.u64_get(count.counter, cpu);

	if (!vcpu)
		return;
	atomic_fetch_add_explicit(&vcpu->ran, value - (LIMIT - vcpu->armed), memory_order_relaxed);
	arm(vcpu);
	look(vcpu, (uintptr_t)pc);
}

static void add(struct vcpu *vcpu, uint64_t n)
{
	/* Only this thread writes vcpu->ran. */
	atomic_store_explicit(&vcpu->ran,
			      atomic_load_explicit(&vcpu->ran, memory_order_relaxed) + n,
			      memory_order_relaxed);
	vcpu->armed = vcpu->armed > n ? vcpu->armed - n : 0;
}

/* Before 9.1, or if vCPUs share a thread: at the start of a block. on_block_pc() gets its address. */
static void on_block(unsigned cpu, void *n)
{
	struct vcpu *vcpu = sample_vcpu(api_running_cpu(cpu));

	if (vcpu)
		add(vcpu, (uintptr_t)n);
}

static void on_block_pc(unsigned cpu, void *pc)
{
	struct vcpu *vcpu = sample_vcpu(api_running_cpu(cpu));

	if (!vcpu || vcpu->armed)
		return;
	arm(vcpu);
	look(vcpu, (uintptr_t)pc);
}

static void on_block_by_work(unsigned cpu, void *n)
{
	struct vcpu *vcpu = sample_vcpu(api_running_cpu(cpu));

	if (!vcpu)
		return;
	add(vcpu, (uintptr_t)n);
	if (!vcpu->armed) {
		arm(vcpu);
		look(vcpu, 0);
	}
}

void count_open(void)
{
	if (api.tb_exec_cond_cb && api.tb_exec_inline && api.scoreboard_new && api.u64_set)
		count.counter.score = api.scoreboard_new(sizeof(uint64_t));
	count.open = true;
}

void count_cpu_init(struct vcpu *vcpu)
{
	if (!count.open)
		return;
	vcpu->random = 0;
	arm(vcpu);
}

void count_translate(struct qemu_plugin_tb *tb)
{
	uint64_t n = api.tb_n_insns(tb);
	void *pc = (void *)(uintptr_t)api.tb_vaddr(tb);
	bool by_work = sample_by_work() && args.clock == WIRE_CLOCK_INSTRUCTIONS;
	int flags = by_work ? API_NO_REGS : API_R_REGS;

	if (is_inlined()) {
		api.tb_exec_inline(tb, API_ADD_U64, count.counter, n);
		api.tb_exec_cond_cb(tb, on_limit, flags, API_COND_GE, count.counter, LIMIT, pc);
	} else if (by_work) {
		api.tb_exec_cb(tb, on_block_by_work, flags, (void *)(uintptr_t)n);
	} else {
		api.tb_exec_cb(tb, on_block, API_NO_REGS, (void *)(uintptr_t)n);
		api.tb_exec_cb(tb, on_block_pc, flags, pc);
	}
}

void count_correct(struct vcpu *vcpu)
{
	if (count.open && api.max_cpus == 1 && api.icount_raw && api_counts_time())
		atomic_store(&vcpu->ran, (uint64_t)api.icount_raw());
}

/* Adds the instructions since the last callback. */
void count_close(void)
{
	for (unsigned cpu = 0; count.open && cpu < sample_vcpus(); cpu++) {
		struct vcpu *vcpu = sample_vcpu(cpu);
		struct track *track = stream_known_track(cpu);

		if (!vcpu)
			continue;
		if (is_inlined() && vcpu->armed)
			atomic_fetch_add(&vcpu->ran,
					 api.u64_get(count.counter, cpu) - (LIMIT - vcpu->armed));
		count_correct(vcpu);
		if (track && args.clock == WIRE_CLOCK_INSTRUCTIONS)
			atomic_store(&track->instructions, atomic_load(&vcpu->ran));
	}
	count.open = false;
}
