#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams of version 5, which describe events, tasks and binaries: as files and as pipes, with and without binaries."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, fxt, kscope, run, scratch, wire_read
from kit.wire_write import Target, answer, chunk, content, counter, event, map_, number, sample, task

KERNEL, USER = 0xffff000000080000, 0x400000
TIMER = event(0, "timer", 1, 0, unit="ns", frequency=1000)
CYCLES = event(1, "cycles", 0, 0, 1000)


def at(time, task_=1, pc=KERNEL, **more):
    more.setdefault("frames", [pc, pc + 64])
    return sample(time, pc, space=0, task=task_, weight=10, **more)


def write(folder, data, name="a.kscope"):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def build(folder, name, base, *functions):
    """An ELF whose functions have 64 bytes each, from `base` on."""
    source, path = os.path.join(folder, "source.s"), os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(source, "w", encoding="ascii") as f:
        f.write(".text\n" + "".join(f".globl {one}\n.type {one}, %function\n{one}:\n.skip 64\n.size {one}, 64\n"
                                    for one in functions))
    done = run("clang", "--target=aarch64-linux-gnu", "-nostdlib", "-fuse-ld=lld", "-static", f"-Wl,-Ttext={base:#x}",
               f"-Wl,-e,{functions[0]}", "-o", path, source)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return path


def folded(*words, **more):
    done = kscope("convert", "-t", "folded", "-o", "-", *words, **more)
    return sorted(done.stdout.splitlines()), done.stderr


def test_decoder(folder):
    """The decoder that was written from wire/README.md finds what the writer wrote, and kscope the same."""
    stream = Target()
    stream.describe(TIMER, CYCLES, task(1, "init"), task(2, "worker", process=1), map_("kernel.elf"), answer("started"))
    stream.put(counter(50, 1, 1000), at(100, frames=[KERNEL, KERNEL - 5, 1 << 63, 7]), counter(200, 1, 2000), samples=1)
    stream.take(at(100, 2, event=1, link=77, user_frames=1), cpu=1)
    path = write(folder, stream.end())
    read = wire_read.Stream(path)
    equal("decoder: no faults", read.faults(), "")
    equal("decoder: frames", read.samples[0].frames, [KERNEL, KERNEL - 5, 1 << 63, 7])
    equal("decoder: the other fields", [(one.task, one.event, one.link, one.user_frames) for one in read.samples],
          [(1, 0, 0, 0), (2, 1, 77, 1)])
    equal("decoder: tasks", read.tasks, {1: (1, "init", 0), 2: (1, "worker", 0)})
    equal("decoder: events", {n: one[2] for n, one in read.events.items()}, {0: b"timer", 1: b"cycles"})
    equal("decoder: maps and answers", (list(read.maps), read.answers), ([(0, 0, "kernel.elf")], ["started"]))
    equal("decoder: counters", read.counters, [(0, 1, 50, 1000), (0, 1, 200, 2000)])
    dump = kscope("convert", "-t", "dump", "-o", "-", path).stdout
    check("kscope finds the same frames", f" : kernel {KERNEL:#x} {KERNEL - 5:#x} 0x8000000000000000 0x7\n" in dump, dump)


def test_pipe(folder):
    """In a pipe, the descriptions come after the first samples, which are already out."""
    stream = Target()
    stream.take(at(100), at(110, 2, event=1), at(120, 3, event=2))
    stream.put(number(10, 1000), cpu=None)
    stream.describe(TIMER, CYCLES, event(2, "misses", 0, 3), task(1, "init"), task(2, "worker", process=2), map_("kernel.elf"))
    stream.take(at(2000), at(2010, 2, event=1), at(2020, 3, event=2))
    data = stream.end()
    for name, words, more in (("file", [write(folder, data)], {}), ("pipe", ["-"], {"input": data})):
        done = kscope("info", "--json", *words, **more)
        events = {one["name"]: one["samples"] for one in json.loads(done.stdout)["events"]}
        equal(f"{name}: all samples have the names of their events", events, {"timer": 2, "cycles": 2, "misses": 2})
        equal(f"{name}: no messages", done.stderr, "")
        stacks, _ = folded("-e", "cycles", *words, **more)
        equal(f"{name}: all samples have the names of their tasks", [line.split(";")[0] for line in stacks],
              ["worker"] * len(stacks))


