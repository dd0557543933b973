// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_sample: samples; the event's attribute says which fields they have. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "read/perfdata.h"

#define MAX_HELD 4096 /* samples that wait for their deferred call chain */
/* A sample with only these fields has nothing behind them. */
#define SIMPLE_FIELDS                                                                    \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |        \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW | PERF_SAMPLE_IDENTIFIER)

static uint64_t context_of(uint16_t misc, uint64_t ip)
{
	switch (misc & PERF_MISC_CPUMODE) {
	case PERF_MISC_KERNEL:
	case PERF_MISC_HYPERVISOR: return IP_KERNEL;
	case PERF_MISC_GUEST_KERNEL: return IP_GUEST_KERNEL;
	case PERF_MISC_GUEST_USER: return IP_GUEST_USER;
	case PERF_MISC_USER: return IP_USER;
	}
	return ip >> 63 ? IP_KERNEL : IP_USER;
}

/* Words in host byte order: in place if they are aligned and not swapped, else a copy. */
static const uint64_t *words_of(const uint8_t *at, uint64_t nr, bool swap, uint64_t **room,
				size_t *cap)
{
	if (!swap && (uintptr_t)at % 8 == 0)
		return (const uint64_t *)at;
	GROW(*room, nr + 1, *cap);
	memcpy(*room, at, nr * 8);
	for (uint64_t i = 0; swap && i < nr; i++)
		(*room)[i] = __builtin_bswap64((*room)[i]);
	return *room;
}

static const uint8_t *take_words(struct cursor *c, uint64_t nr)
{
	if (nr > (uint64_t)(c->end - c->at) / 8) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	return cursor_bytes(c, nr * 8);
}

static void add_read(struct perfdata *p, uint64_t id, uint64_t value)
{
	GROW(p->reads, p->nr_reads + 1, p->cap_reads);
	p->reads[p->nr_reads++] = (struct count_read){ .id = id, .value = value };
}

static void take_reads(struct perfdata *p, struct cursor *c, uint64_t format)
{
	bool group = format & PERF_READ_GROUP;
	uint64_t nr = group ? cursor_u64(c) : 1, value = 0, id = 0;

	if (!group)
		value = cursor_u64(c);
	if (format & PERF_READ_ENABLED)
		cursor_u64(c);
	if (format & PERF_READ_RUNNING)
		cursor_u64(c);
	for (uint64_t i = 0; i < nr && !c->bad; i++) {
		if (group)
			value = cursor_u64(c);
		if (format & PERF_READ_ID)
			id = cursor_u64(c);
		if (format & PERF_READ_LOST)
			cursor_u64(c);
		/* Without ids, nothing says whose value it is: the sample keeps its own weight. */
		if (!c->bad && format & PERF_READ_ID)
			add_read(p, id, value);
	}
}

/* What a counter counted since it was last read. Its values may come in another order if samples are not sorted. */
static uint64_t count(struct perfdata *p, struct hash_key key, uint64_t value)
{
	uint32_t *at = hash_at(&p->count_index, key);
	uint64_t *last, counted;

	if (!*at) {
		GROW(p->counts, p->nr_counts + 1, p->cap_counts);
		p->counts[p->nr_counts] = 0;
		*at = (uint32_t)++p->nr_counts;
	}
	last = &p->counts[*at - 1];
	counted = value > *last ? value - *last : 0;
	*last += counted;
	return counted;
}

/*
 * Turns the values of counters into what they counted. Each thread has its own counters if it inherited them:
 * they have the same id. Returns the number of counters that the header does not describe.
 */
static uint32_t settle_reads(struct perfdata *p, const struct perf_attr *attr, uint32_t tid)
{
	bool apart = attr->flags & PERF_ATTR_INHERIT && attr->sample_type & PERF_SAMPLE_TID;
	uint64_t thread = apart ? 1ULL << 32 | tid : 0;
	uint32_t unknown = 0;

	for (size_t i = 0; i < p->nr_reads; i++) {
		struct count_read *read = &p->reads[i];
		const struct known_id *known = header_id(p, read->id);

		if (!known) {
			unknown++;
			continue;
		}
		read->attr = known->attr;
		read->counted = count(p, (struct hash_key){ read->id, thread }, read->value);
	}
	return unknown;
}

