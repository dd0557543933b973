#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope diff: its numbers are those of kscope report, its table, order, summary and exit codes; what it matches; several
runs; exact recordings; inputs that are empty, damaged, enormous or of different kinds."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, no_problems, profiles, scratch
from kit.inputs import GOLDEN
from kit.samples import HEAD, drawn, shares

SLOWER = 5


class Folder:
    """Writes inputs and compares them."""

    def __init__(self, path):
        self.path = path

    def write(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return path

    def diff(self, before, after, *options):
        return kscope("diff", self.write("before", before), self.write("after", after), *options)

    def json(self, before, after, *options):
        return parsed(self.diff(before, after, "--json", *options))


def parsed(done):
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"{done.returncode} {done.stdout[:300]} {done.stderr}") from None


def rows_of(answer, event=0):
    return {row["name"]: row for row in answer["events"][event]["rows"]}


def changes(answer):
    """{name: change}, without rows that did not change."""
    return {name: row["change"] for name, row in rows_of(answer).items() if row["change"] != "same"}


def test_report(folder):
    """All numbers of a profile with everything in it, against report's, in both directions."""
    odd = profiles.odd(folder.path)
    part = ["--rel", "0,0.2"]
    want = [{event["name"]: event for event in odd.report(*options)["events"]} for options in (part, [])]
    for by, key in (("function", "functions"), ("binary", "binaries"), ("cpu", "cpus")):
        half = kscope("convert", odd.path, *part, *odd.options, "-t", "dump", "-o", os.path.join(folder.path, "half.dump"))
        check("half of a profile", half.returncode == 0, half.stderr)
        answer = parsed(kscope("diff", os.path.join(folder.path, "half.dump"), odd.path, *odd.options, "--json", "--by", by, "--idle"))
        problems, nr = [], 0
        for event in answer["events"]:
            for side, events in zip(("before", "after"), want):
                rows = {(row["name"], row.get("binary", "")): row for row in events[event["name"]][key]}
                got = {(row["name"], row.get("binary", "")): row[side] for row in event["rows"]}
                for row, numbers in got.items():
                    other = rows.get(row, {"self": 0, "total": 0, "samples": 0, "self_percent": 0, "total_percent": 0})
                    nr += 1
                    problems += [f"{event['name']} {side} {row} {field}: {numbers[field]}, {other[field]}"
                                 for field in numbers if abs(numbers[field] - other[field]) > 1e-4 * ("_" in field)]
                problems += [f"{side} lacks {row}" for row in rows if row not in got]
                problems += [f"weight {side}"] * (event[f"weight_{side}"] != events[event["name"]]["weight"])
        no_problems(f"by {by}: {nr} rows as kscope report's", problems or [] if nr > 8 else ["few rows"])
        equal(f"by {by}: losses", [answer["before"][0]["lost"], answer["after"][0]["lost"]], [42, 42])
        for event in answer["events"]:
            tests = [row for row in event["rows"] if row["tested"]]
            equal(f"by {by}: tests", event["tests"], len(tests))
    text = kscope("diff", os.path.join(folder.path, "half.dump"), odd.path, "--limit", "0")
    check("names are safe for a terminal, losses are reported", "\033" not in text.stdout and
          "half.dump (before): 42 lost, 0 damaged places\n" in text.stdout and "(after): 42 lost" in text.stdout, text.stdout[:400])
    tasks = parsed(kscope("diff", odd.path, odd.path, *odd.options, "--json", "--by", "task", "--idle"))
    equal("tasks of one name are one row", sorted({row["name"] for row in tasks["events"][0]["rows"]}),
          sorted({row["name"] for row in want[1]["cycles"]["tasks"]}))
    check("tasks: nothing changes", {row["change"] for event in tasks["events"] for row in event["rows"]} == {"same"})


