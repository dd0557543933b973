// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_name: events that have no name in the file get the one that perf makes of their attribute, or the one
 * that the tables of perfdata_tracing have.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "model/stock.h"
#include "read/perfdata.h"

static void add_modifier(struct buf *to, bool *first, const char *text)
{
	if (*first)
		buf_addc(to, ':');
	*first = false;
	buf_adds(to, text);
}

/* As on perf's command line. What counts as the default for guests depends on the other modifiers. */
static void add_modifiers(struct buf *to, uint64_t flags)
{
	static const char precise[] = "ppp";
	static const struct {
		uint64_t excluded;
		const char *text;
	} modes[] = { { PERF_ATTR_EXCLUDE_KERNEL, "k" },
		      { PERF_ATTR_EXCLUDE_USER, "u" },
		      { PERF_ATTR_EXCLUDE_HV, "h" } };
	uint64_t excluded =
		PERF_ATTR_EXCLUDE_KERNEL | PERF_ATTR_EXCLUDE_USER | PERF_ATTR_EXCLUDE_HV;
	unsigned nr_precise = flags >> PERF_ATTR_PRECISE_SHIFT & 3;
	bool first = true, guests = !(flags & PERF_ATTR_EXCLUDE_GUEST);

	for (size_t i = 0; flags & excluded && i < sizeof(modes) / sizeof(*modes); i++) {
		if (!(flags & modes[i].excluded))
			add_modifier(to, &first, modes[i].text);
	}
	if (nr_precise)
		add_modifier(to, &first, precise + 3 - nr_precise);
	if (!(flags & PERF_ATTR_EXCLUDE_HOST) && guests == (flags & excluded || nr_precise))
		return;
	if (!(flags & PERF_ATTR_EXCLUDE_HOST))
		add_modifier(to, &first, "H");
	if (guests)
		add_modifier(to, &first, "G");
}

static void add_breakpoint(struct buf *to, const struct perf_attr *attr)
{
	static const char access[] = "rwx";

	buf_addf(to, "mem:0x%" PRIx64 ":", attr->config1);
	for (unsigned i = 0; i < 3; i++) {
		if (attr->bp_type >> i & 1)
			buf_addc(to, access[i]);
	}
}

/* False: perf has no name for it. */
static bool add_name(struct buf *to, const struct perf_attr *attr)
{
	char room[STOCK_NAME];
	const char *name;

	switch (attr->type) {
	case SOURCE_RAW: buf_addf(to, "raw 0x%" PRIx64, attr->config); return true;
	case SOURCE_BREAKPOINT: add_breakpoint(to, attr); return true;
	}
	name = stock_name(attr->type, attr->config, room);
	if (!name)
		return false;
	buf_adds(to, name);
	return true;
}

void name_event(const struct perfdata *p, struct attr *attr)
{
	const char *known = tracing_name(p, attr->raw.type, attr->raw.config);
	struct buf name = { 0 };

	if (attr->name)
		return;
	if (add_name(&name, &attr->raw)) {
		add_modifiers(&name, attr->raw.flags);
		attr->name = xstrndup(name.data, name.len);
	} else if (known) {
		attr->name = xstrndup(known, strlen(known));
	}
	buf_release(&name);
}
