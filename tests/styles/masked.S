// SPDX-License-Identifier: GPL-2.0-or-later
// Interrupts are off for a known number of instructions: from the one after the first `off` to the last
// `on` or `restore`, all architectures execute the same number.
#ifdef __riscv
#ifdef MACHINE_MODE
#define STATUS mstatus
#else
#define STATUS sstatus
#endif
#endif
	.text

	.macro function name
	.globl \name
#ifdef __thumb__
	.type \name, %function
	.thumb_func
\name:
	.fnstart
#else
	.type \name, %function
\name:
#endif
	.cfi_startproc
	.endm

	.macro end_function name
	.cfi_endproc
#ifdef __thumb__
	.fnend
#endif
	.size \name, . - \name
	.endm

#if defined(__x86_64__)
	.macro enter
	.endm
	.macro leave
	.endm
	.macro off
	cli
	.endm
	.macro on
	sti
	.endm
	.macro keep // one instruction
	pushf
	.cfi_adjust_cfa_offset 8
	.endm
	.macro restore_kept
	popf
	.cfi_adjust_cfa_offset -8
	.endm
	.macro spin // 1 + 2 * MASKED_SPIN instructions
	mov $MASKED_SPIN, %ecx
1:	dec %ecx
	jnz 1b
	.endm
	.macro call_end
	call masked_end
	.endm
#elif defined(__aarch64__)
	.macro enter
	str x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x30, -16
	.endm
	.macro leave
	ldr x30, [sp], 16
	.cfi_def_cfa_offset 0
	.cfi_restore x30
	.endm
	.macro off
	msr daifset, 2
	.endm
	.macro on
	msr daifclr, 2
	.endm
	.macro keep
	mrs x10, daif
	.endm
	.macro restore_kept
	msr daif, x10
	.endm
	.macro spin
	mov w9, MASKED_SPIN
1:	subs w9, w9, 1
	b.ne 1b
	.endm
	.macro call_end
	bl masked_end
	.endm
#elif defined(__riscv)
	.option norelax
	.option norvc
	.macro enter
	addi sp, sp, -16
	.cfi_def_cfa_offset 16
	sd ra, 0(sp)
	.cfi_offset ra, -16
	.endm
	.macro leave
	ld ra, 0(sp)
	.cfi_restore ra
	addi sp, sp, 16
	.cfi_def_cfa_offset 0
	.endm
	.macro off
	csrci STATUS, STATUS_ON
	.endm
	.macro on
	csrsi STATUS, STATUS_ON
	.endm
	.macro keep
	csrr t1, STATUS
	.endm
	.macro restore_kept
	csrw STATUS, t1
	.endm
	.macro spin
	lui t0, MASKED_SPIN >> 12
1:	addi t0, t0, -1
	bnez t0, 1b
	.endm
	.macro call_end
	jal ra, masked_end
	.endm
#elif defined(__thumb__)
	.macro enter
	.save {r4, lr}
	push {r4, lr}
	.cfi_def_cfa_offset 8
	.cfi_offset lr, -4
	.endm
	.macro leave
	pop {r4, lr}
	.cfi_def_cfa_offset 0
	.cfi_restore lr
	.endm
	.macro off
	cpsid i
	.endm
	.macro on
	cpsie i
	.endm
	.macro keep
	mrs r1, primask
	.endm
	.macro restore_kept
	msr primask, r1
	.endm
	.macro spin
	mov.w r0, MASKED_SPIN
1:	subs r0, r0, 1
	bne 1b
	.endm
	.macro call_end
	bl masked_end
	.endm
#endif

	.macro return
#ifdef __thumb__
	bx lr
#else
	ret
#endif
	.endm

	// Off for 3 instructions that keep interrupts off, the spin, the call and the `on`: 2 * MASKED_SPIN + 6.
function masked_begin
	enter
	off
	keep
	off
	restore_kept
	spin
	call_end
	leave
	return
end_function masked_begin

function masked_end
	on
	return
end_function masked_end

	// Off for the spin and the `restore_kept`: 2 * MASKED_SPIN + 2.
function masked_restore
	enter
	keep
	off
	spin
	restore_kept
	leave
	return
end_function masked_restore
