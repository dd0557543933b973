// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/slices_parts.h"

#define MAX_RUN 65536  /* bytes: a longer straight run of instructions is an error */
#define FIRST_NUMBER 1 /* of slices that began before the trace */

/* Events */

/* The place of a task's moment on the axis. */
static uint64_t place_of(const struct slices *s, const struct slices_task *task, uint64_t time)
{
	switch (s->axis) {
	case AXIS_TIME: return time;
	case AXIS_CYCLES: return task->first + task->cycles;
	default: return task->first + task->instructions;
	}
}

void slices_emit(struct slices *s, const struct slices_task *task, uint32_t cpu, uint64_t place,
		 struct event_slice slice)
{
	struct event ev = { .kind = EVENT_SLICE,
			    .time = place,
			    .cpu = cpu,
			    .pid = task ? task->pid : NO_TASK,
			    .tid = task ? task->tid : NO_TASK,
			    .slice = slice };

	if (!s->failed && s->emit(s->data, &ev) < 0)
		s->failed = true;
}

/* The task goes on with the tid of one that has ended. */
static void succeed(struct slices *s, struct slices_task *task, uint64_t place)
{
	struct tids_ended ended;

	task->kind = s->kind(s->data, task->pid, task->open[0].frame);
	if (!tids_take(&s->ended, task->pid, task->kind, place, &ended))
		return;
	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct slices_masked *off = &s->cpus[i].mask.off;

		if (!s->cpus[i].mask.shown && off->pid == task->pid && off->tid == task->tid)
			off->tid = ended.tid;
	}
	task->tid = ended.tid;
	task->least = ended.last;
}

/* The thread goes on after part of its trace was missing, or its tid is used again. */
static void go_on(struct slices *s, struct slices_task *task)
{
	struct tids_ended ended;

	if (tids_take(&s->threads, task->pid, task->tid, UINT64_MAX, &ended))
		task->least = ended.last;
}

static void announce(struct slices *s, struct slices_task *task, uint64_t place)
{
	struct event ev = { .time = place, .cpu = task->cpu, .pid = task->pid };

	task->announced = true;
	if (task->thread)
		go_on(s, task);
	else if (s->kind)
		succeed(s, task, place);
	ev.tid = task->tid;
	if (!task->named && !s->failed && s->announce(s->data, &ev, task->open[0].frame) < 0)
		s->failed = true;
}

/* Slices of tasks */

static void show_slice(struct slices *s, struct slices_task *task, uint64_t place, uint64_t time)
{
	struct slice *slice = &task->open[task->shown++];
	bool first = !task->announced;

	if (first)
		announce(s, task, place);
	slice->since = place;
	slice->began = slices_time_at(s, place, time);
	slice->before = task->instructions;
	slice->sampled = task->samples;
	slice->callees = 0;
	slice->cycles_before = task->cycles;
	slice->callees_cycles = 0;
	slice->number = ++task->last_number;
	slice->lines = 0;
	slice->own_lines = 0;
	memset(slice->own, 0, sizeof(slice->own));
	slices_emit(s, task, task->cpu, place,
		    (struct event_slice){ .frame = slice->frame,
					  .kind = slice->kind,
					  .cut = slice->cut,
					  .first = first });
}

/* Shows the slices that are open. */
static void show_task(struct slices *s, struct slices_task *task, uint64_t time)
{
	while (task->shown < task->nr) {
		task->open[task->shown].cut |= task->open[task->shown].time < time;
		show_slice(s, task, slices_at_least(&task->last, place_of(s, task, time)), time);
	}
}

/* Ends the innermost slice that is shown. cut: it is not over. */
static void hide_slice(struct slices *s, struct slices_task *task, uint64_t time, bool cut)
{
	struct slice *slice = &task->open[--task->shown];
	uint64_t instructions = task->instructions - slice->before;
	uint64_t cycles = task->cycles - slice->cycles_before;
	uint64_t place = slices_at_least(&task->last, place_of(s, task, time));

	if (task->shown) {
		slice[-1].callees += instructions;
		slice[-1].callees_cycles += cycles;
		slice[-1].lines += slice->lines;
	}
	slices_emit(s, task, task->cpu, place,
		    (struct event_slice){ .frame = slice->frame,
					  .kind = slice->kind,
					  .leave = true,
					  .cut = cut,
					  .knows = s->knows,
					  .since = slice->since,
					  .began = slice->began,
					  .ended = slices_end_time(s, slice->began, place, time),
					  .samples = task->samples - slice->sampled,
					  .instructions = instructions,
					  .own = instructions - slice->callees,
					  .cycles = cycles,
					  .own_cycles = cycles - slice->callees_cycles,
					  .lines = (uint32_t)slice->lines,
					  .own_lines = (uint32_t)slice->own_lines });
}

