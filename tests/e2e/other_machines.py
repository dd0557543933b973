#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope on a big-endian machine (s390x) and on one of 32 bits (i386), in qemu-user.

It prints what the goldens say, and writes the same bytes as on this machine."""
import concurrent.futures
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, KSCOPE, ROOT, check, equal, finish, no_problems, run, scratch, skip
from kit.inputs import GOLDEN, unpacked

MACHINES = ["s390x", "i386"]
# Goldens whose inputs are converted, and the formats that are more than text.
INPUTS = ["perfdata-be", "perfdata-lbr", "perfdata-branches", "wire-described-counters",
          "wire-allocs"]
FORMATS = ["perfdata", "perfetto", "fxt"]


def make(machine):
    # If make runs this test, its variables are for another build.
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and
           key != "MFLAGS"}
    return run("make", "-C", ROOT, f"BUILD={os.path.relpath(BUILD, ROOT)}", f"machine-{machine}",
               env=env)


def missing(machine):
    """Names what the test needs and what is not there, or returns None."""
    linker = {"s390x": "s390x-linux-gnu-ld", "i386": "ld.lld"}[machine]
    for program in ["clang", linker, f"qemu-{machine}"]:
        if not shutil.which(program):
            return f"{program} is not installed"
    if not os.path.isdir(os.path.join(BUILD, "machines", machine, "sysroot")):
        return f"its libraries are not there: run make machine-{machine}"
    return None


def write_wrapper(folder, machine):
    """A program that runs the machine's kscope."""
    path, home = os.path.join(folder, machine), os.path.join(BUILD, "machines", machine)
    # The dynamic linker looks for its folders by statx(), for which QEMU 7.2 does not translate paths.
    libraries = ":".join(f"{home}/sysroot/{lib}/{machine}-linux-gnu" for lib in ("lib", "usr/lib"))
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n"
                f"exec qemu-{machine} -L '{home}/sysroot' -E 'LD_LIBRARY_PATH={libraries}' "
                f"'{home}/build/kscope' \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def run_goldens(machine, program, lacks):
    done = run(sys.executable, os.path.join(ROOT, "tests", "golden", "run.py"),
               env=dict(os.environ, KSCOPE=program))
    results = re.findall(r"^(ok|not ok|skip) (.*)\n((?:  .*\n)*)", done.stdout, re.M)
    kinds = [kind for kind, _, _ in results]
    for kind, text, difference in results:
        if kind == "not ok" or kind == "skip" and not lacks:
            check(f"{machine}: golden {text}", False, difference)
    check(f"{machine}: {kinds.count('ok')} goldens" +
          (f", {kinds.count('skip')} others need {lacks}" if "skip" in kinds else ""),
          "not ok" not in kinds and kinds.count("ok") > kinds.count("skip"), done.stderr)


def convert(program, place, folder):
    """{format: the bytes that the program makes of the inputs there}"""
    made = {}
    inputs = sorted(name for name in os.listdir(place) if name.startswith("input"))
    for name in FORMATS:
        out = os.path.join(folder, f"out.{name}")
        done = run(program, "convert", *inputs, "-t", name, "-o", out, cwd=place)
        if done.returncode == 0:
            with open(out, "rb") as f:
                made[name] = f.read()
            os.unlink(out)
    return made


def compare_bytes(machine, program):
    problems = []
    with scratch() as folder:
        for name in INPUTS:
            with unpacked(os.path.join(GOLDEN, name)) as place:
                want, got = (convert(each, place, folder) for each in (KSCOPE, program))
            problems += [f"{name} as {kind}" for kind in FORMATS
                         if kind not in want or got.get(kind) != want[kind]]
    no_problems(f"{machine}: the same bytes in perf.data and timelines", problems)


def test(machine):
    why = missing(machine)
    if why:
        skip(machine, why)
        return
    done = make(machine)
    if not check(f"{machine}: it builds", done.returncode == 0, done.stderr):
        return
    lists = []
    for part in ["build", "sysroot"]:
        with open(os.path.join(BUILD, "machines", machine, part, "missing"), encoding="utf-8") as f:
            lists.append(f.read().strip())
    equal(f"{machine}: it uses all libraries that Debian has", *lists)
    with scratch() as folder:
        program = write_wrapper(folder, machine)
        run_goldens(machine, program, lists[1])
        compare_bytes(machine, program)


def main():
    with concurrent.futures.ThreadPoolExecutor(len(MACHINES)) as pool:
        list(pool.map(test, MACHINES))
    finish()


if __name__ == "__main__":
    main()
