// SPDX-License-Identifier: GPL-2.0-or-later
/* dump: events as text, one per line. See doc/dump.md. It does not look up symbols. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/text.h"
#include "format.h"
#include "model/world.h"

struct dump {
	struct buf line;
};

static void put_text(struct dump *d, const char *key, const char *text)
{
	buf_addc(&d->line, ' ');
	buf_adds(&d->line, key);
	buf_addc(&d->line, '=');
	text_quote(&d->line, text, strlen(text));
}

static void put_number(struct dump *d, const char *key, uint64_t value)
{
	buf_addc(&d->line, ' ');
	buf_adds(&d->line, key);
	buf_addc(&d->line, '=');
	buf_addu(&d->line, value);
}

static void put_hex(struct dump *d, const char *key, uint64_t value)
{
	buf_addc(&d->line, ' ');
	buf_adds(&d->line, key);
	buf_addc(&d->line, '=');
	buf_addx(&d->line, value);
}

static void put_head(struct dump *d, const struct event *ev, const char *kind)
{
	buf_clear(&d->line);
	buf_adds(&d->line, kind);
	if (ev->time != NO_TIME)
		buf_addf(&d->line, " time=%" PRIu64 ".%09" PRIu64, ev->time / 1000000000,
			 ev->time % 1000000000);
	if (ev->cpu != NO_CPU)
		put_number(d, "cpu", ev->cpu);
}

static void put_task(struct dump *d, const char *key, uint32_t pid, uint32_t tid)
{
	buf_addf(&d->line, " %s=%" PRIu32 "/%" PRIu32, key, pid, tid);
}

static void put_bytes(struct dump *d, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		buf_addc(&d->line, digits[bytes[i] >> 4]);
		buf_addc(&d->line, digits[bytes[i] & 15]);
	}
}

static void put_source(struct dump *d, const struct event_source *source)
{
	put_number(d, "id", source->id);
	if (source->name)
		put_text(d, "name", source->name);
	put_number(d, "type", source->type);
	put_hex(d, "config", source->config);
	if (source->period)
		put_number(d, source->freq ? "freq" : "period", source->period);
	if (source->unit)
		put_text(d, "unit", source->unit);
	if (source->late)
		buf_adds(&d->line, " late");
	if (source->branches)
		buf_adds(&d->line, " branches");
	if (source->branch_type)
		put_hex(d, "branch-type", source->branch_type);
	if (source->raw)
		buf_adds(&d->line, " raw");
	if (source->lacks & LACKS_CHAIN)
		buf_adds(&d->line, " no-chain");
	if (source->lacks & LACKS_TIME)
		buf_adds(&d->line, " no-time");
	if (source->lacks & LACKS_CPU)
		buf_adds(&d->line, " no-cpu");
	if (source->lacks & LACKS_THREADS)
		buf_adds(&d->line, " no-threads");
}

static void put_symbol(struct dump *d, const struct event_symbol *symbol)
{
	put_hex(d, "addr", symbol->addr);
	put_hex(d, "len", symbol->len);
	put_number(d, "type", symbol->type);
	if (symbol->user)
		buf_adds(&d->line, " user");
	if (symbol->gone)
		buf_adds(&d->line, " gone");
	if (symbol->binary)
		put_text(d, "binary", symbol->binary);
	put_text(d, "name", symbol->name);
}

static void put_switch(struct dump *d, const struct event_switch *sched)
{
	buf_adds(&d->line, sched->out ? " out" : " in");
	if (sched->preempted)
		buf_adds(&d->line, " preempted");
	if (sched->other_pid != NO_TASK)
		put_task(d, "other", sched->other_pid, sched->other_tid);
}

static void put_aux(struct dump *d, const struct event_aux *aux)
{
	put_text(d, "kind", aux->kind);
	put_hex(d, "offset", aux->offset);
	put_hex(d, "len", aux->len);
	if (aux->flags)
		put_hex(d, "flags", aux->flags);
	if (!aux->data)
		return;
	buf_adds(&d->line, " data=");
	put_bytes(d, aux->data, aux->len);
}

static void put_map(struct dump *d, const struct event_map *map)
{
	if (map->whole) {
		buf_adds(&d->line, " whole");
	} else {
		put_hex(d, "addr", map->addr);
		put_hex(d, "len", map->len);
		put_hex(d, "offset", map->offset);
		buf_addf(&d->line, " prot=%c%c%c", map->prot & PROT_READ ? 'r' : '-',
			 map->prot & PROT_WRITE ? 'w' : '-', map->prot & PROT_EXEC ? 'x' : '-');
	}
	if (map->kernel)
		buf_adds(&d->line, " kernel");
	if (map->foreign)
		buf_adds(&d->line, " foreign");
	if (map->as_linked)
		buf_adds(&d->line, " linked");
	if (map->build_id_len)
		buf_adds(&d->line, " build-id=");
	put_bytes(d, map->build_id, map->build_id_len);
	if (map->guest)
		buf_adds(&d->line, " guest");
	put_text(d, "path", map->path);
	if (map->anchor)
		put_text(d, "anchor", map->anchor);
	if (map->names)
		put_text(d, "names", map->names);
}

static void put_context(struct dump *d, uint64_t context)
{
	const char *name = ip_marker_name(context);

	if (name)
		buf_addf(&d->line, " %s", name);
	else
		buf_addf(&d->line, " marker-%" PRIu64, -context);
}

static void put_named(struct dump *d, const struct world *world, uint32_t handle)
{
	const struct frame *frame = &world->frames.all[handle];

	buf_addc(&d->line, ' ');
	text_quote(&d->line, str_text(world->strings, (uint32_t)frame->addr),
		   str_len(world->strings, (uint32_t)frame->addr));
	if (!frame->image)
		return;
	buf_addc(&d->line, '@');
	text_quote(&d->line, str_text(world->strings, frame->image),
		   str_len(world->strings, frame->image));
}

static void put_chain(struct dump *d, const struct world *world, uint64_t context,
		      const uint64_t *ips, uint32_t nr)
{
	bool named = context == IP_NAMED;

	buf_adds(&d->line, " :");
	if (!nr || !ip_is_marker(ips[0]))
		put_context(d, context);
	for (uint32_t i = 0; i < nr; i++) {
		if (ips[i] == IP_NAMED && !named) {
			buf_addf(&d->line, " marker-%" PRIu64, -IP_NAMED);
		} else if (ip_is_marker(ips[i])) {
			context = ips[i];
			put_context(d, context);
		} else if (context == IP_NAMED) {
			put_named(d, world, (uint32_t)ips[i]);
		} else {
			buf_addc(&d->line, ' ');
			buf_addx(&d->line, ips[i]);
		}
	}
}

/* Damaged files may have a context without a name. */
static const char *context_name(uint64_t context)
{
	const char *name = ip_marker_name(context);

	return name ? name : "user";
}

