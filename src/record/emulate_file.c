// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/emulate_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "abi/perf_file.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "wire/emulate.h"

#define PMU_TYPE 8	  /* any number that perf does not use itself */
#define TIME_IN_RECORD 16 /* bytes before its end: a time and EMULATE_EVENT */

/* attr.config, and where its fields are */
enum {
	CONFIG_PT = 1 << 0,
	CONFIG_CYC = 1 << 1,
	CONFIG_MTC = 1 << 9,
	CONFIG_TSC = 1 << 10,
	CONFIG_NO_RETURN_COMPRESSION = 1 << 11,
	CONFIG_BRANCH = 1 << 13,
	CONFIG_MTC_PERIOD_AT = 14, /* 4 bits */
	CONFIG_PSB_PERIOD_AT = 24,
};

/* A file, in memory. */
struct bytes {
	uint8_t *data; /* NULL: none */
	size_t size;
};

struct thread {
	uint32_t tid;
	struct bytes trace, part;
	size_t records;	 /* bytes of the trace */
	size_t rest;	 /* bytes of packets in the part */
	uint64_t offset; /* in the thread's trace, of the next packets */
};

/* A record, with the packets that follow it. */
struct piece {
	uint64_t time;
	uint32_t thread;
	uint64_t at, size;
};

struct work {
	struct out *out;
	const char *parts;
	struct thread *threads;
	size_t nr_threads, cap_threads;
	struct piece *pieces;
	size_t nr_pieces, cap_pieces;
	struct emulate_sums *sums;
};

static struct bytes map_file(const char *folder, const char *kind, uint32_t tid)
{
	char *path = xasprintf("%s/%s%u", folder, kind, tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct bytes bytes = { 0 };
	struct stat st;

	free(path);
	if (fd < 0)
		return bytes;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		/* Private, so that emulate_end() may add to it. */
		void *data =
			mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

		if (data == MAP_FAILED && errno == ENOMEM)
			mem_ran_out(); /* or the output would lack a thread */
		if (data != MAP_FAILED)
			bytes = (struct bytes){ data, (size_t)st.st_size };
	}
	close(fd);
	return bytes;
}

static void unmap(struct bytes *bytes)
{
	if (bytes->data)
		munmap(bytes->data, bytes->size);
	bytes->data = NULL;
}

/* ---- the threads and their records ---- */

static void add_piece(struct work *w, uint64_t time, uint64_t at, uint64_t size)
{
	GROW(w->pieces, w->nr_pieces + 1, w->cap_pieces);
	w->pieces[w->nr_pieces++] = (struct piece){ time, (uint32_t)(w->nr_threads - 1), at, size };
}

/* The size of a record with its packets; 0: it is not whole. */
static size_t record_size(const uint8_t *at, size_t left, uint64_t *time)
{
	size_t size;
	struct emulate_auxtrace packets;
	struct perf_record header;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, at, sizeof(header));
	size = header.size;
	if (size < sizeof(header) + TIME_IN_RECORD || size > left)
		return 0;
	if (header.type != PERF_RECORD_AUXTRACE) {
		memcpy(time, at + size - TIME_IN_RECORD, sizeof(*time));
		return size;
	}
	if (size != sizeof(packets))
		return 0;
	memcpy(&packets, at, sizeof(packets));
	*time = packets.offset;
	return packets.size <= left - size ? size + packets.size : 0;
}

static void find_records(struct work *w, const struct thread *thread)
{
	size_t size;
	uint64_t time;

	for (size_t at = 0; at < thread->records; at += size) {
		size = record_size(thread->trace.data + at, thread->records - at, &time);
		if (!size) {
			w->sums->damaged++;
			return;
		}
		add_piece(w, time, at, size);
	}
}

/* Nobody may have waited for it: then it is a zombie. */
static bool is_alive(uint32_t tid)
{
	char path[64], text[512] = "", *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	state = strrchr(text, ')');
	return state && state[1] == ' ' && !strchr("ZX", state[2]);
}

/* The file has packets that are in no record, if the thread was killed. */
static void read_part(struct work *w, struct thread *thread)
{
	struct emulate_part *part = (struct emulate_part *)(void *)thread->part.data;
	uint64_t written;

	if (thread->part.size < sizeof(*part))
		return;
	written = emulate_state(part)->written;
	if (written && written < thread->records)
		thread->records = written;
	if (is_alive(thread->tid))
		w->sums->running++;
	else
		thread->rest = emulate_end(part);
}