/* Converts bit fields to the layout of little-endian machines. */
static uint64_t branch_flags(uint64_t value, bool big)
{
	static const uint8_t widths[] = { 1, 1, 1, 1, 16, 4, 2, 4, 3, 31 };
	uint64_t result = 0;
	unsigned from = 64, to = 0;

	if (!big)
		return value;
	for (size_t i = 0; i < sizeof(widths); i++) {
		from -= widths[i];
		result |= (value >> from & ((1ULL << widths[i]) - 1)) << to;
		to += widths[i];
	}
	return result;
}

static void take_branches(struct perfdata *p, struct cursor *c, uint64_t type,
			  struct event_sample *sample)
{
	uint64_t nr = cursor_u64(c);

	if (type & PERF_BRANCH_HW_INDEX)
		cursor_u64(c);
	if (nr > (uint64_t)(c->end - c->at) / sizeof(struct branch)) {
		c->bad = true;
		return;
	}
	GROW(p->branches, nr + 1, p->cap_branches);
	for (uint64_t i = 0; i < nr; i++) {
		p->branches[i].from = cursor_u64(c);
		p->branches[i].to = cursor_u64(c);
		p->branches[i].flags = branch_flags(cursor_u64(c), p->big);
	}
	if (type & PERF_BRANCH_COUNTERS)
		take_words(c, nr);
	sample->branches = p->branches;
	sample->nr_branches = (uint32_t)nr;
}

static const uint8_t *take_regs(struct cursor *c, uint64_t mask, uint64_t *abi, unsigned *nr)
{
	*abi = cursor_u64(c);
	*nr = *abi ? (unsigned)__builtin_popcountll(mask) : 0;
	return take_words(c, *nr);
}

static void take_stack(struct perfdata *p, struct cursor *c)
{
	uint64_t size = cursor_u64(c), used;

	if (!size)
		return;
	p->user.stack = cursor_bytes(c, size);
	used = cursor_u64(c);
	p->user.stack_len = c->bad ? 0 : used < size ? used : size;
}

static void take_user(struct perfdata *p, struct cursor *c, const struct perf_attr *attr,
		      struct event_sample *sample)
{
	uint64_t type = attr->sample_type;
	const uint8_t *regs = NULL;
	unsigned nr = 0;

	p->user = (struct cpu_state){ .mask = attr->sample_regs_user };
	if (type & PERF_SAMPLE_REGS_USER)
		regs = take_regs(c, attr->sample_regs_user, &p->user.abi, &nr);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(p, c);
	if (c->bad || !regs || !nr || !p->user.stack_len)
		return;
	p->user.regs = words_of(regs, nr, p->swap, &p->regs, &p->cap_regs);
	sample->state = &p->user;
}

/* The fields after the user's stack. We need none of them but the last one, the hardware trace. */
static struct sample_trace take_trace(struct cursor *c, const struct perf_attr *attr)
{
	/* In this order; all are one word, but the registers. */
	static const uint64_t words[] = { PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT,
					  PERF_SAMPLE_DATA_SRC,
					  PERF_SAMPLE_TRANSACTION,
					  PERF_SAMPLE_REGS_INTR,
					  PERF_SAMPLE_PHYS_ADDR,
					  PERF_SAMPLE_CGROUP,
					  PERF_SAMPLE_DATA_PAGE_SIZE,
					  PERF_SAMPLE_CODE_PAGE_SIZE };
	struct sample_trace trace = { 0 };
	uint64_t abi;
	unsigned nr;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!(attr->sample_type & words[i]))
			continue;
		if (words[i] == PERF_SAMPLE_REGS_INTR)
			take_regs(c, attr->sample_regs_intr, &abi, &nr);
		else
			cursor_u64(c);
	}
	trace.len = cursor_u64(c);
	trace.bytes = cursor_bytes(c, trace.len);
	return trace;
}

struct chain {
	const uint8_t *at;
	uint64_t nr;
};

/* Reads all fields in their order; some are ignored. */
static struct sample_trace take_fields(struct perfdata *p, struct cursor *c,
				       const struct perf_attr *attr, struct event *ev,
				       struct chain *chain, uint64_t *ip, uint64_t *id)
{
	struct event_sample *sample = &ev->sample;
	uint64_t type = attr->sample_type;

