#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How the plugin decodes instructions that llvm-mc assembles.

Each line has what is expected, and instructions to which it applies, separated by semicolons. Expected is
the flow (unless control goes on), the flags, and what happens to the stack pointer: by how many bytes it
moves, or ? if that is unknown, or = if it is replaced. Last comes what happens to interrupts: on, off, or
mask with what is known without looking at the registers: on, off, ? or how it is computed, the register that it is
computed from, and the bits that switch interrupts on, off, and on after the return from an exception.
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, equal, finish, skip

TOOL = os.path.join(BUILD, "tests", "movetool")
TABLES = {}

TABLES["x86_64", "x86_64"] = """
 | nop; cmp $8, %rsp; test %rsp, %rsp; mov %rsp, %rbp; lea 8(%rsp), %rax; mov %rsp, (%rax); inc %eax
 | add (%rsp), %rax; mov $1, %r12d; mov %rax, %r12; lea 8(%rbx), %r12; sub $8, %r12; mov %cr3, %rax
-8 | push %rax; push %rsp; push %r12; push $1; push $0x12345; push (%rax); push 8(%rsp); pushf; push %fs
off | cli
on | sti
+8 mask? | popf
-8 | sub $8, %rsp; add $-8, %rsp; lea -8(%rsp), %rsp
-2 | pushw %ax; pushw $1; pushw (%rax)
+8 | pop %rax; pop %r12; pop (%rax); pop %gs; add $8, %rsp; sub $-8, %rsp; lea 8(%rsp), %rsp
+2 | popw %ax
-4096 | sub $4096, %rsp; lea -4096(%rsp), %rsp
-40 | enter $32, $0
? | leave; mov %rbp, %rsp; lea -40(%rbp), %rsp; and $-16, %rsp; sub %rax, %rsp; add (%rax), %rsp
? | enter $32, $1; lea (%rsp,%rax), %rsp; xor %rsp, %rsp; shl $3, %rsp; neg %rsp; cmove %rax, %rsp
= | mov %rax, %rsp; mov (%rdi), %rsp; mov %gs:16, %rsp; xchg %rsp, %rax; xchg %rsp, (%rax); pop %rsp
= | mov $0x1000, %rsp; movabs $0x123456789a, %rsp; mov $0x1000, %esp; lea 16(%rip), %rsp
= | lea 8(%r10), %rsp; lea 8(%r12), %rsp; lea 8(%r13), %rsp; mov 8(%rsp), %rsp
call -8 | call 0x1000
call* -8 | call *%rax; call *8(%rsp)
call* state ? | lcall *(%rax)
return +8 | ret; rep ret
return +24 | ret $16
jump* state ? | lretq
jump | jmp 0x1000
jump* | jmp *%rax
cond | je 0x1000; rep movsb
enter | syscall
enter ? | int $0x80; int3; ud2; sysenter
leave | sysretq
leave ? | iretq; sysexit
leave maybe = | vmrun %rax
enter | vmmcall
 | vmload %rax; vmsave %rax; stgi; clgi; invlpg (%rax); sgdt (%rax)
wait | hlt
 state | mov %rax, %cr3
"""

TABLES["i386", "i386"] = """
 | inc %eax; dec %ebp; mov %esp, %ebp; mov %esp, %eax
-4 | push %eax; push $1; push %es; push %cs; pushf; sub $4, %esp
+4 | pop %eax; pop %es; pop %ss; add $4, %esp
+4 mask? | popf
off | cli
-2 | pushw %ax
-32 | pusha
+32 | popa
-16 | pushaw
+1 | inc %esp
-1 | dec %esp
? | leave; mov %ebp, %esp; and $-16, %esp; sub %eax, %esp
= | mov %eax, %esp; mov 0x1000, %esp; mov $0x1000, %esp; lss 0x1000, %esp; xchg %eax, %esp; pop %esp
call -4 | call 0x1000
return +4 | ret
return +8 | ret $4
leave ? | iret
"""

