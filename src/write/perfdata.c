// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata: a perf.data file that stock perf reads without a warning. Records are written as they
 * come. Space for the attributes is reserved before them: some readers cannot seek back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/source.h"
#include "write/perfdata.h"

#define ATTRS_RESERVED 64 /* with more sources the attributes follow the data */
#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD)
#define RECORD_MAX 65528 /* the size field has 16 bits, and records are a multiple of 8 */

#define ROUND 65536
#define KERNEL_NAME "[kernel.kallsyms]"

static const uint8_t zeros[8];

/* A string in a record: NUL-terminated and padded to a multiple of 8. */
static void put_padded(struct buf *buf, const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	buf_add(buf, text, len);
	buf_add(buf, zeros, 8 - len % 8);
}

static void begin(struct perfdata *p, uint32_t type, uint16_t misc)
{
	struct perf_record head = { .type = htole32(type), .misc = htole16(misc) };

	buf_clear(&p->record);
	buf_add(&p->record, &head, sizeof(head));
}

static void end(struct writer *w)
{
	struct perfdata *p = w->priv;
	uint16_t size = htole16((uint16_t)p->record.len);

	memcpy(p->record.data + offsetof(struct perf_record, size), &size, sizeof(size));
	out_write(w->out, p->record.data, p->record.len);
}

/* The fields that samples of a source lack. Those of source 1 are fixed by the first record. */
static unsigned lacks_of(struct perfdata *p, const struct world *world, uint32_t source)
{
	if (!p->started) {
		p->started = true;
		p->lacks = world->nr_sources > 1 ? world->sources[1].lacks : 0;
	}
	return source == 1 || source >= world->nr_sources ? p->lacks : world->sources[source].lacks;
}

/* Ends a record that is not a sample: adds the trailer of sample_id_all. */
static void end_with_id(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	unsigned lacks = lacks_of(p, w->world, 1);
	/* The task that caused the event; none for events from before the recording. */
	bool forks = ev->kind == EVENT_FORK, none = ev->time == NO_TIME || ev->pid == NO_TASK;

	put_u32(&p->record, none ? 0 : forks ? ev->fork.parent_pid : ev->pid);
	put_u32(&p->record, none ? 0 : forks ? ev->fork.parent_tid : ev->tid);
	if (!(lacks & LACKS_TIME))
		put_u64(&p->record, ev->time == NO_TIME ? 0 : ev->time);
	if (!(lacks & LACKS_CPU))
		put_u64(&p->record, ev->cpu == NO_CPU ? 0 : ev->cpu); /* with a reserved word */
	put_u64(&p->record, 1); /* id of the first attribute */
	end(w);
}

static void see(struct perfdata *p, const struct event *ev)
{
	if (ev->cpu != NO_CPU && ev->cpu < UINT32_MAX / 2 && ev->cpu >= p->nr_cpus)
		p->nr_cpus = ev->cpu + 1;
	if (ev->time == NO_TIME)
		return;
	if (ev->time < p->first_time)
		p->first_time = ev->time;
	if (ev->time > p->last_time)
		p->last_time = ev->time;
}

static void put_comm(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;

	begin(p, PERF_RECORD_COMM, ev->comm.exec ? PERF_MISC_COMM_EXEC : 0);
	put_u32(&p->record, ev->pid);
	put_u32(&p->record, ev->tid);
	put_padded(&p->record, ev->comm.comm, RECORD_MAX / 2);
	end_with_id(w, ev);
}

static void put_task(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	bool fork = ev->kind == EVENT_FORK, parent = fork || ev->fork.parent_pid;

	begin(p, fork ? PERF_RECORD_FORK : PERF_RECORD_EXIT,
	      fork && ev->fork.fresh ? PERF_MISC_FORK_EXEC : 0);
	put_u32(&p->record, ev->pid);
	put_u32(&p->record, parent ? ev->fork.parent_pid : ev->pid);
	put_u32(&p->record, ev->tid);
	put_u32(&p->record, parent ? ev->fork.parent_tid : ev->tid);
	put_u64(&p->record, ev->time == NO_TIME ? 0 : ev->time);
	end_with_id(w, ev);
}

