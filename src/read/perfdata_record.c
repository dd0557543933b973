// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_record: the kernel's records other than samples, as events. */
#include <inttypes.h>
#include <sys/mman.h>

#include "read/perfdata.h"
#include "read/perfdata_pt.h"

static uint64_t u64_at(const struct perfdata *p, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return p->swap ? __builtin_bswap64(value) : value;
}

static uint32_t u32_at(const struct perfdata *p, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return p->swap ? __builtin_bswap32(value) : value;
}

/* The field at `back` bytes before the end. NULL if the record is too short for it. */
static const uint8_t *from_end(const struct record *rec, uint32_t back)
{
	return back && back + sizeof(struct perf_record) <= rec->size ? rec->data + rec->size - back
								      : NULL;
}

const struct attr *record_attr(const struct perfdata *p, const struct record *rec)
{
	const struct attr *first = p->attrs;
	const struct known_id *known;
	const uint8_t *at = NULL;
	uint64_t id;

	if (p->nr_attrs <= 1)
		return p->nr_attrs ? first : NULL;
	if (rec->type != PERF_RECORD_SAMPLE)
		at = from_end(rec, first->back_id);
	else if (first->sample_id && first->sample_id + 8 <= rec->size)
		at = rec->data + first->sample_id;
	id = at ? u64_at(p, at) : 0;
	if (!id) /* synthesized by perf */
		return first;
	known = header_id(p, id);
	return known ? &p->attrs[known->attr] : NULL;
}

uint64_t record_time(const struct perfdata *p, const struct record *rec)
{
	const struct attr *attr = record_attr(p, rec);
	const uint8_t *at = NULL;

	if (!attr)
		return NO_TIME;
	if (rec->type != PERF_RECORD_SAMPLE)
		at = from_end(rec, attr->back_time);
	else if (attr->sample_time && attr->sample_time + 8u <= rec->size)
		at = rec->data + attr->sample_time;
	return at ? u64_at(p, at) : NO_TIME;
}

/* Takes the trailer that sample_id_all adds, and ends the cursor before it. */
static void take_trailer(const struct perfdata *p, const struct record *rec, struct cursor *c,
			 struct event *ev)
{
	const struct attr *attr = record_attr(p, rec);
	const uint8_t *at;

	if (!attr)
		return;
	at = from_end(rec, attr->back_time);
	if (at)
		ev->time = u64_at(p, at);
	/* Synthesized before the recording began. */
	if (!ev->time)
		ev->time = NO_TIME;
	at = from_end(rec, attr->back_cpu);
	if (at && ev->time != NO_TIME)
		ev->cpu = u32_at(p, at);
	at = from_end(rec, attr->back_task);
	if (at) {
		ev->pid = u32_at(p, at);
		ev->tid = u32_at(p, at + 4);
	}
	at = from_end(rec, attr->back_all);
	if (at)
		c->end = at;
}

void record_trailer(const struct perfdata *p, const struct record *rec, struct event *ev)
{
	struct cursor c = record_body(p, rec);

	take_trailer(p, rec, &c, ev);
}

/*
 * The rest of the record as a string. toperf leaves too little room for the trailer of
 * sample_id_all, so like perf, accept a string that ends anywhere inside the record.
 */
static char *take_text(struct perfdata *p, const struct record *rec, struct cursor *c)
{
	const uint8_t *end = rec->data + rec->size;
	const uint8_t *null = memchr(c->at, '\0', (size_t)(end - c->at));
	size_t len = (size_t)((null ? null : c->end) - c->at);

	buf_clear(&p->text);
	buf_add(&p->text, c->at, len);
	return p->text.data;
}

static void take_task(struct cursor *c, struct event *ev)
{
	ev->pid = cursor_u32(c);
	ev->tid = cursor_u32(c);
}

static void comm_event(struct perfdata *p, const struct record *rec, struct cursor *c,
		       struct event *ev)
{
	take_task(c, ev);
	ev->kind = EVENT_COMM;
	ev->comm.comm = take_text(p, rec, c);
	ev->comm.exec = rec->misc & PERF_MISC_COMM_EXEC;
}