def test_text(folder):
    before, after = "main;a 500\nmain;b 300\nmain;c 200\n", "main;a 540\nmain;b 500\nmain;d 100\n"
    done = folder.diff(before, after)
    check("a table", done.returncode == SLOWER and
          re.search(r"^ +30\.00% +43\.86% +\+13\.86 +1\.46x +\+13\.86 +<0\.0001  slower  b$", done.stdout, re.M) and
          re.search(r"^ +0\.00% +8\.77% +\+8\.77 +new +\+8\.77 +<0\.0001  slower  d$", done.stdout, re.M) and
          re.search(r"^ +20\.00% +0\.00% +-20\.00 +gone +-20\.00 +<0\.0001  faster  c$", done.stdout, re.M), done.stdout)
    equal("the largest significant difference first", re.findall(r"(?:slower|faster|noise) +(\w)$", done.stdout, re.M),
          ["c", "b", "d", "a"])
    check("a summary", "\n2 functions slower, 1 faster, 1 difference may be noise, 1 the same\n" in done.stdout and
          "2 of them slower by at least 1 percentage point\n" in done.stdout, done.stdout)
    check("it says that samples count as independent", "noise: assuming independent samples" in done.stdout, done.stdout)
    check("no colours in a pipe", "\033" not in done.stdout)
    for sort, want in (("name", "abcd"), ("before", "abcd"), ("after", "abdc"), ("ratio", "dbac")):
        got = re.findall(r"(?:slower|faster|noise) +(\w)$", folder.diff(before, after, "--sort", sort).stdout, re.M)
        equal(f"sorted by {sort}", "".join(got), want)
    text = folder.diff(before, after, "-n", "1").stdout
    check("a limit", "(3 more rows: --limit 0)" in text and not re.search(r"  b$", text, re.M), text)
    text = folder.diff("x;a\x1b[2J 100\n", "x;a\x1b[2J 50\nx;\xff 50\n").stdout
    check("nothing that a terminal obeys", "\033" not in text and "a?[2J" in text, text)


def test_total(folder):
    before, after = "main;a;x 100\nmain;b;x 100\nmain;a 800\n", "main;a;x 100\nmain;b;x 900\n"
    rows = rows_of(folder.json(before, after, "--total"))
    equal("totals are compared", [(rows[name]["change"], rows[name]["points"]) for name in ("a", "b", "x", "main")],
          [("faster", -80), ("slower", 80), ("slower", 80), ("same", 0)])
    rows = rows_of(folder.json(before, after))
    equal("self is the default", [(rows[name]["change"], rows[name]["points"]) for name in ("a", "b")],
          [("faster", -80), ("same", 0)])


def test_absolute(folder):
    before, after = "a 1000\nb 1000\n", "a 1000\nb 3000\n"
    rows = rows_of(folder.json(before, after))
    equal("shares: one grows, so the other falls", [rows[name]["change"] for name in "ab"], ["faster", "slower"])
    rows = rows_of(folder.json(before, after, "--absolute"))
    equal("numbers: only one grows", [(rows[name]["change"], rows[name]["points"]) for name in "ab"],
          [("same", 0), ("slower", 100)])
    text = folder.diff(before, after, "--absolute")
    check("numbers in a table", text.returncode == SLOWER and
          re.search(r"^ +1\.00 k +3\.00 k +\+2\.00 k +3\.00x +\+2\.00 k +<0\.0001  slower  b$", text.stdout, re.M), text.stdout)
    double = rows_of(folder.json("a 1000\nb 1000\n", "a 2000\nb 2000\n"))
    equal("a longer recording has the same shares", [double[name]["change"] for name in "ab"], ["same", "same"])


def test_idle(folder):
    """A host that does something else lets the guest's cpus wait longer: nothing got slower."""
    def host(waits):
        names = ("[idle]" if i * waits % 100 < waits else "irq" if i % 9 == 0 else "work" for i in range(4000))
        return HEAD + "".join(f'sample time={1 + i / 1000:.3f} cpu=0 task=1/1 source=1 weight=1000 : named "{name}"@"kernel"\n'
                              for i, name in enumerate(names))

    busy, waiting = host(30), host(60)
    for before, after in ((busy, waiting), (waiting, busy)):
        done = folder.diff(before, after)
        check("idle time is left out", done.returncode == 0 and "idle, not counted: " in done.stdout and
              "[idle]" not in done.stdout, done.stdout)
        equal("idle time is in the shares with --idle", folder.diff(before, after, "--idle").returncode, SLOWER)
    event = folder.json(busy, waiting)["events"][0]
    equal("JSON", (event["idle_percent_before"], event["idle_percent_after"], sorted(row["name"] for row in event["rows"])),
          (30, 60, ["irq", "work"]))
    equal("JSON with --idle", [folder.json(busy, waiting, "--idle")["events"][0][f"idle_percent_{side}"]
                               for side in ("before", "after")], [0, 0])
    for options in (["--samples"], ["--absolute"], ["--by", "task"], ["--total"]):
        rows = rows_of(folder.json(busy, waiting, *options))
        check(f"idle time is left out {' '.join(options)}", "[idle]" not in rows, rows)
    only = HEAD + 'sample time=1 task=1/1 source=1 weight=1 : named "[idle]"\n'
    exits("nothing but idle time", folder.diff(only, only), 1, "nothing to compare")
    equal("--absolute: all numbers are lower, none higher",
          {row["change"] for row in rows_of(folder.json(busy, waiting, "--absolute")).values()}, {"faster"})


