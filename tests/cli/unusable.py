#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A binary that is not usable: the exit code is 1, and a message names the file."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, KSCOPE, check, demo_samples, equal, exits, finish, kscope, run, scratch
from kit.inputs import GOLDEN

INPUTS = {"dump": "perfdata-le/expected.dump", "perfdata": "perfdata-le/input.data", "qperf": "qperf-1/input.bin",
          "kscope": "wire-allocs/input.kscope"}


def make_binaries(folder):
    """{what is wrong: (file, words of the message)}"""
    with open(os.path.join(ELFS, "hasher.elf"), "rb") as f:
        elf = f.read()
    wrong = {"no ELF": (b"text\n", "neither an ELF file"), "empty": (b"", "neither an ELF file"),
             "cut in its header": (elf[:20], "not an ELF file"), "cut": (elf[:len(elf) // 2], "cut short")}
    made = {"a folder": (folder, "not a regular file")}
    for n, (what, (data, message)) in enumerate(wrong.items()):
        path = os.path.join(folder, f"wrong{n}.elf")
        with open(path, "wb") as f:
            f.write(data)
        made[what] = path, message
    return made


def test_named(folder):
    for format_, file in INPUTS.items():
        convert = "convert", os.path.join(GOLDEN, file), "-f", format_, "-t", "folded", "-o", "-"
        for what, (path, message) in make_binaries(folder).items():
            for option in (["--kernel", path], ["--elf", path], ["--elf", f"1={path}"]):
                done = kscope(*convert, *option)
                exits(f"{format_}: {option[0]}, {what}", done, 1, path, message)
                equal(f"{format_}: {option[0]}, {what}: one message", done.stderr.count(message), 1)
        exits(f"{format_}: --elf, no such name", kscope(*convert, "--elf", "1=nowhere.elf"), 1, "nowhere.elf")
        exits(f"{format_}: --elf, no such path", kscope(*convert, "--elf", "1=no/where.elf"), 2, "no/where.elf")
        exits(f"{format_}: --kernel, no such file", kscope(*convert, "--kernel", "nowhere.elf"), 2, "nowhere.elf")
        equal(f"{format_}: a usable file", kscope(*convert, "--elf", f"1={ELFS}/hasher.elf").returncode, 0)


def test_symbol_list(folder):
    """Of the kernel. The last name may be another one."""
    path = os.path.join(folder, "kallsyms")
    for end, code in ("", 1), ("\n", 0):
        with open(path, "w", encoding="ascii") as f:
            f.write("ffffffff81000000 T _text\nffffffff81000100 T first\nffffffff81000200 T sec" + end)
        done = kscope("info", os.path.join(GOLDEN, INPUTS["perfdata"]), "-k", path)
        exits(f"a symbol list, {'whole' if end else 'cut in a line'}", done, code, *([] if end else [path, "middle of a"]))


def test_found(folder):
    """A binary that the data names."""
    place, samples = os.path.join(folder, "elfs"), demo_samples(folder)
    shutil.copytree(ELFS, place)
    equal("found: whole", kscope("info", samples, "-b", place).returncode, 0)
    path = os.path.join(place, "hasher.elf")
    os.truncate(path, os.path.getsize(path) // 2)
    for verb in (["info"], ["report"], ["convert", "-t", "folded", "-o", "-"]):
        exits(f"found: cut, {verb[0]}", kscope(verb[0], samples, *verb[1:], "-b", place), 1, path, "cut short")


def samples_all_over(elf, nr=100000):
    """A dump with samples in all functions of a program."""
    listed = run("nm", "--defined-only", elf).stdout.splitlines()
    code = [int(line.split()[0], 16) for line in listed if line.split()[1] in "tT"]
    first, size = min(code), max(code) - min(code)
    yield 'kscope-dump 1\nmeta key="arch" value="x86_64"\n'
    yield 'source id=1 name="cpu-clock" type=1 config=0x0 freq=1000\n'
    yield f'comm task=1/1 name="x"\nmap task=1/1 addr=0 len=0x10000000 offset=0 prot=r-x path="{elf}"\n'
    for n in range(nr):
        yield (f"sample time=0.{n:09} cpu=0 task=1/1 source=1 weight=1 : user {first + size * n // nr:#x} "
               f"{first + n * 7 % size:#x}\n")


def section(elf, name):
    """Where a section is in the file: offset and size."""
    fields = re.search(rf"\s{re.escape(name)}\s+\S+\s+\S+\s+(\S+)\s+(\S+)", run("readelf", "-SW", elf).stdout)
    return int(fields[1], 16), int(fields[2], 16)


def test_compressed_dwarf(folder):
    """libdw says nothing if it cannot decompress a section."""
    elf, path = os.path.join(folder, "packed.elf"), os.path.join(folder, "packed.dump")
    source = "".join(f"int f{n}(int a)\n{{\n\treturn a * {n};\n}}\n" for n in range(99)) + "int main(void) { return f7(1); }\n"
    run("cc", "-g", "-gz=zlib", "-x", "c", "-", "-o", elf, input=source.encode())
    with open(path, "w", encoding="ascii") as f:
        f.writelines(samples_all_over(elf, 100))
    report = "report", path, "--lines"
    equal("compressed DWARF: whole", kscope(*report).returncode, 0)
    for name in (".debug_info", ".debug_line"):
        with open(elf, "rb") as f:
            whole = f.read()
        at, size = section(elf, name)
        with open(elf, "wb") as f:
            f.write(whole[:at + 26] + b"\xff" * (size - 26) + whole[at + size:])
        exits(f"compressed DWARF: {name} is damaged", kscope(*report), 1, elf, f"cannot decompress {name}")
        with open(elf, "wb") as f:
            f.write(whole)


def test_shrinks(folder):
    """While kscope has a binary in memory, the file becomes shorter."""
    path, elf = os.path.join(folder, "all.dump"), os.path.join(folder, "shrinks.elf")
    shutil.copy(KSCOPE, elf)
    with open(path, "w", encoding="ascii") as f:
        f.writelines(samples_all_over(elf))
    whole = kscope("convert", path, "-t", "perfetto", "-o", "-", binary=True)
    with subprocess.Popen([KSCOPE, "convert", path, "-t", "perfetto", "-o", "-"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as convert:
        begin = os.read(convert.stdout.fileno(), 100)  # kscope waits until somebody reads more
        os.truncate(elf, 4096)
        output = begin + convert.stdout.read()
        message = convert.stderr.read().decode()
    equal("shrinks: the exit code", convert.returncode, 1)
    equal("shrinks: one message", message.count(f"{elf}: the file became shorter"), 1)
    check("shrinks: the output goes on", 1 << 17 < len(output) < len(whole.stdout), len(output))


with scratch() as SCRATCH:
    test_named(SCRATCH)
    test_symbol_list(SCRATCH)
    test_found(SCRATCH)
    test_compressed_dwarf(SCRATCH)
    test_shrinks(SCRATCH)
finish()
