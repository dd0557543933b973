#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines in Perfetto's web page: the names of processes, threads and cpus that it shows."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import TOOLS, equal, exits, finish, kscope, run, scratch
from kit.branches import Trace

MS = 10**6


def trace():
    """Two tasks, one of them with a name, on two cpus."""
    made = Trace(["main", "leaf"])
    made.lines.append('comm task=5/5 name="shell"')
    made.begin(1 * MS, 0, 5, "main")
    made.call(3 * MS, 0, 5, "main", "leaf")
    made.leave(5 * MS, 0, 5, "leaf", "main")
    made.end(7 * MS, 0, 5, "main")
    made.begin(8 * MS, 3, 7, "leaf")
    made.end(9 * MS, 3, 7, "leaf")
    return made


TASKS = [("? 7", "leaf 1002"), ("shell 5", "main 1001")]
CPUS = [("", "cpu 0"), ("", "cpu 0 instructions/s"), ("", "cpu 3"), ("", "cpu 3 instructions/s")]
# In .fxt, counters belong to threads that stand for the cpus, and the page is older than the records of what
# a cpu runs.
FXT_CPUS = [("cpus 4292870144", f"cpu {cpu}:instructions/s ({0xfff00000 + cpu})") for cpu in (0, 3)]
WANT = {"pftrace": sorted(CPUS + TASKS), "fxt": sorted(FXT_CPUS + TASKS)}


def shown(path):
    """[(process, track)], without what the page adds: sums of processes, and how clocks relate."""
    done = run("node", os.path.join(TOOLS, "perfetto_ui.mjs"), path)
    if not exits(f"the page opens {os.path.basename(path)}", done, 0):
        return None
    pairs = [(one["group"] or "", one["track"]) for one in json.loads(done.stdout)]
    return sorted((group, track) for group, track in pairs
                  if track not in (group, "Clock Snapshots") and not track.endswith(" summary"))


def main():
    with scratch() as folder:
        source = os.path.join(folder, "t.dump")
        with open(source, "w", encoding="utf-8") as f:
            f.write(trace().text())
        for ext, want in WANT.items():
            path = os.path.join(folder, f"t.{ext}")
            exits(f"writes {ext}", kscope("trace", source, "-o", path), 0)
            equal(f"{ext}: names of processes, threads and cpus", shown(path), want)
    finish()


if __name__ == "__main__":
    main()
