#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples of CONTRIBUTING.md work: a format and a stage, each of one file and one line."""
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


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def build(folder, name, code, table, edit, owners, header):
    """kscope with one more source file, and a table of formats or stages with one more line. The
    header that reads the table, and the sources that depend on it, are compiled anew."""
    write(folder, f"{name}.c", code)
    write(folder, table, edit(read(ROOT, "src", table)))
    write(folder, header, read(ROOT, "src", header))
    anew = {f"/src/{owner}.o" for owner in owners}
    objects = [path for path in ask_make("print-objects")
               if not any(path.endswith(end) for end in anew)]
    for owner in owners:
        write(folder, f"{owner}.c", read(ROOT, "src", f"{owner}.c"))
    program = os.path.join(folder, "kscope")
    cc, *flags = ask_make("print-link")
    done = run(cc, "-std=gnu11", "-D_GNU_SOURCE", f"-I{folder}", f"-I{ROOT}/src", f"-I{ROOT}", "-Wall",
               "-Wextra", "-include", os.path.join(folder, header),
               *(os.path.join(folder, f"{file}.c") for file in [*owners, name]), *objects,
               "-o", program, *flags)
    if not check(f"{name}: it builds", done.returncode == 0 and "warning" not in done.stderr,
                 done.stderr):
        finish()
    return program


def test_format(folder, code):
    program = build(folder, "toy", code, "formats.def", lambda text: text + "READER(toy)\n",
                    ["format"], "format.h")
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


def test_stage(folder, code):
    program = build(folder, "innermost", code, "stages.def",
                    lambda text: text.replace("STAGE(unwind)\n", "STAGE(unwind)\nSTAGE(innermost)\n"),
                    ["stage", "args", "effect"], "stage.h")
    deep = os.path.join(folder, "deep.dump")
    write(folder, "deep.dump", 'kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'
          "sample task=7/7 source=1 weight=1 : user 0x1000 0x2000 0x3000 0x4000\n")
    done = run(program, "convert", deep, "--innermost", "3", "-t", "dump", "-o", "-")
    check("the stage acts", ": user 0x1000 0x2000\n" in done.stdout and not done.stderr,
          done.stdout + done.stderr)
    done = run(program, "convert", deep, "-t", "dump", "-o", "-")
    check("without its option it does not", ": user 0x1000 0x2000 0x3000 0x4000\n" in done.stdout,
          done.stdout)
    for verb in ("convert", "report", "flame"):
        check(f"{verb} --help has its option", "--innermost N" in run(program, verb, "--help").stdout)
    done = run(program, "report", deep, "--innermost", "0")
    check("a wrong value is refused", done.returncode == 2 and "--innermost" in done.stderr,
          done.stderr)


def main():
    examples = re.findall(r"^```c\n(// SPDX.*?)^```", read(ROOT, "CONTRIBUTING.md"), re.S | re.M)
    equal("whole files among the examples", len(examples), 2)
    with scratch() as folder:
        test_format(folder, examples[0])
    with scratch() as folder:
        test_stage(folder, examples[1])
    finish()


if __name__ == "__main__":
    main()