def test_hint(folder):
    """Of single runs, nothing tells how much runs vary."""
    hint, before, after = "One run on each side", "a 500\nb 500\n", "a 700\nb 300\n"
    check("differences between single runs: a hint", hint in folder.diff(before, after).stdout)
    small = [folder.diff(f"a {10000 + nr}\nb 990000\n", f"a {10000}\nb 990000\n").stdout for nr in (1, 2000)]
    equal("a small difference that may be noise: no hint; a significant one: a hint", [hint in text for text in small],
          [False, True])
    text = folder.diff("a 20\nb 20\n", "a 23\nb 17\n").stdout
    check("a large difference that may be noise: a hint", hint in text and " noise " in text, text)
    check("no difference: no hint", hint not in folder.diff(before, before).stdout)
    check("an exact difference: no hint", hint not in folder.diff(calls(10, 20), calls(20, 20)).stdout)
    paths = [folder.write(f"hint{i}", (before, after)[i % 2]) for i in range(4)]
    text = kscope("diff", "--before", paths[0], "--before", paths[2], paths[1], paths[3]).stdout
    check("several runs: no hint", "2 runs before" in text and " slower " in text and hint not in text, text)


def test_p_values(folder):
    """Without times, by independent formulas."""
    def tails(masses, at):
        return min(2 * min(sum(masses[:at + 1]), sum(masses[at:])), 1)

    def fisher(h0, h1, m0, m1):
        n, first, k = h0 + h1 + m0 + m1, h0 + m0, h0 + h1
        return tails([math.comb(k, i) * math.comb(n - k, first - i) / math.comb(n, first) if i <= first else 0
                      for i in range(k + 1)], h0)

    for h0, h1, m0, m1 in ((20, 30, 80, 90), (0, 9, 100, 91), (5, 1, 300, 400), (50, 50, 1, 9)):
        row = rows_of(folder.json(f"h {h0}\nm {m0}\n", f"h {h1}\nm {m1}\n"))["h"]
        check(f"p of {h0}, {h1}, {m0}, {m1}", math.isclose(row["p"], fisher(h0, h1, m0, m1), abs_tol=1e-9) and
              math.isclose(row["p_adjusted"], min(1, 2 * row["p"]), abs_tol=1e-9), row)
        row = rows_of(folder.json(f"h {h0}\nm {m0}\n", f"h {h1}\nm {m1}\n", "--absolute"))["h"]
        k = h0 + h1
        want = tails([math.comb(k, i) / 2 ** k for i in range(k + 1)], h0)
        check(f"p of {h0} and {h1}", math.isclose(row["p"], want, abs_tol=1e-9), (row, want))
    row = rows_of(folder.json("a 2\nb 1000\n", "a 3\nb 1000\n"))["a"]
    check("too few samples: not tested", not row["tested"] and row["p_adjusted"] == 1 and row["change"] == "noise", row)
    # 400 samples, one in 100 of which have half of the weight: they count as fewer samples.
    heavy = [HEAD + "".join(f'sample task=1/1 source=1 weight={99 if i % 100 == 0 else 1} : named "{name}"\n'
                            for i in range(400) for name in ("a" if i < cut else "b",)) for cut in (200, 300)]
    light = [text.replace("weight=99", "weight=1") for text in heavy]
    ps = [rows_of(folder.json(*pair))["a"]["p"] for pair in (heavy, light)]
    check("weights that vary lower the number of samples that counts", ps[0] > .01 > 1e-9 > ps[1], ps)


def test_thresholds(folder):
    before, after = "a 10000\nb 90000\n", "a 12000\nb 88000\n"
    for options, code in (([], SLOWER), (["--threshold", "2"], SLOWER), (["--threshold", "2.01"], 0),
                          (["--threshold", "100"], 0), (["--threshold", "0"], SLOWER)):
        equal(f"exit code {' '.join(options)}", folder.diff(before, after, *options).returncode, code)
        equal(f"exit code with JSON {' '.join(options)}", folder.diff(before, after, "--json", *options).returncode, code)
    equal("the same threshold for what got faster", folder.diff("a 12000\nb 88000\n", "a 10000\nb 90000\n",
                                                                "--threshold", "3").returncode, 0)
    exits("damage and slower: the message, and the code of what matters more",
          folder.diff(before, after + "garbage\n"), SLOWER, "damaged")
    exits("damage alone", folder.diff(before, before + "garbage\n"), 1, "damaged")
    for words in (["one"], ["one", "two", "three"], []):
        exits(f"{len(words)} words", kscope("diff", *words), 2)
    exits("a file that is not there", kscope("diff", folder.write("a", before), "nowhere"), 3, "nowhere")
    exits("no percentage", folder.diff(before, after, "--threshold", "x"), 2, "percentage")


