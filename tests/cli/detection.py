#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Detection of formats: data that begins damaged, and data that is none of them."""
import json
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, ROOT, equal, exits, finish, kscope, no_problems, run, scratch
from kit.inputs import GOLDEN, read, unpacked, write
from kit.kpdata import K, chain, histogram_row, kernel, oprofile, start

PC = 0xFFFFFFFFC0100010
RECORDS = 3000


def varint(value):
    if value < 251:
        return bytes([value])
    for tag, kind, bits in ((251, "<H", 16), (252, "<I", 32), (253, "<Q", 64)):
        if value < 1 << bits:
            return bytes([tag]) + struct.pack(kind, value)
    raise ValueError


def stack(rng, depth):
    return [PC + rng.randrange(0, 1 << 20) for _ in range(depth)]


def maestro(rng, _):
    ips = stack(rng, rng.randint(1, 20))
    return struct.pack(f"<B{len(ips)}Q", len(ips), *ips)


def memtrace(rng, _):
    name = rng.choice([b"malloc", b"buddy", b"slab"])
    return (bytes([len(name)]) + name +
            struct.pack("<BQQ", rng.randrange(3), PC + rng.randrange(1 << 28),
                        rng.randrange(9999)) + maestro(rng, 0))


def managarm(rng, _):
    ips = stack(rng, rng.randint(1, 15))
    return struct.pack(f"<II{len(ips)}Q", len(ips), rng.randrange(2), *ips)


def qperf(version):
    def make(rng, i):
        ips = stack(rng, rng.randint(1, 20))
        fixed = {1: [], 2: [i * 1000000], 3: [i * 1000000, ips[0], PC, PC + 64, i % 4]}[version]
        return (b"".join(map(varint, fixed)) + b"\1" * (version == 3) + varint(len(ips)) +
                b"".join(map(varint, ips)))
    return make


# Format and how to make its record i. kpdata starts with a process.
FORMATS = {
    "maestro": ("maestro", maestro),
    "memtrace": ("memtrace", memtrace),
    "managarm": ("managarm", managarm),
    "qperf 1": ("qperf", qperf(1)),
    "qperf 2": ("qperf", qperf(2)),
    "qperf 3": ("qperf", qperf(3)),
    "kpdata": ("kpdata", lambda rng, i: (b"" if i else start()) +
               kernel(3, 10000 + i, 0, chain(K, rng.randint(1, 9)), pid=5)),
    "kpoprofile": ("kpoprofile", lambda rng, i: oprofile(i % 2, 1000 * i,
                                                         chain(K, rng.randint(1, 9)))),
    "kphistogram": ("kphistogram", lambda rng, i: histogram_row(K + 8 * i, f"f{i}",
                                                                rng.randint(1, 99))),
}


def info(path):
    """Format, samples, damaged places, damaged bytes and exit code."""
    done = kscope("info", path, "--json")
    if done.returncode > 1:
        return None, 0, 0, 0, done.returncode
    facts = json.loads(done.stdout)
    return (facts["inputs"][0]["format"], facts["samples"], facts["damaged"],
            facts["damaged_bytes"], done.returncode)


def noise(rng, size):
    return bytes(rng.randrange(256) for _ in range(size))


def damages(rng):
    """Name, and what takes the place of so many bytes at the start."""
    yield "byte 0 is wrong", b"\xff", 1
    yield "byte 0 is missing", b"", 1
    yield "3 KB of noise at the start", noise(rng, 3000), 3000
    yield "20 KB of noise at the start", noise(rng, 20000), 20000
    yield "zeros in place of the first 5 KB", bytes(5000), 5000
    yield "text before the data", b"[    0.000000] Booting...\r\n" * 300, 0
    yield "0xff in place of the first 50 KB", b"\xff" * 50000, 50000


def test_damaged_start(folder):
    path = os.path.join(folder, "damaged")
    for name, (want, make) in FORMATS.items():
        rng = random.Random(name)
        data = b"".join(make(rng, i) for i in range(RECORDS))
        write(path, data)
        whole = info(path)
        equal(f"{name}: detected", (whole[0], whole[2:]), (want, (0, 0, 0)))
        for what, instead, size in damages(rng):
            write(path, instead + data[size:])
            got, samples, places, lost, code = info(path)
            # Some records behind the damage may be lost, too.
            least = whole[1] * (len(data) - size - 5000) // len(data)
            equal(f"{name}: {what}", (got, samples >= least, places > 0, lost > 0, code),
                  (want, True, True, True, 1))
            write(path, instead + data[size:size + 60000])
            with open(path, "rb") as f:
                done = run(KSCOPE, "info", "-", "--json", stdin=f)
            equal(f"{name}: {what}, standard input, shorter",
                  done.returncode == 1 and json.loads(done.stdout)["inputs"][0]["format"], want)


