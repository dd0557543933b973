// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kpdata: reads the output of the Akaros profiler in its three layouts (see kpdata_record.h).
 *
 * Version: the file does not contain one. Each trace votes for the layouts that match its size, and
 * the layout with the most votes wins. Normally the traces at the start of the file decide; if a
 * later record does not match their choice, all traces vote. User traces have the same layout in v2
 * and v3.
 *
 * Leaf: old kernels stored the first address twice. This depends on the kernel, so the reader
 * decides it once per file: either all traces with two or more addresses repeat the leaf, with some
 * tolerance for damage, or none does. Two equal addresses in any other file are left unchanged.
 *
 * Order: the kernel flushed traces in blocks, one CPU at a time, but wrote map and process records
 * immediately. The file is therefore a sequence of runs, each sorted by time. open() scans the file
 * and stores 32 bytes per run; next() merges the runs that overlap in time. Their windows share one
 * memory budget. If a file has more than MAX_RUNS runs, the rest of it stays in file order and the
 * reader prints a warning.
 *
 * Processes: a record has a pid but no thread id. Kernel traces of v1 and v2 have no pid, nor have
 * those of kernel tasks in v3; they are assigned to pid 0, named [kernel], which no Akaros process
 * uses. A new process maps its binary before its process record appears, so that record must not
 * drop the maps. A process record without preceding maps is a fork: it carries the path of the
 * parent, and the child inherits the maps of the last process with that path. A map of another file
 * that overlaps the first map of a process is an exec. For processes that started before the
 * recording, or whose records were dropped, only the pid is known; their samples keep bare addresses
 * unless the user gives --elf PID=FILE.
 *
 * Paths refer to the recorded machine, so binaries are searched only where the user says. The
 * profiler supports only x86-64.
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

#define MAX_RUNS ((size_t)1 << 20)   /* enough for 16 GiB: blocks have at least 16 KiB */
#define MAX_ACTIVE ((size_t)1 << 16) /* a recording needs about one per CPU */
#define WINDOW ((size_t)64 << 10)    /* per active run; the default block size */
#define MIN_WINDOW ((size_t)512)
#define WINDOWS ((size_t)16 << 20)	/* total budget: with many active runs, windows shrink */
#define FIRST_LOOK ((uint64_t)64 << 10) /* bytes at the start that decide the version */
#define PREAMBLE_DONE (UINT32_MAX / 2)
#define MAX_SOURCES 63 /* one more source stands for all others */

struct run {
	uint64_t offset;
	uint64_t end : 63, damaged : 1;
	uint64_t first, last; /* times; last is used only while scanning */
};

struct active {
	uint64_t end;
	bool damaged;
	struct kp_step step;
	struct kp_bytes bytes; /* the window is in `buffer` */
	struct reader *reader;
	uint8_t *buffer;
	size_t cap;
};

/* The position of an active run, ordered by time, then offset. */
struct place {
	uint64_t time, offset;
	struct active *run;
};

struct kp_source {
	uint64_t info;
	char name[40];
	struct event_source event;
	uint64_t weight;
};

struct process {
	uint32_t pid;
	uint32_t path;	    /* handle; 0: no process record yet */
	uint32_t main_path; /* handle of the path of the first map; 0: no maps */
	uint64_t main_addr, main_last;
	uint64_t bare; /* number of samples without maps */
};

struct kpdata {
	const char *event_name; /* --event-name; NULL: not given */
	enum kp_version version;
	bool leaf_twice, has_kernel, has_kernel_task;
	struct kp_source sources[MAX_SOURCES + 1];
	size_t nr_sources, last_source;
	uint32_t nr_opaque;

	struct run *runs; /* sorted by first time; those before next_run have been activated */
	size_t nr_runs, cap_runs, next_run;
	bool too_many;
	struct place *heap; /* active runs; [0] is the earliest */
	size_t nr_active, cap_active;

	struct process *processes; /* [0] is unused */
	size_t nr_processes, cap_processes;
	struct hash by_pid, by_path;
	uint64_t mapped_pid; /* the last pid that was found to have maps; UINT64_MAX: none */

	unsigned preamble; /* number of preamble events emitted; PREAMBLE_DONE: all */
	bool second;	   /* the current record yields a second event */
	bool busy;	   /* the record at heap[0] has been emitted */
	uint64_t *ips;
	size_t cap_ips;
};

/* ---- detection ---- */

/* Counts consecutive records, up to 4. A single one counts only if the data ends in the next. */
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

/* A file with a damaged start is accepted if no other format matches. */
static int kpdata_probe(const uint8_t *head, size_t len)
{
	int nr = records_at(head, len);

	for (size_t at = 1; !nr && at < len; at++) {
		if (records_at(head + at, len - at) > 2)
			return 8;
	}
	return nr * 20;
}

