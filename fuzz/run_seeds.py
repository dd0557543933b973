#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run_seeds.py FOLDER: writes the inputs of fuzz_run that the golden inputs make, for all writers, and for each."""
import glob
import gzip
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OPTIONS = (0, 8 + 16, 2 + 4, 1, 32, 64)


def formats(kind):
    with open(os.path.join(ROOT, "src", "formats.def"), encoding="utf-8") as f:
        return re.findall(rf"^{kind}\((\w+)\)", f.read(), re.M)


def reader_of(name, readers):
    """The golden folders are named after the format, with dashes."""
    known = [reader for reader in readers if name.startswith(reader.replace("_", "-"))]
    return readers.index(max(known, key=len)) if known else None


def main():
    readers, nr_writers = formats("READER"), len(formats("WRITER"))
    for number, path in enumerate(sorted(glob.glob(f"{ROOT}/tests/golden/*/input*"))):
        reader = reader_of(os.path.basename(os.path.dirname(path)), readers)
        if reader is None or not os.path.isfile(path):
            continue
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            data = f.read()
        writer = 255 - 255 % nr_writers - 1 if number % 2 else number // 2 % nr_writers
        head = bytes((reader, writer, OPTIONS[number % len(OPTIONS)]))
        with open(os.path.join(sys.argv[1], f"{number:03}"), "wb") as f:
            f.write(head + data)


if __name__ == "__main__":
    main()
