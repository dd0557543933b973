# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes golden inputs, for their makers: MAKER.py [FOLDER] writes FOLDER/NAME/FILE, and FOLDER is
tests/golden if it is not given."""
import os
import sys

from . import ROOT

GOLDEN = os.path.join(ROOT, "tests", "golden")


def put(name, file, data, args=""):
    """Writes the file of a golden test, and its args if it has any."""
    folder = os.path.join(sys.argv[1] if len(sys.argv) > 1 else GOLDEN, name)
    os.makedirs(folder, exist_ok=True)
    for path, content in ((file, data), ("args", args + "\n" if args else "")):
        if path == file or content:
            with open(os.path.join(folder, path), "wb") as f:
                f.write(content if isinstance(content, bytes) else content.encode())