	if (type & PERF_SAMPLE_IDENTIFIER)
		*id = cursor_u64(c);
	if (type & PERF_SAMPLE_IP)
		*ip = cursor_u64(c);
	if (type & PERF_SAMPLE_TID) {
		ev->pid = cursor_u32(c);
		ev->tid = cursor_u32(c);
	}
	if (type & PERF_SAMPLE_TIME)
		ev->time = cursor_u64(c);
	if (type & PERF_SAMPLE_ADDR)
		cursor_u64(c);
	if (type & PERF_SAMPLE_ID)
		*id = cursor_u64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		cursor_u64(c);
	if (type & PERF_SAMPLE_CPU) {
		ev->cpu = cursor_u32(c);
		cursor_u32(c);
	}
	if (type & PERF_SAMPLE_PERIOD)
		sample->weight = cursor_u64(c);
	else
		sample->weight = attr->flags & PERF_ATTR_FREQ ? 1 : attr->sample_period;
	if (type & PERF_SAMPLE_READ)
		take_reads(p, c, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		chain->nr = cursor_u64(c);
		chain->at = take_words(c, chain->nr);
	}
	if (type & PERF_SAMPLE_RAW) {
		sample->raw_len = cursor_u32(c);
		sample->raw = cursor_bytes(c, sample->raw_len);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(p, c, attr->branch_sample_type, sample);
	if (type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER))
		take_user(p, c, attr, sample);
	return type & PERF_SAMPLE_AUX ? take_trace(c, attr) : (struct sample_trace){ 0 };
}

struct sample_trace sample_trace(struct perfdata *p, const struct record *rec, struct event *ev)
{
	const struct attr *attr = record_attr(p, rec);
	struct cursor c = record_body(p, rec);
	struct sample_trace trace = { 0 };
	struct event sample = *ev;
	struct chain chain = { 0 };
	uint64_t ip, id;

	if (!attr)
		return trace;
	trace = take_fields(p, &c, &attr->raw, &sample, &chain, &ip, &id);
	p->nr_reads = p->at_read = 0;
	if (c.bad)
		return (struct sample_trace){ 0 };
	ev->time = sample.time;
	ev->cpu = sample.cpu;
	ev->pid = sample.pid;
	ev->tid = sample.tid;
	return trace;
}

static void hold(struct perfdata *p, const struct record *rec, uint32_t tid, uint64_t cookie)
{
	struct held held = {
		.offset = rec->offset,
		.cookie = cookie,
		.tid = tid,
		.size = rec->size,
	};

	if (p->nr_held == MAX_HELD) {
		/* Give up on the oldest. */
		p->held[0].due = true;
		p->release_held = true;
		p->nr_tail = 0;
	}
	held.bytes = xmalloc(rec->size);
	memcpy(held.bytes, rec->data, rec->size);
	GROW(p->held, p->nr_held + 1, p->cap_held);
	p->held[p->nr_held++] = held;
}

/* They are counted by now: the next sample may come before this one is released. */
static void hold_reads(struct perfdata *p)
{
	struct held *held = &p->held[p->nr_held - 1];

	held->nr_reads = p->nr_reads;
	if (!p->nr_reads)
		return;
	held->reads = xmalloc(p->nr_reads * sizeof(*held->reads));
	memcpy(held->reads, p->reads, p->nr_reads * sizeof(*held->reads));
}

static void take_held_reads(struct perfdata *p, const struct held *held)
{
	GROW(p->reads, held->nr_reads + 1, p->cap_reads);
	if (held->nr_reads)
		memcpy(p->reads, held->reads, held->nr_reads * sizeof(*held->reads));
	p->nr_reads = held->nr_reads;
}

static uint64_t first_address(const struct event_sample *sample)
{
	for (uint32_t i = 0; i < sample->nr; i++) {
		if (!ip_is_marker(sample->ips[i]))
			return sample->ips[i];
	}
	return 0;
}

/*
 * Linux starts a chain with a marker and the sampled pc. toperf writes only the callers: without
 * the pc, the caller would be taken for the sampled function.
 */
static void put_pc_first(struct perfdata *p, struct event_sample *sample, uint64_t ip)
{
	bool in_place = sample->ips == p->ips;

	if (!ip || ip_is_marker(sample->ips[0]) || sample->ips[0] == ip)
		return;
	GROW(p->ips, sample->nr + 1, p->cap_ips);
	memmove(p->ips + 1, in_place ? p->ips : sample->ips, (size_t)sample->nr * 8);
	p->ips[0] = ip;
	sample->ips = p->ips;
	sample->nr++;
}

