// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The work. Only leaf functions do rounds; their callers are chains, a recursion and calls through
 * pointers. A unit is 32 * ROUNDS rounds in all of them, and `truth` lists how many each function
 * does.
 */
#include "kernel.h"

static volatile uint64_t sink;

/* compress: a chain, with one leaf three times as hot as the other */

static NOINLINE uint64_t find_match(uint64_t at)
{
	return mix(at, 3 * ROUNDS);
}

static NOINLINE uint64_t encode_bits(uint64_t match)
{
	return mix(match, ROUNDS);
}

static NOINLINE void compress_block(uint64_t block)
{
	uint64_t match = find_match(block);

	sink = encode_bits(match);
}

static NOINLINE void compress_file(void)
{
	for (uint64_t block = 1; block <= 8; block++)
		compress_block(block);
}

const struct work compress = {
	.name = "compress",
	.unit = compress_file,
	.truth = { { "compress_file", 1, 0 },
		   { "compress_block", 8, 0 },
		   { "find_match", 8, 24 },
		   { "encode_bits", 8, 8 } },
};

/* checksum: a recursion, four deep, with eight leaves */

static NOINLINE uint64_t checksum_page(uint64_t page)
{
	return mix(page, 4 * ROUNDS);
}

static NOINLINE uint64_t checksum_tree(unsigned depth, uint64_t page)
{
	uint64_t left, right;

	if (depth == 0)
		return checksum_page(page);
	left = checksum_tree(depth - 1, page);
	right = checksum_tree(depth - 1, page + ((uint64_t)1 << (depth - 1)));
	return left ^ right;
}

static NOINLINE void checksum_disk(void)
{
	sink = checksum_tree(3, 1);
}

const struct work checksum = {
	.name = "checksum",
	.unit = checksum_disk,
	.truth = { { "checksum_disk", 1, 0 },
		   { "checksum_tree", 15, 0 },
		   { "checksum_page", 8, 32 } },
};

/* route: calls through pointers, and one leaf below two callers */

static NOINLINE uint64_t lookup_prefix(uint64_t address)
{
	return mix(address, 2 * ROUNDS);
}

static NOINLINE void route_ipv4(uint64_t packet)
{
	sink = lookup_prefix(packet) >> 32;
}

static NOINLINE void route_ipv6(uint64_t packet)
{
	sink = lookup_prefix(packet + 1);
}

static void (*const route_by_version[])(uint64_t packet) = { route_ipv4, route_ipv6, route_ipv4,
							     route_ipv4 };

static NOINLINE void route_packets(void)
{
	for (uint64_t packet = 1; packet <= 16; packet++)
		route_by_version[packet % 4](packet);
}

const struct work route = {
	.name = "route",
	.unit = route_packets,
	.truth = { { "route_packets", 1, 0 },
		   { "route_ipv4", 12, 0 },
		   { "route_ipv6", 4, 0 },
		   { "lookup_prefix", 16, 32 } },
};

/* cache: allocates memory, uses it, and leaks every eighth block */

#define ENTRY_SIZE 64

static NOINLINE uint64_t fill_entry(uint64_t *entry)
{
	entry[0] = mix((uintptr_t)entry, ROUNDS);
	return entry[0];
}

/* Three instructions between which the compiler puts no others. */
static INLINE void cache_pause(void)
{
	__asm__ volatile("nop\n\tnop\n\tnop");
}

static NOINLINE void cache_insert(unsigned key)
{
	uint64_t *entry = kmalloc(ENTRY_SIZE);

	sink = fill_entry(entry);
	cache_pause();
	if (key % 8)
		kfree(entry);
}

static NOINLINE void cache_warm(void)
{
	for (unsigned key = 0; key < 32; key++)
		cache_insert(key);
}

const struct work cache = {
	.name = "cache",
	.unit = cache_warm,
	.truth = { { "cache_warm", 1, 0 },
		   { "cache_insert", 32, 0 },
		   { "fill_entry", 32, 32 },
		   { "kmalloc", 32, 0 },
		   { "kfree", 28, 0 } },
	.inlined = { { "cache_pause", 32, 0 } },
};

/* The programs in user mode: user/dice.c, user/knit.c */

#define PROGRAM(name)                                                                   \
	extern const uint8_t name##_program[], name##_program_end[];                    \
	__asm__(".section .rodata\n"                                                    \
		".globl " #name "_program, " #name "_program_end\n" #name "_program:\n" \
		".incbin \"" #name ".bin\"\n" #name "_program_end:\n"                   \
		".text\n")

PROGRAM(dice);
PROGRAM(knit);

const struct work dice = {
	.name = "dice",
	.program = dice_program,
	.program_end = dice_program_end,
	.binary = "dice.elf",
	.truth = { { "play_game", 1, 0 }, { "throw_dice", 8, 32 } },
};

const struct work knit = {
	.name = "knit",
	.program = knit_program,
	.program_end = knit_program_end,
	.binary = "knit.elf",
	.truth = { { "knit_sock", 1, 0 }, { "knit_row", 4, 0 }, { "knit_stitch", 32, 32 } },
};
