#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines of what perf recorded, in Perfetto: at the time of each sample, as perf prints it, its thread has the
slices of its stack, and slices last as long as the manual says, from the times of the samples."""
import collections
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, no_problems, perf, perfetto, scratch, skip

RECORDINGS = [  # name, arguments of perf record, what the program does
    ("threads", ["-e", "cpu-clock", "-F", "999", "-g", "--sample-cpu"], "TS"),
    ("no cpus", ["-e", "cpu-clock", "-c", "500000", "-g"], "SL"),
    ("all cpus", ["-e", "cpu-clock", "-F", "499", "-g", "-a"], "TFL"),
    ("dying threads", ["-e", "cpu-clock", "-F", "4999", "-g", "-a"], "D"),
    ("two events", ["-e", "cpu-clock,page-faults", "-F", "999", "-g", "--sample-cpu"], "TSL"),
]
OURS = {"leaf", "middle", "outer", "deep", "thread", "main"}  # functions of the program
SHARED = 1000000000  # the first tid of threads that share one: idle ones (0), and those that no longer have one (-1)
NO_PID = 999999999  # of processes that have ended
LEAST = 5  # samples: a tenth of what a slow machine records

SLICES = """select s.ts, s.dur, s.depth, s.name, s.category, tid, pid, thread.name as thread,
    process.name as process, extract_arg(s.arg_set_id, '{0}samples') as samples,
    extract_arg(s.arg_set_id, '{0}instructions') as instructions
    from slice s join thread_track on s.track_id = thread_track.id join thread using (utid)
    left join process using (upid) where s.category = 'sample' order by s.id"""
RUNS = {"pftrace": """select cast(substr(track.name, 5) as int) as cpu, ts, dur from slice
                      join track on track_id = track.id where category = 'run' order by ts""",
        "fxt": "select cpu, ts, dur from sched order by ts"}
ERRORS = "select name, value from stats where value > 0 and severity != 'info'"


class Slice:
    def __init__(self, row):
        self.begin = int(row["ts"])
        self.end = self.begin + int(row["dur"])
        self.depth, self.name, self.samples = int(row["depth"]), row["name"], int(row["samples"])
        self.track = int(row["tid"])
        if self.track >= SHARED:
            pid, name = int(row["pid"]), row["thread"]
            self.track = (-1 if pid == NO_PID else pid, int(name.split("/")[-1]) if "/" in name else None)
        self.row = row


def read(path):
    ext = os.path.splitext(path)[1][1:]
    slices, runs, errors = perfetto.query(path, SLICES.format("kscope." if ext == "pftrace" else ""),
                                          RUNS[ext], ERRORS)
    return [Slice(row) for row in slices], [tuple(map(int, row.values())) for row in runs], errors


def track_of(sample):
    """Threads that share a tid have a track for each cpu, which is named after it."""
    return sample.tid if sample.tid > 0 else (sample.pid, sample.cpu)


def usable(samples):
    """Rarely, perf has two samples of a thread at the same time: the second has no stretch."""
    last, found = {}, []
    for s in samples:
        if s.time > last.get(track_of(s), 0):
            found.append(s)
        last[track_of(s)] = s.time
    return found


def stretches(samples):
    """{(track, time of the sample): when its stretch begins}, by the manual."""
    last, on_cpu, found = {}, {}, {}
    for s in samples:
        track, width = track_of(s), s.period
        begin, before = s.time - width, last.get(track)
        alone = s.cpu is None or on_cpu.get(s.cpu) == track
        if before is not None and s.time - before <= (3 * width if alone else width + width // 2):
            begin = before
        last[track] = s.time
        on_cpu[s.cpu] = track
        found[track, s.time] = max(begin, before or 0)
    return found


def with_slices(samples, by_track):
    """Each sample, with the slices of its thread at its time."""
    waiting = {track: sorted(slices, key=lambda s: (s.begin, s.depth), reverse=True)
               for track, slices in by_track.items()}
    there = collections.defaultdict(list)
    for s in sorted(samples, key=lambda s: s.time):
        track = track_of(s)
        later = waiting.get(track, [])
        while later and later[-1].begin < s.time:
            there[track].append(later.pop())
        there[track] = [x for x in there[track] if x.end >= s.time]
        yield s, there[track]


def test_stacks(name, samples, by_track):
    """At the time of each sample, the slices of its thread are its stack."""
    wrong, compared = [], 0
    for s, there in with_slices(samples, by_track):
        want = [frame[1].split("@")[0] for frame in reversed(s.frames)]
        got = [x.name for x in there]
        # perf prints nothing if the chain is empty, or if one of its addresses is impossible: code without
        # frame pointers leads to such.
        if not there or [x.depth for x in there] != list(range(len(want or there))):
            wrong.append((s.time, got, want))
        if not any(n.startswith("[unknown]") for n in want):
            compared += any(n in OURS for n in want)
            if [n for n in got if n in OURS] != [n for n in want if n in OURS]:
                wrong.append((s.time, got, want))
    no_problems(f"{name}: at each sample, there are slices of its stack", wrong)
    check(f"{name}: some are of the program", compared >= LEAST, compared)


def test_times(name, samples, by_track):
    """The outermost slices of a thread cover the stretches of its samples, and nothing else."""
    want, got, width = collections.Counter(), collections.Counter(), collections.Counter()
    for (track, time), begin in stretches(samples).items():
        want[track] += time - begin
    for s in samples:
        width[track_of(s)] += s.period
    for track, slices in by_track.items():
        got[track] = sum(s.end - s.begin for s in slices if not s.depth)
    equal(f"{name}: slices last as long as the stretches of their samples", got, want)
    check(f"{name}: and at most three times as long as the weights of the samples say",
          all(got[track] <= 3 * width[track] for track in got), (got, width))
    wrong = []
    for slices in by_track.values():
        tops = sorted((s.begin, s.end) for s in slices if not s.depth)
        wrong += [(a, b) for a, b in zip(tops, tops[1:]) if a[1] > b[0]]
    no_problems(f"{name}: a thread does one thing at a time", wrong)
    equal(f"{name}: each sample counts once", sum(s.samples for tops in by_track.values() for s in tops
                                                  if not s.depth), len(samples))


def test_runs(name, runs, samples):
    wrong = [(a, b) for cpu in {r[0] for r in runs} for a, b in
             zip([r for r in runs if r[0] == cpu], [r for r in runs if r[0] == cpu][1:]) if a[1] + a[2] > b[1]]
    no_problems(f"{name}: one task at a time runs on a cpu", wrong)
    equal(f"{name}: cpus", {r[0] for r in runs}, {s.cpu for s in samples} - {None})


def test_recording(name, folder, source):  # pylint: disable=too-many-locals
    paths = [os.path.join(folder, f"out.{ext}") for ext in ("pftrace", "fxt")]
    done = kscope("convert", source, *(word for path in paths for word in ("-o", path)))
    check(f"{name}: converts", done.returncode == 0, done.stderr)
    others = perf.perf_samples(source, cpu=name != "no cpus")
    samples = usable([s for s in others if s.event.startswith("cpu-clock")])
    if not check(f"{name}: there are samples", len(samples) >= LEAST, len(samples)):
        return
    equal(f"{name}: says if some are left out", "left out" in done.stderr, len(samples) < len(others))
    both = [read(path) for path in paths]
    for ext, (_, _, errors) in zip(("pftrace", "fxt"), both):
        equal(f"{name}: {ext}: Perfetto reports no error", errors, [])
    rows = [collections.Counter(tuple(s.row.values()) for s in slices) for slices, _, _ in both]
    equal(f"{name}: both formats have the same slices", rows[0] - rows[1], rows[1] - rows[0])
    equal(f"{name}: and the same runs", sorted(both[0][1]), sorted(both[1][1]))
    slices, runs, _ = both[0]
    by_track = collections.defaultdict(list)
    for s in slices:
        by_track[s.track].append(s)
    test_stacks(name, samples, by_track)
    test_times(name, samples, by_track)
    test_runs(name, runs, samples)
    equal(f"{name}: no invented instructions", {s.row["instructions"] for s in slices}, {"[NULL]"})
    loads = {s.row["process"] for s in slices if s.name == "deep"}
    check(f"{name}: the program has its name", loads == {"load"}, loads)


def main():
    why = perf.why_not()
    if why:
        skip("timelines of perf's samples", why)
        finish()
    with scratch() as folder:
        binary = perf.build(folder)
        for name, options, what in RECORDINGS:
            source = os.path.join(folder, "perf.data")
            done = perf.record(source, options, binary, what)
            if check(f"{name}: perf records", done.returncode == 0, done.stderr):
                test_recording(name, folder, source)
    finish()


if __name__ == "__main__":
    main()
