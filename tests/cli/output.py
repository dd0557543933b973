#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Output: write errors, perf.data on stdout, and the options of folded stacks."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (ELFS, KSCOPE, check, demo_samples, equal, exits, finish, kscope, read_folded, run,
                 scratch)


def test_output(samples, folder):
    exits("a full disk",
          kscope("convert", samples, "-b", ELFS, "-t", "perfdata", "-o", "/dev/full"), 4,
          "/dev/full", "No space")
    path = os.path.join(folder, "limited.data")
    done = run("sh", "-c", f"ulimit -f 8; exec {KSCOPE} convert {samples} -b {ELFS} -o {path}")
    exits("a limit on files", done, 4, path, "ulimit")
    check("leaves nothing behind", not [name for name in os.listdir(folder) if "limited" in name])
    for verb in ("report", "info"):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([KSCOPE, verb, samples, "-b", ELFS], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        equal(f"a full disk behind {verb}", done.returncode, 4)
    exits("no such folder", kscope("convert", samples, "-b", ELFS, "-o", f"{folder}/no/x.data"), 4,
          "no/x.data", "No such file")
    done = kscope("convert", samples, "-b", ELFS, "-t", "perfdata", "-o", "-", binary=True)
    path = os.path.join(folder, "direct.data")
    kscope("convert", samples, "-b", ELFS, "-o", path)
    with open(path, "rb") as f:
        check("perf.data on stdout is the same", done.stdout == f.read())


def test_private(samples, folder):
    """perf.data and archives have what a recording has, which only its user may read."""
    for name, words, mode in (("new.data", ["convert"], 0o600), ("new.svg", ["convert"], 0o644),
                              ("new.kscopez", ["archive"], 0o600)):
        path = os.path.join(folder, name)
        run(KSCOPE, *words, samples, "-b", ELFS, "-o", path, preexec_fn=lambda: os.umask(0o022))
        equal(f"the permissions of {name}", oct(os.stat(path).st_mode & 0o777), oct(mode))


def test_closed_descriptors(folder):
    """A file that kscope opens does not get a standard descriptor's number, and then the messages."""
    damaged = os.path.join(folder, "damaged.dump")
    with open(damaged, "w", encoding="ascii") as f:
        f.write('kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\nwhat is this\n'
                'sample task=1/1 source=1 weight=1 : named "a"\n')
    path = os.path.join(folder, "closed.folded")
    for closed in ("2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-", "0<&- 2>&-"):
        done = run("sh", "-c", f"exec {KSCOPE} convert {damaged} -o {path} {closed}")
        equal(f"closed: {closed}: the exit code", done.returncode, 1)
        with open(path, encoding="utf-8") as f:
            equal(f"closed: {closed}: the output has no message", f.read(), "pid 1;a 1\n")
    equal("closed: nothing can be written to stdout",
          run("sh", "-c", f"exec {KSCOPE} report {damaged} >&-").returncode, 4)
    equal("closed: nothing can be read from stdin",
          run("sh", "-c", f"exec {KSCOPE} report - <&-").returncode, 3)


def test_folded(samples):
    def folded(*options):
        return kscope("convert", samples, "-b", ELFS, *options, "-t", "folded", "-o", "-").stdout

    text = folded("--lines")
    check("lines", re.search(r"mix_round hasher\.c:\d+", text), text[:300])
    equal("no root frame",
          read_folded(folded("--root", "none", "--no-inline"))["_start;fill_block"], 500)
    equal("pid as the root frame",
          read_folded(folded("--root", "pid", "--no-inline"))["hasher.elf 1;_start;fill_block"],
          500)
    equal("weights", read_folded(folded("--weight", "--no-inline"))["hasher.elf;_start;fill_block"],
          500 * 1200000)


def test_many_tasks():
    """100000 tasks, some of which share callers or all frames."""
    lines = ['kscope-dump 1', 'source id=1 name="cycles" type=0 config=0x0']
    truth = {}
    for pid in range(1, 100001):
        root = f"root{pid % 50000}" if pid % 3 else "main"
        for leaf in ("a", "b"):
            lines.append(f'sample task={pid}/{pid} source=1 weight=1 : named "{leaf}" "{root}"')
            truth[f"pid {pid};{root};{leaf}"] = 1
    dump = "\n".join([*lines, ""]).encode()
    text = kscope("convert", "-", "-t", "folded", "-o", "-", input=dump).stdout
    check("many tasks: each has its own stacks", read_folded(text) == truth, text[:300])


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_output(samples, folder)
        test_private(samples, folder)
        test_closed_descriptors(folder)
        test_folded(samples)
        test_many_tasks()
    finish()


if __name__ == "__main__":
    main()
