// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "model/frame.h"
#include "read/bare.h"

#define IDLE_ADDRESS ((uint64_t)-0x20000) /* of the frame "[idle]" */

/* ---- the preamble: events before the first sample ---- */

const char *wire_kernel(const struct reader *r)
{
	const struct wire_reader *w = r->priv;

	if (r->options->kernel)
		return r->options->kernel;
	return w->info.kernel && wire_may_open(r, w->info.kernel) ? w->info.kernel : NULL;
}

bool wire_may_open(const struct reader *r, const char *path)
{
	return !r->store || !r->store->archive || store_has(r->store, path);
}

static void emit_meta(struct event *ev, const char *key, const char *value)
{
	ev->kind = EVENT_META;
	ev->meta = (struct event_meta){ key, value };
}

/*
 * Samples are not evenly spaced: a vCPU that the host does not run is sampled when it runs again. So
 * the source has a unit, which makes flame graphs use the weights.
 */
void wire_clock_source(const struct reader *r, struct event_source *source)
{
	static const struct event_source sources[] = {
		[WIRE_CLOCK_HOST] = { .name = "host-time", .unit = "ns", .type = SOURCE_SOFTWARE },
		[WIRE_CLOCK_GUEST] = { .name = "guest-time",
				       .unit = "ns",
				       .type = SOURCE_SOFTWARE,
				       .config = 1 },
		[WIRE_CLOCK_INSTRUCTIONS] = { .name = "instructions",
					      .unit = "instructions",
					      .type = SOURCE_HARDWARE,
					      .config = 1 },
	};
	const struct wire_reader *w = r->priv;
	const struct info_message *info = &w->info;

	*source = sources[info->clock <= WIRE_CLOCK_INSTRUCTIONS ? info->clock : WIRE_CLOCK_HOST];
	source->id = 1;
	source->lacks = w->described.on ? 0 : LACKS_THREADS;
	source->period = info->period;
	if (info->event)
		source->name = info->event;
	if (w->event_name)
		source->name = w->event_name;
}

void wire_kernel_map(const struct reader *r, struct event *ev)
{
	const struct wire_reader *w = r->priv;

	bare_map(ev);
	ev->map.len = IDLE_ADDRESS; /* which has its own symbol */
	if (w->spaces.place && place_has_kernel(w->spaces.place))
		ev->map.names = wire_kernel(r);
	if (!w->anchor)
		return;
	ev->map.anchor = w->anchor;
	ev->map.addr = ev->map.offset = w->anchor_addr + w->slide;
	ev->map.len = IDLE_ADDRESS - ev->map.addr;
}

static bool emit_module(struct wire_reader *w, struct event *ev)
{
	ev->kind = EVENT_MAP;
	return w->spaces.place && !w->info.user_mode &&
	       place_module(w->spaces.place, w->modules_emitted++, &ev->map);
}

/* False: the preamble is complete. */
static bool emit_preamble(struct reader *r, struct event *ev)
{
	struct wire_reader *w = r->priv;

	for (;;) {
		switch (w->preamble++) {
		case 0:
			if (!w->info.arch)
				break;
			emit_meta(ev, "arch", w->info.arch);
			return true;
		case 1:
			if (!w->info.command)
				break;
			emit_meta(ev, "cmdline", w->info.command);
			return true;
		case 2:
			if (!w->info.producer)
				break;
			emit_meta(ev, "cpudesc", w->info.producer);
			return true;
		case 3:
			if (!w->info.cpus)
				break;
			snprintf(w->nrcpus, sizeof(w->nrcpus), "%" PRIu64, w->info.cpus);
			emit_meta(ev, "nrcpus", w->nrcpus);
			return true;
		case 4:
			if ((w->info.trace && !w->info.period) || w->described.on)
				break;
			ev->kind = EVENT_SOURCE;
			wire_clock_source(r, &ev->source);
			return true;
		case 5:
			if (w->info.user_mode || (w->described.on && !wire_kernel(r)))
				break;
			if (wire_placing(w)) { /* the map can come later: it holds from the start */
				w->preamble = 5;
				return false;
			}
			wire_kernel_map(r, ev);
			w->described.kernel_told = true;
			return true;
		case 6:
			if (!emit_module(w, ev))
				break;
			w->preamble = 6;
			return true;
		case 7:
			if (!w->described.on || !wire_described_next(r, ev))
				break;
			w->preamble = 7;
			return true;
		default: w->preamble = 8; return false;
		}
	}
}

