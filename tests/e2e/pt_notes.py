#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""PTWRITE and power packets of Intel PT: kscope finds the same as perf, at the same times and places, shows each as an
instant of its thread, and finds the same instructions and calls as without them."""
import collections
import itertools
import json
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (check, emulate, equal, exits, finish, fxt, intelpt, kscope, no_problems, perfetto, ptnotes,
                 run, skip, KSCOPE)

LINE = re.compile(r"\s*(?P<comm>.*?)\s+(?P<tid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):(?: {1,16}(?P<at>[0-9a-f]+))? +(?P<rest>.*)")
LEAVES = re.compile(r"(j|call|ret|loop|syscall|hlt|ud2|rep |repz |repne )")


def lines(path):
    """[(tid, time, address or None, text)] of kscope insn."""
    done = run(KSCOPE, "insn", path)
    equal("insn: reads it", (done.returncode, done.stderr), (0, ""))
    found = []
    for line in done.stdout.splitlines():
        match = LINE.fullmatch(line)
        found.append((int(match["tid"]), int(match["s"]) * 10**9 + int(match["ns"]),
                      int(match["at"], 16) if match["at"] else None, match["rest"]))
    return found


def next_instructions(all_lines):
    """{address: that of the next instruction}, of those that are not branches."""
    ahead = {}
    for (tid, _, at, text), (next_tid, _, after, _) in zip(all_lines, all_lines[1:]):
        code = re.sub(r".*?\(\S+\) +", "", text)
        if tid == next_tid and at and after and 0 < after - at < 16 and not LEAVES.match(code):
            ahead[at] = after
    return ahead


def numbers(text):
    """The arguments in a line of insn."""
    return {key: int(value, 16) for key, value in re.findall(r"(\w+)=(0x[0-9a-f]+)", text)}


def is_note(text):
    return text.split()[0] in ptnotes.ARGS and "(" not in text


def test_perf(path, truth, got):
    """got: {tid: [(time, Note)]}"""
    perf, errors = ptnotes.by_perf(path)
    no_problems("perf decodes it", errors)
    equal("perf finds the same threads", sorted(perf), sorted(got))
    for tid, injection in truth.items():
        equal(f"thread {tid}: what was put in", [note for _, note in got.get(tid, [])], injection.notes)
        no_problems(f"thread {tid}: as perf says", [
            pair for pair in itertools.zip_longest(without_pwre(got[tid]), without_pwre(perf[tid]))
            if pair[0] != pair[1]])
        no_problems(f"thread {tid}: at the same times", [
            (mine, perfs) for mine, perfs, before in zip(got[tid], perf[tid], [(0,), *perf[tid]])
            if not is_same_time(mine, perfs, before[0], injection.vague)])
    kinds = collections.Counter(note.name for injection in truth.values() for note in injection.notes)
    check("there are many of each kind", min(kinds.values()) > 10, kinds)


def is_same_time(mine, perfs, before, vague):
    want = max(mine[0], perfs[2])
    rough = mine[1].name == "ptwrite" and mine[1].value in vague
    return perfs[0] == want or (rough and before <= perfs[0] <= want)


def without_pwre(notes):
    return [note._replace(value=None) if note.name == "pwre" else note for _, note, *_ in notes]


def notes_in(all_lines):
    """{tid: [(time, Note)]}"""
    found = collections.defaultdict(list)
    for tid, time, at, text in all_lines:
        if is_note(text):
            args = numbers(text) | ({"address": f"{at:x}"} if at else {})
            found[tid].append((time, ptnotes.from_args(text.split()[0], args)))
    return found


def places(all_lines):
    """{tid: [(Note, the number of instructions before, the address of the next one)]}"""
    before, waiting, found = collections.Counter(), collections.defaultdict(list), collections.defaultdict(list)
    for tid, _, at, text in all_lines:
        if is_note(text):
            waiting[tid].append((text, at, before[tid]))
            continue
        for note, where, nr in waiting.pop(tid, []):
            found[tid].append((note, where, nr, at))
        before[tid] += 1
    return found


def test_places(all_lines):
    found = places(all_lines)
    check("insn: notes among instructions", sum(map(len, found.values())) > 100)
    no_problems("insn: a note is before the instruction at its address",
                [row for rows in found.values() for row in rows if row[1] and row[1] != row[3]][:5])


def instants(trace):
    return [event for event in trace.events if event.type == fxt.INSTANT]


def timeline(path, folder, *options):
    out = os.path.join(folder, "t.fxt")
    exits("trace: " + " ".join(options), kscope("trace", path, "-o", out, *options), 0)
    with open(out, "rb") as f:
        return fxt.read(f.read())


def test_axes(path, plain, folder, all_lines):
    """On the axis of instructions, an instant is behind as many instructions as insn prints before it."""
    want = collections.defaultdict(list)
    before = collections.Counter()
    for tid, _, _, text in all_lines:
        if is_note(text):
            want[tid].append((text.split()[0], before[tid]))
        else:
            before[tid] += 1
    for axis in ("time", "insns", "cycles"):
        trace = timeline(path, folder, "--axis", axis)
        no_problems(f"{axis}: the slices are as without",
                    differences(fxt.slices(trace), fxt.slices(timeline(plain, folder, "--axis", axis)),
                                lambda one: one.tid))
        got = collections.defaultdict(list)
        for event in instants(trace):
            got[event.tid].append(event)
        equal(f"{axis}: instants in their order", {tid: [e.name for e in events] for tid, events in got.items()},
              {tid: [name for name, _ in names] for tid, names in want.items()})
        no_problems(f"{axis}: never backwards", [tid for tid, events in got.items()
                                                 if any(a.time > b.time for a, b in zip(events, events[1:]))])
        if axis == "insns":
            first = {tid: min(e.time for e in trace.events if e.tid == tid and e.type == fxt.BEGIN) for tid in got}
            # Slices of callers from before the trace begin 1 earlier each.
            no_problems("insns: each is at its place",
                        [(tid, event, place) for tid, events in got.items()
                         for event, (_, place) in zip(events, want[tid])
                         if not first[tid] <= event.time - place <= first[tid] + 2][:5])


def differences(some, others, thread):
    """Of what has happened to each thread. Between threads, the order of equal times may differ."""
    some, others = (sorted(slices, key=thread) for slices in (some, others))
    return [(a, b) for a, b in itertools.zip_longest(some, others) if a != b]


FALLEN_INTO = "_dl_start_user"  # _start of the dynamic linker gets there without a branch

SLICES = """select s.id, s.ts, s.dur, s.depth, s.name, s.category, tid, ifnull(p.name, '') as parent,
    ifnull(p.category, '') as parent_category, ifnull(s.parent_id, -1) as parent_id from slice s
    join thread_track on s.track_id = thread_track.id join thread using (utid)
    left join slice p on s.parent_id = p.id order by s.ts, s.id"""
ARGS = """select s.id, key, ifnull(int_value, string_value) as value, int_value is null as text from slice s
    join args using (arg_set_id) where s.category = 'note'"""


def test_perfetto(path, plain, folder, got):
    if not shutil.which("node"):
        skip("Perfetto", "node is not installed")
        return
    out = [os.path.join(folder, name) for name in ("with.pftrace", "without.pftrace")]
    for recording, file in zip((path, plain), out):
        exits(f"trace to {os.path.basename(file)}", kscope("trace", recording, "-o", file), 0)
    rows, all_args, wrong = perfetto.query(out[0], SLICES, ARGS,
                                           "select name from stats where severity = 'error' and value > 0")
    before, = perfetto.query(out[1], SLICES)
    no_problems("Perfetto: no errors", wrong)
    columns = ("ts", "dur", "depth", "name", "category", "tid", "parent")
    calls = [[row[key] for key in columns] for row in rows if row["category"] != "note"]
    no_problems("Perfetto: the slices are as without",
                differences(calls, [[row[key] for key in columns] for row in before],
                            lambda row: row[columns.index("tid")]))
    args = collections.defaultdict(dict)
    for row in all_args:
        args[row["id"]][row["key"].removeprefix("kscope.")] = row["value"] if row["text"] == "1" else int(row["value"])
    shown = collections.defaultdict(list)
    notes = [row for row in rows if row["category"] == "note"]
    for row in notes:
        shown[int(row["tid"])].append((int(row["ts"]), ptnotes.from_args(row["name"], args[row["id"]])))
    for tid in got:
        equal(f"Perfetto: instants of thread {tid}", shown[tid], got[tid])
    by_id = {row["id"]: row for row in rows}

    def function(row):
        while row["category"] == "note":
            row = by_id[row["parent_id"]]
        return row["name"]
    no_problems("Perfetto: each is in the slice of its function",
                [(row, args[row["id"]]) for row in notes if "address" in args[row["id"]] and
                 args[row["id"]]["function"] not in (function(row), FALLEN_INTO)])
    equal("Perfetto: all have no length", {row["dur"] for row in notes}, {"0"})


def count(path, *options):
    return collections.Counter(json.loads(kscope("info", path, "--json", *options).stdout)["notes"])


def test_selection(path, folder, truth, got):
    all_notes = collections.Counter(note.name for injection in truth.values() for note in injection.notes)
    equal("info: counts", count(path), all_notes)
    check("info: prints them", all(re.search(rf"^note +{name} +{nr}$", kscope("info", path).stdout, re.M)
                                   for name, nr in all_notes.items()))
    tid = max(truth, key=lambda tid: truth[tid].nr)
    equal("--tid", count(path, "--tid", tid), collections.Counter(note.name for note in truth[tid].notes))
    equal("--tid: instants", {event.tid for event in instants(timeline(path, folder, "--tid", str(tid)))}, {tid})
    off = collections.Counter({"pwre": 0, "exstop": 0, "pwrx": 0})
    for injection in truth.values():
        for one, two in zip(injection.notes, injection.notes[2:]):
            if one.name == "pwre" and two.name == "pwrx":
                off.update(["pwre", "exstop", "pwrx"])
    equal("--level kernel: while tracing was off", count(path, "--level", "kernel"), off)
    equal("--level user: the others", count(path, "--level", "user"), all_notes - off)
    equal("--level kernel: instants", collections.Counter(
        event.name for event in instants(timeline(path, folder, "--level", "kernel"))), off)
    times = sorted(time for notes in got.values() for time, _ in notes)
    cut = times[len(times) // 3]
    cut = f"{cut // 10**9}.{cut % 10**9:09}"
    parts = [count(path, "--time", span) for span in (f",{cut}", f"{cut},")]
    check("--time: both parts have some", all(parts), parts)
    equal("--time: parts add up", sum(parts, collections.Counter()), all_notes)
    equal("--time: instants of a part", collections.Counter(
        event.name for event in instants(timeline(path, folder, "--time", f"{cut},"))), parts[1])


def test_same(path, plain):
    """What has no notes is the same."""
    equal("the instructions are as without", intelpt.by_kscope(path)[0], intelpt.by_kscope(plain)[0])
    for words in (["convert", "-t", "folded", "-o", "-"], ["calls", "--json"], ["report", "--json"]):
        with_, without = (run(KSCOPE, words[0], file, *words[1:]).stdout for file in (path, plain))
        check(f"{words[0]}: as without", re.sub(r"0x300f?[0-9a-f]*", "", with_) ==
              re.sub(r"0x300e?[0-9a-f]*", "", without) != "")
    windows = [run(KSCOPE, "insn", path, "--addresses", "--time", span).stdout.count("\n")
               for span in halves(plain)]
    equal("insn: parts add up", sum(windows), run(KSCOPE, "insn", plain, "--addresses").stdout.count("\n"))


def halves(path):
    times = sorted(time for _, time, _, _ in lines(path))
    middle = times[len(times) // 2]
    middle = f"{middle // 10**9}.{middle % 10**9:09}"
    return f",{middle}", f"{middle},"


def main():
    why = emulate.why_not() or (None if shutil.which("perf") else "perf is not installed")
    if why:
        skip("notes in Intel PT", why)
        finish()
    with tempfile.TemporaryDirectory(prefix="kscope-test-") as folder:
        program = emulate.build("threads", folder)
        emulation = emulate.Emulation(folder, emulate.qemus()[0][1], emulate.build_truth(folder))
        exits("records", emulation.record(program), 0, "wrote")
        path, plain = os.path.join(folder, "notes.data"), os.path.join(folder, "plain.data")
        ahead = next_instructions(lines(emulation.path))
        truth = ptnotes.inject(emulation.path, path, ahead, ratios=True)
        test_perf(path, truth, notes_in(lines(path)))
        truth = ptnotes.inject(emulation.path, path, ahead)
        ptnotes.inject(emulation.path, plain, ahead, blank=True)
        all_lines = lines(path)
        got = notes_in(all_lines)
        no_problems("all that was put in", [tid for tid in truth | got if truth[tid].notes !=
                                            [note for _, note in got[tid]]])
        test_places(all_lines)
        test_axes(path, plain, folder, all_lines)
        test_perfetto(path, plain, folder, got)
        test_selection(path, folder, truth, got)
        test_same(path, plain)
    finish()


main()
