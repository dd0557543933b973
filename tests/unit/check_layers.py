#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""make check-layers finds violations: each line here breaks one of its rules."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, finish, run, scratch

WRONG = [
    ("a lower room includes a higher one", "src/base/mem.h", '#include "model/world.h"'),
    ("a reader includes sums", "src/read/folded.c", '#include "pass/tally.h"'),
    ("a reader includes the unwinder", "src/read/folded.c", '#include "unwind/unwind.h"'),
    ("a reader includes a stage", "src/read/folded.c", '#include "stage.h"'),
    ("a writer includes a stage's header", "src/write/folded.c", '#include "pass/calls.h"'),
    ("a format includes another", "src/read/folded.c", '#include "read/perfdata.h"'),
    ("a format includes a part of another", "src/read/perfdata.c", '#include "read/kpdata_record.h"'),
    ("a shared part includes a format", "src/read/bare.c", '#include "read/perfdata.h"'),
    ("an indented include", "src/sym/elf.c", '\t#  include "model/world.h"'),
    ("the plugin includes the program", "plugin/main.c", '#include "../src/base/mem.h"'),
    ("the contract includes anything", "wire/wire.h", '#include "base/mem.h"'),
    ("headers in a circle", "src/base/err.h", '#include "base/in.h"'),
    ("the core includes a pass", "src/stage.h", '#include "pass/merge.h"'),
]


def copy(folder):
    for name in ("src", "plugin", "wire"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))


def layers(folder):
    return run(os.path.join(ROOT, "tools", "check-layers"), folder)


with scratch() as folder:
    copy(folder)
    equal("the tree as it is", layers(folder).stdout, "")
    for what, name, line in WRONG:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as f:
            before = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(before + line + "\n")
        done = layers(folder)
        check(what, done.returncode == 1 and name in done.stdout, done.stdout)
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)
finish()
