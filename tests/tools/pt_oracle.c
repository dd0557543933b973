// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pt_oracle [--sum|--insns|--packets] [--events] [--tid T] [--join] [--map FILE,OFFSET,SIZE,ADDRESS]...
 *           [--cpu FAMILY/MODEL/STEPPING] FILE
 *
 * What libipt says about the Intel PT traces in FILE, for tests of kscope's own decoder. It shares no
 * code with kscope, not even what reads perf.data. FILE is a perf.data as perf record writes it, or
 * anything else: then its bytes are the packets of one queue, and --map says which code was where.
 *
 * A queue has the bytes of the AUXTRACE records of one thread or CPU, in the order of their offsets.
 * If bytes are missing between two records, libipt starts anew behind them; with --join it does not
 * learn of it, like perf. Offsets in the output count the bytes in the file, also those that fill up
 * a record.
 *
 * --insns prints a line for each instruction that was executed: its address. --sum, the default,
 * prints a line for each run of instructions between two events:
 *
 *	run INSTRUCTIONS HASH
 *
 * HASH is FNV-1a, 64 bits, over the addresses, each as 8 bytes, little endian. An empty run has
 * no line. Both print the events:
 *
 *	queue tid=T cpu=C		the next queue begins
 *	sync OFFSET [ip=IP]		libipt found a PSB there; without ip: tracing was disabled
 *	begin IP			tracing was enabled
 *	end [IP]			tracing was disabled; a branch went to IP, if the trace says so
 *	overflow [IP]			packets were lost; with IP tracing goes on there
 *	error CODE at OFFSET		the decoder lost its way; the next line is sync or eos
 *	gap OFFSET			bytes are missing here
 *	eos				no more packets
 *	total INSTRUCTIONS HASH		of the whole queue, over all its runs
 *
 * and at their ends tsc=TSC where the time is known. --events adds a line for all other events.
 *
 * If the maps of a process change, all of them apply, and a later one hides an earlier one. Only
 * execve() begins anew: code has the maps of the program that ran at the time of `begin` or `sync`.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <intel-pt.h>

enum {
	RECORD_MMAP = 1,
	RECORD_COMM = 3,
	RECORD_FORK = 7,
	RECORD_MMAP2 = 10,
	RECORD_ITRACE_START = 12,
	RECORD_SWITCH = 14,
	RECORD_SWITCH_CPU_WIDE = 15,
	RECORD_AUXTRACE_INFO = 70,
	RECORD_AUXTRACE = 71,
	MISC_SWITCH_OUT = 1 << 13,
	MISC_COMM_EXEC = 1 << 13,
	SAMPLE_TID = 1 << 1,
	SAMPLE_TIME = 1 << 2,
	SAMPLE_ID = 1 << 6,
	SAMPLE_CPU = 1 << 7,
	SAMPLE_STREAM_ID = 1 << 9,
	SAMPLE_IDENTIFIER = 1 << 16,
	ATTR_SAMPLE_ID_ALL = 1 << 18,
	MMAP2_PROT_EXEC = 4,
	NO_ID = -1,
};

struct span {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct span attrs, data;
};

struct attr {
	uint32_t type, size;
	uint64_t config, period, sample_type, read_format, flags;
};

struct record {
	uint32_t type;
	uint16_t misc, size;
};

struct mmap_record {
	struct record head;
	int32_t pid, tid;
	uint64_t start, size, offset;
	char path[];
};

struct mmap2_record {
	struct record head;
	int32_t pid, tid;
	uint64_t start, size, offset, id[3];
	uint32_t prot, flags;
	char path[];
};

struct fork_record {
	struct record head;
	int32_t pid, parent, tid, parent_tid;
};

struct task_record { /* COMM, ITRACE_START, SWITCH_CPU_WIDE */
	struct record head;
	int32_t pid, tid;
};

struct auxtrace_info {
	struct record head;
	uint32_t type, reserved;
	uint64_t priv[];
};

/* The members of auxtrace_info.priv that are of use here. */
enum {
	PRIV_SHIFT = 1,
	PRIV_MULT,
	PRIV_ZERO,
	PRIV_MTC_BITS = 11,
	PRIV_TSC,
	PRIV_CTC,
	PRIV_NOM = 15
};

struct auxtrace {
	struct record head;
	uint64_t size, offset, reference;
	uint32_t idx;
	int32_t tid, cpu;
	uint32_t reserved;
	uint8_t data[];
};

enum change_kind { CHANGE_MAP, CHANGE_FORK, CHANGE_EXEC, CHANGE_SWITCH };

