#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lengths of instructions: what clang assembles, one by one, and each function of larger binaries, as a
disassembler sees them."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, KSCOPE, check, finish, no_problems, run, scratch, skip

LENGTHTOOL = os.path.join(BUILD, "tests", "lengthtool")
X86 = """
nop
ret
ret $8
push $1
push $0x12345
add $1, %al
add $0x1234567, %eax
addw $0x1234, %ax
add $1, %ecx
add $0x1234567, %ecx
addw $0x1234, %cx
testb $1, %cl
test $0x1234567, %ecx
testw $0x1234, %cx
notb %cl
not %ecx
mul %ecx
mov $1, %cl
mov $0x1234567, %ecx
movw $0x1234, %cx
movb $1, 4(%ecx)
movl $1, 0x1234(%ecx,%edx,4)
movw $1, 0x1234(%ecx)
mov (%ecx), %eax
mov 4(%ecx), %eax
mov (%esp), %eax
mov 4(%esp), %eax
mov 0x1234(%esp), %eax
mov (%ebp), %eax
mov 0x1234(,%ecx,4), %eax
mov %fs:4, %ecx
imul $3, %ecx, %edx
imul $0x12345, %ecx, %edx
enter $16, $0
leave
int $0x80
in $4, %al
out %al, %dx
loop .
jecxz .
jmp .
je .
jmp target
je target
call target
call *4(%ecx)
shl $4, %ecx
shl %ecx
rep movsb
lock incl (%ecx)
xlat
fld1
fldl 8(%ecx)
movzbl %cl, %eax
bt $3, %ecx
shld $3, %ecx, %edx
bswap %ecx
cmpxchg8b (%ecx)
cpuid
rdtsc
ud2
pshufd $1, %xmm0, %xmm1
pshufb %xmm0, %xmm1
palignr $1, 4(%ecx), %xmm1
cmpps $1, %xmm0, %xmm1
emms
vzeroupper
vaddps %ymm0, %ymm1, %ymm2
vpshufd $1, 4(%ecx), %ymm2
vpshufb %ymm0, %ymm1, %ymm2
vpalignr $1, %ymm0, %ymm1, %ymm2
vaddps %zmm0, %zmm1, %zmm2
vaddps 64(%ecx), %zmm1, %zmm2
vpternlogd $1, %zmm0, %zmm1, %zmm2
vpcmov %xmm0, %xmm1, %xmm2, %xmm3
bextr $1, %ecx, %edx
"""
X86_64 = """
call *%rax
mov %cr0, %rax
push %r12
mov %rax, %r12
mov $0x123456789abcdef, %rax
movabs 0x123456789abcdef, %eax
mov $-1, %rax
mov 0x1234(%rip), %rax
mov 4(%r12), %r13
mov (%r13), %r14
movw $0x1234, (%r13)
data16 lea 0(%rip), %rdi
addr32 mov (%ecx), %eax
mov %cr8, %rax
syscall
iretq
swapgs
testq $0x1234567, %r9
nopw %cs:0x1234(%rax,%rax,1)
vaddps %zmm16, %zmm17, %zmm18
movbe (%rcx), %r9
"""
I386 = """
push %ebp
call *%eax
mov %cr0, %eax
inc %ecx
dec %edi
pusha
mov 0x12345678, %eax
addr16 mov 4(%di), %eax
.byte 0x67, 0x8b, 0x0e, 0x34, 0x12
addr16 mov (%bx,%si), %ecx
les (%ecx), %eax
lds 4(%ecx), %eax
bound %eax, (%ecx)
lcall $0x10, $0x12345678
ljmp $0x10, $0x12345678
aam $10
.byte 0x66, 0xe8, 0, 0
.byte 0x66, 0xe9, 0, 0
"""
RISCV = """
nop
c.nop
addi a0, a0, 1
lui a0, 0x12345
c.addi a0, 1
ld a0, 8(sp)
c.ldsp a0, 8(sp)
jal target
ret
ecall
"""
THUMB = """
nop
nop.w
bl target
bx lr
ldr r0, [r1]
ldr.w r10, [r1, #300]
push {r4, lr}
push.w {r4-r11, lr}
movw r0, #0x1234
udf #1
"""
PREFIXES = ["lock", "rep", "repne", "data16", "addr32", "notrack"]  # the disassembler has a line for each
MACHINES = {
    "x86_64": (["--target=x86_64-linux-gnu"], X86 + X86_64),
    "i386": (["--target=i386-linux-gnu"], X86 + I386),
    "riscv64": (["--target=riscv64-linux-gnu", "-march=rv64gc", "-mno-relax"], RISCV),
    "thumb": (["--target=armv7-linux-gnueabihf", "-mthumb"], THUMB),
    "aarch64": (["--target=aarch64-linux-gnu"], "nop\nret\nbl target\n"),
}


