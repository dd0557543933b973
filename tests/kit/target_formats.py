# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler of target/ in a made-up kernel (tests/tools/target_formats_host.c), what it samples, and what the formats
of seL4 and Akaros make of that."""
import collections
import os
import random
import subprocess

from . import BUILD, ELFS, HANGS, kpdata, run, sel4
from .streams import Sample

HOST = os.path.join(BUILD, "tests", "target_formats_host")
CPUS = 4
NO_LIMIT = (1 << 64) - 1
LONGEST = 99  # bytes of a message of seL4: its length has two digits

# id, process, since, name. Two threads of a process, a process of its own, one of the kernel, one with a large number.
TASKS = [(1, 0, 0, "hasher"), (2, 1, 5000, "hasher-2"), (7, 7, 0, "sorter"), (9, 0, 0, "idle"),
         (0xfffffff0, 0, 0, "last")]
# process, address, size, offset, since, path
MAPS = [(0, 0, 0, 0, 0, "/boot/echo.elf"), (1, 0x210000, 0x3000, 0x10000, 0, "/bin/hasher.elf"),
        (1, 0x7f0000000000, 0x1000, 0, 4000, "/lib/libhash.so"),
        (7, 0x210000, 0x2000, 0x10000, 0, "/bin/sorter.elf"), (9, 0, 0, 0, 0, "/boot/echo.elf")]
# What MAPPINGS says: one binary for each pid; tasks without one run in the kernel's. The last line has no end.
MAPPINGS = ("echo.elf: 0\nhasher.elf: 1\nsorter.elf: 7\necho.elf: 9\necho.elf: 4294967280").encode()
NAMES = ("--build-dir", ELFS)

Taken = collections.namedtuple("Taken", "time cpu event weight task user ips user_ips")


def kernel():
    """Steps of a script: the tasks and maps."""
    return ([f"task {id_} {process} {since} {name}" for id_, process, since, name in TASKS] +
            [f"map {process} {address:x} {size:x} {offset:x} {since} {path}"
             for process, address, size, offset, since, path in MAPS])


def step(taken):
    """Steps of a script: a sample."""
    frames = " ".join(f"{ip:x}" for ip in taken.ips)
    if taken.user_ips:
        frames += " / " + " ".join(f"{ip:x}" for ip in taken.user_ips)
    return (f"time {taken.time}\nsample {taken.cpu} {taken.event} {taken.weight} {taken.task} "
            f"{'u' if taken.user else 'k'} {frames}")


def addresses(rng, user, nr):
    """In one of several parts of memory: their varints have 3 to 10 bytes."""
    base, size = rng.choice([(0x210000, 1 << 12), (0x10000000, 1 << 24), (0x7f0000000000, 1 << 30)] if user else
                            [(0xffffffff81000000, 1 << 24), (0xffff800000080000, 1 << 20)])
    return tuple(base + 4 * rng.randrange(1, size) for _ in range(nr))


def take(nr, seed=1, first=1000000, depths=(1, 2, 3, 5, 9, 16, 17, 18, 40, 127), events=(0,), task=None):
    """Samples in the order of time."""
    rng, time, found = random.Random(seed), first, []
    for _ in range(nr):
        time += rng.randrange(1, 200000)
        user, depth = rng.random() < 0.5, rng.choice(depths)
        inner = depth if user or depth == 1 else rng.randrange(1, depth + 1)
        found.append(Taken(time, rng.randrange(CPUS), rng.choice(events), rng.choice((1, 1000000, 1 << 40)),
                           rng.choice([0] + [row[0] for row in TASKS]) if task is None else task, user,
                           addresses(rng, user, inner), addresses(rng, True, depth - inner)))
    return found


def process_of(task):
    return next((process for id_, process, *_ in TASKS if id_ == task and process), task)


def as_sel4(taken):
    """As many callers as fit; the stack is in one piece."""
    ip, *callers = taken.ips + taken.user_ips
    callers = callers[:sel4.DEPTH]
    head = {"ip": ip, "pid": process_of(taken.task), "time": taken.time, "cpu": taken.cpu,
            "period": taken.weight}
    while len(sel4.message(ips=callers, **head)) > LONGEST:
        callers.pop()
    return Sample(taken.time, taken.cpu, head["pid"], taken.weight, (ip, *callers))


def sel4_message(sample):
    return sel4.message(sample.ips[0], sample.task, sample.time, sample.cpu, sample.weight, sample.ips[1:])


def as_kpdata(taken, info=kpdata.TIMER_1MS):
    """The record: either the kernel's part of the stack, or all of a user's."""
    pid = process_of(taken.task) if taken.task else kpdata.NO_PID
    if taken.user:
        return kpdata.user(3, taken.time, pid, taken.cpu, taken.ips, info=info)
    return kpdata.kernel(3, taken.time, taken.cpu, taken.ips, pid=pid, info=info)


def kpdata_head():
    """The descriptions: maps of processes, then processes."""
    return ([kpdata.mapping(since, process, address, size, offset, path)
             for process, address, size, offset, since, path in MAPS if process and size] +
            [kpdata.process(since, id_, name) for id_, process, since, name in TASKS if process in (0, id_)])


def play(*steps):
    """Runs a script. Returns the stream, and the commands that the kernel got."""
    done = run(HOST, input="\n".join(steps).encode(), binary=True)
    text = done.stderr.decode()
    if done.returncode:
        raise RuntimeError(text)
    return done.stdout, text


class Target:
    """The same at the end of a TCP connection. `log` has the commands that the kernel got."""

    def __init__(self, folder, *steps):
        self.log = os.path.join(folder, "target.log")
        self.script = os.path.join(folder, "target.script")
        with open(self.script, "w", encoding="ascii") as f:
            f.write("\n".join(steps))

    def __enter__(self):
        with open(self.script, "rb") as script, open(self.log, "wb") as log:
            self.process = subprocess.Popen([HOST, "tcp"], stdin=script, stdout=subprocess.PIPE, stderr=log)
        self.port = int(self.process.stdout.readline())
        self.address = f"127.0.0.1:{self.port}"
        return self

    def __exit__(self, *what):
        if what[0]:
            self.process.kill()
        self.end()

    def end(self):
        """Its exit code."""
        try:
            return self.process.wait(HANGS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process.stdout.close()

    @property
    def told(self):
        with open(self.log, encoding="ascii") as f:
            return f.read()
