#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines in Chrome's trace event format: Perfetto's trace processor finds the same slices, arguments, counters and
names as in Perfetto's own format, and every loss; speedscope's page opens them, too."""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import TOOLS, check, equal, exits, finish, kscope, no_problems, perfetto, profiles, run, scratch
from kit.branches import Trace, late_callers, odd_calls

ARGS = ["instructions", "own_instructions", "icache_lines", "own_icache_lines", "cycles", "samples", "time",
        "began_before", "goes_on", "value", "address", "function"]
FORMATS = ["pftrace", "trace.json"]
ERRORS = "select name, value from stats where value > 0 and severity != 'info'"
TASKS = """select pid, ifnull(process.name, '') as process, tid, thread.name from thread join process using (upid)
           where thread.name is not null and pid != 0"""
COUNTERS = """select track.name, ts, cast(value as int) as value from counter join track on track_id = track.id
              order by track.name, ts, counter.id"""
LOST = """select ts, extract_arg(arg_set_id, 'args.count') as count, extract_arg(arg_set_id, 'args.bytes') as bytes,
          extract_arg(arg_set_id, 'args.cpu') as cpu from slice join track on track_id = track.id
          where slice.name = 'lost' and track.type = 'legacy_chrome_global_instants' order by ts"""
CPUS = "cpus"


def slices_sql(prefix):
    args = ", ".join(f"ifnull(extract_arg(s.arg_set_id, '{prefix}{arg}'), '') as {arg}_" for arg in ARGS)
    # The time of a note is that of an instant; its category is its name in Chrome's format.
    return f"""select s.ts, s.dur, s.depth, s.category, s.name, ifnull(thread.name, track.name) as track,
        iif(process.name = '{CPUS}', -1, ifnull(pid, -1)) as pid, iif(process.name = '{CPUS}', -1, ifnull(tid, -1)) as tid,
        {args} from slice s join track on s.track_id = track.id
        left join thread_track on s.track_id = thread_track.id left join thread using (utid)
        left join process using (upid) where s.name != 'lost' order by s.ts, s.id"""


def write_both(name, folder, source, *options):
    """Writes both formats in one run; returns their paths."""
    paths = [os.path.join(folder, f"t.{ext}") for ext in FORMATS]
    done = kscope("trace", source, *options, *(word for path in paths for word in ("-o", path)))
    check(f"{name}: converts", done.returncode in (0, 1), done.stderr)
    with open(paths[1], encoding="utf-8") as file:
        check(f"{name}: is JSON", json.load(file)["traceEvents"])
    return paths


def rows(table, leave_out=()):
    return collections.Counter(tuple(sorted(row.items())) for row in table if row.get("process") not in leave_out)


def compare(name, folder, source, *options):
    """Both formats have the same content. Returns the slices."""
    ours, chrome = write_both(name, folder, source, *options)
    slices, tasks, counters = perfetto.query(ours, slices_sql("kscope."), TASKS, COUNTERS)
    found, found_tasks, found_counters, errors, lost = perfetto.query(
        chrome, slices_sql("args."), TASKS, COUNTERS, ERRORS, LOST)
    equal(f"{name}: Perfetto reports no error", errors, [])
    want, got = rows(slices), rows(found)
    no_problems(f"{name}: the same slices", [*(want - got), *(got - want)])
    equal(f"{name}: the same processes and threads", rows(found_tasks, {CPUS}), rows(tasks))
    equal(f"{name}: the same counters", rows(found_counters), rows(counters))
    return slices, counters, lost


def test_calls(folder):
    source = os.path.join(folder, "calls.dump")
    with open(source, "w", encoding="utf-8") as file:
        file.write(odd_calls(10**15, (5, 2**31 + 6, 2**32 - 1)).text())
        file.write("lost time=1000000.000020500 cpu=1 count=3 bytes=70\nlost count=4 bytes=0\n")
    slices, counters, lost = compare("calls", folder, source)
    kinds = {row["category"] for row in slices}
    check("calls: has calls, gaps and what ran", {"call", "begin", "run", "gap"} <= kinds, kinds)
    check("calls: some have no length", any(row["dur"] == "0" for row in slices))
    check("calls: times are exact", any(int(row["ts"]) % 1000 == 1 for row in slices))
    check("calls: has rates", counters)
    end = str(max(int(row["ts"]) + int(row["dur"]) for row in slices))
    equal("calls: losses", [tuple(row.values()) for row in lost],
          [("1000000000020500", "3", "70", "1"), (end, "4", "[NULL]", "[NULL]")])
    compare("calls by instructions", folder, source, "--axis", "insns")
    slices, _, _ = compare("part of the calls", folder, source, "--time", "1000000.000005,1000000.000030")
    check("part of the calls: some began before", any(row["began_before_"] for row in slices))
    with open(source, "w", encoding="utf-8") as file:
        file.write(late_callers().text())
    slices, _, _ = compare("late callers", folder, source)
    equal("late callers: the outermost one is the caller of all", [row["name"] for row in slices if row["depth"] == "0"
                                                                and row["category"] == "begin"], ["outer"] * 4)


def test_samples(folder):
    """Losses of samples do not keep the writer from getting stretches."""
    odd = profiles.odd(folder)
    slices, _, lost = compare("samples", folder, odd.path, *odd.options)
    check("samples: has stretches", len(slices) > 1000, len(slices))
    equal("samples: losses", [(row["cpu"], row["count"]) for row in lost],
          [(str(cpu), str(count)) for cpu, count in profiles.LOST])


def test_counters(folder):
    source = os.path.join(folder, "counters.dump")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(["kscope-dump 1", 'source id=1 name="cycles" type=0 config=0x0', *(
            f"{what} time=1.{i:09} cpu={i // 500 % 2} {more}" for i in range(0, 4000, 500) for what, more in (
                ("counter", f"source=1 value={i * 7}"), ("sample", "task=4/4 source=1 weight=10 : kernel 0x10 user 0x20")))])
            + "\n")
    _, counters, _ = compare("counters", folder, source)
    check("counters: there are some", {row["name"] for row in counters} == {"cpu 0 cycles", "cpu 1 cycles"}, counters)


def test_speedscope(folder):
    """Times of calls in speedscope, which reads begins and ends."""
    source, path = (os.path.join(folder, f"shown.{ext}") for ext in ("dump", "trace.json"))
    trace = Trace(["main", 'say "hi"', "leaf"])
    trace.comm(5, "shell")
    for i in range(50):
        time = 1000 + 100000 * i
        trace.begin(time, 0, 5, "main")
        trace.call(time + 1000, 0, 5, "main", 'say "hi"')
        trace.call(time + 1500, 0, 5, 'say "hi"', "leaf")
        trace.leave(time + 3500, 0, 5, "leaf", 'say "hi"')
        trace.leave(time + 11000, 0, 5, 'say "hi"', "main")
        trace.end(time + 20000, 0, 5, "main")
    with open(source, "w", encoding="utf-8") as file:
        file.write(trace.text())
    exits("speedscope: converts", kscope("trace", source, "-o", path), 0)
    done = run("node", os.path.join(TOOLS, "speedscope.mjs"), path)
    if not exits("speedscope: the page opens it", done, 0):
        return
    file = json.loads(done.stdout)["file"]
    names = [frame["name"] for frame in file["shared"]["frames"]]
    shown = [one for one in file["profiles"] if one["name"].startswith("shell (pid 5)")]
    check("speedscope: the thread", shown, [one["name"] for one in file["profiles"]])
    sums, begins = collections.Counter(), []
    for event in (event for profile in shown for event in profile["events"]):
        if event["type"] == "O":
            begins.append(event["at"])
        else:
            sums[names[event["frame"]]] += event["at"] - begins.pop()
    equal("speedscope: times of functions, whose names have no arguments",
          {name: round(total, 3) for name, total in sums.items() if name != "main"}, {'say "hi"': 500, "leaf": 100})
    check("speedscope: and of their caller", "main" in sums, sums)


def main():
    with scratch() as folder:
        test_calls(folder)
        test_samples(folder)
        test_counters(folder)
        test_speedscope(folder)
    finish()


if __name__ == "__main__":
    main()
