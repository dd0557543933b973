#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""libkscope-dlfilter.so in perf script: its slices are those of perf's text, and of kscope's own decoder."""
import collections
import itertools
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, check, emulate, equal, exits, finish, fxt, kscope, run, scratch, skip

COUNTS = "instructions", "own_instructions", "lines"
FILTER = os.path.join(BUILD, "libkscope-dlfilter.so")


def record(folder, name):
    """A program of tests/pt, and its recording."""
    program = emulate.build(name, folder, "-no-pie")
    data = os.path.join(folder, f"{name}.data")
    exits(f"{name}: records", kscope("record", "emulate", "-o", data, "--", program), 0)
    return program, data


def own_functions(program):
    """The names of other functions depend on who looks them up: several have the same address, or no symbol."""
    lines = map(str.split, run("nm", program).stdout.splitlines())
    return {words[-1] for words in lines if words[-2] in "tT"} - {"_init", "_fini"}


def sanitizer():
    """A filter that is built with a sanitizer needs its library to come first in perf."""
    found = [line.split()[2] for line in run("ldd", FILTER).stdout.splitlines() if "libasan" in line]
    return {"LD_PRELOAD": found[0], "ASAN_OPTIONS": "detect_leaks=0"} if found else {}


def perf_script(*words):
    return run("env", *(f"{name}={value}" for name, value in sanitizer().items()), "perf", "script", "-f", *words)


def filtered(data, out, *words, library=FILTER):
    return perf_script("-i", data, "--dlfilter", library, "--dlarg", out, *words)


def by_text(data, out):
    done = run("perf", "script", "-f", "-i", data, "--ns", "--itrace=be", "-F", "+flags")
    path = f"{out}.txt"
    with open(path, "w", encoding="utf-8") as f:
        f.write(done.stdout)
    return kscope("trace", path, "-o", out)


def read(path):
    with open(path, "rb") as f:
        return fxt.slices(fxt.read(f.read()))


def slices(path, functions):
    return sorted((s.tid, s.begin, s.end, s.category, s.name) for s in read(path) if s.name in functions)


def calls(path, *args):
    """Without times, which kscope knows better than perf: those of each thread, in the order of their ends."""
    return sorted((s.tid, i, s.depth, s.category, s.name, *(s.args.get(arg) for arg in args))
                  for i, s in each_thread(read(path)))


def each_thread(found):
    counts = collections.Counter()
    for s in found:
        counts[s.tid] += 1
        yield counts[s.tid], s


def same(name, one, other):
    """The first differences only: there are many slices."""
    pairs = [pair for pair in itertools.zip_longest(one, other) if pair[0] != pair[1]]
    check(name, not pairs, f"{len(pairs)} of {len(one)}: {pairs[:4]}")


def test_program(folder, name):
    program, data = record(folder, name)
    functions = own_functions(program)
    text, filter_, native, exact = (os.path.join(folder, f"{name}-{way}.fxt") for way in
                                    ("text", "filter", "native", "exact"))
    exits(f"{name}: text", by_text(data, text), 0)
    exits(f"{name}: filter", filtered(data, filter_, "--itrace=be"), 0)
    exits(f"{name}: kscope", kscope("trace", data, "-o", native), 0)
    found = slices(filter_, functions)
    check(f"{name}: has slices", len(found) > 10, found)
    same(f"{name}: the filter's slices are those of the text", found, slices(text, functions))
    same(f"{name}: and those of kscope, of all functions", calls(filter_), calls(native))
    exits(f"{name}: with samples of instructions", filtered(data, exact, "--itrace=bei0ns"), 0)
    same(f"{name}: instructions are as kscope counts them", calls(exact, *COUNTS), calls(native, *COUNTS))
    return data


def test_axes(folder, data):
    # As users of perf2perfetto run it.
    drop_in = os.path.join(folder, "libperf2perfetto.so")
    shutil.copy(FILTER, drop_in)
    for axis, count in (("i", "instructions"), ("c", "cycles")):
        out = os.path.join(folder, f"axis-{axis}.ftf")
        done = filtered(data, out, "--itrace=bei0ns", "--dlarg", axis, library=drop_in)
        exits(f"axis {axis}", done, 0)
        equal(f"axis {axis}: perf prints nothing", done.stdout, "")
        # The first slices end before the trace has counted a cycle.
        wrong = [s for s in read(out) if s.end - s.begin != s.args.get(count, 0)]
        equal(f"axis {axis}: slices are as long as their {count}", wrong[:3], [])


def test_refused(folder, data):
    out = os.path.join(folder, "no.fxt")
    for name, words, says in (
            ("no output", [], "needs --dlarg FILE"),
            ("another format", ["--dlarg", f"{folder}/no.xyz"], "cannot tell the format"),
            ("another axis", ["--dlarg", out, "--dlarg", "x"], "t (time), c (cycles) or i (instructions)"),
            ("no folder", ["--dlarg", f"{folder}/none/no.fxt"], "cannot write")):
        done = perf_script("-i", data, "--itrace=be", "--dlfilter", FILTER, *words)
        check(f"{name}: is refused", done.returncode != 0 and says in done.stderr, done.stderr)
    check("refused: nothing is written", not os.path.exists(out), out)


def main():
    why = emulate.why_not() or (None if shutil.which("perf") else "perf is not installed")
    if why:
        skip("dlfilter", why)
        finish()
        return
    with scratch() as folder:
        data = test_program(folder, "signals")
        test_program(folder, "threads")
        test_axes(folder, data)
        test_refused(folder, data)
    finish()


main()