static void task_event(const struct record *rec, struct cursor *c, struct event *ev)
{
	uint64_t time;

	ev->pid = cursor_u32(c);
	ev->fork.parent_pid = cursor_u32(c);
	ev->tid = cursor_u32(c);
	ev->fork.parent_tid = cursor_u32(c);
	time = cursor_u64(c);
	if (time && ev->time == NO_TIME)
		ev->time = time;
	ev->kind = rec->type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT;
	ev->fork.fresh = ev->kind == EVENT_FORK && rec->misc & PERF_MISC_FORK_EXEC;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/*
 * perf names the kernel itself [kernel.kallsyms], followed by the name of a symbol; pgoff is then
 * the address of that symbol. Everything else is a module.
 */
static void kernel_map(struct perfdata *p, struct event_map *map, char *path)
{
	bool core = starts(path, "[kernel.kallsyms]") || starts(path, "[guest.kernel.kallsyms");
	char *close = strchr(path, ']');

	map->kernel = true;
	map->as_linked = true;
	if (!core) {
		map->anchor = "";
		map->offset = map->addr;
		return;
	}
	map->names = p->kallsyms;
	if (!close || !close[1] || !map->offset) {
		if (close)
			close[1] = '\0'; /* the symbol of no address, as with kptr_restrict */
		map->offset = 0;
		return;
	}
	/* Keep both in one buffer: move the symbol up to terminate the path. */
	buf_addc(&p->text, '\0');
	close = strchr(p->text.data, ']');
	memmove(close + 2, close + 1, strlen(close + 1) + 1);
	close[1] = '\0';
	map->path = p->text.data;
	map->anchor = close + 2;
}

static void find_build_id(struct perfdata *p, struct event_map *map)
{
	const struct build_id *id = header_build_id(p, map->path);

	if (!id && map->kernel && starts(map->path, "[kernel.kallsyms]"))
		id = &p->kernel_build_id;
	if (!id || map->build_id_len)
		return;
	map->build_id = id->bytes;
	map->build_id_len = id->len;
}

static void map_event(struct perfdata *p, const struct record *rec, struct cursor *c,
		      struct event *ev)
{
	struct event_map *map = &ev->map;
	unsigned mode = rec->misc & PERF_MISC_CPUMODE;
	const uint8_t *id = NULL;
	char *path;

	take_task(c, ev);
	ev->kind = EVENT_MAP;
	map->addr = cursor_u64(c);
	map->len = cursor_u64(c);
	map->offset = cursor_u64(c);
	map->prot = rec->misc & PERF_MISC_MMAP_DATA ? PROT_READ : PROT_READ | PROT_EXEC;
	if (rec->type == PERF_RECORD_MMAP2) {
		id = cursor_bytes(c, 24);
		map->prot = cursor_u32(c) & (PROT_READ | PROT_WRITE | PROT_EXEC);
		cursor_u32(c); /* flags */
	}
	if (id && rec->misc & PERF_MISC_MMAP_BUILD_ID && id[0] <= 20) {
		map->build_id = id + 4;
		map->build_id_len = id[0];
	}
	path = take_text(p, rec, c);
	map->path = path;
	map->guest = mode == PERF_MISC_GUEST_KERNEL || mode == PERF_MISC_GUEST_USER;
	if (mode == PERF_MISC_KERNEL || mode == PERF_MISC_GUEST_KERNEL)
		kernel_map(p, map, path);
	find_build_id(p, map);
}

static void lost_event(const struct record *rec, struct cursor *c, struct event *ev)
{
	ev->pid = ev->tid = NO_TASK;
	ev->kind = EVENT_LOST;
	if (rec->type == PERF_RECORD_LOST)
		cursor_u64(c); /* id */
	ev->lost = (struct event_lost){ .count = cursor_u64(c) };
}

static void switch_event(const struct record *rec, struct cursor *c, struct event *ev)
{
	ev->kind = EVENT_SWITCH;
	ev->sched = (struct event_switch){
		.out = rec->misc & PERF_MISC_SWITCH_OUT,
		.preempted = rec->misc & PERF_MISC_SWITCH_OUT &&
			     rec->misc & PERF_MISC_SWITCH_OUT_PREEMPT,
		.other_pid = NO_TASK,
		.other_tid = NO_TASK,
	};
	if (rec->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		ev->sched.other_pid = cursor_u32(c);
		ev->sched.other_tid = cursor_u32(c);
	}
}

static void symbol_event(struct perfdata *p, const struct record *rec, struct cursor *c,
			 struct event *ev)
{
	ev->pid = ev->tid = NO_TASK;
	ev->kind = EVENT_SYMBOL;
	ev->symbol.addr = cursor_u64(c);
	ev->symbol.len = cursor_u32(c);
	ev->symbol.type = cursor_u16(c);
	ev->symbol.gone = cursor_u16(c) & PERF_KSYMBOL_UNREGISTER;
	ev->symbol.name = take_text(p, rec, c);
}

static void aux_event(const struct perfdata *p, struct cursor *c, struct event *ev)
{
	ev->kind = EVENT_AUX;
	ev->aux.kind = p->aux_kind ? p->aux_kind : "unknown";
	ev->aux.offset = cursor_u64(c);
	ev->aux.len = cursor_u64(c);
	ev->aux.flags = cursor_u64(c);
}

const uint8_t *record_poke(struct cursor *c, struct ipt_poke *poke)
{
	*poke = (struct ipt_poke){ .address = cursor_u64(c) };
	poke->old_len = cursor_u16(c);
	poke->new_len = cursor_u16(c);
	return cursor_bytes(c, (uint64_t)poke->old_len + poke->new_len);
}

int record_event(struct reader *r, const struct record *rec, struct event *ev)
{
	struct perfdata *p = r->priv;
	struct cursor c = record_body(p, rec);
	struct event blank = *ev;
	struct ipt_poke poke;

	take_trailer(p, rec, &c, ev);
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: map_event(p, rec, &c, ev); break;
	case PERF_RECORD_COMM: comm_event(p, rec, &c, ev); break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: task_event(rec, &c, ev); break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES: lost_event(rec, &c, ev); break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: switch_event(rec, &c, ev); break;
	case PERF_RECORD_KSYMBOL: symbol_event(p, rec, &c, ev); break;
	case PERF_RECORD_AUX: aux_event(p, &c, ev); break;
	case PERF_RECORD_TEXT_POKE: /* only the first reading uses it */
		*ev = blank;
		if (record_poke(&c, &poke))
			return 0;
		break;
	case PERF_RECORD_CALLCHAIN_DEFERRED:
		*ev = blank;
		if (sample_deferred(p, rec))
			return 0;
		c.bad = true;
		break;
	default: *ev = blank; return 0;
	}
	if (!c.bad)
		return 1;
	*ev = blank;
	return reader_damage(r, ev, rec->offset, 0, rec->size,
			     "record of type %" PRIu32 " is too short", rec->type);
}