def test_again(folder):
    """Descriptions that come again and again do not become events."""
    stream, everything = Target(), [TIMER, CYCLES, *[task(n, f"task-{n}") for n in range(1, 50)], map_("kernel.elf"),
                                    *[map_(f"{n}.elf", n, USER, 4096) for n in range(1, 50)]]
    for n in range(20):
        stream.describe(*everything).take(at(100 * n + 1)).put(number(10, 100 * n + 50), cpu=None)
    data = stream.end()
    for name, words, more in (("file", [write(folder, data)], {}), ("pipe", ["-"], {"input": data})):
        lines = kscope("convert", "-t", "dump", "-o", "-", *words, **more).stdout.splitlines()
        kinds = [line.split()[0] for line in lines]
        equal(f"again, {name}", {kind: kinds.count(kind) for kind in ("source", "comm", "map", "sample")},
              {"source": 2, "comm": 49, "map": 50, "sample": 20})


def test_too_many(folder):
    stream = Target()
    for first in range(1, (1 << 20) + 1, 1 << 16):
        stream.describe(*[content(15, number(1, n)) for n in range(first, first + (1 << 16))])
    stream.describe(TIMER, task((1 << 20) + 1, "one too many"), task((1 << 20) + 2, "another"), task(5, "known"))
    stream.take(at(100), at(200, (1 << 20) + 1), at(300, 5))
    path = write(folder, stream.end())
    done = kscope("convert", "-t", "folded", "-o", "-", path)
    check("too many tasks: one message", done.stderr.count("too many tasks") == 1, done.stderr)
    equal("too many tasks: samples keep their numbers", sorted(line.split(";")[0] for line in done.stdout.splitlines()),
          ["known", "pid 1", f"pid {(1 << 20) + 1}"])


def test_binaries(folder):
    kernel = build(folder, "boot/kernel.elf", KERNEL, "vectors", "syscall")
    shell = build(folder, "bin/shell.elf", USER, "_start", "main")
    here = os.path.join(folder, "empty")
    os.makedirs(here, exist_ok=True)
    frames = [KERNEL + 4, KERNEL + 70, USER + 68, USER + 8]
    stream = Target()
    stream.describe(TIMER, task(3, "shell"), map_("/boot/kernel.elf"), map_("/bin/shell.elf", 3))
    path = write(folder, stream.take(at(100, 3, frames[0], frames=frames, user_frames=2)).end())
    want = ["shell;_start;main;syscall;vectors 10"]
    for name, words in (("symfs", ["--symfs", folder]), ("build-dir", ["--build-dir", f"{folder}/bin", "-k", kernel]),
                        ("elf", ["--elf", shell, "--elf", kernel]), ("elf of a process", ["--elf", f"3={shell}", "-k", kernel])):
        equal(name, folded(path, *words, cwd=here), (want, ""))
    stream = Target()
    stream.describe(TIMER, task(3, "shell"), map_(kernel), map_(shell, 3))
    other = write(folder, stream.take(at(100, 3, frames[0], frames=frames, user_frames=2)).end(), "paths.kscope")
    equal("the path itself", folded(other, cwd=here), (want, ""))
    stream = Target(arch="x86_64")
    stream.describe(TIMER, task(3, "shell"), map_(kernel), map_(shell, 3, USER, 4096, 0x10000))
    wrong = write(folder, stream.take(at(100, 3, frames[0], frames=frames, user_frames=2)).end(), "wrong.kscope")
    check("not the file of another machine", "main" not in str(folded(wrong, cwd=here)), folded(wrong, cwd=here))
    stream = Target()
    stream.describe(TIMER, task(3, "shell"))
    bare = write(folder, stream.take(at(100, 3, frames[0], frames=frames, user_frames=2)).end(), "bare.kscope")
    equal("no maps: by the name of the task", folded(bare, "--elf", shell, "-k", kernel, cwd=here), (want, ""))
    equal("no maps: by the number of the process", folded(bare, "--elf", f"3={shell}", "-k", kernel, cwd=here), (want, ""))
    archive = os.path.join(folder, "a.kscopez")
    done = kscope("archive", path, "--symfs", folder, "-o", archive)
    equal("archive", (done.returncode, folded(archive, cwd=here)), (0, (want, "")))


