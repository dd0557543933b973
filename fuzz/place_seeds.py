#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""place_seeds.py FOLDER: writes inputs of fuzz_place: kernels, programs and object files of several machines, and what
ran in them."""
import os
import random
import sys
import tempfile

from sym_seeds import CLANG, KALLSYMS, Seeds, TARGETS

FUNCTION = "__attribute__((noinline)) int f{0}(volatile int *p) {{ while (*p > {0}) *p -= {0} * 3 + 1; return *p ^ {0}; }}\n"
SOURCE = "".join(FUNCTION.format(i) for i in range(120)) + "void _start(void) { volatile int n = 9; f3(&n); for (;;) ; }\n"


def what_ran(rng):
    """Votes, votes by code, and code; all of it moved by as much, or nearly all."""
    moved = rng.randrange(4)
    rows = []
    for _ in range(rng.choice((40, 200))):
        kind = rng.choice((0, 0, 0, 2, 3, 2 + 8, 3 + 8, 2 + 16)) | 4 * (rng.randrange(30) == 0)
        rows.append((kind, rng.randrange(256), moved if rng.randrange(9) else rng.randrange(256), rng.choice((0, 0, 0, 0, 1, 2))))
    return b"".join(map(bytes, rows))


def main():
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as work:
        seeds = Seeds(os.path.abspath(sys.argv[1]), work)
        seeds.write("big.c", SOURCE)
        seeds.write("kallsyms", KALLSYMS)
        for number, arch in enumerate(TARGETS):
            seeds.run(*CLANG, "c", *TARGETS[arch], "-g0", "big.c", "-o", arch)
            seeds.run("clang", *TARGETS[arch], "-O2", "-g0", "-c", "big.c", "-o", arch + ".o")
            with open(seeds.path("ran"), "wb") as f:
                f.write(what_ran(rng))
            seeds.pack(f"kernel-{number}", arch, arch + ".o", "ran")
            seeds.pack(f"list-{number}", "kallsyms", arch, arch + ".o", "ran")


if __name__ == "__main__":
    main()
