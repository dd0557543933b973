#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope warns of options that have no effect on an input or an output, and only of those. The old
spellings of options work."""
import glob
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import DEMO, ROOT, check, equal, finish, kscope, scratch

GOLDEN = os.path.join(ROOT, "tests", "golden")
ELF = os.path.join(DEMO, "4k", "hasher.elf")
FOLDER = os.path.join(DEMO, "4k")
INERT = re.compile(r"^kscope: warning: (--\S+ has no effect on .*)$", re.M)
# One input of each format.
INPUTS = ["dump", "folded", "kpdata-v1", "kpdata-v3", "kphistogram-good", "kpoprofile-good",
          "maestro", "managarm", "memtrace", "perfdata-le", "perfscript-old", "qperf-3", "sel4-json",
          "sel4-pb", "sel4-serial"]
OPTIONS = [["--tick-hz", "1000"], ["--event-name", "x"], ["--elf", ELF], ["--elf", f"1={ELF}"],
           ["--slide", "4096"], ["--unwind", "fp"], ["--no-split"], ["--value", "total"],
           ["--kernel", ELF], ["--build-dir", FOLDER], ["--symfs", FOLDER], ["--time", "0,1"],
           ["--cpu", "0"], ["--pid", "1"], ["--tid", "1"], ["--level", "user"], ["--comm", "x"],
           ["--event", "x"], ["--root", "none"], ["--inverted"], ["--title", "x"], ["--samples"],
           ["--weight"], ["--width", "500"]]


def golden(name):
    """The words of the command line that name the input and the options of the golden test."""
    folder = os.path.join(GOLDEN, name)
    inputs = sorted(glob.glob(os.path.join(folder, "input*")))
    if not os.path.exists(os.path.join(folder, "args")):
        return inputs
    with open(os.path.join(folder, "args"), encoding="utf-8") as f:
        words = shlex.split(f.read())
    return inputs + [os.path.join(folder, word) if os.path.exists(os.path.join(folder, word)) else word
                     for word in words]


def convert(words, kind):
    return kscope("convert", *words, "-t", kind, "-o", "-", binary=True)


def test_no_false_warning():
    """An option that changes the output has an effect."""
    warned = 0
    for name in INPUTS:
        words = golden(name)
        for kind in ("folded", "svg", "dump", "perfdata"):
            before = convert(words, kind)
            if before.returncode > 1:  # perf.data cannot hold names without addresses
                continue
            for option in OPTIONS:
                after = convert(words + option, kind)
                inert = INERT.findall(after.stderr.decode(errors="replace"))
                warned += bool(inert)
                if after.returncode <= 1 and inert and after.stdout != before.stdout:
                    check(f"{name} to {kind}: {' '.join(option)} has an effect", False, inert)
    check("no false warning, among many true ones", warned > 300, warned)


def inert(*words):
    done = kscope(*words)
    return done.returncode, INERT.findall(done.stderr)


def test_warnings(folder):
    perf, folded, memtrace = (golden(name)[0] for name in ("perfdata-le", "folded", "memtrace"))
    sel4 = golden("sel4-json")
    svg = os.path.join(folder, "x.svg")
    text = os.path.join(folder, "x.folded")
    equal("options of other formats on perf.data",
          inert("report", perf, "--tick-hz", "5", "--slide", "4", "--value", "peak", "--elf", ELF),
          (0, [f"--{name} has no effect on perfdata input"
               for name in ("tick-hz", "slide", "value", "elf")]))
    equal("names of binaries for data without any",
          inert("report", folded, "--kernel", ELF, "--build-dir", FOLDER, "--symfs", FOLDER),
          (0, [f"--{name} has no effect on folded input"
               for name in ("kernel", "build-dir", "symfs")]))
    equal("options of another output", inert("convert", folded, "--title", "x", "--root", "none",
                                             "-o", text), (0, ["--title has no effect on folded output"]))
    equal("one of several outputs has it", inert("convert", folded, "--title", "x", "-o", text, "-o",
                                                 svg), (0, []))
    equal("what only samples have, on a dump",
          inert("convert", memtrace, "--value", "peak", "-t", "dump", "-o", "-"),
          (0, ["--value has no effect on dump output"]))
    equal("the same on samples", inert("convert", memtrace, "--value", "peak", "-o", text), (0, []))
    equal("nothing to unwind", inert("info", folded, "--unwind", "fp"),
          (0, ["--unwind has no effect on folded input"]))
    equal("one of several inputs has it",
          inert("report", folded, *sel4, "--tick-hz", "1000", "--slide", "1"),
          (kscope("report", folded, *sel4).returncode,
           ["--slide has no effect on folded, sel4-json input"]))
    equal("one side of a comparison has it",
          inert("flame", folded, "--diff", memtrace, "--value", "total", "--no-split", "-o", svg),
          (0, ["--no-split has no effect on memtrace input"]))
    equal("a default that is given", inert("report", folded, "--level", "all"), (0, []))
    equal("a drop-in has nothing to say",
          inert("kprof2perf", "-k", ELF, "-i", golden("kpdata-v3")[0], "-o",
                os.path.join(folder, "x.data"))[1], [])
    done = kscope("report", folded, "--tick-hz", "5", "-q")
    equal("--quiet", (done.returncode, done.stderr), (0, ""))
    done = kscope("report", folded, "--tick-hz", "fast")
    check("a wrong value is an error, effect or not", done.returncode == 2 and
          "--tick-hz expects a number" in done.stderr, done.stderr)


def test_old_spellings():
    folded = golden("folded")[0]
    new, old = (kscope("convert", folded, option, "dump", "-o", "-").stdout
                for option in ("--type", "--to"))
    check("convert --to", new == old and new, old)
    new, old = (kscope("record", "qemu", "--print", f"--{start}", "0x10", f"--{start}", "0x20",
                       f"--{stop}", "0x30", "--", "qemu-system-i386").stdout
                for start, stop in (("start-at", "stop-at"), ("from", "to")))
    check("record --from, --to", new == old and "from=0x10+0x20,to=0x30" in new, old)
    for old in (["report", "--vmlinux"], ["report", "--kallsyms"]):
        equal(" ".join(old), inert(*old, ELF, folded), (0, ["--kernel has no effect on folded input"]))
    equal("--root-dir", inert("report", "--root-dir", FOLDER, folded),
          (0, ["--symfs has no effect on folded input"]))
    done = kscope("flame", "--colors", "no such", folded)
    check("--colors", done.returncode == 2 and
          "--palette expects auto, hot, mem, kernel-user or by-binary, not 'no such'" in done.stderr,
          done.stderr)


def main():
    with scratch() as folder:
        test_warnings(folder)
    test_old_spellings()
    test_no_false_warning()
    finish()


if __name__ == "__main__":
    main()
