/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the perf.data reader share.
 *
 *	perfdata.c		records: decompressed and sorted by time
 *	perfdata_header.c	the header and the event attributes
 *	perfdata_feature.c	features: machine, build ids, event names
 *	perfdata_name.c		names of events that have none
 *	perfdata_tracing.c	names of tracepoints, and of simpleperf's events
 *	perfdata_simple.c	what simpleperf adds
 *	perfdata_record.c	tasks, maps, losses, switches
 *	perfdata_sample.c	samples
 *	perfdata_pt.c		the branches of Intel PT, with the code from perfdata_code.c
 *	perfdata_trace.c	the bytes of its traces
 *	perfdata_survey.c	the first reading of a file with Intel PT
 */
#ifndef KSCOPE_READ_PERFDATA_H
#define KSCOPE_READ_PERFDATA_H

#include <string.h>

#include "abi/perf_file.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/unpack.h"
#include "format.h"
#include "base/order.h"

/* A bounded buffer in either byte order. Reading past the end returns 0 and sets bad. */
struct cursor {
	const uint8_t *at, *end;
	bool swap, bad;
};

struct attr {
	struct perf_attr raw; /* in host byte order, with the bits as on a little-endian machine */
	char *name;	      /* NULL: unknown */
	char *unit;	      /* NULL: unknown */
	bool scaled;	      /* the unit is that of perf stat's output, not of weights */
	/* Offsets: from the start of a sample, from the end of other records. 0: absent. */
	uint32_t sample_id, sample_time;
	uint32_t back_id, back_time, back_cpu, back_task, back_all;
};

struct known_id {
	uint32_t attr;
};

struct build_id {
	uint8_t bytes[20], len;
};

struct fact {
	const char *key;
	char *value;
};

struct record {
	const uint8_t *data; /* aligned, including the header */
	uint32_t type;
	uint16_t misc, size;
	uint64_t offset; /* in the file; for a compressed record, that of its container */
	bool packed;	 /* it was compressed; set while it is read */
};

struct count_read { /* a counter's value in a sample */
	uint64_t id, value;
	uint32_t attr;	  /* found by the id */
	uint64_t counted; /* since its last value */
};

/* A sample with a deferred user call chain, which comes when the task leaves the kernel. */
struct held {
	uint64_t *bytes;
	uint64_t offset, cookie;
	uint32_t tid;
	uint16_t size;
	bool due; /* to be emitted */
	struct count_read *reads;
	size_t nr_reads;
};

/* A sequence of records: the file itself, or one of the data.N files next to it. */
struct stream {
	struct in *in;
	struct in own;	   /* used unless `in` is the reader's own file */
	uint64_t data_end; /* UINT64_MAX: the end of the file */
	uint64_t newest;   /* latest time read */
	struct unpack *unpack;
	struct buf packed, plain; /* the current compressed record, and records out of it */
	size_t packed_at, plain_at;
	bool packed_bad, ended;
	bool was_full; /* the last step of unpacking used all of its room */
};

struct perfdata {
	bool swap, big; /* the file's byte order is not the host's; is big-endian */
	bool pipe;
	bool folder;		    /* a directory, as perf record --kcore and --threads write */
	struct stream *streams, *s; /* s: the current one */
	size_t nr_streams;

	struct attr *attrs;
	size_t nr_attrs, cap_attrs;
	struct hash id_index; /* id to index in ids, + 1 */
	struct known_id *ids;
	size_t nr_ids, cap_ids;
	struct build_id *build_ids;
	size_t nr_build_ids, cap_build_ids;
	struct hash build_id_index;	 /* hash of the path to index in build_ids, + 1 */
	struct build_id kernel_build_id; /* under any name (/boot/vmlinux); len 0: none */
	struct fact *facts;
	size_t nr_facts, cap_facts;
	size_t told_facts, told_attrs;
	bool told_idle, idle_waits;
	struct event idle_sample; /* held back until the comm of its task is emitted */
	char *kallsyms;		  /* path, if the directory has one */
	struct buf tracing;	  /* tracing data: the formats of tracepoints */
	bool told_tracing;
	struct hash known_names; /* (config, type) to index in names, + 1 */
	char **names;
	size_t nr_names, cap_names;
	struct buf split; /* a record of simpleperf that comes in parts */
	const char *aux_kind;

