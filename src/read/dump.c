// SPDX-License-Identifier: GPL-2.0-or-later
/* dump: events as text, one per line. See doc/dump.md. The tests write their input in it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "format.h"
#include "model/frame.h"

#define MAX_CHAIN 65536
#define NR_STRINGS 4 /* strings an event may have */

struct dump {
	const char *at, *end;		/* the rest of the line */
	struct buf strings[NR_STRINGS]; /* unquoted strings of the current event */
	unsigned nr_strings;
	uint64_t *ips;
	size_t nr_ips, cap_ips;
	uint8_t build_id[20];
	struct branch *branches;
	size_t nr_branches, cap_branches;
	struct buf bytes; /* decoded raw= or data= of the current event */
	bool headed;
	bool split; /* the sample at hand is a chain to be split */
};

struct word {
	const char *text; /* key=value: the key */
	size_t len;
	const char *value; /* NULL if there is no '=' */
	size_t value_len;
	bool quoted;
};

static int dump_probe(const uint8_t *head, size_t len)
{
	return len >= 12 && !memcmp(head, "kscope-dump ", 12) ? 96 : 0;
}

/* 1: a word, 0: the end of the line, -1: an unterminated quote. */
static int next_word(struct dump *d, struct word *word)
{
	const char *start;

	while (d->at < d->end && *d->at == ' ')
		d->at++;
	if (d->at == d->end)
		return 0;
	memset(word, 0, sizeof(*word));
	start = d->at;
	while (d->at < d->end && *d->at != ' ' && *d->at != '=' && *d->at != '"')
		d->at++;
	word->text = start;
	word->len = (size_t)(d->at - start);
	if (d->at < d->end && *d->at == '=') {
		word->value = ++d->at;
		if (d->at == d->end || *d->at != '"') {
			while (d->at < d->end && *d->at != ' ')
				d->at++;
			word->value_len = (size_t)(d->at - word->value);
			return 1;
		}
	}
	if (d->at < d->end && *d->at == '"') {
		const char *end = text_quote_end(d->at, d->end);

		if (!end)
			return -1;
		word->value = d->at + 1;
		word->value_len = (size_t)(end - d->at - 1);
		word->quoted = true;
		d->at = end + 1;
	}
	return 1;
}

static bool is(const struct word *word, const char *text)
{
	return word->len == strlen(text) && !memcmp(word->text, text, word->len);
}

static const char *keep(struct dump *d, const struct word *word)
{
	struct buf *to = &d->strings[d->nr_strings++ % NR_STRINGS];

	buf_clear(to);
	text_unquote(to, word->value, word->value_len);
	return to->data;
}

static bool get_task(const struct word *word, uint32_t *pid, uint32_t *tid)
{
	const char *slash = word->value ? memchr(word->value, '/', word->value_len) : NULL;

	return slash && text_u32(word->value, (size_t)(slash - word->value), pid) &&
	       text_u32(slash + 1, word->value_len - (size_t)(slash + 1 - word->value), tid);
}

static bool get_bytes(const struct word *word, uint8_t *to, size_t max, uint8_t *len)
{
	if (word->value_len % 2 || word->value_len / 2 > max)
		return false;
	for (size_t i = 0; i < word->value_len / 2; i++) {
		uint64_t byte;

		if (!text_hex(word->value + 2 * i, 2, &byte))
			return false;
		to[i] = (uint8_t)byte;
	}
	*len = (uint8_t)(word->value_len / 2);
	return true;
}

static bool number(const struct word *word, uint64_t *value)
{
	return word->value && text_u64(word->value, word->value_len, value);
}

static bool number32(const struct word *word, uint32_t *value)
{
	return word->value && text_u32(word->value, word->value_len, value);
}

