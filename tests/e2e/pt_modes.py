#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Intel PT in all modes of perf record: buffers by cpu, snapshots, and samples of the trace. Recordings by thread,
whose truth is known, are rewritten; perf decodes each without an error, and kscope finds the same instructions."""
import collections
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (check, emulate, equal, exits, finish, fxt, intelpt, kscope, no_problems, ptdamage, ptmodes, skip)


class Recording:
    def __init__(self, programs, qemu, name, *words):
        self.name = name
        self.folder = tempfile.mkdtemp(dir=programs.folder)
        emulation = emulate.Emulation(self.folder, qemu, programs.truth)
        exits(f"{name}: records", emulation.record(*words), 0, "wrote")
        self.path, self.truth = emulation.path, emulation.truth()

    def file(self):
        return ptdamage.File(self.path)

    def out(self, name):
        return os.path.join(self.folder, name)


def both(name, path):
    """What kscope and perf decode: {tid: addresses}. Both without an error, and the same."""
    perf, errors = emulate.by_perf(path)
    no_problems(f"{name}: perf decodes it", errors)
    # Samples of other events are in perf's output, too.
    perf = {tid: [ip for ip in ips if ip != ptmodes.SAMPLE_IP] for tid, ips in perf.items()}
    got, done = intelpt.by_kscope(path)
    equal(f"{name}: kscope decodes it", (done.returncode, done.stderr), (0, b""))
    got = {tid: [int(word, 16) for word in words] for tid, words in got.items()}
    equal(f"{name}: the threads are those of perf", sorted(got), sorted(tid for tid in perf if perf[tid]))
    no_problems(f"{name}: the instructions are those of perf",
                [(tid, why) for tid in got.keys() & perf.keys()
                 if (why := intelpt.first_difference(got[tid], perf[tid]))])
    return got


def whole(name, recording, got):
    """A thread that is killed may end early."""
    no_problems(f"{name}: all instructions of {len(recording.truth)} threads",
                [(tid, why) for tid, truth in recording.truth.items()
                 if (why := emulate.first_difference(got.get(tid, []), truth, True))])


def lost(path):
    """(lost, damage) in info"""
    text = kscope("info", path).stdout
    return tuple(int(re.search(f"^{word} +([0-9]+)", text, re.M)[1]) for word in ("lost", "damage"))


def timeline(name, path, folder):
    out = os.path.join(folder, "t.fxt")
    exits(f"{name}: timeline", kscope("trace", path, "-o", out), 0)
    with open(out, "rb") as f:
        trace = fxt.read(f.read())
    return trace, fxt.slices(trace)


def calls(slices):
    """{tid: functions with their depths, in the order of their ends}"""
    found = collections.defaultdict(list)
    for one in slices:
        found[one.tid].append((one.name, one.depth))
    return found


def without_kernel(found):
    """A thread that is interrupted is in the kernel, and nowhere else."""
    return [one for one in found if one[0] != "[kernel]"]


def test_by_cpu(recording, wide):
    name = f"{recording.name}, by cpu{', wide' if wide else ''}"
    file, path = recording.file(), recording.out("cpu.data")
    by_cpu = ptmodes.ByCpu(file, wide)
    by_cpu.rewrite()
    file.write(path)
    whole(name, recording, both(name, path))
    equal(f"{name}: nothing is lost", lost(path), (0, 0))
    trace, slices = timeline(name, path, recording.folder)
    want = calls(timeline(recording.name, recording.path, recording.folder)[1])
    got = calls(slices)
    equal(f"{name}: timelines of the same threads", sorted(got), sorted(want))
    no_problems(f"{name}: with the same calls",
                [tid for tid in want if without_kernel(got[tid]) != without_kernel(want[tid])])
    test_runs(name, by_cpu, fxt.runs(trace))


def test_runs(name, by_cpu, runs):
    """When threads run on cpus in the timeline, no other thread does."""
    time = by_cpu.file.time
    no_problems(f"{name}: threads run where they are",
                [(cpu, tid, begin, end, run.task) for cpu, tid, begin, end in runs
                 for run in by_cpu.cpus[cpu].runs
                 if run.task[1] != tid and time(run.begin) < end and time(run.end) > begin])
    cpus = collections.defaultdict(set)
    for cpu, tid, _, _ in runs:
        cpus[tid].add(cpu)
    check(f"{name}: threads move to other cpus", max(map(len, cpus.values())) == len(by_cpu.cpus), cpus)


def test_untraced(name, path, folder, by_cpu, copied):
    """Time that nobody copied is not damage. No call lasts over it, because nobody knows what the thread did. Only of a
    thread that does not come back, calls go on to the end."""
    equal(f"{name}: nothing is lost", lost(path), (0, 0))
    slices = timeline(name, path, folder)[1]
    untraced = [(run.task[1], by_cpu.file.time(run.begin), by_cpu.file.time(run.end))
                for cpu in by_cpu.cpus for run in cpu.runs if not run.is_in(copied[cpu.number])]
    check(f"{name}: some of it is not copied", len(untraced) > 5, len(untraced))
    check(f"{name}: gaps in the timeline", any(one.category == "gap" for one in slices))
    over = [(one.tid, one.name, begin, end) for one in slices
            if one.category != "gap" and "goes_on" not in one.args
            for tid, begin, end in untraced if one.tid == tid and one.begin < begin and one.end > end]
    no_problems(f"{name}: calls that last over a gap", over)


def ends(trace, first, *every):
    """Packet boundaries: the first one, then after these steps, again and again, and at the end."""
    found, at, every = [first], first, every or [first]
    while at + every[len(found) % len(every)] < len(trace):
        at += every[len(found) % len(every)]
        found.append(at)
    return ptmodes.heads(trace, *found, len(trace))


def cut_cpus(recording, wide, cut):
    """cut(file, by_cpu, cpu, parts, trace) for each cpu; returns what it copies."""
    file = recording.file()
    by_cpu = ptmodes.ByCpu(file, wide)
    by_cpu.rewrite()
    copied = {}
    for cpu in by_cpu.cpus:
        parts = file.queue(cpu=cpu.number)
        copied[cpu.number] = cut(file, cpu, parts, ptmodes.unfilled(ptdamage.joined(parts)))
    return file, by_cpu, copied


def test_snapshots_by_cpu(recording, wide):
    name = f"{recording.name}, snapshots by cpu{', wide' if wide else ''}"
    path = recording.out("snapshots.data")
    file, by_cpu, copied = cut_cpus(
        recording, wide, lambda file, cpu, parts, trace:
        ptmodes.snapshots(file, parts, 7000, ends(trace, 6000, 11000, 3000)))
    file.write(path)
    both(name, path)
    test_untraced(name, path, recording.folder, by_cpu, copied)


def test_samples_by_cpu(recording, wide):
    name = f"{recording.name}, samples by cpu{', wide' if wide else ''}"
    path, packed = recording.out("samples.data"), recording.out("packed.data")
    samples = None

    def cut(file, cpu, parts, trace):
        nonlocal samples
        samples = samples or ptmodes.Samples(file, 5000)
        return samples.cut(parts, ends(trace, 3000, 8000), cpu.switches)

    _, by_cpu, copied = cut_cpus(recording, wide, cut)
    samples.write(path)
    got = both(name, path)
    test_untraced(name, path, recording.folder, by_cpu, copied)
    samples.write(packed, packed=True)
    again, done = intelpt.by_kscope(packed)
    equal(f"{name}: in compressed records", done.returncode, 0)
    no_problems(f"{name}: the same instructions in compressed records",
                [tid for tid in got.keys() | again.keys()
                 if intelpt.hexadecimal(got.get(tid, [])) != again.get(tid, [])])


def snapshots(recording, size, *every):
    (tid, _), = recording.truth.items()
    file, path = recording.file(), recording.out("snapshots.data")
    parts = file.queue(tid)
    ptmodes.snapshots(file, parts, size, ends(ptmodes.unfilled(ptdamage.joined(parts)), *every))
    file.write(path)
    return path


def test_snapshots(recording):
    """The PSBs are about 16 KiB apart."""
    name = f"{recording.name}, snapshots"
    for words, size, every, complete in (
            ("overlap", 60000, (59000, 10000, 12345, 20000, 1), True),
            ("the first ones are new bytes only", 90000, (30000,), False),
            ("with gaps", 40000, (30000, 70000, 10000), False),
            ("almost no PSB", 5000, (4000, 10000), False)):
        path = snapshots(recording, size, *every)
        got = both(f"{name}, {words}", path)
        equal(f"{name}, {words}: nothing is lost", lost(path), (0, 0))
        (tid, truth), = recording.truth.items()
        if complete:
            equal(f"{name}, {words}: all instructions", emulate.first_difference(got[tid], truth), None)
        else:
            check(f"{name}, {words}: not all instructions", 0 < len(got[tid]) < sum(map(len, truth)))
    trace = timeline(name, snapshots(recording, 40000, 70000), recording.folder)[1]
    check(f"{name}: gaps in the timeline", [one for one in trace if one.category == "gap"])


def test_samples(recording):
    (tid, truth), = recording.truth.items()
    for words, size, every, fields in (("overlap", 50000, (10000, 12345), ()),
                                       ("all fields", 50000, (20000, 1, 30000), ptmodes.ALL_FIELDS),
                                       ("with gaps", 20000, (5000, 30000, 5000), ()),
                                       ("small", 4096, (3000,), ())):
        name, file, path = f"{recording.name}, samples, {words}", recording.file(), recording.out("samples.data")
        parts = file.queue(tid)
        trace = ptmodes.unfilled(ptdamage.joined(parts))
        samples, where = ptmodes.Samples(file, size, fields), ends(trace, *every)
        samples.cut(parts, where, [(0, (tid, tid))])
        samples.write(path)
        got = both(name, path)
        if words in ("overlap", "all fields"):
            equal(f"{name}: all instructions", emulate.first_difference(got[tid], truth), None)
        equal(f"{name}: nothing is lost", lost(path), (0, 0))
        found = re.search(r"^event +branch-misses:u +(\d+) samples", kscope("info", path).stdout, re.M)
        equal(f"{name}: samples are samples", found and int(found[1]), len(where))


NUMBERS = 2500  # to sort: some PSBs


def main():
    why = emulate.why_not()
    if why:
        skip("modes of Intel PT", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-test-") as folder:
        programs = emulate.Programs(folder)
        qemu = emulate.qemus()[0][1]
        sorts = Recording(programs, qemu, "sorts", programs.sorts, NUMBERS)
        test_snapshots(sorts)
        test_samples(sorts)
        for recording in (Recording(programs, qemu, "threads", programs.threads),
                          Recording(programs, qemu, "processes", programs.processes, programs.script)):
            for wide in (False, True):
                test_by_cpu(recording, wide)
                test_snapshots_by_cpu(recording, wide)
                test_samples_by_cpu(recording, wide)
    finish()


main()
