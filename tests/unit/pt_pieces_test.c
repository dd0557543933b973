// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/ahead: the sum of instructions does not depend on the size of pieces, or on the number of threads. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

#define ROUNDS 600
#define INSNS 12 /* of a round */

static struct pt_trace trace;

/* Rounds have PSB packets at the begin of a block, inside of one, and before a return. */
static void make_trace(void)
{
	static const char *const rounds[] = {
		"tnt:11 tip:0 tnt:10 tip:5",
		"tnt:1 psb:26 tip:a tip:0 tnt:10 tip:5",
		"tnt:11 tip:0 tnt:1 psb:15 tnt:0 tip:5",
		"tnt:11 tip:0 tnt:1 psb:10 tnt:0 tip:5 psb:5",
		"tnt:11 psb:a psb:a tip:0 tnt:1 psb:16 tnt:0 tip:5 psb:5",
	};
	uint64_t random = 1;

	pt_add_text(&trace, "psb:5");
	for (int i = 0; i < ROUNDS; i++)
		pt_add_text(&trace, rounds[next_random(&random) % 5]);
	pt_add_text(&trace, "fup:5 pgd0");
}

static bool read_trace(const void *data, uint32_t queue, uint64_t position, uint8_t *to, size_t len)
{
	(void)data, (void)queue;
	if (position > trace.len || len > trace.len - position)
		return false;
	memcpy(to, trace.data + position, len);
	return true;
}

struct sum {
	uint64_t insns, calls, returns, gaps, begins;
};

static void add_branches(struct sum *sum, const struct ipt_piece *piece)
{
	const struct ipt_flow *flow = &piece->flow;

	for (size_t i = 0; i < flow->nr; i++) {
		const struct ipt_branch *b = &flow->branches[i];

		sum->insns += b->insns;
		sum->calls += b->kind == IPT_DID_CALL;
		sum->returns += b->kind == IPT_DID_RETURN;
		sum->gaps += b->kind == IPT_DID_GAP;
		sum->begins += b->kind == IPT_DID_BEGIN;
	}
	if (piece->done)
		sum->insns += flow->insns;
}

/* Decodes a span of the trace. */
static struct sum decode(uint64_t piece, size_t threads, uint64_t begin, uint64_t end)
{
	const struct pt_bytes code = { pt_code, sizeof(pt_code) };
	struct ipt_ahead ahead = { .read = read_trace, .all = true, .piece = piece };
	struct ipt_piece *next;
	struct sum sum = { 0 };
	struct pt_machine m;

	pt_open(&m, code);
	ahead.world = &m.world;
	ahead.clock = &m.clock;
	ipt_ahead_init(&ahead);
	ipt_ahead_add(&ahead, 0, begin, begin + (end - begin) / 2);
	ipt_ahead_add(&ahead, 0, begin + (end - begin) / 2, end);
	ipt_ahead_start(&ahead, threads);
	while ((next = ipt_ahead_next(&ahead, 0))) {
		add_branches(&sum, next);
		ipt_ahead_took(&ahead, 0);
	}
	ipt_ahead_release(&ahead);
	pt_close(&m);
	return sum;
}

static void test_sizes(void)
{
	bool good = true, same = true;

	for (uint64_t piece = 1; piece < 100000; piece = piece * 5 / 4 + 1) {
		for (size_t threads = 0; threads <= 2; threads += 2) {
			struct sum sum = decode(piece, threads, 0, trace.len);

			good &= sum.insns == ROUNDS * INSNS && !sum.gaps && !sum.begins;
			same &= sum.calls == 2 * ROUNDS && sum.returns == ROUNDS;
		}
	}
	check("the same instructions in pieces of any size", good);
	check("the same calls and returns", same);
}

static void test_parts(void)
{
	bool good = true;

	for (uint64_t end = 0; end < 600; end++) {
		struct sum whole = decode(100000, 0, 0, end), parts = decode(64, 2, 0, end);

		/* A last packet that is cut off is a gap, however it is read. */
		good &= whole.insns == parts.insns && whole.gaps == parts.gaps;
	}
	check("the same for a trace that ends anywhere", good);
}

static void test_missing(void)
{
	struct sum sum = decode(1000, 2, 0, trace.len + 1);

	check("a byte that cannot be read ends the trace", sum.insns < ROUNDS * INSNS && !sum.gaps);
	sum = decode(1000, 2, UINT64_MAX - 100000, UINT64_MAX);
	check("nothing can be read", !sum.insns && !sum.gaps);
	sum = decode(1000, 2, 5, 5);
	check("nothing to read", !sum.insns && !sum.gaps);
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	make_trace();
	test_sizes();
	test_parts();
	test_missing();
	return test_result();
}
