#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope's decoder of Intel PT: it finds exactly the instructions that each thread executed, as libipt does, and
as perf does (tests/e2e/emulate.py). If a trace is damaged, it finds what is before and behind."""
import collections
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (KSCOPE, check, emulate, equal, exits, finish, fxt, intelpt, kscope, no_problems, ptdamage,
                 run, skip)


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


def complaints(errors):
    """All lines but those about code that a program generated: kscope has no names for it."""
    return [line for line in errors.splitlines() if not re.search(rb"\.code/\d+: neither an ELF", line)]


def test_instructions(recording):
    name, truth = recording.name, recording.truth
    got, done = intelpt.by_kscope(recording.path)
    equal(f"{name}: kscope decodes it", (done.returncode, complaints(done.stderr)), (0, []))
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


class Damage:
    """A damaged copy of a trace of one thread, as kscope and libipt decode it.

    damage(file, parts) returns the offset of the first byte that is damaged, or None: unknown."""

    def __init__(self, recording, name, damage):
        self.name = f"damage: {name}"
        self.path = os.path.join(recording.folder, "damaged")
        (self.tid, self.truth), = recording.got.items()
        file = ptdamage.File(recording.path)
        at = damage(file, file.queue(self.tid))
        file.write(self.path)
        whole = ptdamage.joined(ptdamage.File(recording.path).queue(self.tid))
        threads, done = intelpt.by_kscope(self.path)
        self.got, self.code, self.errors = threads.get(self.tid, []), done.returncode, done.stderr
        self.libipt, = intelpt.by_libipt(self.path)
        check(f"{self.name}: the exit code", self.code in (0, 1), self.errors)
        self.before = instructions_in(recording, 0, last_branch(whole, at)) if at is not None else 0
        self.check_start()

    def gaps(self):
        """How many gaps kscope reports: (overflows and losses, damaged places)."""
        text = kscope("info", self.path).stdout
        lost, places = (int(re.search(f"^{word} +([0-9]+)", text, re.M)[1])
                        for word in ("lost", "damage"))
        return lost - places, places

    def check_start(self):
        check(f"{self.name}: what is before it",
              self.got[:self.before] == self.truth[:self.before],
              intelpt.first_difference(self.got[:self.before], self.truth[:self.before]))

    def check_end(self):
        """libipt found a PSB behind the damage, and decoded the rest: so does kscope."""
        last = self.libipt.runs[-1]
        check(f"{self.name}: libipt goes on behind it", len(self.libipt.syncs) > 1 and
              last == self.truth[-len(last):], self.libipt.syncs)
        check(f"{self.name}: what is behind the next PSB", self.got[-len(last):] == last,
              intelpt.first_difference(self.got[-len(last):], last))

    def check_pieces(self, gaps):
        """Nothing is invented: all between two gaps is a piece of what was executed."""
        pieces = intelpt.pieces(intelpt.Text(self.truth), self.got)
        check(f"{self.name}: pieces of the truth", 1 < len(pieces) <= gaps + 1, pieces)


def last_branch(trace, end):
    """The last packet about a branch before `end`. The code up to that branch is certain; how far the code after it
    ran, only the next packet can say."""
    return max((p.at for p in ptdamage.packets(trace) if p.name in ("tnt", "tip") and p.end <= end), default=0)


def instructions_in(recording, begin, end):
    """How many instructions libipt decodes in a part of a trace."""
    tid, = recording.got
    file = ptdamage.File(recording.path)
    parts = file.queue(tid)
    parts[0].data = ptdamage.pad(ptdamage.joined(parts)[begin:end])
    for part in parts[1:]:
        part.data = b""
    path = os.path.join(recording.folder, "part")
    file.write(path)
    return len(intelpt.by_libipt(path)[0].all())


def test_overflows(recording):
    """libipt ends a period of the trace if OVF is directly followed by PSB; perf and kscope do not. No trace goes on
    at a TIP packet: later returns may be compressed that a cpu, which forgets its calls, would not compress."""
    size = trace_size(recording)
    by_form = {}
    for form, at in (("fup", size // 5), ("fup", size // 2), ("pge", size // 5),
                     ("psb", size // 5), ("psb", size // 2)):
        d = Damage(recording, f"overflow, {form}, {at * 10 // size}0 %",
                   lambda file, parts: ptdamage.overflow(file, parts, at, form)[0])  # pylint: disable=cell-var-from-loop
        by_form[form, at] = d.got
        equal(f"{d.name}: the only gap", (d.code, d.gaps()), (0, (1, 0)))
        check(f"{d.name}: something is lost", len(d.got) < len(d.truth), len(d.got))
        d.check_pieces(1)
        if form == "psb":
            equal(f"{d.name}: as with FUP",
                  intelpt.first_difference(d.got, by_form["fup", at]), None)
        else:
            equal(f"{d.name}: as libipt", intelpt.first_difference(d.got, d.libipt.all()), None)


def trace_size(recording):
    tid, = recording.got
    return len(ptdamage.joined(ptdamage.File(recording.path).queue(tid)))


def test_noise(recording):
    """Random bytes. They may be packets, and lead to any code, so only what is before them and what is behind the next PSB
    is certain."""
    tid, = recording.got
    packets = list(ptdamage.packets(ptdamage.joined(ptdamage.File(recording.path).queue(tid))))
    psbs = {p.at: instructions_in(recording, p.at, None) for p in packets if p.name == "psb"}
    second, third = list(psbs)[1:3]
    for first, count, seed in (
            *((packets[len(packets) * i // 8].at, 8, i) for i in range(1, 6)),
            (second, 4, 6), (third, 4, 7),
            (next(p.at for p in packets if p.end >= third - 2), 9, 8)):
        d = Damage(recording, f"{count} bytes, seed {seed}",
                   lambda file, parts: scramble(file, parts, first, count, seed))  # pylint: disable=cell-var-from-loop
        rest = next(rest for at, rest in psbs.items() if at >= first + count)
        check(f"{d.name}: what is behind the next PSB", d.got[-rest:] == d.truth[-rest:],
              intelpt.first_difference(d.got[-rest:], d.truth[-rest:]))
        equal(f"{d.name}: damage", d.code, min(d.gaps()[1], 1))


def scramble(file, parts, at, count, seed):
    ptdamage.scramble(file, parts, at, count, seed)
    return at


def test_lost_records(recording):
    size = trace_size(recording) // 6

    def split(file, parts, *more):
        ptdamage.split(file, parts, size, *more)
        return file.queue(parts[0].tid)

    def cut(file, parts):
        ptdamage.cut(file, split(file, parts), 1, 1000)

    def drop(file, parts):
        parts = split(file, parts)
        ptdamage.drop(file, parts, 1)
        ptdamage.drop(file, parts, 4)
        return size

    for name, damage in (("in records", split), ("in records, anywhere",
                                                 lambda file, parts: split(file, parts, True))):
        d = Damage(recording, name, lambda file, parts: damage(file, parts) and None)  # pylint: disable=cell-var-from-loop
        equal(f"{d.name}: nothing is lost", (d.code, d.gaps()), (0, (0, 0)))
        equal(f"{d.name}: all instructions", intelpt.first_difference(d.got, d.truth), None)
    d = Damage(recording, "a cut record", cut)
    d.check_end()
    d.check_pieces(1)
    d = Damage(recording, "two lost records", drop)
    d.check_end()
    d.check_pieces(2)
    test_gaps_in_timeline(recording, d, 2)


def timeline(name, path, folder, code=0):
    """Its slices."""
    out = os.path.join(folder, "t.fxt")
    exits(f"{name}: timeline", kscope("trace", path, "-o", out), code)
    with open(out, "rb") as f:
        return fxt.slices(fxt.read(f.read()))


def test_gaps_in_timeline(recording, d, gaps):
    slices = timeline(d.name, d.path, recording.folder, d.code)
    equal(f"{d.name}: gaps in the timeline of the thread",
          [s.tid for s in slices if s.category == "gap"], gaps * [d.tid])
    equal(f"{d.name}: instructions in the timeline",
          sum(s.args.get("own_instructions", 0) for s in slices), len(d.got))


WINDOWS = 7


def windows(slices):
    """Spans of time, as options, that divide a recording."""
    begin, end = min(s.begin for s in slices), max(s.end for s in slices)
    cuts = [begin + (end - begin) * i // WINDOWS for i in range(1, WINDOWS)]
    words = ["", *(f"{cut // 10**9}.{cut % 10**9:09}" for cut in cuts), ""]
    return [["--time", f"{a},{b}"] for a, b in zip(words, words[1:])]


def sums(verb, path, *options):
    """{(function, number): sum}, and the number of instructions."""
    found = json.loads(kscope(verb, path, "--json", *(["--no-inline"] if verb == "report" else []),
                              *options).stdout)
    total = collections.Counter()
    if verb == "report":
        found = next((event for event in found["events"] if event["name"] == "instructions"),
                     {"functions": [], "weight": 0})
        numbers, all_ = ["self", "total"], found["weight"]
    else:
        numbers, all_ = ["count", "self_time", "self_instructions", "total_instructions"], found.get("instructions", 0)
    for function in found["functions"]:
        for number in numbers:
            total[function["name"], function["binary"], number] += function.get(number, 0)
    return total, all_


def test_sums(recording):
    name, path = recording.name, recording.path
    executed = sum(map(len, recording.got.values()))
    slices = timeline(name, path, recording.folder)
    equal(f"{name}: instructions of the slices",
          sum(s.args.get("own_instructions", 0) for s in slices), executed)
    for verb in ("report", "calls"):
        whole, instructions = sums(verb, path)
        equal(f"{name}: instructions in {verb}", instructions, executed)
        parts = [sums(verb, path, *window) for window in windows(slices)]
        check(f"{name}: parts of {verb} are not empty", sum(1 for _, nr in parts if nr) > 2, parts)
        equal(f"{name}: instructions in the parts of {verb}", sum(nr for _, nr in parts), executed)
        added = sum((part for part, _ in parts), collections.Counter())
        no_problems(f"{name}: functions in the parts of {verb} add up",
                    [(key, added[key], whole[key]) for key in whole | added
                     if added[key] != whole[key]])


THREADS_PAY = 256 << 10  # bytes of traces


def test_helpers(recording):
    """The output does not depend on the number of threads that decode."""
    if len(os.sched_getaffinity(0)) < 2:
        skip("threads that decode", "there is only one cpu")
        return
    cpu = min(os.sched_getaffinity(0))
    damaged = os.path.join(recording.folder, "damaged")
    tid, = recording.got
    file = ptdamage.File(recording.path)
    ptdamage.overflow(file, file.queue(tid), trace_size(recording) // 3, "psb")
    scramble(file, file.queue(tid), trace_size(recording) // 2, 8, 1)
    file.write(damaged)
    check("threads that decode: there are some", trace_size(recording) > THREADS_PAY,
          trace_size(recording))
    for name, path in (("whole", recording.path), ("damaged", damaged)):
        for words in (["insn", path, "--addresses"], ["report", path], ["calls", path],
                      ["info", path], ["convert", path, "-t", "fxt", "-o", "-"]):
            one = run("taskset", "-c", cpu, KSCOPE, *words, binary=True)
            more = run(KSCOPE, *words, binary=True)
            same = (one.returncode, one.stdout, one.stderr) == (more.returncode, more.stdout, more.stderr)
            check(f"threads that decode: {name}: {words[0]} is the same with one thread",
                  same and one.stdout and one.returncode == (path == damaged), one.stderr)


FEW_NUMBERS = 600  # four PSBs


def test_damage(recording):
    if intelpt.why_no_oracle():
        skip("damage", intelpt.why_no_oracle())
        return
    test_overflows(recording)
    test_noise(recording)
    test_lost_records(recording)


def record(programs, qemu):
    return [Recording(programs, qemu, name, *words, faults=faults) for name, words, faults in (
        ("bare", [programs.bare], ()),
        ("static", [programs.static, programs.library], ()),
        ("sorts", [programs.sorts], ()),
        ("libraries", [programs.libraries, programs.library], ()),
        ("signals", [programs.signals], programs.faults()),
        ("threads", [programs.threads], ()),
        ("processes", [programs.processes, programs.script], ()),
        ("sorts few", [programs.sorts, FEW_NUMBERS], ()))]


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
        by_name = {recording.name: recording for recording in recordings}
        for name in ("sorts few", "threads"):
            test_sums(by_name[name])
        test_helpers(by_name["sorts"])
        test_damage(by_name["sorts few"])
    finish()


main()