/* ---- the reader ---- */

static int wire_reader_probe(const uint8_t *head, size_t len)
{
	size_t size, message;

	size_t text = wire_text(head, len);

	if (!wire_head(head + text, len - text, &size, &message))
		return 0;
	return text ? 40 : 48;
}

static void take_info(struct reader *r)
{
	struct wire_reader *w = r->priv;
	struct wire_chunk chunk;

	if (wire_peek(r->in, &chunk) <= 0 || chunk.check == WIRE_CHECK_WRONG)
		return;
	wire_chunk_info(&chunk, &w->info);
	wire_described_guess(w, &chunk);
	w->checked = w->info.version > WIRE_VERSION_PLAIN;
	if (w->checked && w->info.version <= WIRE_VERSION && chunk.check != WIRE_CHECK_GOOD)
		w->info.bad = true;
}

static int wire_reader_open(struct reader *r)
{
	struct wire_reader *w = r->priv;

	wire_take_text(r);
	take_info(r);
	if (w->info.version > WIRE_VERSION)
		return err_set(&r->err, ERR_INPUT,
			       "%s: the recording has version %" PRIu64
			       ", but this kscope reads only versions up to %d",
			       r->in->path, w->info.version, WIRE_VERSION);
	if (!w->info.found || w->info.bad)
		reader_missing(r,
			       "%s: the first chunk, which describes the machine, is missing or "
			       "damaged",
			       r->in->path);
	w->traces.ahead.info = wire_trace_info(w->info.version, w->info.arch);
	w->spaces.guest_shift = w->traces.ahead.info.guest_shift;
	w->spaces.strings = r->frames->strings;
	w->described.on |= w->info.version > WIRE_VERSION_CHECKED;
	if (w->info.user_mode)
		w->spaces.program = w->info.nr_elfs ? w->info.elfs[0] : "program";
	return wire_place(r);
}

/* ---- records to events ---- */

static void add_idle(struct wire_reader *w)
{
	struct event *ev;

	if (w->idle_emitted)
		return;
	w->idle_emitted = true;
	ev = wire_add(&w->before, EVENT_SYMBOL);
	if (ev)
		ev->symbol = (struct event_symbol){
			.addr = IDLE_ADDRESS, .len = 16, .name = "[idle]", .type = 1
		};
	ev = w->described.on ? NULL : wire_add(&w->before, EVENT_COMM);
	if (ev)
		ev->comm.comm = "idle";
}

static uint64_t context_of(const struct sample_message *sample)
{
	return sample->level == WIRE_LEVEL_USER ? IP_USER : IP_KERNEL;
}

/*
 * The frames that were interrupted, in order; of what is not in order, nothing is left. The first of `user` frames is one of
 * them.
 */
static size_t list_interrupted(const struct sample_message *sample, uint32_t nr, uint64_t user,
			       struct interrupted_message *list)
{
	uint32_t first_user = user < nr ? nr - (uint32_t)user : 1; /* the pc is in the kernel */
	uint64_t last = 0;
	size_t n = 0;

	for (size_t i = 0; i < sample->nr_interrupted; i++) {
		const struct interrupted_message *interrupted = &sample->interrupted[i];

		if (interrupted->frame <= last || interrupted->frame >= nr)
			continue;
		if (user && last < first_user && interrupted->frame > first_user)
			list[n++] = (struct interrupted_message){ .frame = first_user };
		last = interrupted->frame;
		list[n++] = *interrupted;
	}
	if (user && last < first_user && first_user < nr)
		list[n++] = (struct interrupted_message){ .frame = first_user };
	return n;
}

/* A marker goes before each of them: it is a pc, not a return address. Returns the new number of ips. */
static uint32_t mark_interrupted(struct wire_reader *w, uint32_t nr, uint64_t user,
				 const struct interrupted_message *list, size_t n)
{
	uint32_t all = nr;

	for (size_t i = n; i-- > 0;) {
		uint64_t *at = w->ips + list[i].frame;

		memmove(at + 1, at, (all++ - list[i].frame) * sizeof(*at));
		*at = list[i].frame + user >= nr ? IP_USER : IP_KERNEL;
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i].link)
			w->links[w->nr_links++] =
				(struct link_word){ (uint32_t)(list[i].frame + i + 1),
						    list[i].link };
	}
	return all;
}

