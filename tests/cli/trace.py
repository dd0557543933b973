#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb `trace`: its outputs, windows, parts and axes."""
import collections
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, equal, exits, finish, fxt, kscope, run, scratch, uftrace
from kit.branches import Trace
from kit.inputs import GOLDEN

ROUNDS, ROUND, FIRST = 20, 100, 5_000_000_000  # ns


def record(path):
    """main calls work, which calls leaf, and then rest, on two cpus."""
    trace = Trace(["main", "work", "leaf", "rest"])
    for cpu in (0, 1):
        trace.begin(FIRST + cpu, cpu, 7 + cpu, "main")
    for i in range(ROUNDS):
        for cpu in (0, 1):
            start, place = FIRST + i * ROUND + cpu, (cpu, 7 + cpu)
            trace.call(start + 10, *place, "main", "work", instructions=5)
            trace.call(start + 20, *place, "work", "leaf", instructions=7)
            trace.leave(start + 50, *place, "leaf", "work", instructions=11)
            trace.leave(start + 70, *place, "work", "main", instructions=13)
            trace.call(start + 80, *place, "main", "rest", instructions=17)
            trace.leave(start + 90, *place, "rest", "main", instructions=19)
    for cpu in (0, 1):
        trace.end(FIRST + ROUNDS * ROUND + cpu, cpu, 7 + cpu, "main")
    with open(path, "w", encoding="utf-8") as f:
        f.write(trace.text())
    return path


def slices(path):
    with open(path, "rb") as f:
        return [s for s in fxt.slices(fxt.read(f.read())) if s.category != "gap"]


def counts(found):
    """The calls that begin, by name."""
    return dict(collections.Counter(s.name for s in found if not s.args.get("began_before")))


def own(found):
    sums = collections.Counter()
    for s in found:
        sums[s.name] += s.args["own_instructions"]
    return dict(sums)


