#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The man pages have the options of --help and no others, groff accepts them without a warning, and
the pages that they refer to exist."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, finish, kscope, run
from kit.helps import helps

VERBS = ["record", "top", "view", "convert", "report", "trace", "calls", "sql", "insn", "flame", "diff", "alloc", "info", "archive", "formats", "completion"]
DROP_INS = ["toperf", "netconn", "kprof2perf", "kern-profile"]
ELSEWHERE = ["perf"]
HEADINGS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def page(name):
    with open(os.path.join(ROOT, "man", f"{name}.1"), encoding="utf-8") as f:
        return f.read()


def plain(text):
    """The text without escapes and changes of font."""
    return re.sub(r"\\f.", "", text).replace("\\-", "-")


def tags(text, section):
    """The options that a page describes, in the tags of a section's paragraphs."""
    body = re.split(r"^\.SH +", text, flags=re.M)
    body = [part for part in body if part.startswith((section, f'"{section}"'))][0]
    return {option for tag in re.findall(r"^\.TP\n(.*)$", body, re.M)
            for option in OPTION.findall(plain(tag))}


def offered(name, option):
    """The options that the help lists, at the start of a line."""
    lines = re.findall(r"^ +(-.*?)(?:  .*)?$", helps(name, option), re.M)
    return {option for line in lines for option in OPTION.findall(line)}


def test_options():
    everything = set()
    for name in VERBS + DROP_INS:
        # Like the original, kprof2perf has no long options.
        offers = offered(name, "-h" if name == "kprof2perf" else "--help")
        check(f"{name}: the help has options", len(offers) > 3, offers)
        described = tags(page(name if name in DROP_INS else f"kscope-{name}"), "OPTIONS")
        if name == "top":  # its page refers to that of record
            described |= tags(page("kscope-record"), "OPTIONS") & offers
        equal(f"{name}: the page and the help have the same options",
              (sorted(offers - described), sorted(described - offers)), ([], []))
        everything |= offers
    equal("kscope: it describes no option that no verb has",
          sorted(tags(page("kscope"), "COMMON OPTIONS") - everything), [])


def test_names():
    text = kscope("--help").stdout
    listed = re.findall(r"^  ([a-z]\w*(?:-\w+)*) {1,}[A-Za-z]", text.split("\nExamples:")[0], re.M)
    equal("the verbs and drop-ins of kscope --help are those tested here", sorted(listed),
          sorted(VERBS + DROP_INS))
    want = sorted(["kscope"] + [f"kscope-{verb}" for verb in VERBS] + DROP_INS)
    equal("a page for each", sorted(os.path.basename(path)[:-2]
                                    for path in glob.glob(os.path.join(ROOT, "man", "*"))), want)
    for name in VERBS + DROP_INS:
        name = name if name in DROP_INS else f"kscope-{name}"
        check(f"kscope.1 names {name}", f"{name} (1)" in plain(page("kscope")))
    formats = plain(page("kscope-formats"))
    for line in re.findall(r"^  (\S+) ", kscope("formats").stdout, re.M):
        check(f"kscope-formats.1 describes {line}",
              re.search(rf"^\.TP\n\.BR? {line}(?: \"|$)", formats, re.M))


def test_pages():
    version = kscope("--version").stdout.strip()
    for path in sorted(glob.glob(os.path.join(ROOT, "man", "*.1"))):
        name = os.path.basename(path)[:-2]
        text = page(name)
        done = run("groff", "-ww", "-man", "-Tutf8", path)
        check(f"{name}: clean for groff", done.returncode == 0 and not done.stderr and
              len(done.stdout) > 500, done.stderr)
        long = [line for line in text.splitlines() if len(line) > 100]
        check(f"{name}: no long lines", not long, long)
        first = [line for line in text.splitlines() if not line.startswith('.\\"')][0]
        check(f"{name}: its name and version", plain(first).startswith(f".TH {name.upper()} 1 ") and
              f'"{version}"' in first, first)
        headings = [head.strip('"') for head in re.findall(r"^\.SH +(.*)$", text, re.M)]
        missing = [head for head in HEADINGS
                   if head not in headings and f"COMMON {head}" not in headings]
        check(f"{name}: its sections", not missing and headings[0] == "NAME" and
              headings[-1] == "SEE ALSO", missing or headings)
        see = plain(text.split(".SH \"SEE ALSO\"")[1])
        others = re.findall(r"^\.BR (\S+) \((\d)\)", see, re.M)
        dead = [other for other, section in others if other not in ELSEWHERE and
                not os.path.exists(os.path.join(ROOT, "man", f"{other}.{section}"))]
        check(f"{name}: it leads to pages that exist", others and not dead, dead)


def main():
    test_options()
    test_names()
    test_pages()
    finish()


if __name__ == "__main__":
    main()