static uint32_t mapped_image(struct writer *w, const struct event_map *map)
{
	struct perfdata *p = w->priv;
	struct world *world = w->world;
	uint32_t handle = image_intern(&world->images, map->path, map->build_id, map->build_id_len,
				       map->as_linked, map->kernel);

	*hash_at(&p->mapped, (struct hash_key){ handle, 0 }) = 1;
	/*
	 * Look for the binary now if perf would not find it by this path, or if it is of another
	 * machine, whose data has no build ids: perf's cache needs only those.
	 */
	if (map->foreign || map->path[0] != '/' || map->given || world->images.where->build_dir ||
	    (map->kernel && !map->anchor))
		image_symfile(&world->images, handle);
	return handle;
}

const char *perfout_filename(const struct writer *w, uint32_t handle)
{
	const struct perfdata *p = w->priv;
	const struct world *world = w->world;
	const struct image *image = &world->images.all[handle];
	const char *path = str_text(world->strings, image->path);
	bool bare = path[0] != '/' && !image_is_pseudo(path) && !image->kernel && !image->foreign;

	/* A kernel whose binary is known: perf knows the kernel only under this name. */
	if (handle == p->placed_kernel ||
	    (image->kernel && image->as_linked && !image_is_pseudo(path) && !image->moved))
		return KERNEL_NAME;
	return bare && image->file ? image->file : path;
}

/*
 * A kernel that runs where it was linked, or at a known distance from there: map the code at the addresses of the ELF's program
 * headers, or map all addresses if there is no ELF. (Do not use the size of the file: the code may
 * be linked far above the base, and perf finds no symbols outside the map.) perf reads the text
 * after [kernel.kallsyms] as a symbol and pgoff as its address, and moves the kernel by the
 * difference to that symbol in the ELF or kallsyms. Without a symbol perf warns that addresses are
 * restricted; with one that the kernel lacks it finds no symbols at all. So use a symbol of this
 * kernel: then --vmlinux, --kallsyms, annotate and the build-id cache alone all work.
 */
static struct event_map kernel_map(struct writer *w, uint32_t handle, const struct event_map *from,
				   char *name, size_t size)
{
	struct images *images = &w->world->images;
	struct event_map map = { .len = UINT64_MAX };
	const char *symbol = "";
	uint64_t slide = 0;

	if (!from->as_linked)
		slide = from->addr - image_vaddr(images, handle, from->offset);
	if (image_extent(images, handle, &map.addr, &map.len))
		map.addr += slide;
	if (image_landmark(images, handle, &symbol, &map.offset))
		map.offset += slide;
	snprintf(name, size, KERNEL_NAME "%s", symbol);
	map.path = name;
	return map;
}

/* Without another map of the kernel, its first binary at a known place is the kernel itself. */
static bool is_placed_kernel(const struct perfdata *p, const struct event_map *map)
{
	return map->kernel && !map->guest && !p->kernel_mapped && !map->as_linked &&
	       !image_is_pseudo(map->path);
}

static uint16_t map_mode(const struct event_map *map)
{
	if (map->guest)
		return map->kernel ? PERF_MISC_GUEST_KERNEL : PERF_MISC_GUEST_USER;
	return map->kernel ? PERF_MISC_KERNEL : PERF_MISC_USER;
}

/* A relocated Linux kernel, or a module. perf has the symbols; pgoff is the address of one. */
static void put_moved_map(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	const struct event_map *map = &ev->map;
	bool module = !*map->anchor;
	char *name = xasprintf("%s%s", map->path, map->anchor);

	mapped_image(w, map);
	begin(p, PERF_RECORD_MMAP, map_mode(map));
	put_u32(&p->record, UINT32_MAX);
	put_u32(&p->record, 0);
	put_u64(&p->record, map->addr);
	put_u64(&p->record, map->len);
	put_u64(&p->record, module ? 0 : map->offset);
	put_padded(&p->record, name, 4095);
	end_with_id(w, ev);
	free(name);
}

