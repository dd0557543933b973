#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""callgrind_annotate reads our costs: the self and the total of each function and task as in kscope report, also if
functions are recursive, and the costs of lines as addr2line finds them."""
import collections
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, exits, finish, kscope, no_problems, profiles, run, scratch, skip

NUMBER = r"([\d,]+|\.)(?: \( *[\d.]+%\))?"


def annotate(path, *options):
    # In the folder of the output, because it shortens the names of files below the current one.
    done = run("callgrind_annotate", "--threshold=100", *options, path, cwd=os.path.dirname(path))
    check(f"callgrind_annotate {' '.join(options)}", done.returncode == 0 and not done.stderr, done.stderr)
    return done.stdout


def numbers_of(line, columns):
    """(the numbers at the start of a line, the rest); None: it has none."""
    match = re.match(r" *" + " +".join([NUMBER] * columns) + r"(?:  (.*))?$", line)
    if not match:
        return None
    return [0 if n == "." else int(n.replace(",", "")) for n in match.groups()[:columns]], match[columns + 1] or ""


class Costs:
    """The table of functions: {"FILE:NAME [BINARY]": numbers}, and the totals."""

    def __init__(self, text):
        self.text = text
        self.columns = re.search(r"^Events recorded: +(.*)$", text, re.M)[1].split()
        rows = [numbers_of(line, len(self.columns)) for line in text.split("Auto-annotated source")[0].splitlines()]
        rows = [row for row in rows if row]
        self.totals = rows[0][0]
        self.rows = {name: numbers for numbers, name in rows[1:]}

    def of(self, name, binary):
        """The numbers of a function, in whatever file; its name may have its binary, too."""
        ends = f":{name} [{binary}]", f":{name} [{binary}] [{binary}]"
        sums = [numbers for row, numbers in self.rows.items() if row.endswith(ends)]
        return [sum(column) for column in zip(*sums)] or None


def compare(name, costs, profile, key, options):
    for column, event in enumerate(profile.report(*options)["events"]):
        wrong = []
        for row in event["functions"]:
            got = costs.of(row["name"], row.get("binary") or "???")
            if (got[column] if got else 0) != row[key]:
                wrong.append(f"{row['name'][:80]}: {got}, not {row[key]}")
        no_problems(f"{name}: {event['name']}, {key} of each function", wrong)
        equal(f"{name}: {event['name']} in all", costs.totals[column], event["weight"])
        if key == "total":
            tasks = collections.Counter()
            for row in event["tasks"]:
                tasks[row["name"]] += row["total"]
            equal(f"{name}: {event['name']} of tasks", {task: costs.of(task, "tasks")[column] for task in tasks},
                  dict(tasks))


def samples_of(profile):
    """(the sampled address, the column of its event, its weight)"""
    with open(profile.path, encoding="utf-8") as lines:
        for line in lines:
            match = re.match(r"sample .* source=(\d+) weight=(\d+) : (?:kernel|user) (0x[0-9a-f]+)", line)
            if match:
                yield match[3], int(match[1]) - 1, int(match[2])


def sums_by_line(profile):
    """{(file, line): weights}, by addr2line."""
    sums = collections.defaultdict(lambda: [0, 0])
    samples = list(samples_of(profile))
    addresses = sorted({address for address, _, _ in samples})
    places = {}
    for binary in (profile.program, profile.kernel):
        found = run("addr2line", "-e", binary, *addresses).stdout.split("\n")
        places.update((a, place.split(" (")[0]) for a, place in zip(addresses, found) if not place.startswith("??"))
    for address, column, weight in samples:
        file, line = places.get(address, "?:?").rsplit(":", 1)
        if line != "?":
            sums[file, int(line)][column] += weight
    return dict(sums)


def annotated(costs):
    """The same from the sources that callgrind_annotate shows."""
    sums = {}
    for block in costs.text.split("-- Auto-annotated source: ")[1:]:
        file, line = block.split("\n", 1)[0], 1
        # After a rule, the names of the columns and an empty line
        for text in block.split("\n\n", 1)[1].split("\n" + "-" * 80)[0].split("\n"):
            marker = re.match(r"-- line (\d+) -+$", text)
            row = numbers_of(text, len(costs.columns))
            if marker:
                line = int(marker[1])
            elif row and not row[1].lstrip().startswith("=> "):
                if any(row[0]):
                    sums[file, line] = row[0][:2]
                line += 1
    return sums


def ambiguous(path):
    """Numbers of functions that stand for several ones: KCachegrind gives them all to the first binary and file."""
    at, functions = {}, collections.defaultdict(set)
    with open(path, encoding="utf-8") as lines:
        for key, number in re.findall(r"^(c?(?:ob|fl|fi|fn))=\((\d+)\)", lines.read(), re.M):
            at[key.replace("fi", "fl") if key[0] == "c" else key] = number
            if key == "fn":
                functions[number].add((at["ob"], at["fl"]))
            elif key == "cfn":
                functions[number].add((at["cob"], at["cfl"]))
    return {number: places for number, places in functions.items() if len(places) > 1}


def check_odd(folder):
    profile = profiles.odd(folder)
    path = os.path.join(folder, "odd.callgrind")
    for options in ([], ["--no-inline"]):
        name = " ".join(["odd profile", *options])
        exits(f"{name}: converted", kscope("convert", profile.path, *profile.options, *options, "-o", path), 0)
        selves = Costs(annotate(path, "--auto=yes", "--context=10000"))
        compare(name, selves, profile, "self", options)
        compare(name, Costs(annotate(path, "--inclusive=yes")), profile, "total", options)
        equal(f"{name}: lines", annotated(selves), sums_by_line(profile))
        equal(f"{name}: columns", selves.columns, ["cycles", "instructions", "samples"])
        equal(f"{name}: samples", selves.totals[2], profile.report()["samples"])
        check(f"{name}: losses", f"\nlost: {profile.report()['lost']} samples" in selves.text)
        equal(f"{name}: each number is of one function", ambiguous(path), {})


def inclusive(path):
    costs = Costs(annotate(path, "--inclusive=yes"))
    return {re.sub(r"^\?\?\?:| \[[^ ]*\]$", "", name): numbers[0] for name, numbers in costs.rows.items()}


def check_recursion(folder):
    source, path = os.path.join(folder, "a.folded"), os.path.join(folder, "a.callgrind")
    with open(source, "wb") as f:
        f.write(b"main;a;b;a;c 5\nmain;a;a;a 2\na;b;main;(1) odd \xff;a 4\n")
    exits("recursion: converted", kscope("convert", source, "-o", path), 0)
    equal("recursion: totals", inclusive(path),
          {"[all]": 11, "main": 11, "a": 11, "b": 9, "c": 5, "(1) odd ?": 4})


def check_spaces(folder):
    source, path = os.path.join(folder, "spaces.folded"), os.path.join(folder, "spaces.callgrind")
    with open(source, "w", encoding="utf-8") as f:
        f.write("main; ;b 3\nmain; c;b 4\n")
    exits("spaces: converted", kscope("convert", source, "-o", path), 0)
    equal("spaces: totals", inclusive(path), {"[all]": 7, "main": 7, "???": 3, "c": 4, "b": 7})


def check_same_names(folder):
    """Functions of one name in several binaries, and events whose names are no words."""
    source, path = os.path.join(folder, "a.dump"), os.path.join(folder, "a.callgrind")
    with open(source, "w", encoding="utf-8") as f:
        f.write('kscope-dump 1\nsource id=1 name="cycles:u" type=0 config=0x0\nsource id=2 name="cycles,u" type=0 config=0x1\n'
                'source id=3 name="1/x y/" type=0 config=0x2\n')
        for pid in range(1, 4):
            f.write(f'symbol task={pid}/{pid} addr=0x1000 len=0x100 name="same" binary="bin{pid}" user\n')
            f.write(f"sample time=0.{pid:09} cpu=0 task={pid}/{pid} source={pid} weight={pid} : user 0x1010\n")
    exits("same names: converted", kscope("convert", source, "-o", path), 0)
    costs = Costs(annotate(path))
    equal("events", costs.columns, ["cycles_u", "cycles_u__1", "e_1_x_y_", "samples"])
    equal("totals", costs.totals, [1, 2, 3, 3])
    equal("same names in several binaries", [costs.of("same", f"bin{i}") for i in (1, 2, 3)],
          [[1, 0, 0, 1], [0, 2, 0, 1], [0, 0, 3, 1]])


if shutil.which("callgrind_annotate"):
    with scratch() as work:
        check_odd(work)
        check_recursion(work)
        check_spaces(work)
        check_same_names(work)
else:
    skip("callgrind", "callgrind_annotate is not installed")
finish()