TABLES["aarch64", "aarch64"] = """
 | nop; mov x29, sp; add x0, sp, #16; stp x29, x30, [sp, #16]; ldr x0, [sp]; cmp sp, x0; msr sp_el0, x0
 | stp x0, x1, [x2, #-16]!; ldr x0, [x1], #8; ands xzr, x0, #1; subs xzr, x0, #1; ldp x0, x1, [sp]
-32 | stp x29, x30, [sp, #-32]!; sub sp, sp, #32; stp q0, q1, [sp, #-32]!; stp d8, d9, [sp, #-32]!
-32 | stp w0, w1, [sp, #-32]!; str x0, [sp, #-32]!; str q0, [sp, #-32]!; str w0, [sp], #-32
+32 | ldp x29, x30, [sp], #32; add sp, sp, #32; ldp q0, q1, [sp], #32; ldr x30, [sp], #32
+32 | ldr d8, [sp], #32; ldrb w0, [sp], #32; ldpsw x0, x1, [sp], #32
-8192 | sub sp, sp, #2, lsl #12
? | mov sp, x29; add sp, x29, #16; sub sp, x29, #16; sub sp, sp, x0; add sp, sp, x0; and sp, x9, #-16
? | ld1 {v0.2d}, [sp], #16; sub sp, sp, w0, uxtw
= | mov sp, x0; add sp, x0, #16; sub sp, x1, #16; msr spsel, #0; msr spsel, #1; add sp, x0, x1
= | msr spsel, x0
call | bl 0x1000
call* | blr x0
return | ret
jump* | br x0
cond | b.eq 0x1000; cbz x0, 0x1000; tbz x0, #1, 0x1000
enter ? | svc #0; hvc #0; smc #0; brk #0
leave ? | eret
wait | wfi
 | wfe; msr daifset, #1; msr daifclr, #13; mrs x0, daif; msr tpidr_el1, x0
off | msr daifset, #2; msr daifset, #15
on | msr daifclr, #2; msr daifclr, #3; msr daif, xzr
mask=10:0,80,0 | msr daif, x10
 state | msr ttbr0_el1, x0; msr ttbr1_el1, x0
"""

TABLES["arm", "armv8a"] = """
 | nop; mov r11, sp; add r0, sp, #8; ldr r0, [sp, #4]; stmdb sp, {r0, r1}; cmp sp, r0; mul r0, r1, r2
 | ldmdb sp, {r0-lr}^; stmdb sp, {r0-lr}^; strd r0, r1, [sp, #8]; ldr r0, [r1], #4; ubfx r13, r0, #1, #2
-8 | push {r4, lr}; stmdb sp!, {r0, r1}; sub sp, sp, #8; str r0, [sp, #-8]!; strd r0, r1, [sp, #-8]!
-8 | vpush {d8}; vpush {s0, s1}; strh r0, [sp, #-8]!
+8 | pop {r4, r5}; add sp, sp, #8; ldr r0, [sp], #8; vpop {d8}; ldrd r0, r1, [sp], #8
+4 | pop {r4}
-1024 | sub sp, sp, #1024
? | mov sp, r11; sub sp, r11, #8; add sp, sp, r0; bic sp, sp, #7; popne {r4}; subne sp, sp, #8
? | ldmdb r11, {r4, r11, sp}; srsdb sp!, #31; vst1.8 {d0}, [sp]!
= | mov sp, r0; ldr sp, [r0]; ldm r0, {r4, sp}; movw sp, #1; movne sp, r0; add sp, r0, #8; cps #18
= mask? | msr cpsr_c, r0; msr cpsr_c, #0xd3; msrne cpsr_cf, r0
= | mov sp, #0x1000
 | msr cpsr_f, r0; msr spsr_cxsf, r0; cpsid f
off | cpsid i; cpsid if; cpsid aif
on | cpsie i
= off | cpsid i, #18
return +8 | pop {r4, pc}
return +4 | ldr pc, [sp], #4
return maybe ? | popne {r4, pc}
return | bx lr; mov pc, lr
call | bl 0x1000
call maybe | blne 0x1000
call* | blx r0
enter ? | svc #0; bkpt #0
leave ? | movs pc, lr; subs pc, lr, #4; rfeia sp!; ldm sp!, {r0-r12, pc}^
 state | mcr p15, 0, r0, c2, c0, 0
"""

TABLES["thumb", "thumbv7a"] = """
 | nop; mov r7, sp; add r0, sp, #8; ldr r0, [sp, #4]; ldr r0, [sp, #-4]; strd r0, r1, [sp, #8]
-8 | push {r4, lr}; push.w {r8, lr}; sub sp, #8; str r0, [sp, #-8]!; strd r0, r1, [sp, #-8]!; vpush {d8}
-8 | subw sp, sp, #8
+8 | pop {r4, r5}; pop.w {r8, r9}; add sp, #8; ldr r0, [sp], #8; vpop {d8}; ldrd r0, r1, [sp], #8
+8 | addw sp, sp, #8; ldrsb r0, [sp], #8
-1024 | sub.w sp, sp, #1024
+4095 | addw sp, sp, #4095
-16711935 | sub.w sp, sp, #0x00ff00ff
? | mov sp, r7; add sp, r0; sub.w sp, sp, r0
= | mov sp, r0; ldr.w sp, [r0]; ldr.w sp, [r0], #4; mov.w sp, r9; cps #18
= mask? | msr cpsr_c, r0
 | msr cpsr_f, r0; cpsid a
mask off | cpsid i; cpsid if; cpsid f
mask on | cpsie i
mask? | cpsie f
return +8 | pop {r4, pc}
return +12 | pop.w {r8, r9, pc}
return +4 | ldr pc, [sp], #4
return | bx lr
call | bl 0x1000
call* | blx r0
cond | beq 0x1000; cbz r0, #64
enter ? | svc #0
leave ? | rfeia sp!; subs pc, lr, #4
 it1 | it ne
 | movne r0, r1
 it3 | itte ne
 | movne r0, r1; movne r0, r1; moveq r0, r1
"""

