#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The declarations of perf's interface for dlfilters in dlfilter/abi.h are those of perf."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, exits, finish, run, scratch, skip

HEADER = "/usr/include/perf/perf_dlfilter.h"
FIELD = re.compile(r"(\w+)(?:\[\d+\])?\)?(?:\([^)]*\))?(?=[,;])")


def own_fields():
    """{struct: its fields}"""
    with open(os.path.join(ROOT, "dlfilter", "abi.h"), encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return {name: [field for line in body.splitlines() for field in FIELD.findall(without_arguments(line))]
            for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.S | re.M)}


def without_arguments(line):
    """Of a pointer to a function, only its name."""
    pointer = re.match(r".*\(\*(\w+)", line)
    return f"{pointer[1]};" if pointer else line


def layout(folder, fields, *flags):
    source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
    lines = [f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), '
             f"sizeof(((struct {name} *)0)->{field}));" for name in fields for field in fields[name]]
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include <stdio.h>\n#include "abi.h"\nint main(void) {\n' + "\n".join(lines) + "\nreturn 0; }\n")
    exits(f"compiles {flags}", run("cc", "-I", os.path.join(ROOT, "dlfilter"), *flags, source, "-o", program), 0)
    return run(program).stdout.splitlines()


def main():
    if not os.path.exists(HEADER):
        skip("perf's header", "it is not installed")
        finish()
        return
    fields = own_fields()
    with scratch() as folder:
        own = layout(folder, fields, "-DKSCOPE_OWN_ABI")
        check("all fields are compared", len(own) > 50, own)
        equal("the layout is perf's", own, layout(folder, fields))
    finish()


main()