static void hide_task(struct slices *s, struct slices_task *task, uint64_t time)
{
	while (task->shown)
		hide_slice(s, task, time, true);
}

/*
 * Waiting tasks. A task may turn out to have ended when it last ran; its slices are then not part of a later
 * selection. So where the selected time begins or ends, its slices are shown or hidden only once it is known
 * that the task goes on. Parts of a timeline and gates cannot wait for that.
 */

static bool can_wait(const struct slices *s, const struct slices_task *task)
{
	if (s->length || s->gate || s->finished ||
	    task->thread) /* a thread's trace says when it ends */
		return false;
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].task == task)
			return false;
	}
	return true;
}

/* The task goes on, or the trace ends. Called before the task's stack changes. */
static void wake(struct slices *s, struct slices_task *task)
{
	bool over = !s->live && (task->late || task->due);

	if (task->late)
		show_task(s, task, s->from);
	if (over)
		hide_task(s, task, s->until);
	task->late = task->due = false;
}

/* The tasks of cpus */

/* Whether it is already shown that the task runs on the cpu, with all its slices. */
static bool is_running(const struct slices *s, const struct slices_cpu *cpu,
		       const struct slices_task *task, bool selected)
{
	return task && cpu->shown == task && cpu->task == task && task->shown == task->nr &&
	       s->live && selected && cpu->selected && !task->late && !task->due;
}

/* A thread goes on on another cpu. */
static void leave_cpu(struct slices *s, struct slices_task *task)
{
	struct slices_cpu *cpu = task->cpu == NO_CPU ? NULL : slices_cpu(s, task->cpu);

	if (!cpu || cpu->task != task)
		return;
	cpu->task = NULL;
	if (cpu->shown == task)
		slices_hide_run(s, cpu, cpu->time, false);
	slices_end_rate(s, cpu, cpu->time);
}

/* A task that runs on a cpu. */
static void take_cpu(struct slices *s, struct slices_task *task, uint32_t number, bool selected)
{
	wake(s, task);
	if (task->thread && task->cpu != number)
		leave_cpu(s, task);
	task->cpu = number;
	task->hidden = !selected;
	task->lost = false;
}

void slices_run(struct slices *s, uint32_t number, struct slices_task *task, bool selected)
{
	struct slices_cpu *cpu;

	if (number == NO_CPU && task && task->thread) {
		take_cpu(s, task, number, selected);
		slices_show(s, task, selected);
		return;
	}
	cpu = slices_cpu(s, number);
	if (is_running(s, cpu, task, selected)) {
		cpu->time = s->now;
		return;
	}
	if (task)
		take_cpu(s, task, number, selected);
	cpu->task = task;
	cpu->selected = selected;
	cpu->time = s->now;
	cpu->traced = true;
	if (!selected)
		slices_end_rate(s, cpu, s->now);
	if (cpu->shown != task || !selected)
		slices_hide_run(s, cpu, s->now, cpu->shown == task);
	if (!selected)
		slices_hide_mask(s, cpu, s->now, 0, true);
	if (task && !selected)
		hide_task(s, task, s->now);
	if (!s->live || !selected)
		return;
	if (task)
		show_task(s, task, s->now);
	slices_show_run(s, cpu, s->now);
	slices_show_mask(s, cpu, s->now);
}

void slices_show(struct slices *s, struct slices_task *task, bool selected)
{
	task->cpu = NO_CPU;
	task->hidden = !selected;
	if (!selected)
		hide_task(s, task, s->now);
	else if (s->live)
		show_task(s, task, s->now);
}

void slices_go_on(struct slices *s, struct slices_task *task)
{
	if (s->live && !task->hidden)
		show_task(s, task, s->now);
}

/* A gap since a time, of a cpu or of a task. last: where the last slice on the same axis ended. */
static void emit_gap(struct slices *s, const struct slices_task *task, uint32_t cpu, uint64_t *last,
		     uint64_t since, uint64_t until)
{
	struct event_slice gap = { .kind = SLICE_GAP };

	if (s->axis != AXIS_TIME)
		return;
	since = slices_at_least(last, since < s->from ? s->from : since);
	if (since >= until)
		return;
	*last = until;
	slices_emit(s, task, cpu, since, gap);
	gap.leave = true;
	gap.since = gap.began = since;
	gap.ended = until;
	slices_emit(s, task, cpu, until, gap);
}

static void emit_cpu_gap(struct slices *s, struct slices_cpu *cpu, uint64_t until)
{
	if (cpu->selected)
		emit_gap(s, NULL, cpu->number, &cpu->last, cpu->time, until);
}

