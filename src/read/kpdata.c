// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpdata: what the profiler of Akaros wrote, all three layouts of it (kpdata_record.h).
 *
 * Version: the file does not say. Every trace votes for the layouts that its size fits, and the
 * most votes win. User traces of v2 and v3 are alike, and are read alike.
 *
 * Leaf: old kernels stored the first address twice. That is a property of the kernel, so it is
 * decided for the file: all traces of two addresses or more have it, or none (some room is left for
 * damage). Two equal addresses in another file are left alone.
 *
 * Order: traces were flushed in blocks, one CPU at a time, while map and process records went
 * straight out. So the file is a sequence of runs, each in the order of time. open() walks the file
 * twice, for the version and for the runs, and keeps 32 bytes for each; next() merges those runs
 * that overlap at this time, through windows that share one budget. A file with more runs than any
 * recording has keeps the rest of it in its own order, and that is said.
 *
 * Processes: a record has a pid and no thread. Kernel traces of v1 and v2 have no pid, and neither
 * have the kernel's own tasks in v3: they belong to pid 0, which no process of that kernel has,
 * named [kernel]. A process that is started maps its binary first and is announced then, so its
 * name does not take away its maps. One that is announced without maps was forked: its record has
 * the path of its parent, and it gets the maps of the last process with that path. A map of another
 * file over the place of the first map of a process is an exec. Of processes that ran before the
 * recording, and of those whose records were dropped, nothing is known but the pid: their samples
 * keep bare addresses, and --elf PID=FILE helps.
 *
 * Paths are of that machine, not of this one: binaries are only looked for where the user says.
 * The profiler was written for x86-64 alone, so that is the architecture.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "model/frame.h"
#include "model/source.h"
#include "read/bare.h"
#include "read/kpdata_record.h"

#define MAX_RUNS ((size_t)1 << 20)   /* blocks have 16 KiB at least: 16 GiB of them */
#define MAX_ACTIVE ((size_t)1 << 16) /* a recording has about as many as the machine has CPUs */
#define WINDOW ((size_t)16 << 10)    /* of an active run */
#define MIN_WINDOW ((size_t)512)
#define WINDOWS ((size_t)16 << 20) /* of all of them; more than that and they are smaller */
#define MAX_SOURCES 63		   /* the next one stands for all that follow */

struct run {
	uint64_t offset, end;
	uint64_t first, last; /* times; last is not needed once the runs are known */
};

struct active {
	uint64_t time; /* of what the step is at */
	uint64_t offset, end;
	struct kp_step step;
	uint8_t *window; /* bytes from window_offset */
	uint64_t window_offset;
	size_t len, cap;
};

struct kp_source {
	uint64_t info;
	char name[40];
	struct event_source event;
	uint64_t weight;
};

struct process {
	uint32_t pid;
	uint32_t path;	    /* handle; 0: not announced */
	uint32_t main_path; /* handle of the first map; 0: no maps */
	uint64_t main_addr, main_last;
	uint64_t bare; /* samples while it had no maps */
};

struct kpdata {
	const char *event_name; /* --event-name; NULL: not given */
	enum kp_version version;
	bool leaf_twice, has_kernel, has_kernel_task;
	struct kp_source sources[MAX_SOURCES + 1];
	size_t nr_sources, last_source;
	uint32_t nr_opaque;

	struct run *runs; /* by first time; from next_run on they were not active yet */
	size_t nr_runs, cap_runs, next_run;
	bool too_many;
	struct active **heap; /* the earliest is [0] */
	size_t nr_active, cap_active;
	struct in seeker; /* fills the windows */

	struct process *processes; /* [0] is none */
	size_t nr_processes, cap_processes;
	struct hash by_pid, by_path;

	unsigned told; /* events of the preamble */
	bool second;   /* of the two events of the record at hand */
	bool busy;     /* the record at heap[0] was handed out */
	uint64_t *ips;
	size_t cap_ips;
};

/* ---- how much speaks for this format ---- */

/* Records in a row, up to 4; a single one counts if the file ends with it or in the next. */
static int records_at(const uint8_t *head, size_t len)
{
	enum kp_result ret = KP_GOOD;
	struct kp_record record;
	const char *why;
	size_t at = 0, need;
	int nr = 0;

	while (nr < 4) {
		ret = kp_parse(head + at, len - at, KP_ANY, &record, &need, &why);
		if (ret != KP_GOOD)
			break;
		nr++;
		at += record.size;
	}
	return nr > 1 || ret == KP_CUT ? nr : 0;
}

