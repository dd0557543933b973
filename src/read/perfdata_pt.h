/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_pt: the branches of the Intel PT traces in a perf.data. Before the first one, it reads the whole
 * file once without the traces, because a decoder has to know what was mapped when a piece of a trace
 * was recorded, and records with traces come later than that. Then it merges the traces by time.
 */
#ifndef KSCOPE_READ_PERFDATA_PT_H
#define KSCOPE_READ_PERFDATA_PT_H

#include "pt/poke.h"
#include "read/perfdata.h"
#include "read/perfdata_trace.h"

struct perfdata_pt;

/* What an AUXTRACE_INFO record says; NULL: it is damaged. */
struct perfdata_pt *perfdata_pt_new(struct reader *r, struct cursor info);
void perfdata_pt_free(struct perfdata_pt *pt);

/* For the first reading: the trace behind an AUXTRACE record, of a thread or a cpu; and other events. */
void perfdata_pt_add_trace(struct perfdata_pt *pt, const struct trace_part *part, uint32_t tid,
			   uint32_t cpu);
/*
 * The trace in a sample. part->in: NULL if its bytes are not in the file as such: then they are kept in a
 * temporary file.
 */
int perfdata_pt_add_sample(struct perfdata_pt *pt, struct trace_part *part, const uint8_t *bytes,
			   const struct event *sample, struct err *err);
void perfdata_pt_add_event(struct perfdata_pt *pt, const struct event *ev);
/* A thread runs on a cpu. */
void perfdata_pt_add_switch(struct perfdata_pt *pt, const struct event *ev);
/* Without its time, which is that of an event. */
void perfdata_pt_add_poke(struct perfdata_pt *pt, uint64_t time, struct ipt_poke poke,
			  const uint8_t *bytes);
/* All is added. */
void perfdata_pt_start(struct perfdata_pt *pt);

/*
 * Sets *events to branches that come before an event of the file, and returns their number. They are valid
 * until the next call. NULL: before the end of the file. 0: none, or see perfdata_pt_next(). The caller says how
 * many it took; the others come again.
 */
size_t perfdata_pt_run(struct perfdata_pt *pt, const struct event *before, struct event **events);
void perfdata_pt_took(struct perfdata_pt *pt, size_t nr);
/* 1: *ev is another event that comes now, such as a gap; 0: none. */
int perfdata_pt_next(struct perfdata_pt *pt, struct reader *r, struct event *ev);

#endif
