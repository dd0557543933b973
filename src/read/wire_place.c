// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * wire_place: finds the address that the kernel ran at and the bits of the register that identify
 * an address space. It searches a file before the reader emits the first sample, a stream as it
 * arrives.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "read/wire_parts.h"

#define MAX_VOTES 20000
#define SURVEY_CPUS 16
#define SURVEY_RUN 64			 /* branches at a time */
#define FIRST_TRY 16			 /* votes */
#define ENOUGH_USER 64			 /* samples of programs */
#define VOTE_BYTES ((uint64_t)256 << 20) /* of a recording of samples to read */
#define TRACE_BYTES ((uint64_t)32 << 20) /* of a trace to read */

struct wire_survey {
	struct place *place;
	struct hash seen;	  /* addresses that have voted */
	uint64_t odd[2], even[2]; /* samples with bit 12 of CR3 set and clear, by [user] */
	struct wire_trace traces[SURVEY_CPUS];
	size_t next_try; /* of a stream: number of votes at which to count them again */
	bool found;	 /* of a stream: the kernel's slide is known */
};

static void count_address(struct wire_survey *survey, uint64_t pc, uint64_t space, bool user)
{
	uint32_t *slot;

	if (space >> 12 & 1)
		survey->odd[user]++;
	else
		survey->even[user]++;
	if (user || !survey->place || survey->seen.nr >= MAX_VOTES)
		return;
	slot = hash_at(&survey->seen, (struct hash_key){ pc, 1 });
	if (!*slot)
		place_vote(survey->place, pc);
	*slot = 1;
}

static void count_branch(struct wire_survey *survey, const struct event *ev)
{
	bool user = ev->branch.context == IP_USER;

	if (ev->kind == EVENT_BRANCH && (user || ev->branch.kind == BRANCH_CALL))
		count_address(survey, ev->branch.to, ev->branch.space, user);
}

static void survey_trace(struct wire_survey *survey, uint64_t cpu, struct pb bytes, uint64_t time)
{
	struct event events[SURVEY_RUN];
	struct wire_trace *trace;
	size_t nr;
	int ret;

	if (cpu >= SURVEY_CPUS || bytes.at == bytes.end)
		return;
	trace = &survey->traces[cpu];
	wire_trace_feed(trace, bytes.at, (size_t)(bytes.end - bytes.at), time);
	do {
		ret = wire_trace_run(trace, events, SURVEY_RUN, &nr);
		for (size_t i = 0; i < nr; i++)
			count_branch(survey, &events[i]);
	} while (ret > 0);
}

static void survey_chunk(struct reader *r, struct wire_survey *survey,
			 const struct wire_chunk *chunk)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	uint64_t cpu = UINT64_MAX, time = NO_TIME;
	struct pb trace = { 0 };
	struct sample_message sample;
	struct code_message code;
	struct pb_field field;
	struct wire_reader *w = r->priv;

	wire_described_guess(w, chunk);
	if (w->described.on) {
		if (!in_streams(r->in) && chunk->check == WIRE_CHECK_GOOD)
			wire_describe_early(r, chunk);
		return;
	}
	while (pb_next(&message, &field) > 0) {
		switch (field.number) {
		case WIRE_CHUNK_CPU: cpu = field.value; break;
		case WIRE_CHUNK_TRACE_TIME: time = field.value; break;
		case WIRE_CHUNK_TRACE: trace = field.bytes; break;
		case WIRE_CHUNK_SAMPLE:
			if (wire_get_sample(field.bytes, &sample) && !sample.idle)
				count_address(survey, sample.pc, sample.space,
					      sample.level == WIRE_LEVEL_USER);
			break;
		case WIRE_CHUNK_CODE:
			if (survey->place && wire_get_code(field.bytes, &code) &&
			    code.level != WIRE_LEVEL_USER)
				place_vote_code(survey->place, code.address, code.bytes.at,
						(size_t)(code.bytes.end - code.bytes.at));
			break;
		}
	}
	survey_trace(survey, cpu, trace, time);
}

static int survey_file(struct reader *r, struct wire_survey *survey)
{
	struct wire_reader *w = r->priv;
	struct wire_chunk chunk;
	uint64_t length;
	struct in in;
	int ret;

	if (in_length(r->in, &length, &r->err) < 0 ||
	    in_clone(&in, r->in, (size_t)1 << 20, &r->err) < 0)
		return -1;
	while (in_offset(&in) < (w->info.trace ? TRACE_BYTES : VOTE_BYTES) &&
	       (ret = wire_peek(&in, &chunk)) != 0) {
		if (ret > 0 && chunk.check != WIRE_CHECK_WRONG) {
			survey_chunk(r, survey, &chunk);
			in_skip(&in, chunk.head + chunk.len);
		} else {
			in_skip(&in, 1);
			wire_resync(&in);
		}
	}
	in_close(&in);
	return 0;
}

/*
 * The bits of the register that identify an address space. With page table isolation, Linux has two
 * adjacent tables per process: bit 12 of CR3 is set in user mode and clear in the kernel.
 */
static uint64_t space_mask(const struct info_message *info, const struct wire_survey *survey)
{
	const char *arch = info->arch ? info->arch : "";
	bool isolated = survey->odd[true] && !survey->even[true] &&
			survey->even[false] > survey->odd[false];

	/*
	 * The number of a guest is in the upper bits, or takes the place of the address space
	 * identifier.
	 */
	if (!strcmp(arch, "x86_64"))
		return isolated ? 0xffffffffffffe000 : 0xfffffffffffff000;
	if (!strcmp(arch, "aarch64"))
		return 0xfffffffffffffffe;
	if (!strcmp(arch, "riscv64"))
		return 0x0fffffffffffffff;
	if (!strcmp(arch, "riscv32"))
		return 0x7fffffff;
	if (!strcmp(arch, "i386"))
		return 0xfff00000ffffffe0;
	if (!strcmp(arch, "arm"))
		return 0xffffff80;
	return UINT64_MAX;
}