/* Something that changes the maps of a process, or the process of a CPU. */
struct change {
	enum change_kind kind;
	uint64_t time;
	size_t nr; /* its place in the file, where times are equal */
	int32_t pid, tid, parent, cpu;
	uint64_t start, size, offset;
	const char *path;
};

/* The code of a process between two calls of execve(). */
struct program {
	int32_t pid;
	uint64_t since;
	struct pt_image *image;
	struct change *maps;
	size_t nr_maps;
};

struct queue {
	uint32_t idx;
	int32_t tid, cpu;
	const struct auxtrace **parts;
	size_t nr_parts;
};

struct trace {
	const uint8_t *bytes;
	size_t size;
	struct attr attr;
	struct change *changes;
	size_t nr_changes;
	struct program *programs;
	size_t nr_programs;
	struct queue *queues;
	size_t nr_queues;
	struct pt_config config;
	uint64_t shift, mult, zero;
	struct change *extra; /* --map */
	size_t nr_extra;
};

enum mode { MODE_SUM, MODE_INSNS, MODE_PACKETS };

static struct {
	enum mode mode;
	bool events, join;
	long tid;
} args = { .tid = NO_ID };

struct sum {
	uint64_t insns, hash;
};

#define EMPTY_SUM ((struct sum){ .hash = 0xcbf29ce484222325 })

/* One decoder: its stretch of bytes has no gap. */
struct run {
	const struct trace *trace;
	const struct queue *queue;
	struct pt_insn_decoder *decoder;
	uint64_t base;	 /* offset of its first byte in the queue */
	uint64_t offset; /* for in_loop() */
	struct sum sum, *total;
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("pt_oracle: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* One more element, zeroed, at the end of an array. */
static void *grow(void *array, size_t *nr, size_t size)
{
	char *all = *nr & (*nr - 1) ? array : realloc(array, (*nr ? *nr * 2 : 1) * size);

	if (!all)
		die("no memory");
	memset(all + (*nr)++ * size, 0, size);
	return all;
}

#define MORE(array, nr) (&((array) = grow(array, &(nr), sizeof(*(array))))[(nr)-1])

static void map_file(const char *path, struct trace *trace)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		die("cannot read %s", path);
	trace->size = (size_t)st.st_size;
	/* Writable, because libipt's type of its buffer is not const. */
	trace->bytes = mmap(NULL, trace->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (trace->bytes == MAP_FAILED)
		die("cannot map %s", path);
}

/* The records of a perf.data */

struct sample_id {
	uint64_t time;
	int32_t pid, cpu;
};

/* What stands behind a record: its members in the order of the kernel. */
static struct sample_id sample_id(const struct trace *trace, const struct record *rec)
{
	static const uint32_t members[] = { SAMPLE_IDENTIFIER, SAMPLE_CPU,  SAMPLE_STREAM_ID,
					    SAMPLE_ID,	       SAMPLE_TIME, SAMPLE_TID };
	const uint8_t *end = (const uint8_t *)rec + rec->size;
	struct sample_id id = { .pid = NO_ID, .cpu = NO_ID };

	if (!(trace->attr.flags & ATTR_SAMPLE_ID_ALL))
		return id;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!(trace->attr.sample_type & members[i]))
			continue;
		end -= 8;
		if (members[i] == SAMPLE_TIME)
			memcpy(&id.time, end, sizeof(id.time));
		else if (members[i] == SAMPLE_CPU)
			memcpy(&id.cpu, end, sizeof(id.cpu));
		else if (members[i] == SAMPLE_TID)
			memcpy(&id.pid, end, sizeof(id.pid));
	}
	return id;
}

static struct change *add_change(struct trace *trace, const struct record *rec,
				 enum change_kind kind)
{
	struct change *change = MORE(trace->changes, trace->nr_changes);
	const struct task_record *task = (const struct task_record *)rec;
	struct sample_id id = sample_id(trace, rec);

	*change = (struct change){
		.kind = kind,
		.time = id.time,
		.nr = trace->nr_changes,
		.cpu = id.cpu,
		.pid = task->pid,
		.tid = task->tid,
	};
	return change;
}

static void read_mmap(struct trace *trace, const struct record *rec)
{
	const struct mmap_record *map = (const struct mmap_record *)rec;
	const struct mmap2_record *map2 = (const struct mmap2_record *)rec;
	const char *path = rec->type == RECORD_MMAP2 ? map2->path : map->path;
	struct change *change;

	if (rec->type == RECORD_MMAP2 && !(map2->prot & MMAP2_PROT_EXEC))
		return;
	change = add_change(trace, rec, CHANGE_MAP);
	change->start = map->start;
	change->size = map->size;
	change->offset = map->offset;
	change->path = path;
}

