/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port of the sampler whose time, link and counters are those of a test. */
#ifndef KSCOPE_TESTS_UNIT_TARGET_PORT_H
#define KSCOPE_TESTS_UNIT_TARGET_PORT_H

#include <stdlib.h>
#include <string.h>

#include "target/kscope.h"

#define PORT_CPUS 4
#define PORT_COUNTERS 3
#define PORT_OUT (1 << 20)

static struct {
	uint64_t now, tick; /* tick: what each look at the clock takes */
	unsigned cpu;	    /* that runs */
	uint64_t timer[PORT_CPUS];
	struct {
		uint64_t period, config;
	} counter[PORT_CPUS][PORT_COUNTERS];
	uint32_t overflows[PORT_CPUS];
	unsigned inits[PORT_CPUS], kicks[PORT_CPUS];
	bool no_kick;
	const char *in; /* what the host types */
	uint8_t out[PORT_OUT];
	size_t out_len;
	size_t window; /* bytes that send takes at a time; 0: nothing */
	size_t tasks, maps;
} port_state;

static struct kscope port_k;

static inline uint64_t port_time(void *data)
{
	(void)data;
	port_state.now += port_state.tick;
	return port_state.now;
}

static inline void port_timer(void *data, uint64_t ns)
{
	(void)data;
	port_state.timer[port_state.cpu] = ns;
}

static inline size_t port_send(void *data, const void *bytes, size_t size)
{
	(void)data;
	if (size > port_state.window)
		size = port_state.window;
	if (size > PORT_OUT - port_state.out_len)
		abort();
	memcpy(port_state.out + port_state.out_len, bytes, size);
	port_state.out_len += size;
	return size;
}

static inline int port_receive(void *data)
{
	(void)data;
	return port_state.in && *port_state.in ? (unsigned char)*port_state.in++ : -1;
}

static inline void port_kick(void *data, unsigned cpu)
{
	unsigned before = port_state.cpu;

	(void)data;
	port_state.kicks[cpu]++;
	if (port_state.no_kick)
		return;
	port_state.cpu = cpu;
	kscope_apply(&port_k, cpu);
	port_state.cpu = before;
}

static inline bool port_task(void *data, size_t i, struct kscope_task *task)
{
	static char name[32];

	(void)data;
	name[0] = (char)('a' + i % 26);
	*task = (struct kscope_task){ .id = (uint32_t)i + 1, .name = name };
	return i < port_state.tasks;
}

static inline bool port_map(void *data, size_t i, struct kscope_map *map)
{
	(void)data;
	*map = (struct kscope_map){ .process = (uint32_t)i, .path = i ? "user.elf" : "kernel.elf" };
	return i < port_state.maps;
}

static inline unsigned port_pmu_init(void)
{
	port_state.inits[port_state.cpu]++;
	return PORT_COUNTERS;
}

/* Counter 0 counts only cycles. */
static inline bool port_pmu_takes(unsigned counter, const struct kscope_event *event)
{
	return counter || (event->type == KSCOPE_HARDWARE && event->config == 0);
}

static inline void port_pmu_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	port_state.counter[port_state.cpu][counter].period = period;
	if (event)
		port_state.counter[port_state.cpu][counter].config = event->config;
}

static inline uint32_t port_pmu_overflows(void)
{
	uint32_t overflows = port_state.overflows[port_state.cpu];

	port_state.overflows[port_state.cpu] = 0;
	return overflows;
}

static inline uint64_t port_pmu_period_max(unsigned counter)
{
	return counter == 2 ? UINT32_MAX : (UINT64_C(1) << 47) - 1;
}

static const struct kscope_event port_events[] = {
	{ "cycles", KSCOPE_HARDWARE, 0, 0x11 },
	{ "instructions", KSCOPE_HARDWARE, 1, 0x08 },
	{ 0 },
};

static const struct kscope_pmu port_pmu = {
	.name = "test",
	.events = port_events,
	.init = port_pmu_init,
	.takes = port_pmu_takes,
	.set = port_pmu_set,
	.overflows = port_pmu_overflows,
	.period_max = port_pmu_period_max,
};

static struct kscope_port port_ops;
static uint64_t port_memory[32768];

/* Starts anew. */
static inline void port_open(unsigned cpus, size_t memory)
{
	memset(&port_state, 0, sizeof(port_state));
	port_state.now = 1000;
	port_state.window = PORT_OUT;
	port_ops = (struct kscope_port){
		.arch = "x86_64",
		.name = "test",
		.cpus = cpus,
		.boot = 7,
		.time = port_time,
		.timer = port_timer,
		.task = port_task,
		.map = port_map,
		.send = port_send,
		.receive = port_receive,
		.kick = port_kick,
		.pmu = &port_pmu,
	};
	if (!kscope_init(&port_k, &port_ops, port_memory, memory))
		abort();
}

/* What the sampler sends, until it has nothing more to do. */
static inline void port_serve(void)
{
	while (kscope_serve(&port_k))
		;
}

static inline bool port_says(const char *command)
{
	char answer[1024];

	return kscope_command(&port_k, command, answer, sizeof(answer));
}

#endif
