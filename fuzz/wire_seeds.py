#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""wire_seeds.py FOLDER: writes inputs of fuzz_wire: recordings of many address spaces and of guests, with binaries that
they name, which are in FOLDER/../wire_NAME; traces of random code; what samplers inside kernels write."""
import os
import random
import struct
import subprocess
import sys

from place_seeds import SOURCE

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from kit.wire_write import Target, chunk, content, end, event, info, map_, number, round_, sample, task, varint

KERNEL, USER, LIBRARY, PAGE = 0xffffffff81000000, 0x400000, 0x7f0000000000, 4096
LINK = ("clang", "-target", "x86_64-linux-gnu", "-O2", "-nostdlib", "-fuse-ld=lld", "-Wl,-z,separate-code", "-x", "c", "-", "-o")
PIPED = 4  # see fuzz_reader.c
ON, JUMP, COND, JUMP_ANY, CALL, CALL_ANY, RETURN, ENTER, LEAVE, WAIT = range(10)
MAYBE, STATE, STACK, MASK = 1, 2, 4, 8


class Binary:
    """What clang makes: its path, its code, and where the functions are."""

    def __init__(self, folder, name, *flags):
        self.path = os.path.abspath(os.path.join(folder, "..", "wire_" + name))
        subprocess.run([*LINK, self.path, *flags], input=SOURCE.replace("* 3 +", f"* {3 + len(name)} +").encode(), check=True)
        with open(self.path, "rb") as f:
            data = f.read()
        at, size, nr = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        for header in (struct.unpack_from("<IIQQQQQQ", data, at + n * size) for n in range(nr)):
            if header[0] == 1 and header[1] & 1:
                self.address, self.code = header[3], data[header[2]:header[2] + header[5]]
        at, size, nr = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
        self.functions = []
        for header in (struct.unpack_from("<IIQQQQIIQQ", data, at + n * size) for n in range(nr)):
            if header[1] == 2:
                symbols = (struct.unpack_from("<IBBHQQ", data, header[4] + n) for n in range(24, header[5], 24))
                self.functions = [symbol[4] for symbol in symbols if symbol[1] & 15 == 2]

    def page(self, n, moved=0, space=0, level=0, time=0, change=b""):
        """A page of its code ran."""
        at = min(n * PAGE, (len(self.code) - 64) // PAGE * PAGE)
        return code(time, space, level, self.address + at + moved, change + self.code[at + len(change):at + 64])


def code(time, space, level, address, data):
    return content(8, number(1, time) + number(2, space) + number(3, level) + number(4, address) + content(5, data))


def about(binaries=(), kernel="", event_name="", trace=0, **more):
    return chunk(info(kernel=kernel, **more) + content(5, b"".join(content(11, elf.path) for elf in binaries) +
                                                      number(12, trace) + (content(13, event_name) if event_name else b"")))


def spaces(kernel, program, other, library):
    """Each process has a program and a library; some have another program later, or other code in a page."""
    data = about((program, other, library), kernel.path)
    for n in range(20):
        space, fields = 0x1000000 * (n % 12 + 1), []
        first = (program, other)[n % 3 == 0]
        fields += [sample(1000 * n, KERNEL + 16 * n, space=space), first.page(n % 3, space=space, time=1000 * n + 1),
                   first.page(1, space=space), library.page(n % 2, LIBRARY, space),
                   library.page(1, LIBRARY, space), sample(1000 * n + 5, USER, space=space, level=0)]
        if n % 4 == 1:
            fields += [other.page(0, PAGE * 64, space, time=1000 * n + 6), program.page(0, space=space, change=b"changed")]
        fields += [kernel.page(n % 3, 0x200000 * (n % 2), space, 1), sample(1000 * n + 9, USER + 64, space=space, level=0)]
        data += chunk(*fields, cpu=n % 2, sequence=n // 2) + round_(1000 * n)
    many = [code(0, 0x5000000 * n, 0, USER, program.code[:64]) for n in range(12)]
    return data + chunk(*many, sample(30000, USER, space=0x90000000, level=0), cpu=0, sequence=10) + end((0, 31, 0), (1, 30, 0))


def no_mmu(program, other):
    return about((program, other), arch="arm") + chunk(
        program.page(0), sample(10, USER, level=0, space=0), other.page(0), sample(20, USER, level=0, space=0),
        cpu=0) + end((0, 2, 0))


def guests(arch):
    data = about(arch=arch, cpus=1)
    for n in range(30):
        guest = n % 5 << 52
        data += chunk(sample(100 * n, KERNEL, space=guest | 0x1000 * n), code(0, guest | 7 << 12, n % 2, USER, bytes(64)),
                      sample(100 * n + 50, USER, space=guest | 0x1000 * n, level=0), cpu=0, sequence=n)
    return data + end((0, 60, 0))


def moved(kernel, slide, wrong=0, arch="x86_64"):
    """A kernel with KASLR: functions that ran. wrong: so far from their beginnings."""
    data = about((), kernel.path, arch=arch, version=3)
    for n, address in enumerate(kernel.functions):
        data += chunk(sample(100 * n, address + slide + wrong * (n % 7)),
                      sample(100 * n + 50, USER + n, level=0, space=0x1001000), cpu=0, sequence=n)
    pages = [] if wrong else [kernel.page(0, slide, level=1), kernel.page(1, slide, level=1)]
    return data + chunk(*pages, cpu=0, sequence=len(kernel.functions)) + end((0, 2 * len(kernel.functions), 0))


def inside(kernel, program, arch):
    """A sampler inside a kernel: frames with interrupted ones and links, names, binaries."""
    target = Target(arch=arch)
    target.describe(event(0, "timer", 1, 0, unit="ns", frequency=1000), event(3, "cache", 1, 5, 100), task(1, "init"),
                    task(9, "program"), task(7, "shell", time=5), map_(kernel.path),
                    map_(program.path, 7, USER, len(program.code), PAGE))
    for n in range(12):
        frames = [KERNEL + 64 * i for i in range(n)] + [USER + 16 * i for i in range(n // 2)]
        interrupted = [(i, KERNEL + i * n % 5) for i in range(n % 4, 12, 1 + n % 3)]
        target.take(sample(100 * n, frames[0] if frames else KERNEL, space=0, task=(1, 7, 9)[n % 3], frames=frames,
                           user_frames=n // 2, link=KERNEL + 32 * (n % 2), interrupted=interrupted, event=(0, 3, 5)[n % 3]),
                    sample(100 * n + 50, USER, space=0, task=7, level=0, frames=[USER, USER + 8], user_frames=2,
                           interrupted=interrupted[:2], stack=bytes(64), registers=[KERNEL] * 33))
    return target.end()


def signed(value):
    return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


class Trace:
    """Codes of a trace, as random as a decoder accepts them."""

    def __init__(self, seed, version):
        self.rng, self.version = random.Random(seed), version
        self.defined, self.ends, self.count = 0, [], 0

    def one_of(self, *choices):
        return self.rng.choice(choices)

    def begin(self):
        return bytes((0xc6, self.one_of(0, 0, 0, 1), 0)) + varint(0) + self.state(5)

    def state(self, mask=None):
        if mask is None:
            mask = self.one_of(1, 3, 5, 7, 17, 21, 9, 23) | self.rng.randrange(4) << 5
        data = bytes((0xc5, mask))
        for bit, value in ((1, signed(self.one_of(0x9000, -0x40, 0x40, 8))),
                           (2, varint(self.one_of(0, 0x1000, 3 << 52 | 0x2000, 1 << 52))), (4, varint(self.one_of(0, 1, 1, 2))),
                           (8, signed(self.one_of(0, 0x1000))), (16, signed(self.one_of(0, 0x80, -0x100)))):
            data += value if mask & bit else b""
        return data

    def new(self, flow=None):
        flags = 0 if flow else self.one_of(0, 0, MAYBE, STATE)
        flow = flow or self.rng.randrange(10)
        if self.version >= 2:
            flags |= self.one_of(0, STACK, STACK)
        if self.version >= 3:
            flags |= self.one_of(0, 0, MASK)
        start = self.one_of(0x1000, 0x2000, 0xfff0, self.defined, self.defined, USER)
        data = b"\xc1" + signed(start - self.defined) + bytes((flow | flags << 4, 4, 16, 2))
        self.defined = start + 16
        if flow in (JUMP, COND, CALL):
            data += signed(self.one_of(0x1000, 0x2000, start, 0x10ff0) - self.defined)
        if flags & STACK:
            data += b"".join(signed(self.one_of(-8, 8, 0, -0x40, 1)) for _ in range(1 + (flags & STATE > 0)))
        if flags & MASK:
            mask = self.rng.randrange(16)
            data += bytes((mask,)) + (bytes((self.rng.randrange(1, 5),)) if mask & 3 else b"")
        self.ends.append(self.defined)
        self.count += 1
        return data

    def loop(self):
        """A block that leads to itself, then steps, the first one perhaps with facts about it."""
        told = b"\xca\1" if self.rng.randrange(4) == 0 else b""
        block = self.new(self.one_of(JUMP, COND, WAIT, JUMP_ANY))
        return block + b"\xc0" + varint(self.count - 1) + told + b"\x85\0\1" + bytes(8)

    def before(self):
        """Facts about the next step."""
        short = bytes((0xc2, self.rng.randrange(5))) if self.rng.randrange(3) == 0 else b""
        trap = bytes((0xc3, self.rng.randrange(16) << 1)) if self.rng.randrange(2) else b""
        if trap and self.rng.randrange(3) == 0:
            trap = bytes((0xc3, self.rng.randrange(16) << 1 | 1)) + signed(self.one_of(0, 14, 16, 0x1000, 4))
        leave = b"\xc9" if self.rng.randrange(4) == 0 else b""
        mask = bytes((0xca, self.rng.randrange(4))) if self.version >= 3 and self.rng.randrange(4) == 0 else b""
        return short + trap + leave + mask + (self.state() if self.rng.randrange(3) else b"")

    def piece(self, length):
        data = self.begin() + self.new()
        for _ in range(length):
            what = self.rng.randrange(10)
            if what < 4:
                data += (self.before() if what < 2 else b"") + self.new()
            elif what < 8:
                data += (self.before() if what < 6 else b"") + b"\xc0" + varint(self.rng.randrange(self.count))
            elif what == 8:
                data += self.one_of(b"\xc4" + varint(self.one_of(0, 10, 1000)), self.loop())
            else:
                data += self.one_of(b"\xc8" + varint(1 + self.rng.randrange(9)), b"\x81" + bytes((self.rng.randrange(2),)),
                                    b"\xc7" + bytes((self.rng.randrange(5),)) + self.begin() + self.new())
        return data


def traces():
    for seed in range(40):
        version = seed % 3 + 1
        trace = Trace(seed, version)
        data = about(arch=("x86_64", "i386", "riscv64", "arm", "aarch64", "armv7l")[seed % 6], version=version, cpus=1, trace=1)
        for n in range(12):
            piece = trace.piece(60)
            data += chunk(number(12, 1000 + 5000 * n), content(9, piece[:-(seed + n) % 5 or None]), cpu=0, sequence=n * 2)
        yield f"trace-{seed}", data + end((0, 0, 0))


def recordings(folder):
    kernel = Binary(folder, "kernel", "-static", "-fno-pic", f"-Wl,--image-base={KERNEL:#x}")
    program = Binary(folder, "program", "-static", "-fno-pic", f"-Wl,--image-base={USER:#x}")
    other = Binary(folder, "other.elf", "-static", "-fno-pic", f"-Wl,--image-base={USER:#x}")
    library = Binary(folder, "lib.so.1", "-shared", "-fPIC")
    yield "spaces", spaces(kernel, program, other, library)
    yield "no-mmu", no_mmu(program, other)
    for arch in ("x86_64", "i386", "arm", "riscv32", "other"):
        yield "guests-" + arch, guests(arch)
    for slide in (0, 0x1200000):
        yield f"moved-{slide:x}", moved(kernel, slide)
    yield "moved-arm64", moved(kernel, 0x10000, arch="aarch64")
    yield "moved-nowhere", moved(kernel, 0x1200000, 5)
    yield "missing", about((), "/none/kernel") + chunk(sample(100, KERNEL), cpu=0) + end((0, 1, 0))
    for arch in ("aarch64", "x86_64", "arm"):
        yield "inside-" + arch, inside(kernel, program, arch)
    yield "named", about(event_name="misses", version=3) + chunk(sample(100, KERNEL), cpu=0) + end((0, 1, 0))
    yield from traces()


def main():
    for name, data in recordings(sys.argv[1]):
        traced = name.startswith("trace-")
        for options in (0,) if traced else (0, PIPED):
            with open(os.path.join(sys.argv[1], f"{name}-{options}"), "wb") as f:
                f.write(data + bytes((options, 0)))


if __name__ == "__main__":
    main()
