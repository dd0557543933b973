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
 * Live: version, leaf and order depend on the whole file, so a pipe is copied to a file first, and nothing comes
 * out before its end; except for somebody who watches it: see kpdata_live.c.
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

#include "base/log.h"
#include "base/mem.h"
#include "model/source.h"
#include "read/kpdata_parts.h"

#define MAX_RUNS ((size_t)1 << 20)   /* enough for 16 GiB: blocks have at least 16 KiB */
#define MAX_ACTIVE ((size_t)1 << 16) /* a recording needs about one per CPU */
#define WINDOW ((size_t)64 << 10)    /* per active run; the default block size */
#define MIN_WINDOW ((size_t)512)
#define WINDOWS ((size_t)16 << 20) /* total budget: with many active runs, windows shrink */

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

static int kpdata_probe(const uint8_t *head, size_t len)
{
	return 20 * records_at(head, len);
}

static size_t record_size(const uint8_t *data, size_t len)
{
	struct kp_record record;
	const char *why;
	size_t need;

	switch (kp_parse(data, len, KP_ANY, &record, &need, &why)) {
	case KP_GOOD: return record.size;
	case KP_CUT: return READER_CUT;
	default: return 0;
	}
}

static int kpdata_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, 3, record_size);
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

struct kp_source *kp_source_of(struct kpdata *p, uint64_t info)
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

bool kp_note_source(struct reader *r, uint64_t info)
{
	struct kpdata *p = r->priv;
	struct kp_source *source = kp_source_of(p, info);

	if (source)
		return false;
	source = &p->sources[p->nr_sources++];
	source->info = info;
	source->event.id = (uint32_t)p->nr_sources;
	source->event.lacks = LACKS_THREADS;
	if (p->nr_sources <= MAX_SOURCES) {
		describe_source(r, source);
		return true;
	}
	snprintf(source->name, sizeof(source->name), "other");
	source_from_name(&source->event, source->name);
	source->weight = 1;
	return true;
}

struct walk {
	uint64_t records, damages;
	uint64_t leaf_twice, leaf_once;
};

static void note_trace(struct reader *r, const struct kp_record *record, const uint8_t *pcs,
		       struct walk *walk)
{
	struct kpdata *p = r->priv;

	kp_note_source(r, record->info);
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

uint64_t kp_scan(struct reader *r)
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
	if (r->live_view && in_streams(r->in)) {
		kp_live_open(r);
		return 0;
	}
	if (in_length(r->in, &length, &r->err) < 0)
		return -1;
	records = kp_scan(r);
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
	return (a->time < b->time) | ((a->time == b->time) & (a->offset < b->offset));
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

/* ---- the reader ---- */

static int kpdata_next(struct reader *r, struct event *ev)
{
	struct kpdata *p = r->priv;
	struct place *place;
	const struct kp_step *step;

	if (p->live)
		return kp_live_next(r, ev);
	if (p->preamble < PREAMBLE_DONE && kp_preamble_event(r, ev))
		return 1;
	if (p->busy)
		advance(r);
	p->busy = false;
	place = earliest(r);
	if (r->err.code)
		return -1;
	if (!place) {
		kp_warn_of_bare(r);
		return 0;
	}
	step = &place->run->step;
	if (step->what == KP_GOOD) {
		kp_record_event(r, place, ev);
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
	free(p->live);
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
	.header = true,
	.search = kpdata_search,
	.live_view = true,
	.options = OPTION_USES({ &event_name_table, offsetof(struct kpdata, event_name) },
			       { &elf_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct kpdata),
	.open = kpdata_open,
	.next = kpdata_next,
	.close = kpdata_close,
};