static void add_thread(struct work *w, uint32_t tid)
{
	struct thread *thread;

	GROW(w->threads, w->nr_threads + 1, w->cap_threads);
	thread = &w->threads[w->nr_threads++];
	*thread = (struct thread){ .tid = tid,
				   .trace = map_file(w->parts, EMULATE_TRACE, tid),
				   .part = map_file(w->parts, EMULATE_PART, tid) };
	thread->records = thread->trace.size;
	read_part(w, thread);
	find_records(w, thread);
	if (thread->rest)
		add_piece(w, UINT64_MAX, 0, thread->rest);
}

static int by_tid(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return (a > b) - (a < b);
}

static void find_threads(struct work *w)
{
	uint32_t *tids = NULL, tid;
	size_t nr = 0, cap = 0, kind = strlen(EMULATE_TRACE);
	DIR *folder = opendir(w->parts);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		const char *name = entry->d_name;

		if (strncmp(name, EMULATE_TRACE, kind) != 0 ||
		    !text_u32(name + kind, strlen(name + kind), &tid))
			continue;
		GROW(tids, nr + 1, cap);
		tids[nr++] = tid;
	}
	if (folder)
		closedir(folder);
	if (nr)
		qsort(tids, nr, sizeof(*tids), by_tid);
	for (size_t i = 0; i < nr; i++)
		add_thread(w, tids[i]);
	free(tids);
}

