#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""perf_to_sqlite.py OUT < TEXT: puts what `perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso` prints into a
database of SQLite, as people do it by hand: a baseline for benchmarks."""
import re
import sqlite3
import sys

HEAD = re.compile(r"(.+?) +(\d+)/(\d+) +\[(\d+)\] +(\d+)\.(\d+): +(\d+) +(\S+):")
BATCH = 50000


def stacks(lines):
    """(the first line, the frames) of each sample"""
    head, frames = None, []
    for line in lines:
        if line == "\n":
            yield head, tuple(frames)
            head, frames = None, []
        elif head is None:
            head = line
        else:
            frames.append(line.strip().split(" ", 1)[1])


def main():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
                     "CREATE TABLE samples(time, cpu, pid, tid, comm, event, weight, stack);"
                     "CREATE TABLE stacks(id INTEGER PRIMARY KEY, frames);")
    known, rows = {}, []
    for head, frames in stacks(sys.stdin):
        comm, pid, tid, cpu, seconds, rest, weight, event = HEAD.match(head).groups()
        rows.append((int(seconds) * 10**9 + int(rest) * 10**(9 - len(rest)), int(cpu), int(pid), int(tid), comm, event,
                     int(weight), known.setdefault(frames, len(known) + 1)))
        if len(rows) == BATCH:
            db.executemany("INSERT INTO samples VALUES(?, ?, ?, ?, ?, ?, ?, ?)", rows)
            rows.clear()
    db.executemany("INSERT INTO samples VALUES(?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO stacks VALUES(?, ?)", ((number, ";".join(frames)) for frames, number in known.items()))
    db.execute("COMMIT")


if __name__ == "__main__":
    main()
