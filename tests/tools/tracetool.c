// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tracetool FILE [events|nocalls|moves N|misses N]: the traces in a recording of the QEMU plugin, decoded:
 * their statistics, the call stacks that follow from them, and the events as lines. moves: whether
 * the moves of the stack pointer agree with its values, and the first N events that contradict.
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
static bool show, nocalls, check_moves;
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
	       " next=%" PRIx64 " sp=%" PRIx64 " left=%" PRIx64 " taken=%" PRIx64
	       " moved=%s%d %s space=%" PRIx64 "\n",
	       ev->time / 1000000000, ev->time % 1000000000, ev->cpu, names[b->kind], b->from,
	       b->to, b->instructions, b->next, b->sp, b->left, b->taken, b->has_moved ? "" : "?",
	       b->moved, b->context == IP_KERNEL ? "kernel" : "user", b->space);
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
	if (calls.track.stats.leaves - was.leaves !=
	    calls.track.stats.leaves_found - was.leaves_found)
		print_recent("a program begins");
	else if (calls.track.stats.tasks != was.tasks)
		print_recent("a task begins");
}

/* The stack pointer of a cpu by the moves, from one value in the trace to the next. */
struct follow {
	uint64_t sp; /* 0: unknown */
};

static struct follow follows[MAX_CPUS];
static struct {
	uint64_t events, moves, followed, agree, contradict, enters, lefts, replaced, leaves, back;
	uint64_t mask; /* of addresses */
} moved = { .mask = UINT64_MAX };

/* The traps that have not returned: a hash of address and stack pointer. */
static uint8_t waiting[1u << 22];

static uint8_t *waiting_of(uint64_t address, uint64_t sp)
{
	uint64_t hash = (address ^ sp * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return &waiting[hash >> 42];
}

/* A trap returns to where it came from, with the stack pointer that it left. */
static void check_trap(const struct event_branch *b)
{
	if (b->kind == BRANCH_ENTER) {
		moved.enters++;
		moved.lefts += b->left != 0;
		if (b->left && b->next)
			*waiting_of(b->next, b->left) = 1;
	} else if (b->kind == BRANCH_LEAVE) {
		moved.leaves++;
		moved.back += *waiting_of(b->to, b->sp);
	}
}

static void check_move(const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct follow *follow = &follows[ev->cpu % MAX_CPUS];
	bool replaced = b->kind != BRANCH_ENTER && (b->left || b->taken);
	bool known = follow->sp && b->has_moved && b->kind != BRANCH_BEGIN && !replaced;
	uint64_t want = known ? (follow->sp + (uint64_t)(int64_t)b->moved) & moved.mask : 0;
	uint64_t got = b->kind == BRANCH_ENTER ? b->left : b->sp;

	moved.events++;
	moved.moves += b->has_moved;
	moved.replaced += replaced;
	check_trap(b);
	if (known && got) {
		moved.agree += want == got;
		moved.contradict += want != got;
	}
	recent[nr_recent++ % RECENT] = *ev;
	if (known && got && want != got)
		print_recent("a contradiction");
	follow->sp = b->sp ? b->sp : want;
	moved.followed += follow->sp != 0;
}

static void print_moves(void)
{
	printf("events %" PRIu64 " moves %" PRIu64 " followed %" PRIu64 " agree %" PRIu64
	       " contradict %" PRIu64 " replaced %" PRIu64 " enters %" PRIu64 " lefts %" PRIu64
	       " leaves %" PRIu64 " back %" PRIu64 "\n",
	       moved.events, moved.moves, moved.followed, moved.agree, moved.contradict,
	       moved.replaced, moved.enters, moved.lefts, moved.leaves, moved.back);
}

static void take_info(struct pb pb)
{
	struct pb_field f;
	uint64_t version = 0;
	char arch[16] = "";

	while (pb_next(&pb, &f) > 0) {
		if (f.number == WIRE_INFO_VERSION)
			version = f.value;
		else if (f.number == WIRE_INFO_ARCH)
			snprintf(arch, sizeof(arch), "%.*s", (int)(f.bytes.end - f.bytes.at),
				 (const char *)f.bytes.at);
	}
	merge.ahead.info = wire_trace_info(version, arch);
	if (!strcmp(arch, "i386") || !strcmp(arch, "arm") || !strcmp(arch, "riscv32"))
		moved.mask = UINT32_MAX;
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
		if (check_moves)
			check_move(&ev);
		else if (!nocalls)
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
		else if (f.number == WIRE_CHUNK_INFO)
			take_info(f.bytes);
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
	check_moves = argc > 2 && !strcmp(argv[2], "moves");
	misses = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	calls_init(&calls);
	pb.at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	pb.end = pb.at + st.st_size;
	while (pb_next(&pb, &f) > 0)
		chunk(f.bytes);
	wire_merge_until(&merge, UINT64_MAX);
	decode();
	for (uint32_t i = 0; i < merge.nr; i++) {
		const struct wire_trace *trace =
			merge.ahead.cpus[i] ? &merge.ahead.cpus[i]->trace : NULL;

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
	if (check_moves)
		print_moves();
	printf("returns %" PRIu64 " found %" PRIu64 " missed %" PRIu64 " (%.5f%%) jumps %" PRIu64
	       " beyond %" PRIu64 " traps %" PRIu64 " leaves %" PRIu64 " found %" PRIu64
	       " switches %" PRIu64 " tasks %" PRIu64 " instructions %" PRIu64 " rooted %" PRIu64
	       " paths %zu counters %zu left %zu\n",
	       calls.track.stats.returns, calls.track.stats.found,
	       calls.track.stats.returns - calls.track.stats.found,
	       100.0 * (double)calls.track.stats.found / (double)(calls.track.stats.returns + 1e-9),
	       calls.track.stats.jumps, calls.track.stats.beyond, calls.track.stats.traps,
	       calls.track.stats.leaves, calls.track.stats.leaves_found, calls.track.stats.switches,
	       calls.track.stats.tasks, calls.track.stats.instructions, calls.track.stats.rooted,
	       calls.nr_paths, calls.nr_counters, calls.track.nr_left);
	calls_release(&calls);
	wire_merge_release(&merge);
	return 0;
}
