#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Warnings about traced call stacks that may be wrong, or whose first callers are unknown."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import equal, finish, kscope, scratch

WRONG = ("kscope: warning: {} % of the traced instructions are in call stacks that may be wrong: "
         "see kscope info\n")
UNKNOWN = ("kscope: warning: {} % of the traced instructions are in call stacks whose first callers are "
           "unknown\n")


def branch(what, instructions):
    return f"branch time=0.000001000 cpu=0 task=1/1 {what} instructions={instructions} kernel\n"


def dump(path, rooted, doubtful, unrooted):
    """A trace with so many instructions of each kind."""
    with open(path, "w", encoding="ascii") as f:
        f.write("kscope-dump 1\n")
        f.write(branch("begin to=0x1000 sp=0x8000 down=0", 0))
        f.write(branch("call from=0x1010 to=0x2000 next=0x1014 down=8 pushed=8", rooted))
        # The stack pointer is not where it was, until the function returns.
        f.write(branch("jump from=0x2008 to=0x200c sp=0x7000 down=0", 0))
        f.write(branch("return from=0x2010 to=0x1014 sp=0x8000", doubtful))
        # The caller of the function in which the trace began.
        f.write(branch("return from=0x1018 to=0x3000 up=8", 0))
        f.write(branch("end from=0x3010", unrooted))


def test_warnings(path, name, counts, want):
    dump(path, *counts)
    equal(f"{name}: warnings", kscope("convert", path, "-t", "folded", "-o", "-").stderr, want)
    done = kscope("info", path, "--json")
    got = json.loads(done.stdout)
    equal(f"{name}: warnings of kscope info", done.stderr, want)
    equal(f"{name}: kscope info counts them", (got["rooted"], got["doubtful"], got["instructions"]),
          (*counts[:2], sum(counts)))


def main():
    with scratch() as folder:
        path = os.path.join(folder, "trace.dump")
        test_warnings(path, "a good trace", (899, 1, 100), "")
        test_warnings(path, "doubtful stacks", (998, 2, 0), WRONG.format(0.2))
        test_warnings(path, "stacks without first callers", (899, 0, 101), UNKNOWN.format(10.1))
        test_warnings(path, "both", (100, 500, 400), WRONG.format("50.0") + UNKNOWN.format("40.0"))
        test_warnings(path, "no instructions", (0, 0, 0), "")
    finish()


if __name__ == "__main__":
    main()
