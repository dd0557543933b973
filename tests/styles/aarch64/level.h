/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of what differs between EL1 and EL2, and the frame of a trap. */
#pragma once

#define EL__(name, level) name##_el##level
#define EL_(name, level) EL__(name, level)
#define EL(name) EL_(name, LEVEL)

#define FRAME_SIZE 272
#define FRAME_PC 248
#define PC_COLUMN 32 /* the interrupted pc is in ELR, not in x30 */
#define TRAP_KIND_SYNC 0
#define TRAP_KIND_INTERRUPT 1
#define TRAP_KIND_OTHER 2

#ifdef __ASSEMBLER__
	/* do REGISTER REGISTER for all pairs of registers that a trap saves, except x0 and x1 */
	.macro for_pairs do
	\do 2, 3
	\do 4, 5
	\do 6, 7
	\do 8, 9
	\do 10, 11
	\do 12, 13
	\do 14, 15
	\do 16, 17
	\do 18, 19
	\do 20, 21
	\do 22, 23
	\do 24, 25
	\do 26, 27
	\do 28, 29
	.endm
	.macro save_pair a, b
	stp x\a, x\b, [sp, 8 * \a]
	.cfi_offset \a, 8 * \a - FRAME_SIZE
	.cfi_offset \b, 8 * \b - FRAME_SIZE
	.endm
	.macro load_pair a, b
	ldp x\a, x\b, [sp, 8 * \a]
	.endm
	.macro forget_pair a, b
	.cfi_restore \a
	.cfi_restore \b
	.endm
#endif
