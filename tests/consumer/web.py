#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The report's modules: TypeScript finds no type error, eslint nothing else, and they can be joined to one script."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import BUILD, ROOT, check, exits, finish, equal, no_problems, run

WEB = os.path.join(ROOT, "web")
TOOLS = os.path.join(ROOT, "tests", "node_modules", ".bin")


def modules():
    """{name: text} of those in the page."""
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        names = re.search(r"^WEB := ((?:.*\\\n)*.*)$", file.read(), re.M)[1].replace("\\", " ").split()
    found = {}
    for name in names:
        with open(os.path.join(WEB, f"{name}.js"), encoding="utf-8") as file:
            found[name] = file.read()
    return found


def main():
    for tool, *words in (("tsc", "-p", "."), ("eslint", ".")):
        done = run(os.path.join(TOOLS, tool), *words, cwd=WEB)
        check(tool, done.returncode == 0, done.stdout + done.stderr)
    texts = modules()
    equal("each module is in the page", sorted(texts),
          sorted(name[:-3] for name in os.listdir(WEB) if name.endswith(".js") and name != "types.js"))
    owners, problems, before = collections.defaultdict(list), [], set()
    for name, text in texts.items():
        for declared in re.findall(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", text, re.M):
            owners[declared].append(name)
        for line in re.findall(r"^import .*", text, re.M):
            if not re.fullmatch(r"import \{[^}]*\} from '\./(\w+)\.js';", line):
                problems.append(f"{name}: {line}")
            elif re.search(r"'\./(\w+)", line)[1] not in before:
                problems.append(f"{name}: {line}: comes later")
        problems += [f"{name}: {line}" for line in re.findall(r"^export (?:default|\{|\*).*", text, re.M)]
        if re.search(r"`[^`$]*\n", re.sub(r"//.*|/\*.*?\*/|'[^'\n]*'|`[^`\n]*`", "", text, flags=re.S)):
            problems.append(f"{name}: a text of several lines")
        before.add(name)
    no_problems("imports and exports can be left out", problems)
    no_problems("no two modules declare the same name", [(name, where) for name, where in owners.items() if len(where) > 1])
    exits("the joined script is valid", run("node", "--check", os.path.join(BUILD, "gen", "report.js")), 0)
    finish()


if __name__ == "__main__":
    main()