static bool source_word(struct dump *d, struct event_source *source, const struct word *word)
{
	if (is(word, "id"))
		return number32(word, &source->id);
	if (is(word, "type"))
		return number32(word, &source->type);
	if (is(word, "config"))
		return number(word, &source->config);
	if (is(word, "branch-type"))
		return number(word, &source->branch_type);
	if (is(word, "freq") || is(word, "period")) {
		source->freq = is(word, "freq");
		return number(word, &source->period);
	}
	if (is(word, "late"))
		source->late = true;
	else if (is(word, "branches"))
		source->branches = true;
	else if (is(word, "raw"))
		source->raw = true;
	else if (is(word, "no-chain"))
		source->lacks |= LACKS_CHAIN;
	else if (is(word, "no-time"))
		source->lacks |= LACKS_TIME;
	else if (is(word, "no-cpu"))
		source->lacks |= LACKS_CPU;
	else if (is(word, "no-threads"))
		source->lacks |= LACKS_THREADS;
	else if (is(word, "name") && word->quoted)
		source->name = keep(d, word);
	else if (is(word, "unit") && word->quoted)
		source->unit = keep(d, word);
	else
		return false;
	return true;
}

static bool map_word(struct dump *d, struct event_map *map, const struct word *word)
{
	if (is(word, "addr"))
		return number(word, &map->addr);
	if (is(word, "len"))
		return number(word, &map->len);
	if (is(word, "offset"))
		return number(word, &map->offset);
	if (is(word, "build-id")) {
		map->build_id = d->build_id;
		return get_bytes(word, d->build_id, sizeof(d->build_id), &map->build_id_len);
	}
	if (is(word, "whole"))
		map->whole = true;
	else if (is(word, "kernel"))
		map->kernel = true;
	else if (is(word, "linked"))
		map->as_linked = true;
	else if (is(word, "foreign"))
		map->foreign = true;
	else if (is(word, "guest"))
		map->guest = true;
	else if (is(word, "path") && word->quoted)
		map->path = keep(d, word);
	else if (is(word, "anchor") && word->quoted)
		map->anchor = keep(d, word);
	else if (is(word, "names") && word->quoted)
		map->names = keep(d, word);
	else if (is(word, "prot") && word->value_len == 3)
		map->prot = (uint8_t)((word->value[0] == 'r' ? PROT_READ : 0) |
				      (word->value[1] == 'w' ? PROT_WRITE : 0) |
				      (word->value[2] == 'x' ? PROT_EXEC : 0));
	else
		return false;
	return true;
}

static bool context_of(const struct word *word, uint64_t *context)
{
	*context = ip_marker_by_name(word->text, word->len);
	if (*context)
		return true;
	if (word->len > 7 && !memcmp(word->text, "marker-", 7) &&
	    text_u64(word->text + 7, word->len - 7, context)) {
		*context = -*context;
		return ip_is_marker(*context);
	}
	return false;
}

/* Of an address. Handles of frames, which follow IP_NAMED, are only in chains. */
static bool code_context(const struct word *word, uint64_t *context)
{
	return context_of(word, context) && *context != IP_NAMED;
}

/* "name" or "name"@"binary" */
static bool named_frame(struct reader *r, const struct word *word, uint64_t *ip)
{
	struct dump *d = r->priv;
	struct strtab *strings = r->frames->strings;
	const char *name = keep(d, word);
	uint32_t binary = 0, handle = str_intern_z(strings, name);

	if (d->at < d->end && *d->at == '@') {
		struct word second;

		d->at++;
		if (next_word(d, &second) != 1 || !second.quoted)
			return false;
		binary = str_intern_z(strings, keep(d, &second));
	}
	*ip = frame_named(r->frames, handle, binary, 0);
	return true;
}

/* Parses the rest of the line as a call chain, into d->ips. */
static bool chain(struct reader *r, uint64_t *first_context)
{
	struct dump *d = r->priv;
	uint64_t context = 0, ip;
	bool named = false;
	struct word word;
	int ret;

	d->nr_ips = 0;
	while ((ret = next_word(d, &word)) > 0) {
		if (word.quoted && !word.len) {
			if (!named || !named_frame(r, &word, &ip))
				return false;
		} else if (context_of(&word, &ip)) {
			context = ip;
			named = is(&word, "named");
			if (named && d->nr_ips)
				return false;
		} else if (!context || named || !text_u64(word.text, word.len, &ip) ||
			   ip_is_marker(ip)) {
			return false;
		}
		/* marker-4000 is nothing but a value in the data. */
		if (d->nr_ips == 0)
			*first_context = context == IP_NAMED && !named ? IP_USER : context;
		if (d->nr_ips >= MAX_CHAIN)
			return false;
		GROW(d->ips, d->nr_ips + 1, d->cap_ips);
		d->ips[d->nr_ips++] = ip;
	}
	return ret == 0 && d->nr_ips > 0;
}

