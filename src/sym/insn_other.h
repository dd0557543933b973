/* SPDX-License-Identifier: GPL-2.0-or-later */
/* insn_other: the text of instructions of machines other than x86, by Capstone. */
#ifndef KSCOPE_SYM_INSN_OTHER_H
#define KSCOPE_SYM_INSN_OTHER_H

#include "sym/insn.h"

/* False: the library is missing, or cannot disassemble it. Else see insn_text(). */
bool insn_other_text(const struct insn_code *code, uint64_t address, char text[INSN_TEXT],
		     uint64_t *target);

#endif
