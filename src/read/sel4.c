// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/sel4.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"
#include "base/wide.h"
#include "model/source.h"
#include "read/sel4_json.h"

#define HALF_WRAP ((uint64_t)1 << 31)
#define LATE ((uint64_t)1 << 26) /* 67 ms */

#define MAX_UNMAPPED 64
#define HEADER_FILE "sample_header.json" /* in the build folder, and its name in an archive */

struct unmapped {
	uint32_t pid;
	uint64_t samples;
};

const struct option_table sel4_tick_table = {
	"Input",
	(const struct option_row[]){
		{ "tick-hz", 0, "HZ", "interpret times as ticks of this frequency",
		  .set = option_number, .least = 1, .most = UINT64_MAX },
		{ 0 },
	},
};

static const struct sel4_mapping *find_mapping(const struct sel4 *s, uint32_t pid)
{
	for (size_t i = 0; i < s->nr_mappings; i++) {
		if (s->mappings[i].pid == pid)
			return &s->mappings[i];
	}
	return NULL;
}

void sel4_map(struct sel4 *s, const char *elf, size_t len, uint32_t pid)
{
	const struct sel4_mapping *old = find_mapping(s, pid);

	if (old) {
		if (!old->given && (strlen(old->elf) != len || memcmp(old->elf, elf, len) != 0))
			log_warn("pid %" PRIu32 " is mapped to %s and to %.*s; using %s", pid,
				 old->elf, (int)len, elf, old->elf);
		return;
	}
	GROW(s->mappings, s->nr_mappings + 1, s->cap_mappings);
	s->mappings[s->nr_mappings++] = (struct sel4_mapping){
		.pid = pid,
		.elf = xstrndup(elf, len),
	};
}

/* In the second generation the profiler's build writes the mapping. */
static int read_header_file(struct reader *r, struct sel4 *s)
{
	char *path = xasprintf("%s/%s", r->options->build_dir, HEADER_FILE), *real = NULL;
	int ret = 0;

	if (access(path, F_OK) == 0)
		ret = sel4_json_mappings(r->store, path, s, &r->err);
	else if (errno != ENOENT)
		ret = err_set(&r->err, ERR_INPUT, "%s: %s", path, strerror(errno));
	real = ret == 0 ? realpath(path, NULL) : NULL;
	if (real)
		store_use(r->store, real, STORE_NAME, HEADER_FILE);
	free(real);
	free(path);
	return ret;
}

int sel4_open(struct reader *r, struct sel4 *s, bool has_mapping)
{
	const struct options *options = r->options;

	if (reader_needs_pids(r) < 0)
		return -1;
	for (size_t i = 0; i < options->nr_elfs; i++) {
		sel4_map(s, options->elfs[i].path, strlen(options->elfs[i].path),
			 options->elfs[i].pid);
		s->mappings[s->nr_mappings - 1].given = true;
	}
	if (has_mapping)
		return 0;
	if (r->store && r->store->archive && store_has(r->store, HEADER_FILE))
		return sel4_json_mappings(r->store, HEADER_FILE, s, &r->err);
	return options->build_dir ? read_header_file(r, s) : 0;
}

void sel4_close(struct sel4 *s)
{
	for (size_t i = 0; i < s->nr_mappings; i++)
		free(s->mappings[i].elf);
	free(s->mappings);
	free(s->unmapped);
}

enum { TELL_SYSTEM, TELL_CLOCK, TELL_SOURCE, TELL_MAPPINGS };

static void tell_clock(struct sel4 *s, struct event *ev)
{
	snprintf(s->clock, sizeof(s->clock), "%" PRIu64 " Hz ticks, converted to ns", s->tick_hz);
	ev->kind = EVENT_META;
	ev->meta = (struct event_meta){ "clock", s->clock };
}

static void tell_source(const struct sel4 *s, struct event *ev)
{
	ev->kind = EVENT_SOURCE;
	ev->source.id = 1;
	source_from_name(&ev->source, s->event_name ? s->event_name : "cycles");
}

