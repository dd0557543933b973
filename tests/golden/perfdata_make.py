# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the inputs of perfdata-*."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit.inputs import put

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH, REGS_USER, \
    STACK_USER = (1 << i for i in range(14))
IDENTIFIER = 1 << 16
USUAL = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN
MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ_, SAMPLE, MMAP2, AUX, ITRACE, \
    LOST_SAMPLES, SWITCH, SWITCH_WIDE, NAMESPACES, KSYMBOL = range(1, 18)
TEXT_POKE, DEFERRED = 20, 22
TRACING_DATA = 66
SIMPLE_SYMBOLS, SIMPLE_SPLIT, SIMPLE_SPLIT_END, SIMPLE_ID, SIMPLE_CHAIN, SIMPLE_TRACING = \
    32769, 32772, 32773, 32774, 32775, 32777
ATTR, ROUND, AUXTRACE_INFO, AUXTRACE, UPDATE, FEATURE, COMPRESSED = 64, 68, 70, 71, 78, 80, 81
KERNEL_MODE, USER_MODE, GUEST_KERNEL_MODE = 1, 2, 4
KERNEL, USER, GUEST_KERNEL, DEFERRED_MARK = (2**64 - n for n in (128, 512, 2176, 640))
NAMED = 2**64 - 4000  # kscope's own marker, which may be in data by chance
BUILD_IDS, HOSTNAME, OSRELEASE, ARCH, NRCPUS, CMDLINE, EVENT_DESC, COMPRESSION = 2, 3, 4, 6, 7, 11, 12, 27
FLAG_BITS = {"mmap": 8, "comm": 9, "freq": 10, "task": 13, "sample_id_all": 18, "mmap2": 23,
             "comm_exec": 24}
EXCLUDE = {"user": 4, "kernel": 5, "hv": 6, "host": 19, "guest": 20}
TEXT = 0xffffffff81000000


