// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tracetool FILE [events|nocalls|misses N]: the traces in a recording of the QEMU plugin, decoded: what there is of
 * them, what call stacks they make, and the events themselves as lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>

#include "base/pb.h"
#include "pass/calls.h"
#include "read/wire_merge.h"
#include "wire/wire.h"

#define MAX_CPUS 64
#define RECENT 24

static struct wire_merge merge;
static uint64_t bytes, kinds[8], chunks;
static bool show, nocalls;
static unsigned misses;
static struct calls calls;
static uint64_t spaces[4096];

static uint32_t pid_of(uint64_t space)
{
	uint32_t i = 0;

	while (i < 4095 && spaces[i] && spaces[i] != space)
		i++;
	spaces[i] = space;
	return i + 1;
}

static struct event recent[RECENT];
static size_t nr_recent;

static void print(const struct event *ev)
{
	static const char *const names[] = { "jump",  "call",  "return", "enter",
					     "leave", "begin", "end" };
	const struct event_branch *b = &ev->branch;

	printf("%" PRIu64 ".%09" PRIu64 " cpu%u %-6s %" PRIx64 " -> %" PRIx64 " n=%" PRIu64
	       " next=%" PRIx64 " sp=%" PRIx64 " %s space=%" PRIx64 "\n",
	       ev->time / 1000000000, ev->time % 1000000000, ev->cpu, names[b->kind], b->from,
	       b->to, b->instructions, b->next, b->sp, b->context == IP_KERNEL ? "kernel" : "user",
	       b->space);
}

static void print_recent(const char *why)
{
	if (!misses)
		return;
	misses--;
	printf("%s after\n", why);
	for (size_t i = nr_recent < RECENT ? 0 : nr_recent - RECENT; i < nr_recent; i++)
		print(&recent[i % RECENT]);
}

static void add_calls(struct event *ev)
{
	struct track_stats was = calls.track.stats;

	ev->pid = ev->tid = pid_of(ev->branch.space);
	calls_add(&calls, ev);
	if (ev->branch.kind != BRANCH_JUMP || ev->branch.sp)
		recent[nr_recent++ % RECENT] = *ev;
	if (calls.track.stats.returns - was.returns != calls.track.stats.found - was.found)
		print_recent("a return without a call");
	if (calls.track.stats.beyond != was.beyond)
		print_recent("a return beyond the root");
	if (calls.track.stats.leaves - was.leaves != calls.track.stats.leaves_found - was.leaves_found)
		print_recent("a program begins");
	else if (calls.track.stats.tasks != was.tasks)
		print_recent("a task begins");
}

static void decode(void)
{
	struct event ev = { 0 };
	int ret;

	while ((ret = wire_merge_next(&merge, &ev))) {
		if (ret < 0) {
			printf("damage: %s at %" PRIu64 ", %" PRIu64 " bytes\n", merge.wrong,
			       merge.wrong_offset, merge.wrong_bytes);
			continue;
		}
		if (ev.kind != EVENT_BRANCH)
			continue;
		kinds[ev.branch.kind]++;
		if (show)
			print(&ev);
		if (!nocalls)
			add_calls(&ev);
	}
}

static void chunk(struct pb pb)
{
	struct pb_field f;
	uint64_t time = NO_TIME, cpu = NO_CPU;
	struct pb trace = { 0 };

	while (pb_next(&pb, &f) > 0) {
		if (f.number == WIRE_CHUNK_CPU)
			cpu = f.value;
		else if (f.number == WIRE_CHUNK_TRACE_TIME)
			time = f.value;
		else if (f.number == WIRE_CHUNK_TRACE)
			trace = f.bytes;
		else if (f.number == WIRE_CHUNK_ROUND)
			wire_merge_until(&merge, f.value);
		else if (f.number == WIRE_CHUNK_DROPPED)
			printf("dropped %" PRIu64 "\n", f.value);
	}
	chunks++;
	if (trace.at && cpu < MAX_CPUS) {
		bytes += (uint64_t)(trace.end - trace.at);
		wire_merge_add(&merge, (uint32_t)cpu, trace.at, (size_t)(trace.end - trace.at),
			       time, false, 0);
	}
	decode();
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	struct stat st;
	struct pb_field f;
	struct pb pb;
	uint64_t events = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	show = argc > 2 && !strcmp(argv[2], "events");
	nocalls = argc > 2 && !strcmp(argv[2], "nocalls");
	misses = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	calls_init(&calls);
	pb.at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	pb.end = pb.at + st.st_size;
	while (pb_next(&pb, &f) > 0)
		chunk(f.bytes);
	wire_merge_until(&merge, UINT64_MAX);
	decode();
	for (uint32_t i = 0; i < merge.nr; i++) {
		const struct wire_trace *trace = merge.cpus[i] ? &merge.cpus[i]->trace : NULL;

		if (!trace)
			continue;
		printf("cpu %u instructions %" PRIu64 " missing %" PRIu64 " steps %" PRIu64
		       " events %" PRIu64 "\n",
		       i, trace->total, trace->missing, trace->nr_steps_taken, trace->nr_events);
		events += trace->nr_events;
	}
	printf("bytes %" PRIu64 " chunks %" PRIu64 " bytes/event %.3f\n", bytes, chunks,
	       events ? (double)bytes / (double)events : 0);
	for (int i = 0; i < 7; i++)
		printf("%s%" PRIu64,
		       i ? " " : "jump call return enter leave begin end: ", kinds[i]);
	printf("\n");
	printf("returns %" PRIu64 " found %" PRIu64 " missed %" PRIu64 " (%.5f%%) jumps %" PRIu64
	       " beyond %" PRIu64 " traps %" PRIu64 " leaves %" PRIu64 " found %" PRIu64
	       " switches %" PRIu64 " tasks %" PRIu64 " instructions %" PRIu64 " rooted %" PRIu64
	       " paths %zu counters %zu left %zu\n",
	       calls.track.stats.returns, calls.track.stats.found, calls.track.stats.returns - calls.track.stats.found,
	       100.0 * (double)calls.track.stats.found / (double)(calls.track.stats.returns + 1e-9),
	       calls.track.stats.jumps, calls.track.stats.beyond, calls.track.stats.traps, calls.track.stats.leaves,
	       calls.track.stats.leaves_found, calls.track.stats.switches, calls.track.stats.tasks,
	       calls.track.stats.instructions, calls.track.stats.rooted, calls.nr_paths, calls.nr_counters,
	       calls.nr_left);
	calls_release(&calls);
	wire_merge_release(&merge);
	return 0;
}
