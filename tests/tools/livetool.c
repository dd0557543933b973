// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * livetool: what the viewer of a recording counts of a stream on stdin. sums: the final sums, as kscope report --json has
 * them; searching: the same, for a kernel whose place is unknown at first, while somebody looks all the time (stderr has the
 * number of samples that each look sees); glance: the
 * sums of the status line.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json_out.h"
#include "base/log.h"
#include "glance.h"
#include "live.h"

static void print_rows(struct json_out *to, struct live *live, enum flat_by by, const char *key)
{
	struct live_view view = { 0 };

	live_look(live, &view, by, 80);
	json_out_array(to, key);
	for (size_t i = 0; i < view.nr_rows; i++) {
		const struct flat_row *row = &view.rows[i].sum;

		json_out_object(to, NULL);
		json_out_text(to, "name", str_text(live_names(live), row->name));
		json_out_text(to, "binary", str_text(live_names(live), row->binary));
		json_out_u64(to, "self", row->self);
		json_out_u64(to, "total", row->total);
		json_out_u64(to, "samples", row->samples);
		json_out_end(to);
	}
	json_out_end(to);
	live_view_release(&view);
}

static void print_counts(struct json_out *to, struct live *live)
{
	struct live_view view = { 0 };

	live_look(live, &view, FLAT_FUNCTION, 0);
	json_out_u64(to, "samples", view.counts.samples);
	json_out_u64(to, "weight", view.counts.weight);
	json_out_u64(to, "lost", view.counts.lost);
	json_out_u64(to, "damaged", view.counts.damaged);
	json_out_u64(to, "bytes", view.counts.bytes);
	json_out_array(to, "by_cpu");
	for (size_t i = 0; i < view.nr_cpus; i++) {
		json_out_object(to, NULL);
		json_out_u64(to, "samples", view.cpus[i].samples);
		json_out_u64(to, "lost", view.cpus[i].lost);
		json_out_end(to);
	}
	json_out_end(to);
	live_view_release(&view);
}

static void look(struct live *live)
{
	struct live_view view = { 0 };

	live_look(live, &view, FLAT_FUNCTION, 80);
	fprintf(stderr, "%" PRIu64 "\n", view.counts.samples);
	live_view_release(&view);
}

static int sums(int fd, const struct job *like)
{
	struct err err = { 0 };
	struct live *live = live_open(like, fd, "stream", &err);
	struct buf text = { 0 };
	struct json_out json = { .to = &text };

	if (!live) {
		log_error("%s", err.msg);
		return err.code;
	}
	for (int ret = 0; ret >= 0; ret = live_step(live)) {
		struct pollfd wait = { .fd = live_fd(live), .events = POLLIN };

		poll(&wait, 1, ret ? 0 : 20);
		if (!like->options->slide_given)
			look(live);
	}
	json_out_object(&json, NULL);
	json_out_u64(&json, "state", live_state(live));
	json_out_text(&json, "error", live_error(live));
	print_counts(&json, live);
	print_rows(&json, live, FLAT_FUNCTION, "functions");
	print_rows(&json, live, FLAT_TASK, "tasks");
	print_rows(&json, live, FLAT_CPU, "cpus");
	json_out_end(&json);
	fwrite(text.data, 1, text.len, stdout);
	buf_release(&text);
	live_close(live);
	return 0;
}

/* The status line of a recorder. */
static int glance(int fd, const struct job *like)
{
	struct glance *g =
		mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret = live_glance(fd, like, g);
	struct glance_sums seen;

	glance_get_sums(g, &seen);
	printf("%" PRIu64 " samples, %" PRIu64 " lost, %" PRIu64 " damaged, %.2f %% %s%s\n",
	       seen.samples, seen.lost, seen.damaged, seen.share, seen.hottest, seen.problem);
	return ret;
}

int main(int argc, char **argv)
{
	struct options options = { .slide_given = true }; /* kernels are where they were linked */
	struct job like = { .options = &options };

	log_level = 0;
	options.slide_given = argc != 2 || strcmp(argv[1], "searching") != 0;
	if (argc == 2 && (!strcmp(argv[1], "sums") || !options.slide_given))
		return sums(STDIN_FILENO, &like);
	if (argc == 2 && !strcmp(argv[1], "glance"))
		return glance(STDIN_FILENO, &like);
	fprintf(stderr, "usage: livetool sums|glance\n");
	return 2;
}
