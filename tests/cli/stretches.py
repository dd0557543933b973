#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines of samples: which event, which input, names, numbers, what is lost, and selections, which add up."""
import collections
import glob
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, exits, finish, fxt, kscope, scratch
from kit.branches import Trace

GOLDEN = os.path.join(ROOT, "tests", "golden")
CODE, SIZE = 0xffffa00000000000, 0x1000  # not where a Trace has its code
FUNCTIONS = "abcdefgh"
CLOCK = 'source id=1 name="cpu-clock" type=1 config=0x0'
MS = 10**6


class Samples:
    """A dump of samples. Functions have a letter as their name, and are in the kernel."""

    def __init__(self, *sources):
        self.lines = ["kscope-dump 1", *(sources or [CLOCK]),
                      f"map task=1/1 addr={CODE:#x} len={SIZE * len(FUNCTIONS):#x} offset=0x0 prot=r-x "
                      'kernel path="[kernel.kallsyms]"',
                      'map task=5/5 addr=0x1000 len=0x100000 offset=0x0 prot=r-x path="/none/app"']
        for i, name in enumerate(FUNCTIONS):
            self.lines.append(f'symbol task=1/1 addr={CODE + SIZE * i:#x} len={SIZE:#x} name="{name}"')

    def add(self, time, cpu, task, stack, weight=MS, source=1, level="kernel"):
        """Stack: from the root. The place inside a function is another one each time."""
        words = "" if time is None else f" time={time // 10**9}.{time % 10**9:09}"
        words += "" if cpu is None else f" cpu={cpu}"
        words += "" if task is None else f" task={task}"
        places = [CODE + SIZE * FUNCTIONS.index(name) + 16 + len(self.lines) % 99 for name in stack]
        self.lines.append(f"sample{words} source={source} weight={weight} : {level} " +
                          " ".join(map(hex, reversed(places))))

    def write(self, folder, name="s.dump"):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")
        return path


def convert(folder, *words):
    """What kscope says, the timeline, and its slices."""
    out = os.path.join(folder, "out.fxt")
    if os.path.exists(out):
        os.unlink(out)
    done = kscope("convert", *words, "-o", out)
    if done.returncode not in (0, 1):
        return done, None, []
    with open(out, "rb") as f:
        trace = fxt.read(f.read())
    return done, trace, fxt.slices(trace)


def shown(slices):
    return sorted(f"{s.begin // MS}-{s.end // MS} {s.tid} {s.name}" for s in slices)