class File:
    """Pieces of a perf.data file in one byte order."""

    def __init__(self, big=False, sample_type=USUAL, read_format=0, branch_type=0, regs=0,
                 events=1, kinds=None, inherit=False):
        """kinds: of each event the type, config, what it excludes, precise_ip, bp_type and config1."""
        self.order = ">" if big else "<"
        self.big, self.type, self.read_format = big, sample_type, read_format
        self.branch_type, self.regs = branch_type, regs
        self.kinds = kinds or [(1, n, (), 0, 0, 0) for n in range(events)]
        self.events, self.inherit = len(self.kinds), inherit

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def text(self, s):
        s = s.encode() + b"\0"
        return s + b"\0" * (-len(s) % 8)

    def attr(self, n):
        type_, config, excludes, precise, bp_type, config1 = self.kinds[n]
        bits = [*FLAG_BITS.values(), *(EXCLUDE[mode] for mode in excludes), *[1] * self.inherit]
        flags = sum(1 << (63 - i if self.big else i) for i in bits) | \
            precise << (47 if self.big else 15)
        return self.pack("IIQQQQQIIQQQQIiQIHH", type_, 112, config, 1000, self.type,
                         self.read_format, flags, 0, bp_type, config1, 0, self.branch_type,
                         self.regs, 0, 0, 0, 0, 0, 0)

    def record(self, type_, body, misc=0):
        return self.pack("IHH", type_, misc, 8 + len(body)) + body

    def trailer(self, pid=100, tid=100, time=0, cpu=0, id_=7):
        result = b""
        if self.type & TID:
            result += self.pack("II", pid, tid)
        if self.type & TIME:
            result += self.pack("Q", time)
        if self.type & CPU:
            result += self.pack("II", cpu, 0)
        if self.type & IDENTIFIER:
            result += self.pack("Q", id_)
        return result

    def comm(self, name, time=0, pid=100, tid=100, misc=0):
        return self.record(COMM, self.pack("II", pid, tid) + self.text(name) +
                           self.trailer(pid, tid, time), misc)

    def mmap2(self, addr, size, offset, path, time=0, pid=100, build_id=None, misc=USER_MODE):
        id_ = bytes(24)
        if build_id:
            id_, misc = struct.pack("B3x20s", len(build_id), build_id), misc | 1 << 14
        return self.record(MMAP2, self.pack("IIQQQ", pid, pid, addr, size, offset) + id_ +
                           self.pack("II", 5, 2) + self.text(path) +
                           self.trailer(pid, pid, time), misc)

    def kernel(self, misc=KERNEL_MODE, name="[kernel.kallsyms]_text", offset=TEXT):
        return self.record(MMAP, self.pack("IIQQQ", 0xffffffff, 0, TEXT, 0x1000000, offset) +
                           self.text(name) + self.trailer(0, 0), misc)

    def fork(self, pid, tid, parent, time, misc=0, type_=FORK):
        return self.record(type_, self.pack("IIIIQ", pid, parent, tid, parent, time) +
                           self.trailer(parent, parent, time), misc)

    def sample(self, ips, time, misc=USER_MODE, pid=100, tid=100, cpu=0, id_=7, period=250000,
               nr=None, read=b"", after=b""):
        first = next((ip for ip in ips if ip < 2**64 - 4095), 0)
        body = b""
        if self.type & IDENTIFIER:
            body += self.pack("Q", id_)
        body += self.pack("QII", first, pid, tid) + self.pack("Q", time)
        if self.type & CPU:
            body += self.pack("II", cpu, 0)
        if self.type & PERIOD:
            body += self.pack("Q", period)
        body += read
        if self.type & CALLCHAIN:
            body += self.pack("Q", len(ips) if nr is None else nr)
            body += b"".join(self.pack("Q", ip) for ip in ips)
        return self.record(SAMPLE, body + after, misc)

    def string(self, s):
        s = s.encode() + b"\0"
        s += b"\0" * (-len(s) % 64)
        return self.pack("I", len(s)) + s

    def features(self, names=("cpu-clock", "page-faults")):
        desc = self.pack("II", self.events, 112)
        names = [*names, *[""] * self.events]
        for n in range(self.events):
            desc += self.attr(n) + self.pack("I", 1) + self.string(names[n]) + \
                self.pack("Q", 7 + n)
        return {HOSTNAME: self.string("box"), OSRELEASE: self.string("6.1.0"),
                ARCH: self.string("x86_64"), NRCPUS: self.pack("II", 4, 4),
                CMDLINE: self.pack("I", 2) + self.string("perf") + self.string("record"),
                EVENT_DESC: desc}

    def file(self, data, features=None, data_size=None, tamper=lambda header: None):
        features = self.features() if features is None else features
        ids_at = 104
        attrs_at = ids_at + 8 * self.events
        data_at = attrs_at + 128 * self.events
        attrs = b"".join(self.pack("Q", 7 + n) for n in range(self.events))
        attrs += b"".join(self.attr(n) + self.pack("QQ", ids_at + 8 * n, 8)
                          for n in range(self.events))
        bits = [0] * 4
        table, body = b"", b""
        at = data_at + len(data) + 16 * len(features)
        for bit in sorted(features):
            bits[bit // 64] |= 1 << bit % 64
            table += self.pack("QQ", at + len(body), len(features[bit]))
            body += features[bit]
        header = {"size": 104, "attr_size": 128, "attrs_at": attrs_at,
                  "attrs_size": 128 * self.events, "data_at": data_at,
                  "data_size": len(data) if data_size is None else data_size}
        tamper(header)
        return (b"2ELIFREP" if self.big else b"PERFILE2") + \
            self.pack("QQQQQQQQ4Q", header["size"], header["attr_size"], header["attrs_at"],
                      header["attrs_size"], header["data_at"], header["data_size"], 0, 0, *bits) + \
            attrs + data + table + body

    def pipe(self, data, names=True):
        result = (b"2ELIFREP" if self.big else b"PERFILE2") + self.pack("Q", 16)
        for n in range(self.events):
            result += self.record(ATTR, self.attr(n) + self.pack("Q", 7 + n))
        for bit, body in sorted(self.features().items()):
            if bit != EVENT_DESC:
                result += self.record(FEATURE, self.pack("Q", bit) + body)
        if names:
            result += self.record(UPDATE, self.pack("QQ", 2, 7) + self.text("cpu-clock:named"))
        return result + self.record(FEATURE, self.pack("Q", 32)) + data


def usual(f):
    """Two tasks and the kernel; in a round, the records of the cpus are not in order."""
    return b"".join([
        f.kernel(),
        f.comm("a b 1"),
        f.mmap2(0x400000, 0x1000, 0, "/bin/x", build_id=bytes(range(20))),
        f.sample([USER, 0x400100, 0x400200], 3000),
        f.sample([KERNEL, TEXT + 0x10, USER, 0x400123, 0x400200], 5000, KERNEL_MODE),
        f.sample([USER, 0x400104], 2000, cpu=1),
        f.record(ROUND, b""),
        f.fork(101, 101, 100, 4000),
        f.sample([USER, 0x400108], 6000, pid=101, tid=101, cpu=1),
        f.record(ROUND, b""),
        f.comm("other", 7000, 101, 101, 1 << 13),
        f.fork(101, 101, 100, 9000, type_=EXIT),
        f.sample([USER, 0x40010c], 8000, pid=101, tid=101),
    ])


def every_record(f):
    t = f.trailer
    return b"".join([
        f.kernel(), f.kernel(GUEST_KERNEL_MODE, "[guest.kernel.kallsyms]_stext"),
        f.record(MMAP, f.pack("IIQQQ", 0xffffffff, 0, 0xffffffffc0000000, 0x5000, 0) +
                 f.text("/lib/modules/6.1.0/kernel/fs/ext4.ko") + t(), KERNEL_MODE),
        f.record(MMAP, f.pack("IIQQQ", 100, 100, 0x10000, 0x1000, 0x2000) + f.text("/bin/old") +
                 t(), USER_MODE),
        f.fork(102, 102, 1, 0, 1 << 13),
        f.record(LOST, f.pack("QQ", 7, 12) + t(time=1000)),
        f.record(LOST_SAMPLES, f.pack("Q", 3) + t(time=1100)),
        f.record(THROTTLE, f.pack("QQQ", 1200, 7, 7) + t(time=1200)),
        f.record(UNTHROTTLE, f.pack("QQQ", 1300, 7, 7) + t(time=1300)),
        f.record(SWITCH, t(time=1400), 1 << 13 | 1 << 14),
        f.record(SWITCH, t(time=1500)),
        f.record(SWITCH_WIDE, f.pack("II", 101, 101) + t(time=1600, cpu=2), 1 << 13),
        f.record(KSYMBOL, f.pack("QIHH", 0xffffffffc0100000, 256, 1, 0) + f.text("bpf_prog_1") +
                 t(time=1700)),
        f.sample([KERNEL, 0xffffffffc0100010, 0xffffffffc0000020], 1800, KERNEL_MODE),
        f.record(KSYMBOL, f.pack("QIHH", 0xffffffffc0100000, 256, 1, 1) + f.text("bpf_prog_1") +
                 t(time=1900)),
        f.record(TEXT_POKE, f.pack("QHH", TEXT, 2, 2) + b"\xeb\x00\x90\x90" + t(time=2000)),
        f.sample([GUEST_KERNEL, TEXT + 4], 2100, GUEST_KERNEL_MODE),
        f.record(AUX, f.pack("QQQ", 0, 24, 1) + t(time=2200)),
        f.record(AUXTRACE_INFO, f.pack("II10Q", 1, 0, 8, 31, 1022611261, 0, 1, 0x400, 0x800, 0, 0, 0)),
        f.record(AUXTRACE, f.pack("QQQIIII", 24, 0, 0, 0, 100, 0, 0)) + bytes(range(24)),
        f.sample([], 2300),
        f.record(99, b"01234567"), f.record(50, b""),
    ])


def zstd_block(data):
    return struct.pack("<I", len(data) << 3)[:3] + data


def compressed(f, damaged=False):
    """One zstd stream in two records; a perf record continues from the first to the second."""
    data = usual(f)
    cut = len(data) // 2 + 4
    start = b"\x28\xb5\x2f\xfd\x00\x38"
    second = zstd_block(data[cut:])
    if damaged:
        second = b"\x07\xff\xff" + second
    return f.record(COMPRESSED, start + zstd_block(data[:cut])) + f.record(ROUND, b"") + \
        f.record(COMPRESSED, second) + f.record(ROUND, b"")


def groups():
    f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | CALLCHAIN | PERIOD,
             read_format=4 | 8, events=2)
    reads = [(1000, 5), (3000, 5), (4000, 9)]
    return f.file(b"".join(
        f.sample([USER, 0x400100 + i], 1000 + i,
                 read=f.pack("QQQQQ", 2, a, 7, b, 8)) for i, (a, b) in enumerate(reads)))


