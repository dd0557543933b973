// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tracetool FILE [events]: the traces in a recording of the QEMU plugin, decoded: what there is of
 * them, and the events themselves as lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>

#include "base/pb.h"
#include "read/wire_trace.h"

#define MAX_CPUS 64

static struct wire_trace traces[MAX_CPUS];
static uint64_t bytes, kinds[8], chunks;
static bool show;

static void print(const struct event *ev)
{
	static const char *const names[] = { "jump",  "call",  "return", "enter",
					     "leave", "begin", "end" };
	const struct event_branch *b = &ev->branch;

	kinds[b->kind]++;
	if (show)
		printf("%" PRIu64 ".%09" PRIu64 " cpu%u %-6s %" PRIx64 " -> %" PRIx64 " n=%" PRIu64
		       " next=%" PRIx64 " sp=%" PRIx64 " %s space=%" PRIx64 "\n",
		       ev->time / 1000000000, ev->time % 1000000000, ev->cpu, names[b->kind], b->from,
		       b->to, b->instructions, b->next, b->sp,
		       b->context == IP_KERNEL ? "kernel" : "user", b->space);
}

static void decode(struct wire_trace *trace, struct pb data, uint64_t time)
{
	struct event ev = { 0 };
	int ret;

	bytes += (uint64_t)(data.end - data.at);
	wire_trace_feed(trace, data.at, (size_t)(data.end - data.at), time);
	while ((ret = wire_trace_next(trace, &ev)) > 0)
		print(&ev);
	if (ret < 0)
		printf("damage: %s at %zu of %zu\n", trace->wrong,
		       (size_t)(trace->at - data.at), (size_t)(data.end - data.at));
}

static void chunk(struct pb pb)
{
	struct pb_field f;
	uint64_t time = NO_TIME, cpu = NO_CPU;
	struct pb trace = { 0 };

	while (pb_next(&pb, &f) > 0) {
		if (f.number == 2)
			cpu = f.value;
		else if (f.number == 12)
			time = f.value;
		else if (f.number == 9)
			trace = f.bytes;
		else if (f.number == 4)
			printf("dropped %" PRIu64 "\n", f.value);
	}
	chunks++;
	if (trace.at && cpu < MAX_CPUS)
		decode(&traces[cpu], trace, time);
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
	show = argc > 2;
	pb.at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	pb.end = pb.at + st.st_size;
	for (uint32_t i = 0; i < MAX_CPUS; i++)
		wire_trace_init(&traces[i], i);
	while (pb_next(&pb, &f) > 0)
		chunk(f.bytes);
	for (uint32_t i = 0; i < MAX_CPUS; i++) {
		if (!traces[i].nr_events)
			continue;
		printf("cpu %u instructions %" PRIu64 " missing %" PRIu64 " steps %" PRIu64
		       " events %" PRIu64 "\n",
		       i, traces[i].total, traces[i].missing, traces[i].nr_steps_taken,
		       traces[i].nr_events);
		events += traces[i].nr_events;
	}
	printf("bytes %" PRIu64 " chunks %" PRIu64 " bytes/event %.3f\n", bytes, chunks,
	       events ? (double)bytes / (double)events : 0);
	for (int i = 0; i < 7; i++)
		printf("%s%" PRIu64, i ? " " : "jump call return enter leave begin end: ", kinds[i]);
	printf("\n");
	return 0;
}