/* Drops the leading context marker. False if there are others: pass/split wants none. */
static bool without_markers(struct event_sample *sample)
{
	sample->ips++;
	sample->nr--;
	for (uint32_t i = 0; i < sample->nr; i++) {
		if (ip_is_marker(sample->ips[i]))
			return false;
	}
	return sample->nr > 0;
}

/* FROM/TO/FLAGS */
static bool branch_word(struct dump *d, const struct word *word)
{
	struct branch branch;
	uint64_t *fields[] = { &branch.from, &branch.to, &branch.flags };
	const char *at = word->text, *end = at + word->len;

	if (word->value || d->nr_branches >= MAX_CHAIN)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		const char *slash = i < 2 ? memchr(at, '/', (size_t)(end - at)) : end;

		if (!slash || !text_u64(at, (size_t)(slash - at), fields[i]))
			return false;
		at = slash + 1;
	}
	GROW(d->branches, d->nr_branches + 1, d->cap_branches);
	d->branches[d->nr_branches++] = branch;
	return true;
}

/* The branches up to the closing bracket. */
static bool branch_list(struct dump *d, struct event_sample *sample)
{
	struct word word;
	int ret;

	d->nr_branches = 0;
	GROW(d->branches, 1, d->cap_branches);
	while ((ret = next_word(d, &word)) > 0 && !is(&word, "]")) {
		if (!branch_word(d, &word))
			return false;
	}
	sample->branches = d->branches;
	sample->nr_branches = (uint32_t)d->nr_branches;
	return ret > 0;
}

static bool hex_bytes(struct dump *d, const struct word *word)
{
	if (!word->value || word->value_len % 2)
		return false;
	buf_clear(&d->bytes);
	for (size_t i = 0; i < word->value_len; i += 2) {
		uint64_t byte;

		if (!text_hex(word->value + i, 2, &byte))
			return false;
		buf_addc(&d->bytes, (char)byte);
	}
	return true;
}

static bool raw_bytes(struct dump *d, struct event_sample *sample, const struct word *word)
{
	if (!hex_bytes(d, word) || d->bytes.len > UINT32_MAX)
		return false;
	sample->raw = (uint8_t *)d->bytes.data;
	sample->raw_len = (uint32_t)d->bytes.len;
	return true;
}

static bool sample_word(struct reader *r, struct event_sample *sample, const struct word *word)
{
	struct dump *d = r->priv;
	uint64_t context = 0;

	if (is(word, "source"))
		return number32(word, &sample->source);
	if (is(word, "weight"))
		return number(word, &sample->weight);
	if (is(word, "count"))
		return number(word, &sample->count);
	if (is(word, "pc"))
		return number(word, &sample->pc);
	if (is(word, "in"))
		return word->value &&
		       (sample->context = ip_marker_by_name(word->value, word->value_len)) &&
		       sample->context != IP_NAMED;
	if (is(word, "raw"))
		return raw_bytes(d, sample, word);
	if (is(word, "["))
		return branch_list(r->priv, sample);
	if (is(word, "split"))
		return d->split = true;
	if (is(word, "no-chain"))
		return sample->no_chain = true;
	if (is(word, "at-calls"))
		return sample->at_calls = true;
	if (!is(word, ":") || !chain(r, &context))
		return false;
	if (!sample->context)
		sample->context = context;
	sample->ips = d->ips;
	sample->nr = (uint32_t)d->nr_ips;
	return !d->split || without_markers(sample);
}

static bool check_word(struct reader *r, struct event_sample *sample, const struct word *word)
{
	return is(word, ":") && sample_word(r, sample, word);
}