static void put_map(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	const struct event_map *map = &ev->map;
	uint32_t handle = mapped_image(w, map);
	const struct image *image = &w->world->images.all[handle];
	uint16_t misc = map_mode(map);
	uint8_t id[24] = { image->build_id_len };
	struct event_map place = *map;
	char name[200];

	if (map->anchor) {
		p->kernel_mapped |= map->kernel;
		put_moved_map(w, ev);
		return;
	}
	if (is_placed_kernel(p, map))
		p->placed_kernel = handle;
	place.path = perfout_filename(w, handle);
	if (map->kernel && !strcmp(place.path, KERNEL_NAME))
		place = kernel_map(w, handle, map, name, sizeof(name));
	p->kernel_mapped |= map->kernel;
	if (image->build_id_len)
		misc |= PERF_MISC_MMAP_BUILD_ID;
	begin(p, PERF_RECORD_MMAP2, misc);
	put_u32(&p->record, map->kernel ? UINT32_MAX : ev->pid);
	put_u32(&p->record, map->kernel ? 0 : ev->tid);
	put_u64(&p->record, place.addr);
	put_u64(&p->record, place.len);
	put_u64(&p->record, place.offset);
	memcpy(id + 4, image->build_id, image->build_id_len);
	buf_add(&p->record, id, sizeof(id)); /* or device, inode and generation: all 0 */
	put_u32(&p->record, map->prot);
	put_u32(&p->record, 2); /* MAP_PRIVATE */
	put_padded(&p->record, place.path, 4095);
	end_with_id(w, ev);
}

static void put_lost(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;

	if (!ev->lost.count && !ev->lost.bytes)
		return;
	begin(p, PERF_RECORD_LOST, 0);
	put_u64(&p->record, 1);
	put_u64(&p->record, ev->lost.count ? ev->lost.count : 1);
	end_with_id(w, ev);
}

static void put_symbol(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	const struct event_symbol *symbol = &ev->symbol;
	uint16_t words[] = { htole16(symbol->type),
			     htole16(symbol->gone ? PERF_KSYMBOL_UNREGISTER : 0) };

	if (symbol->user) /* perf has no record for it */
		return;
	p->kernel_seen = true;
	begin(p, PERF_RECORD_KSYMBOL, 0);
	put_u64(&p->record, symbol->addr);
	put_u32(&p->record, symbol->len > UINT32_MAX ? UINT32_MAX : (uint32_t)symbol->len);
	buf_add(&p->record, words, sizeof(words));
	put_padded(&p->record, symbol->name, 511);
	end_with_id(w, ev);
}

static void put_switch(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	const struct event_switch *sched = &ev->sched;
	bool wide = sched->other_pid != NO_TASK;
	uint16_t misc = sched->out ? PERF_MISC_SWITCH_OUT : 0;

	if (sched->preempted)
		misc |= PERF_MISC_SWITCH_OUT_PREEMPT;
	p->switches = true;
	begin(p, wide ? PERF_RECORD_SWITCH_CPU_WIDE : PERF_RECORD_SWITCH, misc);
	if (wide) {
		put_u32(&p->record, sched->other_pid);
		put_u32(&p->record, sched->other_tid);
	}
	end_with_id(w, ev);
}

static uint16_t mode_of(uint64_t context)
{
	switch (context) {
	case IP_KERNEL: return PERF_MISC_KERNEL;
	case IP_GUEST_KERNEL: return PERF_MISC_GUEST_KERNEL;
	case IP_GUEST_USER: return PERF_MISC_GUEST_USER;
	}
	return PERF_MISC_USER;
}

static uint64_t pc_of(const struct event_sample *sample)
{
	if (sample->pc)
		return sample->pc;
	for (uint32_t i = 0; i < sample->nr; i++) {
		if (!ip_is_marker(sample->ips[i]))
			return sample->ips[i];
	}
	return 0;
}

