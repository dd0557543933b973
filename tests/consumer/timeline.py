#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines in Perfetto: its trace processor finds the same slices, arguments and names in Perfetto's format and in
the Fuchsia trace format, compressed or not, and for the demo kernel, whose work is known, as many calls as
the kernel counted."""
import collections
import gzip
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (TOOLS, check, equal, exits, finish, fxt, guests, kscope, no_problems, run, scratch,
                 skip)
from kit.branches import Trace

NUMBERS = ["instructions", "own_instructions", "icache_lines", "own_icache_lines"]
ARGS = [*NUMBERS, "time", "began_before", "goes_on"]
FORMATS = ["pftrace", "fxt", "pftrace.gz", "fxt.gz"]
# Callers of some functions, up to the function that a task or a program begins with.
CALLERS = {
    "find_match": ["compress_block", "compress_file", "task_run", "task_start"],
    "checksum_page": ["checksum_tree"] * 4 + ["checksum_disk", "task_run", "task_start"],
    "kfree": ["cache_insert", "cache_warm", "task_run", "task_start"],
    "throw_dice": ["play_game", "user_main", "_start"],
    "knit_stitch": ["knit_row", "knit_sock", "user_main", "_start"],
}

Slice = collections.namedtuple("Slice", "id parent ts dur depth category name track pid tid process args")
MASKED = "interrupts off"
Timeline = collections.namedtuple("Timeline", "slices runs gaps masked tasks stats")


def ask(path, *queries):
    done = run("node", os.path.join(TOOLS, "perfetto.mjs"), path, *queries)
    if done.returncode:
        raise RuntimeError(done.stderr)
    parts = done.stdout.split("\n\n")
    return [[line.split("\t") for line in part.strip("\n").split("\n")[1:]] for part in parts]


def slices_sql(prefix):
    args = ", ".join(f"extract_arg(s.arg_set_id, '{prefix}{arg}')" for arg in ARGS)
    return f"""select s.id, ifnull(s.parent_id, -1), s.ts, s.dur, s.depth, s.category, s.name,
        ifnull(thread.name, track.name), ifnull(pid, -1), ifnull(tid, -1), ifnull(process.name, ''), {args}
        from slice s join track on s.track_id = track.id
        left join thread_track on s.track_id = thread_track.id left join thread using (utid)
        left join process using (upid) order by s.id"""


def shared_cpu(name):
    """Unknown cpus: Perfetto's table of cpus has room for 4096, so in .fxt they share the last one."""
    return name.replace("?", "4095")


def open_timeline(path):
    """What Perfetto's trace processor finds in a file of any of the formats."""
    prefix = "kscope." if "pftrace" in path else ""
    slices, sched, tasks, stats = ask(
        path, slices_sql(prefix),
        """select cpu, ts, dur, thread.name, tid from sched join thread using (utid)""",
        """select pid, ifnull(process.name, ''), tid, thread.name from thread join process using (upid)
           where thread.name is not null and pid != 0""",
        "select name, value from stats where value > 0 and severity != 'info'")
    slices = [Slice(*map(int, row[:5]), *row[5:8], int(row[8]), int(row[9]), row[10], tuple(row[11:]))
              for row in slices]
    gaps = {(s.track, s.ts, s.dur) for s in slices if s.category == "gap"}
    masked = {(s.track, s.ts, s.dur, s.name, s.args) for s in slices if s.category == MASKED}
    if prefix:
        runs = {(shared_cpu(s.track), s.ts, s.dur, s.name) for s in slices if s.category == "run"}
    else:
        runs = {(f"cpu {cpu}", int(ts), int(dur), name) for cpu, ts, dur, name, _ in sched}
    return Timeline([s for s in slices if s.category not in ("run", "gap", MASKED)], runs, gaps, masked,
                    {tuple(row) for row in tasks if row[1] != "cpus"}, stats)


def chain(by_id, one):
    """The names of a slice's callers."""
    names = []
    while one.parent >= 0:
        one = by_id[one.parent]
        names.append(one.name)
    return names


def comparable(timeline):
    """The slices without what numbers of Perfetto's own; parents by name and begin."""
    by_id = {s.id: s for s in timeline.slices}
    return collections.Counter(
        (s.ts, s.dur, s.depth, s.category, s.name, s.track, s.pid, s.tid, s.process, s.args,
         by_id[s.parent][2:7] if s.parent >= 0 else None) for s in timeline.slices)