static bool alloc_word(struct reader *r, struct event_alloc *alloc, const struct word *word)
{
	struct dump *d = r->priv;

	if (is(word, "new") || is(word, "resize") || is(word, "free")) {
		alloc->op = is(word, "new")    ? ALLOC_NEW
			    : is(word, "free") ? ALLOC_FREE
					       : ALLOC_RESIZE;
		return true;
	}
	if (is(word, "ptr"))
		return number(word, &alloc->ptr);
	if (is(word, "size"))
		return number(word, &alloc->size);
	if (is(word, "at"))
		return number(word, &alloc->offset);
	if (is(word, "by") && word->quoted) {
		alloc->allocator = keep(d, word);
		return true;
	}
	if (!is(word, ":") || !chain(r, &alloc->context))
		return false;
	/* A chain without addresses still has its context marker. */
	alloc->ips = d->ips;
	alloc->nr = (uint32_t)d->nr_ips;
	return true;
}

static bool call_word(struct event_call *call, const struct word *word)
{
	uint64_t context;

	if (is(word, "enter") || is(word, "leave"))
		call->leave = is(word, "leave");
	else if (is(word, "function"))
		return number(word, &call->function);
	else if (is(word, "caller"))
		return number(word, &call->caller);
	else if (!word->value && code_context(word, &context))
		call->context = context;
	else
		return false;
	return true;
}

static bool branch_kind(const struct word *word, enum branch_kind *kind)
{
	static const char *const kinds[] = { "jump",  "call",  "return", "enter",
					     "leave", "begin", "end" };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!word->value && is(word, kinds[i])) {
			*kind = (enum branch_kind)i;
			return true;
		}
	}
	return false;
}

/* By how much the stack pointer moved: down=N or up=N. */
static bool moved_word(struct event_branch *branch, const struct word *word)
{
	uint32_t size;

	if (!number32(word, &size) || size > INT32_MAX)
		return false;
	branch->moved = is(word, "up") ? (int32_t)size : -(int32_t)size;
	branch->has_moved = true;
	return true;
}

static bool pushed_word(struct event_branch *branch, const struct word *word)
{
	uint32_t size;

	if (!number32(word, &size) || size > 8)
		return false;
	branch->pushed = (uint8_t)size;
	return true;
}

static bool guest_word(struct event_branch *branch, const struct word *word)
{
	uint32_t guest;

	if (!number32(word, &guest) || guest > UINT16_MAX)
		return false;
	branch->guest = (uint16_t)guest;
	return true;
}

static bool flow_word(struct event_branch *branch, const struct word *word)
{
	uint64_t context;

	if (is(word, "from"))
		return number(word, &branch->from);
	if (is(word, "to"))
		return number(word, &branch->to);
	if (is(word, "next"))
		return number(word, &branch->next);
	if (is(word, "sp"))
		return number(word, &branch->sp);
	if (is(word, "left"))
		return number(word, &branch->left);
	if (is(word, "taken"))
		return number(word, &branch->taken);
	if (is(word, "after"))
		return number(word, &branch->after);
	if (is(word, "up") || is(word, "down"))
		return moved_word(branch, word);
	if (is(word, "pushed"))
		return pushed_word(branch, word);
	if (is(word, "space"))
		return number(word, &branch->space);
	if (is(word, "over"))
		return branch->over = true;
	if (is(word, "by-thread"))
		return branch->by_thread = true;
	if (is(word, "direct"))
		return branch->direct = true;
	if (is(word, "guest"))
		return guest_word(branch, word);
	if (is(word, "instructions"))
		return number(word, &branch->instructions);
	if (is(word, "cycles"))
		return number(word, &branch->cycles);
	if (branch_kind(word, &branch->kind))
		return true;
	if (word->value || !code_context(word, &context))
		return false;
	branch->context = context;
	return true;
}

static bool mask_word(struct event_mask *mask, const struct word *word)
{
	static const char *const states[] = { "unknown", "on", "off" };
	uint64_t context;

	if (is(word, "instructions"))
		return number(word, &mask->instructions);
	if (word->value)
		return false;
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (is(word, states[i])) {
			mask->interrupts = (enum event_interrupts)i;
			return true;
		}
	}
	if (!code_context(word, &context))
		return false;
	mask->context = context;
	return true;
}