static int by_time(const void *one, const void *other)
{
	const struct piece *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/* ---- the file ---- */

static struct perf_file_attr make_attr(void)
{
	struct perf_file_attr attr = {
		.attr = { .type = PMU_TYPE,
			  .size = sizeof(attr.attr),
			  .config = CONFIG_PT | CONFIG_CYC | CONFIG_MTC | CONFIG_TSC |
				    CONFIG_BRANCH | EMULATE_MTC_SHIFT << CONFIG_MTC_PERIOD_AT |
				    3 << CONFIG_PSB_PERIOD_AT,
			  .sample_period = 1,
			  .sample_type = EMULATE_SAMPLE_TYPE,
			  .flags = PERF_ATTR_EXCLUDE_KERNEL | PERF_ATTR_EXCLUDE_HV |
				   PERF_ATTR_MMAP | PERF_ATTR_COMM | PERF_ATTR_TASK |
				   PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_MMAP2 |
				   PERF_ATTR_COMM_EXEC },
		.ids = { sizeof(struct perf_header) + sizeof(attr), sizeof(uint64_t) },
	};

	return attr;
}

/* What a decoder has to know of the processor. */
static void write_info(struct out *out)
{
	const uint64_t facts[] = {
		PMU_TYPE,
		31, /* from ticks of 2.1 GHz to ns: shift, factor, and an offset */
		1022611261,
		0,
		1, /* the clock of the records is that of the packets */
		CONFIG_TSC,
		CONFIG_NO_RETURN_COMPRESSION,
		0, /* no records of context switches */
		0, /* no snapshots */
		0, /* a trace for each thread, not each cpu */
		CONFIG_MTC,
		0xf << CONFIG_MTC_PERIOD_AT,
		EMULATE_TSC_RATIO, /* ticks of the counter, for ... */
		1,		   /* ... ticks of the crystal */
		CONFIG_CYC,
		EMULATE_CBR,
		0, /* no filters */
	};
	struct {
		struct perf_record header;
		uint32_t type, reserved;
	} info = { { PERF_RECORD_AUXTRACE_INFO, 0, sizeof(info) + sizeof(facts) },
		   PERF_AUXTRACE_INTEL_PT,
		   0 };

	out_write(out, &info, sizeof(info));
	out_write(out, facts, sizeof(facts));
}

static void write_packets(struct work *w, struct thread *thread, const struct piece *piece,
			  const struct emulate_auxtrace *like, const uint8_t *bytes)
{
	struct emulate_auxtrace record = *like;

	record.idx = piece->thread;
	record.offset = thread->offset;
	out_write(w->out, &record, sizeof(record));
	out_write(w->out, bytes, record.size);
	thread->offset += record.size;
	w->sums->packets += record.size;
}

static void write_rest(struct work *w, struct thread *thread, const struct piece *piece)
{
	const struct emulate_part *part = (const void *)thread->part.data;
	struct emulate_auxtrace record = { .type = PERF_RECORD_AUXTRACE,
					   .record_size = sizeof(record),
					   .size = thread->rest,
					   .reference = emulate_state(part)->tsc,
					   .tid = thread->tid,
					   .cpu = UINT32_MAX };

	write_packets(w, thread, piece, &record, part->bytes);
}

static void write_piece(struct work *w, const struct piece *piece)
{
	struct thread *thread = &w->threads[piece->thread];
	const uint8_t *at = thread->trace.data + piece->at;
	struct emulate_auxtrace record;
	struct perf_record header;

	if (piece->time == UINT64_MAX) {
		write_rest(w, thread, piece);
		return;
	}
	memcpy(&header, at, sizeof(header));
	if (header.type != PERF_RECORD_AUXTRACE) {
		out_write(w->out, at, header.size);
		return;
	}
	memcpy(&record, at, sizeof(record));
	write_packets(w, thread, piece, &record, at + sizeof(record));
}

/* ---- features ---- */

/* A string in a feature: a length, which includes the padding, and the text. */
static void add_text(struct buf *to, const char *text)
{
	char room[64] = "";
	size_t len = strlen(text) + 1;
	uint32_t padded = (uint32_t)((len + sizeof(room) - 1) / sizeof(room) * sizeof(room));

	buf_add(to, &padded, sizeof(padded));
	buf_add(to, text, len);
	buf_add(to, room, padded - len);
}

static void add_command(struct buf *to, const char *const *words)
{
	uint32_t nr = 0;

	while (words[nr])
		nr++;
	buf_add(to, &nr, sizeof(nr));
	for (uint32_t i = 0; i < nr; i++)
		add_text(to, words[i]);
}

static void add_event(struct buf *to)
{
	struct perf_file_attr attr = make_attr();
	const uint32_t sizes[] = { 1, sizeof(attr.attr) }, ids = 1;
	uint64_t id = EMULATE_EVENT;

	buf_add(to, sizes, sizeof(sizes));
	buf_add(to, &attr.attr, sizeof(attr.attr));
	buf_add(to, &ids, sizeof(ids));
	add_text(to, "intel_pt//u");
	buf_add(to, &id, sizeof(id));
}

static void write_features(struct out *out, struct perf_header *header, const char *const *words)
{
	static const enum perf_feature bits[] = { PERF_FEATURE_HOSTNAME, PERF_FEATURE_OSRELEASE,
						  PERF_FEATURE_VERSION,	 PERF_FEATURE_ARCH,
						  PERF_FEATURE_CMDLINE,	 PERF_FEATURE_EVENT_DESC };
	enum { NR = sizeof(bits) / sizeof(bits[0]) };
	struct perf_section table[NR];
	struct utsname host = { 0 };
	struct buf body = { 0 };

	uname(&host);
	for (size_t i = 0; i < NR; i++) {
		table[i].offset = out_offset(out) + sizeof(table) + body.len;
		switch (bits[i]) {
		case PERF_FEATURE_HOSTNAME: add_text(&body, host.nodename); break;
		case PERF_FEATURE_OSRELEASE: add_text(&body, host.release); break;
		case PERF_FEATURE_VERSION: add_text(&body, "kscope " KSCOPE_VERSION); break;
		case PERF_FEATURE_ARCH: add_text(&body, "x86_64"); break;
		case PERF_FEATURE_CMDLINE: add_command(&body, words); break;
		default: add_event(&body); break;
		}
		table[i].size = out_offset(out) + sizeof(table) + body.len - table[i].offset;
		header->features[bits[i] / 64] |= 1ULL << bits[i] % 64;
	}
	out_write(out, table, sizeof(table));
	out_write(out, body.data, body.len);
	buf_release(&body);
}

static void write_file(struct work *w, const char *const *words)
{
	struct perf_file_attr attr = make_attr();
	struct perf_header header = { .magic = PERF_MAGIC,
				      .size = sizeof(header),
				      .attr_size = sizeof(attr),
				      .attrs = { sizeof(header), sizeof(attr) } };
	uint64_t id = EMULATE_EVENT;

	out_write(w->out, &header, sizeof(header));
	out_write(w->out, &attr, sizeof(attr));
	out_write(w->out, &id, sizeof(id));
	header.data.offset = out_offset(w->out);
	write_info(w->out);
	for (size_t i = 0; i < w->nr_pieces; i++)
		write_piece(w, &w->pieces[i]);
	header.data.size = out_offset(w->out) - header.data.offset;
	write_features(w->out, &header, words);
	out_patch(w->out, 0, &header, sizeof(header));
}

void emulate_file_write(struct out *out, const char *parts, const char *const *words,
			struct emulate_sums *sums)
{
	struct work w = { .out = out, .parts = parts, .sums = sums };

	*sums = (struct emulate_sums){ 0 };
	find_threads(&w);
	sums->threads = w.nr_threads;
	if (w.nr_pieces) {
		qsort(w.pieces, w.nr_pieces, sizeof(*w.pieces), by_time);
		write_file(&w, words);
	}
	for (size_t i = 0; i < w.nr_threads; i++) {
		unmap(&w.threads[i].trace);
		unmap(&w.threads[i].part);
	}
	free(w.threads);
	free(w.pieces);
}