/* A file whose beginning is damaged is still one, if nothing else fits. */
static int kpdata_probe(const uint8_t *head, size_t len)
{
	int nr = records_at(head, len);

	for (size_t at = 1; !nr && at < len; at++) {
		if (records_at(head + at, len - at) > 2)
			return 8;
	}
	return nr * 20;
}

/* ---- the first walk: which version ---- */

static const uint8_t *peek_in(void *ctx, uint64_t offset, size_t want, size_t *have)
{
	struct reader *r = ctx;

	if (in_seek(r->in, offset, &r->err) < 0) {
		*have = 0;
		return NULL;
	}
	return in_peek(r->in, want, have);
}

static enum kp_version vote(struct reader *r)
{
	struct kp_bytes bytes = { peek_in, r };
	uint64_t votes[KP_VERSIONS] = { 0 };
	enum kp_version best = KP_V3;
	struct kp_step step;

	for (uint64_t offset = 0;; offset += step.bytes) {
		kp_step(&bytes, offset, KP_ANY, &step);
		if (step.what == KP_END)
			break;
		for (unsigned v = KP_V1; step.what == KP_GOOD && v < KP_VERSIONS; v++)
			votes[v] += step.record.votes >> v & 1;
	}
	for (enum kp_version v = KP_V3; v >= KP_V1; v--) {
		if (votes[v] > votes[best])
			best = v;
	}
	return best;
}

/* ---- the second walk: runs, sources, and whether the leaf is there twice ---- */

static void name_opaque(const struct reader *r, struct kp_source *source, uint32_t nth)
{
	const struct kpdata *p = r->priv;
	const char *given = p->event_name;

	if (given && nth == 1)
		snprintf(source->name, sizeof(source->name), "%s", given);
	else
		snprintf(source->name, sizeof(source->name), "%s-%" PRIu32, given ? given : "event",
			 nth);
	source_from_name(&source->event, source->name);
}

static void pmu_source(struct kp_source *source, uint64_t data)
{
	/* Intel's fixed counters 0, 1 and 2: what perf calls them. */
	static const uint8_t fixed[] = { 1, 0, 9 };
	unsigned index = (unsigned)(data & 0xff);

	source->event.type = SOURCE_RAW;
	source->event.config = data & 0xffff;
	if (!(data >> 16 & 1))
		return;
	if (index < sizeof(fixed)) {
		source->event.type = SOURCE_HARDWARE;
		source->event.config = fixed[index];
		return;
	}
	snprintf(source->name, sizeof(source->name), "fixed-counter-%u", index);
	source_from_name(&source->event, source->name);
}

/*
 * v2 has the domain in the top 4 bits: 1 is the timer with its period in us, 2 the PMU. Later
 * kernels put there whatever the profiling tool gave, mostly a pointer: good only to tell one event
 * from another. v1 has the timer alone and does not tell its period: a sample is a tick.
 */
static void describe_source(struct reader *r, struct kp_source *source)
{
	struct kpdata *p = r->priv;
	uint64_t data = source->info & UINT64_MAX >> 4;

	source->weight = 1;
	if (p->version == KP_V1) {
		snprintf(source->name, sizeof(source->name), "%s",
			 p->event_name ? p->event_name : "timer");
		source_from_name(&source->event, source->name);
		source->event.unit = "ticks";
	} else if (source->info >> 60 == 1 && data && data <= UINT32_MAX) {
		source->event.type = SOURCE_SOFTWARE;
		source->event.config = 0; /* cpu-clock */
		source->event.unit = "ns";
		source->event.period = source->weight = data * 1000;
	} else if (source->info >> 60 == 2 && data < 1 << 17) {
		pmu_source(source, data);
	} else if (!source->info) {
		/* Somebody wrote an address to the file kpdata. */
		snprintf(source->name, sizeof(source->name), "written");
		source_from_name(&source->event, source->name);
	} else {
		name_opaque(r, source, ++p->nr_opaque);
	}
}

