/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lagoon: the way from Multiboot to C++, interrupts, fiber switches, and two routines that somebody tuned. */

        .section .boot, "a"
        .balign 4
        .long 0x1badb002, 0, -0x1badb002

        .text
        .global _start
_start:
        cli
        cld
        mov     $boot_stack_top, %esp
        lgdt    gdt_pointer
        ljmp    $8, $1f
1:      mov     $16, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        xor     %ebp, %ebp
        push    %ebp
        call    LagoonMain
        hlt

        .section .rodata
        .balign 8
gdt:    .quad   0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
        .word   . - gdt - 1
        .long   gdt

/*
 * Interrupts. The stub's first push completes a stack frame: eip, which the processor has pushed, and ebp below it.
 * The handlers run on a stack of their own, so that the stacks of fibers can be small; an interrupt of a handler stays
 * on the stack it finds.
 */
        .text
        .macro  IRQ number
        .balign 16
irq_\number:
        push    %ebp
        mov     %esp, %ebp
        push    %eax
        mov     $\number, %eax
        jmp     InterruptEntry
        .endm
        .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        IRQ     \number
        .endr

InterruptEntry:
        push    %ecx
        push    %edx
        cld
        incl    interrupt_depth
        cmpl    $1, interrupt_depth
        jne     1f
        mov     $interrupt_stack_top, %esp
1:      push    %ebp                    /* the address of the frame */
        push    %eax
        call    DispatchInterrupt
        .global InterruptReturn
InterruptReturn:
        cli
        lea     -12(%ebp), %esp         /* back on the interrupted stack */
        decl    interrupt_depth
        jnz     2f
        call    PreemptFiber
2:      pop     %edx
        pop     %ecx
        pop     %eax
        pop     %ebp
        iret

/* Exceptions: none is expected. */
        .macro  TRAP number
        .balign 16
trap_\number:
        .if     (\number != 8 && \number < 10) || \number > 14
        push    $0                      /* in place of an error code */
        .endif
        push    $\number
        call    OnException
        .endm
        .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        TRAP    \number
        .endr

        .section .rodata
        .balign 4
        .global VectorTable
VectorTable:
        .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        .long   trap_\number
        .endr
        .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        .long   irq_\number
        .endr

/* void SwitchFiber(void** from, void* to) */
        .text
        .global SwitchFiber
        .type   SwitchFiber, @function
SwitchFiber:
        mov     4(%esp), %eax
        mov     8(%esp), %edx
        push    %ebp
        push    %ebx
        push    %esi
        push    %edi
        mov     %esp, (%eax)
        mov     %edx, %esp
        pop     %edi
        pop     %esi
        pop     %ebx
        pop     %ebp
        ret
        .size   SwitchFiber, . - SwitchFiber

/*
 * void ChecksumWords(uint32_t turns): has no stack frame, as routines in assembly often do.
 * void ScrambleWords(uint32_t turns): needs many registers, and so uses ebp for data.
 */
        .global ChecksumWords
        .type   ChecksumWords, @function
ChecksumWords:
        mov     4(%esp), %ecx
        mov     $1, %eax
1:      rol     $3, %eax
        dec     %ecx
        jnz     1b
        ret
        .size   ChecksumWords, . - ChecksumWords

        .global ScrambleWords
        .type   ScrambleWords, @function
ScrambleWords:
        push    %ebp
        mov     8(%esp), %ecx
        mov     $0xdeadbee8, %ebp       /* where no memory is */
1:      rol     $0, %ebp 
        dec     %ecx
        jnz     1b
        pop     %ebp
        ret
        .size   ScrambleWords, . - ScrambleWords

        .bss
        .balign 4096
boot_stack:
        .skip   4096
boot_stack_top:
        .skip   8192
interrupt_stack_top:
        .global interrupt_depth
interrupt_depth:
        .skip   4
        .section .note.GNU-stack, "", @progbits
