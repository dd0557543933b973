#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope reads the text of perf script, in the variations that this perf can print: its samples are
those of perf, and those that kscope reads from perf.data."""
import collections
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import finish, kscope, no_problems, perf, run, skip

VARIATIONS = [
    ("default", []),
    ("nanoseconds", ["--ns"]),
    ("header", ["--header"]),
    ("processes", ["-F", "+pid"]),
    ("modes", ["-F", "+misc"]),
    ("source lines", ["-F", "+srcline"]),
    ("task events", ["--show-task-events", "--show-mmap-events"]),
    ("no offsets", ["-F", "-symoff"]),
    ("no period", ["-F", "-period"]),
    ("no cpu", ["-F", "-cpu"]),
    ("addresses of data", ["-F", "+addr"]),
    ("bytes of instructions", ["-F", "+insn,+insnlen"]),
    ("branch stacks", ["-F", "+brstack"]),
    ("inlined", None),
]


def folded(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines())


def expected(samples):
    """The stacks of the text, by the rules of perfscript.c for frames without a name."""
    stacks = collections.Counter()
    several = len({s.event for s in samples}) > 1
    for s in samples:
        names = [] if s.comm.startswith(":") else [s.comm]
        if not names:
            names = ["pid %d" % s.tid]
        for _, symbol, _, dso in reversed(s.frames):
            if symbol in ("[unknown]", ""):
                last = dso if dso.startswith("[") else "[%s]" % dso.rpartition("/")[2]
                symbol = last
            names.append(symbol.replace(";", ":"))
        stacks[";".join(([s.event] if several else []) + names)] += 1
    return {k: str(v) for k, v in stacks.items()}


def printed(path, *args):
    """What perf script prints. perf 6.1 writes to an addr2line that has ended: SIGPIPE, which it inherits from us as
    ignored, must not end it."""
    return run("perf", "script", "-i", path, *args, binary=True, restore_signals=False)


def differences(ours, theirs):
    return ["%s: %s, perf has %s" % (k, ours.get(k), theirs.get(k))
            for k in sorted(set(ours) | set(theirs)) if ours.get(k) != theirs.get(k)]


def main():
    why = perf.why_not()
    if why:
        skip("perf script", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-script-") as folder:
        load = perf.build(folder)
        for name, args in (("chains", ["-g"]), ("single lines", [])):
            path = os.path.join(folder, "perf.data")
            perf.record(path, ["-e", "cpu-clock,page-faults", "--sample-cpu", "-d", *args], load, "TFSL")
            samples = perf.perf_samples(path)
            view = perf.View(path)
            for variation, more in VARIATIONS:
                text = os.path.join(folder, "perf.txt")
                inline = ["--no-inline"] if more is not None else []
                made = printed(path, *inline, *(more or []))
                with open(text, "wb") as f:
                    f.write(made.stdout)
                title = "%s, %s" % (name, variation)
                if not made.stdout or made.returncode:
                    skip(title, made.stderr.decode(errors="replace").strip()[-100:])
                    continue
                done = kscope("convert", text, "-t", "folded", "-o", "-")
                problems = []
                if done.returncode or done.stderr:
                    problems.append("kscope says " + done.stderr.strip())
                if more is not None:
                    problems += differences(folded(done.stdout), expected(samples))
                dump = perf.View(text)
                if len(dump.samples) != len(view.samples):
                    problems.append("%d samples of %d" % (len(dump.samples), len(view.samples)))
                for a, b in zip(dump.samples, view.samples):
                    same = abs(a.time - b.time) < 1000 and a.tid == b.tid and a.event == b.event
                    if not same or (variation != "no period" and a.period != b.period):
                        problems.append("%r is not %r" % (a.key(), b.key()))
                no_problems(title, problems)
    finish()


if __name__ == "__main__":
    main()