static void read_fork(struct trace *trace, const struct record *rec)
{
	const struct fork_record *fork = (const struct fork_record *)rec;
	struct change *change = add_change(trace, rec, CHANGE_FORK);

	change->parent = fork->parent;
	change->tid = fork->tid;
}

/* A task leaves and the record says which one comes, or only that the other one has come. */
static void read_switch(struct trace *trace, const struct record *rec)
{
	bool out = rec->misc & MISC_SWITCH_OUT;

	if (out == (rec->type == RECORD_SWITCH_CPU_WIDE)) {
		struct change *change = add_change(trace, rec, CHANGE_SWITCH);

		if (!out)
			change->pid = sample_id(trace, rec).pid;
	}
}

static void read_info(struct trace *trace, const struct record *rec)
{
	const struct auxtrace_info *info = (const struct auxtrace_info *)rec;
	size_t nr = (rec->size - sizeof(*info)) / 8;
	uint64_t bits;

	if (nr > PRIV_ZERO) {
		trace->shift = info->priv[PRIV_SHIFT];
		trace->mult = info->priv[PRIV_MULT];
		trace->zero = info->priv[PRIV_ZERO];
	}
	if (nr <= PRIV_NOM)
		return;
	bits = info->priv[PRIV_MTC_BITS];
	trace->config.mtc_freq = bits ? (trace->attr.config & bits) >> __builtin_ctzll(bits) : 0;
	trace->config.cpuid_0x15_ebx = (uint32_t)info->priv[PRIV_TSC];
	trace->config.cpuid_0x15_eax = (uint32_t)info->priv[PRIV_CTC];
	trace->config.nom_freq = (uint8_t)info->priv[PRIV_NOM];
}

static struct queue *find_queue(struct trace *trace, uint32_t idx, int32_t tid, int32_t cpu)
{
	struct queue *queue;

	for (size_t i = 0; i < trace->nr_queues; i++) {
		queue = &trace->queues[i];
		if (queue->idx == idx && queue->tid == tid && queue->cpu == cpu)
			return queue;
	}
	queue = MORE(trace->queues, trace->nr_queues);
	queue->idx = idx;
	queue->tid = tid;
	queue->cpu = cpu;
	return queue;
}

static void add_part(struct trace *trace, const struct auxtrace *part)
{
	struct queue *queue = find_queue(trace, part->idx, part->tid, part->cpu);

	*MORE(queue->parts, queue->nr_parts) = part;
}

static void read_record(struct trace *trace, const struct record *rec)
{
	switch (rec->type) {
	case RECORD_MMAP:
	case RECORD_MMAP2: read_mmap(trace, rec); break;
	case RECORD_FORK: read_fork(trace, rec); break;
	case RECORD_COMM:
		add_change(trace, rec, rec->misc & MISC_COMM_EXEC ? CHANGE_EXEC : CHANGE_FORK);
		break;
	case RECORD_ITRACE_START: add_change(trace, rec, CHANGE_SWITCH); break;
	case RECORD_SWITCH:
	case RECORD_SWITCH_CPU_WIDE: read_switch(trace, rec); break;
	case RECORD_AUXTRACE_INFO: read_info(trace, rec); break;
	case RECORD_AUXTRACE: add_part(trace, (const struct auxtrace *)rec); break;
	}
}

static void read_records(struct trace *trace)
{
	const struct file_header *header = (const struct file_header *)trace->bytes;
	uint64_t at, end, size;

	if (header->attrs.offset > trace->size - sizeof(trace->attr) ||
	    header->data.offset > trace->size)
		die("the file is cut");
	memcpy(&trace->attr, trace->bytes + header->attrs.offset, sizeof(trace->attr));
	end = header->data.offset + header->data.size;
	if (end > trace->size)
		end = trace->size;
	for (at = header->data.offset; at + sizeof(struct record) <= end; at += size) {
		const struct record *rec = (const struct record *)(trace->bytes + at);

		size = rec->size;
		if (rec->type == RECORD_AUXTRACE && size >= sizeof(struct auxtrace))
			size += ((const struct auxtrace *)rec)->size;
		if (size < sizeof(*rec) || size > end - at)
			die("bad record at 0x%" PRIx64, at);
		read_record(trace, rec);
	}
}

static void read_raw(struct trace *trace)
{
	struct auxtrace *part = malloc(sizeof(*part) + trace->size);

	if (!part)
		die("no memory");
	*part = (struct auxtrace){ .size = trace->size, .tid = NO_ID, .cpu = NO_ID };
	memcpy(part->data, trace->bytes, trace->size);
	add_part(trace, part);
}

