// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_unwind: a sample with any registers, stack and tables, on every machine. The first byte of the input selects the
 * machine, the second one the method, and the third one the number of lines of the table, of 8 bytes each. The words of
 * the registers, and then of the stacks, follow: see unwind_words.h.
 */
#include "base/log.h"
#include "fuzz/unwind_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const machines[] = { "x86_64",  "i386",    "aarch64", "arm",
					"riscv64", "riscv32", "armv7m" };

static size_t next_lines(struct bytes *in, struct orc_line *lines)
{
	size_t nr = next_byte(in) % (MAX_LINES + 1);

	for (size_t i = 0; i < nr; i++) {
		lines[i].at = next_short(in) % TEXT_LEN;
		lines[i].sp_offset = (int16_t)next_short(in);
		lines[i].bp_offset = (int16_t)next_short(in);
		lines[i].flags = next_short(in);
	}
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene s;
	struct bytes in = { data, data + size };
	const char *machine = machines[next_byte(&in) % 7];
	enum unwind_method method = next_byte(&in) % 4;
	struct orc_line lines[MAX_LINES];
	size_t nr = next_lines(&in, lines);

	log_level = -1;
	scene_open(&s, machine, nr ? lines : NULL, nr);
	s.unwind.method = method;
	check(look(&s, next_state(&in, &s)));
	scene_close(&s);
	return 0;
}
