/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * glance: what the recorder and its viewer, two processes, tell each other in shared memory: the viewer its sums, for
 * the status line; the recorder the state of the source. Each part has one writer. A reader gets the last
 * part that was written completely, also if the writer was killed while it wrote the next.
 */
#ifndef KSCOPE_GLANCE_H
#define KSCOPE_GLANCE_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct live;
struct live_view;

struct glance_sums { /* the viewer writes it */
	uint64_t samples, lost, damaged;
	double share;	   /* of the hottest function, in percent */
	char hottest[80];  /* its name, without control characters; "": no samples yet */
	char problem[200]; /* why there are no sums; "": no reason */
};

struct glance_source {	/* the recorder writes it */
	char text[200]; /* "board:1236, no data for 5 s" */
	bool trouble;	/* the user should notice it */
	bool leave;	/* the user has ended the recording: the viewer must not stay */
};

/* In memory that is zeroed and shared: mmap(MAP_SHARED | MAP_ANONYMOUS) before fork(). */
struct glance {
	struct glance_sums_part {
		uint32_t turn;
		struct glance_sums slots[2];
	} sums;
	struct glance_source_part {
		uint32_t turn;
		struct glance_source slots[2];
	} source;
};

void glance_put_sums(struct glance *g, const struct glance_sums *sums);
void glance_get_sums(const struct glance *g, struct glance_sums *sums);
void glance_put_source(struct glance *g, const struct glance_source *source);
void glance_get_source(const struct glance *g, struct glance_source *source);

/* What a view says. */
void glance_fill(const struct live *live, const struct live_view *view, struct glance_sums *sums);
/*
 * The main loop of a viewer for the status line: reads the pipe until it ends. like: as in live_open(). Returns an
 * exit code.
 */
int live_glance(int fd, const struct job *like, struct glance *g);

#endif
