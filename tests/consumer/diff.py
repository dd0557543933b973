#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""perf diff and kscope diff on the same two recordings of perf record: the same shares before, and the same differences."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, finish, kscope, no_problems, perf, run, scratch, skip

# perf prints a baseline, a delta, or both.
ROW = re.compile(r"^ *(?P<base>\d+\.\d+%)? +(?P<delta>[+-]\d+\.\d+%)? +(?P<dso>\S+) +\[(?P<level>.)\] (?P<name>.*?)\s*$")


def perf_rows(before, after):
    """{(binary, function): (share before, difference)}; None is what perf does not print."""
    done = run("perf", "diff", "-o", "0", before, after)
    rows = {}
    for line in done.stdout.splitlines():
        match = ROW.match(line)
        if match and not line.startswith("#"):
            numbers = [float(match[key].rstrip("%")) if match[key] else None for key in ("base", "delta")]
            rows[os.path.basename(match["dso"]), match["name"]] = numbers
    check("perf diff prints rows", done.returncode == 0 and len(rows) > 3, done.stdout + done.stderr)
    return rows


def kscope_rows(before, after):
    done = kscope("diff", before, after, "--json", "--no-inline")
    event = json.loads(done.stdout)["events"][0]
    return {(row["binary"], row["name"]): row for row in event["rows"]}, event


def compare(before, after):
    """perf knows names of the kernel, and of code of which kscope finds no file, that kscope does not, and the
    other way round: only rows that both have are compared, but these have to be most of the samples."""
    theirs, (ours, event) = perf_rows(before, after), kscope_rows(before, after)
    problems, covered = [], 0
    for key, (base, delta) in theirs.items():
        row = ours.get(key)
        if not row:
            continue
        covered += row["before"]["self_percent"]
        got = row["before"]["self_percent"], row["points"]
        for what, mine, wanted in (("before", got[0], base), ("difference", got[1], delta)):
            if wanted is not None and abs(mine - wanted) > 0.0101:
                problems.append(f"{key} {what}: {mine}, perf {wanted}")
        if base is None and row["before"]["self"]:
            problems.append(f"{key}: perf has none before")
    no_problems(f"{len(theirs)} rows as perf diff has them", problems)
    check("they are most of the recording", covered > 80, covered)
    few = min(event["samples_before"], event["samples_after"]) < 128
    check("the noise is from blocks of time", few or event["noise_from"] == "blocks", event["noise_from"])
    return ours


def main():
    why = perf.why_not()
    if why:
        skip("perf diff", why)
        finish()
    with scratch() as folder:
        program, paths = perf.build(folder), [os.path.join(folder, name) for name in ("before.data", "after.data")]
        for path, work in zip(paths, ("L", "LV")):
            # What V does is new.
            done = perf.record(path, ["-e", "cpu-clock:u", "-c", "50000"], program, work)
            check(f"recorded {work}", done.returncode == 0, done.stderr)
        rows = compare(*paths)
        leaf = [row for (_, name), row in rows.items() if name == "leaf"]
        check("leaf() is there", len(leaf) == 1 and leaf[0]["before"]["samples"] > 100, leaf)
        rows, _ = kscope_rows(paths[0], paths[0])
        check("nothing changes from a recording to itself", {row["change"] for row in rows.values()} == {"same"})
    finish()


if __name__ == "__main__":
    main()