static bool note_word(struct event_note *note, const struct word *word)
{
	uint64_t context;

	if (is(word, "value"))
		return number(word, &note->value);
	if (is(word, "at"))
		return number(word, &note->address);
	if (is(word, "instructions"))
		return number(word, &note->instructions);
	if (is(word, "cycles"))
		return number(word, &note->cycles);
	if (word->value)
		return false;
	for (unsigned i = 0; i < NOTE_KINDS; i++) {
		if (is(word, note_names[i])) {
			note->kind = (enum note_kind)i;
			return true;
		}
	}
	if (!code_context(word, &context))
		return false;
	note->context = context;
	return true;
}

static bool symbol_word(struct dump *d, struct event_symbol *symbol, const struct word *word)
{
	uint64_t type;

	if (is(word, "addr"))
		return number(word, &symbol->addr);
	if (is(word, "len"))
		return number(word, &symbol->len);
	if (is(word, "gone")) {
		symbol->gone = true;
	} else if (is(word, "user")) {
		symbol->user = true;
	} else if (is(word, "binary") && word->quoted) {
		symbol->binary = keep(d, word);
	} else if (is(word, "type")) {
		if (!number(word, &type) || type > UINT16_MAX)
			return false;
		symbol->type = (uint16_t)type;
	} else if (is(word, "name") && word->quoted) {
		symbol->name = keep(d, word);
	} else {
		return false;
	}
	return true;
}

static bool switch_word(struct event_switch *sched, const struct word *word)
{
	if (is(word, "other"))
		return get_task(word, &sched->other_pid, &sched->other_tid);
	if (is(word, "out"))
		sched->out = true;
	else if (is(word, "preempted"))
		sched->preempted = true;
	else
		return is(word, "in");
	return true;
}

static bool aux_word(struct dump *d, struct event_aux *aux, const struct word *word)
{
	if (is(word, "offset"))
		return number(word, &aux->offset);
	if (is(word, "len") && !aux->data) /* data= implies the length */
		return number(word, &aux->len);
	if (is(word, "flags"))
		return number(word, &aux->flags);
	if (is(word, "data")) {
		if (!hex_bytes(d, word))
			return false;
		aux->data = (uint8_t *)d->bytes.data;
		aux->len = d->bytes.len;
		return true;
	}
	if (!is(word, "kind") || !word->quoted)
		return false;
	aux->kind = keep(d, word);
	return true;
}

static bool event_word(struct reader *r, struct event *ev, const struct word *word)
{
	struct dump *d = r->priv;

	if (is(word, "time"))
		return word->value && text_seconds(word->value, word->value_len, &ev->time);
	if (is(word, "cpu"))
		return number32(word, &ev->cpu);
	if (is(word, "task"))
		return get_task(word, &ev->pid, &ev->tid);
	switch (ev->kind) {
	case EVENT_META:
		if (is(word, "key") && word->quoted)
			ev->meta.key = keep(d, word);
		else if (is(word, "value") && word->quoted)
			ev->meta.value = keep(d, word);
		else
			return false;
		return true;
	case EVENT_SOURCE: return source_word(d, &ev->source, word);
	case EVENT_COMM:
		if (is(word, "exec"))
			ev->comm.exec = true;
		else if (is(word, "name") && word->quoted)
			ev->comm.comm = keep(d, word);
		else
			return false;
		return true;
	case EVENT_FORK:
	case EVENT_EXIT:
		if (is(word, "fresh"))
			return ev->fork.fresh = true;
		return is(word, "parent") &&
		       get_task(word, &ev->fork.parent_pid, &ev->fork.parent_tid);
	case EVENT_MAP: return map_word(d, &ev->map, word);
	case EVENT_SAMPLE: return sample_word(r, &ev->sample, word);
	case EVENT_CHECK: return check_word(r, &ev->sample, word);
	case EVENT_LOST:
		if (is(word, "damage"))
			ev->lost.damage = true;
		else if (is(word, "count"))
			return number(word, &ev->lost.count);
		else
			return is(word, "bytes") && number(word, &ev->lost.bytes);
		return true;
	case EVENT_ALLOC: return alloc_word(r, &ev->alloc, word);
	case EVENT_CALL: return call_word(&ev->call, word);
	case EVENT_BRANCH: return flow_word(&ev->branch, word);
	case EVENT_MASK: return mask_word(&ev->mask, word);
	case EVENT_NOTE: return note_word(&ev->note, word);
	case EVENT_COUNTER:
		if (is(word, "source"))
			return number32(word, &ev->counter.source);
		return is(word, "value") && number(word, &ev->counter.value);
	case EVENT_SYMBOL: return symbol_word(d, &ev->symbol, word);
	case EVENT_SWITCH: return switch_word(&ev->sched, word);
	case EVENT_AUX: return aux_word(d, &ev->aux, word);
	default: return false;
	}
}