static bool has_kernel(const struct reader *r)
{
	const struct wire_reader *w = r->priv;

	return w->spaces.place && wire_kernel(r) && !w->info.user_mode &&
	       place_has_kernel(w->spaces.place);
}

static void set_slide(struct reader *r, uint64_t slide)
{
	struct wire_reader *w = r->priv;

	if (!slide || !place_anchor(w->spaces.place, &w->anchor, &w->anchor_addr))
		return;
	w->slide = slide;
	log_note("the kernel ran 0x%" PRIx64 " above the address it was linked for", slide);
}

/* Sets the slide: the given one, or the one that most votes agree on. */
static void place_kernel(struct reader *r, const struct wire_survey *survey)
{
	struct wire_reader *w = r->priv;
	uint64_t slide = 0, hits, votes;

	if (!has_kernel(r))
		return;
	if (r->options->slide_given)
		slide = r->options->slide;
	else if (!place_slide(w->spaces.place, &slide, &hits, &votes) && survey->seen.nr >= 100)
		log_warn("%s: cannot find the address that %s ran at: only %" PRIu64 " of %" PRIu64
			 " addresses match the start of a function; is it the kernel that was "
			 "recorded? If so, use --slide",
			 r->in->path, wire_kernel(r), hits, votes);
	set_slide(r, slide);
}

static void find_binaries(struct reader *r)
{
	struct wire_reader *w = r->priv;
	const struct options *options = r->options;
	const char *kernel = w->info.user_mode ? NULL : wire_kernel(r);
	const char **elfs = xcalloc(options->nr_elfs + w->info.nr_elfs + 1, sizeof(*elfs));
	size_t nr = 0;

	for (size_t i = 0; i < options->nr_elfs && !w->described.on; i++)
		elfs[nr++] = options->elfs[i].path;
	for (size_t i = 0; i < w->info.nr_elfs && !w->described.on; i++) {
		if (wire_may_open(r, w->info.elfs[i]))
			elfs[nr++] = w->info.elfs[i];
	}
	if (kernel || nr)
		w->spaces.place = place_new(r->library, kernel, elfs, nr);
	w->elfs = elfs;
}

static struct wire_survey *survey_new(struct place *place)
{
	struct wire_survey *survey = xcalloc(1, sizeof(*survey));

	survey->place = place;
	survey->next_try = FIRST_TRY;
	for (uint32_t i = 0; i < SURVEY_CPUS; i++)
		wire_trace_init(&survey->traces[i], i, (struct wire_trace_info){ 0 });
	return survey;
}

void wire_place_release(struct wire_reader *w)
{
	if (!w->survey)
		return;
	for (uint32_t i = 0; i < SURVEY_CPUS; i++)
		wire_trace_release(&w->survey->traces[i]);
	hash_release(&w->survey->seen);
	free(w->survey);
	w->survey = NULL;
}

int wire_place(struct reader *r)
{
	struct wire_reader *w = r->priv;
	int ret = 0;

	find_binaries(r);
	w->survey = survey_new(w->spaces.place);
	w->spaces.mask = space_mask(&w->info, w->survey);
	if (w->info.user_mode) {
		wire_place_release(w);
	} else if (!in_streams(r->in)) {
		ret = survey_file(r, w->survey);
		wire_place_end(r);
	} else if (!has_kernel(r) || r->options->slide_given || w->described.on) {
		place_kernel(r, w->survey);
		w->survey->found = true;
	}
	if (ret == 0 && w->spaces.place && !place_read(w->spaces.place))
		r->partial = true; /* after a warning */
	return ret;
}

void wire_place_end(struct reader *r)
{
	struct wire_reader *w = r->priv;

	if (!w->survey)
		return;
	w->spaces.mask = space_mask(&w->info, w->survey);
	if (!w->survey->found)
		place_kernel(r, w->survey);
	wire_place_release(w);
}

bool wire_placing(const struct wire_reader *w)
{
	return w->survey && !w->survey->found;
}

/* Whether the votes so far agree. Counts them again only when there are clearly more. */
static bool kernel_found(struct reader *r, struct wire_survey *survey)
{
	struct wire_reader *w = r->priv;
	uint64_t slide;

	if (survey->found || survey->seen.nr < survey->next_try)
		return survey->found;
	survey->next_try = survey->seen.nr + FIRST_TRY + survey->seen.nr / 8;
	survey->found = place_slide(w->spaces.place, &slide, NULL, NULL);
	if (survey->found)
		set_slide(r, slide);
	return survey->found;
}

/* The mask depends on samples of programs only on x86-64: see space_mask(). */
static bool mask_found(const struct wire_reader *w, const struct wire_survey *survey)
{
	return !w->info.arch || strcmp(w->info.arch, "x86_64") != 0 ||
	       survey->odd[true] + survey->even[true] >= ENOUGH_USER;
}

void wire_place_chunk(struct reader *r, const struct wire_chunk *chunk)
{
	struct wire_reader *w = r->priv;
	struct wire_survey *survey = w->survey;
	bool found;

	if (!survey)
		return;
	survey_chunk(r, survey, chunk);
	w->spaces.mask = space_mask(&w->info, survey);
	found = kernel_found(r, survey);
	if ((found && mask_found(w, survey)) || survey->seen.nr >= MAX_VOTES ||
	    chunk->offset >= (w->info.trace ? TRACE_BYTES : VOTE_BYTES))
		wire_place_end(r);
}
