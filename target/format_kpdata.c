// SPDX-License-Identifier: MIT
/*
 * format_kpdata: the profile of Akaros, in its last version: records without a header, each a type, a size and a packed
 * body, for kprof2perf.
 *
 * A trace is of the kernel or of a user, never both: of a sample in the kernel, the user's part is left out. Its first
 * address is stored once.
 *
 * The format does not have: the kernel's own map, names of threads, the weight of a sample, allocations, the end of the
 * stream, and drops, which only `status` counts.
 */
#include "kscope.h"
#include "divide.h"
#include "wire_small.h"

enum { KERNEL_TRACE = 1, USER_TRACE, MAP, PROCESS };

#define NO_PID 0xffffffffu
#define TRACE_HEAD 24
#define MAP_HEAD 36
#define PROCESS_HEAD 12
#define LONGEST_PATH 4096
/* A trace fits an empty message: its type, the two bytes of its size, and what is left for the end of a message. */
#define TRACE_MAX ((KSCOPE_CHUNK - WIRE_CHECK_SIZE - 3 - TRACE_HEAD) / 8)

/* ---- what triggered a sample ---- */

#define DOMAIN_SHIFT 60
#define DOMAIN_TIMER 1 /* data: the period in us */
#define DOMAIN_PMU 2   /* data: mask and event, as an x86 has them */
#define PMU_FIXED 0x10000

/* The fixed counters of an x86: instructions, cycles, reference cycles. Here they stand for what they count. */
static uint64_t pmu_data(const struct kscope_event *event)
{
	static const uint8_t fixed[] = { 1, 0, 9 }; /* numbers of perf */

	for (unsigned i = 0; event->type == KSCOPE_HARDWARE && i < sizeof(fixed); i++) {
		if (event->config == fixed[i])
			return PMU_FIXED | i;
	}
	return event->raw & 0xffff;
}

static uint64_t info_of(const struct kscope *k, unsigned event)
{
	const struct kscope_slot *slot = &k->slot[event];

	if (event)
		return (uint64_t)DOMAIN_PMU << DOMAIN_SHIFT | pmu_data(&slot->event);
	return (uint64_t)DOMAIN_TIMER << DOMAIN_SHIFT | kscope_quotient(slot->period, 1000);
}

/* ---- records ---- */

static void put_head(struct wire *w, unsigned type, size_t size)
{
	wire_varint(w, type);
	wire_varint(w, size);
}

static void put_record(struct kscope *k, struct wire *w, unsigned cpu,
		       const struct kscope_record *record)
{
	unsigned nr = record->nr - record->user_frames;

	if (nr > TRACE_MAX)
		nr = TRACE_MAX;
	put_head(w, record->user ? USER_TRACE : KERNEL_TRACE, TRACE_HEAD + 8 * (size_t)nr);
	wire_little(w, info_of(k, record->event), 8);
	wire_little(w, record->time, 8);
	wire_little(w, record->task ? kscope_process(k, record->task) : NO_PID, 4);
	wire_little(w, cpu, 2);
	wire_little(w, nr, 2);
	for (unsigned i = 0; i < nr; i++)
		wire_little(w, record->frames[i], 8);
}

/* The type has one byte. */
static size_t record_size(const uint8_t *at)
{
	const uint8_t *next = at + 1;
	size_t size = 0;

	for (unsigned shift = 0;; shift += 7) {
		size |= (size_t)(*next & 0x7f) << shift;
		if (!(*next++ & 0x80))
			return size + (size_t)(next - at);
	}
}

/* Its size with the NUL; 0: readers would refuse it. */
static size_t path_size(const char *path)
{
	size_t size = 0;

	while (path && path[size] && size < LONGEST_PATH)
		size++;
	return size && size < LONGEST_PATH ? size + 1 : 0;
}

/* A process; other tasks share its name. */
static void put_task(struct wire *w, const struct kscope_task *task)
{
	size_t size = path_size(task->name);

	if (!size || (task->process && task->process != task->id))
		return;
	put_head(w, PROCESS, PROCESS_HEAD + size);
	wire_little(w, task->since, 8);
	wire_little(w, task->id, 4);
	wire_raw(w, task->name, size);
}

/* A map without a size has no form here: users name its file themselves, with --elf. */
static void put_map(struct wire *w, const struct kscope_map *map)
{
	size_t size = path_size(map->path);

	if (!size || !map->process || !map->size)
		return;
	put_head(w, MAP, MAP_HEAD + size);
	wire_little(w, map->since, 8);
	wire_little(w, map->address, 8);
	wire_little(w, map->size, 8);
	wire_little(w, map->offset, 8);
	wire_little(w, map->process, 4);
	wire_raw(w, map->path, size);
}

const struct kscope_format kscope_format_kpdata = {
	.name = "kpdata",
	.batch = UINT32_MAX,
	.size = record_size,
	.maps_first = true,
	.task = put_task,
	.map = put_map,
	.record = put_record,
};
