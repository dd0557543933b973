# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden inputs. tests/golden/*_make.py [FOLDER] write them to FOLDER, or to tests/golden.

Inputs of more than LARGE bytes are stored as FILE.gz. kscope reads them unpacked.
"""
import contextlib
import glob
import gzip
import os
import shutil
import sys
import tempfile

from . import ROOT

GOLDEN = os.path.join(ROOT, "tests", "golden")
LARGE = 16 << 10


def put(name, file, data, args=""):
    """Writes the file of a golden test, which may be in a folder, and its args if it has any."""
    folder = os.path.join(sys.argv[1] if len(sys.argv) > 1 else GOLDEN, name)
    data = data if isinstance(data, bytes) else data.encode()
    if len(data) > LARGE:
        file, data = file + ".gz", gzip.compress(data, mtime=0)
    path = os.path.join(folder, file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    if args:
        put(name, "args", args + "\n")


def read(*path):
    """A file's content, unpacked if it is packed."""
    path = os.path.join(*path)
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


@contextlib.contextmanager
def unpacked(folder):
    """The folder itself, or a copy of it if inputs in it are packed."""
    packed = glob.glob(os.path.join(glob.escape(folder), "*.gz"))
    if not packed:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="kscope-golden-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        for path in packed:
            path = os.path.join(copy, os.path.basename(path))
            write(path[:-3], read(path))
            os.unlink(path)
        yield copy
