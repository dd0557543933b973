#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The files in wire/ agree: wire.h has the names and numbers of kscope.proto, trace.h those of README.md."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from kit import ROOT, check, equal, finish


def text_of(name):
    with open(os.path.join(ROOT, "wire", name), encoding="utf-8") as f:
        return re.sub(r"//.*|/\*.*?\*/", "", f.read(), flags=re.S if name.endswith(".h") else 0)


def proto_names(text):
    """{name in C: number}; the name is WIRE_, the message or enum, the field or value."""
    names, inside = {}, []
    for line in text.splitlines():
        opened = re.search(r"\b(?:message|enum) (\w+) {", line)
        number = re.search(r"(\w+) = (\d+)\b", line)
        if opened:
            inside.append(opened[1])
        if number:
            names[f"WIRE_{inside[-1]}_{number[1]}".upper()] = int(number[2])
        if "}" in line:
            inside.pop()
    return names


def header_names(text, enums):
    """Likewise, of the enums whose names match."""
    return {name: int(number, 0)
            for body in re.findall(rf"\benum {enums} {{(.*?)}}", text, re.S)
            for name, number in re.findall(r"(\w+) = (\w+)", body)}


def readme_names(text, prefix, number, base):
    """Likewise, of a table: its first two columns are number and name."""
    rows = re.findall(rf"^\| ({number}) \| ([a-z ]+) \|", text, re.M)
    return {prefix + name.upper().replace(" ", "_"): int(value, base) for value, name in rows}


def main():
    proto, header = text_of("kscope.proto"), text_of("wire.h")
    trace, readme = text_of("trace.h"), text_of("README.md")
    names = proto_names(proto)
    equal("kscope.proto: all numbers have a name of their own", len(names),
          len(re.findall(r"= \d", proto)))
    equal("wire.h has the same", header_names(header, r"wire_(?!type\b)\w+"), names)

    codes = readme_names(readme, "WIRE_TRACE_", "c[0-9a-f]", 16)
    flows = readme_names(readme, "WIRE_FLOW_", "[0-9]", 10)
    check("README.md: the tables", len(codes) == 11 and len(flows) == 10, (codes, flows))
    equal("trace.h has the same codes",
          {name: code for name, code in header_names(trace, "wire_trace_code").items()
           if code >= 0xc0}, codes)
    equal("trace.h has the same flows", header_names(trace, "wire_flow"),
          flows | {"WIRE_FLOW_KINDS": len(flows)})
    finish()


if __name__ == "__main__":
    main()