static struct kp_source *source_of(struct kpdata *p, uint64_t info)
{
	if (p->nr_sources && p->sources[p->last_source].info == info)
		return &p->sources[p->last_source];
	for (size_t i = 0; i < p->nr_sources; i++) {
		if (p->sources[i].info == info || i == MAX_SOURCES) {
			p->last_source = i;
			return &p->sources[i];
		}
	}
	return NULL;
}

static void note_source(struct reader *r, uint64_t info)
{
	struct kpdata *p = r->priv;
	struct kp_source *source = source_of(p, info);

	if (source)
		return;
	source = &p->sources[p->nr_sources++];
	source->info = info;
	source->event.id = (uint32_t)p->nr_sources;
	if (p->nr_sources <= MAX_SOURCES) {
		describe_source(r, source);
		return;
	}
	snprintf(source->name, sizeof(source->name), "other");
	source_from_name(&source->event, source->name);
	source->weight = 1;
}

struct leaf_votes {
	uint64_t twice, once;
};

static void note_trace(struct reader *r, const struct kp_record *record, const uint8_t *data,
		       struct leaf_votes *leaf)
{
	struct kpdata *p = r->priv;
	const uint8_t *pcs = data + record->content;

	note_source(r, record->info);
	if (record->type == KP_KERNEL) {
		p->has_kernel = true;
		p->has_kernel_task |= record->pid == KP_NO_PID;
	}
	if (record->nr < 2)
		return;
	if (memcmp(pcs, pcs + 8, 8))
		leaf->once++;
	else
		leaf->twice++;
}

static void note_run(struct kpdata *p, uint64_t offset, uint64_t time, bool *untimed)
{
	struct run *run = &p->runs[p->nr_runs - 1];

	if (*untimed || time >= run->last || p->nr_runs == MAX_RUNS) {
		if (*untimed)
			run->first = time;
		p->too_many |= !*untimed && time < run->last;
		*untimed = false;
		run->last = time;
		return;
	}
	run->end = offset;
	GROW(p->runs, p->nr_runs + 1, p->cap_runs);
	p->runs[p->nr_runs++] = (struct run){ .offset = offset, .first = time, .last = time };
}

/* Returns the number of records. */
static uint64_t find_runs(struct reader *r)
{
	struct kpdata *p = r->priv;
	struct kp_bytes bytes = { peek_in, r };
	struct leaf_votes leaf = { 0, 0 };
	struct kp_step step;
	uint64_t offset, records = 0;
	bool untimed = true;
	size_t have;

	GROW(p->runs, 1, p->cap_runs);
	p->runs[p->nr_runs++] = (struct run){ .offset = 0 };
	for (offset = 0;; offset += step.bytes) {
		kp_step(&bytes, offset, p->version, &step);
		if (step.what == KP_END)
			break;
		if (step.what != KP_GOOD)
			continue;
		records++;
		note_run(p, offset, step.record.time, &untimed);
		if (step.record.type == KP_KERNEL || step.record.type == KP_USER)
			note_trace(r, &step.record, peek_in(r, offset, step.record.size, &have),
				   &leaf);
	}
	p->runs[p->nr_runs - 1].end = offset;
	p->leaf_twice = leaf.twice && leaf.once <= leaf.twice / 16;
	return records;
}

