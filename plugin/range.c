// SPDX-License-Identifier: GPL-2.0-or-later
/* See range.h. */
#include "range.h"

#include <string.h>

#include "api.h"
#include "sample.h"
#include "trace.h"

bool range_is_at(struct args_place *place, const struct qemu_plugin_insn *insn)
{
	uint64_t address = api.insn_vaddr(insn);
	const char *symbol;

	if (!place->symbol || place->address)
		return place->address == address;
	symbol = api.insn_symbol ? api.insn_symbol(insn) : NULL;
	if (!symbol || strcmp(symbol, place->symbol))
		return false;
	place->address = address;
	return true;
}

static void on_from(unsigned cpu, void *data)
{
	(void)cpu, (void)data;
	if (!sample_running())
		sample_set_running(true);
}

static void on_to(unsigned cpu, void *data)
{
	(void)cpu, (void)data;
	if (sample_running())
		sample_set_running(false);
}

void range_translate(struct qemu_plugin_tb *tb)
{
	size_t n = args.n_from || args.n_to ? api.tb_n_insns(tb) : 0;

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, i);

		for (size_t j = 0; j < args.n_from; j++)
			if (range_is_at(&args.from[j], insn))
				api.insn_exec_cb(insn, on_from, API_NO_REGS, NULL);
		for (size_t j = 0; j < args.n_to; j++)
			if (range_is_at(&args.to[j], insn))
				api.insn_exec_cb(insn, on_to, API_NO_REGS, NULL);
	}
}
