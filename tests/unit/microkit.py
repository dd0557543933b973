#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""target/microkit without an SDK: it builds against a stand-in, and its protection domains, run as processes on a kernel
that stands in for seL4, send samples of what was really running.

Nothing here depends on time: the clock is part of the stand-in.

If MICROKIT_SDK is set, the demo also runs on that SDK, in QEMU: MICROKIT_SDK=... tests/unit/microkit.py"""
import collections
import math
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, microkit, microkit_sdk, no_problems, read_folded, run, scratch, wait_for
from kit.board import Recorder
from kit.microkit import Stretch, World
from kit.wire_read import Stream, fields

SECOND = 1_000_000_000
LOOK = 50_000  # ns before a sample, at which the profiler looks at its children


def zigzag(value):
    return value >> 1 ^ -(value & 1)


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def frames_of(sample):
    """The pc and the callers of a sample."""
    address, frames = sample.pc, []
    for step in varints(dict(fields(sample.data)).get(16, b"")):
        address += zigzag(step)
        frames.append(address)
    return tuple(frames)


def field(sample, number):
    return dict(fields(sample.data)).get(number, 0)


class Stacks:
    """Stacks in the demo's programs."""

    def __init__(self, build):
        self.programs = {name: microkit.Program(os.path.join(build, f"{name}.elf"))
                         for name in ("hasher", "sorter", "load", "echo")}
        waits = microkit.waits_in(build)
        self.waits = {name: waits[f"{name}.elf"][-1] for name in self.programs}

    def at(self, name, *functions):
        """The innermost function has no frame: its caller is only in the link register."""
        program = self.programs[name]
        callers = [program.call(caller, callee) for callee, caller in zip(functions, functions[1:])]
        return {"stack": [program.symbols[functions[0]] + 8, *callers[1:]], "link": callers[0]}


def busy(world, stacks, seed):
    """Two busy programs that are interrupted by a server, at any time and for any time."""
    chance = random.Random(seed)
    where = {
        "hasher": [stacks.at("hasher", "digest", "hash_block", "init", "main"),
                   stacks.at("hasher", "mix", "hash_block", "init", "main")],
        "sorter": [stacks.at("sorter", "merge", *["sort"] * depth, "init", "main") for depth in (1, 2, 3, 4)],
        "load": [stacks.at("load", "prepare", "request", "init", "main")],
        "echo": [stacks.at("echo", "checksum", "answer", "protected", "main"),
                 stacks.at("echo", "copy", "answer", "protected", "main")],
    }
    names = [name for name in where if world.child(name).cpu == 0]
    while True:
        name = chance.choice(names)
        waits = chance.random() < 0.5 if name in ("load", "echo") else False
        for _ in range(chance.randrange(1, 4)):  # it moves on without a switch
            yield Stretch(world.child(name), chance.randrange(100_000, 2_000_000), **chance.choice(where[name]))
        yield Stretch(world.child(name), 20_000, **where[name][0], waits=stacks.waits[name] if waits else 0)
        if chance.random() < 0.1:
            for other in names:  # nothing is left to do
                yield Stretch(world.child(other), 1000, **where[other][0], waits=stacks.waits[other])
            yield Stretch(None, chance.randrange(100_000, 3_000_000))


def half(world, stacks):
    """sorter, with pauses, always at the same place."""
    at = stacks.at("sorter", "merge", "sort", "init", "main")
    while True:
        yield Stretch(world.child("sorter"), 5_000_017, **at, waits=stacks.waits["sorter"])
        yield Stretch(None, 5_000_013)