def spans(found):
    sums = collections.Counter()
    for s in found:
        sums[s.name] += s.end - s.begin
    return dict(sums)


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.input = record(self.path("in.dump"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, name, *options, code=0, says=(), out="out.fxt"):
        done = kscope("trace", self.input, "-o", self.path(out), *options)
        exits(name, done, code, *says)
        return done

    def slices(self, name, *options, says=()):
        self.trace(name, *options, says=says)
        return slices(self.path("out.fxt"))


def test_outputs(case):
    done = kscope("trace", case.input, cwd=case.folder)
    exits("outputs: without -o", done, 0, "wrote trace.pftrace; next: open it in ui.perfetto.dev")
    kscope("convert", case.input, "-o", case.path("convert.pftrace"))
    with open(case.path("trace.pftrace"), "rb") as a, open(case.path("convert.pftrace"), "rb") as b:
        equal("outputs: trace and convert write the same", a.read(), b.read())
    case.trace("outputs: not a timeline", out="x.folded", code=2,
               says=["trace does not write folded: use kscope convert"])
    exits("outputs: -t without -o", kscope("trace", case.input, "-t", "fxt"), 2, "no output file: use -o FILE")
    done = kscope("trace", case.input, "-t", "fxt", "-o", "-", binary=True)
    with open(case.path("out.fxt"), "wb") as f:
        f.write(done.stdout)
    check("outputs: stdout", done.returncode == 0 and b"ui.perfetto" not in done.stderr, done.stderr)
    equal("outputs: stdout: the calls", counts(slices(case.path("out.fxt")))["leaf"], 2 * ROUNDS)
    help_text = kscope("trace", "--help").stdout
    check("outputs: --help has the options of timelines only",
          "--split" in help_text and "--palette" not in help_text and "--no-inline" not in help_text, help_text)


def test_windows(case):
    absolute = case.slices("windows: --time", "--time", f"{(FIRST + 5 * ROUND) / 1e9:.9f},"
                           f"{(FIRST + 8 * ROUND) / 1e9:.9f}")
    equal("windows: --time selects calls", counts(absolute)["work"], 6)
    relative = case.slices("windows: --rel", "--rel", f"{5 * ROUND / 1e9:.9f},{3 * ROUND / 1e9:.9f}")
    equal("windows: --rel counts from the first event", relative, absolute)
    rest = case.slices("windows: --rel without a length", "--rel", f"{5 * ROUND / 1e9:.9f}")
    equal("windows: --rel without a length selects the rest", counts(rest)["work"], 2 * (ROUNDS - 5))
    for options in (("--time", "1,2", "--rel", "0,1"), ("--rel", "0,1", "--time", "1,2")):
        case.trace("windows: " + " ".join(options), *options, code=2, says=["use --time or --rel, not both"])
    for wrong in ("", ",1", "x", "1,0", "1,x", "-1,2"):
        case.trace(f"windows: --rel '{wrong}'", "--rel", wrong, code=2,
                   says=[f"--rel expects START,LENGTH in seconds, not '{wrong}'"])
    late = case.slices("windows: after the end", "--rel", "10,1", says=["the timeline is empty"])
    equal("windows: after the end: nothing", late, [])


def test_gate(case):
    between = case.slices("gate: --start and --end", "--cpu", "0", "--start", "work", "--end", "work")
    equal("gate: the calls between", counts(between), {"work": ROUNDS, "leaf": ROUNDS})
    equal("gate: their time", spans(between), {"leaf": 30 * ROUNDS, "work": 60 * ROUNDS, "main": 60 * ROUNDS})
    until = case.slices("gate: --end", "--cpu", "0", "--end", "leaf")
    equal("gate: --end alone ends the timeline", counts(until), {"main": 1, "work": 1, "leaf": 1})
    after = case.slices("gate: --start", "--cpu", "0", "--start", "rest")
    equal("gate: --start alone", counts(after), {"rest": ROUNDS, "work": ROUNDS - 1, "leaf": ROUNDS - 1})
    none = case.slices("gate: a function that is never called", "--start", "nobody",
                       says=["no call of nobody begins in the selection", "the timeline is empty"])
    equal("gate: a function that is never called: nothing", none, [])
    done = kscope("calls", case.input, "--cpu", "0", "--start", "rest", "--end", "rest", "-n", "0")
    exits("gate: calls", done, 0)
    check("gate: calls counts those between", "rest" in done.stdout and "leaf" not in done.stdout, done.stdout)


def parts_of(case, name):
    return sorted(x for x in os.listdir(case.folder) if x.startswith(name + "."))


def test_split(case):
    whole = case.slices("split: none")
    length = f"{3 * ROUND / 1e9:.9f}"
    case.trace("split: in parts", "--split", length, out="part.fxt",
               says=["wrote 7 parts, ", "part.0001.fxt to ", "part.0007.fxt; next: open it"])
    names = parts_of(case, "part")
    equal("split: the names", names, [f"part.{i:04}.fxt" for i in range(1, 8)])
    parts = [slices(case.path(name)) for name in names]
    all_parts = [s for part in parts for s in part]
    equal("split: calls begin once", counts(all_parts), counts(whole))
    equal("split: instructions add up", own(all_parts), own(whole))
    equal("split: times add up", spans(all_parts), spans(whole))
    check("split: parts follow each other", all(
        max(s.end for s in a) <= min(s.begin for s in b) for a, b in zip(parts, parts[1:])))
    case.trace("split: fewer parts", "--split", f"{10 * ROUND / 1e9:.9f}", out="part.fxt",
               says=["part.0004.fxt is left over from an earlier run"])
    case.trace("split: one part", "--split", "100", out="one.pftrace.gz", says=["wrote 1 part, ", "one.0001.pftrace.gz; next"])
    case.trace("split: folders", "--split", length, "-t", "uftrace", out="folder", says=["folder.0001 to "])
    check("split: folders are whole", os.path.isfile(case.path("folder.0007/info")), parts_of(case, "folder"))
    exits("split: stdout", kscope("trace", case.input, "--split", "1", "-t", "fxt", "-o", "-"), 2,
          "--split cannot write to stdout: use -o FILE")
    done = kscope("convert", case.input, "--split", length, "-o", case.path("both.fxt"), "-o", case.path("both.folded"))
    exits("split: next to another format", done, 0)
    equal("split: another format is one file", parts_of(case, "both"),
          [*(f"both.{i:04}.fxt" for i in range(1, 8)), "both.folded"])
    done = kscope("convert", case.input, "--split", length, "-o", case.path("alone.folded"))
    exits("split: no timeline", done, 0, "--split has no effect on folded output")
    done = kscope("trace", case.path("folder.0001"), "--split", length, "-t", "uftrace", "-o", case.path("folder"))
    exits("split: a part would replace the input", done, 2, "folder.0001 is an input, too")
    done = run("sh", "-c", 'ulimit -f 1; exec "$@"', "sh", KSCOPE, "trace", case.input, "--split", "1",
               "-o", case.path("full.pftrace"))
    exits("split: a full disk", done, 4, "full.0001.pftrace")
    equal("split: a full disk leaves no part of a file", parts_of(case, "full"), [])


def shown(case, name, text, *options, says=()):
    path = case.path("other.dump")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    exits(name, kscope("trace", path, "-o", case.path("out.fxt"), *options), 0, *says)
    with open(case.path("out.fxt"), "rb") as f:
        found = fxt.slices(fxt.read(f.read()))
    return sorted((s.begin, s.end, s.name, bool(s.args.get("goes_on"))) for s in found)


def test_kernel_only(case):
    """What a kernel did for a program is over when it returns to it."""
    trace = Trace(["entry", "read"])
    for start in (1000, 2000):
        trace.begin(start, 0, 1, "entry", stack=1)
        trace.call(start + 10, 0, 1, "entry", "read")
        trace.leave(start + 20, 0, 1, "read", "entry")
        trace.end(start + 30, 0, 1, "entry", over=True)
    equal("kernel only: calls end where the kernel returns",
          shown(case, "kernel only", trace.text()),
          [(1000, 1030, "entry", False), (1010, 1020, "read", False), (1030, 2000, "gap", False),
           (2000, 2030, "entry", False), (2010, 2020, "read", False)])


def test_loss(case):
    """A window that ends in a gap has the part of it."""
    trace = Trace(["main", "leaf"])
    trace.begin(1000, 0, 1, "main")
    trace.call(1100, 0, 1, "main", "leaf")
    trace.begin(2000, 0, 1, "main")
    trace.end(2200, 0, 1, "main")
    whole = shown(case, "loss: whole", trace.text())
    equal("loss: what ran is cut at its last event", whole,
          [(1000, 1100, "main", True), (1100, 1100, "leaf", True), (1100, 2000, "gap", False),
           (2000, 2200, "main", True)])
    parts = [shown(case, "loss: a part", trace.text(), "--time", span)
             for span in (",0.000001500", "0.000001500,")]
    equal("loss: parts add up", [sum(end - begin for begin, end, name, _ in part if (name == "gap") == gap)
                                 for gap in (True, False) for part in (parts[0] + parts[1], whole)],
          [900, 900, 300, 300])
    equal("loss: nothing of the last part is older", min(begin for begin, *_ in parts[1]), 1500)


def test_odd(case):
    trace = Trace(["main", "leaf"])
    trace.begin(None, 0, 1, "main")
    for i in range(4):
        trace.call(10**9 * (5 + i), 0, 1, "main", "leaf")
        trace.leave(10**9 * (5 + i) + 500, 0, 1, "leaf", "main")
    trace.end(9 * 10**9, 0, 1, "main")
    found = shown(case, "the first event has no time", trace.text(), "--rel", "0.5,1.6")
    equal("the first event has no time: --rel is relative to the next one",
          [row[0] for row in found if row[2] == "leaf"], [6 * 10**9, 7 * 10**9])
    case.trace("split: a very long time", "--split", "18446744073", out="long.fxt", says=["wrote 1 part, "])
    samples = case.path("samples.dump")
    with open(samples, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nsource id=1 name="cpu-clock" type=1 config=0x0\n' + "".join(
            f"sample time={5 + i / 10**7:.9f} cpu=0 task=5/5 source=1 weight=100 : user 0x10\n" for i in range(20)))
    done = kscope("trace", case.input, samples, "--split", f"{3 * ROUND / 1e9:.9f}", "-o", case.path("mix.fxt"))
    exits("split: a trace and samples", done, 2, "--split needs inputs that are all traces")