def write_all(name, folder, source, *options):
    """Writes all formats in one run; returns their paths."""
    paths = [os.path.join(folder, f"t.{ext}") for ext in FORMATS]
    done = kscope("convert", source, *options, *(word for path in paths for word in ("-o", path)))
    check(f"{name}: converts", done.returncode in (0, 1), done.stderr)
    return paths


def read(path):
    with open(path, "rb") as f:
        return f.read()


def decoded(path):
    """The slices of an .fxt file, by this test's own reader."""
    trace = fxt.read(read(path))
    return trace, [s for s in fxt.slices(trace) if s.category not in ("gap", MASKED)]


def test_packed(name, paths):
    """Perfetto opens compressed files."""
    sums = "select count(*), sum(dur), sum(ts % 1000003) from slice"
    for plain, packed in (paths[0:3:2], paths[1:4:2]):
        equal(f"{name}: {os.path.basename(packed)} is {os.path.basename(plain)}, compressed",
              gzip.decompress(read(packed)), read(plain))
        equal(f"{name}: Perfetto opens {os.path.basename(packed)}", ask(packed, sums), ask(plain, sums))


def test_formats(name, folder, source, *options):
    """All formats have the same content. Returns it as Perfetto sees it."""
    paths = write_all(name, folder, source, *options)
    first, other = timelines = [open_timeline(path) for path in paths[:2]]
    for ext, timeline in zip(FORMATS, timelines):
        equal(f"{name}: {ext}: Perfetto reports no error", timeline.stats, [])
        check(f"{name}: {ext}: all slices end", all(s.dur >= 0 for s in timeline.slices) and
              all(dur >= 0 for _, _, dur, _ in timeline.runs))
    counts = [comparable(timeline) for timeline in timelines]
    no_problems(f"{name}: both formats have the same slices",
                [*(counts[0] - counts[1]), *(counts[1] - counts[0])])
    equal(f"{name}: tasks run at the same times", other.runs, first.runs)
    equal(f"{name}: the same gaps", other.gaps, first.gaps)
    equal(f"{name}: the same stretches with interrupts off", other.masked, first.masked)
    equal(f"{name}: the same processes and threads", other.tasks, first.tasks)
    test_packed(name, paths)
    trace, slices = decoded(paths[1])
    equal(f"{name}: our reader finds what Perfetto finds",
          collections.Counter((s.begin, s.end - s.begin, s.depth, s.category, s.name, s.pid, s.tid)
                              for s in slices),
          collections.Counter((s.ts, s.dur, s.depth, s.category, s.name, s.pid, s.tid)
                              for s in first.slices))
    equal(f"{name}: and as many runs", len(fxt.runs(trace)), len(first.runs))
    return first


RATES = "select track.name, ts, cast(value as int) from counter join track on track_id = track.id order by ts"


def rates_of(path):
    """{cpu: [(time, instructions/s)]}"""
    rates = collections.defaultdict(list)
    for track, ts, value in ask(path, RATES)[0]:
        rates[re.split(r":| instr", track)[0]].append((int(ts), int(value)))
    return rates


def test_rates(name, folder):
    """The rate of a cpu times the time is how many instructions it executed."""
    rates = rates_of(os.path.join(folder, "t.pftrace"))
    equal(f"{name}: both formats have the same rates", rates_of(os.path.join(folder, "t.fxt")), rates)
    executed = {track: int(number) for track, number in ask(
        os.path.join(folder, "t.pftrace"), """select track.name, sum(extract_arg(arg_set_id, 'kscope.instructions'))
            from slice join track on track_id = track.id where category = 'run' group by 1""")[0]}
    equal(f"{name}: every cpu has rates", sorted(rates), sorted(executed))
    for cpu, points in rates.items():
        found = sum(value * (after - ts) for (ts, value), (after, _) in zip(points, points[1:])) / 1e9
        check(f"{name}: {cpu}: rates add up", abs(found - executed[cpu]) <= len(points) + executed[cpu] / 1000,
              (found, executed[cpu]))
        equal(f"{name}: {cpu}: the rate ends", points[-1][1], 0)


def truth_of(serial):
    """{function: number of calls}"""
    counts = collections.Counter()
    for function, calls in re.findall(r"^truth: \w+ (\w+) (\d+) \d+$", serial, re.M):
        counts[function] += int(calls)
    return counts