TABLES["thumb", "thumbv7m"] = """
mask off | cpsid i
mask on | cpsie i
mask=1:0,1,0 | msr primask, r1; msr faultmask, r1
mask=12:0,ff,0 | msr basepri, r12
mask|0:0,ff,0 | msr basepri_max, r0
 | mrs r0, primask; msr apsr_nzcvq, r0; wfe
= | msr psp, r0
wait | wfi
"""

TABLES["riscv64", "riscv64"] = """
 | nop; mv s0, sp; addi a0, sp, 8; ld a0, 8(sp); sd a0, 8(sp); c.addi4spn a0, sp, 16
-32 | addi sp, sp, -32; c.addi16sp sp, -32; c.addi sp, -32
+16 | addi sp, sp, 16; c.addi sp, 16
+496 | c.addi16sp sp, 496
-2048 | addi sp, sp, -2048
? | addi sp, s0, -16; c.mv sp, s0; add sp, sp, a0; c.add sp, a0; andi sp, sp, -16; sub sp, sp, a0; sub sp, s0, a0
= | ld sp, 8(a0); c.mv sp, a0; mv sp, tp; add sp, t0, t1; csrrw sp, sscratch, sp; c.li sp, 1; c.ldsp sp, 8(sp)
=high | lui sp, 16; auipc sp, 16
call | jal 0x1000
call* | jalr a0; c.jalr a0
return | ret; c.jr ra
jump* | jr a0
enter | ecall; ebreak
leave | sret; mret
wait | wfi
 state | csrw satp, a0
off | csrci sstatus, 2; csrrci a0, sstatus, 6; csrci mstatus, 8; csrwi sstatus, 0
on | csrsi sstatus, 2; csrrsi a0, mstatus, 8; csrwi mstatus, 8
mask=5:2,0,20 | csrw sstatus, t0; csrrw a0, sstatus, t0
mask=0:2,0,20 | csrw sstatus, zero
mask|10:2,0,20 | csrs sstatus, a0
mask&~10:8,0,80 | csrc mstatus, a0; csrrc a1, mstatus, a0
mask? | csrrw a0, sstatus, a0; csrrc a0, mstatus, a0
 | csrr a0, sstatus; csrci sstatus, 1; csrsi mstatus, 2; csrw sie, a0; csrr a0, mstatus
"""
TABLES["riscv32", "riscv32"] = (TABLES["riscv64", "riscv64"].replace("; c.ldsp sp, 8(sp)", "")
                                .replace("ld a0", "lw a0").replace("sd a0", "sw a0")
                                .replace("ld sp", "lw sp"))
FEATURES = {"aarch64": "+neon,+el3", "armv8a": "+vfp3,+neon", "thumbv7a": "+vfp3,+neon", "riscv64": "+c,+d",
            "riscv32": "+c"}


def rows(table):
    for line in table.strip("\n").split("\n"):
        want, codes = line.split(" | ", 1)
        for code in codes.split(";"):
            yield code.strip(), want.strip()


def assemble(target, features, codes):
    """The bytes of each instruction; what a fixup would fill in is 0."""
    done = subprocess.run(["llvm-mc", f"-triple={target}", f"-mattr={features}", "--show-encoding"],
                          input="\n".join(codes) + "\n", capture_output=True, text=True, check=False)
    found = re.findall(r"encoding: \[(.*?)\]", done.stdout)
    return ["".join(byte[2:] if re.fullmatch("0x[0-9a-f]{2}", byte) else "00"
                    for byte in text.split(",")) for text in found], done.stderr


def test_table(arch, target, table):
    codes, wanted = zip(*rows(table))
    lines, errors = assemble(target, FEATURES.get(target, ""), codes)
    if not equal(f"{target}: every instruction assembles", (len(lines), errors), (len(codes), "")):
        return
    got = subprocess.run([TOOL, arch], input="\n".join(lines) + "\n", capture_output=True, text=True,
                         check=True).stdout.splitlines()
    wrong = [f"{code} ({line}): {found.strip()!r}, not {want!r}"
             for code, line, found, want in zip(codes, lines, got, wanted) if found.strip() != want]
    equal(f"{target}: {len(codes)} instructions", wrong, [])


def main():
    if not shutil.which("llvm-mc"):
        skip("insn", "llvm-mc is missing")
        finish()
    for (arch, target), table in TABLES.items():
        test_table(arch, target, table)
    finish()


if __name__ == "__main__":
    main()
