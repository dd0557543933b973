/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work in four shapes of stacks. The name of every function says whose it is:
 * alpha_main > alpha_work > alpha_step > alpha_leaf. Uses rounds, yield() and fail().
 */
#ifndef STYLES_SHAPES_H
#define STYLES_SHAPES_H

#define NOINLINE __attribute__((noinline))

/* Code that the compiler neither moves nor merges; uses no stack. */
#define MIX(x, turns)                                     \
	for (unsigned turn = 0; turn < (turns); turn++) { \
		x ^= x << 13;                             \
		x = (x ^ x >> 7) + turn;                  \
		__asm__ volatile("" : "+r"(x));           \
	}

/* Every nth time. */
#define SOMETIMES(nth, action)            \
	do {                              \
		static unsigned times;    \
                                          \
		if (++times % (nth) == 0) \
			action;           \
	} while (0)

#define LEAF(name)                                       \
	NOINLINE static uint32_t name##_leaf(uint32_t x) \
	{                                                \
		MIX(x, 20);                              \
		return x;                                \
	}

/* Every round has the same result, or a switch has lost a register or a part of the stack. */
#define MAIN(name, seed)                                        \
	NOINLINE static void name##_main(void)                  \
	{                                                       \
		uint32_t first = name##_work(seed);             \
                                                                \
		for (unsigned i = 1; i < rounds; i++) {         \
			if (name##_work(seed) != first)         \
				fail("wrong result in", #name); \
		}                                               \
	}

/* main > work > step > leaf; step yields */
#define CHAIN(name, seed)                                \
	LEAF(name)                                       \
	NOINLINE static uint32_t name##_step(uint32_t x) \
	{                                                \
		x = name##_leaf(x) + name##_leaf(x + 1); \
		SOMETIMES(16, yield());                  \
		return x + name##_leaf(x + 2);           \
	}                                                \
	NOINLINE static uint32_t name##_work(uint32_t x) \
	{                                                \
		for (uint32_t i = 0; i < 4; i++)         \
			x += name##_step(x + i) ^ i;     \
		return x;                                \
	}                                                \
	MAIN(name, seed)

/* main > work > down > down > ... > leaf; down yields at the deepest level */
#define RECURSIVE(name, seed, depth)                                          \
	LEAF(name)                                                            \
	NOINLINE static uint32_t name##_down(uint32_t x, unsigned levels)     \
	{                                                                     \
		if (!levels) {                                                \
			SOMETIMES(8, yield());                                \
			return name##_leaf(x) + 1;                            \
		}                                                             \
		x = name##_down(x + levels, levels - 1) ^ levels;             \
		return levels % 2 ? name##_leaf(x) + x : x;                   \
	}                                                                     \
	NOINLINE static uint32_t name##_work(uint32_t x)                      \
	{                                                                     \
		return name##_down(x, depth) + name##_down(x + 1, depth / 2); \
	}                                                                     \
	MAIN(name, seed)

/* main > work > left or right, by pointers > leaf; work yields */
#define POINTERS(name, seed)                                                            \
	LEAF(name)                                                                      \
	NOINLINE static uint32_t name##_left(uint32_t x)                                \
	{                                                                               \
		return name##_leaf(x) + 1;                                              \
	}                                                                               \
	NOINLINE static uint32_t name##_right(uint32_t x)                               \
	{                                                                               \
		return name##_leaf(x) ^ name##_leaf(x ^ 1);                             \
	}                                                                               \
	static uint32_t (*const volatile name##_ways[])(uint32_t x) = { name##_left,    \
									name##_right }; \
	NOINLINE static uint32_t name##_work(uint32_t x)                                \
	{                                                                               \
		for (uint32_t i = 0; i < 6; i++)                                        \
			x = name##_ways[x >> 3 & 1](x + i) + i;                         \
		SOMETIMES(4, yield());                                                  \
		return x;                                                               \
	}                                                                               \
	MAIN(name, seed)

/* main > work > step or leaf: step ends with a jump to leaf; work yields */
#define TAIL(name, seed)                                 \
	LEAF(name)                                       \
	NOINLINE static uint32_t name##_step(uint32_t x) \
	{                                                \
		MIX(x, 9);                               \
		return name##_leaf(x);                   \
	}                                                \
	NOINLINE static uint32_t name##_work(uint32_t x) \
	{                                                \
		for (uint32_t i = 0; i < 6; i++)         \
			x += name##_step(x) ^ i;         \
		SOMETIMES(8, yield());                   \
		return x;                                \
	}                                                \
	MAIN(name, seed)

/* main > work > leaf, with values in registers of the FPU; work yields */
#define FLOATS(name, seed)                                                            \
	NOINLINE static float name##_leaf(float x)                                    \
	{                                                                             \
		for (unsigned turn = 0; turn < 20; turn++) {                          \
			x = x * 1.5f - (float)turn;                                   \
			__asm__ volatile("" : "+t"(x));                               \
		}                                                                     \
		return x * 1e-4f;                                                     \
	}                                                                             \
	NOINLINE static uint32_t name##_work(uint32_t x)                              \
	{                                                                             \
		float a = (float)x, b = a + 1, c = a + 2, sum = 0;                    \
                                                                                      \
		for (unsigned i = 0; i < 6; i++)                                      \
			sum += name##_leaf(a * b) + c * (float)i;                     \
		SOMETIMES(4, yield());                                                \
		return (uint32_t)(int32_t)(name##_leaf(sum) + a * 3 + b * 5 + c * 7); \
	}                                                                             \
	MAIN(name, seed)

#endif
