#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kscope report: counts, order and limits of its tables, and names with control characters."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import (ELFS, KSCOPE, check, demo_samples, equal, finish, kscope, read_folded, run,
                 scratch)


def test_json(samples, truth):
    done = kscope("report", samples, "-b", ELFS, "--json", "--no-inline")
    event = json.loads(done.stdout)["events"][0]
    total = {}
    self_ = {}
    for stack, n in truth.items():
        frames = stack.split(";")
        self_[frames[0], frames[-1]] = self_.get((frames[0], frames[-1]), 0) + n
        for frame in set(frames[1:]):
            total[frames[0], frame] = total.get((frames[0], frame), 0) + n
    got = {(row["binary"], row["name"]): row for row in event["functions"]}
    equal("report: self",
          {key: row["samples"] for key, row in got.items() if row["samples"]}, self_)
    equal("report: total", {key: row["total"] // 1200000 for key, row in got.items()}, total)
    equal("report: tasks", {row["name"]: row["samples"] for row in event["tasks"]},
          {"hasher.elf": 5000, "sorter.elf": 3000, "echo.elf": 2000})
    equal("report: binaries", {row["name"]: row["samples"] for row in event["binaries"]},
          {"hasher.elf": 5000, "sorter.elf": 3000, "echo.elf": 2000})
    equal("report: cpus", [row["name"] for row in event["cpus"]], ["cpu 0"])


def test_text(samples):
    text = kscope("report", samples, "-b", ELFS, "--no-inline").stdout
    check("report: a table",
          re.search(r" 36\.00% +36\.00% +3600  mix_round +hasher\.elf", text), text)
    check("report: a call tree",
          re.search(r"^ +45\.00%     hash_block  \[self 9\.00%\]$", text, re.M), text)
    check("report: no colours in a pipe", "\033" not in text)
    orders = [run(KSCOPE, "report", "-", "--tree", input=text).stdout
              for text in (b"b;x 1\na;z 1\na;y 1\n", b"a;y 1\nb;x 1\na;z 1\n")]
    check("report: what is equal stands in the order of names, not of the data",
          orders[0] == orders[1] and re.search(r" a\n.* y .*\n.* z .*\n.* b\n", orders[0]), orders)
    text = kscope("report", samples, "-b", ELFS, "--by", "task", "--no-tree").stdout
    check("report: by task", re.search(r" 30\.00% .* sorter\.elf \(pid 2\)", text), text)
    text = kscope("report", samples, "-b", ELFS, "--inverted", "--tree", "--no-inline").stdout
    check("report: callers", re.search(r"^ +36\.00% mix_round\n +36\.00%   hash_block", text, re.M),
          text)
    text = kscope("report", samples, "-b", ELFS, "--limit", "3", "--no-tree").stdout
    check("report: a limit", "more rows" in text and len(text.splitlines()) == 8, text)


def test_weights():
    text = run(KSCOPE, "report", "-", input=b"main;f_[i] 1\n").stdout
    check("report: samples of nobody knows what",
          text.startswith("1 samples; shares are of samples\n"), text)
    text = run(KSCOPE, "report", "-",
               input=b'kscope-dump 1\nsource id=1 name="cycles" type=0 config=0x0\n'
                     b'sample source=1 weight=0 : named "f"\n').stdout
    check("report: samples that stand for nothing are counted",
          " 100.00%  100.00%          1  f\n" in text, text)


def test_control_characters():
    nasty = run(KSCOPE, "report", "-", input=b"evil\x1b[2J\xff;\xc3\xa9 3\n")
    check("report: nothing that a terminal obeys", "\033" not in nasty.stdout and
          "evil?[2J" in nasty.stdout, nasty.stdout)
    events = (b'kscope-dump 1\nmeta key="a\\u001bb" value="\\u001bc"\n'
              b'source id=1 name="\\u001b[2J" type=0 config=0x0\nnonsense\x1b[2J\n'
              b'sample source=1 weight=1 : user 0x10\n')
    for verb in ("report", "info"):
        nasty = run(KSCOPE, verb, "-", input=events)
        check(f"{verb}: not in names of events and facts nor in messages", nasty.returncode == 1 and
              "\033" not in nasty.stdout + nasty.stderr, (nasty.stdout, nasty.stderr))
    nasty = run(KSCOPE, "report", "-", "--json", input=b"evil\x1b[2J\xff;\xc3\xa9 3\n", binary=True)
    names = [row["name"] for row in json.loads(nasty.stdout.decode())["events"][0]["functions"]]
    equal("report: valid JSON whatever the names", names, ["\u00e9", "evil\x1b[2J\ufffd"])


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_json(samples, read_folded(os.path.join(folder, "truth.folded")))
        test_text(samples)
    test_weights()
    test_control_characters()
    finish()


if __name__ == "__main__":
    main()
