// SPDX-License-Identifier: MIT
/* port: what Microkit provides to kscope. The functions run in whichever protection domain calls them. */
#include <microkit.h>

#include "domain.h"

struct kscope_port domain_port;

static uint64_t port_time(void *data)
{
	(void)data;
	return clock_now();
}

static bool port_read(void *data, const struct kscope_at *at, void *to, uintptr_t from, size_t size)
{
	(void)data;
	return children_read(at, to, from, size);
}

static void port_timer(void *data, uint64_t ns)
{
	(void)data;
	profiler_timer(ns);
}

/* After the children, one for the time in which none of them ran. */
static bool port_task(void *data, size_t i, struct kscope_task *task)
{
	(void)data;
	if (i > system_n_children)
		return false;
	*task = (struct kscope_task){ .id = (uint32_t)i + 1 };
	task->name = i == system_n_children ? "(other)" : system_children[i].name;
	return true;
}

static bool port_map(void *data, size_t i, struct kscope_map *map)
{
	(void)data;
	if (i >= system_n_children)
		return false;
	*map = (struct kscope_map){ .process = (uint32_t)i + 1, .path = system_children[i].elf };
	return true;
}

static size_t port_send(void *data, const void *bytes, size_t size)
{
	(void)data;
	return link_send(bytes, size);
}

static int port_receive(void *data)
{
	(void)data;
	return link_receive();
}

static void port_kick(void *data, unsigned cpu)
{
	(void)data;
	if (system_profilers[cpu].name)
		microkit_notify((microkit_channel)system_profilers[cpu].kick);
}

void domain_port_init(void)
{
	domain_port = (struct kscope_port){
		.arch = "aarch64",
		.name = "seL4 Microkit",
		.cpus = system_n_profilers,
		.time = port_time,
		.read = port_read,
		.timer = port_timer,
		.task = port_task,
		.map = port_map,
		.send = port_send,
		.receive = port_receive,
		.kick = port_kick,
	};
#ifdef CONFIG_PROFILER_ENABLE
	domain_pmu.events = kscope_pmu_armv8.events;
	domain_port.pmu = &domain_pmu;
#endif
}
