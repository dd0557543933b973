#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How the unwinder decodes instructions that clang assembles.

Each line is an instruction and what it is; on Arm also by how much it moves the stack pointer, and
where it loads the return address from. `near` is a label in front of the code, `far` one behind it. A call must be found in front of the address that follows it, and nowhere else.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, finish, run, scratch

INSNTOOL = os.path.join(BUILD, "tests", "insntool")
AARCH64 = """
bl far | call
bl near | call
blr x3 | call
blraa x3, x4 | call
blrabz x3 | call
ret | return
retaa | return
ret x5 | away
br x16 | away
braa x1, x2 | away
eret | away
udf #0 | away
b far | jump
b near | jump
b.ne near | branch
b.lt far | branch
cbz w0, far | branch
cbnz x9, near | branch
tbz w3, #5, far | branch
tbnz x3, #45, near | branch
stp x29, x30, [sp, #-32]! | saves
stp x29, x30, [sp, #16] | saves
stp x30, x19, [sp, #16] | saves
str x30, [sp, #-16]! | saves
str x30, [sp, #8] | saves
stur x30, [sp, #-8] | saves
ldp x29, x30, [sp], #32 | loads
ldp x29, x30, [sp, #16] | loads
ldr x30, [sp], #16 | loads
ldr x30, [sp, #8] | loads
stp x19, x20, [sp, #16] | other
stp x29, x30, [x0] | other
str x19, [sp, #8] | other
str w30, [sp, #8] | other
ldr x30, [x0] | other
stp d8, d9, [sp, #-16]! | other
paciasp | other
svc #0 | other
mov x29, sp | other
"""
ARM = """
bl far | call
bl near | call
bleq near | call
blx r3 | call
bx lr | return
bxeq lr | return
mov pc, lr | return
bx r3 | away
ldr pc, [pc, r3, lsl #2] | away
add pc, pc, r3, lsl #2 | away
b far | jump
b near | jump
bne near | branch
push {r4, lr} | saves | -8 0
push {lr} | saves | -4 0
stm r0, {r4, lr} | saves
str lr, [sp, #8] | saves
pop {r4, pc} | loads | 8 4
pop {r4, lr} | loads | 8 4
pop {pc} | loads | 4 0
ldmdb r11, {r4, r11, sp, pc} | loads
ldr lr, [sp, #4] | loads | 0 4
push {r4, r5} | other | -8 0
pop {r4, r5} | other | 8 0
ldr r3, [sp, #4] | other
stm r0, {r1, r2} | other
svc #0 | other
mov r11, sp | other
add r3, r3, r4 | other
add sp, sp, #1024 | other | 1024 0
sub sp, sp, #20 | other | -20 0
vpush {d8, d9} | other | -16 0
vpop {d8, d9} | other | 16 0
ldr pc, [sp], #8 | loads | 8 0
"""
THUMB = """
bl far | call
bl near | call
blx r3 | call
bx lr | return
mov pc, lr | return
bx r3 | away
mov pc, r3 | away
udf #0 | away
tbb [pc, r0] | away
tbh [pc, r0, lsl #1] | away
ldr.w pc, [r3, r2, lsl #2] | away
b.n near | jump
b.w far | jump
b.w near | jump
beq.n near | branch
beq.w far | branch
bne.w near | branch
push {r4, lr} | saves | -8 0
push {lr} | saves | -4 0
push.w {r4, r8, lr} | saves | -12 0
stmdb r0!, {r4-r11, lr} | saves
stm.w r0!, {r4, lr} | saves
stmdb r0!, {r4-r11} | other
str lr, [sp, #-4]! | saves | -4 0
str.w lr, [sp, #12] | saves
strd r4, lr, [sp, #-8]! | saves
pop {r4, pc} | loads | 8 4
pop.w {r4, r8, pc} | loads | 12 8
pop.w {r8, lr} | loads | 8 4
ldr lr, [sp], #4 | loads | 4 0
ldr pc, [sp], #4 | loads | 4 0
push {r4, r5} | other | -8 0
pop {r4, r5} | other | 8 0
strd r4, r5, [sp, #8] | other
ldr.w r3, [sp, #12] | other
nop.w | other
ldr.w lr, [sp, #20] | loads | 0 20
add sp, #24 | other | 24 0
sub sp, #24 | other | -24 0
add.w sp, sp, #1024 | other | 1024 0
sub.w sp, sp, #516 | other | -516 0
addw sp, sp, #1001 | other | 1001 0
sub.w sp, sp, #33 | other | -33 0
vpush {d8, d9} | other | -16 0
vpop {s16} | other | 4 0
svc #0 | other
it eq | other
addeq r0, r0, r1 | other
cbz r0, far | branch
cbnz r7, far | branch
"""
RISCV = """
jal far | call
jal near | call
jalr a0 | call
jalr ra, 8(a0) | call
c.jalr a0 | call
jal t0, near | saves
ret | return
c.jr ra | return
jr a0 | away
c.jr a5 | away
j far | jump
c.j near | jump
c.j far | jump
beq a0, a1, near | branch
blt a0, a1, far | branch
c.beqz a0, near | branch
c.bnez a5, far | branch
c.swsp ra, 12(sp) | saves
sw ra, 12(sp) | saves
c.lwsp ra, 12(sp) | loads
lw ra, 12(sp) | loads
c.swsp s0, 12(sp) | other
sw ra, 12(a0) | other
c.lwsp s0, 12(sp) | other
c.addi16sp sp, -32 | other
c.mv a0, a1 | other
c.add a0, a1 | other
c.ebreak | other
ecall | other
"""
RISCV32 = RISCV + "c.jal near | call\nc.fswsp fs1, 4(sp) | other\nc.flwsp fa1, 4(sp) | other\n"
RISCV64 = RISCV + """
c.addiw a0, 4 | other
c.sdsp ra, 8(sp) | saves
c.ldsp ra, 8(sp) | loads
sd ra, 2000(sp) | saves
ld ra, 2000(sp) | loads
"""
X86 = """
call far | call
call near | call
call *%{a}ax | call
call *(%{a}ax) | call
call *8(%{a}ax) | call
call *0x1234(%{a}ax) | call
call *(%{a}ax,%{a}cx,4) | call
call *8(%{a}sp) | call
call *0x1234(%{a}sp,%{a}cx,8) | call
call *0x1234(,%{a}cx,8) | call
call *0x12345678 | call
ret | other
nop | other
push %{a}bp | other
jmp *%{a}ax | other
push 8(%{a}ax) | other
nopw 0(%{a}ax,%{a}ax,1) | other
xchg %ax,%ax | other
"""
X86_64 = X86.format(a="r") + "call *%r11 | call\ncall *8(%rip) | call\ncall *8(%r12) | call\n"
MACHINES = {
    "aarch64": (["--target=aarch64-none-elf", "-march=armv8.5-a"], AARCH64),
    "arm": (["--target=armv7a-none-eabi"], ARM),
    "thumb": (["--target=armv7a-none-eabi", "-mthumb"], THUMB),
    "riscv32": (["--target=riscv32", "-march=rv32imfc"], RISCV32),
    "riscv64": (["--target=riscv64", "-march=rv64imfdc"], RISCV64),
    "x86_64": (["--target=x86_64"], X86_64),
    "i386": (["--target=i386"], X86.format(a="e")),
}


