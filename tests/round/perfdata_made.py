#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts inputs of the golden tests, which this machine's perf record cannot make, from perf.data to
perf.data: perf prints the same for both."""
import itertools
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, no_problems, run, skip

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
sys.path.insert(0, GOLDEN)
import perfdata_make

INPUTS = [
    # The directory and perf's commands.
    ("perfdata-lbr", [["script", "--ns"], ["script", "-F", "ip,brstack"],
                      ["report", "--stdio", "--children", "-g", "folded",
                       "-F", "overhead_children,sym"]]),
    ("perfdata-tracepoints", [["script"]]),
    ("perfdata-tracepoints-pipe", [["script", "-G", "-F", "time,event"]]),
    ("perfdata-groups", [["script", "-F", "tid,time,event,period,ip"],
                         ["report", "--stdio", "-g", "none", "-F", "sample,period,sym"]]),
]


def shown(path, command):
    done = run("perf", command[0], "-i", path, *command[1:])
    lines = [line for line in done.stdout.split("\n") if line and not line.startswith("#")]
    # perf report shows equal rows in any order.
    return sorted(lines) if command[0] == "report" else lines


def compare(path, again, commands):
    made = kscope("convert", path, "-t", "perfdata", "-o", again)
    if made.returncode or made.stderr:
        return ["kscope exits with %d: %s" % (made.returncode, made.stderr)]
    problems = []
    for command in commands:
        a, b = shown(path, command), shown(again, command)
        if not a:
            problems.append("perf %s prints nothing" % " ".join(command))
        if len(a) != len(b):
            problems.append("%d lines became %d" % (len(a), len(b)))
        problems += ["%r became %r" % (x, y) for x, y in zip(a, b) if x != y]
    return problems


def every_name(big):
    """Events of all kinds that perf names by their attributes, with all combinations of modifiers."""
    for nr in range(6):
        for excludes in itertools.combinations(perfdata_make.EXCLUDE, nr):
            for precise in range(4):
                # perf exchanges 1 and 2 if it reads them on a machine of the other byte order.
                if not big or precise in (0, 3):
                    yield 0, 1, excludes, precise, 0, 0
    user = ("kernel", "hv", "guest")
    for type_, nr in ((0, 10), (1, 10)):
        for config in range(nr):
            yield type_, config, user, 0, 0, 0
    for cache, access, miss in itertools.product(range(7), range(3), range(2)):
        if access != 1 or cache not in (1, 4, 5):
            if access != 2 or cache not in (4, 5):
                yield 3, cache | access << 8 | miss << 16, user, 0, 0, 0
    for config in (0, 0x11, 0x3c, 0x1a8, 2**63 + 1):
        yield 4, config, user, 0, 0, 0
    for access in range(8):
        yield 5, 0, ("guest",), 0, access, 0xffffffff81000000


def names(folder):
    problems = []
    for big in (False, True):
        kinds = list(every_name(big))
        path = os.path.join(folder, "names.data")
        with open(path, "wb") as f:
            f.write(perfdata_make.no_names(kinds, big))
        problems += compare(path, os.path.join(folder, "again.data"), [["script", "-F", "time,event"]])
        if len(shown(path, ["script", "-F", "event"])) != len(kinds):
            problems.append("perf does not show all events")
    return problems


def large_record(folder):
    """simpleperf's records can be larger than perf's: this one has the symbols of a kernel."""
    path = os.path.join(folder, "large.data")
    f = perfdata_make.File()
    size = 3 << 16 | 4
    large = f.pack("IHH", perfdata_make.SIMPLE_SYMBOLS, size >> 16, size & 0xffff) + bytes(size - 8)
    sample = f.sample([perfdata_make.USER, 0x400100], 1000)
    problems = []
    for data, code, samples in ((sample + large + sample, 0, 2), (sample + large[:-1], 1, 1)):
        with open(path, "wb") as file:
            file.write(f.file(data))
        done = kscope("info", path)
        if done.returncode != code or "\nsamples   %d\n" % samples not in done.stdout:
            problems.append("exit code %d: %s%s" % (done.returncode, done.stdout, done.stderr))
    return problems


def main():
    with tempfile.TemporaryDirectory(prefix="kscope-round-") as folder:
        no_problems("large record of simpleperf", large_record(folder))
        if not shutil.which("perf"):
            skip("perf.data", "perf is not installed")
            finish()
        no_problems("names of events", names(folder))
        for name, commands in INPUTS:
            path = os.path.join(GOLDEN, name, "input.data")
            no_problems(name, compare(path, os.path.join(folder, name + ".data"), commands))
    finish()


if __name__ == "__main__":
    main()