static void put_sample(struct dump *d, const struct world *world, const struct event *ev)
{
	const struct event_sample *sample = &ev->sample;

	put_number(d, "source", sample->source);
	put_number(d, "weight", sample->weight);
	if (sample->count > 1)
		put_number(d, "count", sample->count);
	if (sample->pc) {
		put_hex(d, "pc", sample->pc);
		buf_adds(&d->line, " in=");
		buf_adds(&d->line, context_name(sample->context));
	}
	if (sample->no_chain)
		buf_adds(&d->line, " no-chain");
	if (sample->at_calls)
		buf_adds(&d->line, " at-calls");
	if (ev->kind == EVENT_CHAIN)
		buf_adds(&d->line, " split");
	if (sample->raw) {
		buf_adds(&d->line, " raw=");
		put_bytes(d, sample->raw, sample->raw_len);
	}
	if (sample->branches) {
		buf_adds(&d->line, " [");
		for (uint32_t i = 0; i < sample->nr_branches; i++)
			buf_addf(&d->line, " 0x%" PRIx64 "/0x%" PRIx64 "/0x%" PRIx64,
				 sample->branches[i].from, sample->branches[i].to,
				 sample->branches[i].flags);
		buf_adds(&d->line, " ]");
	}
	put_chain(d, world, sample->context, sample->ips, sample->nr);
}

static void put_alloc(struct dump *d, const struct world *world, const struct event_alloc *alloc)
{
	static const char *const ops[] = { "new", "resize", "free" };

	buf_addf(&d->line, " %s", ops[alloc->op]);
	put_text(d, "by", alloc->allocator);
	put_hex(d, "ptr", alloc->ptr);
	put_number(d, "size", alloc->size);
	put_number(d, "at", alloc->offset);
	put_chain(d, world, alloc->context, alloc->ips, alloc->nr);
}

static void put_call(struct dump *d, const struct event_call *call)
{
	buf_adds(&d->line, call->leave ? " leave" : " enter");
	put_hex(d, "function", call->function);
	if (call->caller)
		put_hex(d, "caller", call->caller);
	put_context(d, call->context);
}

