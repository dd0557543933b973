#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of every machine, from its real registers and memory.

QEMU's user mode runs a program step by step. Through its gdb server, the test takes a sample
wherever a block of code begins, as the plugin does. The program has no libraries, and every
function in it has one caller, so the correct stacks are known; one also calls itself, often enough
to see every depth. It is built with and without frame pointers, and for Arm with nothing but the
tables of its own.
"""
import os
import re
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, check, finish, kscope, read_folded, run, scratch, skip, wait_for, wire_write

STEPS = 1200
STACK = 2048
SOURCE = r"""
volatile int sink;
#define FUNCTION __attribute__((noinline)) int
FUNCTION leaf(int n)
{
	for (int i = 0; i < (n & 3); i++)
		sink ^= i;
	return n + 1;
}
FUNCTION twice(int n)
{
	int first = leaf(n);

	return first ^ leaf(sink);
}
FUNCTION wide(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	volatile int room[40];

	room[a & 31] = b + c + d + e + f + g + h + i + j;
	return twice(room[a & 31]) + room[b & 31] + (c ^ d ^ e ^ f ^ g ^ h);
}
FUNCTION early(int n)
{
	if (n & 1)
		return n;
	sink++;
	return n + wide(n, 1, 2, 3, sink, sink, 6, 7, 8, 9) + sink;
}
FUNCTION varying(int n)
{
	volatile char *room = __builtin_alloca((n & 15) * 16 + 16);

	room[3] = (char)n;
	return early(n) + room[3];
}
#ifdef DEEP /* with a frame only where it calls itself */
int deep(int n);
__asm__(".globl deep\n.type deep, %function\ndeep:\n.cfi_startproc\n" DEEP
	".cfi_endproc\n.size deep, . - deep\n");
#else
FUNCTION deep(int n)
{
	if (!n)
		return sink;
	return deep(n - 1) * 3 ^ n;
}
#endif
int work(void);
int work(void)
{
	for (int n = 0;; n++)
		sink += varying(n) ^ deep(n & DEPTH);
}
__asm__(".globl _start\n.type _start, %function\n_start:\n.cfi_startproc\n" START
	".cfi_endproc\n.size _start, . - _start\n");
