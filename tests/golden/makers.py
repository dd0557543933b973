#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The golden inputs are what their makers make.

A maker, NAME_make.py, names the folders that it makes in its docstring. All files in them, except
expected.*, come from it. Inputs in other folders are written by hand, so they have to be text.
"""
import ast
import fnmatch
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import check, finish, no_problems, run, scratch
from kit.inputs import GOLDEN, LARGE, read


def files(top):
    """{folder: its files}, without what kscope is expected to print."""
    found = {}
    for path in sorted(glob.glob("*/**", root_dir=top, recursive=True)):
        folder, _, file = path.partition("/")
        if os.path.isfile(os.path.join(top, path)) and folder != "__pycache__":
            found.setdefault(folder, set()).update([file] * (not file.startswith("expected.")))
    return found


def claims(maker):
    """The folders that the maker's docstring names, as patterns."""
    with open(maker, encoding="utf-8") as f:
        text = ast.get_docstring(ast.parse(f.read()))
    words = re.findall(r"[\w*-]+", text.removeprefix("Makes the inputs of "))
    return [word for word in words if word != "and"]


def is_text(content):
    try:
        return not re.search(r"[^\t\n\r\x1b -~\x80-\U0010ffff]", content.decode())
    except UnicodeDecodeError:
        return False


def test_maker(maker, committed, top):
    """Returns the folders that it has made."""
    name = os.path.basename(maker)
    os.mkdir(top)
    done = run(sys.executable, "-W", "error", maker, top)
    check(f"{name} runs", done.returncode == 0 and not done.stderr, done.stderr)
    made, patterns = files(top), claims(maker)
    claimed = [folder for folder in committed
               if any(fnmatch.fnmatchcase(folder, pattern) for pattern in patterns)]
    no_problems(f"{name} makes the folders that it names",
                sorted(set(made) ^ set(claimed)) + [
                    pattern for pattern in patterns if not fnmatch.filter(made, pattern)])
    wrong = []
    for folder in made:
        here = committed.get(folder, set())
        wrong += [f"{folder}/{file} has no maker" for file in sorted(here - made[folder])]
        wrong += [f"{folder}/{file} is not committed" for file in sorted(made[folder] - here)]
        wrong += [f"{folder}/{file} differs" for file in sorted(here & made[folder])
                  if read(f"{GOLDEN}/{folder}/{file}") != read(f"{top}/{folder}/{file}")]
    no_problems(f"{name} makes what is committed", wrong)
    return list(made)


def main():
    committed, made = files(GOLDEN), []
    makers = sorted(glob.glob(os.path.join(GOLDEN, "*_make.py")))
    others = {os.path.basename(path) for path in glob.glob(os.path.join(GOLDEN, "*"))
              if os.path.isfile(path) and path not in makers}
    no_problems("no other program makes inputs", sorted(others - {"run.py", "makers.py"}))
    with scratch() as folder:
        for maker in makers:
            made += test_maker(maker, committed, os.path.join(folder, os.path.basename(maker)))
    no_problems("each folder has one maker",
                sorted({name for name in made if made.count(name) > 1}))
    paths = [f"{name}/{file}" for name in committed for file in sorted(committed[name])]
    no_problems("inputs without a maker are text",
                [path for path in paths if path.partition("/")[0] not in made and
                 not is_text(read(os.path.join(GOLDEN, path)))])
    no_problems("large inputs are packed",
                [path for path in paths if os.path.getsize(os.path.join(GOLDEN, path)) > LARGE])
    finish()


if __name__ == "__main__":
    main()
