#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope's decoder of Intel PT: it finds exactly the instructions that each thread executed, as libipt does, and
as perf does (tests/e2e/emulate.py)."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, emulate, equal, exits, finish, intelpt, no_problems, skip


class Recording:
    """A program of tests/pt, recorded, and its truth."""

    def __init__(self, programs, qemu, name, *words, faults=()):
        self.name, self.faults = name, faults
        self.folder = tempfile.mkdtemp(dir=programs.folder)
        emulation = emulate.Emulation(self.folder, qemu, programs.truth)
        exits(f"{name}: records", emulation.record(*words), 0, "wrote")
        self.path = emulation.path
        self.truth = emulation.truth()

    def is_killed(self, tid):
        """Whether the thread may end early: the truth may know a few instructions more."""
        return self.name == "processes" or (self.name == "threads" and tid != min(self.truth))


# Instructions of code that a program generates, behind the first one of each piece: it is in no binary.
GENERATED = {"libraries": 3, "static": 3}


def test_instructions(recording):
    name, truth = recording.name, recording.truth
    got, done = intelpt.by_kscope(recording.path)
    equal(f"{name}: kscope decodes it", (done.returncode, done.stderr), (0, b""))
    unknown = sum(intelpt.fill(addresses, intelpt.hexadecimal(sum(truth.get(tid, []), [])))
                  for tid, addresses in got.items() if intelpt.UNKNOWN in addresses)
    check(f"{name}: knows the code", unknown in (0, GENERATED.get(name)), unknown)
    problems = [f"thread {tid}: {why}" for tid in sorted(truth.keys() | got.keys())
                if (why := emulate.differs([int(word, 16) for word in got.get(tid, [])],
                                           truth.get(tid, []), recording.faults,
                                           recording.is_killed(tid)))]
    no_problems(f"{name}: the instructions of {len(truth)} threads", problems)
    if intelpt.why_no_oracle():
        skip(f"{name}: libipt", intelpt.why_no_oracle())
    else:
        test_libipt(name, got, intelpt.by_libipt(recording.path))
    recording.got = got


def test_libipt(name, got, queues):
    no_problems(f"{name}: libipt decodes it", [queue.errors for queue in queues if queue.errors])
    check(f"{name}: has instructions", sum(map(len, got.values())) > 100, got.keys())
    equal(f"{name}: libipt finds the same threads",
          sorted(queue.tid for queue in queues if queue.runs), sorted(got))
    no_problems(f"{name}: libipt finds the same instructions",
                [why for queue in queues
                 if (why := intelpt.first_difference(got.get(queue.tid, []), queue.all()))])


def record(programs, qemu):
    return [Recording(programs, qemu, name, *words, faults=faults) for name, words, faults in (
        ("bare", [programs.bare], ()),
        ("static", [programs.static, programs.library], ()),
        ("sorts", [programs.sorts], ()),
        ("libraries", [programs.libraries, programs.library], ()),
        ("signals", [programs.signals], programs.faults()),
        ("threads", [programs.threads], ()),
        ("processes", [programs.processes, programs.script], ()))]


def main():
    why = emulate.why_not()
    if why:
        skip("kscope's decoder of Intel PT", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-test-") as folder:
        programs = emulate.Programs(folder)
        recordings = record(programs, emulate.qemus()[0][1])
        for recording in recordings:
            test_instructions(recording)
    finish()


main()
