#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Compressed records of perf.data that unpack to far more than their size. zstd may have read all of a record, and
still hold a part of what is in it.
"""
import json
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "golden")]
from kit import equal, finish, kscope, run, scratch
import perfdata_make as make

SAMPLES = 20000


def blocks(data):
    """The blocks of a zstd stream that does not end, as perf flushes them."""
    frame = run("zstd", "--zstd=wlog=17", "--no-check", "-c", "-", input=data, binary=True).stdout
    result, at = b"", 6  # after the magic number, the descriptor and the size of the window
    while at < len(frame):
        head = int.from_bytes(frame[at:at + 3], "little")
        size = 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
        result += (head & ~1).to_bytes(3, "little") + frame[at + 3:at + size]
        at += size
    return result


def main():
    f = make.File()
    plain = b"".join(f.sample([make.USER, 0x400100, 0x400200], 1000 + i) for i in range(SAMPLES))
    features = {**f.features(), make.COMPRESSION: f.pack("5I", 1, 1, 1, 2, 1 << 19)}
    with scratch() as folder:
        path = os.path.join(folder, "perf.data")
        for first in [8, 1000, 60000, 100000]:
            packed = b"\x28\xb5\x2f\xfd\x00\x38" + make.zstd_block(plain[:first]) + blocks(plain[first:])
            data = b"".join(f.record(make.COMPRESSED, packed[i:i + 60000])
                            for i in range(0, len(packed), 60000))
            with open(path, "wb") as out:
                out.write(f.file(data, features=features))
            done = kscope("info", "--json", path)
            equal(f"{len(plain)} bytes in compressed records, the first block of {first}: all samples",
                  (done.returncode, json.loads(done.stdout)["samples"]), (0, SAMPLES))
    finish()


if __name__ == "__main__":
    main()