static void put_branch(struct dump *d, const struct event_branch *branch)
{
	static const char *const kinds[] = { " jump",  " call",	 " return", " enter",
					     " leave", " begin", " end" };

	buf_adds(&d->line, kinds[branch->kind]);
	if (branch->from)
		put_hex(d, "from", branch->from);
	if (branch->to)
		put_hex(d, "to", branch->to);
	if (branch->next)
		put_hex(d, "next", branch->next);
	if (branch->sp)
		put_hex(d, "sp", branch->sp);
	if (branch->left)
		put_hex(d, "left", branch->left);
	if (branch->taken)
		put_hex(d, "taken", branch->taken);
	if (branch->after)
		put_hex(d, "after", branch->after);
	if (branch->has_moved)
		put_number(d, branch->moved > 0 ? "up" : "down",
			   (uint64_t)(branch->moved > 0 ? branch->moved : -(int64_t)branch->moved));
	if (branch->pushed)
		put_number(d, "pushed", branch->pushed);
	if (branch->space)
		put_hex(d, "space", branch->space);
	if (branch->guest)
		put_number(d, "guest", branch->guest);
	if (branch->over)
		buf_adds(&d->line, " over");
	if (branch->by_thread)
		buf_adds(&d->line, " by-thread");
	if (branch->direct)
		buf_adds(&d->line, " direct");
	put_number(d, "instructions", branch->instructions);
	if (branch->cycles)
		put_number(d, "cycles", branch->cycles);
	put_context(d, branch->context);
}

static void put_mask(struct dump *d, const struct event_mask *mask)
{
	static const char *const states[] = { " unknown", " on", " off" };

	buf_adds(&d->line, states[mask->interrupts]);
	put_number(d, "instructions", mask->instructions);
	put_context(d, mask->context);
}

static void put_note(struct dump *d, const struct event_note *note)
{
	buf_addf(&d->line, " %s", note_names[note->kind]);
	put_hex(d, "value", note->value);
	if (note->address)
		put_hex(d, "at", note->address);
	put_number(d, "instructions", note->instructions);
	if (note->cycles)
		put_number(d, "cycles", note->cycles);
	put_context(d, note->context);
}

static int dump_open(struct writer *w)
{
	out_puts(w->out, "kscope-dump 1\n");
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	return 0;
}

static int dump_put(struct writer *w, const struct event *ev)
{
	struct dump *d = w->priv;

	put_head(d, ev, event_names[ev->kind]);
	if (ev->pid != NO_TASK)
		put_task(d, "task", ev->pid, ev->tid);
	switch (ev->kind) {
	case EVENT_META:
		put_text(d, "key", ev->meta.key);
		put_text(d, "value", ev->meta.value);
		break;
	case EVENT_SOURCE: put_source(d, &ev->source); break;
	case EVENT_COMM:
		put_text(d, "name", ev->comm.comm);
		if (ev->comm.exec)
			buf_adds(&d->line, " exec");
		break;
	case EVENT_FORK:
	case EVENT_EXIT:
		if (ev->kind == EVENT_FORK || ev->fork.parent_pid)
			put_task(d, "parent", ev->fork.parent_pid, ev->fork.parent_tid);
		if (ev->fork.fresh)
			buf_adds(&d->line, " fresh");
		break;
	case EVENT_MAP: put_map(d, &ev->map); break;
	case EVENT_SAMPLE:
	case EVENT_CHAIN:
		put_sample(d, w->world, ev);
		written_sample(&w->written, &ev->sample);
		break;
	case EVENT_CHECK:
		put_chain(d, w->world, ev->sample.context, ev->sample.ips, ev->sample.nr);
		break;
	case EVENT_LOST:
		put_number(d, "count", ev->lost.count);
		put_number(d, "bytes", ev->lost.bytes);
		if (ev->lost.damage)
			buf_adds(&d->line, " damage");
		break;
	case EVENT_ALLOC: put_alloc(d, w->world, &ev->alloc); break;
	case EVENT_CALL: put_call(d, &ev->call); break;
	case EVENT_BRANCH: put_branch(d, &ev->branch); break;
	case EVENT_MASK: put_mask(d, &ev->mask); break;
	case EVENT_NOTE: put_note(d, &ev->note); break;
	case EVENT_COUNTER:
		put_number(d, "source", ev->counter.source);
		put_number(d, "value", ev->counter.value);
		break;
	case EVENT_SYMBOL: put_symbol(d, &ev->symbol); break;
	case EVENT_SWITCH: put_switch(d, &ev->sched); break;
	case EVENT_AUX: put_aux(d, &ev->aux); break;
	default: break;
	}
	buf_addc(&d->line, '\n');
	out_write(w->out, d->line.data, d->line.len);
	return 0;
}

static void dump_close(struct writer *w)
{
	buf_release(&((struct dump *)w->priv)->line);
}

const struct writer_ops write_dump = {
	.name = "dump",
	.about = "events as text, one per line",
	.extension = ".dump",
	.needs = WRITER_TEXT,
	.takes = EVENT_ALL,
	.priv_size = sizeof(struct dump),
	.open = dump_open,
	.put = dump_put,
	.close = dump_close,
};
