#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: verbs, help, and options that are wrong."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ELFS, check, demo_samples, equal, exits, finish, kscope, scratch

VERBS = ["record", "view", "convert", "report", "flame", "diff", "info", "alloc", "formats"]


def test_help():
    for verb in VERBS:
        done = kscope(verb, "--help")
        check(f"help: {verb}", done.returncode == 0 and "Examples:" in done.stdout and
              f"kscope {verb}" in done.stdout and not done.stderr, done.stderr)
        equal(f"help: help {verb}", kscope("help", verb).stdout, done.stdout)
    exits("no verb", kscope(), 2, "Usage")
    exits("unknown verb", kscope("frobnicate"), 2, "frobnicate")
    exits("unknown option", kscope("report", "--frobnicate", "x"), 2, "--frobnicate", "--help")
    exits("a value is missing", kscope("report", "x", "--time"), 2, "--time")
    exits("no input", kscope("report"), 2, "no input")
    exits("formats of a file", kscope("formats", "x"), 2, "no input file")
    exits("neither tree nor table", kscope("report", "x", "--tree", "--no-tree"), 2, "--no-tree")
    exits("nothing to negate", kscope("flame", "x", "--negate"), 2, "--diff")
    check("version", re.match(r"kscope \d+\.\d+\.\d+$", kscope("--version").stdout))
    formats = json.loads(kscope("formats", "--json").stdout)
    names = [reader["name"] for reader in formats["readers"]]
    check("formats as JSON", "sel4-json" in names and "folded" in names, names)
    for name in names:
        check(f"formats lists {name}", f"  {name} " in kscope("formats").stdout)


def test_wrong_options(samples, folder):
    out = os.path.join(folder, "out.data")
    more = ["-b", ELFS, "-o", out]
    exits("no such file", kscope("convert", "nowhere.json", *more), 3, "nowhere.json",
          "No such file")
    exits("a folder as input", kscope("convert", folder, *more), 3, folder, "directory")
    exits("unknown reader", kscope("convert", samples, "-f", "xyz", *more), 2, "xyz",
          "kscope formats")
    exits("unknown writer", kscope("convert", samples, "-t", "xyz", *more), 2, "xyz",
          "kscope formats")
    exits("unknown extension", kscope("convert", samples, "-o", "x.xyz"), 2, "x.xyz", "-t")
    exits("no output", kscope("convert", samples), 2, "-o")
    exits("no such build dir", kscope("convert", samples, "-b", "nowhere", "-o", out), 2, "nowhere",
          "No such file")
    exits("a file as build dir", kscope("convert", samples, "-b", samples, "-o", out), 2,
          "not a directory")
    exits("no such symfs", kscope("report", samples, "--symfs", "nowhere"), 2, "nowhere")
    exits("no such kernel", kscope("report", samples, "--kernel", "nowhere"), 2, "nowhere")
    exits("a broken --elf", kscope("report", samples, "--elf", "x"), 2, "PID=FILE")
    for time in ["5,1", "5,+", "5,+ns", "5,+xns", "5,+1.5ns", "5,+-1", "1,+18446744073709551615ns"]:
        exits(f"a broken --time {time}", kscope("report", samples, "--time", time), 2, "START,END")
    exits("a broken --cpu", kscope("report", samples, "--cpu", "1,x"), 2, "1,x")
    exits("a broken --palette",
          kscope("flame", samples, "-b", ELFS, "-o", out, "--palette", "pink"), 2, "pink",
          "by-binary")
    check("none of it left a file", not os.path.exists(out) and
          not [f for f in os.listdir(folder) if "kscope" in f], os.listdir(folder))


def main():
    with scratch() as folder:
        samples = demo_samples(folder)
        test_help()
        test_wrong_options(samples, folder)
    finish()


if __name__ == "__main__":
    main()