/* Processes and their code */

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->nr < y->nr ? -1 : x->nr > y->nr;
}

static struct program *last_program(const struct trace *trace, int32_t pid)
{
	for (size_t i = trace->nr_programs; i--;)
		if (trace->programs[i].pid == pid)
			return &trace->programs[i];
	return NULL;
}

static struct program *new_program(struct trace *trace, int32_t pid, uint64_t time)
{
	struct program *program = MORE(trace->programs, trace->nr_programs);

	program->pid = pid;
	program->since = time;
	return program;
}

static void add_map(struct program *program, const struct change *map)
{
	*MORE(program->maps, program->nr_maps) = *map;
}

static void copy_program(struct trace *trace, const struct change *fork)
{
	const struct program *parent = last_program(trace, fork->parent);
	size_t from = parent ? (size_t)(parent - trace->programs) : 0;
	struct program *child;

	if (!parent || fork->pid == fork->parent || last_program(trace, fork->pid))
		return;
	child = new_program(trace, fork->pid, fork->time);
	parent = &trace->programs[from];
	for (size_t i = 0; i < parent->nr_maps; i++)
		add_map(child, &parent->maps[i]);
}

static void sort_programs(struct trace *trace)
{
	if (trace->nr_changes)
		qsort(trace->changes, trace->nr_changes, sizeof(*trace->changes), by_time);
	for (size_t i = 0; i < trace->nr_changes; i++) {
		const struct change *change = &trace->changes[i];
		struct program *program;

		switch (change->kind) {
		case CHANGE_SWITCH: break;
		case CHANGE_FORK: copy_program(trace, change); break;
		case CHANGE_EXEC: new_program(trace, change->pid, change->time); break;
		case CHANGE_MAP:
			program = last_program(trace, change->pid);
			add_map(program ? program : new_program(trace, change->pid, 0), change);
			break;
		}
	}
}

/* A cache, because libipt otherwise maps and unmaps a file again and again: five times as slow. */
static struct pt_image_section_cache *cache(void)
{
	static struct pt_image_section_cache *cache;

	if (!cache) {
		cache = pt_iscache_alloc(NULL);
		if (!cache || pt_iscache_set_limit(cache, 1ull << 30) < 0)
			die("no memory");
	}
	return cache;
}

static void add_to_image(struct pt_image *image, const struct change *map)
{
	int rc = pt_iscache_add_file(cache(), map->path, map->offset, map->size, map->start);

	if (rc > 0)
		rc = pt_image_add_cached(image, cache(), rc, NULL);
	if (rc < 0 && map->path[0] == '/')
		fprintf(stderr, "pt_oracle: %s: %s\n", map->path, pt_errstr(pt_errcode(rc)));
}

static struct pt_image *image_of(const struct trace *trace, struct program *program)
{
	if (program->image)
		return program->image;
	program->image = pt_image_alloc(NULL);
	if (!program->image)
		die("no memory");
	for (size_t i = 0; i < trace->nr_extra; i++)
		add_to_image(program->image, &trace->extra[i]);
	for (size_t i = 0; i < program->nr_maps; i++)
		add_to_image(program->image, &program->maps[i]);
	return program->image;
}

/* The process of a CPU: the one that it was given last. */
static int32_t process_on(const struct trace *trace, int32_t cpu, uint64_t time)
{
	int32_t pid = NO_ID;

	for (size_t i = 0; i < trace->nr_changes; i++) {
		const struct change *change = &trace->changes[i];

		if (change->kind != CHANGE_SWITCH || change->cpu != cpu)
			continue;
		if (change->time > time && pid != NO_ID)
			break;
		pid = change->pid;
	}
	return pid;
}

/* perf gives the queue of a CPU a thread as well if it records a command. */
static int32_t process_at(const struct trace *trace, const struct queue *queue, uint64_t time)
{
	int32_t pid = queue->cpu == NO_ID ? NO_ID : process_on(trace, queue->cpu, time);

	for (size_t i = 0; pid == NO_ID && i < trace->nr_changes; i++)
		if (trace->changes[i].kind != CHANGE_SWITCH && trace->changes[i].tid == queue->tid)
			pid = trace->changes[i].pid;
	return pid;
}

static struct program *program_at(const struct trace *trace, const struct queue *queue,
				  uint64_t time)
{
	int32_t pid = process_at(trace, queue, time);
	struct program *found = NULL;

	for (size_t i = 0; i < trace->nr_programs; i++) {
		struct program *program = &trace->programs[i];

		if (program->pid == pid && (!found || program->since <= time))
			found = program;
	}
	return found ? found : &trace->programs[0];
}