/*
 * perf 6.1 tries to unwind further from an arm64 call chain, cannot do that on another machine, and
 * warns. It leaves samples with a branch stack alone, even with an empty one.
 */
static bool has_branches(struct writer *w, uint32_t source)
{
	struct perfdata *p = w->priv;

	if (!p->arm_settled) {
		const char *arch = world_arch(w->world);

		p->arm = !*arch || !strcmp(arch, "aarch64"); /* not known yet: assume so */
		p->arm_settled = true;
	}
	return p->arm | (source < w->world->nr_sources && w->world->sources[source].branches);
}

static uint8_t *add_bytes(uint8_t *to, const void *data, size_t len)
{
	if (len)
		memcpy(to, data, len);
	return to + len;
}

static uint8_t *add_u32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	return add_bytes(to, &value, sizeof(value));
}

static uint8_t *add_u64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	return add_bytes(to, &value, sizeof(value));
}

static uint8_t *add_words(uint8_t *to, const uint64_t *words, size_t nr)
{
	if (BYTE_ORDER == LITTLE_ENDIAN)
		return add_bytes(to, words, nr * sizeof(*words));
	for (size_t i = 0; i < nr; i++)
		to = add_u64(to, words[i]);
	return to;
}

/* What is in a sample before its call chain. */
static uint8_t *add_fixed(uint8_t *to, const struct writer *w, const struct event *ev,
			  unsigned lacks)
{
	const struct event_sample *sample = &ev->sample;
	/* If the data has tasks, a sample without one is of an exiting task: -1 to perf. */
	uint32_t none = ev->pid != NO_TASK || w->world->nr_tasks > 1 ? NO_TASK : 0;

	to = add_u64(to, sample->source);
	to = add_u64(to, pc_of(sample));
	to = add_u32(to, ev->pid == NO_TASK ? none : ev->pid);
	to = add_u32(to, ev->tid == NO_TASK ? none : ev->tid);
	if (!(lacks & LACKS_TIME))
		to = add_u64(to, ev->time == NO_TIME ? 0 : ev->time);
	if (!(lacks & LACKS_CPU))
		to = add_u64(to, ev->cpu == NO_CPU ? 0 : ev->cpu); /* with a reserved word */
	return add_u64(to, sample->weight);
}

static size_t fixed_size(unsigned lacks)
{
	return 8 * (4 + !(lacks & LACKS_TIME) + !(lacks & LACKS_CPU));
}

/*
 * The first nr words of a chain. Frames that kscope unwound are written as perf prints its own:
 * with the address of the call instead of the return address. The first of a context is a pc.
 */
static uint8_t *add_chain(uint8_t *to, const struct event_sample *sample, uint32_t nr)
{
	uint32_t found = sample->nr_unwound < nr ? sample->nr_unwound : nr;

	to = add_words(to, sample->ips, nr - found);
	for (uint32_t i = nr - found; i < nr; i++) {
		bool call =
			i > 0 && !ip_is_marker(sample->ips[i]) && !ip_is_marker(sample->ips[i - 1]);

		to = add_u64(to, sample->ips[i] - call);
	}
	return to;
}

/*
 * perf sorts records within two rounds. Without FINISHED_ROUND records it would keep the whole file
 * in memory.
 */
static void count_round(struct writer *w)
{
	struct perfdata *p = w->priv;

	if (++p->in_round < ROUND)
		return;
	p->in_round = 0;
	begin(p, PERF_RECORD_FINISHED_ROUND, 0);
	end(w);
}

static bool has_raw(const struct world *world, uint32_t source)
{
	return source < world->nr_sources && world->sources[source].raw;
}

/* The size of raw data with its length field: a multiple of 8. */
static uint32_t raw_room(const struct event_sample *sample)
{
	uint32_t len = sample->raw_len < RECORD_MAX / 2 ? sample->raw_len : RECORD_MAX / 2;

	return (4 + len + 7) & ~7U;
}

