// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/insn_other.h"

bool insn_other_text(const struct insn_code *code, uint64_t address, char text[INSN_TEXT],
		     uint64_t *target)
{
	(void)code, (void)address, (void)text, (void)target;
	return false;
}
