// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_unwind: a sample with any registers, stack and tables, on every machine. The first byte of the input selects the
 * machine, the second one the method, and the third one the number of lines of the table, of 8 bytes each. The words of
 * the registers, and then of the stack, follow: see next_word().
 */
#include "base/log.h"
#include "tests/unit/unwind_scene.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const machines[] = { "x86_64",  "i386",    "aarch64", "arm",
					"riscv64", "riscv32", "armv7m" };

struct bytes {
	const uint8_t *at, *end;
};

static uint8_t next_byte(struct bytes *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint16_t next_short(struct bytes *in)
{
	uint16_t low = next_byte(in);

	return (uint16_t)(low | next_byte(in) << 8);
}

/* An address in the code or in the stack, a small number, or anything: random words would mean nothing. */
static uint64_t next_word(struct bytes *in, const struct scene *s)
{
	uint8_t kind = next_byte(in);
	uint64_t word = next_short(in);

	switch (kind % 4) {
	case 0: return word;
	case 1: return s->text + word % TEXT_LEN;
	case 2: return s->stack + word % (WORDS * s->word);
	default:
		return word | (uint64_t)next_short(in) << 16 | (uint64_t)next_short(in) << 32 |
		       (uint64_t)next_short(in) << 48;
	}
}

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

static void check(const struct event_sample *sample)
{
	uint64_t sum = 0;

	if (sample->nr_unwound > sample->nr)
		abort();
	for (uint32_t i = 0; i < sample->nr; i++)
		sum += sample->ips[i];
	__asm__ volatile("" ::"r"(sum)); /* all of them must be readable */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene s;
	struct bytes in = { data, data + size };
	const char *machine = machines[next_byte(&in) % 7];
	enum unwind_method method = next_byte(&in) % 4;
	struct orc_line lines[MAX_LINES];
	size_t nr = next_lines(&in, lines);
	uint64_t pc;

	log_level = -1;
	scene_open(&s, machine, nr ? lines : NULL, nr);
	s.unwind.method = method;
	pc = next_word(&in, &s);
	for (size_t i = 0; i < 33; i++)
		s.regs[i] = next_word(&in, &s);
	for (unsigned i = 0; i < WORDS; i++)
		poke(&s, i, next_word(&in, &s));
	check(look(&s, pc));
	scene_close(&s);
	return 0;
}
