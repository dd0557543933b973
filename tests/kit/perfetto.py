# SPDX-License-Identifier: GPL-2.0-or-later
"""What Perfetto's trace processor finds in a file."""
import os

from . import TOOLS, run


def query(path, *statements):
    """A list of rows, as {column: text}, for each SQL statement."""
    done = run("node", os.path.join(TOOLS, "perfetto.mjs"), path, *statements)
    if done.returncode:
        raise RuntimeError(done.stderr)
    results = []
    for table in done.stdout.split("\n\n"):
        head, *rows = [line.split("\t") for line in table.strip("\n").split("\n")]
        results.append([dict(zip(head, row)) for row in rows])
    return results