def test_truth(name, timeline, serial):
    want = truth_of(serial)
    got = collections.Counter(s.name for s in timeline.slices)
    check(f"{name}: the kernel counted", len(want) > 15, want)
    equal(f"{name}: as many slices as calls", {name: got[name] for name in want}, dict(want))


def test_nesting(name, timeline):
    by_id = {s.id: s for s in timeline.slices}
    for function, callers in CALLERS.items():
        chains = collections.Counter(tuple(chain(by_id, s))[:len(callers)]
                                     for s in timeline.slices if s.name == function)
        equal(f"{name}: callers of {function}", list(chains), [tuple(callers)])


def test_numbers(name, timeline):
    """The arguments of slices and what they call add up, and times are those of the slice."""
    wrong, callees = [], collections.Counter()
    for s in timeline.slices:
        callees[s.parent] += int(s.args[0])
    for s in timeline.slices:
        total, own, lines, own_lines = map(int, s.args[:4])
        time = f"{s.ts // 10**9}.{s.ts % 10**9:09},+{s.dur}ns"
        if total != own + callees[s.id] or own_lines > lines or bool(total) != bool(lines) or \
           s.args[4] != time:
            wrong.append(s)
    no_problems(f"{name}: arguments add up", wrong)
    of = collections.defaultdict(set)
    for s in timeline.slices:
        of[s.name].add(int(s.args[1]))
    check(f"{name}: equal work has equal instructions", len(of["find_match"]) == 1, of["find_match"])


def test_time(name, folder, timeline, source):
    """The time of a slice, copied to --time, selects the slice and what it calls."""
    out = os.path.join(folder, "part.pftrace")
    one = max((s for s in timeline.slices if s.name == "compress_file"), key=lambda s: s.dur)
    exits(f"{name}: --time {one.args[4]}", kscope("convert", source, "--time", one.args[4], "-o", out), 0)
    part = open_timeline(out)
    equal(f"{name}: the time of a slice selects it",
          [s[2:7] for s in part.slices if s.name == one.name and s.ts == one.ts and s.tid == one.tid],
          [one[2:7]])
    equal(f"{name}: and nothing outside", [min(s.ts for s in part.slices),
                                           max(s.ts + s.dur for s in part.slices)],
          [one.ts, one.ts + one.dur])


def test_names(name, timeline, cpus):
    processes = {process for _, process, _, _ in timeline.tasks}
    check(f"{name}: names of processes", {"kernel", "dice.elf", "knit.elf"} <= processes, processes)
    check(f"{name}: names of threads", {"task_start"} <= {thread for *_, thread in timeline.tasks},
          timeline.tasks)
    equal(f"{name}: names of cpus", {cpu for cpu, *_ in timeline.runs}, {f"cpu {i}" for i in range(cpus)})
    where = {s.process for s in timeline.slices if s.name == "throw_dice"}
    equal(f"{name}: dice are thrown in dice.elf", where, {"dice.elf"})
    overlap = []
    for cpu in {run[0] for run in timeline.runs}:
        runs = sorted(run[1:3] for run in timeline.runs if run[0] == cpu)
        overlap += [(a, b) for a, b in zip(runs, runs[1:]) if sum(a) > b[0]]
    no_problems(f"{name}: one task at a time runs on a cpu", overlap)


def test_inlines(name, folder, recording, serial, plain):
    """Inlined functions are slices inside those of calls, which are what they are without them."""
    timeline = test_formats(f"{name}, --inlines", folder, recording, "--inlines")
    test_numbers(f"{name}, --inlines", timeline)
    by_id = {s.id: s for s in timeline.slices}
    inlines = [s for s in timeline.slices if s.category == "inline"]
    want = guests.inlined(serial)
    check(f"{name}: the kernel has inlined functions", want, serial[-300:])
    for function, calls in want.items():
        got = [s for s in inlines if s.name == function]
        equal(f"{name}: as many slices as inlined calls of {function}", len(got), calls)
        equal(f"{name}: not without --inlines", [s for s in plain.slices if s.name == function], [])
        equal(f"{name}: where {function} is inlined", {chain(by_id, s)[0] for s in got}, {"cache_insert"})
        equal(f"{name}: instructions of {function}", {s.args[:2] for s in got}, {("3", "3")})
    nested = [s for s in inlines if s.parent >= 0 and by_id[s.parent].category == "inline"]
    check(f"{name}: some are inlined in others", nested)
    callees = {s.name for s in timeline.slices if s.category == "call" and by_id[s.parent].category == "inline"}
    check(f"{name}: calls from inlined code are below it", "put_char" in callees, callees)
    same = [collections.Counter((s.ts, s.dur, s.category, s.name, s.tid, s.args[0], s.args[2])
                                for s in slices if s.category != "inline")
            for slices in (plain.slices, timeline.slices)]
    no_problems(f"{name}: the same calls, instructions and lines", [*(same[0] - same[1]), *(same[1] - same[0])])
    equal(f"{name}: the same instructions in all slices", sum(int(s.args[1]) for s in timeline.slices),
          sum(int(s.args[1]) for s in plain.slices))


