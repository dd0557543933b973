#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The help of kscope record: all sources on its page, and a page for each source with its own options and
examples."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, equal, finish, kscope, no_problems

LINKS = ["tcp", "listen", "serial", "file"]
SOURCES = LINKS + ["gdb", "qemu", "emulate", "pt"]
# What the help of a source has to list, and options of others, which it does not take.
OFFERS = {
    **{link: ["--output", "--type", "--keep", "--from", "--duration", "--until", "--start-with",
              "--stop-with", "--retry", "--no-retry", "--kernel", "--elf", "--symfs", "--build-dir",
              "--slide"] for link in LINKS},
    "gdb": ["--output", "--type", "--keep", "--duration", "--freq", "--stack", "--max-stop", "--kernel"],
    "qemu": ["--output", "--freq", "--trace", "--vcpu", "--duration", "--until", "--control"],
    "emulate": ["--output", "--qemu"],
    "pt": ["--output", "--pid", "--all-cpus", "--snapshot", "--buffer"],
}
FOREIGN = {
    **{link: ["--vcpu", "--qemu", "--snapshot", "--max-stop", "--trace", "--freq"] for link in LINKS},
    "gdb": ["--retry", "--vcpu", "--qemu", "--snapshot"],
    "qemu": ["--retry", "--start-with", "--max-stop", "--snapshot"],
    "emulate": ["--retry", "--vcpu", "--snapshot"],
    "pt": ["--retry", "--vcpu", "--max-stop"],
}


def options(text):
    """The options that the help lists at the start of a line."""
    return set(re.findall(r"--[a-z][a-z-]*", "\n".join(re.findall(r"^ +(-.*?)(?:  .*)?$", text, re.M))))


def test_source(name):
    done = kscope("record", name, "--help")
    text = done.stdout
    equal(f"{name}: exit code and messages", (done.returncode, done.stderr), (0, ""))
    check(f"{name}: the usage comes first", text.startswith(f"Usage: kscope record {name} "), text[:80])
    equal(f"{name}: its options are listed", sorted(set(OFFERS[name]) - options(text)), [])
    equal(f"{name}: and no options of other sources", sorted(set(FOREIGN[name]) & options(text)), [])
    check(f"{name}: examples", re.search(rf"^Examples?:\n(  .*\n)*  kscope record {name} \S", text, re.M),
          text[-400:])
    no_problems(f"{name}: every line fits in 100 columns",
                [line for line in text.splitlines() if len(line) > 100])
    equal(f"{name}: -h is the same", kscope("record", name, "-h").stdout, text)


def test_examples(name):
    """Examples use options that the source has."""
    text = kscope("record", name, "--help").stdout
    used = set(re.findall(r"(?<=\s)--[a-z][a-z-]*", text.split("\nExample", 1)[-1]))
    equal(f"{name}: its examples use its options", sorted(used - options(text)), [])


def test_all():
    done = kscope("record", "--help")
    equal("record: exit code and messages", (done.returncode, done.stderr), (0, ""))
    no_problems("record: it lists every source",
                [name for name in SOURCES if not re.search(rf"\b{name}\b", done.stdout)])
    check("record: it says where the options are", re.search(r"kscope record \w+ --help", done.stdout),
          done.stdout)
    done = kscope("record")
    check("record without a source: it names them", done.returncode == 2 and
          all(name in done.stderr for name in SOURCES), done.stderr)


def main():
    test_all()
    for name in SOURCES:
        test_source(name)
        test_examples(name)
    finish()


if __name__ == "__main__":
    main()
