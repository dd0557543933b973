#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines: tables of the Fuchsia trace format that overflow, and input with wrong times, ids and names."""
import gzip
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, fxt, kscope, passes, scratch
from kit.branches import Trace

STRINGS, THREADS = 32767, 255  # the sizes of the tables
EVIL = {"\x1b[31m\u009b\x7f": "?[31m??", "new\nline": "new?line", 'a"b\\<': 'a"b\\<',
        "\u00e9\u20ac\U0001f600": "\u00e9\u20ac\U0001f600"}


def convert(folder, text, *options):
    """The timeline, and its slices in the order of their ends."""
    source, out = os.path.join(folder, "a.dump"), os.path.join(folder, "a.fxt")
    with open(source, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    done = kscope("convert", source, "-o", out, *options)
    if done.returncode not in (0, 1):
        raise fxt.Wrong(done.stderr)
    with open(out, "rb") as f:
        trace = fxt.read(f.read())
    return trace, fxt.slices(trace)


def shown(slices):
    return [f"{s.begin}-{s.end} {s.name} {s.parent or ''}".rstrip() for s in slices]


def work(trace, times, cpu, pid):
    """main calls one and then two; the trace ends inside two."""
    trace.begin(times[0], cpu, pid, "main")
    trace.call(times[1], cpu, pid, "main", "one")
    trace.leave(times[2], cpu, pid, "one", "main")
    trace.call(times[3], cpu, pid, "main", "two")
    trace.end(times[4], cpu, pid, "two")


def overflow():
    """A task on cpu 1 sees more tasks with more functions come and go on cpu 0 than the tables have room for,
    and functions that have lost their entry come again."""
    names = [f"f{i}" for i in range(STRINGS + 100)]
    trace = Trace(["main", "tick", *names])
    trace.begin(1000, 1, 7, "main")
    runs, time = [*range(len(names)), *range(50)], 1000
    for i in runs:
        time += 10
        trace.begin(time, 0, 8 + i % 300, names[i])
        trace.end(time + 5, 0, 8 + i % 300, names[i])
        if i % 100 == 0:
            trace.call(time + 6, 1, 7, "main", "tick")
            trace.leave(time + 8, 1, 7, "tick", "main")
    trace.end(time + 20, 1, 7, "main")
    return trace.text(), [names[i] for i in runs]


def test_overflow(folder):
    text, names = overflow()
    trace, slices = convert(folder, text)
    calls = [s for s in slices if s.category == "begin" and s.name != "main"]
    equal("overflow: each call has its name", [s.name for s in sorted(calls, key=lambda s: s.begin)],
          names)
    equal("overflow: each task has its name", [trace.threads[s.tid][1] for s in calls],
          [s.name for s in calls])
    ticks = [s for s in slices if s.name == "tick"]
    check("overflow: the task that stays keeps its thread",
          len(ticks) == sum(name.endswith("00") or name == "f0" for name in names) and
          {(s.pid, s.tid, s.parent) for s in ticks} == {(7, ticks[0].tid, "main")}, ticks[:3])
    equal("overflow: the tables are full", (len(trace.strings), len(trace.tasks)), (STRINGS, THREADS))
    check("overflow: entries are replaced", trace.counts["strings replaced"] > 100 and
          trace.counts["threads replaced"] > STRINGS - THREADS, trace.counts)
    equal("overflow: all runs end", len(fxt.runs(trace)), len(names) + 1)


def test_times(folder):
    """Slices stay nested whatever the times are."""
    five = [1000, 1003, 1005, 1007, 1009]
    whole = ["1003-1005 one main", "1007-1009 two main", "1000-1009 main"]
    for name, times, want in (
            ("as usual", five, whole),
            ("unknown times", [None] * 5, ["0-0 one main", "0-0 two main", "0-0 main"]),
            ("one is unknown", [1000, 1003, None, 1007, 1009],
             ["1003-1003 one main", "1007-1009 two main", "1000-1009 main"]),
            ("backwards", [1000, 999, 998, 997, 996],
             ["1000-1000 one main", "1000-1000 two main", "1000-1000 main"]),
            ("too large for readers with signed times", [2**63 + t for t in five],
             ["0-0 one main", "0-0 two main", "0-0 main"])):
        trace = Trace(["main", "one", "two"])
        work(trace, times, 0, 1)
        equal(f"times, {name}", shown(convert(folder, trace.text())[1]), want)
    for start, want in ((0, ["0-3 main", "3-5 one", "5-9 two"]),
                        (1000, ["1000-1003 main one", "999-1005 one two", "998-1009 two"])):
        trace = Trace(["main", "one", "two"])
        trace.begin(start, 0, 1, "main")
        trace.leave(start + 3, 0, 1, "main", "one")
        trace.leave(start + 5, 0, 1, "one", "two")
        trace.end(start + 9, 0, 1, "two")
        equal(f"times: callers from before a trace that begins at {start}",
              shown(convert(folder, trace.text())[1]), want)


def test_ids(folder):
    """Unknown tasks and cpus, and ids beyond 31 bits."""
    trace = Trace(["main", "one", "two"])
    for i, (pid, cpu) in enumerate([(None, 0), (2**32 - 1, 1), (2**31, 2), (5, 5000), (6, 2**32 - 2),
                                    (7, None)]):
        for again in range(2):
            work(trace, [1000 + 100 * i + 20 * again + d for d in (0, 3, 5, 7, 9)], cpu, pid)
    got, slices = convert(folder, trace.text())
    equal("ids: all slices are there", sum(s.name == "one" and s.parent == "main" for s in slices), 12)
    check("ids: those of tasks fit into 31 bits",
          all(0 <= s.pid < 2**31 and 0 < s.tid < 2**31 for s in slices if s.category != "gap"), slices[:3])
    check("ids: those of cpus fit into Perfetto's table", all(s.cpu < 4096 for s in got.switches))
    equal("ids: gaps are on the axis of their cpu",
          sorted(got.threads[s.tid][1] for s in slices if s.category == "gap"),
          ["cpu 0", "cpu 1", "cpu 2", *["cpu ?"] * 5])
    equal("ids: cpus are a process", {got.processes[s.pid] for s in slices if s.category == "gap"}, {"cpus"})


def test_names(folder):
    trace = Trace(["main", *EVIL, "x" * 40000, "\u20ac" * 15000])
    trace.begin(1000, 0, 1, "main")
    for i, name in enumerate(list(trace.addresses)[1:]):
        trace.call(1001 + 2 * i, 0, 1, "main", name)
        trace.leave(1002 + 2 * i, 0, 1, name, "main")
    trace.end(2000, 0, 1, "main")
    broken = trace.text().encode().replace(b'name="new\\u000aline"', b'name="\xff(\xc3\xed\xa0\x80"')
    for name, text, wanted in (("text", trace.text(), list(EVIL.values())),
                               ("bytes", broken, ["?(????"])):
        got = [s.name for s in convert(folder, text)[1]]
        check(f"names: {name}", set(wanted) <= set(got), [x[:40] for x in got])
        check(f"names: {name}: long ones are cut between characters",
              "x" * 32000 in got and "\u20ac" * 10666 in got, [len(x.encode()) for x in got])


def test_files(folder):
    trace = Trace(["main", "one", "two"])
    work(trace, [1000, 1003, 1005, 1007, 1009], 0, 1)
    source = os.path.join(folder, "b.dump")
    with open(source, "w", encoding="utf-8") as f:
        f.write(trace.text())
    names = ["b.fxt", "b.ftf", "b.fxt.gz", "b.pftrace", "b.pftrace.gz"]
    done = kscope("convert", source, *(w for n in names for w in ("-o", os.path.join(folder, n))))
    exits("files: all extensions", done, 0)
    data = {}
    for name in names:
        with open(os.path.join(folder, name), "rb") as f:
            data[name] = f.read()
    equal("files: .ftf is .fxt", data["b.ftf"], data["b.fxt"])
    equal("files: .fxt.gz", gzip.decompress(data["b.fxt.gz"]), data["b.fxt"])
    equal("files: .pftrace.gz", gzip.decompress(data["b.pftrace.gz"]), data["b.pftrace"])
    passes("files: without slices, a trace is empty, but a trace", convert, folder, "kscope-dump 1\n")
    with open(source, "w", encoding="utf-8") as f:
        f.write("kscope-dump 1\n")
    done = kscope("convert", source, *(w for n in names[:4:3] for w in ("-o", os.path.join(folder, n))))
    exits("files: an empty timeline has a warning", done, 0, *(f"{n}: the timeline is empty" for n in names[:4:3]))
    for cut in range(8, len(data["b.fxt"]), 8):  # the reader of this test must notice
        try:
            fxt.slices(fxt.read(data["b.fxt"][:cut]))
        except fxt.Wrong:
            continue
        begun = any(event.name == "main" for event in fxt.read(data["b.fxt"][:cut]).events)
        if begun:
            check("files: a truncated timeline is noticed", False, cut)
            return
    check("files: a truncated timeline is noticed", True)


def main():
    with scratch() as folder:
        test_overflow(folder)
        test_times(folder)
        test_ids(folder)
        test_names(folder)
        test_files(folder)
    finish()


if __name__ == "__main__":
    main()
