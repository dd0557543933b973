#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden files: what a reader makes of an input, good or bad, and what it says.

Each folder here has input.* (or none: then args name everything), args (words for the command
line), expected.dump (stdout), expected.err (stderr; nothing if absent) and expected.code (0 if
absent). `run.py --update [NAME...]` writes what is: look at the diff before you commit it.
"""
import glob
import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KSCOPE = os.path.abspath(os.environ.get("KSCOPE", os.path.join(HERE, "../../build/kscope")))


def read(folder, name, default=""):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return default
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
        return f.read()


def write(folder, name, text, default=""):
    path = os.path.join(folder, name)
    if text == default:
        if os.path.exists(path):
            os.unlink(path)
        return
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write(text)


def run(folder):
    inputs = [os.path.basename(path) for path in sorted(glob.glob(f"{glob.escape(folder)}/input*"))]
    command = [KSCOPE, "convert", *inputs, "-t", "dump", "-o", "-",
               *shlex.split(read(folder, "args"))]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=500, check=False)
    return (done.stdout.decode(errors="surrogateescape"),
            done.stderr.decode(errors="surrogateescape"), f"{done.returncode}\n")


def main():
    words = sys.argv[1:]
    update = words[:1] == ["--update"]
    failed = False
    for name in words[1:] if update and words[1:] else sorted(os.listdir(HERE)):
        folder = os.path.join(HERE, name)
        if not os.path.isdir(folder):
            continue
        got = run(folder)
        if update:
            for file, text, default in zip(("expected.dump", "expected.err", "expected.code"), got,
                                           (None, "", "0\n")):
                write(folder, file, text, default)
            continue
        want = (read(folder, "expected.dump"), read(folder, "expected.err"),
                read(folder, "expected.code", "0\n"))
        if got == want:
            print(f"ok {name}")
            continue
        failed = True
        what = [kind for kind, g, w in zip(("stdout", "stderr", "exit code"), got, want) if g != w]
        print(f"not ok {name}: {', '.join(what)} differ; see git diff after run.py --update {name}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
