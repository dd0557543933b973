#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams over bad links: bits flip, bytes get lost, come twice or out of nowhere, chunks come late, connections
break and come back. In a wire stream with checksums, every sample that comes out was sent, none comes out twice, and
the others are counted."""
import collections
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, equal, finish, no_problems, run, scratch
from kit.wire_read import Stream
from kit.wire_write import chunk, content, crc32c, end, info, round_, sample, varint

PC = 0xffffffff81000000
CPUS, CHUNKS = 3, 12
SEEDS = 120
SAMPLE = re.compile(r"^sample time=(\d+)\.(\d{9}) cpu=(\d+) .* : kernel 0x(\w+)$")
LOST = re.compile(r"^lost .*count=(\d+) ")


def recording(rng, checked):
    """The chunks, how many samples each has, and all samples: time, cpu, pc."""
    pieces, sizes, sent = [chunk(info(cpus=CPUS, version=4 if checked else 3, start=5), checked=checked)], [0], []
    counts, time = collections.Counter(), 0
    for n in range(CHUNKS):
        for cpu in range(CPUS):
            records = []
            for _ in range(rng.randrange(1, 12)):
                time += rng.randrange(1, 1000)
                sent.append((time, cpu, PC + rng.randrange(1 << 20)))
                records.append(sample(time, sent[-1][2], stack=rng.randbytes(rng.randrange(40))))
            counts[cpu] += len(records)
            # A chunk in the memory that a sample copies is none.
            extra = [content(99, chunk(sample(1, 2), cpu=0))] if rng.random() < 0.1 else []
            pieces.append(chunk(*records, *extra, cpu=cpu, sequence=n, checked=checked))
            sizes.append(len(records))
        pieces.append(round_(time, sequence=n + 1, checked=checked))
        sizes.append(0)
    return pieces, sizes, sent, end(*[(cpu, counts[cpu], 0) for cpu in range(CPUS)],
                                     sequence=CHUNKS + 1, checked=checked)


def samples(text):
    found = []
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match:
            seconds, ns, cpu, pc = match.groups()
            found.append((int(seconds) * 10**9 + int(ns), int(cpu), int(pc, 16)))
    return found


def lost(text):
    return sum(int(match[1]) for match in map(LOST.match, text.splitlines()) if match)


def burst(rng, data):
    """The data with one fault, and which bytes of it are hit."""
    at, size = rng.randrange(len(data)), rng.randrange(1, 200)
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:], (at, at + 1)
    if kind == 1:
        noise = rng.randbytes(len(data[at:at + size]))
        return data[:at] + noise + data[at + size:], (at, at + size)
    if kind == 2:
        return data[:at] + data[at + size:], (at, at + size)
    if kind == 3:
        return data[:at + size] + data[at:], (at, at + size)
    return data[:at] + rng.randbytes(size) + data[at:], (at, at + 1)


def touched(pieces, sizes, place):
    """How many samples are in the chunks that these bytes belong to."""
    at = total = 0
    for piece, size in zip(pieces, sizes):
        total += size * (at < place[1] and at + len(piece) > place[0])
        at += len(piece)
    return total


def convert(data):
    return run(KSCOPE, "convert", "-", "-t", "dump", "-o", "-", "-f", "kscope", input=data)


def problems(sent, text):
    got, wanted = collections.Counter(samples(text)), collections.Counter(sent)
    if got - wanted:
        yield f"not sent, or twice: {list((got - wanted).items())[:3]}"
    if got.total() + lost(text) != len(sent):
        yield f"{got.total()} read and {lost(text)} lost of {len(sent)}"


def test_bursts(many):
    wrong, hit = [], 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        pieces, sizes, sent, last = recording(rng, True)
        data, allowed = b"".join(pieces), 0
        for _ in range(rng.randrange(2, 12) if many else 1):
            data, place = burst(rng, data)
            allowed += touched(pieces, sizes, place)
        done = convert(data + last)
        wrong += [f"seed {seed}: {problem}" for problem in problems(sent, done.stdout)]
        hit += bool(lost(done.stdout))
        if not many and lost(done.stdout) > allowed:
            wrong.append(f"seed {seed}: one burst cost {lost(done.stdout)} samples, not {allowed}")
        if done.returncode not in (0, 1):
            wrong.append(f"seed {seed}: {done.stderr}")
    name = "many bursts" if many else "one burst"
    no_problems(f"{name}: samples are intact, come once, or are counted", wrong)
    check(f"{name}: some cost samples", hit > SEEDS // 4, hit)


def test_chunks():
    """Without checksums: a link that loses, repeats and delays whole chunks."""
    wrong = []
    for seed in range(SEEDS):
        rng = random.Random(seed)
        pieces, _, sent, last = recording(rng, False)
        rest = [piece for piece in pieces[1:] if rng.random() > 0.1]
        rest = [piece for piece in rest for _ in range(1 + (rng.random() < 0.1))]
        rest = [piece for _, piece in sorted(enumerate(rest), key=lambda at: at[0] + rng.randrange(8))]
        done = convert(pieces[0] + b"".join(rest) + last)
        wrong += [f"seed {seed}: {problem}" for problem in problems(sent, done.stdout)]
    no_problems("chunks that are lost, repeated and late", wrong)


def sel4_frame(time):
    """A sample of the seL4 profiler, with its length."""
    def field(number, value):
        return varint(number << 3) + varint(value)
    ips = b"".join(varint(ip) for ip in [0x200000 + time % 4096] + [0] * 15)
    data = (field(1, 0x200098) + field(2, 1) + field(3, time) + field(5, 1200000) + field(6, 1) +
            varint(7 << 3 | 2) + varint(len(ips)) + ips)
    return b"%02d" % len(data) + data


def test_sel4_breaks():
    """A connection of the seL4 profiler that breaks at any byte of a sample, and comes back."""
    hello = b"100 SEL4 PROFILING CLIENT\na.elf: 1\n"
    frames = [sel4_frame(time) for time in (1000, 2000, 0x3130, 4000, 5000)]
    wrong = []
    for cut in range(1, len(frames[2])):
        data = hello + frames[0] + frames[1] + frames[2][:cut] + hello + frames[3] + frames[4]
        done = run(KSCOPE, "convert", "-", "-t", "dump", "-o", "-", input=data)
        times = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("sample")]
        if times != [f"time=0.00000{time}000"[:16] for time in (1, 2, 4, 5)] or lost(done.stdout) != 1:
            wrong.append(f"cut at {cut}: {times}, {lost(done.stdout)} lost")
        if done.stderr.count("a new connection begins here") != 1:
            wrong.append(f"cut at {cut}: {done.stderr}")
    no_problems("sel4-pb: connections that break in a sample", wrong)


def test_agreement(folder):
    """The two implementations in Python agree with each other and with the standard."""
    equal("CRC-32C", crc32c(b"123456789"), 0xE3069283)
    path = os.path.join(folder, "checked.kscope")
    pieces, _, sent, last = recording(random.Random(1), True)
    with open(path, "wb") as f:
        f.write(b"".join(pieces) + last)
    equal("the reader in Python", len(Stream(path).samples), len(sent))
    with open(path, "r+b") as f:
        f.seek(len(pieces[0]) + 20)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))
    try:
        Stream(path)
        check("it refuses a wrong checksum", False)
    except ValueError as error:
        check("it refuses a wrong checksum", "checksum" in str(error), error)


with scratch() as folder:
    test_agreement(folder)
    test_bursts(False)
    test_bursts(True)
    test_chunks()
test_sel4_breaks()
finish()