def test_same(folder):
    for name, path in (("perf.data", "perfdata-le/input.data"), ("folded", "folded/input.folded"), ("a trace", "uftrace/input"),
                       ("allocations", "memtrace/input.bin"), ("allocations that were freed", "wire-allocs/input.kscope"), ("a damaged file", "perfdata-cut/input.data")):
        path = os.path.join(GOLDEN, path)
        done = kscope("diff", path, path, "--json")
        alone = kscope("report", path, "--json")
        equal(f"{name} and itself: the exit code is report's", done.returncode, alone.returncode)
        found = [row["change"] for event in parsed(done)["events"] for row in event.get("rows", [])]
        check(f"{name} and itself: no difference", set(found) == ({"same"} if parsed(alone)["events"] else set()), found)


def test_matching(folder):
    def stacks(binary, nr, more=""):
        return HEAD + f'sample task=1/1 source=1 weight=1 count={nr} : named "f"@"{binary}"\n' + more

    def one(name, binary, nr=50):
        return f'sample task=1/1 source=1 weight=1 count={nr} : named "{name}"@"{binary}"\n'

    answer = folder.json(stacks("vmlinux-6.1", 50, one("g", "vmlinux-6.1")), stacks("vmlinux-6.2", 50, one("g", "vmlinux-6.2")))
    equal("a binary of another name: by function", {(row["name"], row["binary"], row["change"]) for row in
                                                    answer["events"][0]["rows"]},
          {("f", "vmlinux-6.2", "same"), ("g", "vmlinux-6.2", "same")})
    answer = folder.json(stacks("a", 50, one("f", "b")), stacks("c", 100))
    equal("two functions of that name: new and gone", sorted((row["binary"], row["change"]) for row in
                                                            answer["events"][0]["rows"]),
          [("a", "faster"), ("b", "faster"), ("c", "slower")])
    answer = folder.json(stacks("a", 50, one("g", "b")), stacks("a", 50, one("f", "b")))
    equal("both have the binary: another function", sorted((row["name"], row["binary"], row["change"]) for row in
                                                           answer["events"][0]["rows"]),
          [("f", "a", "same"), ("f", "b", "slower"), ("g", "b", "faster")])
    answer = folder.json(HEAD + one("[unknown]", "a"), HEAD + one("[unknown]", "b"))
    equal("code without a name is not matched", len(answer["events"][0]["rows"]), 2)
    # One of the runs lacks a function, because it is rare.
    rare = stacks("vmlinux-6.2", 50)
    runs = [stacks(binary, 50, one("g", binary)) for binary in ["vmlinux-6.1"] * 3 + ["vmlinux-6.2"] * 2]
    for at in range(3):
        after = [*runs[3:3 + at], rare, *runs[3 + at:]]
        paths = [folder.write(f"renamed{i}", text) for i, text in enumerate([*runs[:3], *after])]
        answer = parsed(kscope("diff", "--json", *(word for path in paths[:3] for word in ("--before", path)), *paths[3:]))
        equal(f"a binary of another name in several runs, of which run {at} lacks a function",
              sorted((row["name"], row["binary"], row["before"]["samples"], row["after"]["samples"])
                     for row in answer["events"][0]["rows"]), [("f", "vmlinux-6.2", 150, 150), ("g", "vmlinux-6.2", 150, 100)])