/* Sets w->ips to the frames of a sample, and w->links. Returns their number. */
static uint32_t frames_of(struct wire_reader *w, const struct sample_message *sample)
{
	uint64_t user = sample->level == WIRE_LEVEL_USER ? 0 : sample->user_frames;
	struct interrupted_message list[WIRE_INTERRUPTED_MAX + 1];
	uint32_t nr, kept;
	size_t all;

	wire_get_frames(sample->frames, sample->pc, w->ips, WIRE_CHAIN_MAX, &all);
	nr = (uint32_t)(all < WIRE_CHAIN_MAX ? all : WIRE_CHAIN_MAX);
	if (!nr)
		return 0;
	user = user > all - nr ? user - (all - nr)
			       : 0; /* the last frames may be beyond the limit */
	kept = bare_chain(w->ips, nr);
	user = user > nr - kept ? user - (nr - kept) : 0;
	user = user < kept ? user : kept;
	all = list_interrupted(sample, kept, user, list);
	return mark_interrupted(w, kept, sample->level == WIRE_LEVEL_USER ? kept : user, list, all);
}

/* Sets w->ips to the known part of the call chain. Returns the state to unwind the rest from. */
static const struct cpu_state *state_of(struct wire_reader *w, const struct sample_message *sample,
					uint32_t *nr)
{
	size_t nr_regs = wire_words(sample->registers, w->regs, WIRE_REGISTERS_MAX);
	bool is_64bit = !w->info.arch || strstr(w->info.arch, "64");

	GROW(w->ips, WIRE_CHAIN_MAX + WIRE_INTERRUPTED_MAX + 1, w->cap_ips);
	w->nr_links = 0;
	if (sample->link && w->described.on && !sample->idle)
		w->links[w->nr_links++] = (struct link_word){ 0, sample->link };
	*nr = w->described.on && !sample->idle ? frames_of(w, sample) : 0;
	if (*nr)
		return NULL;
	*nr = (uint32_t)wire_words(sample->chain, w->ips, WIRE_CHAIN_MAX);
	if (!*nr)
		w->ips[(*nr)++] = sample->idle ? IDLE_ADDRESS : sample->pc;
	*nr = bare_chain(w->ips, *nr);
	if (!nr_regs || sample->idle || *nr > 1)
		return NULL;
	w->state = (struct cpu_state){
		.abi = is_64bit ? 2 : 1,
		.mask = nr_regs == WIRE_REGISTERS_MAX ? UINT64_MAX : ((uint64_t)1 << nr_regs) - 1,
		.regs = w->regs,
		.whole = true,
		.stack = sample->stack.at,
		.stack_len = (uint64_t)(sample->stack.end - sample->stack.at),
		.outer_addr = sample->outer_address,
		.outer = sample->outer.at,
		.outer_len = (uint64_t)(sample->outer.end - sample->outer.at),
	};
	return &w->state;
}

static void fill_place(struct reader *r, const struct sample_message *sample, uint32_t cpu,
		       struct event *ev)
{
	struct wire_reader *w = r->priv;

	ev->time = wire_boot_time(&w->boot, sample->time);
	ev->cpu = cpu;
	if (w->described.on) {
		wire_described_kernel(r);
		wire_described_task(r, sample, ev);
		return;
	}
	ev->pid = sample->idle ? 0
			       : wire_space_pid(&w->spaces, sample->no_space ? 0 : sample->space,
						sample->level == WIRE_LEVEL_USER, &w->before);
	ev->tid = sample->task ? (uint32_t)sample->task : ev->pid;
}

static void fill_sample(struct reader *r, struct pb message, uint32_t cpu, struct event *ev)
{
	struct wire_reader *w = r->priv;
	struct sample_message sample;
	uint64_t period;

	wire_get_sample(message, &sample);
	if (sample.idle)
		add_idle(w);
	fill_place(r, &sample, cpu, ev);
	ev->kind = EVENT_SAMPLE;
	ev->sample.state = state_of(w, &sample, &ev->sample.nr);
	ev->sample.ips = w->ips;
	ev->sample.source = w->described.on ? wire_described_source(r, sample.event) : 1;
	period = w->described.on ? w->described.events[sample.event].period : w->info.period;
	ev->sample.weight = sample.weight ? sample.weight : period;
	ev->sample.weight += !ev->sample.weight;
	ev->sample.links = w->links;
	ev->sample.nr_links = w->nr_links;
	ev->sample.context = sample.idle ? IP_KERNEL : context_of(&sample);
}

