# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams of samples that a test knows: every sample is different. A stream is a list of pieces, the
messages of its format. Faults make another list of it; the same seed makes the same fault."""
import collections
import os
import random
import re

from . import ELFS, kpdata, sel4
from .wire_write import chunk, end, info, round_, sample

Sample = collections.namedtuple("Sample", "time cpu task weight ips")
TASKS = (1, 2)
KERNEL = 0xffffffff81000000
# The binaries of the tasks: without them, kscope would report samples without names.
NAMES = [word for task in TASKS
         for word in ("--elf", f"{task}={os.path.join(ELFS, 'hasher.elf')}")]


def take(nr, seed=1, first=1000000, base=0x210000, cpus=2, depth=6):
    """Samples in the order of time. Times of one run stay below 2^32: seL4's clock has 32 bits."""
    rng = random.Random(seed)
    time, found = first, []
    for _ in range(nr):
        time += rng.randrange(1, 200000)
        ips = tuple(base + 4 * rng.randrange(1, 1 << 24) for _ in range(rng.randrange(1, depth + 1)))
        found.append(Sample(time, rng.randrange(cpus), rng.choice(TASKS),
                            1000 * rng.randrange(1, 60), ips))
    return found


def sel4_pb(samples, generation=2):
    return [sel4.frame(sel4.message(s.ips[0], s.task, s.time, s.cpu, s.weight, s.ips[1:], generation))
            for s in samples]


def sel4_serial(samples):
    return [sel4.text(s.ips[0], s.task, s.time, s.cpu, s.weight, len(s.ips) - 1,
                      sel4.padded(s.ips[1:])).encode() for s in samples]


def kpdata_v3(samples):
    starts = [kpdata.start(task, "/bin/app", time=1000 + task) for task in TASKS]
    return starts + [kpdata.user(3, s.time, s.task, s.cpu, list(s.ips), info=1 << 60 | s.weight // 1000)
                     for s in samples]


class Wire:
    """Our own stream. Each chunk has a few samples of one cpu, and the rounds follow the time. `checked`:
    chunks have checksums. `start`: when the target began, by which a target that starts over is known."""

    def __init__(self, cpus=2, kernel="", per_round=20, checked=False, start=0):
        self.cpus, self.per_round = cpus, per_round
        self.about = {"kernel": kernel, "start": start, "version": 4 if checked else 1}
        self.more = {"checked": checked}
        self.sequence, self.sent = [0] * cpus, [0] * cpus

    def head(self):
        return [chunk(info(cpus=self.cpus, **self.about), **self.more)]

    def body(self, samples):
        pieces = []
        for at in range(0, len(samples), self.per_round):
            some = samples[at:at + self.per_round]
            for cpu in range(self.cpus):
                own = [s for s in some if s.cpu == cpu]
                if own:
                    pieces.append(self.chunk(cpu, own))
            pieces.append(round_(some[-1].time + 1, **self.more))
        return pieces

    def chunk(self, cpu, samples):
        records = [sample(s.time, s.ips[0], weight=s.weight, chain=s.ips, task=s.task) for s in samples]
        self.sequence[cpu] += 1
        self.sent[cpu] += len(samples)
        return chunk(*records, cpu=cpu, sequence=self.sequence[cpu] - 1, **self.more)

    def tail(self):
        return [end(*((cpu, nr, 0) for cpu, nr in enumerate(self.sent)), **self.more)]


def wire(samples, **more):
    stream = Wire(**more)
    return stream.head() + stream.body(samples) + stream.tail()


def wire_samples(nr, **more):
    return take(nr, **{"base": KERNEL, **more})


# Faults.

def byte_by_byte(pieces):
    return [bytes([byte]) for piece in pieces for byte in piece]


def in_bits(pieces, seed, most=700):
    """The same bytes, in packets of other sizes."""
    rng, data, out = random.Random(seed), b"".join(pieces), []
    while data:
        size = rng.randrange(1, most)
        out.append(data[:size])
        data = data[size:]
    return out


def _places(data, seed, nr, longest, clear):
    """Ranges for faults, from the last to the first; none is in the first `clear` bytes."""
    rng = random.Random(seed)
    starts = sorted((rng.randrange(clear, len(data) - longest) for _ in range(nr)), reverse=True)
    return rng, [(at, rng.randrange(1, longest)) for at in starts]


def noise(pieces, seed, nr=10, clear=0):
    """Flips bits of some bytes."""
    data = bytearray(b"".join(pieces))
    rng, places = _places(data, seed, nr, 2, clear)
    for at, _ in places:
        data[at] ^= rng.randrange(1, 256)
    return [bytes(data)]


def cuts(pieces, seed, nr=5, longest=300, clear=0):
    """Some ranges are missing."""
    data = b"".join(pieces)
    for at, size in _places(data, seed, nr, longest, clear)[1]:
        data = data[:at] + data[at + size:]
    return [data]


def repeats(pieces, seed, nr=5, most=4):
    """Some pieces, one or more at a time, arrive twice. The first is not among them."""
    rng, out = random.Random(seed), list(pieces)
    for at in sorted((rng.randrange(1, len(pieces) - most) for _ in range(nr)), reverse=True):
        size = rng.randrange(1, most)
        out[at + size:at + size] = out[at:at + size]
    return out


# What kscope wrote.

_SAMPLE = re.compile(r"^sample time=(\d+)\.(\d{9}) cpu=(\d+) task=\d+/(\d+) source=\d+ weight=(\d+) : (.+)$")


def read_dump(text):
    """The samples of a dump, and how many it says are lost."""
    samples, lost = [], 0
    for line in text.splitlines():
        if line.startswith("lost "):
            lost += int(re.search(r"count=(\d+)", line)[1])
        if not line.startswith("sample "):
            continue
        match = _SAMPLE.match(line)
        if not match:
            raise ValueError(f"an unexpected sample: {line}")
        ips = tuple(int(word, 16) for word in match[6].split() if word.startswith("0x"))
        samples.append(Sample(int(match[1] + match[2]), int(match[3]), int(match[4]), int(match[5]),
                              ips))
    return samples, lost


def foreign(got, sent):
    """The samples that were not sent, or that are there more often than they were sent."""
    return list((collections.Counter(got) - collections.Counter(sent)).elements())


def missing(got, sent):
    return foreign(sent, got)