static void tell_mapping(struct sel4 *s, struct event *ev)
{
	struct sel4_mapping *mapping = &s->mappings[s->told - TELL_MAPPINGS];

	ev->pid = ev->tid = mapping->pid;
	if (s->comm_next) {
		ev->kind = EVENT_COMM;
		ev->comm.comm = text_last_part(mapping->elf);
		s->told++;
	} else {
		ev->kind = EVENT_MAP;
		ev->map.path = mapping->elf;
		ev->map.whole = true;
		ev->map.given = mapping->given;
	}
	s->comm_next = !s->comm_next;
}

bool sel4_tell(struct sel4 *s, struct event *ev)
{
	if (s->told == TELL_CLOCK && !s->tick_hz)
		s->told++;
	switch (s->told) {
	case TELL_SYSTEM:
		ev->kind = EVENT_META;
		ev->meta = (struct event_meta){ "osrelease", "seL4" };
		break;
	case TELL_CLOCK: tell_clock(s, ev); break;
	case TELL_SOURCE: tell_source(s, ev); break;
	default:
		if (s->told - TELL_MAPPINGS >= s->nr_mappings)
			return false;
		tell_mapping(s, ev);
		return true;
	}
	s->told++;
	return true;
}

void sel4_connected(struct sel4 *s)
{
	s->connected = true;
}

/* A clock that does not wrap. It begins again if the target does, which only a new connection shows. */
static uint64_t follow(struct sel4 *s, uint64_t time)
{
	uint64_t most = NO_TIME - 1 - time;

	if (s->connected && s->shift < most && time + s->shift + LATE < s->newest)
		s->shift = s->newest - time;
	s->connected = false;
	time += s->shift < most ? s->shift : most;
	if (time > s->newest)
		s->newest = time;
	return time;
}

/*
 * The second generation stores nanoseconds in 32 bits, which wrap every 4.29 s. The clock of a cpu
 * goes back at most by LATE, when samples arrive late, and cpus are less than half a wrap apart.
 * The first time that satisfies both is the true one.
 */
static uint64_t unwrap(struct sel4 *s, uint64_t time, uint32_t cpu)
{
	uint64_t *last = &s->last[cpu % SEL4_CPUS], least = 0, wraps;

	if (s->wide || time > UINT32_MAX) {
		s->wide = true;
		return follow(s, time);
	}
	s->connected = false; /* a clock that began again looks as if it had wrapped */
	if (*last > LATE)
		least = *last - LATE;
	if (s->newest > HALF_WRAP && s->newest - HALF_WRAP > least)
		least = s->newest - HALF_WRAP;
	if (time < least)
		time += (least - time + UINT32_MAX) >> 32 << 32;
	wraps = time >> 32;
	if (wraps > s->wraps)
		s->wraps = wraps;
	*last = time;
	if (time > s->newest)
		s->newest = time;
	return time;
}

static uint64_t to_ns(const struct sel4 *s, uint64_t ticks)
{
	uint64_t hz = s->tick_hz;

	return hz ? wide_quotient(wide_product(ticks, 1000000000), hz) : ticks;
}

/* The number of valid callers in the chain, without the ip itself. */
static uint64_t chain_length(const struct sel4_sample *sample)
{
	uint64_t nr = sample->nr < sample->nr_ips ? sample->nr : sample->nr_ips;

	if (sample->nr == SEL4_NOT_COUNTED) {
		for (nr = 0; nr < sample->nr_ips && sample->chain[nr + 1];)
			nr++;
	}
	/* The profiler fills unused entries with zeros. */
	while (nr && sample->chain[nr] == 0)
		nr--;
	return nr;
}

