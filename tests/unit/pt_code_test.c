// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/code: blocks, at the end of the code and across the border of two maps. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes first = { pt_code, sizeof(pt_code) };
static const struct pt_bytes next = { pt_code_next, sizeof(pt_code_next) };

static void init_code(struct ipt_code *code, const struct pt_bytes *bytes)
{
	ipt_code_init(code, (struct ipt_bytes){ .read = pt_read_code, .data = bytes }, bytes->len,
		      0);
}

static bool is_block(struct ipt_code *code, uint64_t offset, bool wide, enum ipt_flow_kind kind,
		     unsigned insns, unsigned size)
{
	const struct ipt_block *b = ipt_code_find(code, offset, wide);

	return b->kind == kind && b->insns == insns && b->size == size && b->start == offset &&
	       b == ipt_code_find(code, offset, wide);
}

/* Zydis 4.0 does not know them. */
static void test_event_returns(void)
{
	static const uint8_t bytes[] = { 0x90, 0xf3, 0x0f, 0x01, 0xca, 0x90, 0xf2,
					 0x0f, 0x01, 0xca, 0xf3, 0x0f, 0x01 };
	static const struct pt_bytes fred = { bytes, sizeof(bytes) };
	struct ipt_code code;

	init_code(&code, &fred);
	check("eretu", is_block(&code, 0, true, IPT_LEAVE, 2, 5));
	check("erets", is_block(&code, 5, true, IPT_LEAVE, 2, 5));
	check("half of it", is_block(&code, 10, true, IPT_NOTHING, 0, 0));
	ipt_code_release(&code);
}

static void test_kinds(void)
{
	static const struct {
		uint8_t offset, kind, insns, size, target;
	} blocks[] = {
		{ 0x00, IPT_COND, 2, 3, 0x10 },	 { 0x03, IPT_JUMP, 1, 2, 0x10 },
		{ 0x05, IPT_CALL, 1, 5, 0x20 },	 { 0x0a, IPT_JUMP_ANY, 1, 2, 0 },
		{ 0x0c, IPT_CALL_ANY, 1, 2, 0 }, { 0x0e, IPT_RETURN, 1, 1, 0 },
		{ 0x10, IPT_CALL, 1, 5, 0x15 },	 { 0x18, IPT_ENTER, 1, 2, 0 },
		{ 0x1c, IPT_LEAVE, 1, 2, 0 },	 { 0x20, IPT_COND, 2, 3, 0x25 },
		{ 0x23, IPT_COND, 1, 2, 0x21 },	 { 0x27, IPT_ENTER, 1, 1, 0 },
		{ 0x37, IPT_JUMP, 4, 14, 0x30 }, { 0x50, IPT_LEAVE, 1, 2, 0 },
		{ 0x52, IPT_ENTER, 1, 2, 0 },	 { 0x54, IPT_LEAVE, 1, 1, 0 },
		{ 0x60, IPT_RETURN, 1, 3, 0 },	 { 0x63, IPT_NOTHING, 0, 0, 0 },
		{ 0x64, IPT_ENTER, 1, 3, 0 },	 { 0x67, IPT_LEAVE, 1, 3, 0 },
		{ 0x6a, IPT_ENTER, 1, 2, 0 },
	};
	struct ipt_code code;
	bool good = true;

	init_code(&code, &first);
	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		bool here =
			is_block(&code, blocks[i].offset, true, blocks[i].kind, blocks[i].insns,
				 blocks[i].size) &&
			ipt_code_find(&code, blocks[i].offset, true)->target == blocks[i].target;

		if (!here)
			printf("# the block at %x\n", blocks[i].offset);
		good &= here;
	}
	check("blocks of every kind", good);
	check("the same bytes as 32-bit code",
	      is_block(&code, 0x1c, false, IPT_LEAVE, 2, 2) &&
		      is_block(&code, 0x63, false, IPT_ENTER, 2, 4));
	ipt_code_release(&code);
}

