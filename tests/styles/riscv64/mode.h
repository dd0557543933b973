/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what differs between machine mode and supervisor mode. */
#pragma once

#ifdef MACHINE_MODE
#define CSR(name) m##name
#define TRAP_RETURN mret
#define STATUS_KEPT 0x1880 /* MPP and MPIE: first state of a thread */
#define STATUS_ON 8
#else
#define CSR(name) s##name
#define TRAP_RETURN sret
#define STATUS_KEPT 0x120 /* SPP and SPIE */
#define STATUS_ON 2
#endif

#define FRAME_SIZE 272
#define FRAME_PC 0 /* in place of x0 */
#define FRAME_STATUS 256
#define PC_COLUMN 32 /* f0, which the guests do not use, stands for the interrupted pc */

#ifdef __ASSEMBLER__
/* do NUMBER NAME for each register that a trap saves, in the order of their numbers */
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
#endif