/* Sets the chain, or only the pc if there is none. `complete`: adds the deferred part. */
static void set_chain(struct perfdata *p, struct event_sample *sample, const struct chain *chain,
		      uint64_t ip, bool complete)
{
	size_t nr = chain->nr;
	bool in_place;

	if (!nr) {
		/* If the sample has registers and a stack copy, src/unwind finds the rest. */
		GROW(p->ips, 1, p->cap_ips);
		p->ips[0] = ip;
		sample->ips = p->ips;
		sample->nr = 1;
		return;
	}
	sample->ips = words_of(chain->at, nr, p->swap, &p->ips, &p->cap_ips);
	sample->nr = (uint32_t)nr;
	if (!complete)
		put_pc_first(p, sample, ip);
	if (first_address(sample) != ip)
		sample->pc = ip;
	if (!complete)
		return;
	nr -= 2;
	in_place = sample->ips == p->ips; /* then GROW moves the words along */
	GROW(p->ips, nr + p->nr_tail + 1, p->cap_ips);
	if (!in_place)
		memcpy(p->ips, sample->ips, nr * 8);
	if (p->nr_tail)
		memcpy(p->ips + nr, p->tail, p->nr_tail * 8);
	sample->ips = p->ips;
	sample->nr = (uint32_t)(nr + p->nr_tail);
}

/*
 * perf record --call-graph lbr: of the user's part, the chain has only the pc. The branches are the
 * calls that did not return, the last one first. Makes the stack that perf makes of them: the start
 * of the function that was called last, then the calls. A sample of the kernel alone has no such part.
 */
static void put_calls(struct perfdata *p, struct event_sample *sample)
{
	bool in_place = sample->ips == p->ips; /* then GROW moves the words along */
	uint32_t nr = 0;

	while (nr < sample->nr && sample->ips[nr] != IP_USER)
		nr++;
	if (nr++ == sample->nr || !sample->nr_branches)
		return;
	GROW(p->ips, nr + 1 + sample->nr_branches, p->cap_ips);
	if (!in_place)
		memcpy(p->ips, sample->ips, (size_t)nr * 8);
	p->ips[nr++] = sample->branches[0].to;
	for (uint32_t i = 0; i < sample->nr_branches; i++)
		p->ips[nr++] = sample->branches[i].from;
	sample->ips = p->ips;
	sample->nr = nr;
	sample->at_calls = true;
}

static bool is_deferred(const struct perfdata *p, const struct chain *chain, uint64_t *cookie)
{
	struct cursor c;

	if (chain->nr < 2)
		return false;
	c = (struct cursor){ chain->at + (chain->nr - 2) * 8, chain->at + chain->nr * 8, p->swap,
			     false };
	if (cursor_u64(&c) != PERF_CONTEXT_USER_DEFERRED)
		return false;
	*cookie = cursor_u64(&c);
	return true;
}

static int unknown_reads(struct reader *r, const struct record *rec, struct event *ev, uint32_t nr)
{
	return reader_damage(r, ev, rec->offset, nr, 0,
			     "sample with counters that the header does not describe: %" PRIu32,
			     nr);
}

/* held: NULL, or a sample whose deferred chain is complete. */
static int parse(struct reader *r, const struct record *rec, struct event *ev,
		 const struct held *held)
{
	struct perfdata *p = r->priv;
	const struct attr *attr = record_attr(p, rec);
	struct cursor c = record_body(p, rec);
	struct event blank = *ev;
	struct chain chain = { 0 };
	uint64_t ip = 0, id = 0, cookie;
	uint32_t unknown = 0;
	bool deferred;

	if (!attr)
		return reader_damage(r, ev, rec->offset, 1, rec->size,
				     "sample of an event that the header does not describe");
	p->nr_reads = p->at_read = 0;
	take_fields(p, &c, &attr->raw, ev, &chain, &ip, &id);
	if (c.bad) {
		*ev = blank;
		p->nr_reads = 0;
		return reader_damage(r, ev, rec->offset, 1, rec->size, "sample is too short");
	}
	if (!(attr->raw.sample_type & ~SIMPLE_FIELDS) && c.end - c.at >= 8) {
		*ev = blank;
		p->nr_reads = 0;
		return reader_damage(r, ev, rec->offset, 1, rec->size, "sample is too long");
	}
	if (held)
		take_held_reads(p, held);
	else
		unknown = settle_reads(p, &attr->raw, ev->tid);
	deferred = is_deferred(p, &chain, &cookie);
	if (deferred && !held) {
		hold(p, rec, ev->tid, cookie);
		hold_reads(p);
		*ev = blank;
		p->nr_reads = 0;
		return unknown ? unknown_reads(r, rec, ev, unknown) : 0;
	}
	ev->kind = EVENT_SAMPLE;
	ev->sample.source = (uint32_t)(attr - p->attrs) + 1;
	ev->sample.context = context_of(rec->misc, ip);
	set_chain(p, &ev->sample, &chain, ip, deferred);
	if (chain.nr && attr->raw.branch_sample_type & PERF_BRANCH_CALL_STACK) {
		put_calls(p, &ev->sample);
		ev->sample.pc = first_address(&ev->sample) == ip ? 0 : ip;
	}
	ev->sample.no_chain =
		attr->raw.sample_type & PERF_SAMPLE_CALLCHAIN && !chain.nr && !ev->sample.state;
	if (!p->nr_reads)
		return 1;
	p->leader = *ev;
	*ev = blank;
	return unknown ? unknown_reads(r, rec, ev, unknown) : sample_next_read(p, ev);
}

