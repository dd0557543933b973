# SPDX-License-Identifier: GPL-2.0-or-later
"""Coverage: lcov's tracefiles, and the counts of gcov on the host, which are the truth.

tests/coverage has programs, and host.c, which does the work of the demo's kernel on the host."""
import collections
import json
import os
import re

from . import ROOT, run

SOURCES = os.path.join(ROOT, "tests", "coverage")
NOT_RUN = -1  # the count of a branch whose condition was never evaluated


class Record:
    """What is known of one source file."""

    def __init__(self):
        self.lines = collections.Counter()  # {line: count}
        self.functions = {}  # {name: (line, count)}
        self.branches = collections.defaultdict(list)  # {line: counts}

    def taken(self, line):
        """The counts of a line's branches, in ascending order."""
        return sorted(self.branches[line])


def read_info(path):
    """{source file: Record}; fails if the file is not as lcov's manual says."""
    records, record = {}, None
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            key, _, rest = line.partition(":")
            words = rest.split(",")
            if key == "SF":
                assert rest not in records, f"two records of {rest}"
                record = records[rest] = Record()
                functions, totals = {}, {}
            elif key == "FN":
                functions[rest.partition(",")[2]] = int(words[0])
            elif key == "FNDA":
                name = rest.partition(",")[2]
                record.functions[name] = (functions.pop(name), int(words[0]))
            elif key == "DA":
                assert int(words[0]) not in record.lines, f"two counts of {line}"
                record.lines[int(words[0])] = int(words[1])
            elif key == "BRDA":
                record.branches[int(words[0])].append(NOT_RUN if words[3] == "-" else int(words[3]))
            elif key in ("LF", "LH", "FNF", "FNH", "BRF", "BRH"):
                totals[key] = int(rest)
            elif line == "end_of_record":
                # lcov leaves out totals of what a file has none of.
                want = totals_of(record)
                assert not functions and want == dict.fromkeys(want, 0) | totals, (totals, want)
            else:
                assert key == "TN" or line.startswith("# "), line
    return records


def totals_of(record):
    branches = [count for counts in record.branches.values() for count in counts]
    return {"LF": len(record.lines), "LH": sum(count > 0 for count in record.lines.values()),
            "FNF": len(record.functions),
            "FNH": sum(count > 0 for _, count in record.functions.values()),
            "BRF": len(branches), "BRH": sum(count > 0 for count in branches)}


def gcov(folder, *objects):
    """What gcov says of these objects, which ran: {source file, without folders: Record}"""
    records = collections.defaultdict(Record)
    for name in objects:
        done = run("gcov", "--json-format", "--stdout", "--branch-probabilities", name, cwd=folder)
        if done.returncode:
            raise RuntimeError(done.stderr)
        for part in json.loads(done.stdout)["files"]:
            record = records[os.path.basename(part["file"])]
            for line in part["lines"]:
                number = line["line_number"]
                record.lines[number] += line["count"]
                record.branches[number] += [branch["count"] for branch in line["branches"]]
            for function in part["functions"]:
                name = re.sub(r"\.\w+\.\d+$", "", function["demangled_name"])
                line, count = record.functions.get(name, (function["start_line"], 0))
                record.functions[name] = (line, count + function["execution_count"])
    return records


def differences(ours, truth, but=()):
    """Compares the records of a file, as far as both know its lines. `but`: lines that differ for a known reason.

    Returns the problems, and how many lines, functions and branches are equal."""
    problems, equal = [], [0, 0, 0]
    for line in sorted(ours.lines.keys() & truth.lines.keys() - set(but)):
        equal[0] += ours.lines[line] == truth.lines[line]
        if ours.lines[line] != truth.lines[line]:
            problems.append(f"line {line}: {ours.lines[line]}, gcov: {truth.lines[line]}")
    for name in sorted(ours.functions.keys() & truth.functions.keys()):
        equal[1] += ours.functions[name] == truth.functions[name]
        if ours.functions[name] != truth.functions[name]:
            problems.append(f"{name}: {ours.functions[name]}, gcov: {truth.functions[name]}")
    for line in sorted(ours.branches.keys() & truth.branches.keys() - set(but)):
        got, want = ours.taken(line), truth.taken(line)
        if len(got) != len(want) or not want:
            continue
        # gcov counts a branch that was never reached as 0.
        got = sorted(max(count, 0) for count in got)
        equal[2] += got == want
        if got != want:
            problems.append(f"branches of line {line}: {got}, gcov: {want}")
    return problems, equal


def add_up(parts):
    """The sum of several {source file: Record}, to compare with a whole."""
    sums = collections.defaultdict(collections.Counter)
    for part in parts:
        for path, record in part.items():
            for line, count in record.lines.items():
                sums[path][line] += count
    return sums
