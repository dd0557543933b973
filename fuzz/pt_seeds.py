#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pt_seeds.py pt|perfdata FOLDER: seeds for fuzz_pt and fuzz_perfdata: traces of the code in pt_code.h.

Those for fuzz_perfdata are whole files, which map the code: it is in FOLDER/../pt_code.bin, and in the ELF file
FOLDER/../pt_code.elf."""
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ELF_OFFSET = 0x1000  # of the code in an ELF file
USER, KERNEL, LOW = 0x401000, 0xffffffff81000000, 0x8048000
PSB, PSBEND, OVF, STOP, EXSTOP = b"\2\x82" * 8, b"\2\x23", b"\2\xf3", b"\2\x83", b"\2\xe2"
CBR, TMA = b"\2\3\x15\0", b"\2\x73\x10\x02\0\5\0"
MWAIT, PWRE, PWRX = b"\2\xc2" + bytes(8), b"\2\x22\x10\0", b"\2\xa2" + bytes(5)
BITS64, BITS32, IN_TX, ABORT = b"\x99\1", b"\x99\2", b"\x99\x21", b"\x99\x22"
HOST, GUEST, CFE, TRIG = b"\2\x43" + bytes(6), b"\2\x43\1" + bytes(5), b"\2\x13\x81\x20", b"\xd9\xc0\1\0\0"
BBP4, BBP8, BEP, BEP_IP = b"\2\x63\x84", b"\2\x63\4", b"\2\x33", b"\2\xb3"
TNT1, TNT0, LONG = b"\x06", b"\x04", b"\2\xa3" + b"\x55" * 6
TIP, PGE, PGD, FUP = 0x0d, 0x11, 0x01, 0x1d


def ip(op, address, form=6):
    size = {0: 0, 1: 2, 2: 4, 3: 6, 4: 6, 6: 8}[form]
    return bytes([form << 5 | op]) + struct.pack("<Q", address & (1 << 64) - 1)[:size]


def tsc(time):
    return b"\x19" + struct.pack("<Q", time)[:7]


def psb(address, time, mode=BITS64):
    return PSB + tsc(time) + TMA + CBR + mode + ip(FUP, address, 3) + PSBEND


def begin(address, time, mode=BITS64):
    return PSB + tsc(time) + PSBEND + mode + ip(PGE, address)


def traces():
    """(name, packets)"""
    yield "branches", begin(USER, 10) + TNT1 + TNT0 + b"\x59\2\x0b" + ip(TIP, KERNEL) + TNT0 + TNT0 + \
        ip(TIP, USER + 0xa, 3) + ip(TIP, USER + 5, 1) + TNT1 + TNT1 + ip(TIP, USER + 0x28, 1) + \
        b"\2\xb2" + bytes(8) + ip(FUP, USER + 0x28, 1) + TNT1 + TNT1 + ip(PGD, 0, 0)
    yield "interrupts", psb(USER, 100) + ip(FUP, USER + 0x10, 1) + ip(TIP, KERNEL + 0x20) + TNT1 + \
        ip(TIP, USER + 0x10) + psb(USER + 0x10, 200) + ip(FUP, USER + 0x15, 2) + ip(PGD, 0, 0) + \
        ip(PGE, USER + 0x15, 2) + OVF + ip(FUP, USER) + TNT0 + OVF + ip(PGE, USER + 0x20) + TNT1
    yield "notes", psb(USER + 0x37, 300) + IN_TX + ip(FUP, USER + 0x37, 1) + b"\x99\x20" + \
        ip(FUP, USER + 0x3d, 1) + ABORT + ip(FUP, USER + 0x40, 1) + ip(TIP, USER + 0x3f, 1) + \
        MWAIT + EXSTOP + ip(FUP, USER + 0x40, 1) + PWRE + PWRX + STOP
    yield "modes", psb(LOW, 1200, BITS32) + TNT1 + TNT1 + TNT0 + ip(TIP, LOW + 0x30, 2) + LONG + \
        BITS64 + ip(TIP, USER + 0x6e) + TNT0 + TNT1
    yield "deferred", psb(USER + 0xa, 400) + b"\x36" + ip(TIP, USER + 0x16, 1) + \
        ip(TIP, USER + 0x21, 1) + ip(TIP, USER + 0xe, 1)
    yield "endless", (psb(USER + 0x1a, 500) + TNT1 + psb(USER + 0x48, 600) + ip(PGD, 0, 0)) * 3
    yield "guests", psb(KERNEL + 0x67, 100) + GUEST + ip(TIP, USER) + TNT1 + LONG + tsc(7) + \
        ip(FUP, USER + 5, 1) + HOST + BITS64 + ip(TIP, KERNEL) + TNT1 + PSB + tsc(150) + GUEST + \
        ip(FUP, LOW, 3) + PSBEND + ip(TIP, LOW, 1) + PSB + HOST + ip(FUP, KERNEL, 3) + PSBEND + TNT0
    yield "items", psb(USER, 100) + BBP8 + b"\x0c" + bytes(8) + b"\x0b\x14" + bytes(8) + BEP_IP + \
        ip(FUP, USER + 1, 1) + TNT1 + BBP4 + b"\4\4\4\4\4" + b"\x59\3" + BEP + TNT0 + ip(TIP, KERNEL)
    yield "events", psb(USER, 100) + CFE + ip(FUP, USER + 1, 1) + b"\x99\5" + ip(FUP, USER + 1, 1) + \
        TNT1 + TRIG + ip(FUP, USER + 0x15, 1) + b"\2\x53" + bytes(9) + CFE[:2] + b"\1\x20" + \
        ip(FUP, USER + 0x15, 1) + ip(TIP, KERNEL)
    yield "pokes", b"".join(psb(KERNEL + 0x1e, 125 * i) + TNT1 + TNT1 + ip(TIP, KERNEL + 0x6e) + TNT1 +
                            ip(TIP, KERNEL + 0x40) + TNT1 + ip(TIP, KERNEL + 8192) + TNT1
                            for i in range(30))
    yield "long", b"".join(psb(USER + 0x21, 250 * i) + TNT0 + b"\xf8" * 20 + LONG for i in range(99))


def code():
    """The bytes of each array in pt_code.h, one after the other."""
    with open(os.path.join(HERE, "pt_code.h"), encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return bytes(int(byte, 16) for byte in re.findall(r"\b0x([0-9a-f]{2})\b", text))


def write_elf(path):
    """The same code at USER, in functions; one of them is only a label."""
    text = ".globl _start\n.type _start, %function\n.size _start, 16\n_start:\n"
    for at, byte in enumerate(code()):
        if at in (0x10, 0x20, 0x30, 0x48):
            text += f".type f{at}, %function\n" * (at != 0x30) + f"f{at}:\n"
        text += f".byte {byte}\n"
    subprocess.run(["clang", "-target", "x86_64-linux-gnu", "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,-z,separate-code",
                    f"-Wl,--image-base={USER - ELF_OFFSET:#x}", "-x", "assembler", "-", "-o", path],
                   input=text.encode(), check=True)


def record(kind, body, misc=2):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


class File:
    """A perf.data with traces of a thread (cpu -1), or of a cpu: whole, in snapshots, or in samples."""
    TYPE = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7  # identifier, tid, time, cpu
    PERIOD, AUX = 1 << 8, 1 << 20

    def __init__(self, path, cpu, snapshot=False):
        self.path, self.cpu, self.data = path, cpu, b""
        info = [8, 0, 1, 0, 1, 1 << 10, 1 << 11, 3, snapshot, cpu >= 0, 1 << 9, 15 << 14, 84, 2, 2, 21]
        self.data += record(70, struct.pack("<II16Q", 1, 0, *info))

    def add(self, kind, body, time, pid=100, tid=100, misc=2):
        body += bytes(-len(body) % 8)
        trailer = struct.pack("<IIQIIQ", pid, tid, time, max(self.cpu, 0), 0, 1)
        self.data += record(kind, body + trailer, misc)

    def map(self, address, size, offset, time):
        offset += ELF_OFFSET * self.path.endswith(".elf")
        self.add(10, struct.pack("<IIQQQ24xII", 100, 100, address, size, offset, 5, 2) +
                 self.path.encode() + b"\0", time)

    def poke(self, address, old, new, time):
        self.add(20, struct.pack("<QHH", address, len(old), len(new)) + old + new, time, misc=1)

    def trace(self, packets, offset):
        self.data += record(71, struct.pack("<QQQIiiI", len(packets), offset, 0, 0,
                                            -1 if self.cpu >= 0 else 100, self.cpu, 0)) + packets

    def sample(self, packets, time):
        packets += bytes(-len(packets) % 8)
        self.data += record(9, struct.pack("<QIIQIIQQ", 2, 100, 100, time, max(self.cpu, 0), 0, 1,
                                           len(packets)) + packets)

    def compress(self):
        """All so far, except the first record, which is not from the kernel, becomes compressed records."""
        first = struct.unpack_from("<H", self.data, 6)[0]
        rest, self.data, start = self.data[first:], self.data[:first], b"\x28\xb5\x2f\xfd\x00\x38"
        for at in range(0, len(rest), 5000):
            block = rest[at:at + 5000]
            content = start + struct.pack("<I", len(block) << 3)[:3] + block
            self.data += struct.pack("<IHH", 81, 0, 8 + len(content)) + content
            start = b""

    def bytes(self):
        flags = 1 << 18 | 1 << 8 | 1 << 9 | 1 << 13
        attrs = b"".join(
            struct.pack("<IIQQQQQ", kind, 120, config, 1, fields, 0, flags).ljust(112, b"\0") +
            struct.pack("<IIQQ", size, 0, ids, 8)
            for kind, config, fields, size, ids in (
                (8, 0x300e603, self.TYPE, 0, 376),
                (0, 5, self.TYPE | self.PERIOD | self.AUX, 4096, 384)))
        head = struct.pack("<8s12Q", b"PERFILE2", 104, 136, 104, 272, 392, len(self.data),
                           0, 0, 0, 0, 0, 0)
        return head + attrs + struct.pack("<QQ", 1, 2) + self.data


def begin_file(path, size, cpu, snapshot=False):
    f = File(path, cpu, snapshot)
    f.add(3, struct.pack("<II", 100, 100) + b"work\0", 1)
    f.map(USER, size, 0, 2)
    f.map(KERNEL, size, 0, 2)
    f.add(12, struct.pack("<II", 100, 100), 3)
    f.add(10, struct.pack("<IIQQQ24xII", 0xffffffff, 0, KERNEL, size, 0, 5, 2) + b"[mod]\0", 3, misc=1)
    f.poke(KERNEL + 0x1e, b"\x90\x90", b"\xeb\xe0", 200)
    f.poke(KERNEL + 8192, b"", b"\x90\xc3", 300)
    return f


def parts_of(all_traces):
    """Each with the end of the one before."""
    before = b""
    for packets in all_traces:
        yield before[-300:] + packets
        before = packets


def snapshot_file(path, size, cpu, all_traces):
    f = begin_file(path, size, cpu, True)
    for i, packets in enumerate(parts_of(all_traces)):
        f.trace(packets + bytes(-len(packets) % 8), i * 72 % 256)
    f.add(14, b"", 450, 100, 101, 0)
    return f.bytes()


def sample_file(path, size, cpu, all_traces, compressed=False):
    f = begin_file(path, size, cpu)
    for i, packets in enumerate(parts_of(all_traces)):
        f.sample(packets, 200 + 300 * i)
    f.add(14, b"", 450, 100, 101, 0)
    if compressed:
        f.compress()
    return f.bytes()


def whole_file(path, size, cpu, all_traces):
    f = begin_file(path, size, cpu)
    offset = 0
    for packets in all_traces:
        f.trace(packets, offset)
        f.add(11, struct.pack("<QQQ", offset, len(packets), 0), 700 + offset)
        offset += len(packets)
    f.add(14, b"", 1000, 100, 101, 0)
    f.add(7, struct.pack("<IIIIQ", 101, 100, 101, 100, 900), 900)
    f.map(LOW, size, 0, 1000)
    f.trace(all_traces[-1], offset + 64)
    f.add(4, struct.pack("<IIIIQ", 100, 1, 100, 1, 5000), 5000)
    return f.bytes()


def main():
    kind, folder = sys.argv[1:]
    seeds = dict(traces())
    if kind == "perfdata":
        path = os.path.abspath(os.path.join(folder, "..", "pt_code.bin"))
        with open(path, "wb") as f:
            f.write(code())
        elf = path.replace(".bin", ".elf")
        write_elf(elf)
        packets = list(seeds.values())
        files = {f"{name}-{cpu}": whole_file(path, len(code()), cpu, some)
                 for cpu in (-1, 0) for name, some in [("all", packets)] +
                 [(name, [each]) for name, each in seeds.items()]}
        for cpu in (-1, 0):
            files[f"snapshots-{cpu}"] = snapshot_file(path, len(code()), cpu, packets)
            files[f"samples-{cpu}"] = sample_file(path, len(code()), cpu, packets)
            files[f"packed-{cpu}"] = sample_file(path, len(code()), cpu, packets, True)
            files[f"elf-{cpu}"] = whole_file(elf, len(code()), cpu, packets)
        seeds = files
    for name, content in seeds.items():
        # The last byte selects options: see the fuzzers.
        for options in (0, 18, 82):
            with open(os.path.join(folder, f"pt-{name}-{options}"), "wb") as f:
                f.write(content + bytes([options, options]))


main()