def record(world, folder, name, ns, *commands):
    """Starts, runs, stops; returns the recording."""
    for command in commands:
        equal(f"{name}: {command}: no complaint", world.command(command), b"")
    world.run(SECOND // 100)
    begin = len(world.output)
    world.command("start")
    world.run(ns)
    world.command("stop")
    path = os.path.join(folder, f"{name}.kscope")
    with open(path, "wb") as f:
        f.write(world.output[begin:])
    check(f"{name}: it says that it has stopped", world.command("status").startswith(b"stopped"))
    return path


def is_sure(moment, now):
    """Whether there was no switch, between the look and the sample, from a child that goes on later."""
    return not moment.before or now - moment.since > LOOK


def compare(name, world, path, other, least):
    """Each sample is what was running at its time. Returns how many were in doubt."""
    wrong, doubtful, unknown = [], 0, 0
    samples = Stream(path).samples
    for sample in samples:
        moment = world.moments.get((sample.cpu, sample.time))
        if moment is None:
            unknown += 1
            continue
        want = (moment.child.task, moment.stack, moment.link) if moment.child else (other, (0,), 0)
        got = (field(sample, 10), frames_of(sample), field(sample, 18))
        if got == want:
            continue
        doubtful += 1
        if is_sure(moment, sample.time):
            wrong.append(f"at {sample.time} on cpu {sample.cpu}: got {got}, want {want}")
    equal(f"{name}: samples at times when nothing interrupted", unknown, 0)
    no_problems(f"{name}: samples have the task, the pc, the callers and the link register", wrong)
    check(f"{name}: there are enough of them", len(samples) >= least, len(samples))
    check(f"{name}: few are in doubt", doubtful <= len(samples) / 50, f"{doubtful} of {len(samples)}")


def is_clean(name, world):
    equal(f"{name}: every interrupt was acknowledged",
          [domain.name for domain in world.domains.values() if domain.unacked], [])
    equal(f"{name}: no complaints", {who: text for who, text in world.errors.items() if text}, {})


def build_all(folder):
    """The Makefile builds the demo for each config. Returns the folders."""
    sdk = microkit.stand_in_sdk(folder)
    builds = {}
    for config in ("debug", "smp-debug", "profiling"):
        builds[config] = os.path.join(folder, config)
        done = microkit.make(builds[config], sdk, config)
        image = os.path.join(builds[config], "loader.img")
        if not check(f"{config}: it builds without a warning",
                     done.returncode == 0 and "warning" not in done.stderr and os.path.exists(image), done.stderr):
            finish()
        microkit.build_program(builds[config], config)
    return builds


def test_sddf(builds):
    """The files for sDDF compile, against stand-ins of its headers."""
    for name in ("link_sddf_serial", "link_sddf_net", "alarm_sddf"):
        done = microkit.compile_part(builds["debug"], name)
        check(f"{name}: it compiles without a warning", done.returncode == 0 and not done.stderr, done.stderr)


def test_timer(folder, builds):
    stacks = Stacks(builds["debug"])
    with World(builds["debug"], "demo.system", lambda world: {0: busy(world, stacks, 1)}) as world:
        path = record(world, folder, "timer", SECOND // 2, "jitter 20")
    compare("timer", world, path, len(world.children) + 1, 450)
    is_clean("timer", world)
    shown = kscope("convert", path, "-b", builds["debug"], "-t", "folded", "-o", "-", "--samples")
    folded = read_folded(shown.stdout)
    check("timer: kscope shows the names of tasks and functions, and the caller of a function without a frame",
          folded.get("hasher;main;init;hash_block;digest;work", 0) > 20 and
          folded.get("echo;main;protected;answer;checksum", 0) > 20 and
          folded.get("sorter;main;init;sort;sort;merge;work", 0) > 5, f"{shown.stderr} {folded}")


def test_short(folder, builds):
    """With a short period there is no time for a look. The samples are right if time slices are longer."""
    stacks = Stacks(builds["debug"])

    def slices(world):
        while True:
            yield Stretch(world.child("hasher"), 3_000_030, **stacks.at("hasher", "mix", "hash_block", "init", "main"))
            yield Stretch(world.child("sorter"), 1_000_040, **stacks.at("sorter", "merge", "sort", "init", "main"))

    with World(builds["debug"], "demo.system", lambda world: {0: slices(world)}) as world:
        path = record(world, folder, "short", SECOND // 20, "timer period 100")
    compare("short", world, path, len(world.children) + 1, 450)


def test_cores(folder, builds):
    stacks = Stacks(builds["smp-debug"])

    def script(world):
        return {0: busy(world, stacks, 2), 1: half(world, stacks)}

    with World(builds["smp-debug"], "demo-smp.system", script) as world:
        path = record(world, folder, "cores", SECOND // 4, "jitter 20")
        kept = record(world, folder, "one-core", SECOND // 10, "timer 0 off")
    compare("cores", world, path, len(world.children) + 1, 450)
    is_clean("cores", world)
    counts = {cpu: len(Stream(path).of_cpu(cpu)) for cpu in (0, 1)}
    check("cores: both take samples", min(counts.values()) > 225, counts)
    equal("one-core: the one with the timer can be off", {sample.cpu for sample in Stream(kept).samples}, {1})
    check("one-core: the other one goes on", len(Stream(kept).samples) > 90)


def test_counters(folder, builds):
    """A kernel with PMU faults says who was running."""
    stacks = Stacks(builds["profiling"])
    with World(builds["profiling"], "demo.system", lambda world: {0: busy(world, stacks, 3)}) as world:
        equal("counters: the children are profiled", {child.name: child.flags for child in world.children},
              {child.name: 2 for child in world.children})
        path = record(world, folder, "counters", SECOND // 2, "timer period 3000000", "event cycles period 1000003")
        profiler = world.domains["profiler"]
        equal("counters: another fault is not answered", profiler.happen(f"fault 1 {microkit.VM_FAULT} 0 0"), 0)
    compare("counters", world, path, len(world.children) + 1, 450)
    equal("counters: all are of the counter", {field(sample, 15) for sample in Stream(path).samples}, {1})
    check("counters: ... but reported", "fault of child 1" in world.errors["profiler"], world.errors)
    check("counters: what ran while nothing was profiled is there, too",
          any(field(sample, 10) == len(world.children) + 1 for sample in Stream(path).samples))


def tables_of(folder, build, change):
    """What tables.py says about a changed system description."""
    with open(os.path.join(microkit.DEMO, "demo-smp.system"), encoding="utf-8") as f:
        text = f.read()
    path = os.path.join(folder, "changed.system")
    with open(path, "w", encoding="utf-8") as f:
        f.write(change(text))
    return run(os.path.join(microkit.SOURCES, "tables.py"), path, build)


def test_tables(folder, builds):
    """Mistakes in a system description are found when it is built."""
    def says(name, old, new, words):
        done = tables_of(folder, builds["smp-debug"], lambda text: text.replace(old, new, 1))
        check(f"tables: {name}", done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr,
              done.stderr)

    equal("tables: the demo is right", tables_of(folder, builds["smp-debug"], str).returncode, 0)
    says("the region is elsewhere in one", 'vaddr="0x10000000"', 'vaddr="0x10200000"', "at the same address")
    says("a child on another core", 'id="1" priority="10"', 'id="1" cpu="1" priority="10"', "different cpus")
    says("no channel to the client", '<end pd="profiler1" id="1" />', '<end pd="echo" id="9" />', "no channel between profiler1")
    says("no channel between profilers", '<end pd="profiler1" id="0" />', '<end pd="echo" id="9" />',
         "no channel between profiler1 and profiler0")
    says("two profilers on one core", '<protection_domain name="profiler1" priority="254" cpu="1">',
         '<protection_domain name="profiler1" priority="254">', "the same cpu")


# ---- on a real SDK ----

# Stacks that do work, without their tasks.
WORK = {
    "digest": ["hasher;main;init;hash_block;digest"],
    "mix": ["hasher;main;init;hash_block;mix"],
    "merge": [f"sorter;main;init;{';'.join(['sort'] * depth)};merge" for depth in (1, 2, 3, 4)],
    "prepare": ["load;main;init;request;prepare"],
    "checksum": ["echo;main;handler_loop;protected;answer;checksum"],
    "copy": ["echo;main;handler_loop;protected;answer;copy"],
}


def off_by(samples, units, sigmas):
    """Functions that do not have their share of the samples, by so many standard deviations."""
    total, work = sum(samples.values()), sum(units.values())
    for function, n in units.items():
        share = n / work
        off = (samples[function] - total * share) / math.sqrt(total * share * (1 - share))
        if abs(off) > sigmas:
            yield f"{function}: {samples[function]} of {total}, {100 * share:.2f} % of the work, {off:+.1f} sigma"


def by_function(name, folded):
    """Samples of the functions that work. They are seen only with all their callers, also those without a frame."""
    samples, cut = collections.Counter(), collections.Counter()
    for stack, n in folded.items():
        stack = stack.removesuffix(";work")
        function = stack.rpartition(";")[2]
        if function in WORK:
            (samples if stack in WORK[function] else cut)[function] += n
    check(f"{name}: stacks are whole", sum(cut.values()) <= sum(samples.values()) / 500, f"{cut} of {samples}")
    return samples


def record_board(folder, name, board, commands, size):
    """Records until there are so many bytes. Returns the recorder, and the work that was done meanwhile."""
    wait_for(board.has_started)
    recorder = Recorder(folder, "tcp", f"127.0.0.1:{board.port}", "-f", "kscope", "-o", f"{name}.kscope",
                        "--start-with", commands + "start\\n")
    recorder.has(f"{name}.kscope", 4096)
    before = board.counts()
    recorder.has(f"{name}.kscope", size)
    after = board.counts()
    recorder.interrupt().end()
    return recorder, {function: after[function] - before[function] for function in before}


def test_board(folder, sdk, config):
    name, build = f"SDK, {config}", os.path.join(folder, f"sdk-{config}")
    done = microkit.make(build, sdk, config, "CFLAGS=-O2 -g")
    if not check(f"{name}: it builds", done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]):
        return
    smp, counters = config.startswith("smp-"), config == "profiling"
    options = [] if smp else ["-icount", "shift=2"]  # on several cores, -icount takes ages to boot
    commands = "timer period 1000000\\nevent cycles period 1000003\\n" if counters else ""
    with microkit_sdk.Board(build, microkit_sdk.cores(sdk, config), *options) as board:
        recorder, units = record_board(folder, config, board, "jitter 20\\n" + commands, 40_000 if smp else 300_000)
    exits(f"{name}: it is recorded", recorder, 0, " 0 lost")
    path = recorder.path(f"{config}.kscope")
    shown = kscope("convert", path, "-b", build, "-t", "folded", "-o", "-", "--samples",
                   *(["--event", "cycles"] if counters else []))
    samples = by_function(name, read_folded(shown.stdout))
    print(f"# {name}: samples {dict(samples)}, work {units}", flush=True)
    if smp:
        equal(f"{name}: each core has its tasks", {field(s, 10): s.cpu for s in Stream(path).samples if field(s, 10) < 6},
              {2: 0, 3: 0, 4: 0, 5: 1} | ({1: 0} if any(field(s, 10) == 1 for s in Stream(path).samples) else {}))
    else:
        no_problems(f"{name}: shares", list(off_by(samples, units, 6)))


def main():
    with scratch() as folder:
        builds = build_all(folder)
        test_sddf(builds)
        test_timer(folder, builds)
        test_short(folder, builds)
        test_cores(folder, builds)
        test_counters(folder, builds)
        test_tables(folder, builds)
        sdk = os.environ.get("MICROKIT_SDK")
        for config in microkit_sdk.configs(sdk) if sdk else []:
            test_board(folder, sdk, config)
    finish()


if __name__ == "__main__":
    main()
