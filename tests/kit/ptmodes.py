# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a recording of Intel PT by threads, as kscope record emulate makes it, into what perf writes in its other
modes: snapshots, samples of the trace, and buffers by cpu."""
import random
import struct

from . import ptdamage
from .ptdamage import PSB, Part, ip_packet, packets

COMM, EXIT, FORK, SAMPLE, ITRACE_START, SWITCH, SWITCH_CPU_WIDE = 3, 4, 7, 9, 12, 14, 15
USER_RECORDS, ID_INDEX, AUXTRACE_INFO, COMPRESSED = 64, 69, 70, 81
IP, TID, TIME, CPU, PERIOD, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 7, 1 << 8, 1 << 16
WEIGHT, DATA_SRC, TRANSACTION, REGS_INTR, PHYS_ADDR, AUX = (1 << bit for bit in (14, 15, 17, 18, 19, 20))
CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE = (1 << bit for bit in (21, 22, 23))
CONTEXT_SWITCH = 1 << 26  # of the attribute's flags
OUT = 1 << 13  # of the misc of a switch
INFO_SWITCHES, INFO_SNAPSHOT, INFO_PER_CPU = 7, 8, 9
IN_SWITCHES, CPU_WIDE = 2, 3  # what INFO_SWITCHES may say
PSBEND, CBR, MODE_64 = b"\x02\x23", b"\x02\x03\x15\x00", b"\x99\x01"
LATER = 100  # ticks between two things that happen one after the other
IDLE = (0, 0)
ZSTD_START, BLOCK = b"\x28\xb5\x2f\xfd\x00\x38", 50000


def kind_of(record):
    return struct.unpack_from("<I", record)[0]


def tsc_packet(tsc):
    return b"\x19" + tsc.to_bytes(7, "little")


def set_info(file, **words):
    """Changes words of AUXTRACE_INFO: switches, snapshot, per_cpu."""
    numbers = {"switches": INFO_SWITCHES, "snapshot": INFO_SNAPSHOT, "per_cpu": INFO_PER_CPU}
    for i, record in enumerate(file.records):
        if not isinstance(record, Part) and kind_of(record) == AUXTRACE_INFO:
            record = bytearray(record)
            for name, value in words.items():
                struct.pack_into("<Q", record, 16 + 8 * numbers[name], value)
            file.records[i] = bytes(record)


def with_times(data):
    """All packets of a trace, each with the TSC before it."""
    now = 0
    for packet in packets(data):
        yield packet, now
        if packet.name == "tsc":
            now = int.from_bytes(data[packet.at + 1:packet.end], "little")
        elif packet.name == "cyc":  # a cycle is a tick of the TSC
            value, shift = data[packet.at] >> 3, 5
            for byte in data[packet.at + 1:packet.end]:
                value |= byte >> 1 << shift
                shift += 7
            now += value


def unfilled(data):
    """Without the PAD packets that fill up a record."""
    return data[:max(packet.end for packet in packets(data) if packet.name != "pad")]


# Snapshots


def heads(data, *where):
    """Packet boundaries at these places."""
    bounds = [packet.at for packet in packets(data)] + [len(data)]
    return [next(bound for bound in bounds if bound >= min(at, len(data))) for at in where]


def snapshots(file, parts, size, ends):
    """What perf record --snapshot writes, with a buffer of this size, if it gets a signal at each of the ends.

    Before the buffer has been full for the first time, perf copies what is new; then, the whole buffer. The offset is
    that in the buffer. Returns [(begin, end)]: what is copied."""
    data, before, news, copied = unfilled(ptdamage.joined(parts)), 0, [], []
    for end in ends:
        begin = before if end <= size else end - size
        copied.append((begin, end))
        news.append(parts[0].like(begin % size, ptdamage.pad(data[begin:end])))
        before = end
    file.replace(parts[0], *news)
    for part in parts[1:]:
        file.records.remove(part)
    set_info(file, snapshot=1)
    return copied


# Samples

# The fields of a sample between its period and its trace, as (bit, bytes).
ALL_FIELDS = ((WEIGHT, bytes(8)), (DATA_SRC, b"\x11" * 8), (TRANSACTION, b"\x22" * 8),
              (REGS_INTR, struct.pack("<QQQ", 2, 3, 4)), (PHYS_ADDR, b"\x33" * 8),
              (CGROUP, b"\x44" * 8), (DATA_PAGE_SIZE, b"\x55" * 8), (CODE_PAGE_SIZE, b"\x66" * 8))
REGS = 0b101  # of REGS_INTR
BASIC = IDENTIFIER | IP | TID | TIME | CPU | PERIOD
ATTR_SIZE = 120
PT_ID, SAMPLE_ID = 1000, 2000
SAMPLE_IP = 0x1234


class Samples:
    """A perf.data of perf record --aux-sample -e '{intel_pt//u,branch-misses:u}'."""

    def __init__(self, file, size, fields=()):
        self.file, self.size, self.fields = file, size, fields
        self.queues = []

    def sample(self, queue, time, task, data):
        body = struct.pack("<QQIIQIIQ", SAMPLE_ID + queue, SAMPLE_IP, *task, self.file.time(time),
                           max(self.queues[queue].cpu, 0), 0, 1)
        body += b"".join(value for _, value in self.fields)
        data = ptdamage.pad(data)
        body += struct.pack("<Q", len(data)) + data
        return struct.pack("<IHH", SAMPLE, 2, 8 + len(body)) + body

    def cut(self, parts, ends, tasks):
        """Replaces the AUXTRACE records of a queue by samples. tasks: [(tsc, (pid, tid))]. Returns [(begin, end)]: what
        is in samples."""
        data, queue = unfilled(ptdamage.joined(parts)), len(self.queues)
        self.queues.append(parts[0])
        times = {packet.at: now for packet, now in with_times(data)}
        times[len(data)] = max(times.values())
        news = []
        for end in ends:
            time = times[end]
            task = [task for at, task in tasks if at <= time][-1]
            news.append(self.sample(queue, time + 1, task, data[max(end - self.size, 0):end]))
        self.file.replace(parts[0], *news)
        for part in parts[1:]:
            self.file.records.remove(part)
        return [(max(end - self.size, 0), end) for end in ends]

    def id_index(self):
        entries = [(first + i, i, part.cpu, part.tid) for first in (PT_ID, SAMPLE_ID)
                   for i, part in enumerate(self.queues)]
        body = struct.pack("<Q", len(entries)) + b"".join(
            struct.pack("<QQqq", *entry) for entry in entries)
        return struct.pack("<IHH", ID_INDEX, 0, 8 + len(body)) + body

    def head(self, size):
        """Two attributes, whose ids come before them."""
        head = bytearray(self.file.head)
        attrs, = struct.unpack_from("<Q", head, 24)
        first = bytearray(head[attrs:attrs + 112].ljust(ATTR_SIZE, b"\0"))
        struct.pack_into("<I", first, 4, ATTR_SIZE)
        second = bytearray(first)
        kind = BASIC | AUX | sum(bit for bit, _ in self.fields)
        struct.pack_into("<IIQQQ", second, 0, 0, ATTR_SIZE, 5, 10000, kind)  # branch-misses
        struct.pack_into("<Q", second, 96, REGS if self.fields else 0)
        struct.pack_into("<I", second, 112, self.size)
        nr = len(self.queues)
        ids = [struct.pack(f"<{nr}Q", *range(i, i + nr)) for i in (PT_ID, SAMPLE_ID)]
        start = 104 + sum(map(len, ids))
        places = [(104, len(ids[0])), (104 + len(ids[0]), len(ids[1]))]
        body = b"".join(ids) + b"".join(
            bytes(attr) + struct.pack("<QQ", *place) for attr, place in zip((first, second), places))
        struct.pack_into("<6Q", head, 16, ATTR_SIZE + 16, start, 2 * (ATTR_SIZE + 16), 104 + len(body), size, 0)
        return bytes(head[:72]) + bytes(32) + body

    def write(self, path, packed=False):
        """packed: all samples are in compressed records, as perf record -z writes them."""
        data, samples = self.id_index(), b""
        for record in self.file.records:
            if kind_of(record) == SAMPLE and packed:
                samples += record
                continue
            if SAMPLE != kind_of(record) < USER_RECORDS:  # its id is that of the trace's event
                record = record[:-8] + struct.pack("<Q", PT_ID)
            data += record
        if packed:
            data += b"".join(compressed(samples))
        with open(path, "wb") as f:
            f.write(self.head(len(data)) + data)


def compressed(data):
    """Records with a zstd stream, whose blocks are not compressed, and divide the data anywhere."""
    for i in range(0, len(data), BLOCK):
        block = data[i:i + BLOCK]
        body = (ZSTD_START if not i else b"") + (len(block) << 3).to_bytes(3, "little") + block
        yield struct.pack("<IHH", COMPRESSED, 0, 8 + len(body)) + body


# Cpus


class Piece:
    """What a thread executed without a system call, as packets from TIP.PGE to TIP.PGD, with the times of their TSC
    packets relative to its begin."""

    def __init__(self, task, begin, ip):
        self.task, self.begin, self.end, self.ip = task, begin, begin, ip
        self.items = []  # packets as bytes, or times as numbers

    def put(self, item, now):
        self.items.append(item)
        self.end = now

    def put_time(self, now):
        if now > self.end:
            self.put(now - self.begin, now)

    def bytes(self, begin):
        return ip_packet("tip.pge", self.ip) + b"".join(
            tsc_packet(begin + item) if isinstance(item, int) else item for item in self.items)


def pieces_of(task, data):
    """A PSB in the middle of code becomes an interrupt: there, the scheduler takes the cpu away."""
    piece, in_psb = None, False
    for packet, now in with_times(data):
        raw = data[packet.at:packet.end]
        if packet.name in ("psb", "psbend"):
            in_psb = packet.name == "psb"
        elif packet.name in ptdamage.TIMING or (in_psb and packet.name == "mode"):
            continue
        elif packet.name == "tip.pge":
            piece = Piece(task, now, packet.ip)
        elif piece and in_psb and packet.name == "fup":
            piece.put_time(now)
            piece.put(ip_packet("fup", packet.ip) + b"\x01", now)
            yield piece
            piece = Piece(task, now, packet.ip)
        elif piece:
            piece.put_time(now)
            piece.put(raw, now)
            if packet.name == "tip.pgd":
                yield piece
                piece = None


class Run:
    """A piece on a cpu: which bytes of the cpu's trace, and when."""

    def __init__(self, task, first, last, begin, end):
        self.task, self.first, self.last, self.begin, self.end = task, first, last, begin, end

    def is_in(self, ranges):
        return any(begin < self.last and self.first < end for begin, end in ranges)


