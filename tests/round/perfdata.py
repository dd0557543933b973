#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts perf.data to perf.data: perf script prints the same text for both, and a second run
writes the same bytes. compare() has the exceptions.
The test records whole machines, so it runs alone.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, no_problems, perf, skip

RECORDINGS = [
    ("plain", ["-e", "cpu-clock"], "LV"),
    ("frame pointers", ["-e", "cpu-clock", "-g", "--sample-cpu"], "TSL"),
    ("fixed period", ["-e", "cpu-clock", "-c", "500000", "-g"], "FL"),
    ("all cpus, compressed", ["-z", "-e", "cpu-clock", "-g", "-a"], "TFSL"),
    ("several events", ["-e", "cpu-clock,page-faults,context-switches", "-g", "--sample-cpu",
                        "--switch-events"], "TFSL"),
    ("without a chain", ["-e", "cpu-clock,page-faults", "-a"], "TFSL"),
    ("chains of the kernel", ["-e", "cpu-clock", "-g", "--kernel-callchains"], "SL"),
    ("chains of the user", ["-e", "cpu-clock", "-g", "--user-callchains"], "SL"),
    ("DWARF", ["-e", "cpu-clock", "--call-graph", "dwarf"], "TSL"),
]
# Not every kernel has tracepoints; perf prints their raw bytes, too.
if os.path.exists("/sys/kernel/tracing/events/sched"):
    RECORDINGS.append(("tracepoints", ["-e", "cpu-clock,sched:sched_switch", "-g"], "TF"))


def lines(path, *args):
    text, err = perf.perf_script(path, *args)
    return text.split("\n"), err


def same_text(a, b):
    problems = []
    if len(a) != len(b):
        problems.append("%d lines became %d" % (len(a), len(b)))
    for nr, (x, y) in enumerate(zip(a, b)):
        if x != y:
            problems.append("line %d: %r became %r" % (nr + 1, x, y))
    return problems


def compare(path, again, unwound):
    for out in (again, again + "2"):
        made = kscope("convert", path, "-t", "perfdata", "-o", out)
        if made.returncode or (made.stderr and "recording itself lost" not in made.stderr):
            return ["kscope exits with %d: %s" % (made.returncode, made.stderr)]
    with open(again, "rb") as a, open(again + "2", "rb") as b:
        if a.read() != b.read():
            return ["the output differs from run to run"]
    problems = []
    for args in (("-F", "+pid"), ("-F", "+pid", "--show-task-events", "--show-switch-events"),
                 ("-G", "-F", "comm,tid,event,ip,sym")):
        a, before = lines(path, *args)
        b, err = lines(again, *args)
        if unwound:
            # At the end of the copied stack, perf with libunwind adds a frame at -1.
            a = [x for x in a if "ffffffffffffffff [unknown]" not in x]
        problems += same_text(a, b)
        if err and not before:  # if the recording lost something, perf warns of both
            problems.append("perf says " + err.strip())
    return problems


def main():
    why = perf.why_not()
    if why:
        skip("perf.data", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-round-") as folder:
        load = perf.build(folder)
        path, again = os.path.join(folder, "perf.data"), os.path.join(folder, "again.data")
        for name, args, what in RECORDINGS:
            made = perf.record(path, args, load, what)
            if made.returncode:
                skip(name, "perf record says " + made.stderr.strip()[:200])
                continue
            no_problems(name, compare(path, again, name == "DWARF"))
        with open(path, "wb") as f:
            subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-g", "-a", "-o", "-", load,
                            "TFSL"], stdout=f, stderr=subprocess.DEVNULL)
        no_problems("pipe", compare(path, again, False))
    finish()


if __name__ == "__main__":
    main()
