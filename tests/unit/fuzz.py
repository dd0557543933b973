#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every reader, for a few seconds each, with whatever bytes the fuzzer finds."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib import ROOT, check, finish, run

SECONDS = 2


def main():
    with open(os.path.join(ROOT, "src", "formats.def"), encoding="utf-8") as f:
        readers = re.findall(r"^READER\((\w+)\)", f.read(), re.M)
    # Its own build, always with clang, whatever the tests themselves are built with.
    env = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "BUILD", "MAKEFLAGS")}
    build = run("make", "-C", ROOT, "-j2", "fuzz-build", env=env)
    check("the fuzzers build", build.returncode == 0, build.stderr[-500:])
    for reader in readers + ["kernel"]:
        done = run(os.path.join(ROOT, "fuzz", "run"), os.path.join(ROOT, "build", "fuzz"), reader,
                   str(SECONDS), env=env)
        check(reader, done.returncode == 0 and "Done" in done.stdout, done.stdout[-500:])
    finish()


if __name__ == "__main__":
    main()