def test_events(folder):
    two = Samples(CLOCK, 'source id=2 name="cycles" type=0 config=0x0 freq=1000')
    for i in range(1, 5):
        two.add(i * MS - MS // 2, 0, "5/5", "cd", 77, 2)
        two.add(i * MS, 0, "5/5", "ab")
    path = two.write(folder)
    for words, want, message in (
            ([], ["0-4 5 a", "0-4 5 b"], "left out 4 samples of others"),
            (["-e", "cpu-clock"], ["0-4 5 a", "0-4 5 b"], ""),
            (["-e", "cycles"], ["0-3 5 c", "0-3 5 d"], ""),
            (["-e", "cycles", "-e", "cpu-clock"], ["0-4 5 a", "0-4 5 b"], "left out 4 samples"),
            (["-e", "nothing"], [], "the timeline is empty")):
        done, _, slices = convert(folder, path, *words)
        equal(f"events {words}", shown(slices), want)
        exits(f"events {words}: says so", done, 0, message)
        check(f"events {words}: no other message", message or not done.stderr, done.stderr)


def test_choice(folder):
    """Which event a timeline shows, whatever the order of the samples."""
    faults, insns = ('name="page-faults" type=1 config=0x2', 'name="instructions" type=0 config=0x1')
    clock, cycles = ('name="task-clock" type=1 config=0x1', 'name="cycles" type=0 config=0x0')
    ticks = 'name="timer" type=1 config=0x9 unit="ns"'
    for first, second, want in ((faults, insns, 1), (insns, faults, 0), (insns, clock, 1), (cycles, clock, 0),
                                (clock, cycles, 0), (faults, ticks, 1), (faults, faults.replace("-f", "_f"), 0)):
        for order in ((1, 2), (2, 1)):
            samples = Samples(f"source id=1 {first}", f"source id=2 {second}")
            for i in range(1, 5):
                samples.add(i * MS, 0, "5/5", "ab"[order[0] - 1], MS, order[0])
                samples.add(i * MS + 10, 0, "5/5", "ab"[order[1] - 1], MS, order[1])
            done, _, slices = convert(folder, samples.write(folder))
            equal(f"choice: {first}, {second}: {order}", {s.name for s in slices}, {"ab"[want]})
            exits(f"choice: {first}, {second}: {order}: says so", done, 0, "left out 4 samples of others")


def test_numbers(folder):
    """Only numbers that samples have."""
    counted = {"samples": 3, "instructions": 3 * MS, "own_instructions": MS}
    for source, want in ((CLOCK, {"samples": 3}),
                         ('source id=1 name="cycles" type=0 config=0x0 period=1000000', {"samples": 3}),
                         ('source id=1 name="instructions" type=0 config=0x1 period=1000000', counted),
                         ('source id=1 name="x" type=1 config=0x9 unit="instructions"', counted)):
        samples = Samples(source)
        for i, stack in enumerate(("ab", "a", "ab")):
            samples.add((i + 5) * MS, 0, "5/5", stack)
        _, trace, slices = convert(folder, samples.write(folder))
        got = dict(next(s for s in slices if s.name == "a").args)
        equal(f"numbers of {source}: the time", got.pop("time", ""), "0.004000000,+3000000ns")
        equal(f"numbers of {source}", got, want)
        equal(f"numbers of {source}: the category", {s.category for s in slices}, {"sample"})
        equal(f"numbers of {source}: runs", len(fxt.runs(trace)), 1)


def test_refusals(folder):
    timeless = Samples()
    timeless.add(None, 0, "5/5", "ab")
    path = timeless.write(folder)
    done, _, _ = convert(folder, path)
    exits("without times", done, 3, "a timeline needs samples with times", "use kscope flame or kscope report")
    check("without times: no file", not os.path.exists(os.path.join(folder, "out.fxt")))
    timeless.add(5 * MS, 0, "5/5", "ab")
    done, _, slices = convert(folder, timeless.write(folder))
    exits("one without a time", done, 0, "left out 1 samples without a time")
    equal("one without a time: the others are there", len(slices), 2)
    for name, file in (("samples", path), ("samples with times", timeless.write(folder)),
                       ("managarm", os.path.join(GOLDEN, "managarm", "input.bin"))):
        exits(f"calls of {name}", kscope("calls", file), 3, "samples do not tell how often")


def test_inputs(folder):
    """Samples count in an input without calls, whatever the others have."""
    samples = Samples()
    for i in range(1, 4):
        samples.add(i * MS, 0, "5/5", "gh")
    trace = Trace(["main", "leaf"])
    trace.begin(MS, 1, 9, "main")
    trace.call(2 * MS, 1, 9, "main", "leaf")
    trace.leave(3 * MS, 1, 9, "leaf", "main")
    trace.lines.append(samples.lines[1].replace("id=1", "id=7"))
    both = [line.replace("source=1", "source=7") for line in samples.lines if line.startswith("sample ")]
    path, other = os.path.join(folder, "t.dump"), samples.write(folder)
    first = next(i for i, line in enumerate(trace.lines) if line.startswith("branch"))
    begun = [trace.lines.pop(), *both]
    for name, lines in (("samples first", trace.lines[:first] + begun + trace.lines[first:]),
                        ("calls first", trace.lines + begun)):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        equal(f"a trace with samples, {name}", sorted(s.name for s in convert(folder, path)[2]), ["leaf", "main"])
    got = convert(folder, path, other)[2]
    equal("a trace, and samples", sorted(s.name for s in got), ["g", "h", "leaf", "main"])
    equal("a trace, and samples: kinds", {s.category for s in got}, {"begin", "call", "sample"})
    equal("samples of two inputs", sorted(s.name for s in convert(folder, other, other)[2])[:2], ["g", "h"])
    exits("calls of a trace, and samples", kscope("calls", path, other), 0)


def test_tasks(folder):
    """Idle tasks, unknown ones, and ids that stand for several threads have an axis for each cpu."""
    samples = Samples(CLOCK, 'source id=2 name="host-time" type=1 config=0x0 unit="ns" no-threads')
    samples.lines += ['comm task=0/0 name="swapper"', 'comm task=5/5 name="app"', 'comm task=5/6 name="io"',
                      'comm task=1/1 name="init"']
    for i in range(1, 4):
        for cpu in (0, 1):
            samples.add(i * MS + cpu, cpu, "0/0", "ab")
            samples.add(i * MS + cpu, cpu + 2, None, "ef")
        samples.add(i * MS, 4, "5/5", "ad")
        samples.add(i * MS, 5, "5/6", "ad")
        samples.add(i * MS, 6, "1/1", "ad")
        samples.add(i * MS, 7, "5/4294967295", "ad")
    path = samples.write(folder)
    _, trace, slices = convert(folder, path)
    names = {s.tid: trace.threads[s.tid][1] for s in slices}
    equal("tasks: names", sorted(names.values()),
          ["app", "app/7", "init", "io", "kernel/2", "kernel/3", "swapper/0", "swapper/1"])
    equal("tasks: one slice for each function", len(slices), 16)
    equal("tasks: real ids stay", {names[5], names[6], names[1]}, {"app", "io", "init"})
    equal("tasks: processes", {trace.processes[s.pid] for s in slices}, {"swapper", "kernel", "app", "init"})
    for option, want in ((["--tid", "0"], {"swapper/0", "swapper/1"}), (["--tid", "6"], {"io"}),
                         (["--comm", "swapper"], {"swapper/0", "swapper/1"}), (["--pid", "5"], {"app", "app/7", "io"}),
                         (["--cpu", "1-2"], {"swapper/1", "kernel/2"})):
        _, trace, slices = convert(folder, path, *option)
        equal(f"tasks: {option}", {trace.threads[s.tid][1] for s in slices}, want)
    parallel = Samples(CLOCK + " no-threads")
    parallel.lines.append('comm task=5/5 name="app"')
    for i in range(1, 6):
        parallel.add(i * MS, 0, "5/5", "ab")
        parallel.add(i * MS, 1, "5/5", "cd")
    _, trace, slices = convert(folder, parallel.write(folder))
    equal("tasks: a process on two cpus at once", sorted((trace.threads[s.tid][1], s.name) for s in slices),
          [("app/0", "a"), ("app/0", "b"), ("app/1", "c"), ("app/1", "d")])


def test_lost(folder):
    samples = Samples()
    for time in (1, 2, 3):
        samples.add(time * MS, 0, "5/5", "ab")
        samples.add(time * MS, 1, "5/6", "cd")
    samples.lines.append("lost time=0.018 cpu=0 count=12 bytes=0")
    for time in (19, 20):
        samples.add(time * MS, 0, "5/5", "ab")
        samples.add(time * MS, 1, "5/6", "cd")
    _, trace, slices = convert(folder, samples.write(folder))
    gaps = [(trace.threads[s.tid][1], s.begin // MS, s.end // MS) for s in slices if s.category == "gap"]
    equal("lost samples are a gap of their cpu", gaps, [("cpu 0", 3, 18)])
    equal("lost samples: no slice is there", shown(s for s in slices if s.name == "a"), ["0-3 5 a", "18-20 5 a"])
    late = Samples()
    for time in (5, 6, 6, 4, 7):
        late.add(time * MS, 0, "5/5", "a")
    done, _, slices = convert(folder, late.write(folder))
    exits("late samples are counted", done, 0, "left out 2 samples that are not later")
    equal("late samples are left out", shown(slices), ["4-7 5 a"])


# One input of each format: its number of samples, or the kinds of slices of its calls; None: no times.
FORMATS = {"kpdata-v1": 12, "kpdata-v2": 12, "kpdata-v3": 12, "kpoprofile-good": 20, "perfdata-le": 5,
           "perfscript-mixed": 2, "qperf-3": 6, "sel4-json": 3, "sel4-pb": 3, "sel4-serial": 2,
           "wire-two-cpus": 5, "wire-idle": 3,
           "uboot-trace": {"begin", "call"}, "uftrace": {"begin", "call"}, "wire-trace": {"begin"},
           "folded": None, "kphistogram-good": None, "maestro": None, "managarm": None,
           "perfdata-no-time": None, "perfscript-old": None, "qperf-1": None, "zephyr": None}


def test_formats(folder):
    for name, want in FORMATS.items():
        paths = glob.glob(os.path.join(GOLDEN, name, "input*"))
        done, _, slices = convert(folder, *paths)
        slices = [s for s in slices if s.category != "gap"]
        if want is None:
            exits(f"{name}: no times", done, 3, "a timeline needs samples with times")
        elif isinstance(want, set):
            equal(f"{name}: calls", {s.category for s in slices}, want)
            check(f"{name}: times", any(s.end > s.begin for s in slices), slices)
            counted = name == "wire-trace"
            equal(f"{name}: instructions", any("instructions" in s.args for s in slices), counted)
            equal(f"{name}: instructions of calls", "instructions" in kscope("calls", *paths, "--json").stdout, counted)
        else:
            equal(f"{name}: samples", sum(s.args["samples"] for s in slices if not s.depth), want)


# Selections

PARTS = {
    "time": [["--time", ",0.1"], ["--time", "0.1,0.25"], ["--time", "0.25,0.250000001"],
             ["--time", "0.250000001,0.7"], ["--time", "0.7,"]],
    "cpu": [["--cpu", "0"], ["--cpu", "1,3"], ["--cpu", "2"]],
    "pid": [["--pid", "1"], ["--pid", "2-3"]],
    "comm": [["--comm", "one"], ["--comm", "two", "--comm", "three"]],
    "pid and time": [["--pid", pid, "--time", time] for pid in ("1", "2-3") for time in (",0.4", "0.4,")],
}


def random_samples(seed):
    rng = random.Random(seed)
    samples = Samples()
    samples.lines += [f'comm task={pid}/{pid} name="{name}"'
                      for pid, name in ((1, "one"), (2, "two"), (3, "three"))]
    times = sorted({rng.randrange(10**9) for _ in range(4000)} | {10**9 // 4, 10**8})
    for time in times:
        pid = rng.randrange(1, 4)
        stack = "".join(rng.choice("abc") for _ in range(rng.randrange(1, 5)))
        samples.add(time, rng.randrange(4), f"{pid}/{pid}", stack, rng.choice([1, 10**5, MS]))
    return samples


def sums(trace):
    """The time and the samples of each path of functions, and the time in which tasks ran."""
    stacks, time, number = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for one in sorted(trace.events, key=lambda one: one.time):
        stack = stacks[one.pid, one.tid]
        if one.type == fxt.BEGIN:
            stack.append(one)
            continue
        path = (one.pid, *(s.name for s in stack))
        time[path] += one.time - stack.pop().time
        number[path] += one.args["samples"]
    ran = collections.Counter()
    for _, tid, begin, end in fxt.runs(trace):
        ran[tid] += end - begin
    return +time, +number, +ran


def test_parts(folder):
    path = random_samples(1).write(folder)
    whole = sums(convert(folder, path)[1])
    check("parts: there is something to divide", len(whole[0]) > 100 and min(whole[2].values()) > 10**8, whole[2])
    equal("parts: each sample counts once", sum(n for p, n in whole[1].items() if len(p) == 2), 4002)
    for what, parts in PARTS.items():
        total = [collections.Counter() for _ in whole]
        for part in parts:
            got = sums(convert(folder, path, *part)[1])
            check(f"parts: {part} is not everything", got != whole)
            total = [a + b for a, b in zip(total, got)]
        for name, got, want in zip(("times", "samples", "runs"), total, whole):
            check(f"parts: {name} add up, by {what}", got == want, f"{sum(got.values())} of {sum(want.values())}")


def test_outputs(folder):
    """A run with several outputs, and the folder of uftrace."""
    path, names = random_samples(3).write(folder), ["x.folded", "x.fxt", "x.data"]
    for words in ([], ["--time", "0.2,0.5", "--cpu", "1-2"]):
        files = [os.path.join(folder, name) for name in names]
        alone = []
        for file in files:
            exits(f"outputs {words}: one", kscope("convert", path, *words, "-o", file), 0)
            with open(file, "rb") as f:
                alone.append(f.read())
        exits(f"outputs {words}: all", kscope("convert", path, *words, *(w for f in files for w in ("-o", f))), 0)
        for file, want in zip(files, alone):
            with open(file, "rb") as f:
                check(f"outputs {words}: {os.path.basename(file)} is the same", f.read() == want and want)
    slices = convert(folder, path)[2]
    folder = os.path.join(folder, "uf")
    exits("outputs: uftrace", kscope("convert", path, "-t", "uftrace", "-o", folder), 0)
    back = json.loads(kscope("calls", folder, "--json").stdout)
    names = collections.Counter(s.name for s in slices)
    equal("outputs: uftrace has the same slices", {f["name"]: f["count"] for f in back["functions"]}, dict(names))


def total(path):
    with open(path, "rb") as f:
        return sums(fxt.read(f.read()))


def test_trace(folder):
    """Options of kscope trace."""
    path, out = random_samples(2).write(folder), os.path.join(folder, "out.fxt")
    whole = sums(convert(folder, path)[1])
    exits("trace: splits", kscope("trace", path, "--split", "0.3", "-o", out), 0, "wrote 4 parts")
    parts = [total(os.path.join(folder, f"out.{i:04}.fxt")) for i in range(1, 5)]
    for name, got, want in zip(("times", "samples", "runs"), zip(*parts), whole):
        equal(f"trace: {name} of the parts add up", sum(got, collections.Counter()), want)
    done = kscope("trace", path, "--axis", "insns", "-o", out)
    exits("trace: no instructions", done, 2, "do not count instructions: use --axis time")
    counts = Samples('source id=1 name="cycles" type=0 config=0x0 freq=1000',
                     'source id=2 name="instructions" type=0 config=0x1 period=500')
    for i, stack in enumerate(("ab", "ab", "a", "ac")):
        counts.add((i + 1) * MS, 0, "5/5", stack, 500, 2)
        counts.add((i + 1) * MS + 10, 0, "5/5", "gh")
    exits("trace: by instructions", kscope("trace", counts.write(folder), "--axis", "insns", "-o", out), 0)
    with open(out, "rb") as f:
        slices = fxt.slices(fxt.read(f.read()))
    equal("trace: by instructions, slices", [(s.name, s.begin, s.end) for s in slices],
          [("b", 0, 1000), ("c", 1500, 2000), ("a", 0, 2000)])


def test_levels(folder):
    """Each slice is on one level."""
    samples = Samples()
    samples.lines.append('comm task=5/5 name="app"')
    for i in range(20):
        samples.add((i + 1) * MS, 0, "5/5", "ab"[:i % 3], level="kernel")
        samples.lines[-1] += (" user" if samples.lines[-1][-1] != " " else "user") + " 0x2000 0x3001"
    path = samples.write(folder)
    whole = collections.Counter(shown(convert(folder, path)[2]))
    parts = [collections.Counter(shown(convert(folder, path, "--level", level)[2])) for level in ("user", "kernel")]
    equal("levels: the parts are the whole", parts[0] + parts[1], whole)
    check("levels: each has some", all(parts), parts)


def test_damage(folder):
    """The message about damage counts the samples, as with other formats."""
    path = os.path.join(GOLDEN, "perfdata-cut", "input.data")
    for to in ("folded", "perfetto"):
        exits(f"damage: {to}", kscope("convert", path, "-t", to, "-o", os.path.join(folder, to)), 1,
              "1 damaged place: 4 samples read, 0 lost")


def main():
    with scratch() as folder:
        test_damage(folder)
        test_events(folder)
        test_choice(folder)
        test_numbers(folder)
        test_refusals(folder)
        test_inputs(folder)
        test_tasks(folder)
        test_lost(folder)
        test_formats(folder)
        test_parts(folder)
        test_outputs(folder)
        test_trace(folder)
        test_levels(folder)
    finish()


if __name__ == "__main__":
    main()
