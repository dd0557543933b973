#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Small inputs that ask for much memory or disk, and what happens when there is none."""
import json
import os
import random
import resource
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden"))
from kit import (ELFS, KSCOPE, check, demo_samples, equal, exits, finish, kscope, no_problems, read_folded, run,
                 scratch, skip)
from kit.inputs import GOLDEN
from perfdata_make import COMPRESSED, File, SAMPLE, USER

MEGABYTE = 1 << 20


def limited(megabytes, *words, what=resource.RLIMIT_AS, **more):
    """kscope with so much address space, or with files of this size at most."""
    limit = int(megabytes * MEGABYTE)
    return kscope(*words, preexec_fn=lambda: resource.setrlimit(what, (limit, limit)), **more)


def forks(maps, children):
    """A process with many maps, and many children of it, each with one more map and a sample in each."""
    f = File()
    yield f.comm("parent")
    for n in range(maps):
        yield f.mmap2(0x1000000 + n * 0x2000, 0x1000, 0, f"/bin/parent{n}")
    for n in range(children):
        pid, time = 1000 + n, 10 + 10 * n
        yield f.fork(pid, pid, 100, time)
        yield f.mmap2(0x400000, 0x1000, 0, f"/bin/child{n % 3}", time + 1, pid=pid)
        yield f.sample([USER, 0x400100], time + 2, pid=pid, tid=pid)
        yield f.sample([USER, 0x1000100 + n % maps * 0x2000], time + 3, pid=pid, tid=pid)
    yield f.sample([USER, 0x400100], 10 + 10 * children)


def test_forks(folder):
    """20000 processes of 3000 maps each were 2 GB."""
    path, maps, children = os.path.join(folder, "forks.data"), 3000, 20000
    with open(path, "wb") as f:
        f.write(File().file(b"".join(forks(maps, children))))
    done = limited(400, "convert", path, "-t", "folded", "--root", "none", "-o", "-")
    exits("children share the maps of their parent", done, 0)
    stacks = read_folded(done.stdout)
    equal("each child has its own map", [stacks.get(f"child{n}+0x100") for n in range(3)],
          [6667, 6667, 6666])
    equal("and those of the parent",
          {stacks.get(f"parent{n}+0x100") for n in range(maps)}, {6, 7})
    equal("and the parent has no map of a child", stacks.get("[unknown]"), 1)


