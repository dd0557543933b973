// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * movetool ARCH: decodes instructions as the plugin does. Each line of stdin has one instruction in
 * hexadecimal digits. Prints the flow, the flags, the effect on the stack pointer, and on interrupts.
 */
#include <stdio.h>
#include <string.h>

#include "plugin/insn.h"

#define MAX_SIZE 16

static const char *const flows[WIRE_FLOW_KINDS] = { "",	     "jump",   "cond",	"jump*", "call",
						    "call*", "return", "enter", "leave", "wait" };
static const char *const stacks[] = { "", "?", "=", "=high" };

static size_t get_bytes(const char *line, uint8_t *bytes)
{
	size_t size = 0;
	unsigned byte;

	for (; size < MAX_SIZE && sscanf(line, "%2x", &byte) == 1; line += 2)
		bytes[size++] = (uint8_t)byte;
	return size;
}

/* For interrupts that depend on a register: what is known without looking, or the source and its bits. */
static void print_mask(const struct insn_mask *mask)
{
	static const char *const masks[] = { "", " on", " off", " mask" };
	static const char *const writes[] = { "", "=", "|", "&~" };

	printf("%s", masks[mask->mask]);
	if (mask->mask != WIRE_MASK_UNKNOWN)
		return;
	if (mask->otherwise)
		printf("%s", mask->otherwise == WIRE_MASK_UNKNOWN ? "?" : masks[mask->otherwise]);
	else
		printf("%s%u:%x,%x,%x", writes[mask->write], mask->source, mask->on, mask->off,
		       mask->saved);
}

static void print(const struct insn *insn, int word)
{
	bool replaces =
		insn->stack == INSN_STACK_REPLACED || insn->stack == INSN_STACK_REPLACED_HIGH;
	long long move = insn->bytes + insn->words * word;

	printf("%s", flows[insn->flow]);
	printf("%s", insn->flags & WIRE_BLOCK_MAYBE ? " maybe" : "");
	printf("%s", insn->flags & WIRE_BLOCK_STATE && !replaces ? " state" : "");
	if (insn->ahead)
		printf(" it%u", insn->ahead);
	if (insn->stack != INSN_STACK_MOVES)
		printf(" %s", stacks[insn->stack]);
	else if (move)
		printf(" %+lld", move);
	print_mask(&insn->mask);
	printf("\n");
}

int main(int argc, char **argv)
{
	bool thumb = argc > 1 && !strcmp(argv[1], "thumb");
	enum insn_set set = thumb ? INSN_THUMB : insn_set_of(argc > 1 ? argv[1] : "");
	char line[256];

	if (set == INSN_OTHER)
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		uint8_t bytes[MAX_SIZE];
		struct insn insn;

		insn_decode(set, 0x1000000, bytes, get_bytes(line, bytes), &insn);
		print(&insn, set == INSN_X86_64 ? 8 : 4);
	}
	return 0;
}
