#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""perfdata_seeds.py FOLDER: writes inputs of fuzz_perfdata: features of older and newer versions of perf, whole and cut;
records that only some versions write; values of counters in each form."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "golden"))
from perfdata_make import (ATTR, AUXTRACE, AUXTRACE_INFO, COMPRESSED, FEATURE, FORMATS, File, IDENTIFIER, IP, KERNEL_MODE,
                           PERIOD, RAW, READ, TID, TIME, UPDATE, USER, USER_MODE, tracing_data, usual, zstd_block)

TRACING, BUILD_ID, VERSION, CPUDESC, CLOCK = 1, 2, 5, 8, 29
BUILD_ID_RECORD, COMPRESSED2, GUEST_USER = 67, 83, 5
SIZED = 1 << 15  # the record has the length of the build id
PIPED = 4  # see fuzz_reader.c


def build_id(f, path, id_, sized):
    head = id_.ljust(20, b"\0") + (bytes((len(id_), 0, 0, 0)) if sized else bytes(4))
    return f.record(BUILD_ID_RECORD, f.pack("I", 100) + head + f.text(path), USER_MODE | SIZED * sized)


def ids(f):
    return b"".join(build_id(f, path, bytes(range(1, 1 + size)), sized)
                    for path, size, sized in (("/bin/x", 20, False), ("/bin/x", 16, True), ("/lib/y.so", 8, False),
                                              ("[kernel.kallsyms]", 20, True), ("/none", 0, False), ("/bad", 30, True)))


def features(f):
    more = {BUILD_ID: ids(f), VERSION: f.string("6.1.0"), CPUDESC: f.string("a cpu"), TRACING: tracing_data(f, FORMATS),
            CLOCK: f.pack("IIQQ", 1, 1, 1700000000000000000, 5000)}
    return {**f.features(), **more}


def with_features(f):
    all_features = features(f)
    yield "all", f.file(usual(f), all_features)
    for bit, body in all_features.items():
        for size in (len(body) // 2, 3):
            yield f"cut-{bit}-{size}", f.file(usual(f), {**all_features, bit: body[:size]})
    told = b"".join(f.record(FEATURE, f.pack("Q", bit) + body) for bit, body in all_features.items() if len(body) < 60000)
    yield "told", f.pipe(told * 2 + f.record(FEATURE, b"abcd") + ids(f) + usual(f))


def updates(f):
    """Units, scales and names of events; events that come after samples, and one without a size."""
    data = usual(f)
    for kind, text in ((0, "ms"), (0, "ns"), (1, "\0\0"), (0, ""), (2, "renamed"), (3, "cpus")):
        data += f.record(UPDATE, f.pack("QQ", kind, 7) + f.text(text)) + f.sample([USER, 0x400100], 10000)
    data += f.record(UPDATE, f.pack("QQ", 0, 99) + f.text("none")) + f.record(UPDATE, f.pack("Q", 0))
    data += f.record(ATTR, f.attr(0)[:4] + bytes(4) + f.attr(0)[8:64] + f.pack("Q", 55))
    return data + f.sample([USER, 0x400104], 20000, id_=55)


def hardware(f, kind):
    data = bytes(range(40)) * 30
    return f.record(AUXTRACE_INFO, f.pack("II4Q", kind, 0, 1, 2, 3, 4)) + \
        f.record(AUXTRACE, f.pack("QQQIIII", len(data), 0, 0, 0, 100, 0, 0)) + data + usual(f)


def packed(f, version=1, damage=b""):
    """Compressed records: of later versions, with their sizes. damage: a record inside."""
    data = usual(f) + damage + usual(f)
    cut = len(data) // 2 + 4
    parts = b"\x28\xb5\x2f\xfd\x00\x38" + zstd_block(data[:cut]), zstd_block(data[cut:])
    if version == 1:
        return b"".join(f.record(COMPRESSED, part) for part in parts)
    return b"".join(f.record(COMPRESSED2, f.pack("Q", len(part) + lie) + part + bytes(-len(part) % 8))
                    for part, lie in zip(parts, (0, 0 if version == 2 else 4096)))


def counters():
    """Each form of the values that a sample has."""
    for form in range(32):
        f = File(sample_type=IDENTIFIER | IP | TID | TIME | READ | PERIOD | RAW, read_format=form)
        one = f.pack("Q", 7) * (form >> 2 & 1) + f.pack("Q", 0) * (form >> 4 & 1)
        times = f.pack("Q", 50) * ((form & 1) + (form >> 1 & 1))
        read = f.pack("QQ", 1, 100)[:8] + times + f.pack("Q", 100) + one if form & 8 else f.pack("Q", 100) + times + one
        yield f"counters-{form}", f.file(b"".join(
            f.sample([0x400100], 1000 * n, (USER_MODE, KERNEL_MODE, GUEST_USER)[n % 3], read=read, after=f.pack("I", 4) + b"raw!")
            for n in range(4)))


def files():
    for big in (False, True):
        f = File(big)
        for name, data in with_features(f):
            yield f"{name}-{big}", data
        yield f"updates-{big}", f.pipe(updates(f))
        yield f"late-{big}", f.file(updates(f))
    for kind in range(1, 9):
        yield f"hardware-{kind}", f.file(hardware(f, kind))
    f = File()
    compression = {**f.features(), 27: f.pack("5I", 1, 1, 1, 2, 1 << 19)}
    for version in (1, 2, 3):
        for number, damage in enumerate((b"", bytes(16), f.pack("IHH", 9, 2, 3))):
            yield f"packed-{version}-{number}", f.file(packed(f, version, damage) + usual(f), compression)
    yield from counters()


def main():
    for name, data in files():
        for options in (0, PIPED):
            with open(os.path.join(sys.argv[1], f"{name}-{options}"), "wb") as to:
                to.write(data + bytes((options, 0)))


if __name__ == "__main__":
    main()