def inherited_groups():
    """Threads that inherited a group have counters of their own, with the ids of the first thread's."""
    f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | CALLCHAIN | PERIOD,
             read_format=4 | 8, events=2, inherit=True)
    reads = [(100, 1000, 5), (101, 300, 1), (100, 3000, 5), (101, 500, 4), (102, 200, 2)]
    return f.file(b"".join(
        f.sample([USER, 0x400100 + i], 1000 + i, tid=tid,
                 read=f.pack("QQQQQ", 2, a, 7, b, 8)) for i, (tid, a, b) in enumerate(reads)))


def single_reads():
    """perf record -e page-faults:S, without a group: inherited, too. The second thread's id is that of the
    first's counter."""
    f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | PERIOD, read_format=4, inherit=True)
    reads = [(100, 1000), (101, 250), (101, 600), (100, 1800)]
    return f.file(b"".join(f.sample([0x400100 + i], 1000 + i, tid=tid, read=f.pack("QQ", value, 7))
                           for i, (tid, value) in enumerate(reads)))


def odd_reads():
    """A counter that the header lacks, a value below the one before, and then one above it."""
    f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | PERIOD, read_format=4 | 8, events=2)
    reads = [(1000, 7, 5, 9), (3000, 7, 5, 8), (2000, 7, 6, 8), (3500, 7, 6, 8), (1, 10, 2, 11)]
    return f.file(b"".join(f.sample([0x400100 + i], 1000 + i, read=f.pack("QQQQQ", 2, *read))
                           for i, read in enumerate(reads)))


