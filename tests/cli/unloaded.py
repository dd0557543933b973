#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums of traces and allocations keep the names that addresses had at the time: after an exec or an
unload, other code may be at the same addresses."""
import collections
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, scratch

HEAD = "kscope-dump 1\n"
BEGIN = "branch time=0.000000001 cpu=0 task=7/7 begin to=0x1000 sp=0x9000 instructions=0 user\n"
CALL = ("branch time=0.00000000{t} cpu=0 task=7/7 call from=0x1004 to=0x2000 next=0x1008 sp=0x8ff0 "
        "instructions=10 user\n")
JUMP = ("branch time=0.00000000{t} cpu=0 task=7/7 jump from=0x1008 to=0x1000 sp=0x9000 "
        "instructions=0 user\n")
RETURN = ("branch time=0.00000000{t} cpu=0 task=7/7 return from=0x2008 to=0x1008 sp=0x9000 "
          "instructions={n} user\n")
MAP = 'map time=0.00000000{t} task=7/7 addr={at} len=0x1000 offset=0x0 prot=r-x path="/none/{name}"\n'
ALLOC = ('alloc time=0.00000000{t} cpu=0 task=7/7 new by="malloc" ptr={p} size={n} at=0 '
         ": user 0x2004 0x1008\n")
FREE = 'alloc time=0.00000000{t} cpu=0 task=7/7 free by="malloc" ptr={p} size=0 at=0 : user 0x2004\n'


def maps(t, program, library):
    return MAP.format(t=t, at="0x1000", name=program) + MAP.format(t=t, at="0x2000", name=library)


TRACE = (HEAD + maps(0, "sh", "libold") + BEGIN + CALL.format(t=2) + RETURN.format(t=3, n=100)
         + maps(4, "sh", "libnew") + CALL.format(t=5) + RETURN.format(t=6, n=1000)
         + maps(7, "make", "libnew") + JUMP.format(t=7) + CALL.format(t=8) + RETURN.format(t=9, n=5000))
ALLOCS = (HEAD + maps(0, "sh", "libold") + ALLOC.format(t=1, p="0x10", n=100)
          + maps(2, "sh", "libnew") + ALLOC.format(t=3, p="0x20", n=1000)
          + maps(4, "make", "libnew") + ALLOC.format(t=5, p="0x30", n=5000)
          + ALLOC.format(t=6, p="0x40", n=7) + FREE.format(t=7, p="0x40"))


def folded(path, *words):
    done = kscope("convert", path, "-t", "folded", "-o", "-", "--root", "none", *words)
    stacks = collections.Counter()
    for line in done.stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[";".join(frame.split("+")[0] for frame in stack.split(";"))] += int(count)
    return stacks


with scratch() as folder:
    trace, allocs = os.path.join(folder, "trace.dump"), os.path.join(folder, "allocs.dump")
    for path, text in ((trace, TRACE), (allocs, ALLOCS)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    # The 10 instructions before each call count for the program that ran at the time.
    equal("a trace", folded(trace), {"sh": 20, "sh;libold": 100, "sh;libnew": 1000, "make": 10,
                                     "make;libnew": 5000})
    equal("allocations", folded(allocs), {"sh;libold": 100, "sh;libnew": 1000, "make;libnew": 5000})
    text = kscope("alloc", allocs).stdout
    check("alloc: each stack by its own names",
          all(f"{lib}+0x4 <- {program}+0x8" in text for lib, program in
              (("libold", "sh"), ("libnew", "sh"), ("libnew", "make"))), text)
finish()