static uint8_t *add_raw(uint8_t *to, const struct event_sample *sample)
{
	uint32_t room = raw_room(sample) - 4;
	uint32_t len = sample->raw_len < room ? sample->raw_len : room;

	to = add_u32(to, room);
	to = add_bytes(to, sample->raw, len);
	return add_bytes(to, zeros, room - len);
}

static int put_sample(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;
	const struct event_sample *sample = &ev->sample;
	unsigned lacks = lacks_of(p, w->world, sample->source);
	bool chain = !(lacks & LACKS_CHAIN);
	bool branches = has_branches(w, sample->source), raw = has_raw(w->world, sample->source);
	bool marked = sample->no_chain || (sample->nr && ip_is_marker(sample->ips[0]));
	struct perf_record head = { .type = htole32(PERF_RECORD_SAMPLE),
				    .misc = htole16(mode_of(sample->context)) };
	uint64_t nr_branches = branches ? sample->nr_branches : 0;
	size_t used = sizeof(head) + fixed_size(lacks);
	uint32_t nr, room;
	uint16_t size;
	uint8_t *to;

	if (sample->context == IP_NAMED)
		return err_set(&w->err, ERR_USAGE,
			       "perf.data needs addresses, but this input has only names: "
			       "write folded stacks or a flame graph instead");
	see(p, ev);
	p->kernel_seen |= (sample->context == IP_KERNEL) | (sample->context == IP_GUEST_KERNEL);
	if (nr_branches > RECORD_MAX / 4 / sizeof(struct branch))
		nr_branches = RECORD_MAX / 4 / sizeof(struct branch);
	if (branches)
		used += 8 + nr_branches * sizeof(struct branch);
	if (raw)
		used += raw_room(sample);
	room = (uint32_t)((RECORD_MAX - used) / 8 - 2);
	nr = !chain || sample->no_chain ? 0 : sample->nr < room ? sample->nr : room;
	size = (uint16_t)(used + (chain ? 8 * (1 + !marked + nr) : 0));
	head.size = htole16(size);
	to = add_bytes(out_room(w->out, size), &head, sizeof(head));
	to = add_fixed(to, w, ev, lacks);
	if (chain) {
		to = add_u64(to, nr + !marked);
		if (!marked)
			to = add_u64(to, sample->context);
		to = add_chain(to, sample, nr);
	}
	if (raw)
		to = add_raw(to, sample);
	if (branches) {
		to = add_u64(to, nr_branches);
		for (uint64_t i = 0; i < nr_branches; i++) {
			to = add_u64(to, sample->branches[i].from);
			to = add_u64(to, sample->branches[i].to);
			to = add_u64(to, sample->branches[i].flags);
		}
	}
	written_sample(&w->written, sample);
	count_round(w);
	return 0;
}

static uint64_t data_offset(void)
{
	return sizeof(struct perf_header) +
	       ATTRS_RESERVED * (sizeof(struct perf_file_attr) + sizeof(uint64_t));
}

static int perfdata_open(struct writer *w)
{
	struct perfdata *p = w->priv;
	uint8_t *room = xcalloc(1, data_offset());

	p->first_time = UINT64_MAX;
	out_write(w->out, room, data_offset());
	free(room);
	return 0;
}

/* The unit of the source's weights, if they do not count events. kscope reads it back. */
static void put_unit(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;

	if (!ev->source.unit)
		return;
	begin(p, PERF_RECORD_EVENT_UPDATE, 0);
	put_u64(&p->record, PERF_EVENT_UPDATE_UNIT);
	put_u64(&p->record, ev->source.id);
	put_padded(&p->record, ev->source.unit, 100);
	end(w);
}

/* Tracing data becomes a feature. A file has only one: that of the first input. */
static void put_aux(struct writer *w, const struct event *ev)
{
	struct perfdata *p = w->priv;

	if (!ev->aux.data)
		return;
	if (strcmp(ev->aux.kind, "tracing_data"))
		p->left_out += ev->aux.len;
	else if (!p->tracing.len)
		buf_add(&p->tracing, ev->aux.data, ev->aux.len);
}

