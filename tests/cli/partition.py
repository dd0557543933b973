#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Selections by time, cpu, process or level divide a recording into parts that add up to the whole,
stack by stack. The recordings are random: samples, traced branches, allocations or calls."""
import collections
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, scratch

SECOND = 10**9
EVENTS = 4000
PARTS = {
    "time": [["--time", ",0.1"], ["--time", "0.1,0.25"], ["--time", "0.25,0.250000001"],
             ["--time", "0.250000001,0.7"], ["--time", "0.7,"]],
    "cpu": [["--cpu", "0"], ["--cpu", "1,3"], ["--cpu", "2"]],
    "pid": [["--pid", "1"], ["--pid", "2-3"]],
    "level": [["--level", "user"], ["--level", "kernel"]],
    "pid and time": [["--pid", pid, "--time", time] for pid in ("1", "2-3")
                     for time in (",0.4", "0.4,")],
}


class Recording:
    """Events in the text form that kscope reads, in the order of time."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = ["kscope-dump 1"] + [
            f'map task={pid}/{pid} addr=0x0 len=0x100000 offset=0x0 prot=r-x path="/none/app{pid}"'
            for pid in (1, 2, 3)] + [
            'map kernel addr=0x0 len=0x100000 offset=0x0 prot=r-x path="/none/kernel"']
        self.times = sorted(self.random.randrange(SECOND) for _ in range(EVENTS))
        self.times[EVENTS // 4] = SECOND // 4  # on the border of two parts
        self.times.sort()

    def add(self, kind, time, text):
        cpu = self.random.randrange(4)
        self.lines.append(f"{kind} time=0.{time:09} cpu={cpu} {text}")

    def write(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")
        return path

    def chain(self):
        level = self.random.choice(["user", "kernel"])
        return f": {level} " + " ".join(f"0x{self.random.randrange(1, 9)}000"
                                        for _ in range(self.random.randrange(1, 6)))


def samples():
    r = Recording(1)
    r.lines.append('source id=1 name="cycles" type=0 config=0x0')
    for time in r.times:
        pid = r.random.randrange(1, 4)
        r.add("sample", time, f"task={pid}/{pid} source=1 weight={r.random.randrange(99)} {r.chain()}")
    return r


def allocs():
    """Any process frees a block at any time; some blocks are never freed."""
    r = Recording(2)
    live = []
    for time in r.times:
        pid = r.random.randrange(1, 4)
        task = f"task={pid}/{pid}"
        if live and r.random.random() < 0.4:
            ptr = live.pop(r.random.randrange(len(live)))
            r.add("alloc", time, f'{task} free by="kmalloc" ptr={ptr:#x} size=0 at=0 {r.chain()}')
            continue
        ptr = 0x10000 + 64 * len(r.lines)
        live.append(ptr)
        r.add("alloc", time, f'{task} new by="kmalloc" ptr={ptr:#x} '
                             f"size={r.random.randrange(1, 500)} at=0 {r.chain()}")
    return r


def calls():
    r = Recording(3)
    stacks = collections.defaultdict(list)
    for time in r.times:
        pid, cpu = r.random.randrange(1, 4), r.random.randrange(4)
        stack = stacks[pid, cpu]
        if stack and r.random.random() < 0.5:
            word = f"leave function={stack.pop()}"
        else:
            stack.append(f"0x{r.random.randrange(1, 9)}000")
            word = f"enter function={stack[-1]}"
        level = "user" if pid == 1 else "kernel"
        r.lines.append(f"call time=0.{time:09} cpu={cpu} task={pid}/{pid} {word} caller=0x0 {level}")
    return r


class Cpu:
    """A traced cpu that runs only one process."""

    def __init__(self, number):
        self.pid = number % 3 + 1
        self.level = "user" if self.pid == 1 else "kernel"
        self.pc, self.sp, self.stack = 0x1000, 0x100000 * (number + 1), []

    def step(self, rng):
        source = self.pc + rng.randrange(4, 64)
        if self.stack and rng.random() < 0.45:
            kind, self.pc, more = "return", self.stack.pop(), ""
            self.sp += 16
        else:
            kind, self.pc = "call", 0x1000 * rng.randrange(1, 9)
            more = f" next={source + 4:#x}"
            self.stack.append(source + 4)
            self.sp -= 16
        return (f"{kind} from={source:#x} to={self.pc:#x}{more} sp={self.sp:#x} "
                f"space={self.pid:#x} instructions={rng.randrange(1, 50)} {self.level}")


def trace():
    r = Recording(4)
    cpus = [Cpu(i) for i in range(4)]
    for i, cpu in enumerate(cpus):
        r.lines.append(f"branch time=0.000000000 cpu={i} task={cpu.pid}/{cpu.pid} begin to=0x1000 "
                       f"sp={cpu.sp:#x} space={cpu.pid:#x} instructions=0 {cpu.level}")
    for time in r.times:
        i = r.random.randrange(4)
        cpu = cpus[i]
        r.lines.append(f"branch time=0.{time:09} cpu={i} task={cpu.pid}/{cpu.pid} "
                       f"{cpu.step(r.random)}")
    return r


def folded(name, path, *words):
    done = kscope("convert", path, "-t", "folded", "-o", "-", "--root", "pid", "--weight", *words)
    check(f"{name}: converts", done.returncode == 0, done.stderr)
    stacks = collections.Counter()
    for line in done.stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[stack] += int(count)
    return +stacks


def test_parts(name, path, *words):
    whole = folded(name, path, *words)
    check(f"{name}: there is something to divide", len(whole) > 100, len(whole))
    for what, parts in PARTS.items():
        results = [folded(f"{name} {' '.join(part)}", path, *words, *part) for part in parts]
        total = sum(results, collections.Counter())
        check(f"{name}: no part is everything, by {what}", all(p != whole for p in results))
        check(f"{name}: the parts add up to the whole, by {what}", total == whole,
              f"{sum(total.values())} of {sum(whole.values())}")


def in_text(path, *words):
    """The selected events in the dump."""
    done = kscope("convert", path, "-t", "dump", "-o", "-", *words)
    return sorted(line for line in done.stdout.splitlines()[1:] if line.startswith(("sample", "alloc", "call", "branch")))


with scratch() as folder:
    for make in (samples, allocs, calls, trace):
        name = make.__name__
        file = make().write(os.path.join(folder, name + ".dump"))
        for more in ([], ["--value", "total"]) if make is allocs else ([],):
            test_parts(" ".join([name, *more[1:]]), file, *more)
        for what, parts in PARTS.items():
            equal(f"{name}: the dumps of the parts have every event once, by {what}",
                  sorted(line for part in parts for line in in_text(file, *part)), in_text(file))
    done = kscope("alloc", os.path.join(folder, "allocs.dump"), "--time", "0.5,", "--json")
    check("blocks from before the selection are no unknown frees",
          '"unknown_frees":0' in done.stdout.replace(" ", ""), done.stdout[:500])
finish()
