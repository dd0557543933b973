// SPDX-License-Identifier: GPL-2.0-or-later
// The compiler calls this to divide 64 bits: r1:r0 by r3:r2. The quotient is in r1:r0, the rest in
// r3:r2.

	.syntax unified
	.cfi_sections .debug_frame

	.text
	.globl __aeabi_uldivmod
	.type __aeabi_uldivmod, %function
__aeabi_uldivmod:
	.cfi_startproc
	push {r4-r7, lr}
	.cfi_def_cfa_offset 20
	.cfi_offset lr, -4
	.irp number, 4, 5, 6, 7
	.cfi_offset r\number, 4 * \number - 36
	.endr
	add r7, sp, #12
	movs r4, #0			// r5:r4: the rest so far
	movs r5, #0
	movs r6, #64
1:	adds r0, r0, r0
	adcs r1, r1, r1
	adcs r4, r4, r4
	adcs r5, r5, r5
	bcs 2f				// more than 64 bits, so more than the divisor
	subs r12, r4, r2
	sbcs r12, r5, r3
	blo 3f
2:	subs r4, r4, r2
	sbc r5, r5, r3
	adds r0, r0, #1
3:	subs r6, r6, #1
	bne 1b
	mov r2, r4
	mov r3, r5
	pop {r4-r7, pc}
	.cfi_endproc
	.size __aeabi_uldivmod, . - __aeabi_uldivmod
