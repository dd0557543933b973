#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/run counts every kind of failure and shows its cause; a failed golden test shows a diff."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, equal, finish, run, scratch

PROGRAMS = {
    "good": "echo note; echo ok a; echo ok b; echo 'skip c: no reason'",
    "failed": "echo ok a; echo 'not ok b: why'; echo '  -x'; echo '  +y'; echo ok c; echo last; "
              "exit 1",
    "no_result": "echo hello",
    "exit_code": "echo ok a; echo words; exit 1",
    "killed": "echo 'not ok a: why'; kill -9 $$",
}
SHOWN = {
    "good": ["2 of 3 ok", "  skip: c: no reason"],
    "failed": ["2 of 3 ok", "  not ok: b: why", "  |   -x", "  |   +y", "  | last"],
    "no_result": ["0 of 1 ok", "  not ok: lines: it tested nothing", "  | hello"],
    "exit_code": ["1 of 2 ok", "  not ok: exit: its exit code is 1", "  | ok a", "  | words"],
    "killed": ["0 of 2 ok", "  not ok: a: why", "  not ok: exit: its exit code is -9",
               "  | not ok a: why"],
}


def run_tests(folder, *words, **env):
    """The exit code of a copy of tests/run, {test: the lines about it}, and the last line."""
    done = run(os.path.join(folder, "tests", "run"), *words,
               env={**os.environ, "BUILD": BUILD, "CI": "", **env})
    shown = {}
    *lines, last = done.stdout.splitlines()
    for line in lines:
        match = re.match(r"^\w+/(\w+)\S*: (.*) \([\d.]+ s\)$", line)
        if match:
            name = match[1]
        shown.setdefault(name, []).append(match[2] if match else line)
    return done.returncode, shown, last


def test_results(folder):
    for name, text in PROGRAMS.items():
        path = os.path.join(folder, "tests", "cli", name)
        with open(path, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
    code, shown, last = run_tests(folder, "cli")
    for name, want in SHOWN.items():
        equal(f"tests/run: {name}", shown.get(name), want)
    equal("tests/run: the sum", (code, last), (1, "5 passed, 5 failed, 1 skipped"))
    equal("tests/run: without a failure", run_tests(folder, "good")[::2],
          (0, "2 passed, 0 failed, 1 skipped"))
    equal("tests/run: a skipped test under CI=true", run_tests(folder, "good", CI="true")[::2],
          (1, "2 passed, 1 failed, 0 skipped"))
    equal("tests/run: no test", run_tests(folder, "nothing")[::2],
          (1, "0 passed, 0 failed, 0 skipped"))


def test_golden(folder):
    golden = os.path.join(folder, "tests", "golden")
    for name in ("folded", "folded-bad", "wire-garbage-long"):
        shutil.copytree(os.path.join(ROOT, "tests", "golden", name), os.path.join(golden, name))
    shutil.copy(os.path.join(ROOT, "tests", "golden", "run.py"), golden)
    code, shown, _ = run_tests(folder, "golden")
    equal("golden: as expected", (code, shown), (0, {"run": ["3 of 3 ok"]}))
    with open(os.path.join(golden, "folded", "expected.dump"), "a", encoding="ascii") as f:
        f.write("sample \x1b[2J\n" * 100)
    for name, text in (("expected.err", "kscope: no such message\n"), ("expected.code", "7\n")):
        with open(os.path.join(golden, "folded-bad", name), "w", encoding="ascii") as f:
            f.write(text)
    code, shown, _ = run_tests(folder, "golden")
    lines = shown["run"]
    stdout = lines[2:2 + 61]
    check("golden: the diff of stdout, readable and not too long", code == 1 and
          lines[1].startswith("  not ok: folded:") and "  |   -sample \\x1b[2J" in stdout and
          re.match(r"  \|   \.\.\. \d+ more lines$", stdout[-1]), lines)
    check("golden: the diff of stderr and the exit code",
          {"  |   --- expected.err", "  |   -kscope: no such message", "  |   --- expected.code",
           "  |   -7", "  |   +1"} <= set(lines), lines)


def main():
    with scratch() as folder:
        tests = os.path.join(folder, "tests")
        shutil.copytree(os.path.join(ROOT, "tests", "kit"), os.path.join(tests, "kit"))
        shutil.copy(os.path.join(ROOT, "tests", "run"), tests)
        for room in ("cli", "golden"):
            os.mkdir(os.path.join(tests, room))
        test_results(folder)
        test_golden(folder)
    finish()


if __name__ == "__main__":
    main()