static void fill_alloc(struct reader *r, const struct order_item *item, struct pb message,
		       uint32_t cpu, struct event *ev)
{
	static const enum alloc_op ops[] = {
		[WIRE_OP_NEW] = ALLOC_NEW,
		[WIRE_OP_RESIZE] = ALLOC_RESIZE,
		[WIRE_OP_FREE] = ALLOC_FREE,
	};
	struct wire_reader *w = r->priv;
	struct strtab *strings = r->frames->strings;
	struct sample_message at;
	struct alloc_message alloc;
	uint32_t name;

	wire_get_alloc(message, &alloc);
	wire_get_sample(alloc.at, &at);
	fill_place(r, &at, cpu, ev);
	name = str_intern(strings, (const char *)alloc.allocator.at,
			  (size_t)(alloc.allocator.end - alloc.allocator.at));
	ev->kind = EVENT_ALLOC;
	ev->alloc = (struct event_alloc){
		.op = ops[alloc.op],
		.allocator = str_text(strings, name),
		.ptr = alloc.pointer,
		.size = alloc.size,
		.offset = item->offset,
		.context = context_of(&at),
	};
	ev->alloc.state = state_of(w, &at, &ev->alloc.nr);
	ev->alloc.ips = w->ips;
}

static void fill_counter(struct reader *r, struct pb message, uint32_t cpu, struct event *ev)
{
	const struct wire_reader *w = r->priv;
	struct counter_message counter;

	wire_get_counter(message, &counter);
	ev->kind = EVENT_COUNTER;
	ev->time = wire_boot_time(&w->boot, counter.time);
	ev->cpu = cpu;
	ev->counter.source = wire_described_source(r, counter.event);
	ev->counter.boot = w->boots;
	ev->counter.value = counter.value;
}

/* Completes the event of a sample inside the trace. False: the sample is missing. */
static bool fill_check(struct reader *r, struct event *ev)
{
	struct wire_reader *w = r->priv;
	uint64_t time = ev->time;
	struct pb message;

	if (!wire_checks_take(&wire_cpu(w, ev->cpu)->checks, w->traces.place, &message)) {
		wire_damage(r, w->traces.place_offset, 1, 0,
			    "the sample that was taken at this place of the trace is missing");
		return false;
	}
	ev->sample = (struct event_sample){ 0 };
	fill_sample(r, message, ev->cpu, ev);
	ev->kind = EVENT_CHECK;
	ev->time = time;
	ev->sample.source = 0;
	ev->sample.weight = 0;
	return true;
}

static void report_late(struct reader *r)
{
	struct wire_reader *w = r->priv;
	char text[160];

	w->late = true;
	snprintf(text, sizeof(text),
		 "this trace is %" PRIu64 " us older than what came before it; the stacks of tasks "
		 "that moved to another cpu may be wrong",
		 (w->traces.late + 999) / 1000);
	wire_damage(r, w->traces.late_offset, 0, 0, text);
}

static bool same_process(const struct wire_cpu *cpu, const struct event_branch *branch)
{
	return cpu->pid && cpu->space == branch->space && cpu->user == (branch->context == IP_USER);
}

/* Takes the next event of the traces, or their damage. False: none is ready. */
static bool next_branch(struct reader *r, struct event *ev)
{
	struct wire_reader *w = r->priv;
	int ret = wire_merge_next(&w->traces, ev);
	struct wire_cpu *cpu;

	if (ret < 0)
		wire_damage(r, w->traces.wrong_offset, 0, w->traces.wrong_bytes, w->traces.wrong);
	if (ret <= 0)
		return ret < 0;
	if (w->traces.late && !w->late)
		report_late(r);
	if (ev->kind == EVENT_CHECK) {
		w->waiting = fill_check(r, ev);
		return true;
	}
	cpu = wire_cpu(w, ev->cpu);
	if (ev->kind == EVENT_BRANCH && !same_process(cpu, &ev->branch)) {
		cpu->space = ev->branch.space;
		cpu->user = ev->branch.context == IP_USER;
		cpu->pid = wire_space_pid(&w->spaces, cpu->space, cpu->user, &w->before);
	}
	ev->pid = ev->tid = cpu->pid;
	w->waiting = true;
	return true;
}