static void emit_thread_gap(struct slices *s, struct slices_task *task, uint64_t until)
{
	if (!task->hidden)
		emit_gap(s, task, task->cpu, &task->last, task->left, until);
}

void slices_lose_thread(struct slices *s, struct slices_task *task)
{
	uint64_t since = task->left < s->from ? s->from : task->left;
	struct slices_cpu *cpu = task->cpu == NO_CPU ? NULL : slices_cpu(s, task->cpu);

	if (cpu && cpu->task == task) {
		slices_hide_run(s, cpu, since, true);
		slices_end_rate(s, cpu, since);
		cpu->task = NULL;
	}
	hide_task(s, task, since);
	task->lost = true;
}

void slices_gap_thread(struct slices *s, struct slices_task *task)
{
	if (s->live)
		emit_thread_gap(s, task, s->now);
}

void slices_lose(struct slices *s, uint32_t number)
{
	struct slices_cpu *cpu = slices_cpu(s, number);
	uint64_t since = cpu->time < s->from ? s->from : cpu->time;

	if (!cpu->traced)
		return;
	slices_hide_run(s, cpu, since, true);
	slices_hide_mask(s, cpu, since, 0, true);
	cpu->mask.interrupts = INTERRUPTS_UNKNOWN;
	slices_end_rate(s, cpu, since);
	if (cpu->task) {
		hide_task(s, cpu->task, since);
		cpu->task->lost = cpu->lost = true;
	}
}

void slices_gap(struct slices *s, uint32_t number)
{
	struct slices_cpu *cpu = slices_cpu(s, number);

	slices_lose(s, number);
	cpu->lost = false;
	if (cpu->traced && s->live)
		emit_cpu_gap(s, cpu, s->now);
}

/* The selection */

/* It begins, or goes on in another part: shows all slices, also of tasks that wait. */
static void show_all(struct slices *s, uint64_t time)
{
	for (struct slices_task *task = s->tasks; task; task = task->next) {
		if (task->hidden || task->lost)
			continue;
		task->late = can_wait(s, task);
		if (!task->late)
			show_task(s, task, time);
	}
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].lost)
			continue;
		slices_show_run(s, &s->cpus[i], time);
		s->cpus[i].mask.off.cut = true;
		slices_show_mask(s, &s->cpus[i], time);
	}
}

static void hide_all(struct slices *s, uint64_t time)
{
	for (size_t i = 0; i < s->nr_cpus; i++) {
		slices_hide_run(s, &s->cpus[i], time, true);
		slices_hide_mask(s, &s->cpus[i], time, 0, true);
		slices_end_rate(s, &s->cpus[i], time);
		if (s->cpus[i].lost)
			emit_cpu_gap(s, &s->cpus[i], time);
	}
	for (struct slices_task *task = s->tasks; task; task = task->next) {
		if (task->thread && task->lost)
			emit_thread_gap(s, task, time);
		task->due = task->shown && can_wait(s, task);
		if (!task->due)
			hide_task(s, task, time);
	}
}

static uint64_t later(uint64_t time, uint64_t length)
{
	return length < UINT64_MAX - time ? time + length : UINT64_MAX;
}

static void set_live(struct slices *s, uint64_t time, bool live)
{
	if (live == s->live)
		return;
	s->live = live;
	if (!live) {
		hide_all(s, time);
		return;
	}
	s->border = later(time, s->length);
	show_all(s, time);
}

/* Begins another part. Parts in which nothing happens are left out. */
static void split(struct slices *s, uint64_t time)
{
	hide_all(s, s->border);
	slices_emit(s, NULL, NO_CPU, s->border, (struct event_slice){ .kind = SLICE_SPLIT });
	show_all(s, s->border);
	s->border = later(s->border + (time - s->border) / s->length * s->length, s->length);
}

void slices_advance(struct slices *s, uint64_t time)
{
	uint64_t before = s->now;

	if (time > INT64_MAX || time < s->now)
		time = s->now;
	s->now = time;
	if (s->window && s->window(s->data, &s->from, &s->until))
		s->window = NULL;
	if (!s->live && !s->closed && time >= s->from && before < s->until)
		set_live(s, s->from ? s->from : time, true);
	if (s->live && time >= s->until) /* perhaps without an event in between */
		set_live(s, s->until, false);
	if (s->live && s->length && time >= s->border)
		split(s, time);
}

int slices_finish(struct slices *s)
{
	s->finished = true;
	for (struct slices_task *task = s->tasks; task; task = task->next)
		wake(s, task);
	set_live(s, s->now, false);
	return s->failed ? -1 : 0;
}

