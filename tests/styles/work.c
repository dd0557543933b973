// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The work of the threads, in four shapes of stacks. The name of every function says whose it is:
 * alpha_main > alpha_work > alpha_step > alpha_leaf.
 */
#include "common.h"

unsigned rounds = ROUNDS;

/* Every nth time. */
#define SOMETIMES(nth, action)              \
	do {                                \
		static unsigned times;      \
                                            \
		if (++times % (nth) == 0)   \
			action;             \
	} while (0)

#define LEAF(name)                                      \
	NOINLINE static uint32_t name##_leaf(uint32_t x) \
	{                                               \
		MIX(x, 20);                             \
		return x;                               \
	}

/* Every round has the same result, or a switch has lost a register or a part of the stack. */
#define MAIN(name, seed)                                         \
	NOINLINE static void name##_main(void)                   \
	{                                                        \
		uint32_t first = name##_work(seed);              \
                                                                 \
		for (unsigned i = 1; i < rounds; i++) {          \
			if (name##_work(seed) != first)          \
				fail("wrong result in", #name);  \
		}                                                \
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
#define RECURSIVE(name, seed, depth)                                         \
	LEAF(name)                                                           \
	NOINLINE static uint32_t name##_down(uint32_t x, unsigned levels)    \
	{                                                                    \
		if (!levels) {                                               \
			SOMETIMES(8, yield());                               \
			return name##_leaf(x) + 1;                           \
		}                                                            \
		x = name##_down(x + levels, levels - 1) ^ levels;            \
		return levels % 2 ? name##_leaf(x) + x : x;                  \
	}                                                                    \
	NOINLINE static uint32_t name##_work(uint32_t x)                     \
	{                                                                    \
		return name##_down(x, depth) + name##_down(x + 1, depth / 2); \
	}                                                                    \
	MAIN(name, seed)

/* main > work > left or right, by pointers > leaf; work yields */
#define POINTERS(name, seed)                                                 \
	LEAF(name)                                                           \
	NOINLINE static uint32_t name##_left(uint32_t x)                     \
	{                                                                    \
		return name##_leaf(x) + 1;                                   \
	}                                                                    \
	NOINLINE static uint32_t name##_right(uint32_t x)                    \
	{                                                                    \
		return name##_leaf(x) ^ name##_leaf(x ^ 1);                  \
	}                                                                    \
	static uint32_t (*const volatile name##_ways[])(uint32_t x) = {      \
		name##_left, name##_right                                    \
	};                                                                   \
	NOINLINE static uint32_t name##_work(uint32_t x)                     \
	{                                                                    \
		for (uint32_t i = 0; i < 6; i++)                             \
			x = name##_ways[x >> 3 & 1](x + i) + i;              \
		SOMETIMES(4, yield());                                       \
		return x;                                                    \
	}                                                                    \
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

CHAIN(alpha, 11)
RECURSIVE(beta, 22, 6)
POINTERS(gamma, 33)
TAIL(delta, 44)
CHAIN(epsilon, 55)
RECURSIVE(zeta, 66, 9)
POINTERS(eta, 77)
TAIL(theta, 88)

const struct worker workers[WORKERS] = {
	{ "alpha", alpha_main },     { "beta", beta_main }, { "gamma", gamma_main },
	{ "delta", delta_main },     { "epsilon", epsilon_main }, { "zeta", zeta_main },
	{ "eta", eta_main },	     { "theta", theta_main },
};
