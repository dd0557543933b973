// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls: the longest ones as such, and the time, instructions and cycles of all of them as rows. */
#include <stdlib.h>

#include "base/mem.h"
#include "write/html.h"

#define MOST ((size_t)1 << 20) /* calls that a page has */

static const char *const track_kinds[] = { "task", "cpu", "mask" };
static const char *const axis_names[] = { "time", "cycles", "instructions" };
static const char *const axis_units[] = { "ns", "cycles", "instructions" };

void html_slices_release(struct html_slices *slices)
{
	for (size_t i = 0; i < slices->nr_tracks; i++)
		free(slices->tracks[i].open);
	free(slices->tracks);
	free(slices->all);
	hash_release(&slices->index);
}

static struct html_track *track_of(struct html_slices *slices, enum html_track_kind kind,
				   uint64_t owner)
{
	uint32_t *number = hash_at(&slices->index, (struct hash_key){ kind, owner });

	if (!*number) {
		GROW(slices->tracks, slices->nr_tracks + 1, slices->cap_tracks);
		slices->tracks[slices->nr_tracks++] = (struct html_track){ .kind = kind };
		*number = (uint32_t)slices->nr_tracks;
	}
	return &slices->tracks[*number - 1];
}

/* A task may get another name while calls are open: its track stays the same. */
static struct html_track *task_track(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	struct html_track *track =
		track_of(&html->slices, TRACK_TASK, (uint64_t)ev->pid << 32 | ev->tid);

	track->task = html_task(w, ev);
	return track;
}

static struct html_track *cpu_track(struct html_slices *slices, const struct event *ev)
{
	struct html_track *track =
		track_of(slices, ev->slice.kind == SLICE_MASKED ? TRACK_MASK : TRACK_CPU, ev->cpu);

	track->cpu = ev->cpu;
	return track;
}

/* ---- rows ---- */

/* The time up to now belongs to the innermost call, if the task runs. */
static void charge(struct html *html, struct html_track *track, uint64_t now, uint64_t count)
{
	bool runs = track->nr_open && (track->on_cpu || !track->follows_cpu);
	struct html_row row = { .time = track->until, .task = track->task, .count = count };
	enum slice_axis axis = html->given.timeline.axis;

	if (now < track->until)
		now = track->until;
	row.length = row.weight = runs ? now - track->until : 0;
	track->until = now;
	if (!track->nr_open || (!row.length && !count))
		return;
	row.cpu = track->follows_cpu ? track->cpu + 1 : 0;
	row.stack = track->open[track->nr_open - 1].stack;
	row.event = html_event(html, axis_names[axis], axis_units[axis]);
	html->events[row.event].weight += row.weight;
	html->events[row.event].samples += count;
	html_rows_add(&html->rows, &row);
}

/* What a call executed itself, which is known at its end: it counts at the last moment of the call. */
static void count(struct html *html, const struct html_track *track, const struct event *ev,
		  const char *name, uint64_t number)
{
	struct html_row row = { .time = ev->time > ev->slice.since ? ev->time - 1 : ev->time,
				.weight = number,
				.count = 1,
				.task = track->task,
				.cpu = track->follows_cpu ? track->cpu + 1 : 0,
				.stack = track->open[track->nr_open - 1].stack,
				.event = html_event(html, name, name) };

	html->events[row.event].weight += number;
	html->events[row.event].samples++;
	html_rows_add(&html->rows, &row);
}

static void follow_cpu(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	struct html_track *track = task_track(w, ev);

	charge(html, track, ev->time, 0);
	track->follows_cpu = true;
	track->on_cpu = !ev->slice.leave;
	track->cpu = ev->cpu;
}

/* ---- calls ---- */

/* Drops the shorter half, and all that are as long as these. */
static void drop_short(struct html_slices *slices)
{
	while (slices->nr > MOST / 2) {
		size_t nr = 0;

		if (slices->shortest <= UINT64_MAX / 2)
			slices->shortest = slices->shortest ? slices->shortest * 2 : 16;
		else
			slices->shortest = UINT64_MAX;
		for (size_t i = 0; i < slices->nr; i++) {
			if (slices->all[i].length >= slices->shortest)
				slices->all[nr++] = slices->all[i];
			else
				slices->shorter++;
		}
		slices->nr = nr;
	}
}

static void add_slice(struct html_slices *slices, const struct html_slice *slice)
{
	if (slices->nr == MOST)
		drop_short(slices);
	if (slice->length < slices->shortest) {
		slices->shorter++;
		return;
	}
	GROW(slices->all, slices->nr + 1, slices->cap);
	slices->all[slices->nr++] = *slice;
}

static void begin_call(struct writer *w, struct html_track *track, const struct event *ev)
{
	struct html *html = w->priv;
	uint32_t caller = 0, stack = 0;

	if (track->kind == TRACK_TASK) {
		charge(html, track, ev->time, 0);
		caller = track->nr_open ? track->open[track->nr_open - 1].stack : 0;
		stack = stack_push(&w->world->stacks, caller, ev->slice.frame);
	}
	GROW(track->open, track->nr_open + 1, track->cap_open);
	track->open[track->nr_open++] = (struct html_open){ ev->slice.frame, stack, ev->slice.cut };
}

