#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the shares of the functions that do the demo kernel's work: shares.py NAME=FOLDED...

Each file has folded stacks. The last column is what the work of the kernel amounts to (demo/kernel/README.md)."""
import collections
import sys

# {function: units of work, of 350}
KNOWN = {"checksum_page": 80, "lookup_prefix": 70, "find_match": 60, "throw_dice": 60, "knit_stitch": 50,
         "encode_bits": 20, "fill_entry": 10}


def shares(path):
    weights = collections.Counter()
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, _, weight = line.rpartition(" ")
            function = stack.split(";")[-1]
            if function in KNOWN:
                weights[function] += int(weight)
    return {function: 100 * weights[function] / max(sum(weights.values()), 1) for function in KNOWN}


def main():
    names, paths = zip(*(word.split("=", 1) for word in sys.argv[1:]))
    columns = [shares(path) for path in paths]
    print(f"{'function':16}" + "".join(f"{name:>12}" for name in [*names, "the work"]))
    for function, units in KNOWN.items():
        row = [column[function] for column in columns] + [100 * units / sum(KNOWN.values())]
        print(f"{function:16}" + "".join(f"{share:11.1f}%" for share in row))


if __name__ == "__main__":
    main()
