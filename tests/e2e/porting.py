#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""doc/porting.md: what it quotes is the code of Lagoon, a kernel that is not kscope's, and its commands record Lagoon.

Lagoon's functions count what they do. The recording must show it: by function, by fiber, and by whole stacks. With
-icount, equal work takes equal time, so all that is left to chance is which tick takes a sample.
"""
import collections
import contextlib
import math
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, HANGS, ROOT, check, equal, exits, finish, kscope, read_folded, run, scratch, skip, svg
from kit.board import Recorder

SIGMAS = 4.5
DOC = os.path.join(ROOT, "doc", "porting.md")
LAGOON = os.path.join(ROOT, "tests", "porting")
PORT_IN_DOC = "5555"
PROMPT = b"lagoon> "
TICK = 298 * 838  # ns by Lagoon's clock
TICKS_PER_SLICE = 40
TURNS_NS = 1000 * 3 * 32  # a thousand turns of three instructions, with -icount shift=5
BEAT_TURNS = 24  # thousands, in each slice
FIBER = "FiberStart;lagoon::Fiber::Run()"
DIVE = ";".join(["lagoon::Heron::Dive(unsigned int)"] * 3)
# {stack that works: how Lagoon calls its work}
STACKS = {
    f"tide;{FIBER};lagoon::Tide::Run(unsigned int);lagoon::Tide::Cycle();lagoon::Tide::Rise()": "Rise",
    f"tide;{FIBER};lagoon::Tide::Run(unsigned int);lagoon::Tide::Cycle();lagoon::Tide::Fall()": "Fall",
    f"heron;{FIBER};lagoon::Heron::Run(unsigned int);{DIVE};lagoon::Heron::Strike()": "Strike",
    # ChecksumWords has no stack frame: its callers are in `link`.
    f"mill;{FIBER};lagoon::Mill::Run(unsigned int);lagoon::Mill::GrindCoarse();ChecksumWords": "Coarse",
    f"mill;{FIBER};lagoon::Mill::Run(unsigned int);lagoon::Mill::GrindFine();ChecksumWords": "Fine",
    # ScrambleWords uses the frame pointer for data, which is the address of no memory.
    "mill;ScrambleWords": "Scramble",
}
BEAT = f"pulse;{FIBER};lagoon::Pulse::Run(unsigned int);lagoon::Pulse::Beat()"
# On the interrupt stack. What is before it was interrupted.
FILTER = (";InterruptEntry;DispatchInterrupt;lagoon::Rtc::OnInterrupt(lagoon::InterruptFrame const&);"
          "lagoon::FilterSensor()")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# ---- the page ----

def blocks(doc):
    """[(what stands behind the ```, text)]"""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", doc, re.M | re.S)


def test_quotes(doc):
    """A block that names a file is part of that file. Together they are the whole port."""
    quoted = collections.defaultdict(str)
    for head, text in blocks(doc):
        _, _, name = head.partition(" ")
        if not name:
            continue
        path = os.path.join(ROOT, name)
        check(f"a quote of {name}: {text.splitlines()[0].strip()}",
              os.path.exists(path) and text in read(path), text)
        quoted[name] += text
    lines = read(os.path.join(LAGOON, "kscope_port.cpp")).splitlines()
    shown = set(quoted["tests/porting/kscope_port.cpp"].splitlines())
    equal("the page shows the whole port", [line for line in lines if line and line not in shown], [])


def test_commands(doc):
    """The table of commands has those that the target knows, and their words."""
    source = read(os.path.join(ROOT, "target", "command.c"))
    known = re.findall(r'^\t\{ "\w+", "(.*?)", do_', source, re.M)
    table = doc.partition("\n## Commands\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| `(.*)` \| ", table, re.M)
    equal("the table of commands", [line.replace("\\", "").replace("`", "") for line in shown], known)


def commands(doc, program):
    """The lines of shell blocks that run a program."""
    lines = [line for head, text in blocks(doc) if head == "sh"
             for line in text.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(program)]


# ---- Lagoon ----

class Lagoon:
    """Boots Lagoon with the page's command, on another port. Commands go to its shell."""

    def __init__(self, doc):
        # Nobody else gets a port that is bound.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", 0))
        command, = commands(doc, "qemu-system-i386")
        self.process = subprocess.Popen(self.here(command), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.answer()

    def here(self, command):
        """A command of the page, with the port and the place of this test."""
        port = str(self.reserved.getsockname()[1])
        return [word.replace(PORT_IN_DOC, port).replace("build/", BUILD + "/") for word in command]

    def answer(self):
        """What the shell prints up to its next prompt, or the end."""
        text = b""
        while not text.endswith(PROMPT):
            data = os.read(self.process.stdout.fileno(), 4096)
            if not data:
                break
            text += data
        return text.decode(errors="replace").replace("\r", "").removesuffix(PROMPT.decode())

    def tell(self, *lines):
        with contextlib.suppress(BrokenPipeError):  # it has panicked
            self.process.stdin.write("".join(line + "\n" for line in lines).encode())
            self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.answer()

    def record(self, doc, folder):
        """Starts the page's kscope record, and waits until Lagoon takes samples."""
        command, = commands(doc, "kscope record tcp")
        recorder = Recorder(folder, *self.here(command)[2:])
        recorder.waits_for(lambda: "running" in self.ask("kscope status"))
        return recorder

    def work(self, rounds):
        """Works and powers off. Returns {name: thousands of turns}."""
        self.tell(f"work {rounds}", "off")
        text = self.answer() + self.answer()
        self.process.wait(HANGS)
        return {name: int(turns) for name, turns in re.findall(r"^work: (\w+) (\d+)$", text, re.M)}

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.reserved.close()


@contextlib.contextmanager
def lagoon(doc):
    machine = Lagoon(doc)
    try:
        yield machine
    finally:
        machine.close()


# ---- comparisons ----

def are_shares(name, got, work):
    """Checks that {name: samples} has the shares of {name: work}."""
    samples, total = sum(got.values()), sum(work.values())
    wrong = []
    for one, amount in work.items():
        share = amount / total
        off = (got.get(one, 0) - samples * share) / math.sqrt(max(samples, 1) * share * (1 - share))
        if abs(off) > SIGMAS:
            wrong.append(f"{one}: {got.get(one, 0)} of {samples}, {off:+.1f} sigma")
    check(name, samples > 2000 and not wrong, f"{samples} samples; {wrong}")


def by(stacks, key):
    sums = collections.Counter()
    for stack, count in stacks.items():
        sums[key(stack)] += count
    return sums


def leaf(stack):
    return stack.rpartition(";")[2]


def test_shares(stacks, work):
    mine = {stack: n for stack, n in stacks.items() if stack in STACKS}
    are_shares("shares of whole stacks, also of a function without a stack frame",
               by(mine, STACKS.get), {name: work[name] for name in STACKS.values()})
    truth = collections.Counter()
    for stack, name in STACKS.items():
        truth[leaf(stack)] += work[name]
    truth[leaf(FILTER)] = work["Filter"]
    are_shares("shares of functions", {one: n for one, n in by(stacks, leaf).items() if one in truth}, truth)
    fibers = collections.Counter()
    for stack, name in STACKS.items():
        fibers[stack.partition(";")[0]] += work[name]
    own = {stack: n for stack, n in stacks.items() if FILTER not in stack}
    are_shares("shares of fibers", {one: n for one, n in by(own, lambda s: s.partition(";")[0]).items()
                                    if one in fibers}, fibers)


def test_stacks(stacks):
    """Nothing is cut. A function's first and last instructions run without its frame."""
    known = {*STACKS, BEAT}
    leaves = {leaf(stack) for stack in known}
    mine = {stack: n for stack, n in stacks.items() if leaf(stack) in leaves}
    cut = {stack: n for stack, n in mine.items() if stack not in known}
    check("stacks are whole", sum(cut.values()) <= sum(mine.values()) / 200, cut)


def test_interrupt_stack(stacks):
    """From the interrupt stack, stacks go on in the interrupted fiber."""
    through = {stack: n for stack, n in stacks.items() if leaf(stack) == leaf(FILTER)}
    whole = {stack.removesuffix(FILTER): n for stack, n in through.items() if stack.endswith(FILTER)}
    in_work = {stack: n for stack, n in whole.items()
               if stack.partition(";")[0] in ("tide", "heron", "mill", "pulse")}
    known = {*STACKS, BEAT}
    bad = {stack: n for stack, n in in_work.items() if stack not in known}
    check("stacks go on below the interrupt stack",
          sum(in_work.values()) > 300 and sum(bad.values()) <= sum(in_work.values()) / 50 and
          sum(whole.values()) >= sum(through.values()) * 0.98,
          f"{sum(in_work.values())}; {bad}; {[s for s in through if s not in whole][:3]}")
    equal("the interrupt comes anywhere", sorted(known & set(in_work)), sorted(known))


def times(recording):
    dump = kscope("convert", recording, "-t", "dump", "-o", "-").stdout
    return [int(seconds) * 10**9 + int(ns)
            for seconds, ns in re.findall(r"^sample time=(\d+)\.(\d{9})", dump, re.M)]


def phases(recording):
    """[samples at each tick of a slice]"""
    slots = [0] * TICKS_PER_SLICE
    for time in times(recording):
        slots[time // TICK % TICKS_PER_SLICE] += 1
    return slots


def test_pulse(folder, stacks, work):
    """All ticks of a slice have their turn, and work in step with the scheduler is seen: to within the tick at which it
    begins."""
    slots = phases(os.path.join(folder, "lagoon.kscope"))
    even = sum(slots) / TICKS_PER_SLICE
    check("samples come at all ticks of a slice",
          even > 50 and all(abs(n - even) < SIGMAS * math.sqrt(even) for n in slots), slots)
    turns = sum(work[name] for name in STACKS.values())
    density = sum(n for stack, n in stacks.items() if stack in STACKS) / turns  # samples
    want, got = work["Beat"] * density, stacks.get(BEAT, 0)
    tick = work["Beat"] / BEAT_TURNS * TICK / TURNS_NS * density
    check("work in step with the scheduler", abs(got - want) < tick + SIGMAS * math.sqrt(want), (got, want, tick))


def test_locked(doc, folder):
    """With the period of the scheduler, all samples are taken at the same tick of a slice, unless there is jitter."""
    for jitter, name, least, most in [("off", "without jitter", 0.9, 1), ("50", "with jitter", 0, 0.2)]:
        with lagoon(doc) as machine:
            for line in [f"kscope jitter {jitter}", f"kscope timer period {TICK * TICKS_PER_SLICE // 1000}"]:
                equal(f"{name}: {line}", machine.ask(line), "ok\n")
            recorder = machine.record(doc, folder)
            machine.work(100)
            exits(f"{name}: kscope record", recorder.end(), 0, " 0 lost,")
        slots = phases(os.path.join(folder, "lagoon.kscope"))
        check(f"{name}, samples in step with the scheduler", sum(slots) > 50 and
              least <= max(slots) / sum(slots) <= most, slots)


def test_flame(folder, stacks):
    """The flame graph has the same functions."""
    root = ElementTree.parse(os.path.join(folder, "flame.svg")).getroot()
    drawn = {frame for path, _, _ in svg.frames(root) for frame in path}
    missing = {frame for stack in [*STACKS, BEAT + FILTER] for frame in stack.split(";")} - drawn
    check("the flame graph shows them", stacks and not missing, missing)


def main():
    missing = [name for name in ["clang++", "ld.lld", "qemu-system-i386"] if not shutil.which(name)]
    if missing:
        skip("porting", f"{missing} missing")
        finish()
    doc = read(DOC)
    test_quotes(doc)
    test_commands(doc)
    build, = commands(doc, "make -C tests/porting")
    built = run(*build, f"OUT={BUILD}/porting", cwd=ROOT)
    if not check("Lagoon is built", built.returncode == 0 and "warning" not in built.stderr, built.stderr):
        finish()
    with scratch() as folder:
        with lagoon(doc) as machine:
            recorder = machine.record(doc, folder)
            work = machine.work(600)
            exits("kscope record", recorder.end(), 0, " 0 lost,")
            if not check("Lagoon works and powers off", work and machine.process.returncode == 0, work):
                finish()
        done = kscope("convert", os.path.join(folder, "lagoon.kscope"), "-k", f"{BUILD}/porting/kernel.elf",
                      "-t", "folded", "--samples", "-o", "-")
        stacks = read_folded(done.stdout) if done.stdout else {}
        test_shares(stacks, work)
        test_stacks(stacks)
        test_interrupt_stack(stacks)
        test_pulse(folder, stacks, work)
        test_flame(folder, stacks)
        test_locked(doc, folder)
    finish()


if __name__ == "__main__":
    main()
