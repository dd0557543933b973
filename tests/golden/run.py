#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden files: what kscope makes of an input, good or bad, and its messages.

Each folder here has input.* (or none, if args names all files), args (words for the command line),
verb (and its options, in place of the conversion to a dump), expected.dump (stdout), expected.err (stderr; empty if absent) and expected.code (0 if absent).
A golden is skipped if kscope says that it was built without a library for it.
`run.py --update [NAME...]` writes the current output to them: look at the diff before you commit.
"""
import difflib
import glob
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, finish, kscope, skip
from kit.inputs import GOLDEN, unpacked

# Files, and what they have if they are absent; None: the file is always there.
EXPECTED = {"expected.dump": None, "expected.err": "", "expected.code": "0\n"}
DIFF_LINES = 60
LACKS = re.compile(r"^kscope: .*kscope was built without .*", re.M)


def read(folder, name, default=""):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return default
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
        return f.read()


def write(folder, name, text):
    path = os.path.join(folder, name)
    if text == EXPECTED[name]:
        if os.path.exists(path):
            os.unlink(path)
        return
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write(text)


def run(folder):
    """{name of the file: what it should have}"""
    with unpacked(folder) as place:
        inputs = sorted(map(os.path.basename, glob.glob(f"{glob.escape(place)}/input*")))
        verb, *options = shlex.split(read(place, "verb", "convert -t dump -o -"))
        done = kscope(verb, *inputs, *options, *shlex.split(read(place, "args")), cwd=place)
    return dict(zip(EXPECTED, (done.stdout, done.stderr, f"{done.returncode}\n")))


def visible(line):
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line)


def difference(got, want):
    """A unified diff of all files, with its first lines only."""
    lines = [visible(line) for name in EXPECTED
             for line in difflib.unified_diff(want[name].split("\n"), got[name].split("\n"), name,
                                              "now", lineterm="")]
    more = len(lines) - DIFF_LINES
    return lines[:DIFF_LINES] + ([f"... {more} more lines"] if more > 0 else [])


def main():
    words = sys.argv[1:]
    update = words[:1] == ["--update"]
    for name in words[update:] or sorted(os.listdir(GOLDEN)):
        folder = os.path.join(GOLDEN, name)
        if not os.path.isdir(folder) or name == "__pycache__":
            continue
        got = run(folder)
        if update:
            for file, text in got.items():
                write(folder, file, text)
            continue
        want = {file: read(folder, file, default or "") for file, default in EXPECTED.items()}
        lacks = LACKS.search(got["expected.err"])
        if got != want and lacks:
            skip(name, visible(lacks[0]))
        elif not check(name, got == want, f"differs; golden/run.py --update {name} accepts it"):
            print("\n".join(f"  {line}" for line in difference(got, want)), flush=True)
    finish()


if __name__ == "__main__":
    main()