def test_sides(folder):
    exits("no samples before", folder.diff(HEAD, "a 5\n"), 1, "nothing to compare")
    exits("no samples after", folder.diff("a 5\n", HEAD), 1, "nothing to compare")
    done = folder.diff(HEAD, HEAD)
    exits("no samples", done, 1, "nothing to compare")
    check("no samples: it says so", "no samples" in done.stdout, done.stdout)
    exits("an empty file", folder.diff("", "a 5\n"), 3, "empty")
    other = HEAD.replace("cycles", "misses").replace("id=1", "id=2").split("\n", 1)[1]
    both = HEAD + other + "".join(f'sample task=1/1 source={i} weight=1 count=50 : named "f"\n' for i in (1, 2))
    done = folder.diff(both, HEAD + 'sample task=1/1 source=1 weight=1 count=50 : named "f"\n')
    check("an event of one side", done.returncode == 0 and "misses: only before, not compared\n" in done.stdout and
          "cycles: 50 samples before, 50 after" in done.stdout, (done.returncode, done.stdout))
    exits("a selection that leaves nothing", folder.diff(both, both, "--pid", "9"), 1, "none of the", "nothing to compare")
    plain = HEAD + 'sample task=1/1 source=1 weight=0 count=50 : named "f"\n'
    exits("weights on one side only", folder.diff(plain, both), 3, "--samples")
    equal("then samples", folder.diff(plain, both, "--samples").returncode, 0)


def test_many_events(folder):
    """Each of many events, in several blocks of time, has its own numbers."""
    def text(factor, nr=10000):
        sources = "".join(f'source id={i + 1} name="e{i}" type=0 config={i:#x}\n' for i in range(nr))
        return "kscope-dump 1\n" + sources + "".join(
            f'sample time={j}.{i:09} task=1/1 source={i + 1} weight={factor * (i + j + 1)} : named "f{i % 3}"\n'
            for j in range(1, 3) for i in range(nr))

    answer = folder.json(text(1), text(2))
    found = [(event["name"], [(row["name"], row["before"]["self"], row["after"]["self"]) for row in event["rows"]])
             for event in answer["events"]]
    check("many events", found == [(f"e{i}", [(f"f{i % 3}", 2 * i + 5, 4 * i + 10)]) for i in range(len(found))] and
          len(found) == 10000, found[:5])


def test_extremes(folder):
    most = 2 ** 63 - 1
    answer = folder.json(f"a 1\nb {most}\n", f"a {most}\nb 1\n")
    equal("huge numbers", changes(answer), {"a": "slower", "b": "faster"})
    text = folder.diff(f"a 1\nb {most}\n", f"a {most}\nb 1\n").stdout
    check("a huge ratio", ">9999x" in text, text)
    # There are fewer independent samples than units of weight.
    text = HEAD + "".join(f'sample time={i}.0 task=1/1 source=1 weight={w} : named "{n}"\n' for i, (n, w) in
                          enumerate((("a", 5000000000), ("b", 6000000000)) * 5))
    equal("5e9 units are not 5e9 samples", changes(folder.json(text, text.replace("weight=5", "weight=7"))),
          {"a": "noise", "b": "noise"})
    found = []
    for weight in (1, 10**6, 10**12, 10**17):
        pair = [HEAD + f'sample task=1/1 source=1 weight={weight} : named "a"\n' * nr +
                f'sample task=1/1 source=1 weight={weight} : named "b"\n' * (17 - nr) for nr in (5, 12)]
        found.append([round(rows_of(folder.json(*pair, *options))["a"]["p"], 9) for options in ([], ["--absolute"])])
    equal("p is the same in any unit of weights", found, [found[0]] * 4)


SYMBOLS = """kscope-dump 1
symbol addr=0x5000 len=0x100 type=1 name="a"
symbol addr=0x6000 len=0x100 type=1 name="b"
"""


def calls(a, b):
    """A trace in which a() takes that many ns, and b()."""
    lines, now = [SYMBOLS.strip()], 0
    for address, length in ((0x5000, a), (0x6000, b)):
        lines.append(f"call time={now / 1e9:.9f} cpu=0 task=1/1 enter function={address:#x} caller=0x500 kernel")
        now += length
        lines.append(f"call time={now / 1e9:.9f} cpu=0 task=1/1 leave function={address:#x} caller=0x500 kernel")
    return "\n".join(lines) + "\n"