static uint64_t time_of(const struct trace *trace, uint64_t tsc)
{
	unsigned shift = (unsigned)trace->shift & 63;
	uint64_t high = tsc >> shift, low = tsc & ((1ull << shift) - 1);

	return trace->zero + high * trace->mult + ((low * trace->mult) >> shift);
}

/* Instructions and events */

static void add_insn(struct sum *sum, uint64_t ip)
{
	sum->insns++;
	for (unsigned i = 0; i < 8; i++)
		sum->hash = (sum->hash ^ (ip >> (8 * i) & 0xff)) * 0x100000001b3;
}

static void end_run(struct run *run)
{
	if (args.mode == MODE_SUM && run->sum.insns)
		printf("run %" PRIu64 " %016" PRIx64 "\n", run->sum.insns, run->sum.hash);
	run->sum = EMPTY_SUM;
}

static void end_line(bool has_tsc, uint64_t tsc)
{
	if (has_tsc)
		printf(" tsc=%" PRIu64, tsc);
	putchar('\n');
}

static bool now(struct run *run, uint64_t *tsc)
{
	return pt_insn_time(run->decoder, tsc, NULL, NULL) >= 0;
}

static void end_line_now(struct run *run)
{
	uint64_t tsc = 0;
	bool known = now(run, &tsc);

	end_line(known, tsc);
}

static void choose_program(struct run *run, bool has_tsc, uint64_t tsc)
{
	uint64_t time = has_tsc ? time_of(run->trace, tsc) : 0;
	struct program *program = program_at(run->trace, run->queue, time);

	pt_insn_set_image(run->decoder, image_of(run->trace, program));
}

static void print_ip(const char *word, const struct pt_event *event, uint64_t ip)
{
	if (event->ip_suppressed)
		fputs(word, stdout);
	else
		printf("%s %" PRIx64, word, ip);
	end_line(event->has_tsc, event->tsc);
}

static void other_event(const struct pt_event *event)
{
	static const char *const names[] = {
		[ptev_async_branch] = "async-branch",
		[ptev_paging] = "paging",
		[ptev_async_paging] = "async-paging",
		[ptev_exec_mode] = "exec-mode",
		[ptev_tsx] = "tsx",
		[ptev_stop] = "stop",
		[ptev_vmcs] = "vmcs",
		[ptev_async_vmcs] = "async-vmcs",
		[ptev_exstop] = "exstop",
		[ptev_mwait] = "mwait",
		[ptev_pwre] = "pwre",
		[ptev_pwrx] = "pwrx",
		[ptev_ptwrite] = "ptwrite",
		[ptev_tick] = "tick",
		[ptev_cbr] = "cbr",
		[ptev_mnt] = "mnt",
	};

	fputs(names[event->type], stdout);
	switch (event->type) {
	case ptev_async_branch:
		printf(" %" PRIx64 " %" PRIx64, event->variant.async_branch.from,
		       event->variant.async_branch.to);
		break;
	case ptev_paging: printf(" cr3=%" PRIx64, event->variant.paging.cr3); break;
	case ptev_async_paging:
		printf(" %" PRIx64 " cr3=%" PRIx64, event->variant.async_paging.ip,
		       event->variant.async_paging.cr3);
		break;
	case ptev_exec_mode:
		printf(" %" PRIx64 " mode=%d", event->variant.exec_mode.ip,
		       event->variant.exec_mode.mode);
		break;
	case ptev_tsx:
		printf(" %" PRIx64 " speculative=%d aborted=%d", event->variant.tsx.ip,
		       event->variant.tsx.speculative, event->variant.tsx.aborted);
		break;
	case ptev_ptwrite:
		printf(" %" PRIx64 " payload=%" PRIx64, event->variant.ptwrite.ip,
		       event->variant.ptwrite.payload);
		break;
	case ptev_cbr: printf(" ratio=%u", event->variant.cbr.ratio); break;
	default: break;
	}
	if (event->status_update)
		fputs(" status", stdout);
	end_line(event->has_tsc, event->tsc);
}