static void test_inside(void)
{
	struct ipt_code code;
	const struct ipt_block *b;

	init_code(&code, &first);
	b = ipt_code_find(&code, 0x37, true);
	check("instructions before a place in a block",
	      ipt_block_before(&code, b, 0x37) == 0 && ipt_block_before(&code, b, 0x3d) == 1 &&
		      ipt_block_before(&code, b, 0x43) == 3);
	check("its end", ipt_block_before(&code, b, 0x45) == 4);
	check("no instruction begins there", ipt_block_before(&code, b, 0x38) == -1 &&
						     ipt_block_before(&code, b, 0x46) == -1 &&
						     ipt_block_before(&code, b, 0x36) == -1);
	ipt_code_release(&code);
}

static void test_ends(void)
{
	struct ipt_code code;

	init_code(&code, &first);
	check("up to an instruction that is cut off", is_block(&code, 0x6c, true, IPT_ON, 2, 2));
	check("the instruction that is cut off", is_block(&code, 0x6e, true, IPT_NOTHING, 0, 0));
	check("behind the end", is_block(&code, 0x70, true, IPT_NOTHING, 0, 0));
	check("far behind it", is_block(&code, UINT64_MAX, true, IPT_NOTHING, 0, 0));
	ipt_code_release(&code);
}

/* Two maps next to each other, with an instruction in both. */
static void test_bridges(void)
{
	static struct pt_trace t;
	struct ipt_code one, two;
	struct ipt_history h = { 0 };
	struct ipt_world world;
	struct ipt_clock_info clock = { { 0 }, 0, 0 };
	struct ipt_flow flow = { .all = true, .clock = { .info = &clock } };
	struct pt_result *r = calloc(1, sizeof(*r));

	init_code(&one, &first);
	init_code(&two, &next);
	ipt_history_map(&h, PT_PID, 0, PT_BASE, first.len, &one);
	ipt_history_map(&h, PT_PID, 0, PT_BASE + first.len, next.len, &two);
	ipt_history_queue(&h, PT_PID);
	ipt_history_complete(&h);
	world = ipt_history_world(&h);
	flow.world = &world;
	pt_add_text(&t, "psb:6c tnt:111 fup:0 pgd0 pge:6e fup:20 pgd0");
	ipt_flow_begin(&flow);
	ipt_flow_run(&flow, t.data, t.len, 0, true);
	for (size_t i = 0; i < flow.nr; i++)
		pt_say_branch(r, &flow.branches[i]);
	if (strcmp(r->text, "on ->6c 0; call 6e>20 3; jump 21>25 2; ret 26>73 2; jump 73>0 1; "
			    "pause 0>- 0; begin ->6e 0; call 6e>20 1; pause 20>- 0") != 0)
		printf("# is: %s\n", r->text), r->gap = true;
	check("an instruction on the border of two maps, and a return behind it", !r->gap);
	free(r);
	ipt_flow_release(&flow);
	ipt_history_release(&h);
	ipt_code_release(&one);
	ipt_code_release(&two);
}

static size_t read_nops(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	(void)data, (void)offset;
	memset(bytes, 0x90, size);
	return size;
}

static void test_many(void)
{
	struct ipt_code code;
	struct ipt_block *b, *other;

	ipt_code_init(&code, (struct ipt_bytes){ .read = read_nops }, (uint64_t)1 << 40, 0);
	b = ipt_code_find(&code, 0, true);
	check("a block is not longer than needed", b->kind == IPT_ON && b->insns == 512);
	code.nr = IPT_MAX_BLOCKS;
	other = ipt_code_find(&code, 1, true);
	check("too many blocks", other->kind == IPT_NOTHING && other->insns == 0);
	check("blocks from before remain", ipt_code_find(&code, 0, true) == b);
	ipt_code_release(&code);
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_kinds();
	test_event_returns();
	test_inside();
	test_ends();
	test_bridges();
	test_many();
	return test_result();
}
