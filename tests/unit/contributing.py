#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example of CONTRIBUTING.md works: a format that one file and one line add."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, equal, finish, run, scratch


def ask_make(target):
    """The words that a target of the Makefile prints."""
    done = run("make", "-C", ROOT, "--no-print-directory", "-s", target, f"BUILD={BUILD}")
    return done.stdout.split()


def main():
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as f:
        code = re.search(r"```c\n(.*?)```", f.read(), re.S)[1]
    with scratch() as folder:
        for name in ("format.c", "formats.def"):
            with open(os.path.join(ROOT, "src", name), encoding="utf-8") as f:
                text = f.read()
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text + ("READER(toy)\n" if name == "formats.def" else ""))
        with open(os.path.join(folder, "toy.c"), "w", encoding="utf-8") as f:
            f.write(code)
        objects = [path for path in ask_make("print-objects") if not path.endswith("/format.o")]
        program = os.path.join(folder, "kscope")
        cc, *flags = ask_make("print-link")
        done = run(cc, "-std=gnu11", "-D_GNU_SOURCE", f"-I{folder}", f"-I{ROOT}/src", "-Wall", "-Wextra",
                   f"{folder}/format.c", f"{folder}/toy.c", *objects, "-o", program, *flags)
        if not check("it builds", done.returncode == 0 and "warning" not in done.stderr, done.stderr):
            finish()
        toy = os.path.join(folder, "input.toy")
        good = b"TOY1" + struct.pack("<IIQQ", 7, 2, 0x1000, 0x2000)
        with open(toy, "wb") as f:
            f.write(good + b"\1\2\3")
        done = run(program, "convert", toy, "-t", "dump", "-o", "-")
        check("it reads", "sample task=7/7 source=1 weight=1 : user 0x1000 0x2000\n" in done.stdout,
              done.stdout)
        check("it says what is damaged", f"{toy}: byte {len(good)}: not a record" in done.stderr,
              done.stderr)
        equal("and the exit code tells", done.returncode, 1)
        check("formats lists it", "samples of the Toy kernel" in run(program, "formats").stdout)
    finish()


if __name__ == "__main__":
    main()
