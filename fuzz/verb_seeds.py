#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""verb_seeds.py FOLDER: writes the inputs of fuzz_verb that the golden inputs make: each for another verb and other
options, and one of each format for all of them; those with a file that kscope finds by itself; long traces."""
import glob
import gzip
import os
import re
import sys
from types import SimpleNamespace

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "golden")]
from kit.wire_write import chunk, content, end, info, number, round_
from perfdata_make import File, usual
from wire_seeds import inside

MAX_SIZE = 65536
REPORT, CALLS, CONVERT, DUMP = 0, 1, 6, 7  # places in the tables of fuzz_verb.c
BESIDE = {name: 16 * n for n, name in enumerate(("", "summary", "stream", "kallsyms", "kcore", "header"))}


def words_of(name):
    """How many rows a table of fuzz_verb.c has."""
    with open(os.path.join(ROOT, "fuzz", "fuzz_verb.c"), encoding="utf-8") as f:
        table = re.search(rf"\b{name}\[\] = {{(.*?)}};", f.read(), re.S)[1]
    return len(re.findall(r'"[^"]*"|&cmd_', table))


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def golden(name):
    return read(os.path.join(ROOT, "tests", "golden", name))


def pairs():
    """The name of the second file, and both."""
    summary = golden("qperf-summary/samples.summary.txt")
    yield "summary", golden("qperf-summary/samples.bin"), summary
    yield "summary", golden("qperf-summary/samples.bin"), b"arch = riscv64\nno fact\nfrequency_hz = 0\n"
    f = File()
    for second in (usual(f), usual(f)[:-20], f.record(1, b"")):
        yield "stream", f.file(usual(f)), second
    yield "kallsyms", f.file(usual(f)), b"ffffffff81000000 T _text\nffffffff81000010 T start\nffffffff81000020 t [mod]\n" * 20
    yield "kcore", f.file(usual(f)), b"\x7fELF\2\1\1" + bytes(400)
    header = golden("sel4-json/input.json")
    for kind in ("json", "pb", "serial"):
        for path in glob.glob(f"{ROOT}/tests/golden/sel4-{kind}/input*"):
            for second in (header, header[:len(header) // 2], b"[]"):
                yield "header", read(path), second


def as_halves(first, second):
    """Both with as many bytes: the end of either is damage, or empty lines."""
    size = max(len(first), len(second))
    return first.ljust(size, b"\n") + second.ljust(size, b"\n")


def long_trace(cpus, damage=b""):
    """Enough for a thread that decodes: mostly times that are the same."""
    loop = bytes.fromhex("c6020000 c505808002 01 c1 8040 02 02 04 02 07 c000")  # as in tests/unit/wire_ahead_test.c
    pad = (b"\xc4" + b"\x80" * 8 + b"\0") * 500
    data = chunk(info(arch="riscv64", cpus=cpus, version=3) + content(5, number(12, 1)))
    for n in range(60):
        for cpu in range(cpus):
            piece = b"\xc4\x80\x89\x7a\2" + bytes(16) + pad + (damage if n == 30 else b"")
            data += chunk(number(12, 1000 + 2000000 * n), content(9, (b"" if n else loop) + piece), cpu=cpu, sequence=n)
        data += round_(2000000 * n)
    return gzip.compress(data + end(*((cpu, 0, 0) for cpu in range(cpus))), mtime=0)


def main():
    verbs, outputs, options = map(words_of, ("verbs", "outputs", "options"))
    seen = set()
    number = 0

    def write(verb, output, chosen, data):
        nonlocal number
        with open(os.path.join(sys.argv[1], f"{number:04}"), "wb") as f:
            f.write(bytes((verb, output % outputs, *(option % options for option in chosen))) + data)
        number += 1

    for path in sorted(glob.glob(f"{ROOT}/tests/golden/*/input*")):
        if os.path.isdir(path):
            continue
        data = read(path)
        if len(data) > MAX_SIZE:
            continue
        both = 128 * (number % 7 == 0)
        write(number % verbs + both, number, (number * 5 // 3, options - 2 - number % 3, 0, 0), data)
        kind = os.path.basename(os.path.dirname(path)).split("-")[0]
        if kind in seen:
            continue
        seen.add(kind)
        for option in range(options):
            for verb in range(verbs) if option == 0 else ((option + len(seen)) % verbs,):
                write(verb, option, (option, 0, 0, 0), data)
    build_dir = options - 4
    for beside, first, second in pairs():
        for verb in (REPORT, CONVERT):
            write(verb + BESIDE[beside], DUMP, (build_dir, 0, 0, 0), as_halves(first, second))
    binary = SimpleNamespace(path="program", code=bytes(4096))
    for arch in ("aarch64", "x86_64"):
        for option in range(options - 3, options):
            write(CONVERT, DUMP, (option, 0, 0, 0), inside(binary, binary, arch))
    for cpus, damage in ((1, b""), (3, b""), (2, b"\xff")):
        write(CALLS if cpus == 3 else CONVERT, DUMP, (0, 0, 0, 0), long_trace(cpus, damage))


if __name__ == "__main__":
    main()
