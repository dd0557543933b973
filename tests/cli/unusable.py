#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A binary that the user names and that is not usable: the exit code is 1, and a message names the file."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, demo_samples, equal, exits, finish, kscope, scratch
from kit.inputs import GOLDEN

INPUTS = {"dump": "perfdata-le/expected.dump", "perfdata": "perfdata-le/input.data", "qperf": "qperf-1/input.bin",
          "kscope": "wire-allocs/input.kscope"}


def make_binaries(folder):
    """{what is wrong: (file, words of the message)}"""
    with open(os.path.join(ELFS, "hasher.elf"), "rb") as f:
        elf = f.read()
    wrong = {"no ELF": (b"text\n", "neither an ELF file"), "empty": (b"", "neither an ELF file"),
             "cut in its header": (elf[:20], "not an ELF file"), "cut": (elf[:len(elf) // 2], "cut short")}
    made = {"a folder": (folder, "not a regular file")}
    for n, (what, (data, message)) in enumerate(wrong.items()):
        path = os.path.join(folder, f"wrong{n}.elf")
        with open(path, "wb") as f:
            f.write(data)
        made[what] = path, message
    return made


def test_named(folder):
    for format_, file in INPUTS.items():
        convert = "convert", os.path.join(GOLDEN, file), "-f", format_, "-t", "folded", "-o", "-"
        for what, (path, message) in make_binaries(folder).items():
            for option in (["--kernel", path], ["--elf", path], ["--elf", f"1={path}"]):
                done = kscope(*convert, *option)
                exits(f"{format_}: {option[0]}, {what}", done, 1, path, message)
                equal(f"{format_}: {option[0]}, {what}: one message", done.stderr.count(message), 1)
        exits(f"{format_}: --elf, no such name", kscope(*convert, "--elf", "1=nowhere.elf"), 1, "nowhere.elf")
        exits(f"{format_}: --elf, no such path", kscope(*convert, "--elf", "1=no/where.elf"), 2, "no/where.elf")
        exits(f"{format_}: --kernel, no such file", kscope(*convert, "--kernel", "nowhere.elf"), 2, "nowhere.elf")
        equal(f"{format_}: a usable file", kscope(*convert, "--elf", f"1={ELFS}/hasher.elf").returncode, 0)


def test_found(folder):
    """A binary that the data names."""
    place, samples = os.path.join(folder, "elfs"), demo_samples(folder)
    shutil.copytree(ELFS, place)
    equal("found: whole", kscope("info", samples, "-b", place).returncode, 0)
    path = os.path.join(place, "hasher.elf")
    os.truncate(path, os.path.getsize(path) // 2)
    for verb in (["info"], ["report"], ["convert", "-t", "folded", "-o", "-"]):
        exits(f"found: cut, {verb[0]}", kscope(verb[0], samples, *verb[1:], "-b", place), 1, path, "cut short")


with scratch() as SCRATCH:
    test_named(SCRATCH)
    test_found(SCRATCH)
finish()
