# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes Akaros profiles record by record: kpdata of three versions, kpoprofile, kphistogram."""
import struct

KERNEL, USER, MAP, PROCESS = 1, 2, 3, 4
NO_PID = 0xFFFFFFFF
TIMER_1MS = 1 << 60 | 1000


def leb128(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def record(kind, body):
    return leb128(kind) + leb128(len(body)) + body


def addresses(pcs):
    return struct.pack("<%dQ" % len(pcs), *pcs)


def kernel(version, time, cpu, pcs, pid=NO_PID, info=TIMER_1MS, n=None):
    """A kernel trace; n: its field for the number of addresses, which may be wrong."""
    head = b"" if version == 1 else struct.pack("<Q", info)
    head += struct.pack("<Q", time)
    if version == 3:
        head += struct.pack("<I", pid)
    head += struct.pack("<HH", cpu, len(pcs) if n is None else n)
    return record(KERNEL, head + addresses(pcs))


def user(version, time, pid, cpu, pcs, info=TIMER_1MS, n=None):
    head = b"" if version == 1 else struct.pack("<Q", info)
    head += struct.pack("<QIHH", time, pid, cpu, len(pcs) if n is None else n)
    return record(USER, head + addresses(pcs))


def mapping(time, pid, addr, size, offset, path):
    return record(MAP, struct.pack("<QQQQI", time, addr, size, offset, pid) + path.encode() + b"\0")


def process(time, pid, path):
    return record(PROCESS, struct.pack("<QI", time, pid) + path.encode() + b"\0")


def twice(pcs):
    """The leaf stored twice, as kernels up to 2016-07 did if they could walk the stack."""
    return pcs[:1] + pcs if len(pcs) > 1 else pcs


def oprofile(core, time, pcs):
    return struct.pack("<QQ", 0xEE01 << 48 | core << 16 | len(pcs), time) + addresses(pcs)


def histogram_row(pc, name, ticks):
    return b"%016x %29.29s %016x\n" % (pc, name.encode(), ticks)


# Addresses in the kernel's and the program's text.
K, U = 0xFFFFFFFFC2001180, 0x401180


def start(pid=5, path="/bin/app", time=1000):
    """Starts a process: its map comes first, then its name."""
    return mapping(time, pid, 0x401000, 0x1000, 0x1000, path) + process(time + 500, pid, path)


def chain(leaf, depth=3):
    return [leaf + 4] + [leaf + 0x12 + 0x30 * i for i in range(depth - 1)]