	struct order order;
	struct buf scratch; /* a record that bypasses the sorting */
	struct record now;  /* the record to turn into an event; .size 0: none */
	bool ended;

	uint64_t aux_left, aux_offset, aux_at; /* of the trace data that follows AUXTRACE */
	uint32_t aux_cpu, aux_tid;

	struct buf text; /* of the current event */
	struct build_id build_id;
	struct cpu_state user;
	uint64_t *ips, *regs;
	size_t cap_ips, cap_regs;
	struct branch *branches;
	size_t cap_branches;

	struct count_read *reads; /* of the sample in `leader`: each becomes a sample */
	size_t nr_reads, cap_reads, at_read;
	struct event leader;
	struct hash count_index; /* (id, 1 << 32 | thread or 0) to index in counts, + 1 */
	uint64_t *counts;	 /* the last values of the counters */
	size_t nr_counts, cap_counts;

	struct held *held;
	size_t nr_held, cap_held;
	bool release_held;
	uint64_t *tail; /* the deferred part of the chains that are due */
	size_t nr_tail, cap_tail;

	uint64_t data_start;	/* of the file; 0: a pipe */
	struct perfdata_pt *pt; /* NULL: no Intel PT, or it is not decoded */
	bool surveyed;		/* pt knows all of the file */
	const struct stream
		*survey_of; /* this is the first reading, for pt: the streams of the second */
	uint64_t spooled;   /* by the first reading: bytes of traces in compressed samples */
	bool spool_full;
	struct event ahead;	/* an event of the file that waits for branches before it */
	bool has_ahead, at_end; /* at_end: instead, the end of the file */

	uint64_t unknown;      /* records of unknown type */
	uint32_t unknown_type; /* type of the first one */
};

static inline uint16_t cursor_u16(struct cursor *c)
{
	uint16_t value;

	if (c->end - c->at < 2) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, 2);
	c->at += 2;
	return c->swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	uint32_t value;

	if (c->end - c->at < 4) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, 4);
	c->at += 4;
	return c->swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	uint64_t value;

	if (c->end - c->at < 8) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, 8);
	c->at += 8;
	return c->swap ? __builtin_bswap64(value) : value;
}

/* NULL if fewer than `len` bytes are left. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t len)
{
	const uint8_t *at = c->at;

	if ((uint64_t)(c->end - c->at) < len) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	c->at += len;
	return at;
}

/* The part of a record after its header. */
static inline struct cursor record_body(const struct perfdata *p, const struct record *rec)
{
	return (struct cursor){ .at = rec->data + sizeof(struct perf_record),
				.end = rec->data + rec->size,
				.swap = p->swap };
}

/* Decodes the record header at `data`. */
struct record record_at(const struct perfdata *p, const uint8_t *data, uint64_t offset);

/* ---- perfdata.c ---- */

/* The next event of the file itself, without what is decoded. */
int perfdata_next_event(struct reader *r, struct event *ev);

/* ---- perfdata_survey.c ---- */

/* Reads the whole file, but not what follows AUXTRACE records. */
int perfdata_survey(struct reader *r);
/* In this first reading: a sample, before it is sorted. -1: r->err */
int perfdata_survey_sample(struct reader *r, const struct record *rec);
/* Likewise: true if p->now is not to become an event. */
bool perfdata_survey_record(struct perfdata *p);
void perfdata_close_stream(struct stream *s);

/* ---- perfdata_header.c ---- */

/* Also opens the streams. */
int header_read(struct reader *r);
/* Takes an attribute and its ids from a record, as in a pipe. False: damaged. */
bool header_attr_record(struct perfdata *p, const struct record *rec);
bool header_update_record(struct perfdata *p, const struct record *rec);
/* Names an event unless it has a name. Takes ownership of `name`. */
void header_name(struct perfdata *p, size_t attr, char *name);
/* The event `attr` has this id. */
void header_add_id(struct perfdata *p, uint64_t id, uint32_t attr);
void header_release(struct perfdata *p);
/* The attribute with this id, or NULL. */
static inline struct known_id *header_id(const struct perfdata *p, uint64_t id)
{
	uint32_t at = hash_get(&p->id_index, (struct hash_key){ id, 0 });

	return at ? &p->ids[at - 1] : NULL;
}

