// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sel4_json: samples.json of the seL4 profiler's host tool: samples, and which binary each process runs. As in JSON
 * made from protobuf, 64-bit numbers are strings.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/json_out.h"
#include "base/mem.h"
#include "format.h"
#include "model/world.h"

struct mapping {
	uint32_t pid, path; /* a handle of the world's strings */
};

struct sel4_json {
	struct buf text;
	struct json_out json;
	bool listed;		  /* the list of samples has begun */
	bool told;		  /* mappings were written before it */
	struct hash by_pid;	  /* pids with a mapping */
	struct mapping *mappings; /* not written yet, in the order of the events */
	size_t nr, cap;
	uint64_t *chain; /* the addresses of a sample, its ip first */
	size_t cap_chain;
};

static int sel4_json_open(struct writer *w)
{
	struct sel4_json *p = w->priv;

	p->json.to = &p->text;
	json_out_object(&p->json, NULL);
	return 0;
}

static void put_mappings(struct writer *w, const char *key)
{
	struct sel4_json *p = w->priv;

	json_out_object(&p->json, key);
	for (size_t i = 0; i < p->nr; i++)
		json_out_u64(&p->json, str_text(w->world->strings, p->mappings[i].path),
			     p->mappings[i].pid);
	json_out_end(&p->json);
	p->nr = 0;
}

/* Mappings come first if they are known by then: readers of a pipe need them before the samples. */
static void begin_list(struct writer *w)
{
	struct sel4_json *p = w->priv;

	if (p->listed)
		return;
	p->listed = true;
	p->told = p->nr;
	if (p->told)
		put_mappings(w, "elf_tcb_mappings");
	json_out_array(&p->json, "samples");
}

/* A process has one binary in this format, and it does not change: the first one. */
static void see_map(struct writer *w, const struct event *ev)
{
	struct sel4_json *p = w->priv;
	const struct event_map *map = &ev->map;
	uint32_t *known;

	if (map->kernel || map->guest || !(map->prot & PROT_EXEC) || !*map->path ||
	    *map->path == '[')
		return;
	known = hash_at(&p->by_pid, (struct hash_key){ ev->pid, 0 });
	if (*known)
		return;
	*known = 1;
	GROW(p->mappings, p->nr + 1, p->cap);
	p->mappings[p->nr++] =
		(struct mapping){ ev->pid, str_intern_z(w->world->strings, map->path) };
}

static void put_u64(struct json_out *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_out_text(json, key, text);
}

/* Collects the addresses, without the markers between them. Returns how many there are. */
static size_t collect(struct sel4_json *p, const struct event_sample *sample)
{
	size_t nr = 0;

	GROW(p->chain, (size_t)sample->nr + 1, p->cap_chain);
	if (sample->pc)
		p->chain[nr++] = sample->pc;
	for (uint32_t i = 0; i < sample->nr; i++) {
		if (!ip_is_marker(sample->ips[i]))
			p->chain[nr++] = sample->ips[i];
	}
	if (!nr)
		p->chain[nr++] = 0;
	return nr;
}

static void put_sample(struct sel4_json *p, const struct event *ev)
{
	struct json_out *json = &p->json;
	size_t nr = collect(p, &ev->sample);

	json_out_object(json, NULL);
	put_u64(json, "ip", p->chain[0]);
	json_out_u64(json, "pid", ev->pid);
	put_u64(json, "time", ev->time == NO_TIME ? 0 : ev->time);
	json_out_u64(json, "cpu", ev->cpu == NO_CPU ? 0 : ev->cpu);
	put_u64(json, "period", ev->sample.weight);
	put_u64(json, "nr", nr - 1);
	json_out_array(json, "ips");
	for (size_t i = 1; i < nr; i++)
		put_u64(json, NULL, p->chain[i]);
	json_out_end(json);
	json_out_end(json);
}

static void flush(struct writer *w)
{
	struct sel4_json *p = w->priv;

	out_write(w->out, p->text.data, p->text.len);
	buf_clear(&p->text);
}

static int sel4_json_put(struct writer *w, const struct event *ev)
{
	if (ev->kind == EVENT_MAP) {
		see_map(w, ev);
		return 0;
	}
	if (ev->sample.context == IP_NAMED)
		return err_set(&w->err, ERR_USAGE,
			       "samples.json needs addresses, but this input has only names: "
			       "write folded stacks or a flame graph instead");
	begin_list(w);
	put_sample(w->priv, ev);
	flush(w);
	written_sample(&w->written, &ev->sample);
	return 0;
}

/* A second object of the same key would hide the first one: later mappings use the format's old key. */
static int sel4_json_finish(struct writer *w)
{
	struct sel4_json *p = w->priv;

	begin_list(w);
	json_out_end(&p->json);
	if (p->nr)
		put_mappings(w, p->told ? "pd_mappings" : "elf_tcb_mappings");
	json_out_end(&p->json);
	flush(w);
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	return 0;
}

static void sel4_json_close(struct writer *w)
{
	struct sel4_json *p = w->priv;

	buf_release(&p->text);
	hash_release(&p->by_pid);
	free(p->mappings);
	free(p->chain);
}

const struct writer_ops write_sel4_json = {
	.name = "sel4-json",
	.about = "samples.json of the seL4 profiler",
	.needs = WRITER_TEXT,
	.takes = EVENT_BIT(EVENT_MAP) | EVENT_BIT(EVENT_SAMPLE),
	.priv_size = sizeof(struct sel4_json),
	.open = sel4_json_open,
	.put = sel4_json_put,
	.finish = sel4_json_finish,
	.close = sel4_json_close,
};