class Cpu:
    """switches: [(tsc, task)]: who has the cpu, from when on."""

    def __init__(self, number):
        self.number, self.task, self.trace, self.free = number, None, b"", 0
        self.switches, self.runs = [], []


class ByCpu:
    """The threads of a recording take turns on the cpus.

    wide: as with perf record -a: the trace goes on while the kernel switches, and switches from and to the idle task
    are recorded; else, tracing begins anew with each thread. The order of pieces and of records is that of
    their begins, but at most one piece runs on each cpu at a time."""

    def __init__(self, file, wide, seed=1, cpus=2):
        self.file, self.wide, self.random = file, wide, random.Random(seed)
        self.tsc = min(part.reference for part in file.records if isinstance(part, Part))
        self.cpus = [Cpu(i) for i in range(cpus)]
        self.started, self.records = set(), []
        file.flags |= CONTEXT_SWITCH
        file.sample_type |= CPU
        head = bytearray(file.head)
        attrs, = struct.unpack_from("<Q", head, 24)
        struct.pack_into("<Q", head, attrs + 24, file.sample_type)
        struct.pack_into("<Q", head, attrs + 40, file.flags)
        file.head = bytes(head)
        set_info(file, per_cpu=1, switches=CPU_WIDE if wide else IN_SWITCHES)

    def trailer(self, task, tsc, cpu):
        return struct.pack("<IIQIIQ", *task, self.file.time(tsc), cpu, 0, self.identifier)

    def put(self, kind, body, task, tsc, cpu, misc=0):
        body += self.trailer(task, tsc, cpu)
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)

    def put_again(self, record):
        """A record of the file, with its new time."""
        kind, misc, _ = struct.unpack_from("<IHH", record)
        body = bytearray(record[8:-24])
        pid, tid, time, _ = struct.unpack("<IIQQ", record[-24:])
        if kind in (FORK, EXIT):
            struct.pack_into("<Q", body, 16, self.file.time(self.tsc))
        self.put(kind, bytes(body), (pid, tid), self.tsc if time else 0, 0, misc)

    def switch(self, cpu, task):
        """Returns the time at which the task runs."""
        now = max(cpu.free, self.tsc) + LATER
        other = struct.pack("<II", *task) if self.wide else b""
        mine = struct.pack("<II", *(cpu.task or IDLE)) if self.wide else b""
        kind = SWITCH_CPU_WIDE if self.wide else SWITCH
        if cpu.task is not None and (self.wide or cpu.task != IDLE):
            self.put(kind, other, cpu.task, now, cpu.number, OUT)
        if self.wide or task != IDLE:
            self.put(kind, mine, task, now + LATER, cpu.number)
        if task not in self.started and task != IDLE:
            self.started.add(task)
            self.put(ITRACE_START, struct.pack("<II", *task), task, now + LATER, cpu.number)
        cpu.task = task
        cpu.switches.append((now + LATER, task))
        cpu.free = now + 2 * LATER
        return cpu.free

    def run(self, cpu, piece):
        for other in self.cpus:
            if other is not cpu and other.task == piece.task:
                self.switch(other, IDLE)
        fresh = cpu.task != piece.task
        begin = self.switch(cpu, piece.task) if fresh else max(cpu.free, self.tsc) + LATER
        if not self.wide and fresh or self.random.random() < 0.2 or not cpu.trace:
            cpu.trace += PSB + tsc_packet(begin) + CBR + MODE_64 + PSBEND
        else:
            cpu.trace += tsc_packet(begin)
        first = len(cpu.trace)
        cpu.trace += MODE_64 + piece.bytes(begin)
        end = begin + piece.end - piece.begin
        cpu.runs.append(Run(piece.task, first, len(cpu.trace), begin, end))
        cpu.free = end + LATER
        if self.random.random() < 0.3:
            self.switch(cpu, IDLE)

    def rewrite(self):
        self.identifier = next(struct.unpack("<Q", r[-8:])[0] for r in self.file.records
                               if not isinstance(r, Part) and kind_of(r) == COMM)
        busy = []  # pieces that begin at the same time
        for item in self.items():
            if isinstance(item, Piece) and len(busy) < len(self.cpus) and \
                    item.task not in [piece.task for piece in busy]:
                busy.append(item)
                continue
            self.run_all(busy)
            busy = [item] if isinstance(item, Piece) else []
            if not busy:
                self.put_again(item)
        self.run_all(busy)
        self.file.records = [r for r in self.file.records if not isinstance(r, Part) and
                             kind_of(r) >= USER_RECORDS] + self.records
        for cpu in self.cpus:
            part = Part(struct.pack(Part.FORM, ptdamage.AUXTRACE, 0, 48, 0, 0, self.tsc, cpu.number, -1,
                                    cpu.number, 0))  # without a reference, perf 6.1 crashes
            part.data = ptdamage.pad(cpu.trace)
            self.file.records.append(part)

    def run_all(self, pieces):
        cpus = self.random.sample(self.cpus, len(pieces))
        for cpu, piece in zip(cpus, pieces):
            self.run(cpu, piece)
        self.tsc = max(self.tsc, *(cpu.free for cpu in self.cpus)) + LATER

    def items(self):
        """Pieces and records, by their times. The emulator finds out what is mapped when it runs: such a record comes
        before all of the piece."""
        found, pids = [], {}
        records = [r for r in self.file.records if not isinstance(r, Part) and kind_of(r) < USER_RECORDS]
        for record in records:
            pid, tid = struct.unpack("<II", record[-24:-16])
            pids[tid] = pid
        tids = sorted({r.tid for r in self.file.records if isinstance(r, Part)})
        pieces = {tid: list(pieces_of((pids[tid], tid), ptdamage.joined(self.file.queue(tid))))
                  for tid in tids}
        for record in records:
            _, tid, time, _ = struct.unpack("<IIQQ", record[-24:])
            tsc = self.ticks(time)
            around = [piece.begin for piece in pieces.get(tid, []) if piece.begin < tsc <= piece.end]
            found.append((min(around, default=tsc), 0, len(found), record))
        for piece in sum(pieces.values(), []):
            found.append((piece.begin, 1, len(found), piece))
        return [item for *_, item in sorted(found, key=lambda entry: entry[:3])]

    def ticks(self, time):
        """The first TSC that is not before a time."""
        info = next(r for r in self.file.records
                    if not isinstance(r, Part) and kind_of(r) == AUXTRACE_INFO)
        shift, mult, zero = struct.unpack_from("<QQQ", info, 24)
        return -(-(max(time - zero, 0) << shift) // mult)
