#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope recognizes the code of an object file after a loader has relocated it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, equal, finish, run, scratch

PLACETOOL = os.path.join(BUILD, "tests", "placetool")
TARGETS = {"x86-64": ["--target=x86_64-linux-gnu", "-mcmodel=kernel"],
           "i386": ["--target=i386-linux-gnu"],
           "aarch64": ["--target=aarch64-linux-gnu"],
           "riscv64": ["--target=riscv64-linux-gnu", "-mno-relax", "-mcmodel=medany"]}
BASE = 0x7f001000


def source():
    lines = ["extern int variable, helper(int), other(int);"]
    for i in range(300):
        lines.append(f"int function_{i}(int x) {{ for (int i = 0; i < x * {i + 3}; i++) "
                     f"variable += helper(x ^ {i * 77}) - other(i + {i}); return x * {i + 1}; }}")
    return "\n".join(lines) + "\n"


def pages(path, name):
    """The offset and size of a section, and its pages: [(offset in the section, first bytes)]."""
    for line in run("llvm-readelf", "-SW", path).stdout.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == name:
            offset, size = int(words[4], 16), int(words[5], 16)
            break
    with open(path, "rb") as f:
        f.seek(offset)
        data = f.read(size)
    return offset, size, [(at, data[at:at + 64]) for at in range(0, size - 64, 4096)]


def one(folder, name, flags):
    with open(os.path.join(folder, "m.c"), "w", encoding="utf-8") as f:
        f.write(source())
    built = run("clang", *flags, "-O1", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-c",
                "m.c", "-o", "m.o", cwd=folder)
    linked = run("ld.lld", "m.o", "-o", "loaded", f"--section-start=.text={BASE:#x}", "-e", "0",
                 "--defsym=helper=0x7e800010", "--defsym=other=0x7e900020",
                 "--defsym=variable=0x7ea00040", cwd=folder)
    if not check(f"{name}: it builds", not built.returncode and not linked.returncode,
                 built.stderr + linked.stderr):
        return
    offset, size, _ = pages(os.path.join(folder, "m.o"), ".text")
    _, _, loaded = pages(os.path.join(folder, "loaded"), ".text")
    lines = "".join(f"{BASE + at:x} {code.hex()}\n" for at, code in loaded)
    path = os.path.join(folder, "m.o")
    done = run(PLACETOOL, "/nothing", path, input=lines.encode())
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("code")]
    check(f"{name}: most pages are found", len(loaded) > 3 and len(found) > len(loaded) // 2,
          f"{len(found)} of {len(loaded)} {done.stderr}")
    equal(f"{name}: all where it was loaded", {tuple(words[1:]) for words in found},
          {(path, hex(BASE), hex(size), hex(offset))})


def main():
    with scratch() as folder:
        for name, flags in TARGETS.items():
            one(folder, name, flags)
    finish()


if __name__ == "__main__":
    main()