/* A function is entered. */
static void open_gate(struct slices *s, unsigned gate)
{
	if (!(gate & GATE_START) || !s->closed)
		return;
	s->closed = false;
	s->started = true;
	s->opened = s->now;
	set_live(s, s->now, s->now >= s->from && s->now < s->until);
}

/* A function returned, and these calls remain. Of recursive calls, the outermost one ends the selection. */
static void close_gate(struct slices *s, const struct slices_task *task, unsigned gate)
{
	if (!(gate & GATE_END) || s->closed)
		return;
	for (size_t i = 0; i < task->nr; i++) {
		if (task->open[i].gate & GATE_END && task->open[i].time >= s->opened)
			return;
	}
	s->closed = true;
	set_live(s, s->now, false);
}

static void close_from(struct slices *s, struct slices_task *task, size_t depth, uint64_t time)
{
	while (task->nr > depth) {
		if (task->shown == task->nr)
			hide_slice(s, task, time, false);
		task->nr--;
		close_gate(s, task, task->open[task->nr].gate);
	}
}

void slices_close(struct slices *s, struct slices_task *task, size_t depth)
{
	wake(s, task);
	close_from(s, task, depth, s->now);
}

/* Tasks */

struct slices_task *slices_task(struct slices *s, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	struct slices_task *task = xcalloc(1, sizeof(*task));

	*task = (struct slices_task){ .next = s->tasks,
				      .link = &s->tasks,
				      .first = s->axis == AXIS_CYCLES ? s->cycles : s->instructions,
				      .last_number = FIRST_NUMBER,
				      .began = s->now,
				      .left = s->now,
				      .pid = pid,
				      .tid = tid,
				      .cpu = cpu };
	if (task->next)
		task->next->link = &task->next;
	s->tasks = task;
	return task;
}

static void free_task(struct slices_task *task)
{
	*task->link = task->next;
	if (task->next)
		task->next->link = task->link;
	footprint_release(&task->footprint);
	free(task->open);
	free(task);
}

void slices_end_task(struct slices *s, struct slices_task *task)
{
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].task == task)
			s->cpus[i].task = NULL;
		if (s->cpus[i].shown == task)
			slices_hide_run(s, &s->cpus[i], s->now, false);
	}
	close_from(s, task, 0, task->left);
	/* A gap may be all that is shown of a thread, or be shown before it. */
	if (task->thread && (task->announced || task->last || task->least))
		tids_put(&s->threads, task->pid, task->tid,
			 (struct tids_ended){ task->tid, task->last > task->least ? task->last
										  : task->least });
	else if (s->kind && task->announced)
		tids_put(&s->ended, task->pid, task->kind,
			 (struct tids_ended){ task->tid, task->last });
	free_task(task);
}

void slices_release(struct slices *s)
{
	while (s->tasks)
		free_task(s->tasks);
	tids_release(&s->ended);
	tids_release(&s->threads);
	free(s->cpus);
	memset(s, 0, sizeof(*s));
}

struct hash_key slices_axis(const struct event *ev)
{
	enum slice_kind kind = ev->slice.kind;
	bool of_cpu = kind == SLICE_RUN || kind == SLICE_MASKED ||
		      (kind == SLICE_GAP && ev->tid == NO_TASK);
	enum { TASK, CPU, MASKED } what = kind == SLICE_MASKED ? MASKED : of_cpu ? CPU : TASK;
	uint64_t task = (uint64_t)ev->pid << 32 | ev->tid;

	return (struct hash_key){ of_cpu ? ev->cpu : task, (uint64_t)ev->kind << 32 | what };
}

void slices_open(struct slices *s, struct slices_task *task, struct slice slice)
{
	wake(s, task);
	slice.gate = s->gate ? s->gate(s, slice.frame) : 0;
	open_gate(s, slice.gate);
	GROW(task->open, task->nr + 1, task->cap);
	task->open[task->nr++] = slice;
}

void slices_open_early(struct slices *s, struct slices_task *task, struct slice slice,
		       uint64_t early, bool selected)
{
	uint64_t place = s->axis == AXIS_TIME ? task->began : task->first, least;
	struct slice *first;
	bool has_room;

	if (task->thread && !task->announced)
		go_on(s, task);
	least = s->axis == AXIS_TIME && s->from > task->least ? s->from : task->least;
	has_room = place >= least && place - least >= early;
	slice.cut = true;
	slice.time = task->began;
	slices_open(s, task, slice);
	if (!s->live || !selected || task->nr > 1 || task->began < s->from || s->length ||
	    s->gate || !has_room)
		return;
	show_slice(s, task, place - early, task->began);
	first = &task->open[0];
	first->before = 0;
	first->callees = task->instructions;
	first->cycles_before = 0;
	first->callees_cycles = task->cycles;
	first->number = FIRST_NUMBER;
	first->lines = (int64_t)task->footprint.nr;
}

