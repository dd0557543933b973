#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts inputs of the golden tests, which this machine's perf record cannot make, from perf.data to
perf.data: perf prints the same for both."""
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, no_problems, run, skip

GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
INPUTS = [
    # The directory and perf's commands.
    ("perfdata-lbr", [["script", "--ns"], ["script", "-F", "ip,brstack"],
                      ["report", "--stdio", "--children", "-F", "overhead_children,sym"]]),
]


def shown(path, command):
    done = run("perf", command[0], "-i", path, *command[1:])
    return [line for line in done.stdout.split("\n") if line and not line.startswith("#")]


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


def main():
    if not shutil.which("perf"):
        skip("perf.data", "perf is not installed")
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-round-") as folder:
        for name, commands in INPUTS:
            path = os.path.join(GOLDEN, name, "input.data")
            no_problems(name, compare(path, os.path.join(folder, name + ".data"), commands))
    finish()


if __name__ == "__main__":
    main()
