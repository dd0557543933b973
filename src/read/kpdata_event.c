// SPDX-License-Identifier: GPL-2.0-or-later
/* kpdata_event: turns the records of an Akaros profile into events; see kpdata.c for the rules. */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/frame.h"
#include "read/bare.h"
#include "read/kpdata_parts.h"

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
	const struct kp_source *source = kp_source_of(p, record->info);
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

void kp_record_event(struct reader *r, struct place *place, struct event *ev)
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

bool kp_preamble_event(struct reader *r, struct event *ev)
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

void kp_warn_of_bare(struct reader *r)
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