def reads_without_ids():
    """Nothing says whose values these are: the samples count as they are."""
    f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | PERIOD, read_format=8, events=2)
    return f.file(b"".join(f.sample([0x400100], 1000 + i, read=f.pack("QQQ", 2, 50, 60), id_=7 + i)
                           for i in range(2)))


def held_reads():
    """A sample that waits for its deferred chain is counted before the next one, not after it."""
    f = File(sample_type=USUAL | READ, read_format=4 | 8, events=2)
    chain = [KERNEL, TEXT + 8, DEFERRED_MARK, 0x77]

    def read(a, b):
        return f.pack("QQQQQ", 2, a, 7, b, 8)
    return f.file(f.sample(chain, 1000, KERNEL_MODE, read=read(100, 1)) +
                  f.sample([USER, 0x400300], 2000, tid=103, read=read(300, 2)) +
                  f.record(DEFERRED, f.pack("QQQQ", 0x77, 2, USER, 0x400100) + f.trailer(time=3000)) +
                  f.sample([USER, 0x400304], 4000, tid=103, read=read(700, 2)))


def branches():
    f = File(sample_type=USUAL | BRANCH, branch_type=1 << 17)
    stack = f.pack("QQ", 2, 0) + f.pack("QQQ", 0x400110, 0x400200, 1 << 4 | 2) + \
        f.pack("QQQ", 0x400210, 0x400100, 1)
    return f.file(f.mmap2(0x400000, 0x1000, 0, "/bin/x") +
                  f.sample([USER, 0x400200], 1000, after=stack))


def lbr(big=False):
    """perf record --call-graph lbr: of the user's stack, the chain has only the pc. A sample of the
    kernel alone, and one without branches, keep their chain."""
    f = File(big, sample_type=USUAL | BRANCH, branch_type=1 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 17)
    calls = [(0x400180, 0x400300), (0x400110, 0x400170), (0x400010, 0x400100)]

    def stack(*entries):
        return f.pack("QQ", len(entries), 0) + b"".join(f.pack("QQQ", *e, 0) for e in entries)
    return f.file(
        f.kernel() + f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") +
        f.sample([USER, 0x400310], 1000, after=stack(*calls)) +
        f.sample([KERNEL, TEXT + 0x10, TEXT + 0x20, USER, 0x400314], 2000, KERNEL_MODE,
                 after=stack(*calls)) +
        f.sample([KERNEL, TEXT + 0x10, TEXT + 0x30], 3000, KERNEL_MODE, after=stack(*calls[1:])) +
        f.sample([USER, 0x400300], 4000, after=stack(*calls)) +
        f.sample([], 5000, after=stack(*calls)))


def no_lbr():
    f = File(sample_type=USUAL | BRANCH, branch_type=1 | 1 << 11)
    return f.file(f.mmap2(0x400000, 0x1000, 0, "/bin/x") +
                  f.sample([USER, 0x400310], 1000, after=f.pack("Q", 0)))


