// SPDX-License-Identifier: GPL-2.0-or-later
// Lists of registers.
#include "level.h"

	// do REGISTER REGISTER for all pairs of registers that a trap saves, except x0 and x1
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

	// A struct context.
	.macro save_context at
	stp x19, x20, [\at]
	stp x21, x22, [\at, 16]
	stp x23, x24, [\at, 32]
	stp x25, x26, [\at, 48]
	stp x27, x28, [\at, 64]
	stp x29, x30, [\at, 80]
	mov x9, sp
	str x9, [\at, 96]
	.endm
	// Until sp changes, the old thread runs; from then on, the other one.
	.macro load_context at
	ldp x19, x20, [\at]
	ldp x21, x22, [\at, 16]
	ldp x23, x24, [\at, 32]
	ldp x25, x26, [\at, 48]
	ldp x27, x28, [\at, 64]
	ldp x10, x11, [\at, 80]
	ldr x9, [\at, 96]
	mov sp, x9
	.cfi_register x29, x10
	.cfi_register x30, x11
	mov x29, x10
	.cfi_restore x29
	mov x30, x11
	.cfi_restore x30
	.endm
