# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a recording (wire/kscope.proto). Raises if it breaks a rule of wire/README.md."""
import struct

SYNC = 0x5043534B
CHECK = 13


def crc32c(data):
    """Bit by bit, as polynomials: the first bit of the data is the highest coefficient."""
    rest = 0xFFFFFFFF
    for byte in data:
        for i in range(8):
            bits = (byte >> i & 1) ^ rest >> 31
            rest = (rest << 1 & 0xFFFFFFFF) ^ (0x1EDC6F41 if bits else 0)
    return int(f"{rest ^ 0xFFFFFFFF:032b}"[::-1], 2)


class Cut(Exception):
    """The file ends within a chunk."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Cut
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a varint of more than 64 bits")


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > len(data):
                raise Cut
            value = int.from_bytes(data[at:at + size], "little")
            at += size
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise Cut
            value = data[at:at + size]
            at += size
        else:
            raise ValueError(f"no such kind of field: {kind}")
        yield number, value


def words(data):
    return list(struct.unpack(f"<{len(data) // 8}Q", data))


def frames(data, pc):
    """Zigzag numbers, each the distance from the address before it."""
    found, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        pc = (pc + (number >> 1 if number % 2 == 0 else -(number >> 1) - 1)) % (1 << 64)
        found.append(pc)
    return found


class Sample:
    def __init__(self, data, cpu):
        got = dict(fields(data))
        self.data, self.cpu = data, cpu
        self.time, self.pc, self.space = got.get(1, 0), got.get(2, 0), got.get(3, 0)
        self.level, self.weight, self.idle = got.get(4, 0), got.get(5, 0), got.get(6, 0)
        self.registers, self.stack = words(got.get(7, b"")), got.get(8, b"")
        self.has_space = not got.get(11)
        self.place = got.get(14, 0)
        self.task, self.event, self.link = got.get(10, 0), got.get(15, 0), got.get(18, 0)
        self.frames, self.user_frames = frames(got.get(16, b""), self.pc), got.get(17, 0)
        if self.frames and (self.frames[0] != self.pc or len(self.frames) > 4096):
            raise ValueError("the frames do not begin with the pc, or are too many")
        if self.user_frames and (self.level == 0 or self.user_frames >= len(self.frames)):
            raise ValueError("user frames that are none")


class Stream:
    """A whole file. `cut`: it ends within a chunk. Lines of text may come before the first chunk and, from version 5 on,
    after the last one."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.text, self.data = self.split(self.data)
        self.info, self.end, self.counts = None, None, {}
        self.samples, self.codes, self.rounds = [], [], []
        self.records = {}  # samples and allocations of each cpu
        self.chunks, self.dropped, self.late = {}, {}, 0
        self.cut = False
        # From version 5 on: what was described last, and all numbers and answers.
        self.events, self.tasks, self.maps, self.counters, self.answers = {}, {}, {}, [], []
        at = 0
        while at < len(self.data):
            try:
                tag, start = varint(self.data, at)
                size, start = varint(self.data, start)
            except Cut:
                tag = start = None
            if self.end is not None and self.info.get(1, 0) >= 5 and (
                    tag != 0x0A or self.data[start:start + 5] != b"\rKSCP"):
                self.data = self.data[:at]
                return
            if tag is None:
                self.cut = True
                return
            if tag != 0x0A:
                raise ValueError(f"no chunk at {at}")
            if start + size > len(self.data):
                self.cut = True
                return
            self.chunk(self.data[start:start + size])
            at = start + size

    @staticmethod
    def split(data):
        sync = max(data.find(b"\x0dKSCP"), 0)
        for size in range(2, 7):
            head = data[sync - size:sync] if sync >= size else b""
            if head[:1] == b"\x0a" and all(byte & 128 for byte in head[1:-1]) and not head[-1] & 128:
                return data[:sync - size], data[sync - size:]
        return b"", data

    def chunk(self, data):
        got = list(fields(data))
        if not got or got[0] != (1, SYNC) or len(data) > 16 << 20:
            raise ValueError("not a chunk")
        head = dict(got)
        if CHECK in head and (got[-1][0] != CHECK or head[CHECK] != crc32c(data[:-5])):
            raise ValueError("a wrong checksum")
        if CHECK not in head and self.info and self.info.get(1, 0) >= 4:
            raise ValueError("a chunk without a checksum")
        cpu, sequence = head.get(2), head.get(3, 0)
        if sequence != self.chunks.get(cpu, 0):
            raise ValueError(f"chunk {sequence} of cpu {cpu} comes at {self.chunks.get(cpu, 0)}")
        self.chunks[cpu] = sequence + 1
        self.dropped[cpu] = self.dropped.get(cpu, 0) + head.get(4, 0)
        for number, value in got:
            if 14 <= number <= 18:
                self.describe(number, value, cpu)
            if number in (6, 7):
                self.records[cpu] = self.records.get(cpu, 0) + 1
            if number == 5:
                self.info = dict(fields(value))
            elif number == 6:
                sample = Sample(value, cpu)
                self.late += bool(self.rounds and sample.time < self.rounds[-1])
                self.samples.append(sample)
            elif number == 8:
                self.codes.append(dict(fields(value)))
            elif number == 10:
                self.rounds.append(value)
            elif number == 11:
                self.end = value
                for field, count in fields(value):
                    if field == 2:
                        count = dict(fields(count))
                        self.counts[count.get(1, 0)] = count

    def describe(self, number, value, cpu):
        """A field of version 5."""
        if self.info is None or self.info.get(1, 0) < 5:
            raise ValueError(f"field {number} in a stream of an earlier version")
        got = {} if number == 18 else dict(fields(value))
        if number == 14:
            if got.get(1, 0) >= 4096 or not got.get(2):
                raise ValueError("an event without a name, or with a large number")
            self.events[got.get(1, 0)] = got
        elif number == 15:
            if not got.get(1):
                raise ValueError("a task without a number")
            self.tasks[got[1]] = (got.get(2, 0) or got[1], got.get(3, b"").decode(), got.get(4, 0))
        elif number == 16:
            if not got.get(6):
                raise ValueError("a map without a path")
            self.maps[got.get(2, 0), got.get(3, 0), got[6].decode()] = got
        elif number == 17:
            if cpu is None:
                raise ValueError("a counter without a cpu")
            self.counters.append((cpu, got.get(2, 0), got.get(1, 0), got.get(3, 0)))
        else:
            self.answers.append(value.decode())

    def counted(self):
        """{cpu: (records, dropped)} in the chunks; raises if `end` has other counts."""
        here = {cpu: (self.records.get(cpu, 0), self.dropped.get(cpu, 0)) for cpu in self.counts}
        told = {cpu: (count.get(2, 0) + count.get(6, 0), count.get(3, 0)) for cpu, count in self.counts.items()}
        if here != told:
            raise ValueError(f"the end counts {told}, but there are {here}")
        return here

    def of_cpu(self, cpu):
        return [sample for sample in self.samples if sample.cpu == cpu]

    def chance(self):
        """How many random samples a unit of weight is worth.

        All samples have the same weight on an idle host. On a busy host a few have a large weight:
        then all of them are worth as much as fewer equal ones (Kish's effective sample size)."""
        weights = [sample.weight for sample in self.samples if not sample.idle]
        return sum(weights) / sum(weight * weight for weight in weights) if weights else 0

    def cpus(self):
        return sorted(cpu for cpu in self.chunks if cpu is not None)

    def faults(self):
        """The counts and orders that are wrong, as text."""
        wrong = []
        if self.info is None:
            wrong.append("no info")
        if self.end is None or self.cut:
            wrong.append("no end")
        if self.late:
            wrong.append(f"{self.late} samples are older than a round before them")
        for cpu, count in self.counts.items():
            mine = self.of_cpu(cpu)
            if count.get(2, 0) != len(mine):
                wrong.append(f"cpu {cpu}: {len(mine)} samples of {count.get(2, 0)}")
            if count.get(5, 0) != self.chunks.get(cpu, 0):
                wrong.append(f"cpu {cpu}: {self.chunks.get(cpu, 0)} chunks of {count.get(5, 0)}")
            if count.get(3, 0) != self.dropped.get(cpu, 0):
                wrong.append(f"cpu {cpu}: {self.dropped.get(cpu, 0)} lost of {count.get(3, 0)}")
            if any(a.time > b.time for a, b in zip(mine, mine[1:])):
                wrong.append(f"cpu {cpu}: not in the order of time")
        for sample in self.samples:
            if self.info and self.info.get(1, 0) >= 5 and sample.event not in self.events:
                wrong.append(f"event {sample.event} is not described")
                break
        last = {}
        for cpu, event, time, value in self.counters:
            if (time, value) < last.get((cpu, event), (0, 0)) or value < last.get((cpu, event), (0, 0))[1]:
                wrong.append(f"cpu {cpu}: counter {event} goes back")
            last[cpu, event] = time, value
        return "; ".join(wrong)