/* False: the record is no event itself. */
static bool fill(struct reader *r, const struct order_item *item, struct event *ev)
{
	struct wire_reader *w = r->priv;
	const struct wire_item *head = (const struct wire_item *)item->data;
	struct pb message = { (const uint8_t *)(head + 1),
			      (const uint8_t *)item->data + item->len };
	struct code_message code;

	switch (head->kind) {
	case WIRE_CHUNK_SAMPLE: fill_sample(r, message, head->cpu, ev); return true;
	case WIRE_CHUNK_ALLOC: fill_alloc(r, item, message, head->cpu, ev); return true;
	case WIRE_CHUNK_CODE:
		wire_get_code(message, &code);
		if (!w->described.on) /* else the target says what is mapped */
			wire_space_code(&w->spaces, &code, &w->before);
		return false;
	case WIRE_CHUNK_COUNTER:
		if (head->cpu == NO_CPU)
			return false;
		fill_counter(r, message, head->cpu, ev);
		return true;
	default: wire_describe(r, item, head->kind, message); return false;
	}
}

static bool take_before(struct wire_reader *w, struct event *ev)
{
	if (w->before.next < w->before.nr) {
		*ev = w->before.at[w->before.next++];
		return true;
	}
	w->before.nr = w->before.next = 0;
	return false;
}

/* The branches after the one that next() returned, of the same process. */
static size_t wire_reader_run(struct reader *r, struct event **events)
{
	struct wire_reader *w = r->priv;
	const struct wire_cpu *cpu;
	size_t max, nr = 0;

	if (!w->tracing)
		return 0;
	max = wire_merge_peek(&w->traces, WIRE_RUN, events);
	cpu = max ? wire_cpu(w, (*events)->cpu) : NULL;
	while (nr < max && same_process(cpu, &(*events)[nr].branch)) {
		(*events)[nr].pid = (*events)[nr].tid = cpu->pid;
		nr++;
	}
	wire_merge_take(&w->traces, nr);
	w->tracing = nr > 0;
	return nr;
}

static int wire_reader_next(struct reader *r, struct event *ev)
{
	struct wire_reader *w = r->priv;

	for (;;) {
		const struct order_item *item;

		if (take_before(w, ev))
			return 1;
		if (w->waiting) {
			w->waiting = false;
			*ev = w->event;
			return 1;
		}
		if (emit_preamble(r, ev))
			return 1;
		item = order_next(&w->order);
		if (item) {
			w->waiting = fill(r, item, ev);
		} else if (!next_branch(r, ev)) {
			if (w->finished)
				return 0;
			if (!wire_take(r))
				return READER_AGAIN;
		}
		if (w->waiting && !w->before.nr) {
			w->waiting = false;
			w->tracing = ev->kind == EVENT_BRANCH;
			return 1;
		}
		if (w->waiting)
			w->event = *ev;
	}
}

static void wire_reader_close(struct reader *r)
{
	struct wire_reader *w = r->priv;

	wire_place_release(w);
	order_release(&w->order);
	wire_spaces_release(&w->spaces);
	wire_described_release(&w->described);
	if (w->spaces.place)
		place_free(w->spaces.place);
	wire_info_release(&w->info);
	buf_release(&w->scratch);
	free(w->elfs);
	wire_merge_release(&w->traces);
	for (size_t i = 0; i < w->nr_cpus; i++)
		wire_checks_release(&w->cpus[i].checks);
	free(w->cpus);
	free(w->ips);
}

const struct reader_ops read_wire = {
	.name = "kscope",
	.about = "kscope's own: QEMU guests, gdb stubs, and samplers inside any kernel",
	.probe = wire_reader_probe,
	.header = true,
	.live = true,
	.ready = wire_begins,
	.options =
		OPTION_USES({ &event_name_table, offsetof(struct wire_reader, event_name) },
			    { &elf_table, OPTION_ELSEWHERE }, { &slide_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct wire_reader),
	.open = wire_reader_open,
	.next = wire_reader_next,
	.run = wire_reader_run,
	.close = wire_reader_close,
};
