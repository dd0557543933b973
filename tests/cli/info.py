#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope info: the binaries that samples hit, and those that none hit."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, equal, finish, kscope, scratch

MODULES = 100


def dump(folder):
    """A program that is hit; a file that is none and is not hit; modules, of which one is hit."""
    text = os.path.join(folder, "ld.so.cache")
    with open(text, "w", encoding="ascii") as f:
        f.write("glibc-ld.so.cache1.1: no binary\n")
    lines = ["kscope-dump 1", 'source id=1 name="cpu-clock" type=1 config=0x0 freq=1000',
             f'map task=7/7 addr=0x400000 len=0x10000 offset=0x0 prot=r-x path="{KSCOPE}"',
             f'map task=7/7 addr=0x500000 len=0x1000 offset=0x0 prot=r-- path="{text}"']
    lines += [f"map addr={0xffffffffc0000000 + n * 0x1000:#x} len=0x1000 offset=0x0 prot=r-x kernel "
              f'path="/none/module{n}.ko"' for n in range(MODULES)]
    lines += ["sample time=0.000000001 cpu=0 task=7/7 source=1 weight=1 : kernel 0xffffffffc0003010 user 0x400100"]
    path = os.path.join(folder, "a.dump")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path, text


def named(text, word):
    """[(path in the data, the rest)] of the lines that begin with this word."""
    return [tuple(line.split(maxsplit=2)[1:]) for line in text.splitlines() if line.split()[0] == word]


with scratch() as SCRATCH:
    DUMP, TEXT = dump(SCRATCH)
    HIT = [(KSCOPE, KSCOPE), ("/none/module3.ko", "(not found)")]
    done = kscope("info", DUMP)
    equal("the binaries that samples hit", named(done.stdout, "binary"), HIT)
    equal("how many are hidden", named(done.stdout, "unused"),
          [(f"{MODULES}", "binaries that no sample hit (-v shows them)")])
    equal("no warning of a file that no sample hit", (done.returncode, done.stderr), (0, ""))
    done = kscope("info", DUMP, "-v")
    equal("-v: the binaries that samples hit", named(done.stdout, "binary"), HIT)
    equal("-v: the others", named(done.stdout, "unused"), [(TEXT, "(not found)")] + [
        (f"/none/module{n}.ko", "(not found)") for n in range(MODULES) if n != 3])
    done = kscope("info", DUMP, "--json")
    equal("JSON has all", [(row["path"], row["hit"]) for row in json.loads(done.stdout)["binaries"]],
          [(KSCOPE, True), (TEXT, False)] + [(f"/none/module{n}.ko", n == 3) for n in range(MODULES)])
    equal("JSON: no warning either", (done.returncode, done.stderr), (0, ""))
    equal("no warning when perf's cache gets the binaries", kscope(
        "convert", DUMP, f"--buildid-cache={SCRATCH}/cache", "-o", os.path.join(SCRATCH, "a.data")).stderr, "")
    with open(DUMP, "a", encoding="utf-8") as f:
        f.write("sample time=0.000000002 cpu=0 task=7/7 source=1 weight=1 : user 0x500010\n")
    done = kscope("info", DUMP)
    equal("a warning of a file that a sample hit", done.stderr,
          f"kscope: warning: {TEXT}: neither an ELF file, nor a Linux kernel, nor a symbol list like "
          "/proc/kallsyms or System.map\n")
    equal("it is listed", named(done.stdout, "binary"), [HIT[0], (TEXT, "(not found)"), HIT[1]])
finish()