def test_exact(folder):
    """Traces and allocations are counted, not sampled: every difference is significant, however small."""
    done = folder.diff(calls(1000, 2000000), calls(1001, 2000000), "--absolute")
    answer = folder.json(calls(1000, 2000000), calls(1001, 2000000), "--absolute")
    event = answer["events"][0]
    found = sorted((row["before"]["self"], row["after"]["self"], row["change"]) for row in event["rows"])
    check("one ns of two ms", event["noise_from"] == "exact" and (1000, 1001, "slower") in found and
          (2000000, 2000000, "same") in found and event["noise"] == 0, event)
    check("it says so", "noise: none, the recordings count everything" in done.stdout and done.returncode == 0, done.stdout)
    heap = (SYMBOLS + 'alloc time=0.000000010 cpu=0 task=1/1 new by="kmalloc" ptr=0x10 size=64 at=0 : kernel 0x5000\n'
            'alloc time=0.000000020 cpu=0 task=1/1 new by="kmalloc" ptr=0x20 size={} at=0 : kernel 0x6000\n')
    answer = folder.json(heap.format(1000), heap.format(1064), "--absolute")
    event = answer["events"][0]
    equal("allocations", (event["noise_from"], sorted(row["change"] for row in event["rows"])), ("exact", ["more", "same"]))
    several = [folder.write(f"run{i}", calls(1000 + 7 * (i % 3), 2000000)) for i in range(6)]
    answer = parsed(kscope("diff", "--absolute", "--json", *sum((["--before", path] for path in several[:3]), []), *several[3:]))
    event = answer["events"][0]
    equal("several traces vary", (event["noise_from"], event["slower"], event["faster"]), ("runs", 0, 0))


def test_runs(folder):
    """Welch's t, by its definition."""
    counts = ((500, 510, 490, 505), (600, 590, 620))
    paths = [[folder.write(f"{side}{i}", f"a {nr}\nb {1000 - nr}\n") for i, nr in enumerate(numbers)]
             for side, numbers in enumerate(counts)]
    words = sum((["--before", path] for path in paths[0]), []) + paths[1]
    done = kscope("diff", *words)
    check("runs: a table", done.returncode == SLOWER and "noise: measured from 4 runs before and 3 after; 2 tests" in done.stdout and
          " 50.12%   60.33%   +10.21 " in done.stdout, done.stdout)
    one = rows_of(parsed(kscope("diff", "--json", "--before", paths[0][0], "--before", paths[0][1], paths[1][0])))["a"]
    check("runs: a single one after", one["tested"] and one["p"] > .01, one)
    # The variance between few runs may be small by chance, but not smaller than that of samples.
    steady = [folder.write(f"steady{i}", f"a {100 + 20 * (i > 1)}\nb 1000\n") for i in range(4)]
    row = rows_of(parsed(kscope("diff", "--json", "--before", steady[0], "--before", steady[1], *steady[2:])))["a"]
    check("runs: no less noise than in samples", row["p"] > .01, row)
    without = [folder.write(f"without{i}", "b 1000\n") for i in range(2)]
    row = rows_of(parsed(kscope("diff", "--json", "--before", without[0], "--before", without[1], steady[0])))["a"]
    check("runs: what two runs lack, a third one may have by chance", row["p"] > .01, row)


def test_times(folder):
    """Blocks of time, and a test by its definition: nothing but the change is significant."""
    before, after = drawn(1, 6000, shares()), drawn(2, 6000, shares(f3=1.6, new=.3))
    answer = folder.json(before, after)
    equal("what changed", {name: change for name, change in changes(answer).items() if change != "noise"},
          {"f3": "slower", "new": "slower"})
    equal("it counts blocks", answer["events"][0]["noise_from"], "blocks")
    check("it says so", "noise: measured from shares in 32 blocks of time" in folder.diff(before, after).stdout)
    few = folder.json(drawn(1, 100, shares()), drawn(2, 100, shares()))
    equal("not if there are few samples", few["events"][0]["noise_from"], "counts")
    far = drawn(1, 2000, shares()).replace("time=", "time=1000000").replace("cpu=0", "cpu=1")
    check("whenever it was", changes(folder.json(drawn(1, 2000, shares()), far)) == {})
    # Phases which both have are not noise: the second half is another program, and f0 takes 10 % more in the first one.
    def phases(seed, share):
        first, second = drawn(seed, 4000, {"f0": share, "g": 1 - share}), drawn(seed + 1, 4000, {"h": 1})
        later = re.sub(r"time=(\d+)", lambda m: f"time={int(m[1]) + 4}", second.split("\n", 2)[2])
        return first + later
    rows = rows_of(folder.json(phases(1, .5), phases(3, .6)))
    equal("phases that both have are no noise", [rows[name]["change"] for name in ("f0", "g")], ["slower", "faster"])


def main():
    with scratch() as path:
        folder = Folder(path)
        for test in (test_report, test_text, test_total, test_absolute, test_idle, test_hint, test_p_values, test_thresholds, test_same,
                     test_matching, test_sides, test_many_events, test_extremes, test_exact, test_runs, test_times):
            test(folder)
    finish()


if __name__ == "__main__":
    main()