def test_large(case):
    """Six million calls in three seconds."""
    folder = case.path("large")
    shutil.copytree(os.path.join(GOLDEN, "uftrace", "input"), folder)
    with open(os.path.join(folder, "5.dat"), "wb") as f:
        for second in range(1, 5):
            f.write((uftrace.record(uftrace.ENTRY, second * 10**9, 0, 0x1000) +
                     uftrace.record(uftrace.EXIT, second * 10**9, 0, 0x1000)) * 1_500_000)
    done = kscope("trace", folder, "-t", "fxt", "-o", "/dev/null")
    exits("a large timeline", done, 0, "/dev/null has 6.0 million slices, and Perfetto has room for about 5 million: "
          "select less, or use --split 1.2")
    done = kscope("trace", folder, "--rel", "1", "-t", "perfetto", "-o", "/dev/null")
    exits("part of a large timeline", done, 0)
    check("part of a large timeline fits", "million" not in done.stderr, done.stderr)


def test_axes(case):
    found = case.slices("axes: instructions", "--axis", "insns")
    wrong = [s for s in found if s.end - s.begin != s.args["instructions"]]
    check("axes: slices are as long as their instructions", found and not wrong, wrong[:3])
    equal("axes: time is the default", case.slices("axes: time", "--axis", "time"), case.slices("axes: default"))
    case.trace("axes: cycles", "--axis", "cycles", code=2,
               says=["the input has no cycle counts: use --axis insns or --axis time"])
    case.trace("axes: another", "--axis", "x", code=2, says=["--axis expects time, cycles or insns, not 'x'"])


def main():
    with scratch() as folder:
        case = Case(folder)
        test_outputs(case)
        test_windows(case)
        test_gate(case)
        test_split(case)
        test_axes(case)
        test_large(case)
        test_kernel_only(case)
        test_loss(case)
        test_odd(case)
    finish()


if __name__ == "__main__":
    main()
