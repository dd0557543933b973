#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two builds have the same bytes, with debug information, whatever folders they are in."""
import filecmp
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, finish, run, scratch

FILES = ["kscope", "kscope-qemu.so", "libkscope-dlfilter.so"]
PARTS = ["src", "plugin", "dlfilter", "wire", "web"]


def build(folder, out, **variables):
    """Builds a copy of the sources, without optimization: it takes less time."""
    for part in PARTS:
        shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
    shutil.copy(os.path.join(ROOT, "Makefile"), folder)
    # If make runs this test, its variables are for another build.
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and
           key not in ("MFLAGS", "BUILD", "CFLAGS", "CPPFLAGS", "LDFLAGS")}
    return run("make", "-C", folder, "-j2", f"BUILD={out}", "CFLAGS=-O0 -g",
               *(os.path.join(out, file) for file in FILES), env=dict(env, **variables))


def main():
    with scratch() as folder:
        first, second = os.path.join(folder, "a"), os.path.join(folder, "a longer name", "of a folder")
        elsewhere = os.path.join(folder, "elsewhere", "out")
        done = build(first, "build", TZ="UTC", LC_ALL="C")
        check("it builds", done.returncode == 0, done.stderr)
        done = build(second, elsewhere, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
        check("it builds in another folder", done.returncode == 0, done.stderr)
        for file in FILES:
            paths = os.path.join(first, "build", file), os.path.join(elsewhere, file)
            check(f"{file} is the same", all(map(os.path.exists, paths)) and
                  filecmp.cmp(*paths, shallow=False), f"compare {' and '.join(paths)}")
            with open(paths[1], "rb") as f:
                check(f"{file} does not name the folder", folder.encode() not in f.read(), folder)
    finish()


if __name__ == "__main__":
    main()
