#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""frames_seeds.py FOLDER: writes inputs of fuzz_frames: binaries of each machine with .eh_frame, .debug_frame or
.ARM.exidx, or without, and samples at each of their instructions."""
import os
import random
import struct
import sys
import tempfile

from sym_seeds import CLANG, Seeds
from unwind_seeds import code, small, stack

SOURCE = r"""
int global; extern int asm_part(int);
__attribute__((noinline)) int leaf(int x) { return x * 3 + global; }
__attribute__((noinline)) int tail(int x) { return leaf(x + 1); }
__attribute__((noinline)) int middle(int x, int *p) { int a[20]; for (int i = 0; i < 20; i++) a[i] = leaf(i + x);
	*p = a[x & 15]; return tail(a[3]) + leaf(*p); }
__attribute__((noinline)) int recursive(int x) { if (x < 2) return 1; return recursive(x - 1) + recursive(x - 2); }
__attribute__((noinline)) int dynamic(int x) { volatile char a[x]; a[0] = 1; return middle(x, &global) + a[x / 2]; }
__attribute__((noinline)) int by_pointer(int (*f)(int), int x) { return f(x) + f(x + 1) + recursive(x); }
__attribute__((noreturn, noinline)) void stop(void) { for (;;) global++; }
void _start(void) { global = dynamic(9) + by_pointer(leaf, 3); stop(); }
"""
# Rules that compilers seldom write: expressions, signal frames, an undefined return address.
RULES = ["cfi_signal_frame", "cfi_undefined {ra}", "cfi_escape 0x0f, 3, 0x77, 8, 0x06", "cfi_remember_state",
         "cfi_escape 0x10, {ra}, 5, 0x70, 8, 0x11, 0x78, 0x22", "cfi_escape 0x16, 3, 4, 0x33, 0x08, 5, 0x1c",
         "cfi_def_cfa {sp}, 64", "cfi_register 3, 4", "cfi_escape 0x14, 3, 2", "cfi_same_value 3", "cfi_restore 3",
         "cfi_escape 0x0f, 12, 0x71, 0, 0x12, 0x35, 0x24, 0x16, 0x1a, 0x31, 0x25, 0x23, 4",
         "cfi_escape 0x0f, 9, 0x72, 0, 0x34, 0x2e, 0x28, 1, 0, 0x13", "cfi_escape 0x0f, 6, 0x92, 5, 8, 0x94, 4, 0x1f"]
MACHINES = [  # of fuzz_frames.c: its number, clang's flags, sp, fp, ra, and the size of a word
    ("x86_64", 0, ["--target=x86_64-linux-gnu"], 7, 6, 16, 8), ("i386", 1, ["--target=i386-linux-gnu"], 4, 5, 8, 4),
    ("aarch64", 2, ["--target=aarch64-linux-gnu"], 31, 29, 30, 8),
    ("arm", 3, ["--target=armv7-linux-gnueabi", "-marm"], 13, 11, 14, 4),
    ("thumb", 7, ["--target=armv7m-none-eabi", "-mthumb"], 13, 7, 14, 4),
    ("riscv64", 5, ["--target=riscv64-linux-gnu", "-mno-relax"], 2, 8, 1, 8),
    ("riscv32", 6, ["--target=riscv32-linux-gnu", "-mno-relax"], 2, 8, 1, 4)]
KINDS = {"eh": ["-g0", "-fasynchronous-unwind-tables"], "debug": ["-g", "-fno-asynchronous-unwind-tables"],
         "none": ["-g0", "-fno-asynchronous-unwind-tables"],
         "fp": ["-g0", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"]}
FROM_EXCEPTION = struct.pack("<BH", 4, 0x7d)


def sample(rng, number, sp, fp, ra, size):
    """At any place in the code, with frame records and return addresses, and now and then an exception below."""
    def place():
        return code(rng.randrange(0x400))

    registers = [rng.choice((place(), stack(8 * rng.randrange(60)), small(rng.randrange(99)))) for _ in range(33)]
    registers[sp] = stack(0)
    registers[fp] = stack(10 * size)
    registers[min(ra, 32)] = FROM_EXCEPTION if number == 7 and rng.randrange(2) else place()
    words = [rng.choice((place(), place(), small(3), stack(8 * rng.randrange(90)))) for _ in range(rng.choice((60, 512)))]
    for at in (10, 20, 30):
        words[at] = words[at - 2] = stack((at + 10) * size)
    method = rng.choice((0, 0, 0, 1, 2, 3))
    return bytes((number, method)) + place() + b"".join(registers) + b"".join(words)


def assembler(sp, ra):
    """A function with all rules, one after the other."""
    lines = ["\t.text", "\t.globl _start", "\t.type _start, %function", "_start:", "\t.cfi_startproc"]
    for rule in RULES:
        lines += ["\t." + rule.format(sp=sp, ra=ra), "\tnop", "\tnop"]
    return "\n".join(lines + ["\t.cfi_endproc", "\t.size _start, . - _start", ""])


def main():
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as work:
        seeds = Seeds(os.path.abspath(sys.argv[1]), work)
        seeds.write("prog.c", SOURCE)
        for arch, number, flags, sp, fp, ra, size in MACHINES:
            seeds.write("asm.s", assembler(sp, ra))
            seeds.run(*CLANG, "assembler", *flags, "-g0", "asm.s", "-o", arch + "-asm")
            for kind, more in KINDS.items():
                seeds.run(*CLANG, "c", *flags, *more, "prog.c", "-o", f"{arch}-{kind}")
            for kind in ("asm", *KINDS):
                for i in range(12):
                    with open(seeds.path("state"), "wb") as f:
                        f.write(sample(rng, number, sp, fp, ra, size))
                    seeds.pack(f"{arch}-{kind}-{i}", f"{arch}-{kind}", "state")


if __name__ == "__main__":
    main()
