#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""perf.data in, perf.data out: perf script prints the same of both, and kscope writes the same
bytes when it runs again. The exceptions are in compare().
Whole machines are recorded, so this runs alone.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "consumer"))
import perftest as t

RECORDINGS = [
    ("plain", ["-e", "cpu-clock"], "L"),
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
# Not every kernel has them; perf prints their own bytes, too.
if os.path.exists("/sys/kernel/tracing/events/sched"):
    RECORDINGS.append(("tracepoints", ["-e", "cpu-clock,sched:sched_switch", "-g", "-a"], "TFSL"))


def lines(path, *args):
    text, err = t.perf_script(path, *args)
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
        made = t.run([t.KSCOPE, "convert", path, "-t", "perfdata", "-o", out])
        if made.returncode or (made.stderr and b"recording itself lost" not in made.stderr):
            return ["kscope exits with %d: %s" % (made.returncode, made.stderr.decode())]
    with open(again, "rb") as a, open(again + "2", "rb") as b:
        if a.read() != b.read():
            return ["the output differs from run to run"]
    problems = []
    for args in (("-F", "+pid"), ("-F", "+pid", "--show-task-events", "--show-switch-events"),
                 ("-G", "-F", "comm,tid,event,ip,sym")):
        a, before = lines(path, *args)
        b, err = lines(again, *args)
        if unwound:
            # Where the copy of the stack ended, perf with libunwind adds a frame at -1.
            a = [x for x in a if "ffffffffffffffff [unknown]" not in x]
        problems += same_text(a, b)
        if err and not before:  # that the recording has lost something is said of both
            problems.append("perf says " + err.strip())
    return problems


def main():
    report = t.Report()
    why = t.why_not()
    if why:
        report.skip("perf.data", why)
        return 0
    with tempfile.TemporaryDirectory(prefix="kscope-round-") as folder:
        load = t.build(folder)
        path, again = os.path.join(folder, "perf.data"), os.path.join(folder, "again.data")
        for name, args, what in RECORDINGS:
            made = t.run(["perf", "record", "-q", *args, "-o", path, load, what])
            if made.returncode:
                report.skip(name, "perf record says " + made.stderr.decode().strip()[:200])
                continue
            report.check(name, compare(path, again, name == "DWARF"))
        with open(path, "wb") as f:
            subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-g", "-a", "-o", "-", load,
                            "TFSL"], stdout=f, stderr=subprocess.DEVNULL)
        report.check("pipe", compare(path, again, False))
    return 1 if report.failed else 0


sys.exit(main())