"""
DEPTH = 3
CALLERS = ["leaf", "twice", "wide", "early", "varying", "work", "_start"]


def x86_64(regs):
    """The registers in the order of DWARF, and the pc, from those in the order of gdb."""
    ax, bx, cx, dx, si, di, bp, sp, *more = struct.unpack_from("<17Q", regs)
    return [ax, dx, cx, bx, si, di, bp, sp] + more[:8], more[8]


def in_order(form, pc):
    def parse(regs):
        values = list(struct.unpack_from("<" + form, regs))
        return values[:pc], values[pc]
    return parse


# target, QEMU, parser of the registers, index of sp, first instructions of the program
MACHINES = {
    "x86_64": ("x86_64-linux-gnu", "qemu-x86_64", x86_64, 7,
               ".cfi_undefined rip\\n xor %ebp, %ebp\\n call work\\n hlt\\n"),
    "i386": ("i386-linux-gnu", "qemu-i386", in_order("9I", 8), 4,
             ".cfi_undefined eip\\n xor %ebp, %ebp\\n call work\\n hlt\\n"),
    "aarch64": ("aarch64-linux-gnu", "qemu-aarch64", in_order("33Q", 32), 31,
                ".cfi_undefined x30\\n mov x29, #0\\n mov x30, #0\\n bl work\\n brk #0\\n"),
    "arm": ("armv7-linux-gnueabi", "qemu-arm", in_order("16I", 15), 13,
            ".fnstart\\n .cantunwind\\n .cfi_undefined lr\\n"
            " mov r11, #0\\n mov lr, #0\\n bl work\\n udf #0\\n .fnend\\n"),
    "thumb": ("thumbv7-linux-gnueabi", "qemu-arm", in_order("16I", 15), 13,
              ".fnstart\\n .cantunwind\\n .cfi_undefined lr\\n"
              " movs r7, #0\\n mov lr, r7\\n bl work\\n udf #0\\n .fnend\\n"),
    "riscv64": ("riscv64-linux-gnu", "qemu-riscv64", in_order("33Q", 32), 2,
                ".cfi_undefined ra\\n li s0, 0\\n li ra, 0\\n call work\\n ebreak\\n"),
    "riscv32": ("riscv32-linux-gnu", "qemu-riscv32", in_order("33I", 32), 2,
                ".cfi_undefined ra\\n li s0, 0\\n li ra, 0\\n call work\\n ebreak\\n"),
}
# Calls itself. At 1 it has no frame, and the link register points into it.
DEEP = {
    "aarch64": """cbz w0, 1f
        stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov x29, sp
        sub w0, w0, #1
        bl deep
        ldp x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        1: nop
        ret""",
    "arm": """.fnstart
        .save {r11, lr}
        .setfp r11, sp
        cmp r0, #0
        beq 1f
        push {r11, lr}
        .cfi_def_cfa_offset 8
        .cfi_offset r11, -8
        .cfi_offset lr, -4
        mov r11, sp
        sub r0, r0, #1
        bl deep
        pop {r11, pc}
        .cfi_def_cfa_offset 0
        .cfi_restore r11
        .cfi_restore lr
        1: nop
        bx lr
        .fnend""",
    "riscv64": """beqz a0, 1f
        addi sp, sp, -16
        .cfi_def_cfa_offset 16
        sd ra, 8(sp)
        sd s0, 0(sp)
        .cfi_offset ra, -8
        .cfi_offset s0, -16
        addi s0, sp, 16
        addi a0, a0, -1
        jal deep
        ld ra, 8(sp)
        ld s0, 0(sp)
        addi sp, sp, 16
        .cfi_def_cfa_offset 0
        .cfi_restore ra
        .cfi_restore s0
        ret
        1: nop
        ret""",
}
DEEP["thumb"] = DEEP["arm"].replace("r11", "r7")
DEEP["riscv32"] = re.sub(r"([ls])d ", r"\1w ", DEEP["riscv64"]).replace(
    "8(sp)", "12(sp)").replace("0(sp)", "8(sp)").replace(
    "ra, -8", "ra, -4").replace("s0, -16", "s0, -8")
# With frame pointers the CFI is in .debug_frame, without them in .eh_frame (Arm has none).
BUILDS = {
    "frame pointers": ["-fno-omit-frame-pointer", "-g", "-fno-asynchronous-unwind-tables"],
    "no frame pointers": ["-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-g"],
}
FLAGS = {"arm": ["-msoft-float"], "thumb": ["-msoft-float", "-mthumb"]}
ARM_BUILDS = {
    "tables of Arm": ["-fomit-frame-pointer", "-funwind-tables"],
    "tables of Arm and frame pointers": ["-fno-omit-frame-pointer", "-funwind-tables"],
}


def is_arm(arch):
    return arch in ("arm", "thumb")


class Gdb:
    """The part of gdb's remote protocol that steps and reads registers and memory."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(HANGS)
        wait_for(lambda: self.socket.connect_ex(path) == 0)
        self.got = b""

    def ask(self, words):
        words = words.encode()
        self.socket.sendall(b"$" + words + b"#%02x" % (sum(words) & 255))
        while True:
            packet = re.search(rb"\$([^#]*)#..", self.got)
            if packet:
                self.got = self.got[packet.end():]
                self.socket.sendall(b"+")
                return packet.group(1).decode()
            more = self.socket.recv(65536)
            if not more:
                raise EOFError("QEMU has ended")
            self.got += more

    def registers(self):
        return bytes.fromhex(self.ask("g").replace("x", "0"))

    def stack(self, address):
        """The stack from the address to its end, at most about STACK bytes."""
        copy = b""
        while len(copy) < STACK:
            at = address + len(copy)
            reply = self.ask(f"m{at:x},{256 - at % 256:x}")
            if not reply or reply.startswith("E"):
                break
            copy += bytes.fromhex(reply)
        return copy


def deep_of(arch):
    return ['-DDEEP="' + DEEP[arch].replace("\n", "\\n") + '\\n"'] if arch in DEEP else []


