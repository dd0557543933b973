#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the fuzzer of each reader on the golden inputs and on hundreds of damaged ones, the same in
every run. make fuzz searches for new inputs."""
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, ROOT, check, finish, run, scratch

DAMAGED = 500
BUILD = os.path.join(ROOT, "build", "fuzz")
# The fuzzers have a separate build, always with clang.
ENV = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "BUILD", "MAKEFLAGS")}


def damage(rng, data, other):
    """Changes a byte or a number; drops, doubles or inserts a piece; or cuts the end off."""
    at, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 100))
    kind = rng.randrange(6)
    if kind == 0:
        data[at:at + 1] = [rng.randrange(256)]
    elif kind == 1:
        data[at:at + size] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"9")) * size
    elif kind == 2:
        del data[at:at + size]
    elif kind == 3:
        data[at:at] = data[at:at + size]
    elif kind == 4:
        start = rng.randrange(len(other) + 1)
        data[at:at] = other[start:start + size]
    else:
        del data[at:]


def write_damaged(folder, seeds):
    rng = random.Random(1)
    for i in range(DAMAGED):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            damage(rng, data, rng.choice(seeds))
        with open(os.path.join(folder, str(i)), "wb") as f:
            f.write(data)


def fuzz(reader, folder, seeds):
    """Runs the seeds or the files of the folder, without a search for new ones."""
    done = run(os.path.join(ROOT, "fuzz", "run"), BUILD, reader, "0", "-runs=0", f"-timeout={HANGS}",
               env=dict(ENV, CORPUS=folder, SEEDS=seeds))
    return done.returncode == 0 and "Done" in done.stdout, done.stdout[-500:]


def read_seeds(reader):
    folder = os.path.join(BUILD, "seeds", reader)
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            yield f.read()


def main():
    with open(os.path.join(ROOT, "src", "formats.def"), encoding="utf-8") as f:
        readers = re.findall(r"^READER\((\w+)\)", f.read(), re.M)
    # No timeout: a compiler does not hang, and the host may be busy.
    build = run("make", "-C", ROOT, "-j2", "fuzz-build", env=ENV, timeout=None)
    check("the fuzzers build", build.returncode == 0, build.stderr[-500:])
    for reader in readers + ["kernel", "archive", "pt", "target", "run", "unwind", "verb", "calls", "sym", "place", "frames", "http"]:
        with scratch() as folder:
            check(f"{reader}: golden inputs", *fuzz(reader, folder, "yes"))
            write_damaged(folder, list(read_seeds(reader)))
            check(f"{reader}: damaged ones", *fuzz(reader, folder, "no"))
    finish()


if __name__ == "__main__":
    main()