/* A trace of threads knows neither stack pointers nor guests: src/pass/track_thread.c relies on it. */
static bool is_branch(const struct event_branch *branch)
{
	return branch->context && !(branch->by_thread &&
				    (branch->sp || branch->left || branch->taken || branch->guest));
}

/* Does the event have all mandatory words, and none that contradict each other? */
static bool complete(const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_META: return ev->meta.key && ev->meta.value;
	case EVENT_COMM: return ev->comm.comm;
	case EVENT_MAP: return ev->map.path;
	case EVENT_SAMPLE:
	case EVENT_CHECK: return ev->sample.ips;
	case EVENT_ALLOC: return ev->alloc.allocator && ev->alloc.ips;
	case EVENT_CALL: return ev->call.context;
	case EVENT_BRANCH: return is_branch(&ev->branch);
	case EVENT_MASK: return ev->mask.context;
	case EVENT_NOTE: return ev->note.context;
	case EVENT_SYMBOL: return ev->symbol.name;
	case EVENT_AUX: return ev->aux.kind;
	default: return true;
	}
}

static bool kind_of(const struct word *word, enum event_kind *kind)
{
	for (unsigned i = 0; i < EVENT_KINDS; i++) {
		if (is(word, event_names[i])) {
			*kind = (enum event_kind)i;
			return true;
		}
	}
	return false;
}

static bool parse_line(struct reader *r, struct event *ev)
{
	struct dump *d = r->priv;
	struct word word;
	int ret;

	d->nr_strings = 0;
	d->split = false;
	if (next_word(d, &word) != 1 || !kind_of(&word, &ev->kind))
		return false;
	if (ev->kind == EVENT_SWITCH)
		ev->sched.other_pid = ev->sched.other_tid = NO_TASK;
	while ((ret = next_word(d, &word)) > 0) {
		if (!event_word(r, ev, &word))
			return false;
	}
	/* Too many strings: the first were overwritten. A sample's strings are interned instead. */
	if (d->nr_strings > NR_STRINGS && ev->kind != EVENT_SAMPLE && ev->kind != EVENT_CHECK)
		return false;
	if (ret != 0 || !complete(ev))
		return false;
	if (d->split)
		ev->kind = EVENT_CHAIN;
	return true;
}

static int dump_next(struct reader *r, struct event *ev)
{
	struct dump *d = r->priv;
	const char *line;
	size_t len;

	for (;;) {
		uint64_t offset = in_offset(r->in);
		struct event blank = *ev;
		bool cut;

		if (!text_line(r->in, &line, &len))
			return 0;
		cut = !text_line_ended(r->in);
		if (!d->headed) {
			d->headed = true;
			if (len != 13 || memcmp(line, "kscope-dump 1", 13) != 0)
				return err_at(&r->err, ERR_INPUT, r->in->path, offset,
					      "expected \"kscope-dump 1\" on the first line");
			if (!cut)
				continue;
		}
		if (cut)
			return reader_damage(r, ev, offset, 1, len, TEXT_CUT);
		if (!len || line[0] == '#')
			continue;
		d->at = line;
		d->end = line + len;
		if (parse_line(r, ev))
			return 1;
		*ev = blank;
		return reader_damage(r, ev, offset, 1, len, "invalid event: %.*s",
				     len > 60 ? 60 : (int)len, line);
	}
}

static void dump_close(struct reader *r)
{
	struct dump *d = r->priv;

	for (unsigned i = 0; i < NR_STRINGS; i++)
		buf_release(&d->strings[i]);
	buf_release(&d->bytes);
	free(d->ips);
	free(d->branches);
}

const struct reader_ops read_dump = {
	.name = "dump",
	.about = "events as text, one per line",
	.probe = dump_probe,
	.header = true,
	.priv_size = sizeof(struct dump),
	.next = dump_next,
	.close = dump_close,
};