static int perfdata_put(struct writer *w, const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_SOURCE: put_unit(w, ev); break;
	case EVENT_COMM:
		/* perf names the idle task without a record. */
		if (ev->tid || ev->time != NO_TIME || strcmp(ev->comm.comm, "swapper"))
			put_comm(w, ev);
		break;
	case EVENT_FORK:
	case EVENT_EXIT: put_task(w, ev); break;
	case EVENT_MAP: put_map(w, ev); break;
	case EVENT_SAMPLE: return put_sample(w, ev);
	case EVENT_LOST: put_lost(w, ev); break;
	case EVENT_SYMBOL: put_symbol(w, ev); break;
	case EVENT_SWITCH: put_switch(w, ev); break;
	case EVENT_AUX: put_aux(w, ev); break;
	default: break;
	}
	return 0;
}

struct perf_attr perfout_attr(struct writer *w, uint32_t handle, const struct source *source)
{
	struct perfdata *p = w->priv;
	unsigned lacks = lacks_of(p, w->world, handle);
	struct perf_attr attr = {
		.type = source->type,
		.size = sizeof(attr),
		.config = source->config,
		.sample_period = source->period ? source->period : 1,
		.sample_type = SAMPLE_TYPE,
		.flags = PERF_ATTR_MMAP | PERF_ATTR_COMM | PERF_ATTR_TASK |
			 PERF_ATTR_SAMPLE_ID_ALL | PERF_ATTR_MMAP2 | PERF_ATTR_COMM_EXEC,
	};

	if (!(lacks & LACKS_CHAIN))
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (!(lacks & LACKS_TIME))
		attr.sample_type |= PERF_SAMPLE_TIME;
	if (!(lacks & LACKS_CPU))
		attr.sample_type |= PERF_SAMPLE_CPU;
	if (has_branches(w, handle))
		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	/* Without the words that put_sample() does not write. */
	attr.branch_sample_type =
		source->branch_type & ~(PERF_BRANCH_HW_INDEX | PERF_BRANCH_COUNTERS);
	if (has_raw(w->world, handle))
		attr.sample_type |= PERF_SAMPLE_RAW;
	/* perf rejects a file with a tracepoint but without its format, from which it has its name. */
	if (attr.type == SOURCE_TRACEPOINT && (!p->tracing.len || !source->name)) {
		attr.type = SOURCE_SOFTWARE;
		attr.config = 9; /* PERF_COUNT_SW_DUMMY */
	}
	if (p->switches)
		attr.flags |= PERF_ATTR_CONTEXT_SWITCH;
	if (source->freq)
		attr.flags |= PERF_ATTR_FREQ;
	/* Without this perf warns about a missing kernel map, even if no sample needs it. */
	if (!p->kernel_seen)
		attr.flags |= PERF_ATTR_EXCLUDE_KERNEL | PERF_ATTR_EXCLUDE_HV;
	return attr;
}

struct source perfout_source(const struct world *world, size_t n)
{
	if (world->nr_sources > 1)
		return world->sources[n];
	return (struct source){ .type = SOURCE_HARDWARE };
}

size_t perfout_nr_sources(const struct world *world)
{
	return world->nr_sources > 1 ? world->nr_sources - 1 : 1;
}

void perfout_put_attr(struct buf *to, const struct perf_attr *attr)
{
	put_u32(to, attr->type);
	put_u32(to, attr->size);
	put_u64(to, attr->config);
	put_u64(to, attr->sample_period);
	put_u64(to, attr->sample_type);
	put_u64(to, attr->read_format);
	put_u64(to, attr->flags);
	put_u32(to, attr->wakeup_events);
	put_u32(to, attr->bp_type);
	put_u64(to, attr->config1);
	put_u64(to, attr->config2);
	put_u64(to, attr->branch_sample_type);
	put_u64(to, attr->sample_regs_user);
	put_u32(to, attr->sample_stack_user);
	put_u32(to, (uint32_t)attr->clockid);
	put_u64(to, attr->sample_regs_intr);
	put_u32(to, attr->aux_watermark);
	put_u32(to, attr->sample_max_stack | (uint32_t)attr->reserved << 16);
}

