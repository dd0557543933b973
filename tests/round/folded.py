#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks keep the names of tasks, even of those that look like comments."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import equal, finish, kscope

NAMES = ["#1 worker", "#", "##", "# worker", "#worker", "#!", "\\#1", "\\\\# 1", "\\", "\\n#",
         "a#b", "# 5", "#5", "#1 5"]
HEAD = 'kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'


def dump():
    """Each task has a sample without frames, and some with frames; their weights differ."""
    lines = []
    for i, name in enumerate(NAMES):
        quoted = '"' + name.replace("\\", "\\\\") + '"'
        lines.append(f"comm task={i + 1}/{i + 1} name={quoted}")
        for frames in ("", ' "main"', ' "leaf" "main"', f" {quoted}"):
            lines.append(f"sample task={i + 1}/{i + 1} source=1 weight=1 count=1 : named{frames}")
    return HEAD + "\n".join(lines) + "\n"


def folded(text, *words):
    done = kscope("convert", "-", "-t", "folded", "-o", "-", *words, input=text.encode())
    equal(f"exit code {' '.join(words)}", (done.returncode, done.stderr), (0, ""))
    return done.stdout


def stacks(text):
    """{frames: count}, as kscope reads folded stacks."""
    done = kscope("convert", "-", "-f", "folded", "-t", "dump", "-o", "-", input=text.encode())
    counts = {}
    for line in done.stdout.splitlines():
        if line.startswith("sample "):
            facts, frames = line.split(" : named ")
            weight = int(facts.split(" weight=")[1].split()[0])
            counts[frames] = counts.get(frames, 0) + weight
    return counts


def main():
    text = folded(dump())
    equal("the common case has no backslash", "#1 worker;main;leaf 1" in text.splitlines(), True)
    want = {}
    for name in NAMES:
        quoted = '"' + name.replace("\\", "\\\\") + '"'
        for frames in ("", '"main" ', '"leaf" "main" ', f"{quoted} "):
            want[frames + quoted] = 1
    equal("all stacks, and their names", stacks(text), want)
    equal("folded again, they are the same", folded(text, "-f", "folded"), text)
    finish()


if __name__ == "__main__":
    main()