static void end_call(struct writer *w, struct html_track *track, const struct event *ev)
{
	struct html *html = w->priv;
	enum slice_axis axis = html->given.timeline.axis;
	const struct event_slice *slice = &ev->slice;
	const struct html_open *open;

	if (!track->nr_open)
		return;
	open = &track->open[track->nr_open - 1];
	if (track->kind == TRACK_TASK) {
		charge(html, track, ev->time, slice->kind != SLICE_INLINE);
		if (slice->knows & KNOWS_INSTRUCTIONS && axis != AXIS_INSTRUCTIONS)
			count(html, track, ev, "instructions", slice->own);
		if (slice->knows & KNOWS_CYCLES && axis != AXIS_CYCLES)
			count(html, track, ev, "cycles", slice->own_cycles);
	}
	add_slice(&html->slices,
		  &(struct html_slice){
			  .begin = slice->since,
			  .length = ev->time - slice->since,
			  .instructions = slice->instructions,
			  .own = slice->own,
			  .cycles = slice->cycles,
			  .own_cycles = slice->own_cycles,
			  .lines = slice->lines,
			  .own_lines = slice->own_lines,
			  .frame = open->frame,
			  .track = (uint32_t)(track - html->slices.tracks),
			  .task = slice->kind == SLICE_RUN ? html_task(w, ev) + 1 : 0,
			  .kind = (uint8_t)slice->kind,
			  .knows = slice->knows,
			  .cut = (uint8_t)(open->cut | slice->cut << 1),
		  });
	track->nr_open--;
}

static void put_gap(struct writer *w, const struct event *ev)
{
	struct html_gap gap = { .begin = ev->slice.since, .end = ev->time };

	if (ev->tid != NO_TASK)
		gap.task = html_task(w, ev) + 1;
	else if (ev->cpu != NO_CPU)
		gap.cpu = ev->cpu + 1;
	html_add_gap(w->priv, &gap);
}

void html_put_slice(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	enum slice_kind kind = ev->slice.kind;
	struct html_track *track;

	if (kind >= SLICE_NOTE)
		return;
	written_slice(&w->written, &ev->slice);
	if (kind == SLICE_GAP) {
		if (ev->slice.leave)
			put_gap(w, ev);
		return;
	}
	if (kind == SLICE_RUN)
		follow_cpu(w, ev);
	track = timeline_on_cpu(ev) ? cpu_track(&html->slices, ev) : task_track(w, ev);
	if (ev->slice.leave)
		end_call(w, track, ev);
	else
		begin_call(w, track, ev);
}

/* ---- output ---- */

static void put_tracks(const struct html_slices *slices, struct json_out *json)
{
	json_out_array(json, "tracks");
	for (size_t i = 0; i < slices->nr_tracks; i++) {
		const struct html_track *track = &slices->tracks[i];

		json_out_object(json, NULL);
		json_out_text(json, "kind", track_kinds[track->kind]);
		json_out_u64(json, "task", track->task);
		json_out_u64(json, "cpu",
			     track->kind == TRACK_TASK || track->cpu == NO_CPU ? 0
									       : track->cpu + 1);
		json_out_end(json);
	}
	json_out_end(json);
	json_out_array(json, "kinds");
	for (unsigned i = 0; i < TIMELINE_KINDS; i++)
		json_out_text(json, NULL, timeline_kind_names[i]);
	json_out_end(json);
}

static uint64_t known(const struct html_slice *slice, enum slice_knows what, uint64_t number)
{
	return slice->knows & what ? number + 1 : 0;
}

int html_write_slices(struct writer *w, bool before)
{
	struct html *html = w->priv;
	const struct html_slices *slices = &html->slices;
	const struct html_slice *all = slices->all;
	size_t nr = slices->nr;
	struct html_block block;

	if (!slices->nr_tracks || before)
		return 0;
	html_block_begin(&block, w->out, "slices", before);
	put_tracks(slices, &block.json);
	HTML_COLUMN(&block, "slices.track", false, nr, all[i].track);
	HTML_COLUMN(&block, "slices.begin", true, nr, html_relative(html, all[i].begin));
	HTML_COLUMN(&block, "slices.length", false, nr, all[i].length);
	HTML_COLUMN(&block, "slices.function", false, nr,
		    all[i].frame ? html_function(&html->tables, all[i].frame) + 1 : 0);
	HTML_COLUMN(&block, "slices.task", false, nr, all[i].task);
	HTML_COLUMN(&block, "slices.kind", false, nr, all[i].kind);
	HTML_COLUMN(&block, "slices.cut", false, nr, all[i].cut);
	HTML_COLUMN(&block, "slices.instructions", false, nr,
		    known(&all[i], KNOWS_INSTRUCTIONS, all[i].instructions));
	HTML_COLUMN(&block, "slices.ownInstructions", false, nr,
		    known(&all[i], KNOWS_INSTRUCTIONS, all[i].own));
	HTML_COLUMN(&block, "slices.cycles", false, nr,
		    known(&all[i], KNOWS_CYCLES, all[i].cycles));
	HTML_COLUMN(&block, "slices.ownCycles", false, nr,
		    known(&all[i], KNOWS_CYCLES, all[i].own_cycles));
	HTML_COLUMN(&block, "slices.lines", false, nr, known(&all[i], KNOWS_LINES, all[i].lines));
	HTML_COLUMN(&block, "slices.ownLines", false, nr,
		    known(&all[i], KNOWS_LINES, all[i].own_lines));
	return html_block_end(&block, &w->err);
}