def no_names(kinds, big=False):
    """Without the feature that has the names of the events."""
    f = File(big, kinds=kinds)
    features = f.features(names=[""] * len(kinds))
    del features[EVENT_DESC]
    return f.file(f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") + b"".join(
        f.sample([USER, 0x400100], 1000 + n, id_=7 + n) for n in range(len(kinds))), features)


U = ("kernel", "hv")
MODIFIED = [(1, 1, ("guest",), 0, 0, 0), (1, 1, (), 0, 0, 0), (1, 1, U, 0, 0, 0),
            (0, 0, ("user", "hv", "guest"), 0, 0, 0), (0, 1, ("host",), 2, 0, 0),
            (0, 2, ("guest",), 3, 0, 0), (4, 0x1a8, U, 1, 0, 0), (4, 0x3c, ("guest",), 0, 0, 0),
            (3, 0x10002, ("user",), 0, 0, 0), (3, 0x200, ("guest",), 0, 0, 0),
            (5, 0, U, 0, 3, 0x601040), (5, 0, ("guest",), 0, 4, 0x400100)]


def holes(f):
    """Samples, of which some are damaged: the type, a part that is missing, the size."""
    records = [f.sample([USER, 0x400100 + n], 1000 * n) for n in range(1, 25)]
    records[4] = f.pack("I", 0x31415926) + records[4][4:]
    records[9] = records[9][5:]
    records[14] = records[14][:6] + f.pack("H", 0) + records[14][8:]
    records[19] = records[19][:6] + f.pack("H", 0xfff8) + records[19][8:]
    first = f.sample([USER, 0x400100], 0)
    first = first[:6] + f.pack("H", 500) + first[8:]
    last = records[23]  # three records in one
    records[23:] = [last[:6] + f.pack("H", 3 * len(last)) + last[8:], last, last]
    # As long as eight of them.
    records[20:20] = [last[:6] + f.pack("H", 8 * len(last)) + last[8:]] + [
        f.sample([USER, 0x400300 + n], 20001 + n) for n in range(1, 8)]
    records[:0] = [first, *(f.sample([USER, 0x400200 + n], n) for n in range(1, 8))]
    return f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") + b"".join(records)


def swallowed(f):
    """Other records whose size or type hides samples: a comm that ends where a sample ends, one that
    does not end at a word, and a fork that became a hardware trace."""
    samples = [f.sample([USER, 0x400100 + n], 1000 + n) for n in range(24)]
    comm = f.comm("y", 900)
    whole = comm[:6] + f.pack("H", len(comm) + 8 * len(samples[0])) + comm[8:]
    # The size and type of the record behind it would be those of a comm.
    samples[14] = samples[14][:26] + f.pack("IHH", COMM, 0, 10) + samples[14][34:]
    odd = comm[:6] + f.pack("H", len(comm) + 6 * len(samples[0]) + 26) + comm[8:]
    return f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") + whole + b"".join(samples[:8]) + odd + \
        b"".join(samples[8:16]) + f.pack("I", AUXTRACE) + f.fork(101, 101, 100, 2000)[4:] + \
        b"".join(samples[16:])


def nested(f):
    """Everywhere in a damaged sample, samples of its size seem to begin, and all of them end where records do."""
    return f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") + \
        f.pack("IHH", SAMPLE, USER_MODE, 1600) * 100 + f.record(ROUND, b"") * 300 + \
        b"".join(f.sample([USER, 0x400100 + n], 1000 + n) for n in range(3))


def tracing_data(f, formats, version="0.5"):
    """formats: {system: {event: id}}. There are no ftrace formats, kernel symbols or printk formats."""
    page = b"".join(b"\tfield: %s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % field for field in (
        (b"u64 timestamp", 0, 8, 0), (b"local_t commit", 8, 8, 1), (b"int overwrite", 8, 1, 1),
        (b"char data", 16, 4080, 0)))
    head = b"# compressed entry header\n"
    data = b"\x17\x08\x44tracing" + version.encode() + f.pack("xBBI", f.big, 8, 4096) + \
        b"header_page\0" + f.pack("Q", len(page)) + page + \
        b"header_event\0" + f.pack("Q", len(head)) + head + f.pack("II", 0, len(formats))
    for system, events in formats.items():
        data += system.encode() + b"\0" + f.pack("I", len(events))
        for event, id_ in events.items():
            text = "name: %s\nID: %d\nformat:\n\tfield:unsigned short common_type;\toffset:0;\t" \
                "size:2;\tsigned:0;\n\n\tfield:int x;\toffset:4;\tsize:4;\tsigned:1;\n\n" \
                "print fmt: \"\"\n" % (event, id_)
            data += f.pack("Q", len(text)) + text.encode()
    return data + f.pack("II", 0, 0) + (f.pack("Q", 2) + b"1 " if version > "0.5" else b"")


