#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of Cortex-M, through exceptions: samples of tests/guest/cortex_m.c, in two QEMUs.

What every function may be called from is known, and what each exception interrupts. The guest is
built with frame pointers, with CFI only, and with nothing but the tables of Arm. Some handlers are
assembly without any rules.
"""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cortex_m
from kit import check, finish, guests, kscope, read_folded, skip

COMMON = ["-O1", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-nostdlib",
          "-fno-optimize-sibling-calls"]
BUILDS = {
    "frame pointers": ["-fno-omit-frame-pointer"],
    "CFI": ["-g", "-fomit-frame-pointer"],
    "tables of Arm": ["-fomit-frame-pointer", "-funwind-tables"],
}
THREADS = ["first_thread", "second_thread", "reset"]
CALLS = {
    "first_thread": ["ask", "fault", "late", "deep", "print_count", "finish"],
    "second_thread": ["ask", "deep", "leaf"],
    "reset": ["start"],
    "deep": ["deep", "leaf"],
    "on_svc": ["serve"],
    "serve": ["deep"],
    "on_switch": ["pick"],
    "on_low": ["deep"],
    "on_tick": ["deep"],
    "print_count": ["print"],
    "on_hard_fault": ["print", "finish"],
}
ONLY_FROM = {"on_svc": "ask", "on_fault": "fault"}  # exceptions that an instruction causes
MACHINES = ["mps2-an385", "mps2-an386", "mps2-an505"]
DEEPEST = {"first_thread": 6, "second_thread": 4, "serve": 4, "on_low": 2, "on_tick": 3}


def is_step(caller, callee):
    """Whether the one may call, or be interrupted by, the other."""
    if callee.startswith("on_"):
        # An exception that comes with the return from another one interrupts the same code.
        return caller == ONLY_FROM.get(callee, caller)
    return callee in CALLS.get(caller, ())


def is_right(stack):
    frames = stack.split(";")
    if not (frames[0] in THREADS or frames[0].startswith("on_")):
        return False
    if not all(is_step(*pair) for pair in zip(frames, frames[1:])):
        return False
    return all(len(run.split(";")) - 1 <= DEEPEST[caller] for caller, run in
               re.findall(r"(\w+)((?:;deep)+)", stack) if caller in DEEPEST)


def ends(recording, elf):
    """How many stacks kscope says are complete."""
    text = kscope("info", recording, "--elf", elf).stdout
    return sum(int(count) for count in re.findall(r"stacks, (\d+) to the end", text))


def test_build(folder, which, machine, build):
    name = f"{which} {machine}, {build}"
    cortex_m.FLAGS[:] = COMMON + BUILDS[build]
    elf = cortex_m.build(folder, machine)
    recording = os.path.join(folder, "samples.kscope")
    cortex_m.record(which, machine, elf, recording, ",clock=instructions,period=20")
    done = kscope("convert", recording, "-t", "folded", "--samples", "--root", "none", "--elf", elf,
                  "-o", "-")
    stacks = read_folded(done.stdout)
    total = sum(stacks.values())
    wrong = {stack: count for stack, count in stacks.items() if not is_right(stack)}
    check(f"{name}: every caller may call what it calls", total > 1000 and not wrong,
          f"{sum(wrong.values())} of {total}: {list(wrong.items())[:9]}; {done.stderr}")
    if which == "debian":  # 7.2 does not show the threads' stack pointer to plugins
        return
    whole = sum(count for stack, count in stacks.items() if stack.split(";")[0] in THREADS)
    # While it switches between threads, the handler belongs to none.
    switch = sum(count for stack, count in stacks.items() if stack.startswith("on_switch"))
    check(f"{name}: every stack begins in a thread", whole + switch == total and switch < total / 20,
          f"{whole} and {switch} of {total}")
    if build == "CFI":  # a thread that never ends does not even save lr
        return
    known = ends(recording, elf)
    # Nor does reset(), which uses lr for something else.
    check(f"{name}: and is known to", whole - stacks.get("reset", 0) <= known <= whole,
          f"{known}, {whole}")


def main():
    if guests.missing():
        skip("unwind_cortex_m", guests.missing())
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-test-") as folder:  # --elf takes nothing in /dev
        for which in guests.QEMUS:
            for machine in MACHINES:
                for build in BUILDS:
                    test_build(folder, which, machine, build)
    finish()


if __name__ == "__main__":
    main()
