#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces whose data names the threads: their tracks have the threads' own ids and names."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, fxt, kscope, scratch
from kit.branches import Trace
from kit.inputs import GOLDEN


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


def test_cold(folder):
    """An exception is handled in a part of its function that the compiler has moved away."""
    trace = Threads(["main", "f(int)", "f(int) [clone .cold]", "g", "unwind"])
    task = (20, 21)
    trace.begin(1000, None, task, "main")
    trace.call(1010, None, task, "main", "f(int)")
    trace.call(1020, None, task, "f(int)", "f(int)")
    # A jump to the moved part of the inner call, and back, is none.
    trace.branch(1030, None, task, f"jump from={trace.at('f(int)', 32)} to={trace.at('f(int) [clone .cold]', 16)} instructions=1")
    trace.branch(1040, None, task, f"jump from={trace.at('f(int) [clone .cold]', 32)} to={trace.at('f(int)', 48)} instructions=1")
    trace.call(1050, None, task, "f(int)", "g")
    trace.call(1060, None, task, "g", "unwind")
    trace.branch(1070, None, task, f"return from={trace.at('unwind', 32)} to={trace.at('f(int) [clone .cold]', 64)} instructions=1")
    trace.leave(1080, None, task, "f(int) [clone .cold]", "f(int)")
    trace.leave(1090, None, task, "f(int)", "main")
    trace.end(1100, None, task, "main", over=True)
    source = os.path.join(folder, "cold.dump")
    with open(source, "w", encoding="utf-8") as f:
        f.write(trace.text())
    equal("an exception is handled in moved code", {s[1:] for s in found(timeline(folder, "cold", source))}, {
        (1000, 1100, "begin", "main"), (1010, 1090, "call", "f(int)"), (1020, 1030, "call", "f(int)"),
        (1030, 1040, "jump", "f(int) [clone .cold]"), (1040, 1070, "jump", "f(int)"), (1050, 1070, "call", "g"),
        (1060, 1070, "call", "unwind"), (1070, 1080, "jump", "f(int) [clone .cold]")})


def test_text(folder):
    """Text of perf script has names, but no binaries."""
    trace = timeline(folder, "text", os.path.join(GOLDEN, "perfscript-branches", "input.txt"))
    vector = "std::vector<int, std::allocator<int> >::push_back"
    base = 100_000_000_000
    equal("text: slices", {(s[0], s[1] - base, s[2] - base, *s[3:]) for s in found(trace)}, {
        (1201, 100, 360, "begin", "main"), (1201, 110, 130, "call", "work"), (1201, 130, 360, "jump", vector),
        (1201, 140, 240, "syscall", "[kernel]"), (1201, 250, 350, "trap", "[kernel]"), (1201, 360, 400, "gap", "gap"),
        (1201, 400, 430, "begin", "main"), (1201, 410, 430, "call", "[demo]"), (1201, 420, 430, "trap", "[kernel]"),
        (1201, 440, 460, "begin", "main"), (1201, 460, 460, "begin", "[untraced]"), (1202, 370, 460, "begin", "work")})
    equal("text: names", trace.threads[1202], (1202, "demo"))


def main():
    with scratch() as folder:
        test_cpus(folder)
        test_no_cpus(folder)
        test_sums(folder)
        test_cold(folder)
        test_text(folder)
    finish()


main()