/* ---- perfdata_name.c ---- */

/* Names an event that has no name, if perf would make one. Call it before the event is passed on. */
void name_event(const struct perfdata *p, struct attr *attr);

/* ---- perfdata_tracing.c ---- */

/* Keeps the data. False: they are damaged, and some names may be missing. */
bool tracing_take(struct perfdata *p, const uint8_t *data, size_t len);
bool tracing_meta_info(struct perfdata *p, struct cursor *c);
/* NULL: unknown */
const char *tracing_name(const struct perfdata *p, uint32_t type, uint64_t config);
void tracing_release(struct perfdata *p);

/* ---- perfdata_simple.c ---- */

/* Is it a record of simpleperf? */
bool simple_type(uint32_t type);
uint32_t simple_size(const struct record *rec);
/* False: damaged. */
bool simple_record(struct perfdata *p, const struct record *rec);

/* ---- perfdata_resync.c ---- */

bool record_type_known(uint32_t type);
/* False: no version of perf or simpleperf has such a type. */
bool resync_type(uint32_t type);
/*
 * Where records begin; `ended` if the data ends here. False: nowhere, and *at is how much has been
 * searched.
 */
bool resync_search(const struct perfdata *p, const uint8_t *data, size_t len, bool ended,
		   size_t *at);
/* Do records begin here? */
bool resync_follows(const struct perfdata *p, const uint8_t *data, size_t len);
/*
 * Where others begin inside a record, whose size is wrong then; 0: nowhere. `have` bytes follow rec->data.
 */
size_t resync_hidden(const struct perfdata *p, const struct record *rec, size_t have);

/* ---- perfdata_feature.c ---- */

bool feature_wanted(unsigned bit);
/* False: damaged. */
bool feature_read(struct perfdata *p, unsigned bit, struct cursor *c);
bool header_feature_record(struct reader *r, const struct record *rec);
bool header_build_id_record(struct perfdata *p, const struct record *rec);
const struct build_id *header_build_id(const struct perfdata *p, const char *path);

/* ---- perfdata_record.c, perfdata_sample.c ---- */

/* The attribute of a record. NULL: its id is unknown, or there are no attributes. */
const struct attr *record_attr(const struct perfdata *p, const struct record *rec);
uint64_t record_time(const struct perfdata *p, const struct record *rec); /* NO_TIME */
/* What the trailer of a record says: time, cpu and task. */
void record_trailer(const struct perfdata *p, const struct record *rec, struct event *ev);
/* 1: an event, 0: none for this record. Damage is an event. */
int record_event(struct reader *r, const struct record *rec, struct event *ev);
/* A change of the kernel's code: returns its old bytes, with the new ones behind them. NULL: damaged. */
struct ipt_poke;
const uint8_t *record_poke(struct cursor *c, struct ipt_poke *poke);
int sample_event(struct reader *r, const struct record *rec, struct event *ev);
/* The hardware trace in a sample, if there is one and the sample is whole. Also sets time, cpu and task of ev. */
struct sample_trace {
	const uint8_t *bytes; /* NULL: none */
	uint64_t len;
};
struct sample_trace sample_trace(struct perfdata *p, const struct record *rec, struct event *ev);
/* The next sample of a record that has several counters. */
int sample_next_read(struct perfdata *p, struct event *ev);
/* Takes a deferred call chain and marks the samples that wait for it as due. */
bool sample_deferred(struct perfdata *p, const struct record *rec);
/* 1: a held sample that is due, 0: none. */
int sample_next_held(struct reader *r, struct event *ev);
/* Nothing is held, and there is no room yet: for a copy of the state. */
void sample_begin(struct perfdata *p);
void sample_release(struct perfdata *p);

#endif
