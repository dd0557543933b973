#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What --verify says of each output: every writer counts what it writes, and the verbs that print do, too."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, scratch
from kit.inputs import GOLDEN

SAMPLES = os.path.join(GOLDEN, "sel4-json", "input.json")
CALLS = os.path.join(GOLDEN, "uftrace", "input")


def told(done, name):
    return re.search(rf"verified: the {name} output has (.*)", done.stderr)


def test_writers(folder):
    for ops in json.loads(kscope("formats", "--json").stdout)["writers"]:
        if ops["name"] == "lcov":  # neither samples nor slices: e2e/coverage.py compares its counts with gcov's
            continue
        name, out = ops["name"], os.path.join(folder, ops["name"])
        found = [told(kscope("convert", path, "-t", name, "-o", out, "--verify"), name)
                 for path in (SAMPLES, CALLS)]
        check(f"{name}: it counts what it writes", any(found), "nothing")


def test_calls(folder):
    """All these have the calls of a trace, and nothing else."""
    done = [kscope("convert", CALLS, "-t", "uftrace", "-o", os.path.join(folder, "calls"), "--verify"),
            kscope("calls", CALLS, "--verify")]
    found = [told(each, name) for each, name in zip(done, ("uftrace", "calls"))]
    check("uftrace and calls count", all(found), [each.stderr for each in done])
    if all(found):
        equal("the same calls", found[0][1], found[1][1])


def test_report():
    for words in ([], ["--tree"], ["--no-tree"], ["--json"]):
        found = told(kscope("report", SAMPLES, "--verify", *words), "report")
        check(f"report {' '.join(words)} counts what it prints", found, found)


def test_diff():
    """Each of the two runs."""
    for words in ([], ["--json"], ["--by", "cpu"], ["--samples"]):
        done = kscope("diff", SAMPLES, SAMPLES, "--verify", *words)
        found = re.findall(r"verified: the diff output has (.*)", done.stderr)
        check(f"diff {' '.join(words)} counts what it prints", len(found) == 2 and found[0] == found[1], done.stderr)


def test_chains():
    """Chains that a stage splits into samples are not lost on the way."""
    path = os.path.join(GOLDEN, "maestro-many-places", "input.bin")
    for words, want in ([], "72 chains (weight 72), 0 left out"), (["--cpu", "1"], "0 chains (weight 0), 72 left out"):
        done = kscope("report", path, "--verify", *words)
        check(f"chains: all are accounted for {words}", want in done.stderr, done.stderr)


def test_no_stack():
    """A sample of which only the task is known is in every list."""
    data = ('kscope-dump 1\nsource id=1 name="e" type=1 config=0x0\n'
            'sample time=1.0 task=7/7 source=1 weight=3 : user\n'
            'sample time=1.0 task=7/7 source=1 weight=5 : user 0x10\n')
    for by in ("function", "binary", "task", "cpu"):
        done = kscope("report", "-", "--verify", "--no-tree", "--by", by, input=data.encode())
        rows = [line.split() for line in done.stdout.splitlines() if "%" in line]
        equal(f"no stack: all samples, by {by}", (done.returncode, sum(int(row[2]) for row in rows)), (0, 2))
    event = json.loads(kscope("report", "-", "--json", input=data.encode()).stdout)["events"][0]
    equal("no stack: in JSON", sorted((row["name"], row["self"]) for row in event["functions"]),
          [("[no stack]", 3), ("[unknown]", 5)])
    nameless = data.replace(" task=7/7", "")
    done = kscope("convert", "-", "--verify", "-t", "folded", "-o", "-", input=nameless.encode())
    equal("no stack: and no task, in folded stacks", (done.returncode, done.stdout), (0, "[no stack] 1\n[unknown] 1\n"))


def main():
    with scratch() as folder:
        test_writers(folder)
        test_calls(folder)
    test_report()
    test_diff()
    test_chains()
    test_no_stack()
    finish()


if __name__ == "__main__":
    main()
