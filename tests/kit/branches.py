# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a dump of branches, as a trace has them:

    trace = branches.Trace(["main", "leaf"])
    trace.begin(1000, 0, 5, "main")  # time in ns (None: unknown), cpu, pid, function
    trace.call(1003, 0, 5, "main", "leaf")
    trace.leave(1005, 0, 5, "leaf", "main")
    trace.end(1007, 0, 5, "main")
    trace.text()

Functions are in the kernel, 4096 bytes each. A begin is on a stack of its own, unless one is given.
"""
import re

CODE, SIZE, STACKS = 0xffff800000000000, 0x1000, 0xffff900000000000
STACK = 0x10000


def quoted(text):
    """A string of the dump format."""
    return '"' + re.sub(r'[\0-\x1f\x7f"\\]', lambda found: f"\\u{ord(found[0]):04x}", text) + '"'


class Trace:
    def __init__(self, functions):
        self.addresses = {name: CODE + SIZE * i for i, name in enumerate(functions)}
        self.stacks = 0
        self.lines = ["kscope-dump 1", 'meta key="arch" value="x86_64"',
                      f"map task=1/1 addr={CODE:#x} len={SIZE * len(functions):#x} offset=0x0 prot=r-x "
                      'kernel path="[kernel.kallsyms]"']
        for name, address in self.addresses.items():
            self.lines.append(f"symbol task=1/1 addr={address:#x} len={SIZE:#x} name={quoted(name)}")

    def branch(self, time, cpu, pid, words):
        place = "" if time is None else f"time={time // 10**9}.{time % 10**9:09} "
        place += "" if cpu is None else f"cpu={cpu} "
        place += "" if pid is None else f"task={pid}/{pid} "
        self.lines.append(f"branch {place}{words} kernel")

    def at(self, name, offset=0):
        return hex(self.addresses[name] + offset)

    def begin(self, time, cpu, pid, name, stack=None):
        if stack is None:
            self.stacks += 1
            stack = self.stacks
        self.branch(time, cpu, pid,
                    f"begin to={self.at(name)} sp={STACKS + STACK * stack:#x} instructions=0")

    def call(self, time, cpu, pid, caller, name, instructions=3):
        self.branch(time, cpu, pid, f"call from={self.at(caller, 4)} to={self.at(name)} "
                    f"next={self.at(caller, 9)} down=8 pushed=8 instructions={instructions}")

    def leave(self, time, cpu, pid, name, caller, instructions=3):
        self.branch(time, cpu, pid, f"return from={self.at(name, 4)} to={self.at(caller, 9)} up=8 "
                    f"instructions={instructions}")

    def end(self, time, cpu, pid, name, over=False):
        """over: the kernel returned to a program, which is not traced."""
        self.branch(time, cpu, pid, f"end from={self.at(name, 12)} {'over ' * over}instructions=1")

    def comm(self, pid, name):
        self.lines.append(f"comm task={pid}/{pid} name={quoted(name)}")

    def text(self):
        return "\n".join(self.lines) + "\n"


def late_callers():
    """Stacks of one thread, one after the other, whose first callers turn up only when their callees return."""
    trace = Trace(["main", "leaf", "other", "outer"])
    for i in range(4):
        time = 10**9 + 1000 * i
        trace.begin(time, 0, 5, "leaf")
        trace.leave(time + 100, 0, 5, "leaf", "main")
        trace.call(time + 150, 0, 5, "main", "other")
        trace.leave(time + 200 + i, 0, 5, "other", "main")
        trace.leave(time + 250, 0, 5, "main", "outer")
        trace.end(time + 300 + 3 * i, 0, 5, "outer", over=True)
    return trace


def odd_calls(start, pids):
    """Tasks on two cpus, with recursion, odd names, calls of no length and gaps."""
    odd = ['say "hi" <b>\\', "new\nline", "\u00e9\u20ac \U0001f600", "x" * 10000, "\x1b[31m"]
    trace = Trace(["main", "work", *odd])
    for i in range(60):
        time, cpu, pid = start + 1000 * i + 1, i % 2, pids[i % len(pids)]
        name = odd[i % len(odd)]
        trace.begin(time, cpu, pid, "main")
        for j, (caller, callee) in enumerate([("main", "work"), ("work", name), (name, "work")]):
            trace.call(time + 10 + 20 * j + (i if j else 0), cpu, pid, caller, callee)
        trace.leave(time + (55 if i % 5 else 50) + i, cpu, pid, "work", name)
        trace.leave(time + (55 if i % 4 else 60) + i, cpu, pid, name, "work")
        trace.leave(time + 200, cpu, pid, "work", "main")
        trace.end(time + 300, cpu, pid, "main")
    return trace