static int by_first_time(const void *va, const void *vb)
{
	const struct run *a = va, *b = vb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int kpdata_open(struct reader *r)
{
	struct kpdata *p = r->priv;
	uint64_t length, records;

	p->seeker.fd = -1;
	GROW(p->processes, 1, p->cap_processes);
	memset(&p->processes[p->nr_processes++], 0, sizeof(*p->processes));
	if (reader_needs_pids(r) < 0)
		return -1;
	if (in_length(r->in, &length, &r->err) < 0)
		return -1;
	p->version = vote(r);
	records = find_runs(r);
	if (r->err.code || in_clone(&p->seeker, r->in, WINDOW, &r->err) < 0)
		return -1;
	if (!records)
		return err_set(&r->err, ERR_INPUT, "%s: no kpdata record in its %" PRIu64 " bytes",
			       r->in->path, length);
	if (p->too_many)
		reader_missing(r,
			       "%s: less in order than a recording can be: the order of time is "
			       "restored only in part",
			       r->in->path);
	qsort(p->runs, p->nr_runs, sizeof(*p->runs), by_first_time);
	r->in->taken = 0; /* progress is that of the merge */
	log_note("%s: kpdata v%d, %" PRIu64 " records in %zu runs%s", r->in->path, (int)p->version,
		 records, p->nr_runs, p->leaf_twice ? ", leaf stored twice" : "");
	return 0;
}

/* ---- the merge ---- */

struct run_bytes {
	struct reader *r;
	struct active *active;
};

/* From the run's window; what is longer than that, straight from the input. */
static const uint8_t *peek_run(void *ctx, uint64_t offset, size_t want, size_t *have)
{
	struct run_bytes *bytes = ctx;
	struct active *a = bytes->active;
	struct kpdata *p = bytes->r->priv;
	const uint8_t *data;

	if (want > a->cap)
		return peek_in(bytes->r, offset, want, have);
	if (offset < a->window_offset || offset + want > a->window_offset + a->len) {
		if (in_seek(&p->seeker, offset, &bytes->r->err) < 0) {
			*have = 0;
			return NULL;
		}
		data = in_peek(&p->seeker, a->cap, have);
		a->len = *have < a->cap ? *have : a->cap;
		a->window_offset = offset;
		memcpy(a->window, data, a->len);
	}
	*have = a->len - (size_t)(offset - a->window_offset);
	return a->window + (offset - a->window_offset);
}

static bool earlier(const struct active *a, const struct active *b)
{
	return a->time != b->time ? a->time < b->time : a->offset < b->offset;
}

static void sift_down(struct kpdata *p)
{
	struct active *moved = p->heap[0];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < p->nr_active) {
		if (child + 1 < p->nr_active && earlier(p->heap[child + 1], p->heap[child]))
			child++;
		if (!earlier(p->heap[child], moved))
			break;
		p->heap[i] = p->heap[child];
		i = child;
	}
	p->heap[i] = moved;
}

