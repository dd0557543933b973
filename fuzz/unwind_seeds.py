#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""unwind_seeds.py FOLDER: writes inputs of fuzz_unwind: frame pointers, ORC tables and trap frames on each machine."""
import os
import random
import struct
import sys

SP = {0: 7, 1: 4, 2: 31, 3: 13, 4: 2, 5: 2, 6: 13}  # by machine, as in fuzz_unwind.c
FP = {0: 6, 1: 5, 2: 29, 3: 11, 4: 8, 5: 8, 6: 7}
ROOT, OUTER, MIDDLE, LEAF, STUB = 0x100, 0x200, 0x300, 0x400, 0x500


def small(n):
    return struct.pack("<BH", 0, n)


def code(n):
    return struct.pack("<BH", 1, n)


def stack(n):
    return struct.pack("<BH", 2, n)


def seed(machine, method, lines, pc, words):
    registers = [small(0)] * 33
    registers[SP[machine]] = stack(0)
    registers[FP[machine]] = stack(20 * (8 if machine in (0, 2, 4) else 4))
    return (bytes((machine, method, len(lines))) + b"".join(struct.pack("<HhhH", *line) for line in lines)
            + code(pc) + b"".join(registers) + b"".join(words))


def frames(machine, size):
    """Records of frame pointers at words 20, 40 and 60, in all layouts at once."""
    words = [small(0)] * 80
    for at, caller in ((20, MIDDLE), (40, OUTER), (60, ROOT)):
        for to in (at - 1, at + 1):
            words[to] = code(caller + 0x10)
        words[at] = words[at - 2] = stack((at + 20) * size)
    return words


def trap(rng, size):
    """Registers as a kernel pushes them, with selectors, an address in the code and a stack pointer behind them."""
    words = [small(rng.randrange(1 << 16)) for _ in range(15)]
    words += [small(0), code(LEAF + 8), small(0x10), small(0x246), stack(64 * size), small(0x18)]
    return words + frames(0, size)


def main():
    rng = random.Random(1)
    orc = [[(ROOT, 8, 0, flags), (MIDDLE, 16, -16, flags), (LEAF, 8 * rng.randrange(20), -16, flags), (STUB, 0, 0, flags)]
           for flags in (5, 0x15, 0x205, 0x125, 0x105, 0x1105, 2, 0, 0x35, 0x45, 0x55, 0x65, 0x75, 0x85, 0x95)]
    number = 0
    for machine, sp in sorted(SP.items()):
        size = 8 if machine in (0, 2, 4) else 4
        for method in range(4):
            for lines in [[], *orc]:
                for words in (frames(machine, size), trap(rng, size)):
                    with open(os.path.join(sys.argv[1], f"{number:04}"), "wb") as f:
                        f.write(seed(machine, method, lines, rng.choice((LEAF + 8, MIDDLE + 8, STUB + 4)), words))
                    number += 1


if __name__ == "__main__":
    main()
