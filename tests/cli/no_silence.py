#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader that finds nothing, and text that ends inside a line: the exit code is never 0."""
import json
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import KSCOPE, check, equal, exits, finish, kscope, no_problems, run, scratch
from kit.inputs import GOLDEN, read, write


def code(data, *words):
    """The exit code for data on stdin, and whether something explains it."""
    done = run(KSCOPE, "convert", "-", "-t", "dump", "-o", "-", *words, input=data)
    return done.returncode, bool(done.stderr)


def test_nothing(folder):
    """Every reader on data that is not of its format."""
    path = os.path.join(folder, "nothing")
    out = os.path.join(folder, "out.folded")
    cases = {
        "nothing": b"",
        "a newline": b"\n",
        "comments": b"# no data\n\n# at all\n",
        "text": b"This is a letter.\n\nIt has no samples.\n",
        "a log": b"[    0.000000] Booting\r\nuart:~$ help\r\nuart:~$ ",
        "zeros": bytes(5000),
        "noise": random.Random(1).randbytes(5000),
    }
    for ops in json.loads(kscope("formats", "--json").stdout)["readers"]:
        name = ops["name"]
        for what, data in cases.items():
            if name == "dump" and what == "comments":
                continue
            write(path, data)
            if os.path.exists(out):
                os.unlink(out)
            done = kscope("convert", path, "-f", name, "-o", out)
            check(f"{name} on {what}", done.returncode in ((1, 3) if data else (3,)) and path in done.stderr,
                  f"{done.returncode} {done.stderr}")
            equal(f"{name} on {what}: output", os.path.exists(out), done.returncode == 1)
    write(path, cases["nothing"])
    exits("an empty input", kscope("convert", path, "-f", "folded", "-o", out), 3, "is empty")
    write(path, cases["a log"])
    exits("no samples in a log", kscope("convert", path, "-f", "sel4-serial", "-o", out), 3,
          "no sel4-serial data", "without -f")


# Golden tests, their formats, and where the profile begins: before it, any text may be cut.
TEXTS = (("folded", "folded", "folded", 0), ("dump", "dump", "dump", 0),
         ("sel4-json", "json", "sel4-json", 0), ("sel4-serial", "txt", "sel4-serial", 9),
         ("zephyr", "txt", "zephyr", 9), ("perfscript-old", "txt", "perfscript", 200),
         ("perfscript-branches", "txt", "perfscript", 200), ("perfscript-single-names", "txt", "perfscript", 9),
         ("kphistogram-good", "bin", "kphistogram", 0))


def test_cut_text():
    for name, extension, reader, first in TEXTS:
        data = read(GOLDEN, name, f"input.{extension}")
        cuts = range(first + 1, len(data), 1 + len(data) // 300)
        wrong = []
        for cut in cuts:
            result = code(data[:cut], "-f", reader)
            inside = data[cut - 1:cut] != b"\n" and data[:cut].strip() != data.strip()
            if inside and (result[0] not in (1, 3) or not result[1]):
                wrong.append((cut, result))
        no_problems(f"{name}: cut in a line", wrong)
    whole = b"a;b 12\na;c 34"
    equal("folded: with the last newline", code(whole + b"\n"), (0, False))
    equal("folded: without it", code(whole), (1, True))
    done = run(KSCOPE, "convert", "-", "-t", "folded", "-o", "-", input=whole)
    equal("folded: without it, the last line is kept", done.stdout, "a;b 12\na;c 34\n")
    exits("folded: without it, the message has the place", done, 1, "byte 7: the file ends in the")


def test_cut_files(folder):
    """Text files next to the data."""
    copy = os.path.join(folder, "uftrace")
    for name in ("info", "task.txt", "sid-00aabbccddeeff11.map"):
        shutil.copytree(os.path.join(GOLDEN, "uftrace", "input"), copy)
        write(os.path.join(copy, name), read(copy, name)[:-1])
        exits(f"uftrace: {name} is cut", kscope("convert", copy, "-t", "dump", "-o", "-"), 1, name,
              "middle of a line")
        shutil.rmtree(copy)
    data = os.path.join(folder, "samples.bin")
    shutil.copy(os.path.join(GOLDEN, "qperf-summary", "samples.bin"), data)
    write(os.path.join(folder, "samples.summary.txt"),
          b"qperf_format_version = 3\nfrequency_hz = 9")
    done = kscope("convert", data, "-t", "dump", "-o", "-")
    exits("qperf: the summary is cut", done, 1, "samples.summary.txt", "ignored that line")
    check("qperf: the line that is cut has no effect", "weight=1 " in done.stdout, done.stdout)


def main():
    with scratch() as folder:
        test_nothing(folder)
        test_cut_text()
        test_cut_files(folder)
    finish()


if __name__ == "__main__":
    main()
