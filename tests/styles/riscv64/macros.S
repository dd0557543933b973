// SPDX-License-Identifier: GPL-2.0-or-later
// Lists of registers.
#include "mode.h"

	// do NUMBER NAME for each register that a trap saves
	.macro for_registers do
	\do 1, ra
	\do 3, gp
	\do 4, tp
	\do 5, t0
	\do 6, t1
	\do 7, t2
	\do 8, s0
	\do 9, s1
	\do 10, a0
	\do 11, a1
	\do 12, a2
	\do 13, a3
	\do 14, a4
	\do 15, a5
	\do 16, a6
	\do 17, a7
	\do 18, s2
	\do 19, s3
	\do 20, s4
	\do 21, s5
	\do 22, s6
	\do 23, s7
	\do 24, s8
	\do 25, s9
	\do 26, s10
	\do 27, s11
	\do 28, t3
	\do 29, t4
	\do 30, t5
	\do 31, t6
	.endm

	// The registers of a struct context, except ra, sp and s0.
	.macro for_context do, at
	\do s1, 24(\at)
	\do s2, 32(\at)
	\do s3, 40(\at)
	\do s4, 48(\at)
	\do s5, 56(\at)
	\do s6, 64(\at)
	\do s7, 72(\at)
	\do s8, 80(\at)
	\do s9, 88(\at)
	\do s10, 96(\at)
	\do s11, 104(\at)
	.endm
	.macro save_context at
	sd ra, 0(\at)
	sd sp, 8(\at)
	sd s0, 16(\at)
	for_context sd, \at
	.endm
	// Until sp changes, the old thread runs; from then on, the other one.
	.macro load_context at
	for_context ld, \at
	ld t0, 16(\at)
	ld t1, 0(\at)
	ld t2, 8(\at)
	mv sp, t2
	.cfi_register s0, t0
	.cfi_register ra, t1
	mv s0, t0
	.cfi_restore s0
	mv ra, t1
	.cfi_restore ra
	.endm