static void count_unmapped(struct sel4 *s, uint32_t pid)
{
	if (find_mapping(s, pid))
		return;
	for (size_t i = 0; i < s->nr_unmapped; i++) {
		if (s->unmapped[i].pid == pid) {
			s->unmapped[i].samples++;
			return;
		}
	}
	if (s->nr_unmapped >= MAX_UNMAPPED) { /* enough for warnings; keeps garbage cheap */
		s->more_unmapped++;
		return;
	}
	GROW(s->unmapped, s->nr_unmapped + 1, s->cap_unmapped);
	s->unmapped[s->nr_unmapped++] = (struct unmapped){ pid, 1 };
}

/* Addresses that are markers in a chain. A wrong caller is no reason to lose the sample. */
static void check_callers(struct sel4 *s, uint64_t nr, uint64_t offset)
{
	for (uint64_t i = 0; i <= nr; i++) {
		if (!ip_is_marker(s->sample.chain[i]))
			continue;
		s->sample.chain[i] = 0;
		if (!s->wrong_callers++)
			s->wrong_at = offset;
	}
}

void sel4_event(struct sel4 *s, uint64_t offset, struct event *ev)
{
	struct sel4_sample *sample = &s->sample;
	uint64_t nr = chain_length(sample);

	check_callers(s, nr, offset);
	count_unmapped(s, sample->pid);
	ev->kind = EVENT_SAMPLE;
	ev->time = to_ns(s, unwrap(s, sample->time, sample->cpu));
	ev->cpu = sample->cpu;
	ev->pid = ev->tid = sample->pid;
	ev->sample = (struct event_sample){
		.ips = sample->chain,
		.nr = (uint32_t)nr + 1,
		.source = 1,
		.weight = sample->period ? sample->period : 1,
		.context = IP_USER,
	};
}

/* No cpu takes two samples in the same state at the same time. */
static bool came_twice(struct sel4 *s)
{
	const struct sel4_sample *sample = &s->sample;
	struct hash_key *seen = &s->seen[sample->cpu % SEL4_CPUS], all;
	uint64_t facts[] = { sample->time, sample->period, sample->pid, sample->cpu, sample->nr };
	bool twice;

	all = hash_words(facts, sizeof(facts) / sizeof(facts[0]), 0);
	all = hash_words(sample->chain, 1 + sample->nr_ips, all.a ^ all.b);
	twice = sample->time && all.a == seen->a && all.b == seen->b;
	*seen = all;
	return twice;
}

int sel4_take(struct reader *r, struct sel4 *s, uint64_t offset, uint64_t bytes, struct event *ev)
{
	if (ip_is_marker(s->sample.chain[0]))
		return reader_damage(r, ev, offset, 1, bytes, "ip: %s", SEL4_NO_ADDRESS);
	if (came_twice(s))
		return reader_damage(r, ev, offset, 0, bytes, "duplicate sample; ignored");
	sel4_event(s, offset, ev);
	return 1;
}

void sel4_end(struct reader *r, struct sel4 *s)
{
	if (s->wraps)
		log_warn("%s: the 32-bit clock wrapped %" PRIu64 " time%s; times are corrected",
			 r->in->path, s->wraps, s->wraps == 1 ? "" : "s");
	for (size_t i = 0; i < s->nr_unmapped; i++) {
		const struct unmapped *none = &s->unmapped[i];

		if (!find_mapping(s, none->pid)) /* mappings may come after the samples */
			reader_missing(r,
				       "%s: no ELF for pid %" PRIu32 ": its %" PRIu64
				       " samples have no symbols; use --elf %" PRIu32
				       "=FILE, or --build-dir with a sample_header.json",
				       r->in->path, none->pid, none->samples, none->pid);
	}
	if (s->more_unmapped)
		reader_missing(r,
			       "%s: %" PRIu64 " more samples belong to other pids without an ELF",
			       r->in->path, s->more_unmapped);
	if (s->wrong_callers)
		reader_missing(r,
			       "%s: byte %" PRIu64 ": ips: %s, replaced by 0 (%" PRIu64 " in all)",
			       r->in->path, s->wrong_at, SEL4_NO_ADDRESS, s->wrong_callers);
	s->nr_unmapped = 0;
	s->more_unmapped = s->wraps = s->wrong_callers = 0;
}
