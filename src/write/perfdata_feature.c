// SPDX-License-Identifier: GPL-2.0-or-later
/* perfdata_feature: the features of perf.data: machine, build ids, event names. */
#include <string.h>

#include "base/text.h"
#include "model/source.h"
#include "write/perfdata.h"

/* A string in a feature: a length, which includes the padding, and the text. */
static void feature_text(struct buf *to, const char *text)
{
	size_t len = strlen(text) + 1, padded = (len + 63) & ~(size_t)63;
	char *room;

	put_u32(to, (uint32_t)padded);
	room = buf_reserve(to, padded);
	memset(room, 0, padded);
	memcpy(room, text, len);
	to->len += padded;
}

static void fact_feature(struct writer *w, struct buf *to, const char *key, const char *otherwise)
{
	const char *value = world_fact(w->world, key);

	feature_text(to, value ? value : otherwise);
}

static void feature_tracing_data(struct writer *w, struct buf *to)
{
	const struct perfdata *p = w->priv;

	if (p->tracing.len)
		buf_add(to, p->tracing.data, p->tracing.len);
}

static void feature_hostname(struct writer *w, struct buf *to)
{
	fact_feature(w, to, "hostname", "unknown");
}

static void feature_osrelease(struct writer *w, struct buf *to)
{
	fact_feature(w, to, "osrelease", "unknown");
}

static void feature_version(struct writer *w, struct buf *to)
{
	(void)w;
	feature_text(to, "kscope " KSCOPE_VERSION);
}

static void feature_arch(struct writer *w, struct buf *to)
{
	const char *arch = world_arch(w->world);

	feature_text(to, *arch ? arch : "unknown");
}

static void feature_nrcpus(struct writer *w, struct buf *to)
{
	struct perfdata *p = w->priv;
	const char *fact = world_fact(w->world, "nrcpus");
	uint32_t nr = p->nr_cpus ? p->nr_cpus : 1, told;

	if (fact && text_u32(fact, strlen(fact), &told) && told > nr)
		nr = told;
	put_u32(to, nr); /* available, then online */
	put_u32(to, nr);
}

static void feature_cpudesc(struct writer *w, struct buf *to)
{
	const char *arch = world_arch(w->world);

	fact_feature(w, to, "cpudesc", *arch ? arch : "unknown");
}

static void feature_cmdline(struct writer *w, struct buf *to)
{
	const char *line = world_fact(w->world, "cmdline");

	put_u32(to, 1);
	feature_text(to, line ? line : "kscope convert");
}

static void feature_event_desc(struct writer *w, struct buf *to)
{
	size_t nr = perfout_nr_sources(w->world);

	put_u32(to, (uint32_t)nr);
	put_u32(to, sizeof(struct perf_attr));
	for (size_t i = 1; i <= nr; i++) {
		bool known = w->world->nr_sources > 1;
		struct source source = perfout_source(w->world, i);
		struct perf_attr attr = perfout_attr(w, (uint32_t)i, &source);

		perfout_put_attr(to, &attr);
		put_u32(to, 1); /* number of ids */
		feature_text(to,
			     known ? str_text(w->world->strings, source_name(w->world, (uint32_t)i))
				   : "cycles");
		put_u64(to, i);
	}
}

static void feature_build_id(struct writer *w, struct buf *to)
{
	struct perfdata *p = w->priv;
	struct world *world = w->world;

	for (uint32_t i = 1; i < world->images.nr; i++) {
		const struct image *image = &world->images.all[i];
		const char *name = perfout_filename(w, i);
		struct perf_record head = {
			.misc = htole16((image->kernel ? PERF_MISC_KERNEL : PERF_MISC_USER) |
					PERF_MISC_BUILD_ID_SIZE),
		};
		uint8_t id[24] = { 0 };
		size_t len = strnlen(name, 4095) + 1, padded = (len + 63) & ~(size_t)63;

		if (!image->build_id_len || !hash_get(&p->mapped, (struct hash_key){ i, 0 }))
			continue;
		memcpy(id, image->build_id, image->build_id_len);
		id[20] = image->build_id_len;
		head.size = htole16((uint16_t)(sizeof(head) + 4 + sizeof(id) + padded));
		buf_add(to, &head, sizeof(head));
		put_u32(to, UINT32_MAX); /* of all processes */
		buf_add(to, id, sizeof(id));
		buf_add(to, name, len - 1);
		for (size_t n = len - 1; n < padded; n++)
			buf_addc(to, '\0');
	}
}

static void feature_sample_time(struct writer *w, struct buf *to)
{
	struct perfdata *p = w->priv;

	if (p->first_time > p->last_time)
		return;
	put_u64(to, p->first_time);
	put_u64(to, p->last_time);
}

/* In the order of their bits. A feature that adds nothing is omitted. */
static const struct {
	unsigned bit;
	void (*add)(struct writer *w, struct buf *to);
} features[] = {
	{ PERF_FEATURE_TRACING_DATA, feature_tracing_data },
	{ PERF_FEATURE_BUILD_ID, feature_build_id },
	{ PERF_FEATURE_HOSTNAME, feature_hostname },
	{ PERF_FEATURE_OSRELEASE, feature_osrelease },
	{ PERF_FEATURE_VERSION, feature_version },
	{ PERF_FEATURE_ARCH, feature_arch },
	{ PERF_FEATURE_NRCPUS, feature_nrcpus },
	{ PERF_FEATURE_CPUDESC, feature_cpudesc },
	{ PERF_FEATURE_CMDLINE, feature_cmdline },
	{ PERF_FEATURE_EVENT_DESC, feature_event_desc },
	{ PERF_FEATURE_SAMPLE_TIME, feature_sample_time },
};

#define NR_FEATURES (sizeof(features) / sizeof(features[0]))

void perfout_features(struct writer *w, struct perf_header *header)
{
	struct perf_section table[NR_FEATURES];
	struct buf body = { 0 }, sections = { 0 };
	size_t nr = 0;

	for (size_t i = 0; i < NR_FEATURES; i++) {
		size_t start = body.len;

		features[i].add(w, &body);
		if (body.len == start)
			continue;
		table[nr++] = (struct perf_section){ start, body.len - start };
		header->features[features[i].bit / 64] |= 1ULL << features[i].bit % 64;
	}
	for (size_t i = 0; i < nr; i++) {
		table[i].offset += out_offset(w->out) + nr * sizeof(table[0]);
		perfout_put_section(&sections, &table[i]);
	}
	out_write(w->out, sections.data, sections.len);
	out_write(w->out, body.data, body.len);
	buf_release(&sections);
	buf_release(&body);
}