FORMATS = {"sched": {"sched_waking": 1330, "sched_switch": 1329}, "power": {"cpu_idle": 200}}
TRACEPOINTS = [(2, 1329, ("guest",), 0, 0, 0), (0, 0, U, 0, 0, 0)]


def simpleperf(kind, damage=False):
    """What simpleperf writes: tracing data whose record includes it, or in parts; records of its own; ids of
    events that come later; features of its own, but no names of events."""
    f = File(kinds=TRACEPOINTS)
    tracing = tracing_data(f, FORMATS)
    room = tracing + bytes(-len(tracing) % 64)
    length = f.pack("I", len(room) + 1 if damage else len(tracing))
    if kind == "split":
        whole = f.pack("IHH", SIMPLE_TRACING, 0, 12 + len(room) + damage) + length + room
        first = b"".join(f.record(SIMPLE_SPLIT, part) for part in (whole[:200], whole[200:])) + \
            f.record(SIMPLE_SPLIT_END, b"")
    else:
        first = f.record(SIMPLE_TRACING if kind == "own" else TRACING_DATA, length + room)
    data = first + b"".join([
        f.record(SIMPLE_SYMBOLS, f.pack("I", 3) + b"abc\0"), f.comm("x"),
        f.mmap2(0x400000, 0x1000, 0, "/system/bin/x"),
        f.sample([USER, 0x400100], 1000, period=1),
        f.record(SIMPLE_CHAIN, f.pack("IIQQQ", 100, 100, 0, 1000, 1) + f.pack("QQ", 0x400100, 0x70)),
        f.record(SIMPLE_ID, f.pack("QQQ", 2**60 if damage else 1, 1, 99)),
        f.sample([USER, 0x400104], 2000, id_=99), f.sample([USER, 0x400108], 3000, id_=8)])
    return f.file(data, features={
        ARCH: f.string("aarch64"), CMDLINE: f.pack("I", 1) + f.string("simpleperf"),
        128: f.pack("I", 8) + b"x\0" + bytes(6),
        129: b"simpleperf_version\0001.build\0event_type_info\0sched:sched_switch,2,1329\n"
             b"cpu-cycles,0,0\0"})


def tracepoints(big=False, file=False, version="0.5", tamper=lambda tracing: tracing, more=()):
    """perf record -o -, before it wrote names: those of tracepoints are in the tracing data."""
    f = File(big, kinds=[(2, id_, ("guest",), 0, 0, 0) for id_ in (1329, 200, *more)] + TRACEPOINTS[1:])
    tracing = tracing_data(f, FORMATS, version)
    tracing = tamper(tracing + bytes(-len(tracing) % 8))
    data = f.comm("x") + f.mmap2(0x400000, 0x1000, 0, "/bin/x") + b"".join(
        f.sample([USER, 0x400100], 1000 + n, id_=7 + n) for n in range(f.events))
    if not file:
        return f.pipe(f.record(TRACING_DATA, f.pack("I", len(tracing))) + tracing + data, names=False)
    features = {**f.features(), 1: tracing}
    del features[EVENT_DESC]
    return f.file(data, features)


