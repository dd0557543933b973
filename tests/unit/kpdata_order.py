#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kpdata: what is intact comes out whole and in the order of time, whatever is around it; and
memory does not follow the size of the file."""
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../golden"))
import kpdata_make as kp  # noqa: E402

KSCOPE = os.path.abspath(os.environ.get("KSCOPE", os.path.join(HERE, "../../build/kscope")))
SAMPLE = re.compile(r"^sample time=(\d+)\.(\d{9}) cpu=(\d+) .* : (\w+) (.*)$")


class Failed(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


def random_block(rng, version, cpu, nr, seen):
    """Records of one core in the order of time; what they are goes to seen."""
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
    done = subprocess.run([KSCOPE, "convert", path, "-t", "dump", "-o", "-"], capture_output=True,
                          text=True, timeout=500, check=False)
    return samples(done.stdout), done


def test_order(folder):
    """More blocks at the same time than windows of full size, and records longer than a window."""
    for seed in range(12):
        rng, seen = random.Random(seed), []
        version = 1 + seed % 3
        blocks = [random_block(rng, version, cpu % 64, rng.randrange(1, 40), seen)
                  for cpu in range(rng.choice([1, 10, 200]))]
        data = kp.start() + b"".join(b"".join(block) for block in blocks)
        found, done = dump_of(folder, data)
        check(done.returncode == 0 and not done.stderr, f"seed {seed}: {done.stderr[:200]}")
        check(found == sorted(found, key=lambda sample: sample[0]), f"seed {seed}: not in order")
        check(sorted(found) == sorted(seen), f"seed {seed}: {len(found)} of {len(seen)} samples")


def traces(version, kind, start, nr):
    """One core's traces; they carry their number in the address."""
    return b"".join(kp.kernel(version, start + i, 0, [kp.K + i], pid=5) if kind == kp.KERNEL
                    else kp.user(version, start + i, 5, 0, [kp.U + i]) for i in range(nr))


def test_version(folder):
    """The start of a large file may suggest another version than the rest of it."""
    # User traces of v2 are those of v3.
    found, done = dump_of(folder, kp.start() + traces(2, kp.USER, 5000, 4000) +
                          traces(2, kp.KERNEL, 9000, 10))
    check(done.returncode == 0 and not done.stderr, f"v2: {done.stderr[:200]}")
    check(len(found) == 4010 and found[4000][3] == (kp.K,), f"v2: {len(found)} samples")
    # Most traces are of v3, all at the start are of v1.
    found, done = dump_of(folder, kp.start() + traces(1, kp.KERNEL, 5000, 4000) +
                          traces(3, kp.KERNEL, 9000, 5000))
    kernel = [sample for sample in found if sample[0] >= 9000]
    check(done.returncode == 1 and len(kernel) == 5000, f"v3: {len(kernel)} of 5000 samples")


def damage(rng, record):
    """Bytes in front of a block: garbage, or the start of a record that is cut off."""
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
        check(done.returncode == (1 if places else 0), f"seed {seed}: code {done.returncode}")
        check(not missing, f"seed {seed}: {len(missing)} intact samples are missing")
        check(len(found) - len(seen) <= places, f"seed {seed}: {len(found)} of {len(seen)}")


def big_file(path, size):
    """Eight cores, blocks of 64 KiB, as a recording has them."""
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
    """KiB of the child that converts."""
    pid = os.fork()
    if pid == 0:
        os.execv(KSCOPE, [KSCOPE, "convert", path, "-t", "perfdata", "-o", out])
    _, status, usage = os.wait4(pid, 0)
    check(status == 0, f"status {status}")
    return usage.ru_maxrss


def test_memory(folder):
    # The address sanitizer keeps what was freed, unless it is told not to.
    os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    small, large = os.path.join(folder, "small"), os.path.join(folder, "large")
    big_file(small, 2 << 20)
    big_file(large, 40 << 20)
    first = peak(small, os.path.join(folder, "small.data"))
    second = peak(large, os.path.join(folder, "large.data"))
    check(second < first + 2048, f"{first} KiB for 2 MiB and {second} KiB for 40 MiB")


def main():
    failed = False
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))  # overlapping blocks need no files
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder)
                print(f"ok kpdata_{name[5:]}")
            except Failed as error:
                failed = True
                print(f"not ok kpdata_{name[5:]}: {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