int sample_event(struct reader *r, const struct record *rec, struct event *ev)
{
	return parse(r, rec, ev, NULL);
}

int sample_next_read(struct perfdata *p, struct event *ev)
{
	while (p->at_read < p->nr_reads) {
		const struct count_read *read = &p->reads[p->at_read++];

		if (!read->counted)
			continue;
		*ev = p->leader;
		ev->sample.source = read->attr + 1;
		ev->sample.weight = read->counted;
		return 1;
	}
	return 0;
}

bool sample_deferred(struct perfdata *p, const struct record *rec)
{
	const struct attr *attr = record_attr(p, rec);
	struct cursor c = record_body(p, rec);
	uint64_t cookie = cursor_u64(&c), nr = cursor_u64(&c);
	const uint8_t *at = take_words(&c, nr);
	const uint64_t *words;
	uint32_t tid = 0;

	if (!at)
		return false;
	if (attr && attr->back_task && attr->back_task + sizeof(struct perf_record) <= rec->size) {
		struct cursor task = { rec->data + rec->size - attr->back_task + 4,
				       rec->data + rec->size, p->swap, false };

		tid = cursor_u32(&task);
	}
	words = words_of(at, nr, p->swap, &p->tail, &p->cap_tail);
	GROW(p->tail, nr + 1, p->cap_tail);
	if (words != p->tail)
		memcpy(p->tail, words, nr * 8);
	p->nr_tail = nr;
	for (size_t i = 0; i < p->nr_held; i++) {
		if (p->held[i].cookie == cookie && (!tid || p->held[i].tid == tid)) {
			p->held[i].due = true;
			p->release_held = true;
		}
	}
	return true;
}

int sample_next_held(struct reader *r, struct event *ev)
{
	struct perfdata *p = r->priv;

	for (size_t i = 0; i < p->nr_held; i++) {
		struct held held = p->held[i];
		struct record rec;
		int ret;

		if (!held.due)
			continue;
		memmove(p->held + i, p->held + i + 1, (--p->nr_held - i) * sizeof(held));
		/* The event borrows from the record: keep it until the next call. */
		buf_clear(&p->scratch);
		buf_add(&p->scratch, held.bytes, held.size);
		free(held.bytes);
		rec = record_at(p, (uint8_t *)p->scratch.data, held.offset);
		ret = parse(r, &rec, ev, &held);
		free(held.reads);
		return ret;
	}
	p->release_held = false;
	return 0;
}

void sample_begin(struct perfdata *p)
{
	p->held = NULL;
	p->tail = p->ips = p->regs = NULL;
	p->reads = NULL;
	p->branches = NULL;
	p->count_index = (struct hash){ 0 };
	p->counts = NULL;
	p->nr_counts = p->cap_counts = 0;
	p->nr_held = p->cap_held = p->nr_tail = p->cap_tail = 0;
	p->nr_reads = p->at_read = p->cap_reads = 0;
	p->cap_ips = p->cap_regs = p->cap_branches = 0;
	p->release_held = false;
}

void sample_release(struct perfdata *p)
{
	for (size_t i = 0; i < p->nr_held; i++) {
		free(p->held[i].bytes);
		free(p->held[i].reads);
	}
	hash_release(&p->count_index);
	free(p->counts);
	free(p->held);
	free(p->tail);
	free(p->reads);
	free(p->ips);
	free(p->regs);
	free(p->branches);
}