/* ---- version ---- */

static const uint8_t *peek_input(struct reader *r, uint64_t offset, size_t want, size_t *have)
{
	if (in_seek(r->in, offset, &r->err) < 0) {
		*have = 0;
		return NULL;
	}
	return in_peek(r->in, want, have);
}

static const uint8_t *peek_walk(struct kp_bytes *bytes, uint64_t offset, size_t want, size_t *have)
{
	bytes->window = peek_input(bytes->ctx, offset, want, have);
	bytes->window_offset = offset;
	bytes->window_len = *have;
	return bytes->window;
}

/* Decides by the records that start in the first `end` bytes. */
static enum kp_version vote(struct reader *r, uint64_t end)
{
	struct kp_bytes bytes = { .peek = peek_walk, .ctx = r };
	uint64_t votes[KP_VERSIONS] = { 0 };
	enum kp_version best = KP_V3;
	struct kp_step step = { 0 };

	for (uint64_t offset = 0; offset < end; offset += step.bytes) {
		kp_step(&bytes, offset, KP_ANY, false, &step);
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

/* ---- scan: runs, sources, repeated leaves ---- */

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
	/* perf's numbers for Intel's fixed counters 0, 1 and 2 */
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
 * In v2 the top 4 bits of info are the domain: 1 is the timer, with its period in us, and 2 the PMU.
 * Later kernels store whatever the profiling tool passed, usually a pointer, which only
 * distinguishes events. v1 has only the timer, with an unknown period: a sample is a tick.
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
		/* A user wrote an address to the kpdata file. */
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

struct walk {
	uint64_t records, damages;
	uint64_t leaf_twice, leaf_once;
};

static void note_trace(struct reader *r, const struct kp_record *record, const uint8_t *pcs,
		       struct walk *walk)
{
	struct kpdata *p = r->priv;

	note_source(r, record->info);
	p->has_kernel |= record->type == KP_KERNEL;
	p->has_kernel_task |= (record->type == KP_KERNEL) & (record->pid == KP_NO_PID);
	if (record->nr < 2)
		return;
	if (kp_u64(pcs) != kp_u64(pcs + 8))
		walk->leaf_once++;
	else
		walk->leaf_twice++;
}

static void note_run(struct kpdata *p, uint64_t offset, uint64_t time, bool first)
{
	struct run *run = &p->runs[p->nr_runs - 1];

	if (first)
		run->first = time;
	if (first || time >= run->last || p->nr_runs == MAX_RUNS) {
		p->too_many |= !first && time < run->last;
		run->last = time;
		return;
	}
	run->end = offset;
	GROW(p->runs, p->nr_runs + 1, p->cap_runs);
	p->runs[p->nr_runs++] = (struct run){ .offset = offset, .first = time, .last = time };
}

static void start_walk(struct kpdata *p, struct walk *walk)
{
	memset(walk, 0, sizeof(*walk));
	memset(p->sources, 0, sizeof(p->sources));
	p->nr_sources = p->last_source = p->nr_opaque = 0;
	p->has_kernel = p->has_kernel_task = p->too_many = false;
	GROW(p->runs, 1, p->cap_runs);
	p->runs[0] = (struct run){ 0 };
	p->nr_runs = 1;
}

static void find_runs(struct reader *r, struct walk *walk)
{
	struct kpdata *p = r->priv;
	struct kp_bytes bytes = { .peek = peek_walk, .ctx = r };
	struct kp_step step = { 0 };
	uint64_t offset;
	size_t have;

	start_walk(p, walk);
	for (offset = 0;; offset += step.bytes) {
		const struct kp_record *record = &step.record;

		kp_step(&bytes, offset, p->version, false, &step);
		if (step.what == KP_END)
			break;
		if (step.what != KP_GOOD) {
			walk->damages++;
			p->runs[p->nr_runs - 1].damaged = true;
			continue;
		}
		note_run(p, offset, record->time, !walk->records++);
		if (record->type == KP_KERNEL || record->type == KP_USER)
			note_trace(r, record,
				   kp_peek(&bytes, offset, record->size, &have) + record->content,
				   walk);
	}
	p->runs[p->nr_runs - 1].end = offset;
	p->leaf_twice = walk->leaf_twice && walk->leaf_once <= walk->leaf_twice / 16;
}

/* Returns the number of records. */
static uint64_t scan(struct reader *r)
{
	struct kpdata *p = r->priv;
	enum kp_version guess = vote(r, FIRST_LOOK);
	struct walk walk;

	p->version = guess;
	find_runs(r, &walk);
	if (walk.damages)
		p->version = vote(r, UINT64_MAX);
	if (p->version != guess)
		find_runs(r, &walk);
	return walk.records;
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

	p->mapped_pid = UINT64_MAX;
	GROW(p->processes, 1, p->cap_processes);
	memset(&p->processes[p->nr_processes++], 0, sizeof(*p->processes));
	if (reader_needs_pids(r) < 0)
		return -1;
	if (in_length(r->in, &length, &r->err) < 0)
		return -1;
	records = scan(r);
	if (r->err.code)
		return -1;
	if (!records)
		return err_set(&r->err, ERR_INPUT, "%s: no kpdata record in %" PRIu64 " bytes",
			       r->in->path, length);
	if (p->too_many)
		reader_missing(r,
			       "%s: more than %zu blocks out of order: samples after byte %" PRIu64
			       " are not sorted by time",
			       r->in->path, MAX_RUNS, p->runs[p->nr_runs - 1].offset);
	qsort(p->runs, p->nr_runs, sizeof(*p->runs), by_first_time);
	r->in->taken = 0; /* report the progress of the merge */
	log_note("%s: kpdata v%d, %" PRIu64 " records in %zu runs%s", r->in->path, (int)p->version,
		 records, p->nr_runs, p->leaf_twice ? ", leaf stored twice" : "");
	return 0;
}

/* ---- the merge ---- */

/* Reads from the window of the run, or from the input if `want` exceeds the window. */
static const uint8_t *peek_run(struct kp_bytes *bytes, uint64_t offset, size_t want, size_t *have)
{
	struct active *a = bytes->ctx;
	uint64_t left = a->damaged ? UINT64_MAX : a->end > offset ? a->end - offset : 0;
	size_t len = a->cap;

	if (want > a->cap)
		return peek_input(a->reader, offset, want, have);
	if (len > left) /* read past the run only if the file has changed */
		len = left > want ? (size_t)left : want;
	bytes->window_len = *have = in_copy(a->reader->in, offset, a->buffer, len);
	bytes->window_offset = offset;
	return bytes->window = a->buffer;
}

/* Compares without a branch, because the result is unpredictable. */
static inline bool earlier(const struct place *a, const struct place *b)
{
	return ((__uint128_t)a->time << 64 | a->offset) < ((__uint128_t)b->time << 64 | b->offset);
}

static void sift_down(struct kpdata *p)
{
	struct place moved = p->heap[0];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < p->nr_active) {
		if (child + 1 < p->nr_active)
			child += earlier(&p->heap[child + 1], &p->heap[child]);
		if (!earlier(&p->heap[child], &moved))
			break;
		p->heap[i] = p->heap[child];
		i = child;
	}
	p->heap[i] = moved;
}

static void sift_up(struct kpdata *p)
{
	size_t i = p->nr_active - 1;
	struct place moved = p->heap[i];

	for (; i && earlier(&moved, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = moved;
}

/* Parses the next record of a run. Damage has no time: it keeps that of the record before it. */
static void parse_next(struct reader *r, struct place *place)
{
	struct kpdata *p = r->priv;
	struct active *a = place->run;

	kp_step(&a->bytes, place->offset, p->version, !a->damaged, &a->step);
	if (a->step.what == KP_GOOD)
		place->time = a->step.record.time;
	if (a->step.what != KP_END)
		return;
	a->step.bytes = a->end - place->offset;
	a->step.why = "the file was truncated while kscope read it";
}

static void activate(struct reader *r, const struct run *run)
{
	struct kpdata *p = r->priv;
	struct active *a = xcalloc(1, sizeof(*a));
	size_t share = WINDOWS / (p->nr_active + 1);

	a->cap = share > WINDOW ? WINDOW : share < MIN_WINDOW ? MIN_WINDOW : share;
	a->buffer = xmalloc(a->cap);
	a->bytes = (struct kp_bytes){ .peek = peek_run, .ctx = a };
	a->reader = r;
	a->end = run->end;
	a->damaged = run->damaged;
	GROW(p->heap, p->nr_active + 1, p->cap_active);
	p->heap[p->nr_active] = (struct place){ run->first, run->offset, a };
	parse_next(r, &p->heap[p->nr_active++]);
	sift_up(p);
}

static void free_active(struct active *a)
{
	free(a->buffer);
	free(a);
}

/* Moves the earliest run to its next record. */
static void advance(struct reader *r)
{
	struct kpdata *p = r->priv;
	struct place *first = &p->heap[0];

	first->offset += first->run->step.bytes;
	r->in->taken += first->run->step.bytes;
	if (first->offset < first->run->end) {
		parse_next(r, first);
	} else {
		free_active(first->run);
		p->heap[0] = p->heap[--p->nr_active];
	}
	if (p->nr_active)
		sift_down(p);
}

static struct place *earliest(struct reader *r)
{
	struct kpdata *p = r->priv;

	while (p->next_run < p->nr_runs && p->nr_active < MAX_ACTIVE &&
	       (!p->nr_active || p->runs[p->next_run].first <= p->heap[0].time))
		activate(r, &p->runs[p->next_run++]);
	return p->nr_active ? &p->heap[0] : NULL;
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

/* A child with the same path inherits the maps of this process. */
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

/* Returns true if the record yields a second event. */
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
	/* Masked instead of branched on, because the type is unpredictable. */
	uint64_t mask = 0 - (uint64_t)(record->type == KP_USER);
	struct process *process;

	if (!((record->pid ^ p->mapped_pid) & mask))
		return;
	process = process_of(p, record->pid);
	process->bare += !process->main_path;
	if (process->main_path)
		p->mapped_pid = process->pid;
}

static void trace_event(struct reader *r, const struct kp_record *record, const uint8_t *pcs,
			struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct kp_source *source = source_of(p, record->info);
	bool twice = p->leaf_twice && record->nr > 1 && !memcmp(pcs, pcs + 8, 8);
	uint32_t nr = record->nr - twice;
	uint64_t *ips;

	ev->cpu = record->cpu;
	if (!nr) { /* some kernels wrote traces without addresses */
		ev->kind = EVENT_LOST;
		ev->lost = (struct event_lost){ .count = 1, .bytes = record->size };
		return;
	}
	count_bare(p, record);
	GROW(p->ips, nr, p->cap_ips);
	ips = p->ips;
	pcs += 8 * twice;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t pc = kp_u64(pcs + 8 * (size_t)i);

		ips[i] = ip_is_marker(pc) ? 0 : pc; /* never an address of code */
	}
	ev->kind = EVENT_SAMPLE;
	ev->sample.ips = ips;
	ev->sample.nr = nr;
	ev->sample.source = source ? source->event.id : 1;
	ev->sample.weight = source ? source->weight : 1;
	ev->sample.context = record->type == KP_KERNEL ? IP_KERNEL : IP_USER;
}

static void record_event(struct reader *r, struct place *place, struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct kp_record *record = &place->run->step.record;
	size_t have;
	const uint8_t *data = kp_peek(&place->run->bytes, place->offset, record->size, &have);
	const uint8_t *content = data + record->content;

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

static void elf_event(struct reader *r, const struct elf_option *elf, bool map, struct event *ev)
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

/* Emits facts that the file does not contain. Returns false after the last one. */
static bool preamble_event(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	const struct options *options = r->options;
	size_t n = p->preamble++, elfs = 2 * options->nr_elfs;

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
		elf_event(r, &options->elfs[n / 2], n % 2, ev);
		return true;
	}
	if ((n -= elfs) == 0 && p->has_kernel) {
		bare_map(ev);
		return true;
	}
	if (n <= 1 && p->has_kernel_task) {
		p->preamble = PREAMBLE_DONE;
		ev->kind = EVENT_COMM;
		ev->pid = ev->tid = 0;
		ev->comm.comm = "[kernel]";
		return true;
	}
	p->preamble = PREAMBLE_DONE;
	return false;
}

static void warn_of_bare(struct reader *r)
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
		log_warn("%s: no map records for %" PRIu32 " process%s (%spid %" PRIu32
			 "): %" PRIu64 " sample%s without symbols; use --elf %" PRIu32 "=FILE",
			 r->in->path, nr, nr == 1 ? "" : "es", nr == 1 ? "" : "first: ", pid,
			 samples, samples == 1 ? "" : "s", pid);
}

static int kpdata_next(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct place *place;
	const struct kp_step *step;

	if (p->preamble < PREAMBLE_DONE && preamble_event(r, ev))
		return 1;
	if (p->busy)
		advance(r);
	p->busy = false;
	place = earliest(r);
	if (r->err.code)
		return -1;
	if (!place) {
		warn_of_bare(r);
		return 0;
	}
	step = &place->run->step;
	if (step->what == KP_GOOD) {
		record_event(r, place, ev);
		return 1;
	}
	p->busy = true;
	ev->time = place->time;
	return reader_damage(r, ev, place->offset, 1, step->bytes, "%s; skipped %" PRIu64 " byte%s",
			     step->why, step->bytes, step->bytes == 1 ? "" : "s");
}

static void kpdata_close(struct reader *r)
{
	struct kpdata *p = r->priv;

	for (size_t i = 0; i < p->nr_active; i++)
		free_active(p->heap[i].run);
	free(p->heap);
	free(p->runs);
	free(p->ips);
	free(p->processes);
	hash_release(&p->by_pid);
	hash_release(&p->by_path);
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