/* Instructions and lines of code */

/* Whether the innermost slice's own code touches the line for the first time. */
static bool is_new_line(struct slice *top, uint64_t line, uint64_t seen)
{
	uint64_t bit = line - (top->start >> FOOTPRINT_LINE);
	uint64_t mask = (uint64_t)1 << bit % 64;
	bool fresh;

	/*
	 * There are no bits for lines far from the function's start: there, a recursive call that touched one
	 * hides that this call did, too.
	 */
	if (bit >= (uint64_t)SLICE_WORDS * 64)
		return seen < top->number;
	fresh = !(top->own[bit / 64] & mask);
	top->own[bit / 64] |= mask;
	return fresh;
}

/* Counts a line for the slices that began after the task last touched it: the innermost ones. */
static void count_line(struct slices_task *task, uint64_t seen)
{
	size_t first = 0, last = task->shown - 1;

	while (first < last) {
		size_t middle = (first + last) / 2;

		if (task->open[middle].number > seen)
			last = middle;
		else
			first = middle + 1;
	}
	task->open[task->shown - 1].lines++;
	if (first)
		task->open[first - 1].lines--;
}

static void touch(struct slices_task *task, uint64_t from, uint64_t to)
{
	struct slice *top = &task->open[task->shown - 1];

	if (!from || to < from || to - from > MAX_RUN)
		return;
	for (uint64_t line = from >> FOOTPRINT_LINE; line <= to >> FOOTPRINT_LINE; line++) {
		uint64_t seen = footprint_touch(&task->footprint, line, task->last_number);

		top->own_lines += is_new_line(top, line, seen);
		if (seen < top->number)
			count_line(task, seen);
	}
}

void slices_note(struct slices *s, const struct slices_task *task, const struct event *ev,
		 uint32_t frame)
{
	uint64_t place = place_of(s, task, s->now);

	if (!s->live)
		return;
	if (s->axis == AXIS_INSTRUCTIONS)
		place += ev->note.instructions;
	else if (s->axis == AXIS_CYCLES)
		place += ev->note.cycles;
	if (place < task->last)
		place = task->last;
	slices_emit(s, task, ev->cpu, place,
		    (struct event_slice){ .kind = SLICE_NOTE,
					  .frame = frame,
					  .since = place,
					  .began = s->now,
					  .ended = s->now,
					  .note = &ev->note });
}

void slices_sample(struct slices *s, struct slices_task *task, uint32_t cpu, uint64_t samples,
		   uint64_t instructions)
{
	if (!s->live)
		return;
	task->samples += samples;
	task->instructions += instructions;
	s->instructions += instructions;
	if (cpu != NO_CPU)
		slices_cpu(s, cpu)->instructions += instructions;
}

/* The cpu's number may be unknown. */
static struct slices_cpu *known_cpu(struct slices *s, uint32_t number,
				    const struct slices_task *task)
{
	return number == NO_CPU && task && task->thread ? NULL : slices_cpu(s, number);
}

void slices_charge_part(struct slices *s, uint32_t number, struct slices_task *task,
			const struct slices_code *code)
{
	struct slices_cpu *cpu = known_cpu(s, number, task);

	if (cpu)
		cpu->mask.run = 0;
	if (!task)
		return;
	task->left = s->now;
	if (!s->live || task->hidden)
		return;
	if (cpu && s->axis == AXIS_TIME)
		slices_begin_rate(s, cpu);
	if (cpu) {
		cpu->instructions += code->instructions;
		cpu->cycles += code->cycles;
	}
	s->instructions += code->instructions;
	s->cycles += code->cycles;
	task->instructions += code->instructions;
	task->cycles += code->cycles;
	if (code->instructions)
		s->knows |= KNOWS_INSTRUCTIONS;
	if (code->cycles)
		s->knows |= KNOWS_CYCLES;
	if (task->shown)
		touch(task, code->from, code->to);
}

void slices_charged(struct slices *s, uint32_t number, const struct slices_task *task)
{
	struct slices_cpu *cpu = known_cpu(s, number, task);

	if (cpu && task && cpu->rated)
		slices_add_rate(s, cpu);
}

void slices_charge(struct slices *s, uint32_t number, struct slices_task *task,
		   const struct slices_code *code)
{
	slices_charge_part(s, number, task, code);
	slices_charged(s, number, task);
}
