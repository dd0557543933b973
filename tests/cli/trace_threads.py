#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces whose data names the threads: their tracks have the threads' own ids and names."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, fxt, kscope, scratch
from kit.branches import Trace


class Threads(Trace):
    """No stack pointers, and tid is not pid."""
    def branch(self, time, cpu, pid, words):
        place = f"time={time // 10**9}.{time % 10**9:09} " + (f"cpu={cpu} " if cpu is not None else "")
        words = " ".join(word for word in words.split() if word.split("=")[0] not in ("sp", "up", "down", "pushed"))
        self.lines.append(f"branch {place}task={pid[0]}/{pid[1]} {words} by-thread cycles=9 kernel")

    def name(self, task, comm):
        self.lines.append(f'comm task={task[0]}/{task[1]} name="{comm}"')


def record(path, cpus):
    """Two threads of a process take turns on a cpu, and part of the trace of the second one is missing."""
    first, second = (20, 21), (20, 22)
    trace = Threads(["main", "work", "leaf"])
    trace.name(first, "one")
    trace.name(second, "two")
    trace.begin(1000, cpus[0], first, "main")
    trace.call(1010, cpus[0], first, "main", "work")
    trace.begin(1020, cpus[0], second, "main")
    trace.call(1030, cpus[0], second, "main", "leaf")
    trace.call(1040, cpus[1], first, "work", "leaf")
    trace.leave(1050, cpus[1], first, "leaf", "work")
    trace.begin(1060, cpus[0], second, "work")
    trace.leave(1070, cpus[1], first, "work", "main")
    trace.call(1080, cpus[0], second, "work", "leaf")
    trace.end(1090, cpus[1], first, "main", over=True)
    trace.end(1100, cpus[0], second, "leaf", over=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(trace.text())
    return path


WANT = {
    (21, 1000, 1090, "begin", "main"), (21, 1010, 1070, "call", "work"), (21, 1040, 1050, "call", "leaf"),
    (22, 1020, 1030, "begin", "main"), (22, 1030, 1060, "gap", "gap"),
    (22, 1060, 1100, "begin", "work"), (22, 1080, 1100, "call", "leaf"),
}


def timeline(folder, name, source, *words):
    out = os.path.join(folder, "t.fxt")
    exits(name, kscope("trace", source, "-o", out, *words), 0)
    with open(out, "rb") as f:
        return fxt.read(f.read())


def found(trace):
    return {(s.tid, s.begin, s.end, s.category, s.name) for s in fxt.slices(trace)}


def test_cpus(folder):
    trace = timeline(folder, "with cpus", record(os.path.join(folder, "cpus.dump"), (0, 1)))
    # A slice of no length has no end in this format: the call at the beginning of the gap.
    equal("slices", found(trace) - {(22, 1030, 1030, "call", "leaf")}, WANT)
    equal("names", {tid: trace.threads[tid] for tid in (21, 22)}, {21: (20, "one"), 22: (20, "two")})
    runs = [(s.time, s.cpu, s.outgoing, s.incoming) for s in trace.switches]
    check("the threads run on the cpus of their branches",
          {cpu for _, cpu, out, to in runs if 21 in (out, to)} == {0, 1}
          and {cpu for _, cpu, out, to in runs if 22 in (out, to)} == {0}, runs)


def test_no_cpus(folder):
    source = record(os.path.join(folder, "none.dump"), (None, None))
    trace = timeline(folder, "without cpus", source)
    equal("without cpus: slices", found(trace) - {(22, 1030, 1030, "call", "leaf")}, WANT)
    equal("without cpus: no cpu runs anything", trace.switches, [])
    one = timeline(folder, "one thread", source, "--tid", "21")
    equal("one thread", found(one), {s for s in WANT if s[0] == 21})
    cycles = timeline(folder, "axis", source, "--axis", "cycles")
    check("cycles: each branch has 9", {s.args["own_cycles"] for s in fxt.slices(cycles) if s.name == "work"} <= {9, 18},
          [s for s in fxt.slices(cycles)])
    check("cycles: slices are as long as their cycles",
          all(s.end - s.begin == s.args["cycles"] for s in fxt.slices(cycles)), fxt.slices(cycles))


def test_sums(folder):
    source = os.path.join(folder, "none.dump")
    done = kscope("convert", source, "-t", "folded", "-o", "-")
    equal("stacks", sorted(done.stdout.split("\n"))[1:], [
        "one;main 4", "one;main;work 6", "one;main;work;leaf 3",
        "two;main 3", "two;work 3", "two;work;leaf 1"])
    once = kscope("convert", source, "-t", "dump", "-o", "-").stdout
    again = kscope("convert", "-", "-t", "dump", "-o", "-", input=once.encode()).stdout
    equal("a dump of the dump", again, once)
    equal("a dump has all fields", (once.count(" by-thread "), once.count(" cycles=9 ")), (11, 11))


def main():
    with scratch() as folder:
        test_cpus(folder)
        test_no_cpus(folder)
        test_sums(folder)
    finish()


main()
