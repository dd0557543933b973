/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind_words: registers and stacks out of any bytes, for fuzz_unwind.c and fuzz_frames.c. */
#ifndef KSCOPE_FUZZ_UNWIND_WORDS_H
#define KSCOPE_FUZZ_UNWIND_WORDS_H

#include "tests/unit/unwind_scene.h"

#define OUTER_STACK 0x20001000 /* interrupted, if interrupts run on their own */

struct bytes {
	const uint8_t *at, *end;
};

static inline uint8_t next_byte(struct bytes *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint16_t next_short(struct bytes *in)
{
	uint16_t low = next_byte(in);

	return (uint16_t)(low | next_byte(in) << 8);
}

/* An address in the code or in the stack, a small number, or anything: random words would mean nothing. */
static inline uint64_t next_word(struct bytes *in, const struct scene *s)
{
	uint8_t kind = next_byte(in);
	uint64_t word = next_short(in);

	switch (kind % 7) {
	case 0: return word;
	case 1: return s->text + word % TEXT_LEN;
	case 2: return s->stack + word % (WORDS * s->word);
	case 4: return 0xffffff80 | word; /* Cortex-M: the end of an exception */
	case 5: return OUTER_STACK + word % (WORDS * s->word);
	case 6: return 0xfefa125a | (word & 1); /* the signature of its registers */
	default:
		return word | (uint64_t)next_short(in) << 16 | (uint64_t)next_short(in) << 32 |
		       (uint64_t)next_short(in) << 48;
	}
}

/* Reads the pc, all registers and both stacks. Returns the pc. */
static inline uint64_t next_state(struct bytes *in, struct scene *s)
{
	uint64_t pc = next_word(in, s);

	for (size_t i = 0; i < 33; i++)
		s->regs[i] = next_word(in, s);
	for (unsigned i = 0; i < WORDS; i++)
		poke(s, i, next_word(in, s));
	for (unsigned i = 0; i < WORDS && in->at < in->end; i++) {
		uint64_t word = next_word(in, s);

		memcpy(s->outer + i * s->word, &word, s->word);
		s->cpu.outer_len = sizeof(s->outer);
	}
	s->cpu.outer = s->outer;
	s->cpu.outer_addr = OUTER_STACK;
	return pc;
}

static inline void check(const struct event_sample *sample)
{
	uint64_t sum = 0;

	if (sample->nr_unwound > sample->nr)
		abort();
	for (uint32_t i = 0; i < sample->nr; i++)
		sum += sample->ips[i];
	__asm__ volatile("" ::"r"(sum)); /* all of them must be readable */
}

#endif
