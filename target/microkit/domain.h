/* SPDX-License-Identifier: MIT */
/* domain.h: what the files of kscope's protection domains share. */
#ifndef KSCOPE_MICROKIT_DOMAIN_H
#define KSCOPE_MICROKIT_DOMAIN_H

#include "kscope.h"
#include "system.h"

/* In the region that all of them map. */
struct shared {
	uint32_t ready;		      /* the client has prepared k */
	uint32_t looks;		      /* see profiler.c */
	uint64_t period[KSCOPE_CPUS]; /* of the timer of each cpu; 0: off */
	struct kscope k;
};

/* The system description sets these. */
extern uintptr_t kscope_region;
extern uintptr_t kscope_region_size;

static inline struct shared *shared_region(void)
{
	return (struct shared *)kscope_region;
}

static inline bool shared_is_ready(void)
{
	return __atomic_load_n(&shared_region()->ready, __ATOMIC_ACQUIRE);
}

/* port.c: the same in all of them */
extern struct kscope_port domain_port;
void domain_port_init(void);

/* pmu_user.c */
extern struct kscope_pmu domain_pmu;

/* profiler.c */
void profiler_init(unsigned cpu);
void profiler_notified(unsigned channel);
bool profiler_fault(unsigned id, uint64_t label);
void profiler_timer(uint64_t ns);

/* children.c */
void children_begin(unsigned cpu);
void children_look(unsigned cpu);
/* Who was running; false: no child. `doubt`: it had no time to run since the look. */
bool children_find(unsigned cpu, struct kscope_at *at, bool *doubt);
/* Adds to a place in a child what its registers say. False: there is no such child. */
bool children_at(unsigned cpu, unsigned id, struct kscope_at *at);
bool children_read(const struct kscope_at *at, void *to, uintptr_t from, size_t size);

/* client.c */
void client_init(void);
void client_notified(unsigned channel);

/* link_*.c: the line to the host. Neither send nor receive waits. */
void link_init(void);
/* Of any channel of the client that is not a profiler's. */
void link_notified(unsigned channel);
size_t link_send(const void *bytes, size_t size);
int link_receive(void);

/* clock_*.c */
uint64_t clock_now(void); /* ns */

/* alarm_*.c: by the channel for the timer */
void alarm_set(unsigned channel, uint64_t ns); /* once; 0: not at all */
void alarm_acknowledge(unsigned channel);

#endif
