#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""verb_seeds.py FOLDER: writes the inputs of fuzz_verb that the golden inputs make: each for another verb and other
options, and one of each format for all of them."""
import glob
import gzip
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_SIZE = 65536


def words_of(name):
    """How many rows a table of fuzz_verb.c has."""
    with open(os.path.join(ROOT, "fuzz", "fuzz_verb.c"), encoding="utf-8") as f:
        table = re.search(rf"\b{name}\[\] = {{(.*?)}};", f.read(), re.S)[1]
    return len(re.findall(r'"[^"]*"|&cmd_', table))


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def main():
    verbs, outputs, options = map(words_of, ("verbs", "outputs", "options"))
    seen = set()
    number = 0

    def write(verb, output, chosen, data):
        nonlocal number
        with open(os.path.join(sys.argv[1], f"{number:04}"), "wb") as f:
            f.write(bytes((verb, output % outputs, *(option % options for option in chosen))) + data)
        number += 1

    for path in sorted(glob.glob(f"{ROOT}/tests/golden/*/input*")):
        if os.path.isdir(path):
            continue
        data = read(path)
        if len(data) > MAX_SIZE:
            continue
        both = 128 * (number % 7 == 0)
        write(number % verbs + both, number, (number * 5 // 3, options - 2 - number % 3, 0, 0), data)
        kind = os.path.basename(os.path.dirname(path)).split("-")[0]
        if kind in seen:
            continue
        seen.add(kind)
        for option in range(options):
            for verb in range(verbs) if option == 0 else ((option + len(seen)) % verbs,):
                write(verb, option, (option, 0, 0, 0), data)


if __name__ == "__main__":
    main()