void perfout_put_section(struct buf *to, const struct perf_section *section)
{
	put_u64(to, section->offset);
	put_u64(to, section->size);
}

/* Ids are the sources' handles: 1, 2, 3... */
static void add_attrs(struct writer *w, struct buf *to, uint64_t ids_offset)
{
	size_t nr = perfout_nr_sources(w->world);

	for (size_t i = 1; i <= nr; i++)
		put_u64(to, i);
	for (size_t i = 1; i <= nr; i++) {
		struct source source = perfout_source(w->world, i);
		struct perf_file_attr attr = {
			.attr = perfout_attr(w, (uint32_t)i, &source),
			.ids = { ids_offset + (i - 1) * sizeof(uint64_t), sizeof(uint64_t) },
		};

		perfout_put_attr(to, &attr.attr);
		perfout_put_section(to, &attr.ids);
	}
}

/* perf treats a file without records as unfinished. */
static void put_something(struct writer *w)
{
	struct perfdata *p = w->priv;

	if (out_offset(w->out) > data_offset())
		return;
	begin(p, PERF_RECORD_FINISHED_ROUND, 0);
	end(w);
}

static void put_header(struct buf *to, const struct perf_header *header)
{
	buf_add(to, header->magic, sizeof(header->magic));
	put_u64(to, header->size);
	put_u64(to, header->attr_size);
	perfout_put_section(to, &header->attrs);
	perfout_put_section(to, &header->data);
	perfout_put_section(to, &header->event_types);
	for (size_t i = 0; i < sizeof(header->features) / sizeof(*header->features); i++)
		put_u64(to, header->features[i]);
}

static int perfdata_finish(struct writer *w)
{
	const struct perfdata *p = w->priv;
	size_t nr = perfout_nr_sources(w->world);
	struct perf_header header = {
		.magic = PERF_MAGIC,
		.size = sizeof(header),
		.attr_size = sizeof(struct perf_file_attr),
		.attrs.size = nr * sizeof(struct perf_file_attr),
		.data.offset = data_offset(),
	};
	struct buf attrs = { 0 }, head = { 0 };
	uint64_t ids;

	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	if (p->left_out)
		log_warn("%" PRIu64 " bytes of hardware trace are not in the output", p->left_out);
	put_something(w);
	header.data.size = out_offset(w->out) - data_offset();
	perfout_features(w, &header);
	ids = nr <= ATTRS_RESERVED ? sizeof(header) : out_offset(w->out);
	header.attrs.offset = ids + nr * sizeof(uint64_t);
	add_attrs(w, &attrs, ids);
	if (nr <= ATTRS_RESERVED)
		out_patch(w->out, ids, attrs.data, attrs.len);
	else
		out_write(w->out, attrs.data, attrs.len);
	buf_release(&attrs);
	put_header(&head, &header);
	out_patch(w->out, 0, head.data, head.len);
	buf_release(&head);
	return 0;
}

static void perfdata_close(struct writer *w)
{
	struct perfdata *p = w->priv;

	buf_release(&p->record);
	buf_release(&p->tracing);
	hash_release(&p->mapped);
}

const struct writer_ops write_perfdata = {
	.name = "perfdata",
	.about = "perf.data, for perf report and other tools that read it",
	.extension = ".data",
	.needs = WRITER_SEEK | WRITER_SYMBOLS,
	.takes = EVENT_STATE | EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_LOST) |
		 EVENT_BIT(EVENT_SWITCH) | EVENT_BIT(EVENT_AUX),
	.priv_size = sizeof(struct perfdata),
	.open = perfdata_open,
	.put = perfdata_put,
	.finish = perfdata_finish,
	.close = perfdata_close,
};