def test_wrong_depth(folder):
    """A depth that is too large takes the next records for frames."""
    path, nr = os.path.join(folder, "depth"), 300
    for version in (1, 2, 3):
        rng, make, wrong = random.Random(version), qperf(version), []
        records = [make(rng, i) for i in range(nr)]
        at = {1: 0, 2: 1, 3: 1 + 3 * 9 + 2}[version]  # of the depth
        for depth in range(21, 250):
            write(path, records[0][:at] + bytes([depth]) + records[0][at + 1:] + b"".join(records[1:]))
            got, samples, places, _, code = info(path)
            if (got, samples >= nr - 1, places > 0, code) != ("qperf", True, True, 1):
                wrong.append((depth, got, samples, places, code))
        no_problems(f"qperf {version}: the first depth is too large", wrong)


def test_histogram(folder):
    """Noise in the first row, with line breaks in it."""
    path = os.path.join(folder, "histogram")
    rows = [histogram_row(K + 8 * i, f"f{i}", 50) for i in range(60)]
    write(path, b"\n1 2\nx\n" + rows[0][7:] + b"".join(rows[1:]))
    equal("kphistogram: line breaks in the first row", info(path)[:2], ("kphistogram", 59 * 50))


def test_long_log(folder):
    """The dump of a Zephyr comes after more than 4 KB of other output."""
    path = os.path.join(folder, "log")
    data = read(GOLDEN, "zephyr-console", "input.txt")
    write(path, data)
    want = info(path)
    write(path, b"[00:00:00.010,000] <inf> app: booting\r\n" * 500 + data)
    equal("zephyr: after a long log", info(path), want)


def test_sel4(folder):
    path = os.path.join(folder, "sel4")
    for name, file in (("json", "json"), ("pb", "pb"), ("serial", "txt")):
        data = read(GOLDEN, f"sel4-{name}", f"input.{file}")
        if name == "pb":
            data = data[data.index(b"b.elf: 2\n") + 9:] * 300
        for what, instead in (("noise", noise(random.Random(3), 5000)),
                              ("a log", b"cpu0: ready\n" * 500)):
            write(path, instead + data)
            equal(f"sel4-{name}: {what} before it", info(path)[0], f"sel4-{name}")


def test_no_format(folder):
    """Data that is not a profile matches no format."""
    path = os.path.join(folder, "none")
    rng = random.Random(1)
    pointers = b"".join(struct.pack("<Q", PC + 16 * rng.randrange(1 << 20)) for _ in range(99))
    cases = {
        "noise": noise(rng, 100000),
        "short noise": noise(rng, 300),
        "zeros": bytes(100000),
        "ones": b"\1" * 100000,
        "0xff": b"\xff" * 100000,
        "bytes in order": bytes(range(256)) * 300,
        "numbers of 32 bits": struct.pack("<20000I", *range(20000)),
        "numbers of 64 bits": struct.pack("<20000Q", *range(20000)),
        "noise with pointers": (noise(rng, 1000) + pointers) * 50,
        "noise with a few records": b"".join(noise(rng, 2000) + maestro(rng, 0) * 5
                                             for _ in range(30)),
        "Latin-1": "Käse für alle, über Brücken; n'est-ce pas?\n".encode("latin-1") * 2000,
        "kscope itself": read(KSCOPE),
        "C": read(ROOT, "src", "format.c"),
        "a man page": read(ROOT, "man", "kscope.1"),
    }
    for name, data in cases.items():
        write(path, data)
        exits(f"no format: {name}", kscope("info", path), 3, "unknown format")


def test_others(folder):
    """No golden input, with noise before it, is taken for another format without a header."""
    path = os.path.join(folder, "other")
    bare = {name for name, _ in FORMATS.values()}
    rng = random.Random(2)
    wrong = []
    for name in sorted(os.listdir(GOLDEN)):
        source = os.path.join(GOLDEN, name)
        if not os.path.isdir(source) or os.path.exists(os.path.join(source, "args")):
            continue
        with unpacked(source) as place:
            files = [file for file in os.listdir(place) if file.startswith("input.")]
            if len(files) != 1 or os.path.isdir(os.path.join(place, files[0])):
                continue
            data = read(place, files[0])
        write(path, data)
        want = info(path)[0]
        for size in (1, 100, 5000):
            write(path, noise(rng, size) + data[min(size, 8):])
            got = info(path)[0]
            if got in bare and got != want:
                wrong.append(f"{name}: {size} bytes of noise make it {got}")
    no_problems("noise before other formats", wrong)


def main():
    with scratch() as folder:
        test_damaged_start(folder)
        test_wrong_depth(folder)
        test_histogram(folder)
        test_long_log(folder)
        test_sel4(folder)
        test_no_format(folder)
        test_others(folder)
    finish()


if __name__ == "__main__":
    main()
