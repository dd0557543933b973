// SPDX-License-Identifier: GPL-2.0-or-later
/* gdb_out: writes what gdb_look() saw as kscope's own stream. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "record/gdb_parts.h"

#define PENDING_MAX ((size_t)1 << 20) /* bytes of one thread */

/* ---- Chunks ---- */

static void write_chunk(struct gdb_out *out, int64_t cpu, uint32_t sequence, const void *records,
			size_t len)
{
	struct buf chunk = { 0 };
	struct wire w = wire_into(buf_reserve(&chunk, len + 64), len + 64);
	uint8_t *opened = wire_chunk(&w, cpu, sequence, 0);

	wire_raw(&w, records, len);
	wire_close(&w, opened);
	raw_write(out->raw, chunk.data, (size_t)(w.at - (uint8_t *)chunk.data));
	buf_release(&chunk);
}

static void flush_track(struct gdb_out *out, size_t cpu)
{
	struct gdb_track *track = &out->tracks[cpu];

	if (track->records.len)
		write_chunk(out, (int64_t)cpu, track->sequence++, track->records.data,
			    track->records.len);
	buf_clear(&track->records);
}

void gdb_out_flush(struct gdb_out *out, uint64_t round)
{
	uint8_t record[16];
	struct wire w = wire_into(record, sizeof(record));

	for (size_t i = 0; i < out->nr; i++)
		flush_track(out, i);
	wire_uint(&w, WIRE_CHUNK_ROUND, round);
	write_chunk(out, -1, out->sequence++, record, (size_t)(w.at - record));
}

void gdb_out_end(struct gdb_out *out, const char *reason)
{
	struct wire_count *counts = xcalloc(out->nr + 1, sizeof(*counts));
	size_t room = 256 + strlen(reason) + out->nr * 64, nr = 0;
	uint8_t *record = xmalloc(room);
	struct wire w = wire_into(record, room);

	for (size_t i = 0; i < out->nr; i++) {
		flush_track(out, i);
		if (out->tracks[i].sequence)
			counts[nr++] = (struct wire_count){ .cpu = (uint32_t)i,
							    .samples = out->tracks[i].samples,
							    .chunks = out->tracks[i].sequence };
	}
	wire_end(&w, WIRE_CHUNK_END, reason, counts, nr);
	write_chunk(out, -1, out->sequence++, record, (size_t)(w.at - record));
	free(record);
	free(counts);
}

void gdb_out_release(struct gdb_out *out)
{
	for (size_t i = 0; i < out->nr; i++)
		buf_release(&out->tracks[i].records);
	free(out->tracks);
}

/* ---- Info ---- */

/* Paths are absolute, so that the recording can be read from another folder. */
static char *absolute(const char *path)
{
	char *full = path ? realpath(path, NULL) : NULL;

	return full ? full : path ? xstrdup(path) : NULL;
}

void gdb_out_begin(struct gdb *gdb)
{
	const struct gdb_options *options = gdb->options;
	size_t nr = options->nr_elfs + gdb->target.nr_elfs, room = 4096;
	char **elfs = xcalloc(nr + 1, sizeof(*elfs)), *kernel = absolute(options->kernel);
	struct timespec now;
	struct wire_info info = {
		.arch = gdb->target.layout.arch,
		.producer = "kscope-gdb " KSCOPE_VERSION,
		.cpus = gdb->target.user_mode ? 0 : (uint32_t)gdb->target.nr,
		.clock = WIRE_CLOCK_HOST,
		.period = SECOND / (options->freq ? options->freq : GDB_FREQ),
		.user_mode = gdb->target.user_mode,
		.kernel = kernel,
		.elf = (const char *const *)elfs,
		.n_elf = nr,
	};
	struct wire w;
	uint8_t *record;

	clock_gettime(CLOCK_REALTIME, &now);
	info.start = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	for (size_t i = 0; i < nr; i++) {
		elfs[i] = absolute(i < options->nr_elfs ? options->elfs[i]
							: gdb->target.elfs[i - options->nr_elfs]);
		room += strlen(elfs[i]) + 16;
	}
	room += kernel ? strlen(kernel) : 0;
	record = xmalloc(room);
	w = wire_into(record, room);
	wire_info(&w, WIRE_CHUNK_INFO, &info);
	write_chunk(&gdb->out, -1, gdb->out.sequence++, record, (size_t)(w.at - record));
	for (size_t i = 0; i < nr; i++)
		free(elfs[i]);
	free(elfs);
	free(record);
	free(kernel);
}

/* ---- Samples ---- */

static struct gdb_track *track_of(struct gdb_out *out, uint32_t cpu)
{
	while (out->nr <= cpu) {
		GROW(out->tracks, out->nr + 1, out->cap);
		out->tracks[out->nr++] = (struct gdb_track){ 0 };
	}
	return &out->tracks[cpu];
}

/*
 * The first bytes of the page of code identify its binary. They are written again if they change, or if another page
 * took the place of this one in the table.
 */
static void put_code(struct gdb_out *out, struct gdb_track *track, const struct gdb_thread *thread,
		     uint64_t time)
{
	const struct gdb_state *state = &thread->state;
	bool user = state->level == WIRE_LEVEL_USER;
	struct gdb_page page = { .page = state->pc & ~(uint64_t)(GDB_PAGE - 1),
				 .space = user ? state->space : UINT64_MAX, /* the kernel is everywhere */
				 .digest = hash_bytes(thread->code, WIRE_CODE_SIZE) };
	struct gdb_page *known = &out->pages[hash_bytes(&page, 2 * sizeof(uint64_t)) % GDB_PAGES];
	struct wire_code code = { time, state->space, page.page, state->level, thread->code,
				  WIRE_CODE_SIZE };
	size_t room = WIRE_SAMPLE_HEAD + WIRE_CODE_SIZE;
	uint8_t *at;
	struct wire w;

	if (!thread->has_code || !memcmp(known, &page, sizeof(page)))
		return;
	*known = page;
	at = (uint8_t *)buf_reserve(&track->records, room);
	w = wire_into(at, room);
	wire_code(&w, WIRE_CHUNK_CODE, &code);
	track->records.len += (size_t)(w.at - at);
}

void gdb_out_thread(struct gdb *gdb, uint32_t cpu, uint64_t time)
{
	struct gdb_thread *thread = &gdb->target.threads[cpu];
	const struct gdb_state *state = &thread->state;
	struct gdb_track *track = track_of(&gdb->out, cpu);
	struct wire_sample sample = { .time = time,
				      .weight = time - thread->last,
				      .task = thread->task,
				      .idle = thread->halted };
	size_t room = WIRE_SAMPLE_HEAD + 8 * GDB_DWARF_MAX + thread->stack_size + thread->outer_size;
	struct wire w;
	uint8_t *at;

	if (!thread->halted) {
		put_code(&gdb->out, track, thread, time);
		sample.pc = state->pc;
		sample.space = state->space;
		sample.no_space = !state->has_space;
		sample.level = state->level;
		sample.registers = state->dwarf;
		sample.n_registers = state->nr;
		sample.stack = thread->stack;
		sample.stack_size = thread->stack_size;
		sample.outer = thread->outer;
		sample.outer_size = thread->outer_size;
		sample.outer_address = thread->outer_address;
	}
	at = (uint8_t *)buf_reserve(&track->records, room);
	w = wire_into(at, room);
	wire_sample(&w, WIRE_CHUNK_SAMPLE, &sample);
	track->records.len += (size_t)(w.at - at);
	track->samples++;
	gdb->out.samples++;
	if (track->records.len > PENDING_MAX)
		flush_track(&gdb->out, cpu);
}