static void print_event(struct run *run, const struct pt_event *event)
{
	switch (event->type) {
	case ptev_enabled:
		end_run(run);
		print_ip("begin", event, event->variant.enabled.ip);
		choose_program(run, event->has_tsc, event->tsc);
		break;
	case ptev_disabled:
		end_run(run);
		print_ip("end", event, event->variant.disabled.ip);
		break;
	case ptev_async_disabled:
		end_run(run);
		print_ip("end", event, event->variant.async_disabled.ip);
		break;
	case ptev_overflow:
		end_run(run);
		print_ip("overflow", event, event->variant.overflow.ip);
		break;
	default:
		if (args.events) {
			end_run(run);
			other_event(event);
		}
	}
}

static int print_events(struct run *run, int status)
{
	struct pt_event event;

	while (status >= 0 && status & pts_event_pending) {
		status = pt_insn_event(run->decoder, &event, sizeof(event));
		if (status >= 0)
			print_event(run, &event);
	}
	return status;
}

/*
 * libipt follows a loop of direct jumps for ever if the event that it waits for does not come. Whether
 * so many instructions were executed without a packet.
 */
static bool in_loop(struct run *run)
{
	enum { TOO_MANY = 1 << 20 };
	uint64_t offset = 0;

	if (run->total->insns % TOO_MANY)
		return false;
	pt_insn_get_offset(run->decoder, &offset);
	if (offset == run->offset)
		return true;
	run->offset = offset;
	return false;
}

/* To the next error, which is returned; pte_eos at the end. */
static int decode(struct run *run, int status)
{
	struct pt_insn insn;

	for (;;) {
		status = print_events(run, status);
		if (status < 0)
			return status;
		/* libipt would go on up to the next branch that needs a packet; perf and ptxed do not. */
		if (status & pts_eos)
			return -pte_eos;
		insn.iclass = ptic_error;
		status = pt_insn_next(run->decoder, &insn, sizeof(insn));
		/* An instruction may come with an error: it was read, and then its successor was not found. */
		if (insn.iclass != ptic_error) {
			add_insn(&run->sum, insn.ip);
			add_insn(run->total, insn.ip);
			if (args.mode == MODE_INSNS)
				printf("%" PRIx64 "\n", insn.ip);
		}
		if (status < 0)
			return status;
		if (in_loop(run))
			return -pte_bad_query;
	}
}

static void print_error(struct run *run, int error)
{
	uint64_t offset = 0;

	end_run(run);
	pt_insn_get_offset(run->decoder, &offset);
	printf("error %s at 0x%" PRIx64, pt_errstr(pt_errcode(error)), run->base + offset);
	end_line_now(run);
}

static void print_sync(struct run *run)
{
	uint64_t offset = 0;

	pt_insn_get_sync_offset(run->decoder, &offset);
	printf("sync 0x%" PRIx64, run->base + offset);
	end_line_now(run);
}

/* Synchronizes at the next PSB; false if there is none. */
static bool synchronize(struct run *run, int *status)
{
	uint64_t before = UINT64_MAX, after = 0, tsc = 0;
	bool known;

	pt_insn_get_sync_offset(run->decoder, &before);
	*status = pt_insn_sync_forward(run->decoder);
	if (*status == -pte_eos)
		return false;
	pt_insn_get_sync_offset(run->decoder, &after);
	if (after == before)
		return false;
	print_sync(run);
	known = now(run, &tsc);
	choose_program(run, known, tsc);
	return true;
}

static void decode_stretch(struct run *run)
{
	int status;

	while (synchronize(run, &status)) {
		status = decode(run, status);
		if (status == -pte_eos)
			break;
		print_error(run, status);
	}
	end_run(run);
	puts("eos");
}

static void print_flow(const struct trace *trace, const struct queue *queue,
		       const struct pt_config *config, uint64_t base, struct sum *total)
{
	struct run run = { .trace = trace, .queue = queue, .base = base, .total = total };

	run.sum = EMPTY_SUM;
	run.decoder = pt_insn_alloc_decoder(config);
	if (!run.decoder)
		die("libipt refuses the configuration");
	decode_stretch(&run);
	pt_insn_free_decoder(run.decoder);
}

/* Packets */