def counts(path, ranges):
    text = "".join(f"{start:x} {end:x}\n" for start, end in ranges)
    return [int(line) for line in run(LENGTHTOOL, path, input=text.encode()).stdout.split()]


def test_machine(folder, arch):
    """Each instruction is one; so is each one with only its first byte; and all of them are as many as they are."""
    flags, text = MACHINES[arch]
    rows = [row for row in text.split("\n") if row]
    source, path = os.path.join(folder, "code.s"), os.path.join(folder, "code.elf")
    with open(source, "w", encoding="ascii") as f:
        f.write(".text\n.globl _start\n.type _start, %function\n_start:\n")
        f.write("".join(f"row_{i}: {row}\n" for i, row in enumerate(rows)))
        f.write(f"row_{len(rows)}:\n.size _start, . - _start\n.skip 40000\ntarget: nop\n")
    done = run("clang", *flags, "-nostdlib", "-static", "-fuse-ld=lld", source, "-o", path)
    if done.returncode:
        raise RuntimeError(done.stderr)
    names = [line.split() for line in run("llvm-nm", path).stdout.split("\n") if line]
    at = {name: int(place, 16) & ~(arch == "thumb") for place, _, name in names}
    starts = [at[f"row_{i}"] for i in range(len(rows) + 1)]
    ones = list(zip(starts, starts[1:]))
    no_problems(f"{arch}: instructions", [row for row, nr in zip(rows, counts(path, ones)) if nr != 1])
    no_problems(f"{arch}: of which only the first byte counts",
                [row for row, nr in zip(rows, counts(path, [(start, start + 1) for start in starts[:-1]])) if nr != 1])
    upto = counts(path, [(starts[0], end) for end in starts[1:]])
    no_problems(f"{arch}: up to each",
                [row for i, row in enumerate(rows) if upto[i:i + 1] != [i + 1]])


def functions(path):
    """[(start, end, instructions)] of the functions in a binary that have only instructions in them."""
    found, name, at = [], None, []
    for line in run("llvm-objdump", "-d", path).stdout.splitlines() + ["0 <>:"]:
        head, insn = re.match(r"([0-9a-f]+) <(.*)>:", line), re.match(r" *([0-9a-f]+):((?: [0-9a-f]{2})+) *\t(.*)", line)
        if head:
            if name and at:
                found.append((at[0][0], at[-1][0] + 1, len(at)))
            name, at = head[2], []
        elif insn and "<unknown>" in insn[3]:
            name = None
        elif insn and insn[3].strip() not in PREFIXES:
            at.append((int(insn[1], 16), insn[3]))
    return found


def test_binary(path):
    want = functions(path)
    got = counts(path, [(start, end) for start, end, _ in want])
    name = os.path.basename(path)
    check(f"{name}: has functions", len(want) > 20 and len(got) == len(want), (len(want), len(got)))
    no_problems(f"{name}: functions have as many instructions as the disassembler finds",
                [(f"{row[0]:x}", row[2], nr) for row, nr in zip(want, got) if row[2] != nr])


def main():
    with scratch() as folder:
        for arch in MACHINES:
            test_machine(folder, arch)
    test_binary(KSCOPE)
    for arch in ("x86_64", "aarch64"):
        kernel = os.path.join(BUILD, "demo", "kernel", arch, "kernel-fp.elf")
        if os.path.exists(kernel):
            test_binary(kernel)
        else:
            skip(f"{arch}: the demo kernel", "not built")
    finish()


if __name__ == "__main__":
    main()