def build(folder, arch, name, flags):
    target, _, _, _, start = MACHINES[arch]
    source, elf = os.path.join(folder, "p.c"), os.path.join(folder, f"{arch}.elf")
    with open(source, "w", encoding="ascii") as out:
        out.write(SOURCE)
    for command in (
            ["clang", f"--target={target}", "-O2", "-ffreestanding", "-fno-pic", "-fno-stack-protector",
             "-Wno-unused-command-line-argument", *FLAGS.get(arch, []), f'-DSTART="{start}"',
             f"-DDEPTH={DEPTH}", *deep_of(arch), *flags, "-c", source, "-o", elf + ".o"],
            ["ld.lld", "-static", "--defsym=__aeabi_unwind_cpp_pr0=0",
             "--defsym=__aeabi_unwind_cpp_pr1=0", elf + ".o", "-o", elf]):
        done = run(*command)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return elf


def follow(folder, arch, elf):
    """[(pc, registers, stack)] wherever a block of code begins."""
    _, qemu, parse, sp, _ = MACHINES[arch]
    path = os.path.join(folder, "gdb")
    with subprocess.Popen([qemu, "-g", path, elf], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as guest:
        looks, before = [], 0
        try:
            gdb = Gdb(path)
            for _ in range(STEPS):
                regs, pc = parse(gdb.registers())
                if not before < pc <= before + 8:
                    looks.append((pc, regs, gdb.stack(regs[sp])))
                before = pc
                gdb.ask("s")
        finally:
            guest.kill()
    return looks


def record(path, arch, elf, looks):
    """Writes them as the plugin writes samples of a kernel."""
    samples = [wire_write.sample(at + 1, pc, registers=regs, stack=stack, weight=1)
               for at, (pc, regs, stack) in enumerate(looks)]
    info = wire_write.info(arch="arm" if is_arm(arch) else arch, cpus=1, kernel=elf)
    with open(path, "wb") as out:
        out.write(wire_write.chunk(info))
        out.write(wire_write.chunk(*samples, cpu=0) + wire_write.end((0, len(samples), 0)))


def stacks(path, *options):
    """The folded stacks, without the task."""
    done = kscope("convert", path, "-t", "folded", "--root", "none", "-o", "-", *options)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return read_folded(done.stdout)


def is_right(stack):
    frames = stack.split(";")
    if frames[-1] == "deep":
        return len(frames) <= 2 + DEPTH + 1 and frames[:2] == ["_start", "work"] and \
            set(frames[2:]) == {"deep"}
    return frames[0] == "_start" and frames[::-1] == CALLERS[-len(frames):]


def judge(name, path, *options):
    found = stacks(path, *options)
    wrong = {stack: count for stack, count in found.items() if not is_right(stack)}
    check(name, not wrong and len(found) == len(CALLERS) + DEPTH + 1,
          f"{sum(wrong.values())} of {sum(found.values())} are not so: {wrong}; {len(found)} stacks")
    return found


def test_machine(folder, arch):
    path, found = os.path.join(folder, "recording"), {}
    for name, flags in BUILDS.items():
        elf = build(folder, arch, name, flags)
        record(path, arch, elf, follow(folder, arch, elf))
        found[name] = judge(f"{arch}, {name}: by CFI", path, "--unwind", "cfi")
        judge(f"{arch}, {name}: by the best there is", path)
        if name == "frame pointers":
            by_fp = judge(f"{arch}: by frame pointers", path, "--unwind", "fp")
            check(f"{arch}: CFI and frame pointers say the same", by_fp == found[name])
        os.unlink(os.path.join(folder, "gdb"))
    check(f"{arch}: the same stacks without frame pointers",
          set(found["frame pointers"]) == set(found["no frame pointers"]))
    for name, flags in ARM_BUILDS.items() if is_arm(arch) else ():
        elf = build(folder, arch, name, flags)
        record(path, arch, elf, follow(folder, arch, elf))
        judge(f"{arch}, {name}", path)
        os.unlink(os.path.join(folder, "gdb"))


def main():
    with scratch() as folder:
        for arch, machine in MACHINES.items():
            if not shutil.which(machine[1]):
                skip(arch, f"{machine[1]} is not installed")
                continue
            test_machine(folder, arch)
    finish()


if __name__ == "__main__":
    main()
