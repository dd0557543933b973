#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope calls on a trace of the demo's kernel: its figures are those that the kernel prints, that
Perfetto finds in the timeline, and that kscope report prints; those of parts add up to the whole."""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, equal, finish, guests, kscope, perfetto, run, scratch, skip, wire_trace

SUMS = ["count", "self_time", "total_time", "self_running", "total_running", "self_instructions",
        "total_instructions"]
# The outermost slices of recursive functions, and all others.
OUTER = "not exists (select 1 from ancestor_slice(s.id) a where a.name = s.name)"
SLICES = f"""
    select s.name name, s.category category, p.name program, s.dur dur, {OUTER} is_outer,
           extract_arg(s.arg_set_id, 'kscope.instructions') instructions,
           extract_arg(s.arg_set_id, 'kscope.own_instructions') own,
           extract_arg(s.arg_set_id, 'kscope.began_before') is not null began_before,
           extract_arg(s.arg_set_id, 'kscope.goes_on') is not null goes_on
      from slice s join thread_track t on s.track_id = t.id join thread using (utid)
           left join process p using (upid)"""
RUNS = "select sum(dur) running from slice where category = 'run'"
FUNCTIONS = f"""
    select name, sum(not began_before) count, sum(not began_before and goes_on) open,
           sum(dur * is_outer) total_time, sum(instructions * is_outer) total_instructions,
           sum(own) self_instructions, min(iif(began_before or goes_on, null, dur)) min,
           max(iif(began_before or goes_on, null, dur)) max, max(began_before) early
      from ({SLICES}) group by name"""
HANDLERS = f"""
    select name, program, sum(not began_before) count, sum(dur) total_time
      from ({SLICES}) where category = 'CATEGORY' group by name, program"""
# From each entry of a function to the first entry of another one after it.
BETWEEN = """
    select count(latency) count, min(latency) min, max(latency) max from (
        select (select min(b.ts) from slice b where b.track_id = a.track_id and b.name = 'TO'
                and b.ts > a.ts) - a.ts latency from slice a where a.name = 'FROM')"""


def calls(path, *words):
    done = kscope("calls", path, "--json", *words)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def is_named(name):
    """Not in the firmware, which has no symbols and calls from before the trace."""
    return "+0x" not in name


def by_name(rows, keys):
    """{name: sums of these keys}, of functions that have the same name in several binaries."""
    found = {}
    for row in rows:
        if is_named(row["name"]):
            have = found.setdefault(row["name"], [0] * len(keys))
            found[row["name"]] = [a + int(row[key]) for a, key in zip(have, keys)]
    return found


def test_truth(name, whole, serial):
    want = {function: count for function, (count, _) in guests.truth(serial).items()}
    got = by_name(whole["functions"], ["count"])
    check(f"{name}: the kernel prints calls", len(want) > 12, serial[-300:])
    equal(f"{name}: calls of every function", {f: got.get(f, [0])[0] for f in want}, want)


def test_perfetto(name, path, whole):
    out = path + ".pftrace"
    kscope("convert", path, "-o", out)
    statements = [RUNS, FUNCTIONS, *(HANDLERS.replace("CATEGORY", kind) for kind in ("syscall", "trap")),
                  BETWEEN.replace("FROM", "compress_file").replace("TO", "compress_block")]
    runs, functions, syscalls, traps, between = perfetto.query(out, *statements)
    equal(f"{name}: Perfetto has the same time in which tasks run", runs,
          [{"running": str(whole["running"])}])
    early = [row["name"] for row in functions if is_named(row["name"]) and row["early"] != "0"]
    equal(f"{name}: the kernel's functions all begin in the trace", early, [])
    keys = ["count", "open", "total_time", "total_instructions", "self_instructions"]
    got, want = by_name(whole["functions"], keys), by_name(functions, keys)
    wrong = {f: (got.get(f), want.get(f)) for f in {*got, *want} if got.get(f) != want.get(f)}
    equal(f"{name}: Perfetto has the same figures", wrong, {})
    check(f"{name}: of many functions", len(got) > 30, len(got))
    rows = {row["name"]: row for row in functions}
    several = collections.Counter(row["name"] for row in whole["functions"])
    equal(f"{name}: Perfetto has the same extremes",
          {row["name"]: (row.get("min"), row.get("max")) for row in whole["functions"]
           if is_named(row["name"]) and several[row["name"]] == 1},
          {function: tuple(None if row[key] == "[NULL]" else int(row[key]) for key in ("min", "max"))
           for function, row in rows.items() if is_named(function) and several[function] == 1})
    for kind, rows in (("syscalls", syscalls), ("traps", traps)):
        got = {(row["name"], row["program"]): (row["count"], row["total_time"])
               for row in whole[kind] if is_named(row["name"])}
        want = {(row["name"], row["program"]): (int(row["count"]), int(row["total_time"]))
                for row in rows if is_named(row["name"])}
        equal(f"{name}: Perfetto has the same {kind}", got, want)
        check(f"{name}: there are {kind}", got)
    got = calls(path, "--between", "compress_file", "compress_block")["between"]
    equal(f"{name}: Perfetto has the same latency", {key: str(got[key]) for key in between[0]}, between[0])
    equal(f"{name}: of every call", got["unmatched"], 0)


def test_report(name, path, whole):
    event = json.loads(kscope("report", path, "--json", "--no-inline").stdout)["events"][0]
    # A program's _start ends with a system call, whose return address is in no function.
    want = {function: sums for function, sums in by_name(event["functions"], ["self", "total"]).items()
            if function != "_start"}
    got = by_name(whole["functions"], ["self_instructions", "total_instructions"])
    wrong = {f: (got.get(f), want[f]) for f in want if got.get(f) != want[f]}
    equal(f"{name}: kscope report has the same instructions", wrong, {})


def sums(found, keys=None):
    """Of all rows, also those of the firmware."""
    return collections.Counter({(kind, row["name"], row["binary"], row.get("program"), row.get("inlined"),
                                 key): row[key]
                                for kind in ("functions", "syscalls", "traps")
                                for row in found[kind] for key in keys or SUMS})


def test_parts(name, path, whole):
    times = wire_trace.time_parts(path, 4)
    cpus = [["--cpu", "0"], ["--cpu", "1-2"], ["--cpu", "3"]]
    pids, levels = [["--pid", "0-1"], ["--pid", "2-99"]], [["--level", "user"], ["--level", "kernel"]]
    for what, parts in (("time", times), ("cpu", cpus), ("pid", pids), ("level", levels),
                        ("time and cpu", [time + cpu for time in times for cpu in cpus])):
        found = [sums(calls(path, *part)) for part in parts]
        check(f"{name}: several parts by {what}", sum(map(bool, found)) > 1)
        total, want = sum(found, collections.Counter()), sums(whole)
        wrong = {key: (total[key], want[key]) for key in {*total, *want} if total[key] != want[key]}
        equal(f"{name}: the parts by {what} add up", wrong, {})


def test_inlines(name, path, whole, serial):
    """Inlined functions have rows of their own, and their instructions are not those of the code around them."""
    found = calls(path, "--inlines")
    want = guests.inlined(serial)
    inlines = [row for row in found["functions"] if row.get("inlined")]
    check(f"{name}: the kernel has inlined functions", want, serial[-300:])
    equal(f"{name}: entries of inlined functions",
          {row["name"]: row["count"] for row in inlines if row["name"] in want}, want)
    equal(f"{name}: all of them", found["inlined"], sum(row["count"] for row in inlines))
    keys = ["count", "tasks", "time", "running", "instructions"]
    equal(f"{name}: the same sums with inlined functions", [found[key] for key in keys],
          [whole[key] for key in keys])
    keys = ["count", "total_time", "total_instructions"]
    rest = {**found, "functions": [row for row in found["functions"] if not row.get("inlined")]}
    equal(f"{name}: the same calls with inlined functions", sums(rest, keys), sums(whole, keys))
    equal(f"{name}: the same self instructions in all", sum(row["self_instructions"] for row in found["functions"]),
          sum(row["self_instructions"] for row in whole["functions"]))
    parts = [calls(path, "--inlines", *part) for part in wire_trace.time_parts(path, 2)]
    keys = ["count", "self_instructions", "total_instructions"]
    equal(f"{name}: the parts with inlined functions add up", sum((sums(part, keys) for part in parts),
                                                                collections.Counter()), +sums(found, keys))


def test_machine(folder, machine, which):
    name = f"{machine}, {which}"
    path = os.path.join(folder, f"{machine}-{which}.kscope")
    boot = guests.record(guests.demo(machine, words="scale=1"), path, ["--trace"], which)
    check(f"{name}: runs", boot.code == 0 and "demo: end" in boot.serial and "lost" not in boot.errors,
          boot.errors)
    whole = calls(path)
    test_truth(name, whole, boot.serial)
    test_perfetto(name, path, whole)
    # QEMU 7.2 does not show which code of AArch64 an exception interrupted; report has no name for it.
    if (machine, which) != ("aarch64", "debian"):
        test_report(name, path, whole)
    test_parts(name, path, whole)
    test_inlines(name, path, whole, boot.serial)
    alone = run("taskset", "-c", str(min(os.sched_getaffinity(0))), KSCOPE, "calls", path, "--json")
    equal(f"{name}: the same on one cpu, without a thread", json.loads(alone.stdout), whole)


def main():
    if guests.missing():
        skip("calls", guests.missing())
        finish()
    with scratch() as folder:
        for machine in ["x86_64", "aarch64"]:
            for which in guests.QEMUS:
                test_machine(folder, machine, which)
    finish()


if __name__ == "__main__":
    main()