def damaged_tracing():
    """What is in the tracing data, and how it is damaged."""
    start = len(b"\x17\x08\x44tracing0.5\0") + 6
    size = start + len(b"header_page\0")

    def at(place, new):
        return lambda tracing: tracing[:place] + new + tracing[place + len(new):]
    yield "cut", lambda tracing: tracing[:len(tracing) * 2 // 3 & ~7]
    yield "size", at(size, b"\xff" * 8)
    yield "magic", at(0, b"x")
    yield "title", at(start, b"x")


def deferred():
    f = File()
    chain = [KERNEL, TEXT + 8, DEFERRED_MARK, 0x77]
    tail = f.pack("QQQQQ", 0x77, 3, USER, 0x400100, 0x400200)
    return f.file(f.sample(chain, 1000, KERNEL_MODE) + f.sample(chain, 2000, KERNEL_MODE) +
                  f.sample([USER, 0x400300], 2500, tid=103) +
                  f.record(DEFERRED, tail + f.trailer(time=3000)) +
                  f.sample([KERNEL, TEXT + 8, DEFERRED_MARK, 0x78], 4000, KERNEL_MODE))


def toperf():
    """What the seL4 profiler's converter writes: names that overlap the fields of sample_id_all, a
    chain without the pc, and a feature without data."""
    f = File(sample_type=IP | TID | TIME | CALLCHAIN | CPU | PERIOD)

    def sample(ip, *callers):
        return f.record(SAMPLE, f.pack("QIIQQQQ", ip, 1, 1, 1000, 0, 1200000, len(callers)) +
                        b"".join(f.pack("Q", ip) for ip in callers), USER_MODE)
    return f.file(f.record(COMM, f.pack("II32s", 1, 1, b"dummy_prog2.elf"), KERNEL_MODE | 1 << 13) +
                  f.record(MMAP, f.pack("IIQQQ", 1, 1, 0x1f0000, 0x3252d00, 0) +
                           f.text("build/dummy_prog2.elf") + bytes(16), USER_MODE) +
                  sample(0x2000c0) + sample(0x200074, 0x2003c8, 0x2003f0), features={32: b""})[:-16]


def set_to(**values):
    return lambda header: header.update(values)


def cases():
    le, be = File(), File(big=True)
    yield "le", le.file(usual(le))
    yield "be", be.file(usual(be))
    yield "pipe", le.pipe(usual(le))
    yield "pipe-be", be.pipe(usual(be))
    zstd = {**le.features(), COMPRESSION: le.pack("5I", 1, 1, 1, 2, 1 << 19)}
    yield "compressed", le.file(compressed(le), features=zstd)
    yield "every-record", le.file(every_record(le))
    yield "groups", groups()
    yield "groups-inherited", inherited_groups()
    yield "groups-held", held_reads()
    yield "groups-odd", odd_reads()
    yield "groups-no-ids", reads_without_ids()
    yield "single-reads", single_reads()
    yield "branches", branches()
    yield "no-names", no_names(MODIFIED)
    yield "no-names-be", no_names(MODIFIED, True)
    for kind in ("inside", "own", "split"):
        yield "simpleperf-" + kind, simpleperf(kind)
        yield "simpleperf-%s-bad" % kind, simpleperf(kind, True)
    yield "tracepoints", tracepoints(file=True)
    yield "tracepoints-pipe", tracepoints()
    yield "tracepoints-pipe-be", tracepoints(True, version="0.6")
    yield "tracepoints-no-format", tracepoints(more=[77])
    for damage, tamper in damaged_tracing():
        yield "tracepoints-bad-" + damage, tracepoints(tamper=tamper)
    yield "kernel-no-offset", kernel_build_id(0, "[kernel.kallsyms]")
    yield "kernel-vmlinux", kernel_build_id(TEXT, "[kvm]", "/a.ko.d/vmlinux", "/lib/modules/x.ko", "/lib/modules/y.ko.xz")
    yield "markers", le.file(b"".join(
        le.sample(ips, 1000 + n) for n, ips in enumerate([
            [USER, 0x400100, NAMED, 0x40010000, 5], [NAMED, 0x40010000, 5], [2**64 - 4095, 0x400100],
            [USER, 0x400100, 2**64 - 1, 0x400200]])))
    yield "lbr", lbr()
    yield "lbr-be", lbr(True)
    yield "lbr-empty", no_lbr()
    yield "deferred", deferred()
    yield "toperf", toperf()
    yield "no-time", (lambda f: f.file(f.record(COMM, f.pack("II", 1, 1) + f.text("x") +
                                                f.trailer(1, 1)) +
                                       f.record(SAMPLE, f.pack("QQII", 7, 0x400100, 1, 1), 2)))(
        File(sample_type=IDENTIFIER | IP | TID))
    # Damage.
    yield "bad-compression", le.file(compressed(le, True), features=zstd)
    data = usual(le)
    yield "cut", le.file(data)[:232 + len(data) - 20 + 8]
    yield "size-zero", le.file(data[:400] + bytes(8) + data[400:])
    yield "holes", le.file(holes(le))
    yield "holes-pipe-be", be.pipe(holes(be))
    yield "holes-swallowed", le.file(swallowed(le))
    yield "holes-nested", le.file(nested(le))
    yield "size-beyond", le.file(le.comm("x") + le.pack("IHH", SAMPLE, 2, 4096) + bytes(64))
    yield "chain-lies", le.file(b"".join([
        le.sample([USER, 0x400100], 1000, nr=2**64 - 1),
        le.sample([USER, 0x400100], 2000, nr=2**61),
        le.sample([USER, 0x400100], 3000, nr=3), le.sample([USER, 0x400100], 4000)]))
    yield "short-records", le.file(b"".join(
        le.record(t, b"") for t in (MMAP, LOST, COMM, EXIT, FORK, SAMPLE, MMAP2, KSYMBOL, DEFERRED,
                                    ATTR, UPDATE, AUXTRACE)))
    yield "unfinished", le.file(data, features={}, data_size=0)
    yield "features-beyond", le.file(data, features={
        HOSTNAME: le.string("box"), ARCH: le.pack("I", 2**31) + b"x86",
        CMDLINE: le.pack("I", 2**32 - 1)})[:-8]
    yield "attrs-beyond", le.file(data, tamper=set_to(attrs_at=1 << 40))
    yield "attr-size", le.file(data, tamper=set_to(attr_size=8))
    yield "data-beyond", le.file(data, tamper=set_to(data_at=1 << 50))
    yield "header-cut", le.file(data)[:60]
    yield "header-size", le.file(data, tamper=set_to(size=1000))
    two = File(events=2)
    yield "unknown-id", two.file(two.sample([USER, 0x400100], 1000, id_=9) +
                                 two.sample([USER, 0x400100], 2000, id_=8))
    yield "aux-cut", le.file(le.record(AUXTRACE, le.pack("QQQIIII", 1 << 40, 0, 0, 0, 1, 0, 0)) +
                             bytes(32), features={}, data_size=0)
    yield "dwarf-lost", dwarf_lost()
    yield "dwarf-lost-info", dwarf_lost()
    yield "version-1", b"PERFFILE" + le.file(data)[8:]


def kernel_build_id(offset, *names):
    """Build IDs of the kernel's binaries: 20 times 1, 20 times 2..."""
    f = File()
    ids = b"".join(f.record(67, f.pack("i", -1) + bytes([n + 1] * 20 + [0] * 4) + f.text(name), KERNEL_MODE)
                   for n, name in enumerate(names))
    data = f.kernel(offset=offset) + f.sample([KERNEL, TEXT + 0x100], 1000, KERNEL_MODE)
    return f.file(data, features={**f.features(), BUILD_IDS: ids})


def dwarf_lost():
    """Registers and stacks of a program that is not there: frame pointers lead to two callers, then to the end of the
    stack, or to what cannot be code: no canonical address, no map, data, the end of the map."""
    f = File(sample_type=USUAL | REGS_USER | STACK_USER, regs=1 << 6 | 1 << 7 | 1 << 8)  # bp, sp, ip
    data = f.mmap2(0x400000, 0x1000, 0, "/none/app") + f.record(MMAP, f.pack(
        "IIQQQ", 100, 100, 0x500000, 0x1000, 0) + f.text("/none/data") + f.trailer(), USER_MODE | 1 << 13)
    sp = 0x7ffc00001000
    for n, last in enumerate([0, 0x1234567890abcdef, 0xfffe000000400300, 0x7f0000000010, 0x500010, 0x401000,
                              0x401001, 0x400300]):
        frames = [(0x20, 0x400200), (0x40, 0x400280), (0x60, last)]
        stack = bytearray(0x80)
        for at, (next_, back) in zip((0, 0x20, 0x40), frames):
            stack[at:at + 16] = f.pack("QQ", sp + next_, back)
        data += f.sample([USER, 0x400100], 1000 + n, after=f.pack("QQQQ", 2, sp, sp, 0x400100) +
                         f.pack("Q", len(stack)) + stack + f.pack("Q", len(stack)))
    return f.file(data)


if __name__ == "__main__":  # other tests use the class
    for name, content in cases():
        put("perfdata-" + name, "input.data", content)
    put("perfdata-dwarf-lost-info", "verb", "info\n")
