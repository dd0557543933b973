#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope under the names of the converters that it replaces."""
import json
import os
import random
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, KSCOPE, check, demo_samples, equal, exits, finish, kscope, run, scratch
from kit.kpdata import K, chain, kernel, start
from kit.sel4 import frame, message, text

PC = 0xFFFFFFFFC0100010
MAESTRO = struct.pack("<B2Q", 2, PC, PC + 64)
MEMTRACE = b"\6malloc" + struct.pack("<BQQ", 0, PC, 64) + MAESTRO
# What may be where data should begin. Some of it looks like other formats.
STARTS = {
    "a wrong byte": b"\xff",
    "noise": random.Random(1).randbytes(5000),
    "a lot of noise": random.Random(2).randbytes(100000),
    "lines that look like folded stacks": b"cpu0;idle 12\ncpu1;idle 3\n" * 300,
    "the magic of perf.data": b"PERFILE2",
    "a line of another format": b"kscope-dump 1\n",
    "records of another format": struct.pack("<II2Q", 2, 0, PC, PC + 64) * 300,
}
JSON = {"an empty samples.json": b'{"samples": []}\n'}


def test_toperf(samples, folder):
    link = os.path.join(folder, "toperf")
    os.symlink(os.path.abspath(KSCOPE), link)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, cwd=folder)
    check("toperf: perf.data here by default", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "perf.data")), done.stderr)
    done = run(link, f"-s={samples}", f"-b={ELFS}", "-o=short.data", cwd=folder)
    check("toperf: values after an equals sign", done.returncode == 0 and
          os.path.exists(os.path.join(folder, "short.data")), done.stderr)
    done = run(link, "--samples-path", samples, "--build-dir", ELFS, "-p", cwd=folder)
    equal("toperf: the summary has every sample", done.stdout.count("\nsample "), 10000)
    exits("toperf: needs its arguments", run(link, "-s", samples), 2, "--build-dir")
    check("toperf: help", "--print-summary" in run(link, "--help").stdout)
    exits("toperf: no such folder", run(link, "-s", samples, "-b", "nowhere", cwd=folder), 2,
          "nowhere")


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return path


def samples_of(path):
    """The number of samples in a file, which is removed."""
    if not os.path.exists(path):
        return 0
    samples = json.loads(kscope("info", path, "--json").stdout)["samples"]
    os.unlink(path)
    return samples


def test_damaged_start(folder):
    """The tools know what they read, whatever is in front of it."""
    path, data = os.path.join(folder, "damaged"), os.path.join(folder, "perf.data")
    kpdata = start() + b"".join(kernel(3, 10000 + i, 0, chain(K, 1 + i % 9), pid=5)
                                for i in range(500))
    wanted = [f"{path}: byte 0", "500 samples read", "1 lost"]
    for name, instead in {**STARTS, **JSON}.items():
        write(path, instead + kpdata[1:] if len(instead) == 1 else instead + kpdata)
        done = run(KSCOPE, "kprof2perf", "-i", path, "-o", data)
        exits(f"kprof2perf: {name} at the start", done, 1, *wanted)
        equal(f"kprof2perf: {name} at the start: samples", samples_of(data), 500)
        with open(path, "rb") as f:
            done = run(KSCOPE, "kprof2perf", "-o", data, stdin=f)
        exits(f"kprof2perf: {name} at the start of stdin", done, 1, "<stdin>: byte 0", *wanted[1:])
    exits("kprof2perf: nothing but noise",
          run(KSCOPE, "kprof2perf", "-i", write(path, STARTS["noise"]), "-o", data), 3, "kpdata")
    exits("kprof2perf: nothing",
          run(KSCOPE, "kprof2perf", "-i", write(path, b""), "-o", data), 3, "is empty")
    elf = os.path.join(ELFS, "hasher.elf")
    for name, instead in STARTS.items():
        if "format" in name:  # with the same addresses, at any distance
            continue
        done = run(KSCOPE, "kern-profile", write(path, instead + MAESTRO * 500), elf, cwd=folder)
        exits(f"kern-profile: {name} at the start", done, 1, *wanted)
        done = run(KSCOPE, "kern-profile", "--alloc", write(path, instead + MEMTRACE * 500), elf,
                   cwd=folder)
        exits(f"kern-profile --alloc: {name} at the start", done, 1, wanted[0], "500 events read",
              "1 lost")


def test_toperf_damaged(folder):
    path, data = os.path.join(folder, "samples"), os.path.join(folder, "toperf.data")
    times = range(1000, 1300)
    sample = {"ip": "2097304", "pid": 1, "period": "1", "cpu": 0, "nr": "1", "ips": ["2097400"]}
    forms = {
        "JSON": json.dumps({"elf_tcb_mappings": {"hasher.elf": 1},
                            "samples": [{**sample, "time": str(i)} for i in times]}).encode(),
        "TCP": b"".join(frame(message(time=i)) for i in times),
        "serial": "".join(text(0x200098, 1, i, 0, 1, 1, [0x2000f8]) for i in times).encode(),
    }
    for form, content in forms.items():
        for name, instead in STARTS.items():
            write(path, instead + content[1:] if len(instead) == 1 else instead + content)
            done = run(KSCOPE, "toperf", "-s", path, "-b", ELFS, "-o", data, cwd=folder)
            # A log line of the console is no damage; samples of TCP and serial have no names.
            check(f"toperf: {form}, {name} at the start", done.returncode == 1 and
                  f"{path}: byte 0" in done.stderr or form == "serial", done.stderr)
            dump = kscope("convert", data, "-t", "dump", "-o", "-").stdout
            check(f"toperf: {form}, {name} at the start: addresses",
                  dump.count(" 0x200098 0x2000f8\n") >= 299, dump)
            check(f"toperf: {form}, {name} at the start: samples", samples_of(data) >= 299)
        write(path, content[len(content) // 2:])
        run(KSCOPE, "toperf", "-s", path, "-b", ELFS, "-o", data, cwd=folder)
        check(f"toperf: {form}: the first half is missing", 145 <= samples_of(data) <= 151)


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_toperf(samples, folder)
        test_damaged_start(folder)
        test_toperf_damaged(folder)
    finish()


if __name__ == "__main__":
    main()
