// SPDX-License-Identifier: GPL-2.0-or-later
/* The work of the threads. */
#include "common.h"

unsigned rounds = ROUNDS;

CHAIN(alpha, 11)
RECURSIVE(beta, 22, 6)
POINTERS(gamma, 33)
TAIL(delta, 44)
CHAIN(epsilon, 55)
RECURSIVE(zeta, 66, 9)
#if defined(__ARM_FP) && !defined(__aarch64__)
FLOATS(eta, 77)
FLOATS(theta, 88)
#else
POINTERS(eta, 77)
TAIL(theta, 88)
#endif

const struct worker workers[WORKERS] = {
	{ "alpha", alpha_main }, { "beta", beta_main },	      { "gamma", gamma_main },
	{ "delta", delta_main }, { "epsilon", epsilon_main }, { "zeta", zeta_main },
	{ "eta", eta_main },	 { "theta", theta_main },
};
