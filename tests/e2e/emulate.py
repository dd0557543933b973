#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope record emulate: perf decodes exactly the instructions that each thread executed.

tests/kit/emulate.py says where the truth comes from."""
import os
import re
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import HANGS, check, emulate, equal, exits, finish, no_problems, run, skip


class Case:
    """A recording of a program."""

    def __init__(self, name, programs, qemu, *words):
        self.name = name
        self.folder = tempfile.mkdtemp(dir=programs.folder)
        self.emulation = emulate.Emulation(self.folder, qemu, programs.truth)
        self.words = words

    def record(self, code=0):
        self.done = self.emulation.record(*self.words)
        exits(f"{self.name}: records", self.done, code, "wrote")
        return self.compare()

    def compare(self, faults=(), killed=()):
        """killed: the threads that may end early; True: all."""
        got, errors = emulate.by_perf(self.emulation.path)
        truth = self.emulation.truth()
        problems = [f"thread {tid}: {why}" for tid in sorted(truth.keys() | got.keys())
                    if (why := emulate.differs(got.get(tid, []), truth.get(tid, []), faults,
                                               killed is True or tid in killed))]
        no_problems(f"{self.name}: perf decodes it without an error", errors)
        no_problems(f"{self.name}: perf gets the instructions of {len(truth)} threads", problems)
        check(f"{self.name}: has instructions", sum(map(len, got.values())) > 100, truth.keys())
        equal(f"{self.name}: nothing is left over",
              [name for name in os.listdir(self.folder) if name.startswith(".")], [])
        return got


def test_bare(programs, name, qemu):
    case = Case(f"{name}: bare", programs, qemu, programs.bare)
    got = case.record()
    real = emulate.by_stepping(programs.bare, programs.folder)
    if real is None:
        skip(f"{name}: bare: as on the real processor", "ptrace does not work here")
    else:
        equal(f"{name}: bare: as on the real processor",
              emulate.first_difference(*got.values(), [real]), None)


def test_signals(programs, name, qemu):
    case = Case(f"{name}: signals", programs, qemu, programs.signals)
    case.done = case.emulation.record(*case.words)
    exits(f"{name}: signals: records", case.done, 0, "wrote")
    faults = programs.faults()
    equal(f"{name}: signals: the labels of instructions that fail", len(faults), 3)
    case.compare(faults)
    test_maps(f"{name}: signals", case.emulation.path, programs.signals)


def test_maps(name, path, program):
    """The map is that of the executable segment, as Linux would record it."""
    segment = re.search(r"LOAD +(\w+) (\w+) \w+ (\w+) \w+ R E", run("readelf", "-lW", program).stdout)
    offset, address, size = (int(text, 16) for text in segment.groups())
    equal(f"{name}: the map of the program's code", emulate.maps(path).get(program),
          {(address, (size + 4095) // 4096 * 4096, offset)})


def test_threads(programs, name, qemu):
    case = Case(f"{name}: threads", programs, qemu, programs.threads)
    case.done = case.emulation.record(*case.words)
    exits(f"{name}: threads: records", case.done, 0, "wrote")
    truth = case.emulation.truth()
    check(f"{name}: threads: there are threads that end, and two that do not",
          7 <= len(truth) <= 15, len(truth))
    case.compare(killed=sorted(truth)[1:])
    comms = run("perf", "script", "-i", case.emulation.path, "--show-task-events").stdout
    check(f"{name}: threads: they have their names", "worker" in comms, comms[:300])


def test_processes(programs, name, qemu):
    case = Case(f"{name}: processes", programs, qemu, programs.processes, programs.script)
    case.done = case.emulation.record(*case.words)
    exits(f"{name}: processes: records", case.done, 0, "wrote")
    truth = case.emulation.truth()
    equal(f"{name}: processes: threads", len(truth), 7)
    case.compare(killed=True)


def test_crash(programs, name, qemu):
    case = Case(f"{name}: crash", programs, qemu, programs.crash)
    case.done = case.emulation.record(*case.words)
    exits(f"{name}: crash: the exit code is that of a shell", case.done, 128 + signal.SIGSEGV,
          "killed by signal 11", "wrote")
    case.compare(killed=True)


def test_kill(programs, name, qemu, number):
    """kscope passes a signal on, and the file is whole."""
    case = Case(f"{name}: {number.name}", programs, qemu, programs.crash, "loop")
    with case.emulation.start(*case.words) as kscope_process:
        equal(f"{case.name}: the program is ready", kscope_process.stdout.readline(), "ready\n")
        kscope_process.send_signal(number)
        _, said = kscope_process.communicate(timeout=HANGS)
    equal(f"{case.name}: the exit code", kscope_process.returncode, 128 + number)
    check(f"{case.name}: says what it wrote", "wrote" in said, said)
    case.compare(killed=True)


def test_qemu(programs, name, qemu):
    test_bare(programs, name, qemu)
    Case(f"{name}: static", programs, qemu, programs.static, programs.library).record()
    Case(f"{name}: sorts", programs, qemu, programs.sorts).record()
    Case(f"{name}: libraries", programs, qemu, programs.libraries, programs.library).record()
    Case(f"{name}: script", programs, qemu, programs.script, "argument").record(3)
    test_signals(programs, name, qemu)
    test_threads(programs, name, qemu)
    test_processes(programs, name, qemu)
    test_crash(programs, name, qemu)
    for number in (signal.SIGINT, signal.SIGTERM):
        test_kill(programs, name, qemu, number)


def main():
    why = emulate.why_not() or (None if shutil.which("perf") else "perf is not installed")
    if why:
        skip("kscope record emulate", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-test-") as folder:
        programs = emulate.Programs(folder)
        for name, qemu in emulate.qemus():
            test_qemu(programs, name, qemu)
    finish()


main()