def test_counters(folder):
    stream = Target()
    stream.describe(TIMER, CYCLES)
    for cpu in range(2):
        for n in range(1, 6):
            stream.put(counter(1000 * n, 1, (1000 + cpu) * n), at(1000 * n, event=1), cpu=cpu, samples=1)
    path = write(folder, stream.end())
    done = kscope("info", "--json", path)
    equal("counters in info", [one.get("counted") for one in json.loads(done.stdout)["events"]], [None, 5000 + 5005])
    check("counters in info, as text", "10005 counted\n" in kscope("info", path).stdout)
    out = os.path.join(folder, "a.fxt")
    kscope("convert", path, "-o", out)
    with open(out, "rb") as f:
        trace = fxt.read(f.read())
    equal("counters in a timeline", [(one.time, one.name, one.args) for one in trace.counters if one.name == "cpu 1 cycles"],
          [(1000 * n, "cpu 1 cycles", {"counted": 1001 * n}) for n in range(1, 6)])
    stream = Target().describe(event(0, "instructions", 0, 1, 1000))
    stream.put(*[counter(1000 * n, 0, 1000 * n) for n in range(3)], *[at(1000 * n) for n in range(3)], samples=3)
    insns = write(folder, stream.end(), "insns.kscope")
    for axis, want in (("time", 3), ("insns", 0)):
        exits(f"axis {axis}", kscope("trace", insns, "-o", out, "--axis", axis), 0)
        with open(out, "rb") as f:
            equal(f"counters on an axis of {axis}", len(fxt.read(f.read()).counters), want)
    dump = kscope("convert", path, "-t", "dump", "-o", "-", "--cpu", "1", "--time", "0.000002,0.000004").stdout
    equal("counters are selected by cpu and time", [line for line in dump.splitlines() if line.startswith("counter")],
          [f"counter time=0.00000{n}000 cpu=1 source=2 value={1001 * n}" for n in (2, 3)])


def test_text(folder):
    """A boot log and answers are lines around the stream."""
    stream = Target().describe(TIMER, task(1, "init")).take(at(100)).end()
    for name, data in (("before", b"boot\r\n\x1b[1mready\x1b[0m\n" * 100 + stream), ("after", stream + b"stopped\r\n" * 5000),
                       ("both", b"ok\n" + stream + b"ok\n"), ("less than a head", b"\n" + stream + b"!")):
        path = write(folder, data)
        equal(f"text {name}: the decoder", wire_read.Stream(path).faults(), "")
        for words, more in (([path], {}), (["-"], {"input": data})):
            done = kscope("info", *words, **more)
            equal(f"text {name}: no damage", (done.returncode, done.stderr), (0, ""))
            check(f"text {name}: all is read", "init" in done.stdout and "timer" in done.stdout, done.stdout)
    for name, data in (("inside", stream[:-40] + b"hello" + stream[-40:]), ("no text", stream + b"\x01\x02"),
                       ("an old version", chunk() + stream[:0] + b"hello")):
        done = kscope("info", "-f", "kscope", write(folder, data))
        check(f"{name}: damage", done.returncode and "damaged place" in done.stderr, done.stderr)
    newer = chunk(content(5, number(1, 6)), checked=True)
    done = kscope("info", write(folder, newer))
    check("a later version", "has version 6, but this kscope reads only versions up to 5" in done.stderr, done.stderr)


def test_noise(folder):
    """A byte of noise before the stream costs nothing but itself, also in a pipe."""
    stream = Target().describe(TIMER, task(1, "init")).take(at(100)).end()
    for words, more in (([write(folder, b"boot\n\0" + stream)], {}), (["-"], {"input": b"boot\n\0" + stream})):
        done = kscope("info", "-f", "kscope", *words, **more)
        check("noise before a stream", "init" in done.stdout and "timer" in done.stdout, done.stdout + done.stderr)


def test_wrong_events():
    """Numbers of events without a bound, in a pipe whose info is lost."""
    for number_ in ((1 << 64) - 1, 1 << 33, 4096):
        data = (chunk(at(10, event=number_), cpu=0, checked=True) +
                chunk(TIMER, task(1, "a"), checked=True) + chunk(at(20), cpu=0, sequence=1, checked=True))
        done = kscope("info", "-f", "kscope", "--kernel", "/bin/true", "-", input=data)
        check(f"event {number_}", done.returncode == 1 and "cannot read this record" in done.stderr,
              f"{done.returncode} {done.stderr}")


def counted(*paths):
    found = re.search(r"(\d+) counted", kscope("info", *paths).stdout)
    return int(found[1]) if found else None


def test_counted(folder):
    """Counters of several recordings, and of a target that starts again, add up."""
    def stream(start, *values):
        one = Target(start=start).describe(event(0, "cycles"))
        for n, value in enumerate(values):
            one.put(at(1000 * start + 10 * n), counter(1000 * start + 10 * n, 0, value), samples=1)
        return one.end()
    first, second = stream(1, 1001, 1005), stream(2, 101, 105)
    paths = [write(folder, data, f"{n}.kscope") for n, data in enumerate((first, second, first + second, second + first))]
    equal("counted by one", [counted(path) for path in paths[:2]], [1005, 105])
    equal("counted by two", counted(*paths[:2]), 1110)
    equal("counted before and after a restart", [counted(path) for path in paths[2:]], [1110, 1110])


with scratch() as SCRATCH:
    for TEST in (test_decoder, test_pipe, test_again, test_too_many, test_binaries, test_counters, test_text, test_noise,
                 test_counted):
        TEST(SCRATCH)
    test_wrong_events()
finish()
