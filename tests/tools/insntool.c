// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * insntool ARCH FILE: decodes a code file as the unwinder does. ARCH may be "thumb". Prints a line per
 * instruction, "OFFSET KIND TARGET MOVES SLOT", then "calls:" and the offsets where a call ends.
 */
#include <stdio.h>
#include <string.h>

#include "unwind/walk.h"

#define MAX_CODE 65536

static const char *const names[] = {
	[INSN_OTHER] = "other", [INSN_CALL] = "call",	  [INSN_RETURN] = "return",
	[INSN_JUMP] = "jump",	[INSN_BRANCH] = "branch", [INSN_AWAY] = "away",
	[INSN_SAVES] = "saves", [INSN_LOADS] = "loads",
};

static uint8_t code[MAX_CODE];

int main(int argc, char **argv)
{
	bool thumb = argc == 3 && !strcmp(argv[1], "thumb");
	const struct machine *machine = argc == 3 ? machine_by_arch(thumb ? "arm" : argv[1]) : NULL;
	FILE *in = machine ? fopen(argv[2], "rb") : NULL;
	struct code_kind kind;
	struct insn insn;
	size_t len;

	if (!in)
		return 2;
	len = fread(code, 1, sizeof(code), in);
	fclose(in);
	kind = (struct code_kind){ machine->kind, thumb };
	for (size_t at = 0; insn_decode(&kind, code + at, len - at, at, &insn); at += insn.len)
		printf("%zu %s %llu %d %d\n", at, names[insn.kind], (unsigned long long)insn.target,
		       insn.moves, insn.kind == INSN_LOADS ? insn.slot : 0);
	printf("calls:");
	for (size_t end = 0; end <= len; end++) {
		size_t before = end < CALL_BYTES ? end : CALL_BYTES;

		if (insn_call_ends(&kind, code + end - before, before))
			printf(" %zu", end);
	}
	printf("\n");
	return 0;
}