def test_spool(folder):
    """A perf.data that is compressed as a whole is copied to a temporary file."""
    f, bomb = File(), os.path.join(folder, "bomb.data")
    samples = 5000
    with open(bomb, "wb") as out:
        out.write(f.file(f.sample([USER] + [0x400100] * 8000, 1000) * samples))
    run("zstd", "-q", "--rm", bomb)
    bomb += ".zst"
    for name, words, more in (("a file", [bomb], {}), ("a pipe", ["-"], {"stdin": bomb})):
        with open(more.get("stdin", os.devnull), "rb") as stdin:
            done = limited(257, "info", "--json", *words, what=resource.RLIMIT_FSIZE, stdin=stdin)
        exits(f"{name} that decompresses to too much", done, 1,
              "the decompressed data is more than 1000 times as large as the file: ignoring the rest")
        kept = json.loads(done.stdout)["samples"] if done.stdout else 0
        check("... up to there, its samples are kept", samples // 2 < kept < samples, kept)
    run("zstd", "-q", "-d", "--rm", bomb)
    done = kscope("info", "--json", bomb[:-4])
    equal("what is not compressed is read whole", (done.returncode, json.loads(done.stdout)["samples"]),
          (0, samples))
    os.unlink(bomb[:-4])


def zstd_of(plain, times):
    """A zstd frame of the same bytes, many times."""
    packer = subprocess.Popen(["zstd", "--zstd=wlog=17", "-c", "-"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    feeder = threading.Thread(target=lambda: ([packer.stdin.write(plain) for _ in range(times)],
                                              packer.stdin.close()))
    feeder.start()
    frame = packer.stdout.read()
    feeder.join()
    packer.wait()
    return frame


def test_traces(folder):
    """The traces of samples in compressed records go to a temporary file, too."""
    packed, samples, size = os.path.join(folder, "traces.data"), 4500, 60000
    with open(os.path.join(GOLDEN, "pt-samples", "input.data"), "rb") as f:
        golden = f.read()
    at = first = struct.unpack_from("<Q", golden, 40)[0]  # of the data
    while golden[at] != SAMPLE:
        at += struct.unpack_from("<H", golden, at + 6)[0]
    sample = golden[at:at + 6] + struct.pack("<H", 56 + size) + golden[at + 8:at + 48] + \
        struct.pack("<Q", size) + bytes(size)
    frame = zstd_of(sample, samples)
    data = golden[first:at] + b"".join(File().record(COMPRESSED, frame[i:i + 60000])
                                       for i in range(0, len(frame), 60000))
    with open(packed, "wb") as f:
        f.write(golden[:48] + struct.pack("<Q", len(data)) + golden[56:first] + data)
    done = limited(257, "info", "--json", packed, what=resource.RLIMIT_FSIZE)
    exits("traces that decompress to too much", done, 1, "the traces in compressed samples are more "
          "than 1000 times as large as the file: ignoring the rest of them")
    equal("... and all samples", json.loads(done.stdout)["samples"] if done.stdout else 0, samples)


def least_memory(what=resource.RLIMIT_AS):
    """The least memory of this kind, in KB, with which the program starts."""
    least, most = 0, 1 << 20
    while most - least > 250:
        middle = (least + most) // 2
        starts = limited(middle / 1024, "version", what=what).returncode == 0
        least, most = (least, middle) if starts else (middle, most)
    return most


def test_no_memory(folder):
    """Whatever fails first: a message, the exit code, and no output; or a whole result."""
    out, least, all_codes = os.path.join(folder, "out.folded"), least_memory(), set()
    inputs = {name: os.path.join(GOLDEN, *name.split("/"))
              for name in ("perfdata-le/input.data", "perfdata-compressed/input.data", "sel4-json/input.json",
                           "pt-samples/input.data")}
    inputs["DWARF"] = demo_samples(folder)
    for name, path in inputs.items():
        want = kscope("convert", path, "-b", ELFS, "-o", out)
        with open(out, "rb") as f:
            whole = f.read()
        os.unlink(out)
        codes = set()
        for kilobytes in range(least, least + 8000, 400):
            done = limited(kilobytes / 1024, "convert", path, "-b", ELFS, "-o", out)
            codes.add(done.returncode)
            if done.returncode == 4:
                check(f"{name}: {kilobytes} KB", "out of memory" in done.stderr and not os.path.exists(out),
                      done.stderr)
            elif os.path.exists(out):
                with open(out, "rb") as f:
                    check(f"{name}: {kilobytes} KB: all, or a message", f.read() == whole or
                          done.returncode == 1 and done.stderr != want.stderr, done.stderr)
                os.unlink(out)
        check(f"{name}: no other exit codes", codes <= {0, 1, 3, 4}, codes)
        all_codes |= codes
    check("there was not enough memory, and enough", {0, 4} <= all_codes, all_codes)


def own_samples(folder):
    """A dump with samples all over kscope itself, whose DWARF is large."""
    listed = run("nm", "--defined-only", KSCOPE).stdout.splitlines()
    code = [int(line.split()[0], 16) for line in listed if line.split()[1] in "tT"]
    path, first, size, nr = os.path.join(folder, "own.dump"), min(code), max(code) - min(code), 2000
    with open(path, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nmeta key="arch" value="x86_64"\nsource id=1 name="e" type=1 config=0x0\n'
                f'map task=1/1 addr=0 len=0x10000000 offset=0 prot=r-x path="{KSCOPE}"\n')
        f.writelines(f"sample time=0.{n:09} task=1/1 source=1 weight=1 : user {first + size * n // nr:#x}\n"
                     for n in range(nr))
    return path


def test_data_limit(words):
    """ulimit -d: only memory that can be written counts."""
    wrong, codes, least = [], set(), least_memory(resource.RLIMIT_DATA)
    for kilobytes in [*range(least, least + 3000, 100), *range(least + 3000, least + 60000, 3000)]:
        done = limited(kilobytes / 1024, *words, what=resource.RLIMIT_DATA)
        codes.add(done.returncode)
        if done.returncode and (done.returncode != 4 or "out of memory" not in done.stderr):
            wrong.append((kilobytes, done.returncode, done.stderr))
    no_problems("libraries: ulimit -d", wrong)
    equal("libraries: ulimit -d: not enough memory, and enough", codes, {0, 4})


def test_libraries(folder):
    """A library that gets no memory may say that the data is damaged, or abort: it is out of memory all the same."""
    own, out = own_samples(folder), os.path.join(folder, "libraries")
    for tool, extension in ("xz", "xz"), ("gzip", "gz"), ("zstd", "zst"):
        run("sh", "-c", f"{tool} -c < {own} > {own}.{extension}")
    cases = {"DWARF": ["report", own, "--lines"], "xz": ["info", f"{own}.xz"], "gzip": ["info", f"{own}.gz"],
             "zstd": ["info", f"{own}.zst"], "to gzip": ["convert", own, "-o", f"{out}.svg.gz"],
             "to zstd": ["convert", own, "-o", f"{out}.svg.zst"], "archive": ["archive", own, "-o", f"{out}.kscopez"]}
    if "libsqlite3" not in kscope("sql", "/dev/null", "SELECT 1").stderr:
        cases |= {"to a database": ["convert", own, "-o", f"{out}.db"],
                  "SQL": ["sql", own, "SELECT stack, text FROM stack_texts ORDER BY text"]}
    test_data_limit(cases["DWARF"])
    least = least_memory()
    for name, words in cases.items():
        wrong, codes = [], set()
        for kilobytes in [*range(least, least + 9000, 300), *range(least + 9000, least + 90000, 9000)]:
            done = limited(kilobytes / 1024, *words)
            left = [file for file in os.listdir(folder) if file.startswith("libraries")]
            codes.add(done.returncode)
            if done.returncode and (done.returncode != 4 or "out of memory" not in done.stderr or left):
                wrong.append((kilobytes, done.returncode, done.stderr, left))
            for file in left:
                os.unlink(os.path.join(folder, file))
        no_problems(f"libraries: {name}", wrong)
        equal(f"libraries: {name}: not enough memory, and enough", codes, {0, 4})


def test_large_files(folder):
    """DWARF that is large when it is decompressed, and a list of symbols that the data does not need."""
    own, out, least = own_samples(folder), os.path.join(folder, "large.folded"), least_memory() / 1024
    section, elf = os.path.join(folder, "section"), os.path.join(folder, "large.elf")
    with open(section, "wb") as f:
        f.write(random.Random(1).randbytes(1000) * 80000)
    run("objcopy", f"--add-section=.debug_macro={section}", KSCOPE, elf)
    run("objcopy", "--compress-debug-sections=zlib", elf)
    with open(own, encoding="utf-8") as f:
        text = f.read().replace(KSCOPE, elf)
    with open(own, "w", encoding="utf-8") as f:
        f.write(text)
    symbols = os.path.join(folder, "symbols")
    with open(symbols, "w", encoding="ascii") as f:
        f.writelines(f"{0xffffffff81000000 + 16 * n:x} T function_{n}\n" for n in range(500000))
    json = os.path.join(GOLDEN, "sel4-json", "input.json")
    for name, megabytes, words in (("compressed DWARF", 75, [own]), ("symbols", 20, [json, "-b", ELFS, "-k", symbols])):
        words = "convert", *words, "-o", out
        exits(f"large: {name}", limited(least + megabytes, *words), 4, "out of memory")
        check(f"large: {name}: no output", not os.path.exists(out))
        check(f"large: {name}: enough memory", kscope(*words).returncode in (0, 1) and os.path.exists(out))
        os.unlink(out)


with open(KSCOPE, "rb") as program:
    has_sanitizer = b"__asan_init" in program.read()
with scratch() as temp:
    test_spool(temp)
    test_traces(temp)
    if has_sanitizer:
        skip("memory", "sanitizers need more address space than a limit leaves")
    else:
        test_forks(temp)
        test_no_memory(temp)
        test_libraries(temp)
        test_large_files(temp)
finish()