static void sift_up(struct kpdata *p)
{
	size_t i = p->nr_active - 1;
	struct active *moved = p->heap[i];

	for (; i && earlier(moved, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = moved;
}

/* Damage has no time of its own: it comes right after what is before it. */
static void look(struct reader *r, struct active *a)
{
	struct kpdata *p = r->priv;
	struct run_bytes ctx = { r, a };
	struct kp_bytes bytes = { peek_run, &ctx };

	kp_step(&bytes, a->offset, p->version, &a->step);
	if (a->step.what == KP_GOOD)
		a->time = a->step.record.time;
	if (a->step.what != KP_END)
		return;
	a->step.bytes = a->end - a->offset;
	a->step.why = "the file became shorter while it was read";
}

static void activate(struct reader *r, const struct run *run)
{
	struct kpdata *p = r->priv;
	struct active *a = xcalloc(1, sizeof(*a));
	size_t share = WINDOWS / (p->nr_active + 1);

	a->cap = share > WINDOW ? WINDOW : share < MIN_WINDOW ? MIN_WINDOW : share;
	a->window = xmalloc(a->cap);
	a->offset = run->offset;
	a->end = run->end;
	a->time = run->first;
	look(r, a);
	GROW(p->heap, p->nr_active + 1, p->cap_active);
	p->heap[p->nr_active++] = a;
	sift_up(p);
}

static void free_active(struct active *a)
{
	free(a->window);
	free(a);
}

/* The earliest run goes on to what follows. */
static void advance(struct reader *r)
{
	struct kpdata *p = r->priv;
	struct active *a = p->heap[0];

	a->offset += a->step.bytes;
	r->in->taken += a->step.bytes;
	if (a->offset < a->end) {
		look(r, a);
	} else {
		free_active(a);
		p->heap[0] = p->heap[--p->nr_active];
	}
	if (p->nr_active)
		sift_down(p);
}

static struct active *earliest(struct reader *r)
{
	struct kpdata *p = r->priv;

	while (p->next_run < p->nr_runs && p->nr_active < MAX_ACTIVE &&
	       (!p->nr_active || p->runs[p->next_run].first <= p->heap[0]->time))
		activate(r, &p->runs[p->next_run++]);
	return p->nr_active ? p->heap[0] : NULL;
}

/* ---- events ---- */

static struct process *process_of(struct kpdata *p, uint32_t pid)
{
	uint32_t *handle = hash_at(&p->by_pid, (struct hash_key){ pid, 0 });

	if (!*handle) {
		*handle = (uint32_t)p->nr_processes;
		GROW(p->processes, p->nr_processes + 1, p->cap_processes);
		p->processes[p->nr_processes++] = (struct process){ .pid = pid };
	}
	return &p->processes[*handle];
}

/* The one to look at for the maps of a child with the same path. */
static void remember_path(struct kpdata *p, const struct process *process)
{
	if (process->path && process->main_path)
		*hash_at(&p->by_path, (struct hash_key){ process->path, 0 }) =
			(uint32_t)(process - p->processes);
}

static bool is_fork(struct kpdata *p, struct process *child, struct event *ev)
{
	uint32_t handle = hash_get(&p->by_path, (struct hash_key){ child->path, 0 });
	const struct process *parent = &p->processes[handle];

	if (!handle || child->main_path || parent == child)
		return false;
	child->main_path = parent->main_path;
	child->main_addr = parent->main_addr;
	child->main_last = parent->main_last;
	ev->kind = EVENT_FORK;
	ev->fork = (struct event_fork){ .parent_pid = parent->pid, .parent_tid = parent->pid };
	return true;
}

/* Returns whether there is a second event to come. */
static bool process_event(struct reader *r, const char *path, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct process *process = process_of(p, ev->pid);

	process->path = str_intern_z(r->frames->strings, path);
	if (!p->second && is_fork(p, process, ev))
		return true;
	remember_path(p, process);
	ev->kind = EVENT_COMM;
	ev->comm.comm = text_last_part(path);
	return false;
}

static bool is_exec(const struct process *process, const struct kp_record *record, uint32_t path)
{
	return process->main_path && process->main_path != path &&
	       record->addr <= process->main_last &&
	       (record->addr >= process->main_addr ||
		process->main_addr - record->addr < record->len);
}

static bool map_event(struct reader *r, const struct kp_record *record, const char *path,
		      struct event *ev)
{
	struct kpdata *p = r->priv;
	struct process *process = process_of(p, record->pid);
	uint32_t handle = str_intern_z(r->frames->strings, path);
	bool exec = !p->second && is_exec(process, record, handle);

	if (!process->main_path || exec) {
		process->main_path = handle;
		process->main_addr = record->addr;
		process->main_last = record->addr + (record->len - 1);
		remember_path(p, process);
	}
	if (exec) {
		ev->kind = EVENT_COMM;
		ev->comm = (struct event_comm){ .comm = text_last_part(path), .exec = true };
		return true;
	}
	ev->kind = EVENT_MAP;
	ev->map = (struct event_map){
		.addr = record->addr,
		.len = record->len,
		.offset = record->offset,
		.path = path,
		.prot = PROT_READ | PROT_EXEC,
		.foreign = true,
	};
	return false;
}

static void count_bare(struct kpdata *p, const struct kp_record *record)
{
	struct process *process;

	if (record->type == KP_KERNEL)
		return;
	process = process_of(p, record->pid);
	process->bare += !process->main_path;
}

static void trace_event(struct reader *r, const struct kp_record *record, const uint8_t *pcs,
			struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct kp_source *source = source_of(p, record->info);
	bool twice = p->leaf_twice && record->nr > 1 && !memcmp(pcs, pcs + 8, 8);
	uint32_t nr = record->nr - twice;

	ev->cpu = record->cpu;
	if (!nr) { /* some kernels wrote that: a sample of nowhere */
		ev->kind = EVENT_LOST;
		ev->lost = (struct event_lost){ .count = 1, .bytes = record->size };
		return;
	}
	count_bare(p, record);
	GROW(p->ips, nr, p->cap_ips);
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t pc = kp_u64(pcs + 8 * (i + twice));

		p->ips[i] = ip_is_marker(pc) ? 0 : pc; /* no code is that high */
	}
	ev->kind = EVENT_SAMPLE;
	ev->sample = (struct event_sample){
		.ips = p->ips,
		.nr = nr,
		.source = source ? source->event.id : 1,
		.weight = source ? source->weight : 1,
		.context = record->type == KP_KERNEL ? IP_KERNEL : IP_USER,
	};
}

static void record_event(struct reader *r, struct active *a, struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct kp_record *record = &a->step.record;
	struct run_bytes ctx = { r, a };
	size_t have;
	const uint8_t *content = peek_run(&ctx, a->offset, record->size, &have) + record->content;

	ev->time = record->time;
	ev->pid = ev->tid = record->pid == KP_NO_PID ? 0 : record->pid;
	if (record->type == KP_MAP)
		p->second = map_event(r, record, (const char *)content, ev);
	else if (record->type == KP_PROCESS)
		p->second = process_event(r, (const char *)content, ev);
	else
		trace_event(r, record, content, ev);
	p->busy = !p->second;
}

static void tell_elf(struct reader *r, const struct elf_option *elf, bool map, struct event *ev)
{
	struct process *process = process_of(r->priv, elf->pid);

	ev->pid = ev->tid = elf->pid;
	if (!map) {
		ev->kind = EVENT_COMM;
		ev->comm.comm = text_last_part(elf->path);
		return;
	}
	process->main_path = str_intern_z(r->frames->strings, elf->path);
	ev->kind = EVENT_MAP;
	ev->map = (struct event_map){ .path = elf->path, .whole = true };
}

/* Facts that the file leaves to its reader to know. False: all were told. */
static bool tell(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct options *options = r->options;
	size_t n = p->told++, elfs = 2 * options->nr_elfs;

	if (n < 2) {
		ev->kind = EVENT_META;
		ev->meta = n ? (struct event_meta){ "arch", "x86_64" }
			     : (struct event_meta){ "osrelease", "Akaros" };
		return true;
	}
	if ((n -= 2) < p->nr_sources) {
		ev->kind = EVENT_SOURCE;
		ev->source = p->sources[n].event;
		return true;
	}
	if ((n -= p->nr_sources) < elfs) {
		tell_elf(r, &options->elfs[n / 2], n % 2, ev);
		return true;
	}
	if ((n -= elfs) == 0 && p->has_kernel) {
		bare_map(ev);
		return true;
	}
	if (n <= 1 && p->has_kernel_task) {
		p->told = UINT32_MAX / 2;
		ev->kind = EVENT_COMM;
		ev->pid = ev->tid = 0;
		ev->comm.comm = "[kernel]";
		return true;
	}
	p->told = UINT32_MAX / 2;
	return false;
}

static void say_bare(struct reader *r)
{
	struct kpdata *p = r->priv;
	uint64_t samples = 0;
	uint32_t nr = 0, pid = 0;

	for (size_t i = 1; i < p->nr_processes; i++) {
		if (!p->processes[i].bare)
			continue;
		pid = nr++ ? pid : p->processes[i].pid;
		samples += p->processes[i].bare;
		p->processes[i].bare = 0;
	}
	if (nr)
		log_warn("%s: nothing tells what %" PRIu32 " process%s mapped (pid %" PRIu32
			 "%s): %" PRIu64 " samples keep bare addresses; --elf %" PRIu32
			 "=FILE names a binary",
			 r->in->path, nr, nr == 1 ? "" : "es", pid, nr == 1 ? "" : " the first",
			 samples, pid);
}

static int kpdata_next(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct active *a;

	if (p->told < UINT32_MAX / 2 && tell(r, ev))
		return 1;
	if (p->busy)
		advance(r);
	p->busy = false;
	a = earliest(r);
	if (r->err.code)
		return -1;
	if (!a) {
		say_bare(r);
		return 0;
	}
	if (a->step.what == KP_GOOD) {
		record_event(r, a, ev);
		return 1;
	}
	p->busy = true;
	ev->time = a->time;
	return reader_damage(r, ev, a->offset, 1, a->step.bytes, "%s; %" PRIu64 " bytes skipped",
			     a->step.why, a->step.bytes);
}

static void kpdata_close(struct reader *r)
{
	struct kpdata *p = r->priv;

	for (size_t i = 0; i < p->nr_active; i++)
		free_active(p->heap[i]);
	free(p->heap);
	free(p->runs);
	free(p->ips);
	free(p->processes);
	hash_release(&p->by_pid);
	hash_release(&p->by_path);
	in_close(&p->seeker);
}

const struct reader_ops read_kpdata = {
	.name = "kpdata",
	.about = "Akaros kprof, all three versions",
	.probe = kpdata_probe,
	.options = OPTION_USES({ &event_name_table, offsetof(struct kpdata, event_name) },
			       { &elf_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct kpdata),
	.open = kpdata_open,
	.next = kpdata_next,
	.close = kpdata_close,
};
