#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls become a folder of uftrace, record by record, and come back the same.

tests/consumer/uftrace.py asks the real uftrace."""
import glob
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, scratch, uftrace
from kit.inputs import GOLDEN
from kit.uftrace import ENTRY, EXIT, LOST, named as records

HEAD = "kscope-dump 1\n"


def call(time, leave, function, task="5/5"):
    return (f"call time={time / 1e9:.9f} task={task} {'leave' if leave else 'enter'} "
            f"function={function:#x} user\n")


def write(name, text, out, *options):
    done = kscope("convert", "-", "-t", "uftrace", "-o", out, *options, input=(HEAD + text).encode())
    exits(name, done, 0)
    return done


def without_addresses(found):
    return [record[:3] for record in found]


def test_unmatched(folder):
    """Functions that were entered before the recording stand in front, outermost first."""
    out = os.path.join(folder, "unmatched")
    write("unmatched exits", "".join([
        call(1000, True, 0x100), call(1010, False, 0x200), call(1020, True, 0x200),
        call(1030, True, 0x300), call(1040, True, 0x400)]), out)
    got = records(out)[5]
    equal("unmatched exits: the records", without_addresses(got), [
        (ENTRY, 997, 0), (ENTRY, 998, 1), (ENTRY, 999, 2), (EXIT, 1000, 2),
        (ENTRY, 1010, 2), (EXIT, 1020, 2), (EXIT, 1030, 1), (EXIT, 1040, 0)])
    equal("unmatched exits: entries match exits", got[0][3], got[-1][3])


def test_open(folder):
    """What goes on at the end has no exit; in a part, what began before is entered at its begin."""
    out = os.path.join(folder, "open")
    text = "".join([call(1000, False, 0x100), call(1100, False, 0x200), call(1200, True, 0x200),
                    call(1300, False, 0x300)])
    write("open calls", text, out)
    equal("open calls: the records", without_addresses(records(out)[5]),
          [(ENTRY, 1000, 0), (ENTRY, 1100, 1), (EXIT, 1200, 1), (ENTRY, 1300, 1)])
    write("a part", text, out, "--time", "0.00000115,0.00000125")
    equal("a part: the records", without_addresses(records(out)[5]),
          [(ENTRY, 1150, 0), (ENTRY, 1150, 1), (EXIT, 1200, 1)])


def test_deep(folder):
    """Calls deeper than 1024 are left out, also beyond what kscope shows of a stack, and said to be."""
    out = os.path.join(folder, "deep")
    for depth in [1023, 1024, 1025, 5000]:
        text = "".join([call(1000 + i, False, 0x100) for i in range(depth)]
                       + [call(9000 + i, True, 0x100) for i in range(depth)]
                       + [call(20000, False, 0x200), call(20001, True, 0x200)])
        done = write(f"depth {depth}", text, out, "-v")
        got, kept = records(out)[5], min(depth, 1024)
        want = ([(ENTRY, 1000 + i, i) for i in range(kept)]
                + [(EXIT, 9000 + depth - 1 - i, i) for i in range(kept)][::-1]
                + [(ENTRY, 20000, 0), (EXIT, 20001, 0)])
        check(f"depth {depth}: the records", without_addresses(got) == want,
              [pair for pair in zip(got, want) if pair[0][:3] != pair[1]][:3])
        # Of a stack, kscope shows 4096.
        left = max(0, min(depth, 4096) - 1024)
        check(f"depth {depth}: what is left out",
              (f"left out {left} calls" in done.stderr) == bool(left), done.stderr)


def test_tasks(folder):
    """Tasks without usable numbers get some; names have no characters that end a field."""
    out = os.path.join(folder, "tasks")
    names = 'comm task=5/5 name="a b/c\\"d"\ncomm task=6/5 name="other"\n'
    text = names + call(10, False, 1) + call(20, False, 1, "6/5") + call(30, False, 1, "7/0")
    write("odd tasks", text, out)
    equal("odd tasks: their numbers", sorted(records(out)), [5, 1000000, 1000001])
    tasks = uftrace.read(out)["task.txt"].decode()
    check("odd tasks: a name in a line", 'exename="a_b_c_d"\n' in tasks, tasks)


def test_gap(folder):
    """Where a trace has a hole, everything ends, and a LOST record follows. Then a task like the first one begins."""
    out = os.path.join(folder, "gap")
    branch = "branch time={:.9f} cpu=0 task=1/1 {} instructions={} kernel\n"
    text = "".join(branch.format(time / 1e9, what, instructions) for time, what, instructions in [
        (1000, "begin to=0x1000", 0), (2000, "call from=0x1010 to=0x2000 next=0x1015", 5),
        (3000, "call from=0x2010 to=0x3000 next=0x2015", 5), (6000, "begin to=0x1010", 0),
        (8000, "return from=0x2010 to=0x1015", 3)])
    write("a hole", text, out)
    equal("a hole: the records", without_addresses(records(out)[1001]), [
        (ENTRY, 1000, 0), (ENTRY, 2000, 1), (ENTRY, 3000, 2), (EXIT, 3000, 2), (EXIT, 3000, 1),
        (EXIT, 3000, 0), (LOST, 3000, 0)])
    equal("a hole: the records of the next task", without_addresses(records(out)[1000000]),
          [(ENTRY, 5999, 0), (ENTRY, 6000, 1), (EXIT, 8000, 1)])


def test_golden(folder):
    """What is read and written comes back: all golden folders."""
    for place in sorted(glob.glob(os.path.join(GOLDEN, "uftrace*", ""))):
        name = os.path.basename(os.path.dirname(place))
        first, second = (os.path.join(folder, f"{name}-{n}") for n in (1, 2))
        done = kscope("convert", os.path.join(place, "input"), "-t", "uftrace", "-o", first)
        if done.returncode > 1 or not records(first):
            continue
        exits(f"{name}: comes back", kscope("convert", first, "-t", "uftrace", "-o", second), 0)
        equal(f"{name}: the same", records(second), records(first))
        names = [uftrace.read(place)["perf-cpu0.dat"] for place in (first, second)]
        equal(f"{name}: the same names", names[1], names[0])


def test_damage(folder):
    """What comes after much garbage is read; so is a large file."""
    out, nr = os.path.join(folder, "damage"), 50000
    data = b"".join(uftrace.record(i % 2, 1000 + i, 0, 0x400100) for i in range(nr))
    for size in [8, 8184, 8192, 8200, 500008]:
        place = os.path.join(folder, f"garbage-{size}")
        os.mkdir(place)
        for name, content in [("info", uftrace.info([5])), ("task.txt", b""),
                              ("5.dat", data[:16 * 30001] + b"\xa5" * size + data[16 * 30001:])]:
            with open(os.path.join(place, name), "wb") as f:
                f.write(content)
        done = kscope("convert", place, "-t", "uftrace", "-o", out)
        exits(f"garbage of {size} bytes", done, 1, f"5.dat: byte {16 * 30001}: ",
              f"{nr} events read, 0 lost, {size} bytes skipped")
        check(f"garbage of {size} bytes: the records",
              [r[:3] for r in records(out)[5]] == [(i % 2, 1000 + i, 0) for i in range(nr)])


def test_boards(folder):
    """U-Boot's traces become timelines, too."""
    out = os.path.join(folder, "uboot")
    done = kscope("convert", os.path.join(GOLDEN, "uboot-trace", "input.bin"), "-t", "uftrace", "-o", out)
    exits("U-Boot", done, 0)
    (got,) = records(out).values()
    equal("U-Boot: the records", without_addresses(got)[:3],
          [(ENTRY, 5000, 0), (ENTRY, 7000, 1), (EXIT, 9000, 1)])