def assemble(folder, flags, rows):
    """The code, the offsets of the rows, and those of `near` and `far`."""
    path = os.path.join(folder, "code")
    lines = [".option norelax" if "riscv" in flags[0] else "",
             ".syntax unified" if "arm" in flags[0] else "", ".fpu vfpv3" if "arm" in flags[0] else "",
             ".thumb" if "-mthumb" in flags else "", ".globl _start", "_start:", "near: nop"]
    lines += [f"row_{i}: {text}" for i, (text, *_) in enumerate(rows)]
    lines += [f"row_{len(rows)}: nop", "far: nop"]
    with open(path + ".s", "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    for command in (["clang", *flags, "-c", path + ".s", "-o", path + ".o"],
                    ["ld.lld", "-Ttext=0", path + ".o", "-o", path + ".elf"],
                    ["llvm-objcopy", "-O", "binary", "-j", ".text", path + ".elf", path]):
        done = run(*command)
        if done.returncode:
            raise RuntimeError(done.stderr)
    names = [line.split() for line in run("llvm-nm", path + ".elf").stdout.split("\n") if line]
    return path, {name: int(at, 16) for at, _, name in names}


def read_kinds(arch, path):
    done = run(INSNTOOL, arch, path)
    if done.returncode:
        raise RuntimeError(f"insntool {arch}: {done.returncode}")
    *lines, calls = done.stdout.strip().split("\n")
    kinds = {int(at): (kind, *map(int, rest)) for at, kind, *rest in map(str.split, lines)}
    return kinds, {int(end) for end in calls.split()[1:]}


def test_machine(folder, arch):
    flags, text = MACHINES[arch]
    rows = [(line + " | 0 0").split(" | ")[:3] for line in text.strip().split("\n") if line]
    path, at = assemble(folder, flags, rows)
    kinds, calls = read_kinds(arch, path)
    wrong = {}
    for i, (insn, kind, stack) in enumerate(rows):
        start, end = at[f"row_{i}"], at[f"row_{i + 1}"]
        target = next((at[label] for label in ("near", "far") if insn.endswith(label)), 0)
        want = (kind, target, *map(int, stack.split()))
        if kinds and kinds.get(start) != want:
            wrong[insn] = (kinds.get(start), want)
        if (end in calls) != (kind == "call"):
            wrong[insn + ", its end"] = end in calls
    check(f"{arch}: instructions", not wrong, wrong)
    ends = {at[f"row_{i + 1}"] for i, row in enumerate(rows) if row[1] == "call"}
    check(f"{arch}: calls", ends <= calls and ends, calls ^ ends)


def main():
    with scratch() as folder:
        for arch in MACHINES:
            test_machine(folder, arch)
    finish()


if __name__ == "__main__":
    main()