static void print_payload(const struct pt_packet *packet)
{
	switch (packet->type) {
	case ppt_fup:
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
		printf(" ipc=%d", packet->payload.ip.ipc);
		if (packet->payload.ip.ipc != pt_ipc_suppressed)
			printf(" %" PRIx64, packet->payload.ip.ip);
		break;
	case ppt_tnt_8:
	case ppt_tnt_64:
		putchar(' ');
		for (unsigned i = packet->payload.tnt.bit_size; i--;)
			putchar(packet->payload.tnt.payload >> i & 1 ? 'T' : 'N');
		break;
	case ppt_mode:
		if (packet->payload.mode.leaf == pt_mol_exec)
			printf(" exec csl=%u csd=%u", packet->payload.mode.bits.exec.csl,
			       packet->payload.mode.bits.exec.csd);
		else
			printf(" tsx intx=%u abrt=%u", packet->payload.mode.bits.tsx.intx,
			       packet->payload.mode.bits.tsx.abrt);
		break;
	case ppt_pip:
		printf(" cr3=%" PRIx64 " nr=%u", packet->payload.pip.cr3, packet->payload.pip.nr);
		break;
	case ppt_vmcs: printf(" %" PRIx64, packet->payload.vmcs.base); break;
	case ppt_cbr: printf(" %u", packet->payload.cbr.ratio); break;
	case ppt_tsc: printf(" %" PRIu64, packet->payload.tsc.tsc); break;
	case ppt_tma:
		printf(" ctc=%x fc=%x", packet->payload.tma.ctc, packet->payload.tma.fc);
		break;
	case ppt_mtc: printf(" %x", packet->payload.mtc.ctc); break;
	case ppt_cyc: printf(" %" PRIu64, packet->payload.cyc.value); break;
	case ppt_mnt: printf(" %" PRIx64, packet->payload.mnt.payload); break;
	case ppt_exstop: printf(" ip=%u", packet->payload.exstop.ip); break;
	case ppt_mwait:
		printf(" hints=%x ext=%x", packet->payload.mwait.hints, packet->payload.mwait.ext);
		break;
	case ppt_pwre:
		printf(" state=%u.%u hw=%u", packet->payload.pwre.state,
		       packet->payload.pwre.sub_state, packet->payload.pwre.hw);
		break;
	case ppt_pwrx:
		printf(" last=%u deepest=%u", packet->payload.pwrx.last,
		       packet->payload.pwrx.deepest);
		break;
	case ppt_ptw:
		printf(" %" PRIx64 " ip=%u", packet->payload.ptw.payload, packet->payload.ptw.ip);
		break;
	default: break;
	}
}

static void print_packet(uint64_t offset, const struct pt_packet *packet)
{
	static const char *const names[] = {
		[ppt_pad] = "pad",	   [ppt_psb] = "psb",	      [ppt_psbend] = "psbend",
		[ppt_fup] = "fup",	   [ppt_tip] = "tip",	      [ppt_tip_pge] = "tip.pge",
		[ppt_tip_pgd] = "tip.pgd", [ppt_tnt_8] = "tnt",	      [ppt_tnt_64] = "tnt64",
		[ppt_mode] = "mode",	   [ppt_pip] = "pip",	      [ppt_vmcs] = "vmcs",
		[ppt_cbr] = "cbr",	   [ppt_tsc] = "tsc",	      [ppt_tma] = "tma",
		[ppt_mtc] = "mtc",	   [ppt_cyc] = "cyc",	      [ppt_stop] = "stop",
		[ppt_ovf] = "ovf",	   [ppt_mnt] = "mnt",	      [ppt_exstop] = "exstop",
		[ppt_mwait] = "mwait",	   [ppt_pwre] = "pwre",	      [ppt_pwrx] = "pwrx",
		[ppt_ptw] = "ptw",	   [ppt_unknown] = "unknown", [ppt_invalid] = "invalid",
	};

	printf("%08" PRIx64 " %s", offset, names[packet->type]);
	print_payload(packet);
	putchar('\n');
}

static void print_packets(const struct pt_config *config, uint64_t base)
{
	struct pt_packet_decoder *decoder = pt_pkt_alloc_decoder(config);
	struct pt_packet packet;
	uint64_t offset = 0;
	int status;

	if (!decoder)
		die("libipt refuses the configuration");
	while (pt_pkt_sync_forward(decoder) >= 0) {
		for (;;) {
			pt_pkt_get_offset(decoder, &offset);
			status = pt_pkt_next(decoder, &packet, sizeof(packet));
			if (status < 0)
				break;
			print_packet(base + offset, &packet);
		}
		if (status != -pte_eos)
			printf("%08" PRIx64 " error %s\n", base + offset,
			       pt_errstr(pt_errcode(status)));
	}
	pt_pkt_free_decoder(decoder);
}

/* Queues */

