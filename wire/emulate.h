/* SPDX-License-Identifier: MIT */
/*
 * emulate: what `kscope record emulate` and the plugin share. Each thread of the program writes files of its own, in
 * a folder that kscope makes: EMULATE_TRACE and its tid with complete records of perf.data, and EMULATE_PART and its
 * tid with packets that are in no record yet, which other processes can still read after the thread was killed. When
 * the program has ended, kscope makes one perf.data of them.
 */
#ifndef KSCOPE_WIRE_EMULATE_H
#define KSCOPE_WIRE_EMULATE_H

#include <stdint.h>
#include <string.h>

#define EMULATE_TRACE "trace-"
#define EMULATE_PART "part-"
#define EMULATE_CODE "code-" /* and a pid: pages of code that is in no file */

#define EMULATE_SAMPLE_TYPE 0x10007 /* IP | TID | TIME | IDENTIFIER */
#define EMULATE_EVENT 1		    /* the id of the only event */
#define EMULATE_BYTES 131072	    /* of packets in one record */
#define EMULATE_END 32		    /* bytes that emulate_end() adds at most */

/* The clocks: a time stamp counter of 2.1 GHz, and a crystal of 25 MHz. */
#define EMULATE_TSC_RATIO 84 /* ticks of the counter for one of the crystal */
#define EMULATE_MTC_SHIFT 3  /* the crystal's counter goes to the trace every 2^3 ticks */
#define EMULATE_CBR 21	     /* the core's clock, in 100 MHz */

/* What a thread has done. */
struct emulate_state {
	uint64_t written; /* bytes of complete records in its file */
	uint64_t used;	  /* bytes of packets that come after these */
	uint64_t tsc;	  /* of the first of them, at most */
	uint64_t tnt;	  /* TNT bits that are in no packet yet; the newest is the lowest */
	uint32_t nr_tnt;
	uint32_t on; /* 1: it ran the code at ip */
	uint64_t ip;
};

/*
 * A thread may be killed at any instruction. So it writes the state that does not hold, and then says that it does.
 */
struct emulate_part {
	uint32_t current, reserved; /* current: a 32-bit machine may not store 64 bits at once */
	struct emulate_state states[2];
	uint8_t bytes[EMULATE_BYTES + EMULATE_END];
};

/* The record that comes before packets. They are not part of its size. */
struct emulate_auxtrace {
	uint32_t type; /* 71 */
	uint16_t misc, record_size;
	uint64_t size;
	uint64_t offset; /* in the thread's file: when the record was written, in ns */
	uint64_t reference;
	uint32_t idx, tid, cpu, reserved;
};

static inline const struct emulate_state *emulate_state(const struct emulate_part *part)
{
	return &part->states[part->current & 1];
}

/* The state to change. */
static inline struct emulate_state *emulate_other(struct emulate_part *part)
{
	return &part->states[!part->current];
}

/* It holds from now on. */
static inline void emulate_turn(struct emulate_part *part)
{
	__atomic_store_n(&part->current, !part->current, __ATOMIC_RELEASE);
}

/* Afterwards both are the same. */
static inline void emulate_store(struct emulate_part *part, const struct emulate_state *state)
{
	*emulate_other(part) = *state;
	emulate_turn(part);
	*emulate_other(part) = *state;
}

/*
 * The thread was killed. Adds packets that say so: TNT, FUP and TIP.PGD. Returns how many bytes of packets there are
 * now, a multiple of 8.
 */
static inline uint64_t emulate_end(struct emulate_part *part)
{
	const struct emulate_state *state = emulate_state(part);
	uint8_t *at = part->bytes + (state->used < EMULATE_BYTES ? state->used : EMULATE_BYTES);
	uint32_t nr = state->nr_tnt < 48 ? state->nr_tnt : 0;

	while (nr) {
		uint32_t some = nr < 6 ? nr : 6;

		nr -= some;
		*at++ = (uint8_t)((1u << some | (state->tnt >> nr & ((1u << some) - 1))) << 1);
	}
	if (state->on) {
		*at++ = 0x7d; /* FUP with 6 bytes of the address */
		for (int i = 0; i < 6; i++)
			*at++ = (uint8_t)(state->ip >> 8 * i);
		*at++ = 0x01;
	}
	while ((at - part->bytes) % 8)
		*at++ = 0; /* PAD */
	return (uint64_t)(at - part->bytes);
}

#endif