def on_one_cpu():
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


def test_deterministic(name, folder, source):
    """Whether a second thread decodes ahead or not."""
    path, seen = os.path.join(folder, "again.fxt"), set()
    for how in (None, None, None, on_one_cpu):
        exits(f"{name}: converts again", kscope("convert", source, "-o", path, preexec_fn=how), 0)
        seen.add(read(path))
    equal(f"{name}: always the same bytes", len(seen), 1)


def test_demo(folder, arch):
    name, recording = f"demo {arch}", os.path.join(folder, "demo.kscope")
    done = guests.record(guests.demo(arch, words="scale=1"), recording, ["--trace"], "backports")
    if not check(f"{name}: runs to its end", done.ended and "demo: end" in done.serial,
                 done.serial + done.errors):
        return
    timeline = test_formats(name, folder, recording)
    test_truth(name, timeline, done.serial)
    tracks = {track for track, *_ in timeline.masked}
    check(f"{name}: interrupts are off on every cpu",
          tracks >= {f"cpu {cpu}: {MASKED}" for cpu in range(4)}, tracks)
    test_nesting(name, timeline)
    test_numbers(name, timeline)
    test_time(name, folder, timeline, recording)
    test_names(name, timeline, 4)
    test_inlines(name, folder, recording, done.serial, timeline)
    test_rates(name, folder)
    test_deterministic(name, folder, recording)


def tables():
    """More names and tasks than the tables of the Fuchsia trace format have room for, and gaps."""
    names = [f"f{i}" for i in range(32900)]
    trace = Trace(["main", "tick", *names])
    trace.begin(1000, 1, 7, "main")
    time = 1000
    for i in [*range(len(names)), *range(50)]:
        time += 10
        trace.begin(time, 0, 8 + i % 1200, names[i])
        trace.end(time + 5, 0, 8 + i % 1200, names[i])
        if i % 100 == 0:
            trace.call(time + 6, 1, 7, "main", "tick")
            trace.leave(time + 8, 1, 7, "tick", "main")
    trace.end(time + 20, 1, 7, "main")
    return trace


def strange():
    """Unknown times, cpus and tasks, large numbers, and names that are no text."""
    evil = ["\x1b[31m\u009b", "new\nline", "tab\t", "\u00e9\u20ac", "x" * 40000]
    trace = Trace(["main", *evil])
    for i, (pid, cpu) in enumerate([(None, 0), (2**32 - 1, 1), (2**31, 2), (5, 5000), (6, 4095), (7, 4096)]):
        start = 1000 * i
        trace.begin(start, cpu, pid, "main")
        for j, name in enumerate(evil):
            trace.call(None if j == 2 else start + 2 * j, cpu, pid, "main", name)
            trace.leave(start + 2 * j - 1, cpu, pid, name, "main")  # backwards
        trace.end(start + 20, cpu, pid, "main")
    return trace


def test_dumps(folder):
    for name, make in (("full tables", tables), ("strange input", strange)):
        source = os.path.join(folder, "t.dump")
        with open(source, "w", encoding="utf-8") as f:
            f.write(make().text())
        timeline = test_formats(name, folder, source)
        check(f"{name}: has slices", len(timeline.slices) > 30, len(timeline.slices))
        check(f"{name}: has gaps", timeline.gaps or make is strange, timeline.gaps)


def main():
    with scratch() as folder:
        test_dumps(folder)
        if guests.missing():
            skip("the demo kernel", guests.missing())
            finish()
        for arch in sys.argv[1:] or ["x86_64", "aarch64"]:
            test_demo(folder, arch)
    finish()


if __name__ == "__main__":
    main()