static int by_offset(const void *a, const void *b)
{
	const struct auxtrace *x = *(const struct auxtrace *const *)a;
	const struct auxtrace *y = *(const struct auxtrace *const *)b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* How many parts, from the first one on, have nothing missing between them. */
static size_t parts_together(const struct queue *queue, size_t first)
{
	size_t next = first + 1;

	while (next < queue->nr_parts &&
	       (args.join || queue->parts[next]->offset <=
				     queue->parts[next - 1]->offset + queue->parts[next - 1]->size))
		next++;
	return next - first;
}

/* The bytes of some parts in one piece. */
static uint8_t *join(const struct queue *queue, size_t first, size_t nr, size_t *size)
{
	uint8_t *bytes;

	*size = 0;
	for (size_t i = first; i < first + nr; i++)
		*size += queue->parts[i]->size;
	bytes = malloc(*size + 1);
	if (!bytes)
		die("no memory");
	*size = 0;
	for (size_t i = first; i < first + nr; i++) {
		memcpy(bytes + *size, queue->parts[i]->data, queue->parts[i]->size);
		*size += queue->parts[i]->size;
	}
	return bytes;
}

static void print_queue(const struct trace *trace, const struct queue *queue)
{
	struct pt_config config = trace->config;
	struct sum total = EMPTY_SUM;
	uint64_t base = 0;
	size_t nr, size;

	printf("queue tid=%d cpu=%d\n", queue->tid, queue->cpu);
	qsort(queue->parts, queue->nr_parts, sizeof(*queue->parts), by_offset);
	for (size_t first = 0; first < queue->nr_parts; first += nr, base += size) {
		nr = parts_together(queue, first);
		config.begin = join(queue, first, nr, &size);
		config.end = config.begin + size;
		if (first)
			printf("gap 0x%" PRIx64 "\n", base);
		if (args.mode == MODE_PACKETS)
			print_packets(&config, base);
		else
			print_flow(trace, queue, &config, base, &total);
		free(config.begin);
	}
	if (args.mode != MODE_PACKETS)
		printf("total %" PRIu64 " %016" PRIx64 "\n", total.insns, total.hash);
}

/* The command line */

static void read_map(struct trace *trace, char *text)
{
	struct change *map = MORE(trace->extra, trace->nr_extra);
	char *end = strchr(text, ',');

	if (!end)
		die("--map FILE,OFFSET,SIZE,ADDRESS");
	*end = 0;
	map->path = text;
	map->offset = strtoull(end + 1, &end, 0);
	map->size = *end == ',' ? strtoull(end + 1, &end, 0) : 0;
	map->start = *end == ',' ? strtoull(end + 1, &end, 0) : 0;
	if (!map->size || *end)
		die("--map FILE,OFFSET,SIZE,ADDRESS");
}

static void read_cpu(struct trace *trace, const char *text)
{
	struct pt_cpu *cpu = &trace->config.cpu;

	cpu->vendor = pcv_intel;
	if (sscanf(text, "%" SCNu16 "/%" SCNu8 "/%" SCNu8, &cpu->family, &cpu->model,
		   &cpu->stepping) < 2)
		die("--cpu FAMILY/MODEL/STEPPING");
	if (pt_cpu_errata(&trace->config.errata, cpu) < 0)
		die("libipt does not know this CPU");
}

static const char *read_args(struct trace *trace, char **argv)
{
	const char *path = NULL;

	for (char **arg = argv + 1; *arg; arg++) {
		if (!strcmp(*arg, "--sum"))
			args.mode = MODE_SUM;
		else if (!strcmp(*arg, "--insns"))
			args.mode = MODE_INSNS;
		else if (!strcmp(*arg, "--packets"))
			args.mode = MODE_PACKETS;
		else if (!strcmp(*arg, "--events"))
			args.events = true;
		else if (!strcmp(*arg, "--join"))
			args.join = true;
		else if (!strcmp(*arg, "--tid") && arg[1])
			args.tid = strtol(*++arg, NULL, 0);
		else if (!strcmp(*arg, "--map") && arg[1])
			read_map(trace, *++arg);
		else if (!strcmp(*arg, "--cpu") && arg[1])
			read_cpu(trace, *++arg);
		else if (**arg == '-' || path)
			die("what is %s?", *arg);
		else
			path = *arg;
	}
	if (!path)
		die("which file?");
	return path;
}

int main(int argc, char **argv)
{
	struct trace trace = { 0 };

	(void)argc;
	pt_config_init(&trace.config);
	map_file(read_args(&trace, argv), &trace);
	new_program(&trace, NO_ID, 0);
	if (trace.size >= sizeof(struct file_header) && !memcmp(trace.bytes, "PERFILE2", 8))
		read_records(&trace);
	else
		read_raw(&trace);
	sort_programs(&trace);
	for (size_t i = 0; i < trace.nr_queues; i++)
		if (args.tid == NO_ID || trace.queues[i].tid == args.tid)
			print_queue(&trace, &trace.queues[i]);
	return 0;
}
