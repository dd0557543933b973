/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the perf.data reader share.
 *
 *	perfdata.c		records out of the file, unpacked and in the order of time
 *	perfdata_header.c	the header and the attributes: what is known about all records
 *	perfdata_feature.c	features: machine, build ids, names of events
 *	perfdata_record.c	tasks, maps, losses, switches
 *	perfdata_sample.c	samples
 */
#ifndef KSCOPE_READ_PERFDATA_H
#define KSCOPE_READ_PERFDATA_H

#include <string.h>

#include "abi/perf_file.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/unpack.h"
#include "format.h"
#include "pass/order.h"

/* Bytes of a known length, of either byte order. Reading past the end gives 0 and sets bad. */
struct cursor {
	const uint8_t *at, *end;
	bool swap, bad;
};

struct attr {
	struct perf_attr raw; /* in this machine's byte order, as a little-endian one has it */
	char *name;	      /* NULL: not told */
	char *unit;	      /* likewise */
	bool scaled;	      /* units were told for what is shown, not for weights */
	/* Where in a sample, or before the end of any other record; 0: not there. */
	uint32_t sample_id, sample_time;
	uint32_t back_id, back_time, back_cpu, back_task, back_all;
};

struct known_id {
	uint32_t attr;
	uint64_t value; /* of its counter, as last read */
};

struct build_id {
	uint8_t bytes[20], len;
};

struct fact {
	const char *key;
	char *value;
};

struct record {
	const uint8_t *data; /* aligned, with its head */
	uint32_t type;
	uint16_t misc, size;
	uint64_t offset; /* in the file; of the packed record it came from, if it came from one */
};

/* A sample whose call chain ends in a promise: the rest comes when the task leaves the kernel. */
struct held {
	uint64_t *bytes;
	uint64_t offset, cookie;
	uint32_t tid;
	uint16_t size;
	bool due;
};

struct count_read { /* of a counter, in a sample */
	uint64_t id, value;
};

/* Records that come one after the other: the file, or one of those that lie beside it. */
struct stream {
	struct in *in;
	struct in own;	   /* in, but for the file that the reader was opened with */
	uint64_t data_end; /* UINT64_MAX: as far as it goes */
	uint64_t newest;   /* time of what was read */
	struct unpack *unpack;
	struct buf packed, plain; /* the compressed record at hand, and records out of it */
	size_t packed_at, plain_at;
	bool packed_bad, ended;
};

struct perfdata {
	bool swap, big; /* the file has the other byte order; it is big-endian */
	bool pipe;
	bool folder;		    /* as perf record --kcore and --threads make it */
	struct stream *streams, *s; /* s: the one that is read */
	size_t nr_streams;

	struct attr *attrs;
	size_t nr_attrs, cap_attrs;
	struct hash id_index; /* id to its place in ids, + 1 */
	struct known_id *ids;
	size_t nr_ids, cap_ids;
	struct build_id *build_ids;
	size_t nr_build_ids, cap_build_ids;
	struct hash build_id_index; /* by the digest of the path: place in build_ids, + 1 */
	struct fact *facts;
	size_t nr_facts, cap_facts;
	size_t told_facts, told_attrs;
	bool told_idle, idle_waits;
	struct event idle_sample; /* waits until the name of its task is told */
	char *kallsyms;		  /* in a folder that perf recorded to */
	struct buf tracing;	  /* how the bytes of tracepoints are read */
	bool told_tracing;
	const char *aux_kind;

	struct order order;
	struct buf scratch; /* a record that need not wait */
	struct record now;  /* to be turned into an event; .size 0: none */
	bool ended;

	uint64_t aux_left, aux_offset, aux_at; /* of the trace bytes that follow their record */
	uint32_t aux_cpu, aux_tid;

	struct buf text; /* of the event at hand */
	struct build_id build_id;
	struct cpu_state user;
	uint64_t *ips, *regs;
	size_t cap_ips, cap_regs;
	struct branch *branches;
	size_t cap_branches;

	struct count_read *reads; /* of the sample in `leader`: each makes a sample of its own */
	size_t nr_reads, cap_reads, at_read;
	struct event leader;

	struct held *held;
	size_t nr_held, cap_held;
	bool release_held;
	uint64_t *tail; /* the deferred part of the chains that are due */
	size_t nr_tail, cap_tail;

	uint64_t unknown;      /* records of a type that nobody knows */
	uint32_t unknown_type; /* the first such */
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

/* NULL if there are not as many. */
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

/* What follows the head of a record. */
static inline struct cursor record_body(const struct perfdata *p, const struct record *rec)
{
	return (struct cursor){ .at = rec->data + sizeof(struct perf_record),
				.end = rec->data + rec->size,
				.swap = p->swap };
}

/* The head of a record; the data is what was given. */
struct record record_at(const struct perfdata *p, const uint8_t *data, uint64_t offset);

/* ---- perfdata_header.c ---- */

/* Also opens the streams. */
int header_read(struct reader *r);
/* An attribute and its ids as a record of a pipe. False: damaged. */
bool header_attr_record(struct perfdata *p, const struct record *rec);
bool header_update_record(struct perfdata *p, const struct record *rec);
/* The name of an event, unless it has one; takes over the text. */
void header_name(struct perfdata *p, size_t attr, char *name);
void header_release(struct perfdata *p);
/* The attribute with this id, or NULL. */
static inline struct known_id *header_id(const struct perfdata *p, uint64_t id)
{
	uint32_t at = hash_get(&p->id_index, (struct hash_key){ id, 0 });

	return at ? &p->ids[at - 1] : NULL;
}

/* ---- perfdata_feature.c ---- */

bool feature_wanted(unsigned bit);
/* False: damaged. */
bool feature_read(struct perfdata *p, unsigned bit, struct cursor *c);
bool header_feature_record(struct reader *r, const struct record *rec);
bool header_build_id_record(struct perfdata *p, const struct record *rec);
const struct build_id *header_build_id(const struct perfdata *p, const char *path);

/* ---- perfdata_record.c, perfdata_sample.c ---- */

/* Which attribute a record belongs to; NULL: its id is not known, or there is none at all. */
const struct attr *record_attr(const struct perfdata *p, const struct record *rec);
uint64_t record_time(const struct perfdata *p, const struct record *rec); /* NO_TIME */
/* 1: an event, 0: nothing to tell. Damage is an event. */
int record_event(struct reader *r, const struct record *rec, struct event *ev);
int sample_event(struct reader *r, const struct record *rec, struct event *ev);
/* The next of the samples that one record with several counters stands for. */
int sample_next_read(struct perfdata *p, struct event *ev);
/* The rest of call chains has come; the samples that waited for it are due. */
bool sample_deferred(struct perfdata *p, const struct record *rec);
/* 1: a sample that waited and is due, 0: none. */
int sample_next_held(struct reader *r, struct event *ev);
void sample_release(struct perfdata *p);

#endif
