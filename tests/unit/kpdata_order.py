#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kpdata: intact records come out complete and in the order of time, whatever is around them; and
memory does not grow with the file."""
import os
import random
import re
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, finish, kpdata as kp, kscope, passes, scratch

SAMPLE = re.compile(r"^sample time=(\d+)\.(\d{9}) cpu=(\d+) .* : (\w+) (.*)$")


def need(condition, message):
    if not condition:
        raise AssertionError(message)


def random_block(rng, version, cpu, nr, seen):
    """Records of one core in the order of time; adds the samples in them to seen."""
    out, time = [], rng.randrange(10**9)
    for _ in range(nr):
        time += rng.randrange(10**6)
        in_kernel = rng.random() < 0.5
        pcs = [(kp.K if in_kernel else kp.U) + rng.randrange(4096)
               for _ in range(rng.choice([1, 2, 3, 16, 16, 2000 if rng.random() < 0.02 else 4]))]
        out.append(kp.kernel(version, time, cpu, pcs, pid=5) if in_kernel
                   else kp.user(version, time, 5, cpu, pcs))
        seen.append((time, cpu, "kernel" if in_kernel else "user", tuple(pcs)))
    return out


def samples(dump):
    found = []
    for line in dump.splitlines():
        match = SAMPLE.match(line)
        if match:
            seconds, ns, cpu, context, pcs = match.groups()
            found.append((int(seconds) * 10**9 + int(ns), int(cpu), context,
                          tuple(int(pc, 16) for pc in pcs.split())))
    return found


def dump_of(folder, data):
    path = os.path.join(folder, "input")
    with open(path, "wb") as f:
        f.write(data)
    done = kscope("convert", path, "-t", "dump", "-o", "-")
    return samples(done.stdout), done


def test_order(folder):
    """More blocks at the same time than there are full windows, and records longer than a window."""
    for seed in range(12):
        rng, seen = random.Random(seed), []
        version = 1 + seed % 3
        blocks = [random_block(rng, version, cpu % 64, rng.randrange(1, 40), seen)
                  for cpu in range(rng.choice([1, 10, 200]))]
        data = kp.start() + b"".join(b"".join(block) for block in blocks)
        found, done = dump_of(folder, data)
        need(done.returncode == 0 and not done.stderr, f"seed {seed}: {done.stderr[:200]}")
        need(found == sorted(found, key=lambda sample: sample[0]), f"seed {seed}: not in order")
        need(sorted(found) == sorted(seen), f"seed {seed}: {len(found)} of {len(seen)} samples")


def traces(version, kind, start, nr):
    """One core's traces; they carry their number in the address."""
    return b"".join(kp.kernel(version, start + i, 0, [kp.K + i], pid=5) if kind == kp.KERNEL
                    else kp.user(version, start + i, 5, 0, [kp.U + i]) for i in range(nr))


def test_version(folder):
    """The start of a large file may suggest another version than the rest of it."""
    # User traces of v2 are those of v3.
    found, done = dump_of(folder, kp.start() + traces(2, kp.USER, 5000, 4000) +
                          traces(2, kp.KERNEL, 9000, 10))
    need(done.returncode == 0 and not done.stderr, f"v2: {done.stderr[:200]}")
    need(len(found) == 4010 and found[4000][3] == (kp.K,), f"v2: {len(found)} samples")
    # Most traces are of v3, all at the start are of v1.
    found, done = dump_of(folder, kp.start() + traces(1, kp.KERNEL, 5000, 4000) +
                          traces(3, kp.KERNEL, 9000, 5000))
    kernel = [sample for sample in found if sample[0] >= 9000]
    need(done.returncode == 1 and len(kernel) == 5000, f"v3: {len(kernel)} of 5000 samples")


def damage(rng, record):
    """Bytes before a block: garbage, or a record that is cut short."""
    if rng.random() < 0.5:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 3000)))
    return record[:rng.randrange(1, len(record))]


def test_damage(folder):
    for seed in range(20):
        rng, seen = random.Random(seed), []
        version = 1 + seed % 3
        data, places = kp.start() + kp.start(6), 0
        for cpu in range(30):
            block = random_block(rng, version, cpu, rng.randrange(5, 30), seen)
            if rng.random() < 0.5:
                data += damage(rng, kp.user(version, 5, 5, 0, [kp.U] * rng.randrange(2, 17)))
                places += 1
            data += b"".join(block)
        found, done = dump_of(folder, data)
        missing = set(seen) - set(found)
        need(done.returncode == (1 if places else 0), f"seed {seed}: code {done.returncode}")
        need(not missing, f"seed {seed}: {len(missing)} intact samples are missing")
        need(len(found) - len(seen) <= places, f"seed {seed}: {len(found)} of {len(seen)}")


def big_file(path, size):
    """Eight cores with blocks of 64 KiB, as in a recording."""
    blocks, time, written = [bytearray() for _ in range(8)], 10000, 0
    pcs = [kp.K + 16 * i for i in range(16)]
    with open(path, "wb") as f:
        f.write(kp.start())
        while written < size:
            time += 100000
            for cpu, block in enumerate(blocks):
                block += kp.kernel(3, time + cpu, cpu, pcs, pid=5)
                if len(block) > 64 << 10:
                    written += f.write(block)
                    block.clear()


def peak(path, out):
    """The most memory that kscope uses for the file, in KiB."""
    pid = os.fork()
    if pid == 0:
        os.execv(KSCOPE, [KSCOPE, "convert", path, "-t", "perfdata", "-o", out])
    _, status, usage = os.wait4(pid, 0)
    need(status == 0, f"status {status}")
    return usage.ru_maxrss


def test_memory(folder):
    # The address sanitizer keeps freed memory by default.
    os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
    big_file(small, 2 << 20)
    big_file(large, 40 << 20)
    first = peak(small, os.path.join(folder, "small.data"))
    second = peak(large, os.path.join(folder, "large.data"))
    need(second < first + 2048, f"{first} KiB for 2 MiB and {second} KiB for 40 MiB")


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))  # overlapping blocks need no files
    for test in (test_damage, test_memory, test_order):
        with scratch() as folder:
            passes(f"kpdata_{test.__name__[5:]}", test, folder)
    finish()


if __name__ == "__main__":
    main()