def test_many(folder):
    """More threads than a process may have files."""
    first, second = os.path.join(folder, "many-1"), os.path.join(folder, "many-2")
    nr = 700
    text = "".join(call(10 * i + n, leave, 0x1000 + 16 * n, f"1/{n}")
                   for i, leave in enumerate([False, True]) for n in range(10, 10 + nr))

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    for name, source, out in [("written", "-", first), ("read", first, second)]:
        done = kscope("convert", source, "-t", "uftrace", "-o", out, preexec_fn=limit,
                      **({"input": (HEAD + text).encode()} if source == "-" else {}))
        exits(f"many threads: {name}", done, 0)
    equal("many threads: all are there", len(records(second)), nr)
    equal("many threads: the same", records(second).keys(), records(first).keys())


def test_names(folder):
    """A folder is replaced only if it is uftrace's; nothing is left of one that could not be written."""
    out = os.path.join(folder, "names")
    text = call(10, False, 1)
    os.mkdir(out)
    write("an empty folder", text, out)
    write("an older folder", text + call(20, True, 1), out)
    equal("an older folder is replaced", len(records(out)[5]), 2)
    write("a name with a slash", text, out + "/")
    os.mkdir(os.path.join(out, "more"))
    for name, path, words in [("a folder in it", out, ["has other files"]),
                              ("other files", folder, ["has other files"]),
                              ("a file", os.path.join(out, "info"), ["not a folder"]),
                              ("stdout", "-", ["use -o DIR"]),
                              ("no such place", os.path.join(folder, "no/such"), ["cannot write"])]:
        done = kscope("convert", "-", "-t", "uftrace", "-o", path, input=(HEAD + text).encode())
        exits(f"{name} is refused", done, 2 if path == "-" else 4, *words)
    equal("what was there is still there", len(records(out)[5]), 1)
    os.rmdir(os.path.join(out, "more"))
    for path in [out, os.path.join(out, "info")]:
        exits("an input is not replaced", kscope("convert", path, "-t", "uftrace", "-o", out), 2,
              "is an input, too")
    bad = kscope("convert", "-", "-t", "uftrace", "-o", os.path.join(folder, "bad"), input=b"nothing")
    check("no output of a bad input", bad.returncode == 3 and not os.path.exists(f"{folder}/bad"), bad)
    full = kscope("convert", "-", "-t", "uftrace", "-o", out, input=(HEAD + text * 100).encode(),
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)))
    exits("a full disk", full, 4, "cannot write")
    equal("a full disk leaves the older folder", len(records(out)[5]), 1)
    equal("no temporary folders", glob.glob(os.path.join(folder, ".kscope*")), [])


def main():
    for test in [test_unmatched, test_open, test_deep, test_tasks, test_gap, test_golden, test_damage, test_boards,
                 test_many, test_names]:
        with scratch() as folder:
            test(folder)
    finish()


if __name__ == "__main__":
    main()
